"""How good the ruler is, from the case files of its benches: coverage, false differences, and what a ratio costs.

A file is known by what it measured, not by its name: trials of the ruler have `low`, `centre`, `high`, `pairs` and
`truth`, a comparison of timers has `NAME.ratio`, `NAME.seconds` and `truth`. Pure, and without an article.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from statistics import NormalDist, fmean, median, stdev
from typing import TYPE_CHECKING, Literal

from reportkit.judge import Criteria, Interval
from reportkit.statistics import CONFIDENCE, processes_draws

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reportkit.records import CaseFile, Measurement

NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

OURS = "ours"

QUANTILES = 4000
"""Quantiles of Student's t from which an interval's ends are read."""

Standing = Literal["near", "unknown", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """What the ruler is held to."""

    least_coverage: float = 0.93
    most_coverage: float = 0.98
    trials: int = 400
    """Fewer say nothing yet."""
    false_differences: float = 0.01
    """Largest share of A/A trials in which the judge may claim a difference."""
    precision: float = 0.01
    """Half width of the interval whose cost is compared."""
    bias: float = 0.01
    """A timer is near the truth, or off it, where the whole interval of its typical reading is within this share of
    it, or beyond."""
    repeats: int = 8
    """Fewer say nothing about a timer's spread."""
    times_as_fast: float = 2.0
    rivals: tuple[str, ...] = ("adaptive-autorange", "thirty-pairs")
    """The timers that ours must beat so many times over where launching is what calls cost."""
    launch_bound: str = "launch-bound"
    """The value of the axis `workload` where it must."""
    overhead: float = 0.15
    """Largest share of a run's time that may go to anything but importing once, building, compiling and measuring."""
    cases: int = 10
    """A run of fewer says nothing about that."""


AIMS = Aims()


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share; 0 of 0 is 0."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high of the true share, at 95 %; source: Wilson 1927. Of nothing it is 0 to 1."""
        if not self.of:
            return 0.0, 1.0
        square = NORMAL**2
        middle = (self.hits + square / 2) / (self.of + square)
        half = NORMAL / (self.of + square) * math.sqrt(self.hits * (self.of - self.hits) / self.of + square / 4)
        return max(0.0, middle - half), min(1.0, middle + half)

    def __add__(self, other: Share) -> Share:
        """Pool the trials of two."""
        return Share(self.hits + other.hits, self.of + other.of)


NONE = Share(0, 0)


def is_calibration(measurements: Mapping[str, Measurement]) -> bool:
    """Whether these are trials of the ruler: as many pairs and ends in each, and a truth that is a ratio."""
    return (
        {"low", "centre", "high", "pairs", "truth"} <= set(measurements)
        and len({len(measurements[name].samples) for name in ("low", "centre", "high", "pairs")}) == 1
        and min(truth_of(measurements), *measurements["centre"].samples) > 0
    )


def is_comparison(measurements: Mapping[str, Measurement]) -> bool:
    """Whether these are readings of several timers, ours among them, and a truth that is a ratio."""
    return "truth" in measurements and truth_of(measurements) > 0 and OURS in _readable(measurements)


def truth_of(measurements: Mapping[str, Measurement]) -> float:
    """Return the true ratio, by construction."""
    return measurements["truth"].samples[0]


def coverage(measurements: Mapping[str, Measurement]) -> Share:
    """Return how many intervals hold the truth."""
    truth = truth_of(measurements)
    return Share(sum(low <= truth <= high for low, high in _intervals(measurements)), len(_intervals(measurements)))


def false_differences(measurements: Mapping[str, Measurement], criteria: Criteria | None = None) -> Share:
    """Return in how many trials of equal sides the judge would claim a difference; of other trials, 0 of 0.

    It does where the interval lies wholly outside of no difference, if the judge's gates let it through.
    """
    if truth_of(measurements) != 1:
        return NONE
    criteria = criteria or Criteria()
    least, most = criteria.no_difference
    trials = list(zip(*(measurements[name].samples for name in ("low", "centre", "high", "pairs")), strict=True))
    claimed = sum(
        (high < least or low > most)
        and (high - low) / 2 / centre <= criteria.noise_ceiling
        and pairs >= criteria.minimum_pairs
        for low, centre, high, pairs in trials
    )
    return Share(claimed, len(trials))


def bias(measurements: Mapping[str, Measurement]) -> float:
    """Return by what share of the truth the middle of the centres is off it."""
    return float(median(measurements["centre"].samples)) / truth_of(measurements) - 1


def half_width(measurements: Mapping[str, Measurement]) -> float:
    """Return the middle of the intervals' half widths, over their centres."""
    ends = zip(*(measurements[name].samples for name in ("low", "centre", "high")), strict=True)
    return float(median((high - low) / 2 / centre for low, centre, high in ends))


