"""Claims x case files x criteria -> verdicts. Pure: no clock, no disk, no randomness without a seed.

A verdict starts at inconclusive and earns its way out through the gates, each of which has a reason
code. Sentences for the codes are in the labels of each language; `Reason.details` fills them.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from reportkit.claims import (
    Each,
    Fact,
    FirstCall,
    GeometricMean,
    Measured,
    Metric,
    Ratio,
    Side,
    Smallest,
    SomeBelow,
    Speedup,
    Spread,
    Sum,
    Untestable,
    Where,
    Works,
    leaves,
    parts_of,
)
from reportkit.plan import REFUSED
from reportkit.quantity import format_interval, format_quantity
from reportkit.records import PROTOCOL, Measurement
from reportkit.statistics import (
    FEW,
    Draws,
    chances,
    counted,
    freedom_of,
    geometric_mean,
    hierarchical,
    holm,
    median_draws,
    middle_draws,
    processes_draws,
    seed_of,
    smallest,
    speedup_draws,
    spread,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reportkit.claims import Bound, Claim, Number
    from reportkit.plan import Article, Case
    from reportkit.records import CaseFile, Environment, Scale, Stored, Unit

Outcome = Literal["supported", "refuted", "inconclusive", "not-measured", "not-testable", "shown"]
Unused = Literal["protocol", "digest", "dirty", "unavailable", "failed", "older-build", "superseded", "overruled"]
"""Why a file does not speak for its case: it can't count; or it is of an older nightly, older than another file that
counts, or at smoke scale where there is one at full scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Every threshold of the judge, in one place; the method page prints this record."""

    confidence: float = 0.95
    """Share of intervals meant to hold the truth."""
    draws: int = 4000
    """Bootstrap draws."""
    seed: int = 20261130
    """Start of every random draw, so that the same files give the same intervals."""
    minimum_pairs: int = 30
    """Pairs of blocks below which a steady-state ratio is not judged."""
    minimum_processes: int = 3
    """Fresh processes below which a first call is not judged; never fewer than two."""
    noise_ceiling: float = 0.10
    """Half the interval over its centre, above which a speedup is too noisy to judge."""
    first_call_noise_ceiling: float = 0.75
    """The same where samples are few: first calls, which vary more, calls under the profiler, windows of energy."""
    dropped_ceiling: float = 0.20
    """Share of pairs dropped for a low clock, above which a case was throttled."""
    no_difference: tuple[float, float] = (0.99, 1.01)
    """An interval inside this range is no difference."""
    anchor_agreement: float = 0.03
    """Share by which an anchor of one lane may exceed the other lane's, for a release ratio to be significant."""
    relevant_change: float = 0.05
    """Share by which one lane's value must exceed the other's, for a release ratio to be relevant."""


REASONS: Mapping[str, tuple[str, ...]] = {
    # Decided: the interval, or the finding, against the bound.
    "inside": (),
    "outside": (),
    "straddles": (),
    "finding-holds": ("finding",),
    "finding-fails": ("finding",),
    "works": (),
    "works-wrong": ("case",),
    "works-uncompiled": ("case",),
    "works-broken": ("case", "breaks"),
    "some-below": ("case", "again", "high"),
    "none-below": ("cases", "high"),
    "shown": (),
    "not-testable": (),
    # Undecided, although everything was measured.
    "depends-on-setting": ("supported", "refuted"),
    "noisy": ("noise", "ceiling"),
    "too-few-pairs": ("case", "pairs", "needed"),
    "too-few-processes": ("processes", "needed"),
    "throttled": ("case", "dropped", "ceiling"),
    "different-environments": ("field", "one", "other"),
    "wrong-result": ("case",),
    "unchecked-result": ("case",),
    "no-graphs": ("case",),
    "too-few-samples": ("case", "metric"),
    "nothing-counted": ("case", "metric"),
    "not-repeated": ("case", "high"),
    "none-proven": ("cases", "high"),
    # Undecided, because a file that would count does not.
    "stale": ("case", "differs"),
    "dirty": ("case",),
    "failed": ("case", "status", "message"),
    "unavailable": ("case", "message"),
    "not-timed": ("case", "metric"),
    "finding-missing": ("case", "finding"),
    "not-all-measured": ("missing", "measured", "needed"),
    # Not measured.
    "never-measured": (),
    "no-case-at-scale": ("scale",),
    "lane-never-measured": ("lane",),
    "baseline-lane-missing": ("lane",),
    "needs-gpu": (),
    "see-lane": ("lane",),
    # Not significant: why a release ratio can't be told from 1 (reportkit.compare).
    "within-noise": (),
    "anchors-differ": ("anchor", "by", "allowed"),
    "no-anchors": (),
    "no-interval": (),
}
"""Every reason code, and the details that its sentence may use. `noise`, `ceiling`, `dropped`, `by` and
`allowed` are shares.

`finding-holds` and `finding-fails` speak of the claim's expectation, which may be that something
was not found. `differs` is `digest` (the case's code changed) or `protocol` (how time is taken did).
"""

NIGHTLY = "nightly"
"""The lane whose torch changes from day to day: only files of its newest build count."""

_FEWER_DRAWS = 1000
"""For absolute times, which are shown and not judged."""

