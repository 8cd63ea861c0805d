"""Two lanes, case by case: release ratios, and which of them are significant, which relevant.

A release ratio is the baseline lane's value over the candidate lane's, of the same metric and case, so
above 1 the candidate is better. Pure, as the judge is, and over the same files: those that count.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reportkit.judge import (
    Bench,
    Criteria,
    Interval,
    Reason,
    aligned,
    different_environments,
    exact,
    interval_of,
    observation,
)
from reportkit.plan import PlanError
from reportkit.quantity import format_interval, format_quantity
from reportkit.statistics import median_draws

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reportkit.judge import Found, Observation
    from reportkit.plan import Article, Cache
    from reportkit.records import CaseFile, Scale, Stored
    from reportkit.statistics import Draws

Side = Literal["eager", "compiled"]
Metric = Literal[
    "compiled_time",
    "eager_time",
    "first_call",
    "compiled_allocated",
    "eager_allocated",
    "compiled_reserved",
    "eager_reserved",
    "compiled_launches",
    "eager_launches",
]
SIDES: tuple[Side, ...] = ("compiled", "eager")
TIMED: Mapping[Side, Metric] = {"compiled": "compiled_time", "eager": "eager_time"}
ALLOCATED: Mapping[Side, Metric] = {"compiled": "compiled_allocated", "eager": "eager_allocated"}
RESERVED: Mapping[Side, Metric] = {"compiled": "compiled_reserved", "eager": "eager_reserved"}
LAUNCHED: Mapping[Side, Metric] = {"compiled": "compiled_launches", "eager": "eager_launches"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRatio:
    """The baseline lane's value of one metric over the candidate lane's."""

    metric: Metric
    baseline: Interval
    """Seconds, bytes or a count. Its ends are its centre where one value is all there is."""
    candidate: Interval
    centre: float
    interval: Interval | None
    """None where each side has one value: nothing tells how far it scatters."""
    significant: bool | None
    """Whether it is beyond noise, on hosts that are alike; None without an interval."""
    relevant: bool
    """Whether it is large enough to matter, significant or not."""
    reason: Reason | None
    """Why it is not significant."""
    blamed: str | None = None
    """The lane whose file the reason is about; None where it is about both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case with a file that counts in either lane."""

    case: str
    caches: Cache
    """What the first calls found: empty caches, those of an earlier process, or shared ones (at smoke scale)."""
    baseline: Observation
    candidate: Observation
    ratios: tuple[ReleaseRatio, ...]
    """Compiled time first, then eager time, and what else both files have."""

    def of(self, metric: Metric) -> ReleaseRatio | None:
        """Return the release ratio of a metric, or None where not both files have it."""
        return next((one for one in self.ratios if one.metric == metric), None)

    @property
    def timed(self) -> tuple[ReleaseRatio, ...]:
        """The release ratios of steady-state times, which have an interval."""
        return tuple(ratio for ratio in self.ratios if ratio.interval is not None)

    @property
    def files(self) -> tuple[CaseFile, CaseFile]:
        """The two case files, the baseline's first."""
        return self.baseline.stored.file, self.candidate.stored.file

    @property
    def significant(self) -> bool:
        """Whether either side's time changed beyond noise."""
        return any(ratio.significant for ratio in self.timed)

    @property
    def relevant(self) -> bool:
        """Whether anything changed enough to matter: a time, allocated memory, graphs or breaks.

        A first call is one value, and scatters more than that from process to process: it is asked only where
        nothing else was timed.
        """
        firm = [*self.timed, *(ratio for side in SIDES if (ratio := self.of(ALLOCATED[side])))]
        first = self.of("first_call")
        asked = firm if self.timed or first is None else [*firm, first]
        one, other = (captured(file) for file in self.files)
        return one != other or any(ratio.relevant for ratio in asked)

    @property
    def local(self) -> bool:
        """Whether either file lies in runs/, that is, was not kept."""
        return self.baseline.stored.local or self.candidate.stored.local


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncompared:
    """A case with a file in either lane, but not one that counts in both."""

    case: str
    baseline: Reason | None
    """Why that lane has no file that counts; None where it has."""
    candidate: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two lanes on one machine at one scale."""

    baseline: str
    candidate: str
    machine: str
    scale: Scale
    rows: tuple[Row, ...]
    """The largest change of compiled time first; cases without it last, in plan order."""
    uncompared: tuple[Uncompared, ...]


def compare(
    article: Article,
    stored: Sequence[Stored],
    digests: Mapping[str, str],
    baseline: str,
    candidate: str,
    criteria: Criteria | None = None,
) -> tuple[Comparison, ...]:
    """Return the comparison of two lanes on each machine that has files of both, the article's own first.

    At full scale where both lanes have files of it, else at smoke. Cases of kind `timing` are compared:
    the others measure the ruler, or nothing that has a size. The order of `stored` decides nothing.

    Raises:
        PlanError: both are the same lane.
    """
    if baseline == candidate:
        raise PlanError(f"{baseline} can't be compared with itself; name two lanes")
    return compare_pairs(article, stored, digests, [(baseline, candidate)], criteria)[baseline, candidate]


def compare_pairs(
    article: Article,
    stored: Sequence[Stored],
    digests: Mapping[str, str],
    pairs: Sequence[tuple[str, str]],
    criteria: Criteria | None = None,
    observations: Sequence[Observation] = (),
) -> Mapping[tuple[str, str], tuple[Comparison, ...]]:
    """Return what `compare` does for each pair of lanes, baseline first; every file is resampled once for all.

    `observations` are what `judge.observe` returns of the same files, where that is at hand: it is not done again.
    """
    known = {one.stored.path: one for one in observations}
    bench = Bench(article, stored, digests, criteria or Criteria())
    found: dict[tuple[str, str], list[Comparison]] = {pair: [] for pair in pairs}
    for machine in bench.in_order({machine for pair in pairs for lane in pair for machine in bench.machines(lane)}):
        drawn = _Drawn(bench, known)  # One machine's at a time: draws are large, and machines may be many.
        for one, other in pairs:
            if machine in bench.machines(one) and machine in bench.machines(other):
                made = _on_machine(drawn, one, other, machine)
                found[one, other] += [made] if made is not None else []
    return {pair: tuple(made) for pair, made in found.items()}


class _Drawn:
    """Draws and sums of files, each made once."""

    def __init__(self, bench: Bench, observed: Mapping[str, Observation]) -> None:
        self.bench = bench
        self._medians: dict[tuple[str, str], Draws] = {}
        self._observed = dict(observed)

    def median(self, stored: Stored, side: Side, name: str) -> Draws:
        """Return draws of the median of one side's times; `name` is the measurement."""
        if (stored.path, name) not in self._medians:
            samples = np.asarray(stored.file.measurements[name].samples)
            seed = self.bench.seed(stored.file, side)
            self._medians[stored.path, name] = median_draws(samples, self.bench.criteria.draws, seed)
        return self._medians[stored.path, name]

    def observed(self, stored: Stored) -> Observation:
        """Return a file that counts, summed up."""
        if stored.path not in self._observed:
            self._observed[stored.path] = observation(self.bench, stored, None)
        return self._observed[stored.path]


