"""Intervals from samples, for both worlds: when to stop timing, and what a verdict is judged by.

Everything is a set of draws: `Draws` holds a centre and, say, 4000 values that it might as well
have had. Draws of different cases are independent, since each is seeded by its own name, and they
combine element by element, so a ratio or a spread of anything has an interval too. All of it is
exactly repeatable: a seed comes from `seed_of`, never from the clock or from Python's salted hash.

Sources: circular block bootstrap, Politis and Romano 1992; length of its blocks, Politis and White
2004 with the correction of Patton, Politis and White 2009; few processes by Student's t, as Hartung
and Knapp 2001 combine few studies; many cases at once by Holm 1979. `python -m tests.test_statistics`
prints how often the intervals hold the truth in simulation.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

CONFIDENCE = 0.95
SHORTEST = 8
"""Samples in which no dependence can be seen."""
FEWEST_BLOCKS = 4
FEW = 10
"""Samples below which resampling a median says too little of its error."""
LARGEST_BATCH = 2_000_000
"""Numbers resampled at once: 16 MB each for them and for their indices."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """A positive quantity and the values it might as well have had."""

    centre: float
    draws: Array

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
        """Return low, centre, high: percentiles of the draws, widened to hold the centre where they don't.

        They may not for a spread: noise can only add to the largest over the smallest.
        """
        tail = 50 * (1 - confidence)
        low, high = np.percentile(self.draws, [tail, 100 - tail])
        return min(float(low), self.centre), self.centre, max(float(high), self.centre)

    def noise(self, confidence: float = CONFIDENCE) -> float:
        """Return half the interval over its centre."""
        low, centre, high = self.interval(confidence)
        return (high - low) / 2 / centre

    def __truediv__(self, other: Draws) -> Draws:
        """Return this quantity over another."""
        return Draws(self.centre / other.centre, self.draws / other.draws)


def seed_of(*names: str | int) -> int:
    """Return a seed that is the same for the same names on every machine and in every process."""
    text = "\x00".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def spread(parts: Sequence[Draws]) -> Draws:
    """Return the largest of several quantities over the smallest, taken anew in every draw.

    Biased upwards where the parts differ by less than their noise: it is never below 1.
    """
    together = np.stack([part.draws for part in parts])
    centres = [part.centre for part in parts]
    return Draws(max(centres) / min(centres), together.max(axis=0) / together.min(axis=0))


def geometric_mean(parts: Sequence[Draws]) -> Draws:
    """Return the geometric mean of several quantities, taken anew in every draw."""
    centre = math.exp(math.fsum(math.log(part.centre) for part in parts) / len(parts))
    return Draws(centre, np.exp(np.mean([np.log(part.draws) for part in parts], axis=0)))


def smallest(parts: Sequence[Draws]) -> Draws:
    """Return the smallest of several quantities, taken anew in every draw.

    Biased downwards where the parts differ by less than their noise.
    """
    return Draws(min(part.centre for part in parts), np.min([part.draws for part in parts], axis=0))


def total(terms: Sequence[tuple[float, Draws]]) -> Draws:
    """Return the sum of several quantities, each so many times, taken anew in every draw."""
    centre = math.fsum(times * part.centre for times, part in terms)
    return Draws(centre, np.sum([times * part.draws for times, part in terms], axis=0))


def counted(least: float, most: float, draws: int, seed: int) -> Draws:
    """Return a count: exact where all observations agree, else anything from the least to the most of them."""
    ends = np.where(np.arange(draws) % 2 == 0, least, most).astype(np.float64)
    return Draws(float(most), _shuffled(ends, seed))


def middle_draws(series: Array, draws: int, seed: int) -> Draws:
    """Return the middle of a positive series: its median, or that of its logarithms by Student's t where they are few.

    Raises:
        ValueError: one sample; it tells nothing about others.
    """
    return processes_draws(list(series), draws, seed) if len(series) < FEW else median_draws(series, draws, seed)


def persistence(series: Array) -> float:
    """Return how much of a sample's deviation the next one inherits: lag-one autocorrelation, 0 to 0.97.

    Of ranks, so that an outlier can't hide it, and corrected for the bias of a short series
    (Kendall 1954). A negative one, such as a pair's order leaves, counts as none: that is the safe side.
    """
    n = len(series)
    _, place, ties = np.unique(series, return_inverse=True, return_counts=True)
    if n < SHORTEST or len(ties) == 1:
        return 0.0
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]  # Equal samples share their middle rank.
    ranks -= ranks.mean()
    lag_one = float(ranks[1:] @ ranks[:-1] / (ranks @ ranks))
    return min(max(0.0, lag_one + (1 + 3 * lag_one) / n), 0.97)


def block_length(series: Array) -> int:
    """Return the length of blocks, in samples, that keep a series' dependence.

    Source: Politis and White 2004, corrected by Patton, Politis and White 2009, for the circular
    bootstrap, with a first-order autoregression put in for the spectrum: on 30 pairs their general
    estimate sees no dependence where there is some. At least four blocks are left to resample.
    """
    n, inherited = len(series), persistence(series)
    best = math.cbrt(1.5 * n * (2 * inherited / (1 - inherited**2)) ** 2)
    return max(1, min(math.ceil(best), math.ceil(n / FEWEST_BLOCKS)))


def median_draws(series: Array, draws: int, seed: int) -> Draws:
    """Return the median of a positive series, resampled in circular blocks.

    Draws are stretched about the median, in logarithms, for what resampling leaves out: dependence
    beyond a block, and that a few blocks don't tell their own spread (Student's t for the normal).
    Without that, intervals of 30 pairs held the truth 60 to 80 % of the time in simulation.
    """
    n = len(series)
    length = block_length(series)
    blocks = math.ceil(n / length)
    stream = np.random.PCG64(seed)
    wrapped = np.concatenate([series, series[: length - 1]])
    medians: list[Array] = []
    batch = max(1, LARGEST_BATCH // n)
    for first in range(0, draws, batch):
        starts = _below(n, min(batch, draws - first) * blocks, stream).reshape(-1, blocks, 1)
        indices = (starts + np.arange(length)).reshape(len(starts), -1)[:, :n]
        medians.append(np.median(wrapped[indices], axis=1))
    centre = float(np.median(series))
    stretch = (
        _student(freedom_of(series), CONFIDENCE) / _student(math.inf, CONFIDENCE) / math.sqrt(_captured(series, length))
    )
    return Draws(centre, centre * (np.concatenate(medians) / centre) ** stretch)


def freedom_of(series: Array) -> int:
    """Return the degrees of freedom of Student's t for a median by blocks: one less than there are blocks."""
    return max(1, round(len(series) / block_length(series) - 1))


