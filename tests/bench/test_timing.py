"""Steady state, with a clock that the test winds: order, stopping, dropped pairs. No torch is needed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from reportkit.bench import timing
from reportkit.plan import Here, Sides
from reportkit.statistics import speedup_draws

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Here(scale="smoke", device="cpu")


class Machine:
    """A machine whose time passes only where a call is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, noise: float = 0.0) -> None:
        """Take over the clock that the timing reads."""
        self.now = 0.0
        self.log: list[str] = []
        self.random = random.Random(1)  # noqa: S311 -- noise, not a secret
        self.noise = noise
        monkeypatch.setattr(timing, "perf_counter", lambda: self.now)

    def call(self, side: str, seconds: float) -> Callable[[], None]:
        """Return a call that takes that long, give or take the noise."""

        def run() -> None:
            self.log.append(side)
            self.now += seconds * (1 + self.noise * abs(self.random.gauss(0, 1)))

        return run

    def sides(self, eager: float, compiled: float) -> Sides:
        """Return a pair of such calls."""
        return Sides(eager=self.call("e", eager), compiled=self.call("c", compiled), reference=None, tolerance=1e-4)


def test_a_sample_is_the_mean_of_a_block_that_lasts_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)

    samples, telemetry = timing.steady_state(machine.sides(0.010, 0.004), HERE, lambda: 1)

    eager, compiled = samples["eager_wall"], samples["compiled_wall"]
    assert set(eager.samples) == {0.010}
    assert set(compiled.samples) == {0.004}
    assert eager.calls * 0.010 >= timing.BLOCK
    assert compiled.calls * 0.004 >= timing.BLOCK
    assert eager.warmups >= timing.FEWEST_WARM_UPS
    assert telemetry.missing


def test_pairs_alternate_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    timing.steady_state(machine.sides(0.06, 0.06), HERE, lambda: 1)

    # Blocks of one call each: after warm-up and calibration, thirty pairs end the log.
    pairs = "".join(machine.log)[-2 * timing.FIRST_LOOK :]
    assert pairs == "ecce" * (timing.FIRST_LOOK // 2)


def test_a_quiet_ratio_stops_at_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, noise=0.001)
    samples, _ = timing.steady_state(machine.sides(0.01, 0.008), HERE, lambda: 1)
    assert len(samples["eager_wall"].samples) == timing.FIRST_LOOK


def test_a_control_goes_on_until_its_interval_is_half_as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = {}
    for within in (timing.USUAL, timing.CONTROL):
        sides = Machine(monkeypatch, noise=0.02).sides(0.01, 0.008)
        samples, _ = timing.steady_state(sides, HERE, lambda: 1, within)
        eager, compiled = (np.asarray(samples[name].samples) for name in ("eager_wall", "compiled_wall"))
        widths[within] = speedup_draws(eager, compiled, 1000, 1).noise(0.95), len(eager)
    assert widths[timing.CONTROL][0] <= timing.CONTROL < widths[timing.USUAL][0] <= timing.USUAL
    assert widths[timing.CONTROL][1] > widths[timing.USUAL][1]


def test_a_noisy_ratio_goes_on_until_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, noise=0.9)
    samples, _ = timing.steady_state(machine.sides(0.06, 0.06), HERE, lambda: 1)

    assert len(samples["eager_wall"].samples) > timing.FIRST_LOOK
    assert len(samples["eager_wall"].samples) == len(samples["compiled_wall"].samples)


def test_a_slow_case_still_gets_its_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, noise=0.001)
    budget = timing.PACES["smoke"].budget
    samples, _ = timing.steady_state(machine.sides(budget / 10, budget / 10), HERE, lambda: 1)
    assert len(samples["eager_wall"].samples) == timing.FIRST_LOOK


def test_the_stop_does_not_ask_where_the_ratio_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []
    for gain in (0.5, 0.98, 1.0, 1.02, 2.0):
        machine = Machine(monkeypatch, noise=0.02)
        samples, _ = timing.steady_state(machine.sides(0.06 * gain, 0.06), HERE, lambda: 1)
        lengths.append(len(samples["eager_wall"].samples))
    # The same noise, whatever the gain, ends at the same look.
    assert len(set(lengths)) == 1


def test_a_graph_compiled_while_timing_spoils_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    counts = iter([1, 1, 3, 3])
    with pytest.raises(timing.Recompiled, match="2 graphs were compiled"):
        timing.steady_state(machine.sides(0.01, 0.01), HERE, lambda: next(counts))


