"""Section 0, its benches: how often the ruler's intervals hold the truth, and what a ratio costs by other timers.

Timed: calls whose true ratio is known by construction, 21 repeats of one small operation against 20 of it, or
the same number on both sides. Nothing is compiled. The side with 21 repeats is called eager, that with 20
compiled, so that the true speedup is 1.05. A bench runs only where it is named.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal, cast

from reportkit.plan import Case, Experiment, Here, Sides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reportkit.records import Measurement

REPEATS = 20
MORE_REPEATS = 21

TRIALS = {"quiet": 400, "drift": 150, "bursts": 150, "two-humped": 150}
"""Trials by noise: without its noise, and with it, either truth is tried more than 400 times."""

TRIAL_BUDGET = 3.0
"""Seconds that a trial may take."""

TIMER_REPEATS = 8
"""How often each timer measures. Where launching is what a call costs, one of them takes 20 s a reading."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread on the processor: two that wait for each other time who else is there, not the work."""
    import torch

    former = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(former)


def known_ratio(workload: str, here: Here, eager: int, compiled: int) -> Sides:
    """Return two calls, so many repeats each of one model on one input.

    They share both: two copies lie elsewhere in memory, and differ by some tenths of a per cent for that alone.
    """
    from experiments import workloads

    model, inputs = getattr(workloads, workload)(here)
    return Sides(
        eager=workloads.quiet(model, inputs, eager),
        compiled=workloads.quiet(model, inputs, compiled),
        reference=None,
        tolerance=0.0,
    )


def prepare_calibration(case: Case, here: Here) -> Callable[[], Mapping[str, Measurement]]:
    """Return the call that tries the ruler again and again on one truth under one noise."""
    from reportkit.bench import calibration

    noise = cast("Literal['quiet', 'drift', 'bursts', 'two-humped']", case.axes["noise"])
    calibration.refuse(noise, here)
    more = MORE_REPEATS if case.axes["truth"] == "known" else REPEATS
    sides = known_ratio(case.workload, here, more, REPEATS)

    def observe() -> Mapping[str, Measurement]:
        truth, count = more / REPEATS, TRIALS[noise]
        with one_thread():
            return calibration.trials(sides, here, truth=truth, count=count, noise=noise, budget=TRIAL_BUDGET)

    return observe


def prepare_timers(case: Case, here: Here) -> Callable[[], Mapping[str, Measurement]]:
    """Return the call that lets every timer measure the same two calls."""
    from reportkit.bench import timers

    eager, compiled = (1, 1) if case.axes["workload"] == "tiny" else (MORE_REPEATS, REPEATS)
    sides = known_ratio(case.workload, here, eager, compiled)

    def observe() -> Mapping[str, Measurement]:
        with one_thread():
            return timers.compare(sides, here, truth=eager / compiled, repeats=TIMER_REPEATS)

    return observe


EXPERIMENTS = (
    Experiment(
        id="calibration",
        kind="bench",
        cases=tuple(
            Case(
                experiment="calibration",
                axes={"truth": truth, "noise": noise},
                workload="small_product",
                cost={"full": 170 if noise == "quiet" else 120, "smoke": 170 if noise == "quiet" else 120},
            )
            for truth in ("aa", "known")
            for noise in TRIALS
        ),
        prepare=prepare_calibration,
    ),
    Experiment(
        id="timers",
        kind="bench",
        cases=tuple(
            Case(
                experiment="timers",
                axes={"workload": kind},
                workload=workload,
                cost={"full": 60, "smoke": 120},
            )
            for kind, workload in (
                ("gpu-bound", "small_product"),
                ("launch-bound", "small_relu"),
                ("tiny", "small_relu"),
            )
        ),
        prepare=prepare_timers,
    ),
)
"""Calibration: coverage by truth and noise. Timers: what each says of three workloads, and what it costs."""