def speedup_draws(eager: Array, compiled: Array, draws: int, seed: int) -> Draws:
    """Return the speedup: the median over pairs of eager over compiled time.

    Each pair was taken within a fraction of a second, so that a drift of both sides divides out.
    """
    return median_draws(eager / compiled, draws, seed)


def processes_draws(values: Sequence[float], draws: int, seed: int) -> Draws:
    """Return the typical value over processes, such as a first call's: the mean of the logarithms.

    Draws are exact quantiles of Student's t around it, shuffled: processes are too few to resample.

    Raises:
        ValueError: fewer than two values; one process tells nothing about others.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    n = len(logs)
    if n < 2:  # noqa: PLR2004 -- two make the least spread
        message = f"{n} process; an interval over processes needs two"
        raise ValueError(message)
    error = float(logs.std(ddof=1)) / math.sqrt(n)
    quantiles = _student_quantiles((np.arange(draws) + 0.5) / draws, n - 1)
    centre = float(logs.mean())
    return Draws(math.exp(centre), np.exp(centre + error * _shuffled(quantiles, seed)))


def hierarchical(replicates: Sequence[Draws], draws: int, seed: int) -> Draws:
    """Return one quantity from its replicates, each a process with draws of its own.

    The centre is the mean of the replicates' logarithms. Its error has two levels: between
    processes, by Student's t over their centres, and within each, by its own draws. The wider one
    counts: the first contains the second on average, but three processes may agree by chance.
    Resampling three processes instead holds the truth only 75 % of the time: between the smallest
    and the largest of three lies the middle of a population with probability 1 - 2/8.
    """
    if len(replicates) == 1:
        return replicates[0]
    within = geometric_mean(replicates)
    between = processes_draws([replicate.centre for replicate in replicates], draws, seed)
    return max(within, between, key=Draws.noise)


def chances(quantity: Draws, freedom: int, limit: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return one-sided p-values of what the samples say against: not below `limit`, and not above it.

    Student's t of the logarithm's distance from the limit, in units of its error, which is read off the interval's
    end on that side: a p-value is (1 - confidence) / 2 or less just where the interval lies beyond the limit.
    Counting draws beyond it instead would end at one draw's share, above what dozens of cases at once ask for.
    """
    low, centre, high = quantity.interval(confidence)
    quantile = _student(freedom, confidence)
    return (
        _tail(math.log(limit / centre), math.log(high / centre) / quantile, freedom),
        _tail(math.log(centre / limit), math.log(centre / low) / quantile, freedom),
    )


