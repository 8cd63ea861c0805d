"""Trials of the ruler itself, on two calls whose true ratio is known, under noise like that of shared machines.

A trial is what `timing.steady_state` does after its warm-up: blocks, pairs, looks at 30, 60, 120 pairs, the rule
that stops, and then the interval that the judge would draw. What 95 % intervals promise can so be counted.
Noise is made by waiting after each call for a share of the call's own duration. The machine gets slower for
both sides alike, so that the true ratio stays what it was.
"""

from __future__ import annotations

import random
from time import perf_counter  # Bound now: a workload may put something else into `time`.
from typing import TYPE_CHECKING, Any, Literal

from reportkit.bench import timing
from reportkit.plan import Unavailable
from reportkit.records import Measurement
from reportkit.statistics import seed_of, speedup_draws

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.plan import Here, Sides
    from reportkit.statistics import Draws

Kind = Literal["quiet", "drift", "bursts", "two-humped"]

DRAWS = 4000
"""As many as the judge draws."""

DRIFT = 0.05
"""Standard deviation by which a drifting machine changes its speed in a second, of the fastest."""

SLOWEST = 1.5
"""A drifting machine takes at most so many times as long as the fastest; it is turned back there."""

BURST, BURST_GAP = (0.005, 0.030), 0.150
"""Seconds that a burst lasts, least and most, and the mean seconds between two."""

BURST_SLOWNESS = 2.0

HUMP, HUMP_STAY = 1.1, 0.100
"""How many times longer calls take at the slower of two speeds, and the mean seconds at either."""


class Noise:
    """A machine's mood: how many times longer than at its best a call takes that begins at some moment."""

    def __init__(self, kind: Kind, chance: random.Random) -> None:
        """Begin in a mood as it may be found."""
        self._kind = kind
        self._chance = chance
        self._last: float | None = None
        self._until = 0.0
        self._slowness = chance.uniform(1.0, SLOWEST) if kind == "drift" else 1.0

    def slowness(self, now: float) -> float:
        """Return the factor at the moment `now`, in seconds; moments must not go back."""
        if self._kind == "drift":
            step = 0.0 if self._last is None else now - self._last
            self._last = now
            self._slowness += self._chance.gauss(0, DRIFT) * step**0.5
            if self._slowness < 1.0:
                self._slowness = 2.0 - self._slowness
            self._slowness = min(self._slowness, SLOWEST)
        elif self._kind != "quiet":
            if self._last is None:
                self._last = self._until = now
            while self._until <= now:
                self._turn()
        return self._slowness

    def _turn(self) -> None:
        """Change to the other of two speeds, and settle for how long."""
        fast = self._slowness > 1.0  # What comes next.
        if self._kind == "bursts":
            self._slowness = 1.0 if fast else BURST_SLOWNESS
            self._until += self._chance.expovariate(1 / BURST_GAP) if fast else self._chance.uniform(*BURST)
        else:
            self._slowness = 1.0 if fast else HUMP
            self._until += self._chance.expovariate(1 / HUMP_STAY)


def slowed(call: Callable[[], Any], noise: Noise) -> Callable[[], Any]:
    """Return a call that takes longer by what the noise says for the moment at which it begins."""

    def run() -> Any:
        begin = perf_counter()
        output = call()
        end = begin + (perf_counter() - begin) * noise.slowness(begin)
        while perf_counter() < end:
            pass
        return output

    return run


def refuse(noise: Kind, here: Here) -> None:
    """Refuse what can't be tried here.

    Raises:
        Unavailable: noise is made by keeping the processor waiting, which says nothing where a GPU does the work.
    """
    if here.device != "cpu" and noise != "quiet":
        message = "needs a CPU as the device: the noise is made there; on a GPU only the quiet trials say something"
        raise Unavailable(message)


def reading(
    calls: dict[str, Callable[[], Any]], here: Here, budget: float, seed: int, block: float = timing.BLOCK
) -> tuple[Draws, int]:
    """Return one reading of the ratio, as the judge would draw it, and the pairs that it took.

    What `timing.steady_state` does after its warm-up: the length of blocks, pairs, looks, and the rule that stops.
    """
    gpu = timing.Gpu(here)
    numbers, leads = timing.calls_a_block(calls, here, block)
    steady = timing.Steady(calls=numbers, leads=leads, warmups={}, busy_clock=gpu.clock())
    timing.take_pairs(steady, calls, here, gpu, budget)
    return speedup_draws(*steady.judged, DRAWS, seed), steady.pairs


def trials(  # noqa: PLR0913 -- each is a setting of the experiment
    sides: Sides, here: Here, *, truth: float, count: int, noise: Kind, budget: float, block: float = timing.BLOCK
) -> dict[str, Measurement]:
    """Measure the ratio of both sides `count` times over; each trial is one element of every measurement.

    `truth` is the ratio by construction, `budget` the seconds that one trial may take, `block` those that a block
    lasts at least. Returned are the interval of each trial (`low`, `centre`, `high`), its pairs and its seconds.

    Raises:
        Unavailable: this noise can't be made here.
    """
    refuse(noise, here)
    calls: dict[str, Callable[[], Any]] = {"eager": sides.eager, "compiled": sides.compiled}
    pace = timing.PACES[here.scale]
    for call in calls.values():
        timing.warm_up(call, here, pace.warm_up)
    if noise != "quiet":
        mood = Noise(noise, random.Random(f"{noise} {truth}"))  # noqa: S311 -- noise, not a secret
        calls = {side: slowed(call, mood) for side, call in calls.items()}
    found: dict[str, list[float]] = {"low": [], "centre": [], "high": [], "pairs": [], "seconds": []}
    for trial in range(count):
        start = perf_counter()
        drawn, pairs = reading(calls, here, budget, seed_of("trial", noise, str(truth), trial), block)
        found["seconds"].append(round(perf_counter() - start, timing.RESOLUTION))
        for name, value in zip(("low", "centre", "high"), drawn.interval(), strict=True):
            found[name].append(value)
        found["pairs"].append(float(pairs))
    return {
        **{name: Measurement(unit="s" if name == "seconds" else "1", samples=values) for name, values in found.items()},
        "truth": Measurement(unit="1", samples=[truth]),
    }