def _intervals(measurements: Mapping[str, Measurement]) -> list[tuple[float, float]]:
    return list(zip(measurements["low"].samples, measurements["high"].samples, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """How one timer did on one workload."""

    name: str
    repeats: int
    ratio: Interval
    """Its typical reading, the mean of the logarithms of what it reported, with its interval at 95 % by Student's t
    (Student 1908): resampling eight readings says too little of their error. Of one reading it is 0 to infinity."""
    bias: float
    """The typical reading over the truth, less one."""
    deviation: float
    """Relative standard deviation of one reading: that of the logarithms, over n - 1; infinite for one reading."""
    cost: float
    """Mean seconds of one reading."""
    error: float | None
    """Median of the half width that it claims for itself, relative; None where it claims nothing."""
    seconds: float
    """Seconds to know the ratio to the aims' precision at 95 %: readings are repeated and averaged until they do."""
    standing: Standing
    """`off` the truth where the interval of the typical reading lies wholly beyond the aims' bias, `near` it where
    it lies wholly within; else `unknown`: its readings don't say."""

    @property
    def half_width(self) -> float:
        """Relative half width at 95 % of what one reading says, from the spread of readings."""
        return NORMAL * self.deviation

    @property
    def may_race(self) -> bool:
        """Whether time can help it, for all that is known."""
        return self.standing != "off"


def timers(measurements: Mapping[str, Measurement], aims: Aims = AIMS) -> tuple[Timer, ...]:
    """Return every timer that took part, in the order of their names, ours first."""
    names = _readable(measurements)
    return tuple(_timer(name, measurements, aims) for name in sorted(names, key=lambda name: name != OURS))


def _readable(measurements: Mapping[str, Measurement]) -> list[str]:
    """Return the timers whose ratios are ratios and whose seconds are known, by name."""
    names = sorted(name.removesuffix(".ratio") for name in measurements if name.endswith(".ratio"))
    return [
        name for name in names if f"{name}.seconds" in measurements and min(measurements[f"{name}.ratio"].samples) > 0
    ]


def _timer(name: str, measurements: Mapping[str, Measurement], aims: Aims) -> Timer:
    ratios = measurements[f"{name}.ratio"].samples
    errors = measurements.get(f"{name}.error")
    truth = truth_of(measurements)
    ratio, deviation = _typical(ratios)
    cost = fmean(measurements[f"{name}.seconds"].samples)
    return Timer(
        name=name,
        repeats=len(ratios),
        ratio=ratio,
        bias=ratio.centre / truth - 1,
        deviation=deviation,
        cost=cost,
        error=None if errors is None else median(errors.samples),
        # One whole reading is the least that it can be asked for.
        seconds=cost * max(1.0, (NORMAL * deviation / aims.precision) ** 2),
        standing=_standing(ratio, truth, aims),
    )


def _typical(ratios: Sequence[float]) -> tuple[Interval, float]:
    """Return the typical one of several readings with its interval, and the deviation of one."""
    if len(ratios) == 1:
        return Interval(low=0.0, centre=ratios[0], high=math.inf), math.inf
    low, centre, high = processes_draws(ratios, QUANTILES, 0).interval()
    return Interval(low=low, centre=centre, high=high), stdev(map(math.log, ratios))


def _standing(ratio: Interval, truth: float, aims: Aims) -> Standing:
    least, most = truth * (1 - aims.bias), truth * (1 + aims.bias)
    if ratio.high < least or ratio.low > most:
        return "off"
    return "near" if least <= ratio.low and ratio.high <= most else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One thing that the ruler is held to, and how it did."""

    id: str
    value: float | None
    """What was found; None where nothing was measured, or nothing could be compared."""
    least: float | None
    most: float | None
    met: bool | None
    """None where too little was measured to say."""


def goals(files: Iterable[CaseFile], aims: Aims = AIMS) -> tuple[Goal, ...]:
    """Return every goal, from the bench files of one lane and machine, one file a case.

    `coverage-aa`, `coverage-known`, `false-differences`: shares, over all noises. `fastest-WORKLOAD`: seconds of ours
    over those of the fastest other timer that is not known to be off the truth, to the same precision. `rival-NAME`:
    seconds of that timer over those of ours, on the launch-bound workload.
    """
    complete = [file for file in files if file.status == "complete"]
    found = [*_shares([file.measurements for file in complete if is_calibration(file.measurements)], aims)]
    for file in complete:
        if is_comparison(file.measurements):
            found += _races(str(file.axes.get("workload", file.case)), timers(file.measurements, aims), aims)
    return tuple(found)


def _shares(calibrations: Sequence[Mapping[str, Measurement]], aims: Aims) -> Iterable[Goal]:
    for id_, wanted in (("coverage-aa", True), ("coverage-known", False)):
        held = sum((coverage(one) for one in calibrations if (truth_of(one) == 1) == wanted), NONE)
        yield _share(id_, held, aims.least_coverage, aims.most_coverage, aims)
    false = sum((false_differences(one) for one in calibrations), NONE)
    yield _share("false-differences", false, None, aims.false_differences, aims)


def _share(id_: str, share: Share, least: float | None, most: float | None, aims: Aims) -> Goal:
    inside = (least is None or share.value >= least) and (most is None or share.value <= most)
    return Goal(
        id=id_,
        value=share.value if share.of else None,
        least=least,
        most=most,
        met=inside if share.of >= aims.trials else None,
    )


def _races(workload: str, read: Sequence[Timer], aims: Aims) -> Iterable[Goal]:
    ours = next(timer for timer in read if timer.name == OURS)
    others = {timer.name: timer for timer in read if timer.name != OURS}
    enough = min(timer.repeats for timer in read) >= aims.repeats
    best = min((timer.seconds for timer in others.values() if timer.may_race), default=None)
    value = None if best is None else ours.seconds / best
    yield Goal(
        id=f"fastest-{workload}",
        value=value,
        least=None,
        most=1.0,
        met=_won(ours, won=value is None or value <= 1) if enough else None,
    )
    if workload != aims.launch_bound:
        return
    for name in aims.rivals:
        if name not in others:
            continue
        rival = others[name]
        gain = rival.seconds / ours.seconds
        # A rival that is known to be off the truth does not get there in any time.
        beaten = gain >= aims.times_as_fast or not rival.may_race
        met = _won(ours, won=beaten) if enough else None
        yield Goal(id=f"rival-{name}", value=gain, least=aims.times_as_fast, most=None, met=met)


def _won(ours: Timer, *, won: bool) -> bool | None:
    """Return whether ours won: never off the truth, and not known yet where it may be off."""
    if not won or not ours.may_race:
        return False
    return True if ours.standing == "near" else None


def odd_coverage(measurements: Mapping[str, Measurement], aims: Aims = AIMS) -> bool | None:
    """Return, for trials whose share of intervals that hold the truth is outside the aims, whether that is known.

    It is where the interval of the share lies wholly outside too. None where the share is inside.
    """
    share = coverage(measurements)
    if aims.least_coverage <= share.value <= aims.most_coverage:
        return None
    low, high = share.interval
    return high < aims.least_coverage or low > aims.most_coverage


IMPORTS = ("import", "settings", "inductor-import")
"""Phases that are needed once a run, however many processes pay for them: torch, Dynamo (which the first setting
brings in), and inductor."""

USEFUL = (
    "prepare",
    "eager-first-calls",
    "first-calls",
    "correctness",
    "steady-state",
    "naive",
    "observe",
    "launches",
    "energy",
    "memory",
)
"""Phases of a case that are what it is run for."""


def overhead(files: Sequence[CaseFile]) -> float | None:
    """Return the share of one run's time that went to anything but the useful phases; None where no time passed.

    The run lasts from its first case's start to its last one's end. Of each import only the longest is useful:
    the others were done again. Cases side by side can be more useful than the run is long; then nothing is overhead.
    """
    if not files:
        return None
    started = min(datetime.fromisoformat(file.provenance.started) for file in files)
    finished = max(datetime.fromisoformat(file.provenance.finished) for file in files)
    lasted = (finished - started).total_seconds()
    if lasted <= 0:
        return None
    once = sum(max(file.phases.get(name, 0.0) for file in files) for name in IMPORTS)
    useful = once + sum(seconds for file in files for phase, seconds in file.phases.items() if phase in USEFUL)
    return min(1.0, max(0.0, 1 - useful / lasted))


def newest_run(files: Iterable[CaseFile], aims: Aims = AIMS) -> tuple[CaseFile, ...]:
    """Return the files of the run that began last, of those with enough cases; none where there is none.

    Benches are left out: each is minutes of one phase, and says nothing of how a section is run. A file that lies in
    runs/ and in results/ is one.
    """
    runs: dict[str, dict[str, CaseFile]] = {}
    for file in files:
        if is_calibration(file.measurements) or is_comparison(file.measurements):
            continue
        runs.setdefault(file.run, {})[file.case] = file
    large = [tuple(run.values()) for run in runs.values() if len(run) >= aims.cases]
    return max(large, key=lambda run: (min(file.provenance.started for file in run), run[0].run), default=())


def overhead_goal(files: Iterable[CaseFile], aims: Aims = AIMS) -> Goal:
    """Return the goal `overhead`, from the newest run among the files of one lane and machine."""
    share = overhead(newest_run(files, aims))
    return Goal(
        id="overhead",
        value=share,
        least=None,
        most=aims.overhead,
        met=None if share is None else share <= aims.overhead,
    )