def holm(found: Mapping[str, float], level: float) -> set[str]:
    """Return which of several hypotheses these p-values reject, with a chance of `level` at most that any is true.

    Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure. They may depend on one another.
    """
    rejected: set[str] = set()
    for place, name in enumerate(sorted(found, key=lambda name: (found[name], name))):
        if found[name] > level / (len(found) - place):
            break
        rejected.add(name)
    return rejected


def precise_enough(
    eager: Array, compiled: Array, target: float = 0.01, confidence: float = CONFIDENCE, draws: int = 1000
) -> bool:
    """Whether the speedup's interval is within `target` of its centre, so that timing may stop.

    Looked at after 30, 60, 120 ... pairs only, and never with a view to where a bound lies.
    """
    seed = seed_of("precise enough", len(eager))
    return speedup_draws(eager, compiled, draws, seed).noise(confidence) <= target


def _below(n: int, count: int, stream: np.random.PCG64) -> npt.NDArray[np.int64]:
    """Return whole numbers from 0 to n - 1, by the raw stream: numpy may change its methods, not that."""
    return (stream.random_raw(count) % np.uint64(n)).astype(np.int64)


def _captured(series: Array, length: int) -> float:
    """Return the share of the variance of a mean that blocks of this length see, for its persistence."""
    inherited = persistence(series)
    lags = np.arange(1, length)
    seen = 1 + 2 * float(((1 - lags / length) * inherited**lags).sum())
    return seen * (1 - inherited) / (1 + inherited)


def _shuffled(values: Array, seed: int) -> Array:
    """Return the values in an order of their own, so that draws of two quantities are not in step."""
    return values[np.argsort(np.random.PCG64(seed).random_raw(len(values)), kind="stable")]


def _tail(distance: float, error: float, freedom: int) -> float:
    """Return the chance that Student's t exceeds a distance in units of its error."""
    if error <= 0:
        return 0.0 if distance > 0 else 1.0
    angles, cumulative = _student_table(freedom)
    return float(np.interp(math.atan(-distance / error / math.sqrt(freedom)), angles, cumulative))


@cache
def _student(freedom: float, confidence: float) -> float:
    """Return the two-sided quantile of Student's t; of the normal distribution for infinite freedom."""
    if math.isinf(freedom):
        return NormalDist().inv_cdf((1 + confidence) / 2)
    return float(_student_quantiles(np.array([(1 + confidence) / 2]), int(freedom))[0])


def _student_quantiles(probabilities: Array, freedom: int) -> Array:
    """Return quantiles of Student's t, to about 1e-5."""
    angles, cumulative = _student_table(freedom)
    found: Array = np.interp(probabilities, cumulative, angles)
    return math.sqrt(freedom) * np.tan(found)


@lru_cache(maxsize=16)
def _student_table(freedom: int) -> tuple[Array, Array]:
    """Return angles, and the chance that Student's t lies below each.

    With t = sqrt(freedom) tan(angle) the density over the angle is its cosine to the power
    freedom - 1, bounded and on a bounded range, so that a plain table serves both ways.
    """
    angles = np.linspace(-math.pi / 2, math.pi / 2, 100_001)
    density = np.clip(np.cos(angles), 0, None) ** (freedom - 1)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return angles, cumulative / cumulative[-1]