def _on_machine(drawn: _Drawn, baseline: str, candidate: str, machine: str) -> Comparison | None:
    bench = drawn.bench
    cases = [
        case for experiment in bench.article.experiments if experiment.kind == "timing" for case in experiment.cases
    ]
    scales: tuple[Scale, ...] = ("full", "smoke")
    for scale in scales:
        pairs = [(bench.find(machine, baseline, c, scale), bench.find(machine, candidate, c, scale)) for c in cases]
        if all(any(pair[side].stored for pair in pairs) for side in (0, 1)):
            break
    else:
        return None
    rows = [_row(drawn, scale, *pair) for pair in pairs if _counts(pair[0]) and _counts(pair[1])]
    uncompared = [
        Uncompared(case=one.case.name, baseline=_absent(one), candidate=_absent(other))
        for one, other in pairs
        if (one.stored or other.stored) and not (_counts(one) and _counts(other))
    ]
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        machine=machine,
        scale=scale,
        rows=tuple(sorted(rows, key=_change, reverse=True)),
        uncompared=tuple(uncompared),
    )


def _counts(one: Found) -> bool:
    return one.stored is not None and one.problem is None


def _absent(one: Found) -> Reason | None:
    return one.problem if one.stored is not None else Reason(code="never-measured")


def _change(row: Row) -> float:
    timed = row.of("compiled_time")
    return -1.0 if timed is None else abs(math.log(timed.centre))


