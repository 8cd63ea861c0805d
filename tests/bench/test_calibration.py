"""Trials of the ruler and the comparison of timers: what they leave. No time is asserted.

Run as a program (`python -m tests.bench.test_calibration [TRIALS]`) it prints the ruler's coverage by noise and
by length of block, on a machine whose time is made up: in minutes, and undisturbed by the machine that it runs on.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from statistics import fmean, median
from typing import TYPE_CHECKING, get_args

import pytest

from reportkit import plan, ruler
from reportkit.bench import calibration, timers, timing
from reportkit.plan import Here, Sides

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.bench.timers import Reading
    from reportkit.records import Measurement

HERE = Here(scale="smoke", device="cpu")
NOISES = get_args(calibration.Kind)


class Machine:
    """A machine whose time passes where a call is made, and a microsecond each time that its clock is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, noise: float = 0.0) -> None:
        """Take over the clock that timing and trials read."""
        self.now = 0.0
        self.random = random.Random(1)  # noqa: S311 -- noise, not a secret
        self.noise = noise
        for module in (timing, calibration, timers):
            monkeypatch.setattr(module, "perf_counter", self.clock)

    def clock(self) -> float:
        """Return the time, which reading takes too."""
        self.now += 1e-6
        return self.now

    def call(self, seconds: float) -> Callable[[], None]:
        """Return a call that takes that long, give or take the noise."""

        def run() -> None:
            self.now += seconds * (1 + self.noise * abs(self.random.gauss(0, 1)))

        return run

    def sides(self, eager: float, compiled: float) -> Sides:
        """Return a pair of such calls."""
        return Sides(eager=self.call(eager), compiled=self.call(compiled), reference=None, tolerance=0.0)

    def slowed(self, call: Callable[[], None], mood: calibration.Noise) -> Callable[[], None]:
        """Do what `calibration.slowed` does, without reading the clock until it is time."""

        def run() -> None:
            begin = self.now
            call()
            self.now = begin + (self.now - begin) * mood.slowness(begin)

        return run