def test_a_pair_under_a_slow_clock_is_dropped_whole_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clocks = iter([2e9, *([2e9, 2e9, 1.4e9, 2e9] * 1000)])
    monkeypatch.setattr(timing.Gpu, "clock", lambda _: next(clocks))

    samples, telemetry = timing.steady_state(machine.sides(0.06, 0.03), HERE, lambda: 1)

    assert len(samples["eager_wall"].samples) == len(samples["compiled_wall"].samples) == timing.FIRST_LOOK
    assert len(telemetry.clock) == timing.FIRST_LOOK
    assert telemetry.dropped_pairs == timing.FIRST_LOOK - 1
    assert min(telemetry.clock) == 2e9


def test_a_call_of_nothing_warms_up_by_the_clock_too(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    ticks = 0.0

    def clock() -> float:
        nonlocal ticks
        ticks += 0.01  # Looking at the clock is all that takes time here.
        return machine.now + ticks

    monkeypatch.setattr(timing, "perf_counter", clock)
    assert timing.warm_up(machine.call("e", 0.0), HERE, 0.3) <= 0.3 / 0.02


@pytest.mark.parametrize(("seen", "whole"), [(1.0, True), (0.99, True), (0.5, False)])
def test_events_that_miss_the_work_of_one_side_are_left_out(
    seen: float,
    whole: bool,  # noqa: FBT001 -- a case of the table
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)

    def block(call: Callable[[], None], _calls: int, _here: Here, _leads: int = 0) -> timing.Block:
        call()
        seconds = 0.06
        return timing.Block(seconds, seconds * (seen if machine.log[-1] == "c" else 1.0))

    monkeypatch.setattr(timing, "_block", block)
    samples, telemetry = timing.steady_state(machine.sides(0.06, 0.06), HERE, lambda: 1)
    assert ("compiled_gpu" in samples) is whole
    assert ("eager_gpu" in samples) is whole
    assert "compiled_wall" in samples
    assert ("another stream" in (telemetry.missing or "")) is not whole


@pytest.mark.parametrize(("eager", "compiled"), [(0.0016, 0.0011), (0.004, 0.0003), (0.03, 0.01), (0.02, 0.02)])
def test_both_blocks_of_a_pair_are_as_long_as_whole_calls_allow(
    monkeypatch: pytest.MonkeyPatch, eager: float, compiled: float
) -> None:
    machine = Machine(monkeypatch)
    calls = {"eager": machine.call("e", eager), "compiled": machine.call("c", compiled)}
    numbers, leads = timing.calls_a_block(calls, HERE)

    lengths = numbers["eager"] * eager, numbers["compiled"] * compiled
    assert leads == 0  # Calls do not queue up on a processor.
    assert max(lengths) >= timing.BLOCK
    assert abs(lengths[0] - lengths[1]) <= max(eager, compiled) / 2


def test_a_disturbance_while_calls_are_counted_leaves_blocks_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    undisturbed = machine.call("e", 0.0006)
    count = 0

    def disturbed() -> None:
        nonlocal count
        count += 1
        machine.now += 0.004 if count in {1, 3} else 0.0
        undisturbed()

    numbers, _ = timing.calls_a_block({"eager": disturbed, "compiled": machine.call("c", 0.0006)}, HERE)
    assert numbers["eager"] == numbers["compiled"]


@pytest.mark.parametrize(
    ("eager", "compiled", "calls", "leads"),
    [(0.0001, 0.0001, 20, 1), (0.004, 0.004, 1, 1), (0.03, 0.004, 1, 1), (0.03, 0.02, 1, 0)],
)
def test_on_a_gpu_a_call_goes_before_a_block_of_short_ones(
    monkeypatch: pytest.MonkeyPatch, eager: float, compiled: float, calls: int, leads: int
) -> None:
    monkeypatch.setattr(timing, "_block", lambda call, _number, _here: timing.Block(call(), None))
    on_gpu = Here(scale="full", device="cuda")
    numbers, before = timing.calls_a_block({"eager": lambda: eager, "compiled": lambda: compiled}, on_gpu)
    assert before == leads
    assert calls <= numbers["eager"] <= 1.2 * calls


@pytest.mark.parametrize(
    ("wall", "gpu", "aside", "whole"),
    [
        (0.0200, 0.0200, 0.00005, True),
        # A compiled model whose guards take the host a millisecond, before anything is launched: one lead, one call.
        (0.0205, 0.0200, 0.0006, True),
        (0.0205, 0.0200, 0.00005, False),
        # Half of the work on another stream; the host is soon done with launching it.
        (0.0200, 0.0100, 0.0006, False),
        (0.0002, 0.0000, 0.00001, False),
        (0.0200, None, 0.0, True),
    ],
)
def test_events_may_miss_what_the_host_needs_before_it_launches(
    wall: float,
    gpu: float | None,
    aside: float,
    whole: bool,  # noqa: FBT001 -- a case of the table
) -> None:
    assert timing.Block(wall, gpu, aside).whole is whole
