"""Other people's timers and ours on the same two calls, in one process, interleaved: what each reports and costs.

Each is what its users run: the real public function with its defaults. Sources: `speedup_experiment` in PyTorch's
benchmarks/dynamo/common.py (pairs of single synchronised calls), `torch.utils.benchmark.Timer`,
`triton.testing.do_bench`, and the loop that people write by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter  # Bound now: a workload may put something else into `time`.
from typing import TYPE_CHECKING, Any

import numpy as np

from reportkit.bench import calibration, timing
from reportkit.records import Measurement
from reportkit.statistics import seed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reportkit.plan import Here, Sides

SINGLE_PAIRS = 30
"""Pairs that PyTorch's benchmark suite takes (its option `--repeat`)."""

HAND_CALLS = 100
"""Calls of a side in the loop written by hand, with one wait for the device at its end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a timer says: eager over compiled time, and half of its own error bar over it, where it has one."""

    ratio: float
    error: float | None = None


def ours(sides: Sides, here: Here) -> Reading:
    """Read the ratio as `timing.steady_state` does, interval included."""
    calls: dict[str, Callable[[], Any]] = {"eager": sides.eager, "compiled": sides.compiled}
    drawn, _ = calibration.reading(calls, here, timing.PACES[here.scale].budget, seed_of("timers"))
    return Reading(drawn.centre, drawn.noise())


def thirty_pairs(sides: Sides, here: Here) -> Reading:
    """Read it as PyTorch's benchmark suite does: single calls in turn, wall clock, median over median."""
    times = [(timing.once(sides.eager, here)[0], timing.once(sides.compiled, here)[0]) for _ in range(SINGLE_PAIRS)]
    eager, compiled = np.median(np.asarray(times), axis=0)
    return Reading(float(eager / compiled))


def blocked_autorange(sides: Sides, here: Here) -> Reading:
    """Read it by `torch.utils.benchmark.Timer.blocked_autorange`, once a side."""
    del here  # It waits for a GPU by itself, where there is one.
    return _over(*(_timer(call).blocked_autorange() for call in (sides.eager, sides.compiled)))


def adaptive_autorange(sides: Sides, here: Here) -> Reading:
    """Read it by `torch.utils.benchmark.Timer.adaptive_autorange`, once a side."""
    del here
    return _over(*(_timer(call).adaptive_autorange() for call in (sides.eager, sides.compiled)))


def do_bench(sides: Sides, here: Here) -> Reading:
    """Read it by `triton.testing.do_bench`, which returns mean milliseconds, once a side. Needs a GPU."""
    del here
    from triton.testing import do_bench as bench

    return Reading(float(bench(sides.eager) / bench(sides.compiled)))


def hand_loop(sides: Sides, here: Here) -> Reading:
    """Read it by a loop over each side, one after the other."""
    seconds = []
    for call in (sides.eager, sides.compiled):
        timing.synchronize(here)
        start = perf_counter()
        for _ in range(HAND_CALLS):
            call()
        timing.synchronize(here)
        seconds.append(perf_counter() - start)
    return Reading(seconds[0] / seconds[1])


def _timer(call: Callable[[], Any]) -> Any:
    import torch
    from torch.utils.benchmark import Timer

    # By itself it sets one thread, and would time other calls than the rest do.
    return Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())


def _over(eager: Any, compiled: Any) -> Reading:
    """Return the ratio of two of torch's measurements; its error joins half the interquartile range of each."""
    error = math.hypot(*(one.iqr / 2 / one.median for one in (eager, compiled)))
    return Reading(float(eager.median / compiled.median), float(error))


def known(here: Here) -> dict[str, Callable[[Sides, Here], Reading]]:
    """Return the timers by the names that case files know them by; triton's only where there is a GPU."""
    return {
        "ours": ours,
        "thirty-pairs": thirty_pairs,
        "blocked-autorange": blocked_autorange,
        "adaptive-autorange": adaptive_autorange,
        **({"do-bench": do_bench} if here.device == "cuda" else {}),
        "hand-loop": hand_loop,
    }


def compare(
    sides: Sides,
    here: Here,
    *,
    truth: float,
    repeats: int,
    timers: Mapping[str, Callable[[Sides, Here], Reading]] | None = None,
) -> dict[str, Measurement]:
    """Let every timer measure both sides `repeats` times, in turn; `truth` is the ratio by construction.

    Returned are, one element a repeat, `NAME.ratio`, `NAME.seconds` (all that the timer did, its own calibration,
    warm-up and statistics included) and `NAME.error` where a timer has an error bar. Both sides are warmed before
    the first, as for a timing case, at nobody's cost. Each repeat begins with another timer.
    """
    timers = known(here) if timers is None else timers
    warmups = sum(
        timing.warm_up(call, here, timing.PACES[here.scale].warm_up) for call in (sides.eager, sides.compiled)
    )
    found: dict[str, list[float]] = {}
    names = list(timers)
    for repeat in range(repeats):
        first = repeat % len(names)
        for name in (*names[first:], *names[:first]):
            start = perf_counter()
            reading = timers[name](sides, here)
            seconds = perf_counter() - start
            found.setdefault(f"{name}.ratio", []).append(reading.ratio)
            found.setdefault(f"{name}.seconds", []).append(round(seconds, timing.RESOLUTION))
            if reading.error is not None:
                found.setdefault(f"{name}.error", []).append(reading.error)
    return {
        **{
            name: Measurement(unit="s" if name.endswith(".seconds") else "1", samples=values, warmups=warmups)
            for name, values in found.items()
        },
        "truth": Measurement(unit="1", samples=[truth]),
    }