_SAME_TORCH = ("torch", "torch_git", "cuda", "cudnn", "triton")
_SAME_MACHINE = ("driver", "gpu", "cpu", "python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a verdict is what it is: a code, and the words and numbers that its sentence needs."""

    code: str
    details: Mapping[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What the judge compares: low, centre, high, all in the quantity's unit."""

    low: float
    centre: float
    high: float
    unit: Unit | Literal["x"] = "x"
    """A ratio, or the unit of what is measured, such as seconds, bytes, joules or a count."""


def exact(value: float, unit: Unit | Literal["x"] = "x") -> Interval:
    """Return one value as an interval whose ends it is, for what has none and is written all the same."""
    return Interval(low=value, centre=value, high=value, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A claim's quantity under one setting, for one of its workloads, or both."""

    label: str
    """The workload or lane of an `Each`, else empty."""
    setting: str | None
    outcome: Outcome
    reason: Reason
    interval: Interval | None
    holds: bool | None
    """For what holds or does not: what was found; None for a number or where nothing was."""
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is known of a claim in one lane on one machine at one scale."""

    claim: str
    section: str
    lane: str
    machine: str | None
    """None where nothing of this lane was measured anywhere."""
    scale: Scale | None
    outcome: Outcome
    reason: Reason
    interval: Interval | None
    """Of the part that decided; None where none could be had."""
    bound: Bound
    parts: tuple[Part, ...]
    files: tuple[str, ...]
    """Paths of the case files that it rests on."""
    local: bool
    """Whether one of those lies in runs/, that is, was not kept."""
    contributed: bool
    """Whether the machine is outside the article's own list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One case's current file, summed up for a table: both absolute times, ratio, first calls."""

    case: str
    stored: Stored
    stale: bool
    eager: Interval | None
    """Seconds a call, GPU time where there is a GPU, else wall time."""
    compiled: Interval | None
    speedup: Interval | None
    """Of this process alone, or of a control's two sides; None also where the result was wrong, or nothing
    was compiled that should have been."""
    first_call: float | None = None
    """Seconds of the first compiled call."""
    problem: Reason | None = None
    """Why the file does not count, or what is wrong with its result."""


def judge(
    article: Article,
    stored: Sequence[Stored],
    lanes: Sequence[str],
    digests: Mapping[str, str],
    criteria: Criteria | None = None,
) -> tuple[Verdict, ...]:
    """Return a verdict for every claim, lane and machine, in reading order, then lanes', then machines'.

    `digests` maps a case's name to the digest of its code now; a file with another digest, or made
    under another timing protocol, is stale. A lane without any file yields one row, machine None.
    The article's own machines come first. Pure: the order of `stored` decides nothing.
    """
    bench = Bench(article, stored, digests, criteria or Criteria())
    verdicts: list[Verdict] = []
    for section in article.sections:
        for claim in section.claims:
            for lane in lanes:
                verdicts += [_verdict(bench, section.id, claim, lane, name) for name in bench.machines(lane) or (None,)]
    return tuple(verdicts)


def observe(
    article: Article, stored: Sequence[Stored], digests: Mapping[str, str], criteria: Criteria | None = None
) -> tuple[Observation, ...]:
    """Return the current file of every case, lane and machine, summed up: in plan order, then lanes', then machines'.

    Where no file counts it is the newest one, with the reason in `problem`.
    """
    bench = Bench(article, stored, digests, criteria or Criteria())
    lanes = sorted({one.file.lane for one in stored}, key=_natural)
    observations: list[Observation] = []
    for experiment in article.experiments:
        for case in experiment.cases:
            for lane in lanes:
                for machine in bench.machines(lane, judged=False):
                    scale = bench.scale(machine, [(lane, case.name)])
                    found = bench.find(machine, lane, case, scale) if scale else None
                    if found is not None and found.stored is not None:
                        observations.append(observation(bench, found.stored, found.problem))
    return tuple(observations)


def unused(article: Article, stored: Sequence[Stored], digests: Mapping[str, str]) -> dict[str, Unused]:
    """Return the path of each file that does not speak for its case, lane and machine, and why it does not.

    Where none of a case counts, the newest speaks for it, and is not among them.
    """
    return Bench(article, stored, digests, Criteria()).unused()


def as_objects(verdicts: Iterable[Verdict], sentences: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return verdicts as `verdicts --json` prints them; `sentences` by reason code adds the reason in words.

    `parts` are a verdict's settings, workloads or lanes, each with what it says by itself.
    """
    objects = []
    for verdict in verdicts:
        reason: dict[str, Any] = {"code": verdict.reason.code, "details": dict(verdict.reason.details)}
        if sentences is not None:
            reason["sentence"] = sentences[verdict.reason.code].format(**verdict.reason.details)
        objects.append(
            {
                "id": verdict.claim,
                "section": verdict.section,
                "lane": verdict.lane,
                "machine": verdict.machine,
                "scale": verdict.scale,
                "local": verdict.local,
                "verdict": verdict.outcome,
                "reason": reason,
                "interval": None if verdict.interval is None else asdict(verdict.interval),
                "bound": asdict(verdict.bound),
                "parts": [_part_object(part) for part in verdict.parts],
                "files": list(verdict.files),
            }
        )
    return objects


def _part_object(part: Part) -> dict[str, Any]:
    return {
        "label": part.label or None,
        "setting": part.setting,
        "verdict": part.outcome,
        "reason": {"code": part.reason.code, "details": dict(part.reason.details)},
        "interval": None if part.interval is None else asdict(part.interval),
        "holds": part.holds,
        "files": list(part.files),
    }


def as_table(verdicts: Iterable[Verdict]) -> str:
    """Return verdicts as an aligned plain-text table."""
    rows = [("claim", "lane", "machine", "scale", "verdict", "measured", "interval", "reason")]
    for verdict in verdicts:
        interval = verdict.interval
        rows.append(
            (
                verdict.claim,
                verdict.lane,
                (verdict.machine or "-") + (" (local)" if verdict.local else ""),
                verdict.scale or "-",
                verdict.outcome,
                format_quantity(interval) if interval else "",
                format_interval(interval) if interval else "",
                verdict.reason.code,
            )
        )
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as plain text, the first one the heads, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is of one case in one lane: the file that counts, or the newest and why it does not."""

    case: Case
    lane: str
    stored: Stored | None
    problem: Reason | None

    @property
    def file(self) -> CaseFile:
        """The case file, once a gate has made sure that there is one."""
        return self.there.file

    @property
    def there(self) -> Stored:
        """The case file and where it lies, once a gate has made sure that there is one."""
        if self.stored is None:
            message = f"no file of {self.case.name}; a gate should have said so"
            raise LookupError(message)
        return self.stored


class Bench:
    """All files, by where they belong, and the draws from them, each taken once."""

    def __init__(
        self, article: Article, stored: Sequence[Stored], digests: Mapping[str, str], criteria: Criteria
    ) -> None:
        self.article = article
        self.criteria = criteria
        self._digests = digests
        # Neither side of a control is compiled, and a trap may or may not.
        self._compiling = {experiment.id for experiment in article.experiments if experiment.kind == "timing"}
        # What has no two sides has no result to check.
        self._checked = {e.id for e in article.experiments if e.kind in {"timing", "control", "trap"}}
        self._files: dict[tuple[str, str, str, Scale], list[Stored]] = {}
        self._machines: dict[str, set[str]] = {}
        self._everywhere: dict[str, set[str]] = {}
        # A machine on which only the ruler was calibrated has nothing to say of a claim.
        judged = {where.experiment for claim in article.claims for where in claim.quantity.cases()}
        self._gpus: dict[str, set[bool]] = {}
        self._speedups: dict[str, Draws] = {}
        # By start; of two copies the one in results/ is last.
        for one in sorted(stored, key=lambda one: (one.file.provenance.started, one.file.run, not one.local, one.path)):
            file = one.file
            self._files.setdefault((file.machine, file.lane, file.case, file.scale), []).append(one)
            self._everywhere.setdefault(file.lane, set()).add(file.machine)
            if file.experiment in judged:
                self._machines.setdefault(file.lane, set()).add(file.machine)
            if file.environment is not None:
                self._gpus.setdefault(file.machine, set()).add(file.environment.gpu is not None)
        self._builds = self._newest_builds()

    def machines(self, lane: str, *, judged: bool = True) -> tuple[str, ...]:
        """Return the machines with any file of a lane, the article's own first; `judged`: that a claim rests on."""
        found = self._machines if judged else self._everywhere
        return self.in_order(found.get(lane, ()))

    def in_order(self, machines: Iterable[str]) -> tuple[str, ...]:
        """Return machines with the article's own first, in its order, the others by name."""
        known = self.article.machines
        return tuple(sorted(machines, key=lambda name: (known.index(name) if name in known else len(known), name)))

    def without_gpu(self, machine: str) -> bool:
        """Whether files of a machine tell of its GPU, and none has one."""
        return self._gpus.get(machine) == {False}

    def scale(self, machine: str, places: Iterable[tuple[str, str]]) -> Scale | None:
        """Return the scale to judge at: full if any (lane, case) has a file of it, whatever its state."""
        places = list(places)
        scales: tuple[Scale, ...] = ("full", "smoke")
        for scale in scales:
            if any((machine, lane, case, scale) in self._files for lane, case in places):
                return scale
        return None

    def find(self, machine: str, lane: str, case: Case, scale: Scale) -> Found:
        """Return the newest file that counts, or the newest of all with what keeps it from counting."""
        files = self._files.get((machine, lane, case.name, scale), [])
        files = [one for one in files if not self._outdated(one.file)]
        counting = [one for one in files if self._problem(one.file) is None]
        if counting:
            return Found(case=case, lane=lane, stored=counting[-1], problem=None)
        if files:
            return Found(case=case, lane=lane, stored=files[-1], problem=self._problem(files[-1].file))
        return Found(case=case, lane=lane, stored=None, problem=None)

    def unused(self) -> dict[str, Unused]:
        """Return why each file that does not speak for its case, lane and machine does not, by path."""
        cases = {case.name: case for experiment in self.article.experiments for case in experiment.cases}
        found: dict[str, Unused] = {}
        for (machine, lane, name, scale), files in self._files.items():
            if name not in cases:
                continue
            spoken = self.find(machine, lane, cases[name], scale).stored
            overruled = self.scale(machine, [(lane, name)]) != scale
            for one in files:
                problem = self._problem(one.file)
                if problem is not None and one != spoken:
                    code = str(problem.details["differs"]) if problem.code == "stale" else problem.code
                    found[one.path] = cast("Unused", code)
                elif self._outdated(one.file):
                    found[one.path] = "older-build"
                elif one != spoken:
                    found[one.path] = "superseded"
                elif overruled:
                    found[one.path] = "overruled"
        return found

    def speedup(self, stored: Stored) -> Draws:
        """Return the steady-state speedup of one file."""
        if stored.path not in self._speedups:
            eager, compiled = _steady(stored.file)
            self._speedups[stored.path] = speedup_draws(
                eager, compiled, self.criteria.draws, self.seed(stored.file, "speedup")
            )
        return self._speedups[stored.path]

    def middle(self, file: CaseFile, name: str) -> Draws:
        """Return the middle of one metric of one file; a count is exact, unless launches vary from call to call."""
        samples, draws, seed = _samples(file, name), self.criteria.draws, self.seed(file, name)
        if len(samples) == 1 or _is_count(name):
            return counted(samples.min(), samples.max(), draws, seed)
        return middle_draws(samples, draws, seed)

    def unsound(self, leaf: Measured, file: CaseFile) -> Reason | None:
        """Return why a file does not count for what is asked of it: wrong or unchecked, or nothing compiled.

        What is of eager alone stands whatever the compiled side did.
        """
        if _of_eager(leaf) or not (file.experiment in self._checked or isinstance(leaf, Speedup | Spread)):
            return None
        return self.wrong(file)

    def anchors(self, file: CaseFile) -> Mapping[str, float]:
        """Return the anchors of a file's run by name, in seconds: its own, else medians of the run's case of them.

        None where the run's case of them is there and does not count: their code is in no other case's digest.
        """
        cases = [case.name for e in self.article.experiments if e.id == self.article.anchors for case in e.cases]
        places = [(file.machine, file.lane, case, file.scale) for case in cases]
        taken = [one.file for place in places for one in self._files.get(place, ()) if one.file.run == file.run]
        counting = [one for one in taken if self._problem(one) is None]
        if file.anchors is not None and bool(taken) == bool(counting):
            return file.anchors
        return {
            name: float(np.median(measured.samples))
            for one in counting
            for name, measured in one.measurements.items()
            if measured.unit == "s"
        }

    def wrong(self, file: CaseFile) -> Reason | None:
        """Return why nothing of the compiled side counts: a wrong or unchecked result, or nothing compiled."""
        return _wrong_result(file) or self.no_graphs(file)

    def unsteady(self, one: Found) -> Reason | None:
        """Return why a file's steady times don't count on their own: too few pairs, or a throttled GPU."""
        return _too_few_pairs([one], self.criteria) or _throttled([one], self.criteria)

    def seed(self, file: CaseFile, what: str) -> int:
        """Return the seed for one kind of draws from one file; a later run of the case has the same."""
        return seed_of(self.criteria.seed, file.machine, file.lane, file.case, what)

    def no_graphs(self, file: CaseFile) -> Reason | None:
        """Return what is wrong where nothing was compiled, although the experiment is there to compile."""
        if file.experiment not in self._compiling or file.counters.get("unique_graphs"):
            return None
        return Reason(code="no-graphs", details={"case": file.case})

    def _problem(self, file: CaseFile) -> Reason | None:
        details: dict[str, str | float] = {"case": file.case}
        if file.protocol != PROTOCOL and file.measurements:  # What timed nothing is not of any protocol.
            return Reason(code="stale", details={**details, "differs": "protocol"})
        if file.digest != self._digests.get(file.case):
            return Reason(code="stale", details={**details, "differs": "digest"})
        if file.provenance.dirty:
            return Reason(code="dirty", details=details)
        if file.status == "unavailable":
            return Reason(code="unavailable", details={**details, "message": file.reason or ""})
        if file.status != "complete":
            return Reason(code="failed", details={**details, "status": file.status, "message": file.reason or ""})
        return None

    def _outdated(self, file: CaseFile) -> bool:
        """Whether a file is of another nightly than the newest that counts on its machine."""
        if file.lane != NIGHTLY or file.environment is None:
            return False
        return file.environment.torch_git != self._builds.get((file.machine, file.scale))

    def _newest_builds(self) -> dict[tuple[str, Scale], str]:
        """Return the git hash of the newest nightly on each machine and scale: that of the newest file that counts.

        A dirty or stale run of a newer build does not take the place of a counting one.
        """
        newest: dict[tuple[str, Scale], tuple[bool, str, str]] = {}
        for (machine, lane, _, scale), files in self._files.items():
            for one in files if lane == NIGHTLY else ():
                if one.file.environment is not None:
                    counts = self._problem(one.file) is None
                    age = (counts, one.file.provenance.started, one.file.environment.torch_git)
                    newest[machine, scale] = max(newest.get((machine, scale), age), age)
        return {place: build for place, (_, _, build) in newest.items()}


def _verdict(bench: Bench, section: str, claim: Claim, lane: str, machine: str | None) -> Verdict:
    blank = Verdict(
        claim=claim.id,
        section=section,
        lane=lane,
        machine=machine,
        scale=None,
        outcome="not-measured",
        reason=Reason(code="lane-never-measured", details={"lane": lane}),
        interval=None,
        bound=claim.bound,
        parts=(),
        files=(),
        local=False,
        contributed=machine is not None and machine not in bench.article.machines,
    )
    if isinstance(claim.quantity, Untestable):
        blank = replace(blank, outcome="not-testable", reason=Reason(code="not-testable"))
    elif claim.lane is not None and claim.lane != lane:
        return replace(blank, reason=Reason(code="see-lane", details={"lane": claim.lane}))
    if machine is None:
        return blank
    places = [
        (where.lane or lane, case.name)
        for where, setting in _wheres(claim)
        for case in bench.article.find(where.experiment, where.at(setting))
    ]
    scale = bench.scale(machine, places)
    needs_gpu = claim.on == "cuda" and bench.without_gpu(machine)
    if scale is None and isinstance(claim.quantity, Untestable):
        return blank
    if scale is None:
        return replace(blank, reason=Reason(code="needs-gpu" if needs_gpu else "never-measured"))
    court = _Court(bench=bench, claim=claim, lane=lane, machine=machine, scale=scale)
    parts: tuple[Part, ...] = ()
    if isinstance(claim.quantity, Untestable):
        files = court.shown(claim.quantity)
    else:
        parts = tuple(part for setting in claim.settings or (None,) for part in court.parts(setting))
        if needs_gpu:
            why = Reason(code="needs-gpu")
            parts = tuple(replace(part, outcome="not-measured", reason=why, holds=None) for part in parts)
        ruling = _over_settings(claim, parts)
        if claim.bound.kind == "shown" and ruling.outcome != "not-measured":
            ruling = replace(ruling, outcome="shown")
        interval = None if needs_gpu else ruling.interval
        blank = replace(blank, outcome=ruling.outcome, reason=ruling.reason, interval=interval)
        files = sorted({file for part in parts for file in part.files})
    return replace(
        blank,
        scale=scale,
        parts=parts,
        files=tuple(files),
        local=any(not file.startswith("results/") for file in files),
    )


def _wheres(claim: Claim) -> list[tuple[Where, str | None]]:
    return [(where, setting) for setting in claim.settings or (None,) for where in claim.quantity.cases()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ruling:
    """An outcome on the way from parts to a verdict."""

    outcome: Outcome
    reason: Reason
    interval: Interval | None


def _over_settings(claim: Claim, parts: tuple[Part, ...]) -> _Ruling:
    """Return what the settings say together: the same, or that it depends on them, or what keeps one from saying."""
    settings = claim.settings or (None,)
    rulings = {setting: _each([part for part in parts if part.setting == setting]) for setting in settings}
    said = {setting: ruling.outcome for setting, ruling in rulings.items()}
    if len(set(said.values())) == 1:
        return next(iter(rulings.values()))
    if set(said.values()) == {"supported", "refuted"}:
        details: dict[str, str | float] = {
            outcome: ", ".join(setting or "" for setting, its in said.items() if its == outcome)
            for outcome in ("supported", "refuted")
        }
        return _Ruling(outcome="inconclusive", reason=Reason(code="depends-on-setting", details=details), interval=None)
    return _undecided(list(rulings.values()), parts)


def _each(parts: Sequence[Part]) -> _Ruling:
    """Return what parts say together: one refuted refutes, all must be supported, the first undecided says why not."""
    rulings = [_Ruling(outcome=part.outcome, reason=part.reason, interval=part.interval) for part in parts]
    for ruling in rulings:
        if ruling.outcome == "refuted":
            return ruling
    if all(ruling.outcome == rulings[0].outcome for ruling in rulings):
        return rulings[0]
    return _undecided(rulings, parts)


def _undecided(rulings: Sequence[_Ruling], parts: Sequence[Part]) -> _Ruling:
    """Return the first ruling that is neither; where some parts were measured, one that never was is a part missing."""
    first = next(ruling for ruling in rulings if ruling.outcome not in {"supported", "refuted", "shown"})
    if first.reason.code != "never-measured":
        return first
    missing = [part for part in parts if part.reason.code == "never-measured"]
    name = " ".join(word for word in (missing[0].label, missing[0].setting) if word)
    details: dict[str, str | float] = {
        "missing": name,
        "measured": len(parts) - len(missing),
        "needed": len(parts),
    }
    return _Ruling(outcome="inconclusive", reason=Reason(code="not-all-measured", details=details), interval=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Court:
    """One claim in one lane on one machine at one scale."""

    bench: Bench
    claim: Claim
    lane: str
    machine: str
    scale: Scale

    def parts(self, setting: str | None) -> list[Part]:
        """Return the claim's quantity under one setting, part by part."""
        quantity = self.claim.quantity
        if isinstance(quantity, Untestable):
            return []
        pieces = quantity.parts if isinstance(quantity, Each) else {"": quantity}
        return [self._part(label, piece, setting) for label, piece in pieces.items()]

    def shown(self, untestable: Untestable) -> list[str]:
        """Return the paths of what is shown beside a claim that can't be tested."""
        found = [one.stored for where in untestable.cases() for one in self._look(where, None)]
        return sorted({stored.path for stored in found if stored is not None})

    def _part(self, label: str, quantity: Number | Fact | Works | SomeBelow, setting: str | None) -> Part:
        places = [self._look(where, setting) for where in quantity.cases()]
        found = list({(one.lane, one.case.name): one for place in places for one in place}.values())
        holds = None
        if not (any(places) if isinstance(quantity, SomeBelow) else all(places)):
            reason = Reason(code="no-case-at-scale", details={"scale": self.scale})
            ruling = _Ruling(outcome="not-measured", reason=reason, interval=None)
        elif isinstance(quantity, Fact):
            ruling, holds = self._fact(quantity, found)
        elif isinstance(quantity, Works):
            ruling, holds = self._works(quantity, found)
        elif isinstance(quantity, SomeBelow):
            ruling, holds = self._some_below(quantity, found)
        else:
            ruling = self._number(quantity, setting, found)
        return Part(
            label=label,
            setting=setting,
            outcome=ruling.outcome,
            reason=ruling.reason,
            interval=ruling.interval,
            holds=holds,
            files=tuple(sorted({one.stored.path for one in found if one.stored is not None})),
        )

    def _look(self, where: Where, setting: str | None) -> list[Found]:
        """Return what there is of the cases at a place that are measured at this scale."""
        cases = self.bench.article.find(where.experiment, where.at(setting))
        return [
            self.bench.find(self.machine, where.lane or self.lane, case, self.scale)
            for case in cases
            if self.scale in case.scales
        ]

    def _fact(self, fact: Fact, found: Sequence[Found]) -> tuple[_Ruling, bool | None]:
        """Return what a finding says: every file must have found what the claim expects."""
        unmeasured = self._unmeasured(found)
        if unmeasured is not None:
            return unmeasured, None
        problem = _first(self.bench.no_graphs, found) or _finding_missing(found, fact.finding)
        if problem is not None:
            return _undecided_by(problem), None
        seen = [one.file.findings[fact.finding].holds for one in found]
        supported = all(holds == fact.expect for holds in seen)
        reason = Reason(code="finding-holds" if supported else "finding-fails", details={"finding": fact.finding})
        outcome: Outcome = "supported" if supported else "refuted"
        return _Ruling(outcome=outcome, reason=reason, interval=None), fact.expect == supported

    def _works(self, asked: Works, found: Sequence[Found]) -> tuple[_Ruling, bool | None]:
        """Return whether every case works; one that ran to its end and does not refutes, whatever the others are.

        One that failed does not refute: its file can't tell a model that does not compile from a machine
        that lacks a compiler.
        """
        ended = [one for one in found if one.stored is not None and one.problem is None]
        broken = _first(lambda file: does_not_work(file, asked), ended)
        if broken is not None:
            return _Ruling(outcome="refuted", reason=broken, interval=None), False
        unmeasured = self._unmeasured(found)
        if unmeasured is not None:
            return unmeasured, None
        counters = ("unique_graphs", "graph_breaks") if asked.unbroken else ("unique_graphs",)
        problem = _first(_wrong_result, found) or _first(
            lambda file: _missing(file, [f"counters.{name}" for name in counters]), found
        )
        if problem is not None:
            return _undecided_by(problem), None
        return _Ruling(outcome="supported", reason=Reason(code="works"), interval=None), True

    def _some_below(self, asked: SomeBelow, found: Sequence[Found]) -> tuple[_Ruling, bool | None]:
        """Return whether some case's speedup lies below a number, and that of its repeat too.

        Every case that counts, repeats included, is a hypothesis of its own, at the level at which one interval's
        end lies beyond the number; Holm's method holds for all together. Its p-values are those of Student's t on the
        logarithm of the speedup (`statistics.chances`). Refuted only if every case was measured and lies above.
        """
        unmeasured = self._unmeasured(found)
        counting = [one for one in found if one.stored is not None and one.problem is None]
        if not counting and unmeasured is not None:
            return unmeasured, None
        problems = {one.case.name: self._unfit(one) for one in counting}
        fit = {one.case.name: one.there for one in counting if problems[one.case.name] is None}
        problem = next((reason for reason in problems.values() if reason is not None), None)
        if unmeasured is not None:
            problem = unmeasured.reason
        if not fit and problem is not None:
            return _undecided_by(problem), None
        criteria = self.bench.criteria
        speedups = {name: self.bench.speedup(stored) for name, stored in fit.items()}
        found_by = {
            name: chances(drawn, freedom_of(np.divide(*_steady(fit[name].file))), asked.high, criteria.confidence)
            for name, drawn in speedups.items()
        }
        level = (1 - criteria.confidence) / 2
        below, above = (holm({name: both[side] for name, both in found_by.items()}, level) for side in (0, 1))
        twice = {name for name in below if asked.again.get(name) in below}
        slowest = min(twice or below or speedups, key=lambda name: (speedups[name].centre, name))
        interval = interval_of(speedups[slowest], criteria, "x")
        details: dict[str, str | float] = {"high": asked.high}
        if twice:
            reason = Reason(code="some-below", details={**details, "case": slowest, "again": asked.again[slowest]})
            return _Ruling(outcome="supported", reason=reason, interval=interval), True
        if below:
            problem = Reason(code="not-repeated", details={**details, "case": slowest})
        details["cases"] = len(fit)
        if problem is None and above == set(fit):
            reason = Reason(code="none-below", details=details)
            return _Ruling(outcome="refuted", reason=reason, interval=interval), False
        return _undecided_by(problem or Reason(code="none-proven", details=details), interval), None

    def _unfit(self, one: Found) -> Reason | None:
        """Return why the speedup of one case does not count."""
        speedup = Speedup(Where(one.case.experiment, one.case.axes))
        return self._gate(speedup, [one]) or _throttled([one], self.bench.criteria)

    def _gate(self, leaf: Measured, found: Sequence[Found]) -> Reason | None:
        """Return what keeps files from telling what is asked of them, before any number is looked at."""
        return (
            _first(lambda file: _missing(file, _names(leaf, file)), found)
            or _first(lambda file: self.bench.unsound(leaf, file), found)
            or _first(lambda file: _nothing_counted(file, _names(leaf, file)), found)
            or _too_few_pairs(_steadily(leaf, found), self.bench.criteria)
            or _too_few_processes(leaf, found, self.bench.criteria)
            or _first(lambda file: _too_few_samples(leaf, file), found)
        )

    def _number(self, quantity: Number, setting: str | None, found: Sequence[Found]) -> _Ruling:
        """Return what a number says: through the gates, one after another, then against the bound."""
        unmeasured = self._unmeasured(found)
        if unmeasured is not None:
            return unmeasured
        criteria = self.bench.criteria
        looked = [(leaf, self._all(leaf, setting)) for leaf in leaves(quantity) if isinstance(leaf, Measured)]
        problem = next((reason for leaf, its in looked if (reason := self._gate(leaf, its)) is not None), None)
        if problem is not None:
            return _undecided_by(problem)
        draws = self._draws(quantity, setting)
        unit = unit_of(quantity, lambda metric: self._unit(metric, setting))
        interval = interval_of(draws, criteria, unit)
        few = any(_few(leaf, one.file) for leaf, its in looked for one in its)
        timed = [one for leaf, its in looked for one in _steadily(leaf, its)]
        problem = _throttled(timed, criteria) or _noisy(draws, criteria, few=few)
        if problem is not None:
            return _undecided_by(problem, interval)
        problem = different_environments(found)
        if problem is not None:
            return _undecided_by(problem)
        return _against(self.claim.bound, interval)

    def _unit(self, metric: Metric, setting: str | None) -> Unit:
        measured = resolved(self._look(metric.where, setting)[0].file, metric.name)
        return measured.unit if measured is not None else "1"

    def _unmeasured(self, found: Sequence[Found]) -> _Ruling | None:
        """Return the ruling where a file is not there or does not count."""
        missing = [one for one in found if one.stored is None]
        lanes = {one.lane for one in missing if one.lane != self.lane}
        absent = sorted((lane for lane in lanes if self.machine not in self.bench.machines(lane)), key=_natural)
        if absent:
            reason = Reason(code="baseline-lane-missing", details={"lane": absent[0]})
            return _Ruling(outcome="not-measured", reason=reason, interval=None)
        if len(missing) == len(found):
            return _Ruling(outcome="not-measured", reason=Reason(code="never-measured"), interval=None)
        if missing:
            details: dict[str, str | float] = {
                "missing": missing[0].case.name,
                "measured": len(found) - len(missing),
                "needed": len(found),
            }
            return _undecided_by(Reason(code="not-all-measured", details=details))
        problem = next((one.problem for one in found if one.problem is not None), None)
        if problem is None:
            return None
        if problem.code == "unavailable":
            return _Ruling(outcome="not-measured", reason=problem, interval=None)
        return _undecided_by(problem)

    def _draws(self, quantity: Number, setting: str | None) -> Draws:
        match quantity:
            case Ratio(over, under):
                return self._draws(over, setting) / self._draws(under, setting)
            case Sum(terms):
                return total([(times, self._draws(term, setting)) for times, term in terms])
            case Smallest(parts):
                return smallest([self._draws(part, setting) for part in parts])
            case GeometricMean(parts):
                return geometric_mean([self._draws(part, setting) for part in parts])
            case _:
                return self._measured(quantity, [one.there for one in self._all(quantity, setting)])

    def _measured(self, leaf: Measured, stored: Sequence[Stored]) -> Draws:
        draws = self.bench.criteria.draws

        def seed(what: str) -> int:
            return seed_of(*(self.bench.seed(one.file, what) for one in stored))

        match leaf:
            case Spread():
                return spread([self.bench.speedup(one) for one in stored])
            case Speedup():
                return hierarchical([self.bench.speedup(one) for one in stored], draws, seed("replicate"))
            case FirstCall(_, metric, of):
                values = [float(np.median(_samples(one.file, metric))) for one in stored]
                whole = [float(np.median(_samples(one.file, of))) if of else 1.0 for one in stored]
                shares = [value / its for value, its in zip(values, whole, strict=True)]
                return processes_draws(shares, draws, seed(f"{metric} of {of}"))
            case Side() | Metric():
                names = [_names(leaf, one.file)[0] for one in stored]
                middles = [self.bench.middle(one.file, name) for one, name in zip(stored, names, strict=True)]
                return hierarchical(middles, draws, seed(f"replicate {names[0]}"))

    def _all(self, leaf: Measured, setting: str | None) -> list[Found]:
        return [one for where in leaf.cases() for one in self._look(where, setting)]


_COUNTS = ("counters", "launches", "memory")
"""Parts of a case file whose numbers are metrics too, and exact: `launches.eager`."""


def unit_of(quantity: Number, of_metric: Callable[[Metric], Unit]) -> Unit | Literal["x"]:
    """Return the unit of a number: a metric's is `of_metric`'s to say, and what is divided has none."""
    match quantity:
        case Metric():
            return of_metric(quantity)
        case Side() | FirstCall(of=None):
            return "s"
        case Sum() | Smallest():
            return unit_of(parts_of(quantity)[0], of_metric)
        case _:
            return "x"


def _of_eager(leaf: Measured) -> bool:
    """Whether what is asked is of the eager side alone."""
    match leaf:
        case Side(_, side):
            return side == "eager"
        case Metric(_, name):
            return name.rpartition(".")[2].startswith("eager")
        case _:
            return False


def does_not_work(file: CaseFile, asked: Works) -> Reason | None:
    """Return how a file that is complete shows that its case does not work; None where it does not show that."""
    breaks = file.counters.get("graph_breaks")
    if file.correctness is not None and not file.correctness.right:
        return Reason(code="works-wrong", details={"case": file.case})
    if file.counters.get("unique_graphs") == 0:
        return Reason(code="works-uncompiled", details={"case": file.case})
    if asked.unbroken and breaks:
        return Reason(code="works-broken", details={"case": file.case, "breaks": breaks})
    return None


def _is_count(name: str) -> bool:
    return name.rpartition(".")[0] in _COUNTS


def resolved(file: CaseFile, name: str) -> Measurement | None:
    """Return a metric of a file by its name: a measurement, or one of its numbers as if it were one."""
    if not _is_count(name):
        return file.measurements.get(name)
    group, _, key = name.rpartition(".")
    counts: Mapping[str, int | None] = getattr(file, group) or {}
    # Launches may vary from call to call: the least and the most of them.
    samples = [float(count) for one in (key, f"{key}_least") if (count := counts.get(one)) is not None]
    if counts.get(key) is None:
        return None
    return Measurement(unit="B" if group == "memory" else "1", samples=samples)


def _samples(file: CaseFile, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the samples of a metric, once a gate has made sure that there are some."""
    measured = resolved(file, name)
    if measured is None:
        message = f"{file.case} has no {name}; a gate should have said so"
        raise LookupError(message)
    return np.asarray(measured.samples, dtype=np.float64)


def _names(leaf: Measured, file: CaseFile) -> tuple[str, ...]:
    """Return the metrics of a file that a number is taken from."""
    match leaf:
        case FirstCall(_, metric, of):
            return (metric,) if of is None else (metric, of)
        case Metric(_, name):
            return (name,)
        case Side(_, side):
            return (_steady_names(file)[0 if side == "eager" else 1],)
        case Speedup() | Spread():
            return _steady_names(file)


def _steadily(leaf: Measured, found: Sequence[Found]) -> list[Found]:
    """Return the files of which samples in steady state are used."""
    return [one for one in found if set(_names(leaf, one.file)) & _STEADY]


def _few(leaf: Measured, file: CaseFile) -> bool:
    """Whether a number rests on so few samples that Student's t tells their error: first calls, windows of energy."""
    return isinstance(leaf, FirstCall) or (
        isinstance(leaf, Metric) and not _is_count(leaf.name) and 1 < len(_samples(file, leaf.name)) < FEW
    )


def _undecided_by(reason: Reason, interval: Interval | None = None) -> _Ruling:
    return _Ruling(outcome="inconclusive", reason=reason, interval=interval)


_STEADY = {f"{side}_{clock}" for side in ("eager", "compiled") for clock in ("gpu", "wall")}


def _steady_names(file: CaseFile) -> tuple[str, str]:
    clock = "gpu" if "eager_gpu" in file.measurements else "wall"
    return f"eager_{clock}", f"compiled_{clock}"


def _steady(file: CaseFile) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    """Return seconds a call of eager and compiled, pair by pair: by GPU events where there are any, else wall."""
    eager, compiled = (np.asarray(file.measurements[name].samples) for name in _steady_names(file))
    return eager, compiled


def _missing(file: CaseFile, names: Iterable[str]) -> Reason | None:
    missing = next((name for name in names if resolved(file, name) is None), None)
    return None if missing is None else Reason(code="not-timed", details={"case": file.case, "metric": missing})


def _nothing_counted(file: CaseFile, names: Iterable[str]) -> Reason | None:
    """Return which metric is zero: no graph is fewer graphs than any bound, and no measure of anything."""
    zero = next((name for name in names if _samples(file, name).min() <= 0), None)
    return None if zero is None else Reason(code="nothing-counted", details={"case": file.case, "metric": zero})


def _too_few_samples(leaf: Measured, file: CaseFile) -> Reason | None:
    """Return which metric is one sample of what scatters; a single count, or a single peak of memory, does not."""
    if isinstance(leaf, Metric):
        measured = resolved(file, leaf.name)
        if measured is not None and len(measured.samples) == 1 and measured.unit not in {"1", "B"}:
            return Reason(code="too-few-samples", details={"case": file.case, "metric": leaf.name})
    return None


def _wrong_result(file: CaseFile) -> Reason | None:
    if file.correctness is None:
        return Reason(code="unchecked-result", details={"case": file.case})
    return None if file.correctness.right else Reason(code="wrong-result", details={"case": file.case})


def _first(gate: Callable[[CaseFile], Reason | None], found: Iterable[Found]) -> Reason | None:
    """Return what a gate has against the first file that does not pass it."""
    return next((reason for one in found if (reason := gate(one.file)) is not None), None)


def _finding_missing(found: Sequence[Found], finding: str) -> Reason | None:
    for one in found:
        if finding not in one.file.findings:
            return Reason(code="finding-missing", details={"case": one.case.name, "finding": finding})
    return None


def _too_few_pairs(timed: Sequence[Found], criteria: Criteria) -> Reason | None:
    for one in timed:
        pairs = len(_steady(one.file)[0])
        if pairs < criteria.minimum_pairs:
            details: dict[str, str | float] = {"case": one.case.name, "pairs": pairs, "needed": criteria.minimum_pairs}
            return Reason(code="too-few-pairs", details=details)
    return None


def _too_few_processes(leaf: Measured, found: Sequence[Found], criteria: Criteria) -> Reason | None:
    least = 2  # One process is as large as itself, and tells nothing about others.
    needed = {FirstCall: max(least, criteria.minimum_processes), Spread: least}.get(type(leaf), 1)
    if len(found) >= needed:
        return None
    return Reason(code="too-few-processes", details={"processes": len(found), "needed": needed})


def _throttled(timed: Sequence[Found], criteria: Criteria) -> Reason | None:
    for one in timed:
        dropped = one.file.telemetry.dropped_pairs
        share = dropped / (dropped + len(_steady(one.file)[0]))
        if share > criteria.dropped_ceiling:
            details: dict[str, str | float] = {
                "case": one.case.name,
                "dropped": share,
                "ceiling": criteria.dropped_ceiling,
            }
            return Reason(code="throttled", details=details)
    return None


def _noisy(draws: Draws, criteria: Criteria, *, few: bool) -> Reason | None:
    noise = draws.noise(criteria.confidence)
    ceiling = criteria.first_call_noise_ceiling if few else criteria.noise_ceiling
    if noise <= ceiling:
        return None
    return Reason(code="noisy", details={"noise": noise, "ceiling": ceiling})


def different_environments(found: Sequence[Found]) -> Reason | None:
    """Return the first difference between files that are combined; across lanes torch is what is compared."""
    first = found[0]
    for one in found[1:]:
        if one.file.environment is None or first.file.environment is None:
            continue  # A complete file has one; `records.check` sees to it.
        mine, other = (
            _identity(each, whole=one.lane == first.lane) for each in (first.file.environment, one.file.environment)
        )
        for field_name in sorted(mine.keys() | other.keys()):
            if mine.get(field_name) != other.get(field_name):
                details: dict[str, str | float] = {
                    "field": field_name,
                    "one": str(mine.get(field_name)),
                    "other": str(other.get(field_name)),
                }
                return Reason(code="different-environments", details=details)
    return None


def _identity(environment: Environment, *, whole: bool) -> dict[str, str | None]:
    names = (*_SAME_TORCH, *_SAME_MACHINE) if whole else _SAME_MACHINE
    identity = {name: getattr(environment, name) for name in names}
    if whole:
        identity |= {f"package {name}": version for name, version in environment.packages.items()}
    return identity


def _against(bound: Bound, interval: Interval) -> _Ruling:
    """Return what an interval says of a bound: inside supports, apart refutes, straddling does neither."""
    if bound.kind == "shown":
        return _Ruling(outcome="shown", reason=Reason(code="shown"), interval=interval)
    inside, apart = _outside_of(bound, interval) if bound.kind == "outside" else _range(bound, interval)
    if inside:
        return _Ruling(outcome="supported", reason=Reason(code="inside"), interval=interval)
    if apart:
        return _Ruling(outcome="refuted", reason=Reason(code="outside"), interval=interval)
    return _undecided_by(Reason(code="straddles"), interval)


def _range(bound: Bound, interval: Interval) -> tuple[bool, bool]:
    """Return whether the interval lies inside a range, and whether apart from it; an open end is not in the range."""
    low = -np.inf if bound.low is None else bound.low
    high = np.inf if bound.high is None else bound.high
    if bound.open:
        return low < interval.low and interval.high < high, interval.high <= low or interval.low >= high
    return low <= interval.low and interval.high <= high, interval.high < low or interval.low > high


def _outside_of(bound: Bound, interval: Interval) -> tuple[bool, bool]:
    """Return the same for the bound outside a range, whose ends belong to the range."""
    inside, apart = _range(replace(bound, kind="range", open=False), interval)
    return apart, inside


def observation(bench: Bench, stored: Stored, problem: Reason | None) -> Observation:
    """Return one file summed up; `problem` is what already keeps it from counting."""
    file = stored.file
    eager = compiled = speedup = None
    first = file.measurements.get("first_call")
    if first is not None and file.correctness is not None:  # The first call to a wrong result counts for nothing.
        problem = problem or _wrong_result(file)
    if all(name in file.measurements for name in _steady_names(file)):
        criteria = bench.criteria
        sides = zip(("eager", "compiled"), _steady(file), strict=True)
        eager, compiled = (
            interval_of(median_draws(times, _FEWER_DRAWS, bench.seed(file, side)), criteria, "s")
            for side, times in sides
        )
        unusable = bench.wrong(file)
        problem = problem or unusable
        refused = file.findings.get(REFUSED)
        if unusable is None and not (refused and refused.holds):
            speedup = interval_of(bench.speedup(stored), criteria, "x")
    return Observation(
        case=file.case,
        stored=stored,
        stale=problem is not None and problem.code == "stale",
        eager=eager,
        compiled=compiled,
        speedup=speedup,
        first_call=first.samples[0] if first else None,
        problem=problem,
    )


def interval_of(draws: Draws, criteria: Criteria, unit: Unit | Literal["x"]) -> Interval:
    """Return the interval of a quantity from its draws."""
    low, centre, high = draws.interval(criteria.confidence)
    return Interval(low=low, centre=centre, high=high, unit=unit)


def _natural(lane: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key by which 2.5 comes before 2.15, and names after numbers."""
    return tuple((int(piece), "") if piece.isdigit() else (10**9, piece) for piece in re.findall(r"\d+|[^\d.]+", lane))