def simulated(noise: calibration.Kind, truth: float, count: int, block: float) -> dict[str, Measurement]:
    """Return trials on made-up calls of 0.6 ms, with a jitter of 1 % and 0.2 ms more in one of 500."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        machine = Machine(monkeypatch)
        monkeypatch.setattr(calibration, "slowed", machine.slowed)

        def call(seconds: float) -> Callable[[], None]:
            def run() -> None:
                machine.now += seconds * math.exp(machine.random.gauss(0, 0.01))
                machine.now += 0.0002 * (machine.random.random() < 1 / 500)

            return run

        sides = Sides(eager=call(0.0006 * truth), compiled=call(0.0006), reference=None, tolerance=0.0)
        return calibration.trials(sides, HERE, truth=truth, count=count, noise=noise, budget=3.0, block=block)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("truth", [1.0, 1.05])
def test_intervals_hold_the_truth_under_every_noise(noise: calibration.Kind, truth: float) -> None:
    found = simulated(noise, truth, 150, timing.BLOCK)
    # 150 trials of intervals that hold it in 95 of 100 fall below 0.89 once in a thousand times.
    assert ruler.coverage(found).value >= 0.89
    assert not ruler.false_differences(found).hits


@pytest.mark.parametrize("noise", NOISES)
def test_trials_find_a_known_ratio_under_every_noise(monkeypatch: pytest.MonkeyPatch, noise: calibration.Kind) -> None:
    machine = Machine(monkeypatch, noise=0.003)
    found = calibration.trials(
        machine.sides(0.00105, 0.001), HERE, truth=1.05, count=4, noise=noise, budget=5.0, block=0.01
    )

    assert set(found) == {"low", "centre", "high", "pairs", "seconds", "truth"}
    assert {name: len(one.samples) for name, one in found.items() if name != "truth"} == dict.fromkeys(
        ("low", "centre", "high", "pairs", "seconds"), 4
    )
    assert found["truth"].samples == [1.05]
    assert found["seconds"].unit == "s"
    assert ruler.is_calibration(found)
    assert fmean(found["centre"].samples) == pytest.approx(1.05, rel=0.01)
    assert all(low <= high for low, high in zip(found["low"].samples, found["high"].samples, strict=True))


def test_the_stopping_rule_is_in_force_in_every_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = calibration.trials(
        Machine(monkeypatch).sides(0.01, 0.01), HERE, truth=1.0, count=2, noise="quiet", budget=5.0, block=0.01
    )
    assert quiet["pairs"].samples == [timing.FIRST_LOOK] * 2
    loud = calibration.trials(
        Machine(monkeypatch, noise=0.5).sides(0.01, 0.01),
        HERE,
        truth=1.0,
        count=2,
        noise="quiet",
        budget=5.0,
        block=0.01,
    )
    assert min(loud["pairs"].samples) > timing.FIRST_LOOK


def test_a_noise_that_cannot_be_made_says_what_it_needs() -> None:
    on_gpu = Here(scale="full", device="cuda")
    calibration.refuse("quiet", on_gpu)
    for noise in NOISES[1:]:
        with pytest.raises(plan.Unavailable, match="needs a CPU"):
            calibration.refuse(noise, on_gpu)


@pytest.mark.parametrize(
    ("noise", "least", "most", "mean"),
    [
        ("quiet", 1.0, 1.0, (1.0, 1.0)),
        ("drift", 1.0, calibration.SLOWEST, (1.0, 1.5)),
        # 17.5 ms in 167.5 on average.
        ("bursts", 1.0, 2.0, (1.07, 1.14)),
        ("two-humped", 1.0, 1.1, (1.04, 1.06)),
    ],
)
def test_a_noise_keeps_to_its_range(
    noise: calibration.Kind, least: float, most: float, mean: tuple[float, float]
) -> None:
    mood = calibration.Noise(noise, random.Random(3))  # noqa: S311
    seen = [mood.slowness(moment / 1000) for moment in range(100_000)]
    assert least <= min(seen)
    assert max(seen) <= most
    assert mean[0] <= fmean(seen) <= mean[1]


def test_a_drift_is_slow() -> None:
    mood = calibration.Noise("drift", random.Random(3))  # noqa: S311
    seen = [mood.slowness(moment / 1000) for moment in range(10_000)]
    assert max(abs(b - a) for a, b in itertools.pairwise(seen)) < 0.01
    assert max(seen) - min(seen) > 0.02


def test_a_slowed_call_takes_its_share_longer_and_returns_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    mood = calibration.Noise("quiet", random.Random(1))  # noqa: S311
    monkeypatch.setattr(calibration.Noise, "slowness", lambda _self, _now: 1.5)
    start = machine.now

    def call() -> str:
        machine.now += 0.1
        return "output"

    assert calibration.slowed(call, mood)() == "output"
    assert machine.now - start == pytest.approx(0.15, abs=1e-4)


def test_timers_take_turns_and_leave_ratio_seconds_and_error(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    log: list[str] = []

    def logged(name: str, timer: Callable[[Sides, Here], Reading]) -> Callable[[Sides, Here], Reading]:
        def run(sides: Sides, here: Here) -> Reading:
            log.append(name)
            return timer(sides, here)

        return run

    known = timers.known(HERE)
    chosen = {name: logged(name, known[name]) for name in ("ours", "thirty-pairs", "hand-loop")}
    found = timers.compare(machine.sides(0.00105, 0.001), HERE, truth=1.05, repeats=2, timers=chosen)

    assert log == ["ours", "thirty-pairs", "hand-loop", "thirty-pairs", "hand-loop", "ours"]
    assert set(found) == {
        *(f"{name}.{what}" for name in chosen for what in ("ratio", "seconds")),
        "ours.error",
        "truth",
    }
    for name in chosen:
        assert found[f"{name}.ratio"].samples == pytest.approx([1.05, 1.05], rel=2e-3)
        assert found[f"{name}.seconds"].unit == "s"
    assert found["hand-loop.seconds"].samples[0] == pytest.approx(0.205, rel=0.01)
    assert [timer.name for timer in ruler.timers(found)] == ["ours", "hand-loop", "thirty-pairs"]


def test_a_reading_is_drawn_as_often_as_the_judge_draws() -> None:
    from reportkit.judge import Criteria

    assert Criteria().draws == calibration.DRAWS


def test_triton_times_only_where_there_is_a_gpu() -> None:
    assert "do-bench" not in timers.known(HERE)
    assert "do-bench" in timers.known(Here(scale="full", device="cuda"))


@pytest.mark.torch
def test_real_timers_read_a_real_call() -> None:
    from experiments.calibration import known_ratio

    sides = known_ratio("small_relu", HERE, 20, 10)
    found = timers.compare(sides, HERE, truth=2.0, repeats=1)

    names = {"ours", "thirty-pairs", "blocked-autorange", "adaptive-autorange", "hand-loop"}
    assert {name.rpartition(".")[0] for name in found if name != "truth"} == names
    assert {name for name in names if f"{name}.error" in found} == {"ours", "blocked-autorange", "adaptive-autorange"}
    # How near to two is for the bench to say: a moment's disturbance can make one reading anything.
    assert all(0 < found[f"{name}.ratio"].samples[0] < math.inf for name in names)


@pytest.mark.torch
def test_the_benches_of_the_article_run_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments import calibration as benches

    monkeypatch.setattr(benches, "TRIALS", dict.fromkeys(benches.TRIALS, 1))
    monkeypatch.setattr(benches, "TRIAL_BUDGET", 0.2)
    monkeypatch.setattr(benches, "TIMER_REPEATS", 1)
    trials, comparison = benches.EXPERIMENTS
    for experiment in (trials, comparison):
        for case in experiment.cases[-1:]:
            observe = experiment.prepare(case, HERE)
            assert callable(observe)
            found = observe()
            assert ruler.is_calibration(found) or ruler.is_comparison(found)  # type: ignore[arg-type]
    with pytest.raises(plan.Unavailable):
        trials.prepare(trials.cases[-1], Here(scale="full", device="cuda"))


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(f"{'noise':10} {'block':>6} {'coverage':>8} {'false':>6} {'half':>7} {'pairs':>6} {'seconds':>7}")  # noqa: T201
    for kind, length in itertools.product(NOISES, (0.002, 0.005, 0.010, 0.050)):
        tried = [simulated(kind, ratio, wanted, length) for ratio in (1.0, 1.05)]
        halves = [
            (high - low) / 2 / centre
            for one in tried
            for low, centre, high in zip(*(one[name].samples for name in ("low", "centre", "high")), strict=True)
        ]
        held = ruler.coverage(tried[0]) + ruler.coverage(tried[1])
        pairs, seconds = (fmean(tried[0][name].samples + tried[1][name].samples) for name in ("pairs", "seconds"))
        print(  # noqa: T201
            f"{kind:10} {length * 1000:3.0f} ms {held.value:8.3f} {ruler.false_differences(tried[0]).value:6.3f} "
            f"{median(halves):7.2%} {pairs:6.1f} {seconds:7.2f}",
            flush=True,
        )