def _row(drawn: _Drawn, scale: Scale, one: Found, other: Found) -> Row:
    pair = _Pair(bench=drawn.bench, drawn=drawn, one=one, other=other)
    return Row(
        case=one.case.name,
        caches=one.case.caches(scale),
        baseline=drawn.observed(one.there),
        candidate=drawn.observed(other.there),
        ratios=tuple(pair.ratios()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """One case's files that count, of the baseline and of the candidate."""

    bench: Bench
    drawn: _Drawn
    one: Found
    other: Found

    def ratios(self) -> Iterable[ReleaseRatio]:
        """Return every release ratio that both files have the values for."""
        files = (self.one.file, self.other.file)
        for side in SIDES:
            clock = next((c for c in ("gpu", "wall") if all(f"{side}_{c}" in f.measurements for f in files)), None)
            if clock is not None:
                yield self._timed(side, f"{side}_{clock}")
        yield from self._single("first_call", "compiled", "s", [_first_call(file) for file in files])
        for side in SIDES:
            allocated, reserved = (
                [(f.memory or {}).get(f"{side}_{what}") for f in files] for what in ("allocated", "reserved")
            )
            yield from self._single(ALLOCATED[side], side, "B", allocated)
            yield from self._single(RESERVED[side], side, "B", reserved)
            yield from self._single(LAUNCHED[side], side, "1", [(f.launches or {}).get(side) for f in files])

    def _timed(self, side: Side, name: str) -> ReleaseRatio:
        criteria = self.bench.criteria
        over, under = (self.drawn.median(found.there, side, name) for found in (self.one, self.other))
        ratio = interval_of(over / under, criteria, "x")
        reason, blamed = self._blame(side, steady=True)
        reason = reason or different_environments([self.one, self.other]) or self._unlike()
        if reason is None and ratio.low <= 1 <= ratio.high:
            reason = Reason(code="within-noise")
        return ReleaseRatio(
            metric=TIMED[side],
            baseline=interval_of(over, criteria, "s"),
            candidate=interval_of(under, criteria, "s"),
            centre=ratio.centre,
            interval=ratio,
            significant=reason is None,
            relevant=_relevant(ratio.centre, criteria),
            reason=reason,
            blamed=blamed,
        )

    def _unlike(self) -> Reason | None:
        """Return which anchor tells that the two hosts are not alike, or that none tells that they are."""
        mine, its = (self.bench.anchors(found.file) for found in (self.one, self.other))
        allowed = self.bench.criteria.anchor_agreement
        apart = {
            name: max(mine[name] / its[name], its[name] / mine[name]) - 1 for name in sorted(mine.keys() & its.keys())
        }
        if not apart:
            return Reason(code="no-anchors")
        worst = max(apart, key=lambda name: apart[name])
        if apart[worst] <= allowed + 1e-9:  # What is printed as 3 % off must pass.
            return None
        return Reason(code="anchors-differ", details={"anchor": worst, "by": apart[worst], "allowed": allowed})

    def _single(
        self, metric: Metric, side: Side, unit: Literal["s", "B", "1"], values: Sequence[float | None]
    ) -> Iterable[ReleaseRatio]:
        """Return the release ratio of one value a side, if both are there and neither is nothing."""
        over, under = values
        if not over or not under:
            return
        wrong, blamed = self._blame(side, steady=False)
        yield ReleaseRatio(
            metric=metric,
            baseline=exact(over, unit),
            candidate=exact(under, unit),
            centre=over / under,
            interval=None,
            significant=None,
            relevant=_relevant(over / under, self.bench.criteria),
            reason=wrong or Reason(code="no-interval"),
            blamed=blamed,
        )

    def _blame(self, side: Side, *, steady: bool) -> tuple[Reason | None, str | None]:
        """Return the first gate that either file's side does not pass, and the lane of that file."""
        for found in (self.one, self.other):
            reason = self.bench.wrong(found.file) if side == "compiled" else None
            reason = reason or (self.bench.unsteady(found) if steady else None)
            if reason is not None:
                return reason, found.lane
        return None, None


def captured(file: CaseFile) -> tuple[int | None, int | None]:
    """Return how many graphs a case's process captured and how many breaks it met; None for what was not counted."""
    return file.counters.get("unique_graphs"), file.counters.get("graph_breaks")


def allocated(file: CaseFile) -> dict[Side, int | None]:
    """Return the peak memory that each side allocated, in bytes; None where that pass was not made."""
    return {side: (file.memory or {}).get(ALLOCATED[side]) for side in SIDES}


def _first_call(file: CaseFile) -> float | None:
    measured = file.measurements.get("first_call")
    return measured.samples[0] if measured else None


def _relevant(ratio: float, criteria: Criteria) -> bool:
    """Whether a change is large enough to matter: the same whichever lane is the baseline."""
    return max(ratio, 1 / ratio) - 1 > criteria.relevant_change


def as_objects(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    """Return comparisons as `compare --json` prints them: an object a case, compared or not."""
    objects: list[dict[str, Any]] = []
    for one in comparisons:
        place = {"machine": one.machine, "scale": one.scale, "baseline": one.baseline, "candidate": one.candidate}
        for row in one.rows:
            sides = (row.baseline, row.candidate)
            objects.append(
                {
                    "case": row.case,
                    **place,
                    "files": [side.stored.path for side in sides],
                    "significant": row.significant,
                    "relevant": row.relevant,
                    "speedups": [None if side.speedup is None else asdict(side.speedup) for side in sides],
                    "caches": row.caches,
                    "first_calls": [side.first_call for side in sides],
                    "allocated": [allocated(file) for file in row.files],
                    "graphs": [captured(file)[0] for file in row.files],
                    "breaks": [captured(file)[1] for file in row.files],
                    "release_ratios": [asdict(ratio) for ratio in row.ratios],
                    "uncompared": None,
                }
            )
        objects += [
            {
                "case": left.case,
                **place,
                "files": [],
                "significant": None,
                "relevant": None,
                "caches": None,
                **{name: [None, None] for name in ("speedups", "first_calls", "allocated", "graphs", "breaks")},
                "release_ratios": [],
                "uncompared": [None if why is None else asdict(why) for why in (left.baseline, left.candidate)],
            }
            for left in one.uncompared
        ]
    return objects


def as_text(comparison: Comparison) -> str:
    """Return a comparison as plain text: a summary line, an aligned table, and what was not compared."""
    lanes = (comparison.baseline, comparison.candidate)
    heads = ["case"]
    for side in SIDES:
        heads += [*(f"{side} {lane}" for lane in lanes), "release ratio", "interval", "finding"]
    for what in ("speedup", "first call"):
        heads += [f"{what} {lane}" for lane in lanes]
    heads += ["release ratio", "caches", *(f"memory {lane}" for lane in lanes), "release ratio"]
    heads += [f"graphs, breaks {lane}" for lane in lanes]
    parts = [summary(comparison)]
    if comparison.rows:
        over = f"{comparison.baseline} over {comparison.candidate}"
        note = (
            f"Release ratio: {over}; above 1, {comparison.candidate} is better. Those of the first call, and of memory "
            "that compiled allocates, are of one value a lane, so without an interval."
        )
        parts += [note, aligned([heads, *(_cells(row) for row in comparison.rows)])]
    parts += [_left_out(left, comparison) for left in comparison.uncompared]
    return "\n".join(parts)


def summary(comparison: Comparison) -> str:
    """Return a comparison in one line: how many cases, and in how many either side changed."""
    compared = len(comparison.rows)
    told = []
    for side in SIDES:
        ratios = [ratio for row in comparison.rows if (ratio := row.of(TIMED[side])) is not None]
        changed = [ratio for ratio in ratios if ratio.significant and ratio.relevant]
        better = sum(ratio.centre > 1 for ratio in changed)
        told.append(
            f"{side} time: {better} better, {len(changed) - better} worse, {len(ratios) - len(changed)} neither"
        )
    return (
        f"{comparison.baseline} to {comparison.candidate} on {comparison.machine}, {comparison.scale} scale: "
        f"{compared} of {compared + len(comparison.uncompared)} cases compared; {'; '.join(told)}."
    )


def _cells(row: Row) -> list[str]:
    cells = [row.case + (" (local)" if row.local else "")]
    for side in SIDES:
        ratio = row.of(TIMED[side])
        if ratio is None or ratio.interval is None:
            cells += [""] * 5
        else:
            cells += [
                format_quantity(ratio.baseline),
                format_quantity(ratio.candidate),
                format_quantity(ratio.interval),
                format_interval(ratio.interval),
                _finding(ratio),
            ]
    sides = (row.baseline, row.candidate)
    cells += [format_quantity(one.speedup) if one.speedup else "" for one in sides]
    cells += [_exact(one.first_call, "s") for one in sides]
    cells += [_centre(row.of("first_call")), row.caches]
    cells += [_exact(allocated(file)["compiled"], "B") for file in row.files]
    cells.append(_centre(row.of("compiled_allocated")))
    cells += [", ".join("-" if count is None else str(count) for count in captured(file)) for file in row.files]
    return cells


def _exact(value: float | None, unit: Literal["s", "B", "x"]) -> str:
    return "" if value is None else format_quantity(exact(value, unit))


def _centre(ratio: ReleaseRatio | None) -> str:
    return _exact(ratio.centre if ratio else None, "x")


def _finding(ratio: ReleaseRatio) -> str:
    if ratio.reason is None:
        return "significant, relevant" if ratio.relevant else "significant"
    return ratio.reason.code + (f" ({ratio.blamed})" if ratio.blamed else "")


def _left_out(left: Uncompared, comparison: Comparison) -> str:
    sides = ((comparison.baseline, left.baseline), (comparison.candidate, left.candidate))
    told = ", ".join(f"{lane} {'counts' if why is None else why.code}" for lane, why in sides)
    return f"not compared: {left.case}: {told}"
