"""Claims x case files x criteria -> verdicts. Pure: no clock, no disk, no randomness without a seed.

A verdict starts at inconclusive and earns its way out through the gates, each of which has a reason
code. Sentences for the codes are in the labels of each language; `Reason.details` fills them.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reportkit.claims import Each, Fact, FirstCall, Ratio, Speedup, Spread
from reportkit.plan import REFUSED
from reportkit.quantity import format_interval, format_quantity
from reportkit.records import PROTOCOL
from reportkit.statistics import (
    Draws,
    hierarchical,
    median_draws,
    processes_draws,
    seed_of,
    speedup_draws,
    spread,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reportkit.claims import Bound, Claim, Where
    from reportkit.plan import Article, Case
    from reportkit.records import CaseFile, Environment, Scale, Stored

    Measured = Speedup | FirstCall | Spread | Ratio

Outcome = Literal["supported", "refuted", "inconclusive", "not-measured", "not-testable", "shown"]


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
    """The same for a ratio of first calls, which are few and vary more."""
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
    "shown": (),
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
    unit: Literal["x", "s", "B", "J", "1"] = "x"
    """A ratio, seconds, bytes, joules, or a count."""


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
    """For a fact: what was found; None for a number or where nothing was."""
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


def as_objects(verdicts: Iterable[Verdict], sentences: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return verdicts as `verdicts --json` prints them; `sentences` by reason code adds the reason in words."""
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
                "verdict": verdict.outcome,
                "reason": reason,
                "interval": None if verdict.interval is None else asdict(verdict.interval),
                "bound": asdict(verdict.bound),
                "files": list(verdict.files),
            }
        )
    return objects


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
        known = self.article.machines
        found = self._machines if judged else self._everywhere
        return tuple(
            sorted(
                found.get(lane, ()),
                key=lambda name: (known.index(name) if name in known else len(known), name),
            )
        )

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
        if lane == NIGHTLY:
            build = self._builds.get((machine, scale))
            files = [one for one in files if one.file.environment is None or one.file.environment.torch_git == build]
        counting = [one for one in files if self._problem(one.file) is None]
        if counting:
            return Found(case=case, lane=lane, stored=counting[-1], problem=None)
        if files:
            return Found(case=case, lane=lane, stored=files[-1], problem=self._problem(files[-1].file))
        return Found(case=case, lane=lane, stored=None, problem=None)

    def speedup(self, stored: Stored) -> Draws:
        """Return the steady-state speedup of one file."""
        if stored.path not in self._speedups:
            eager, compiled = _steady(stored.file)
            self._speedups[stored.path] = speedup_draws(
                eager, compiled, self.criteria.draws, self.seed(stored.file, "speedup")
            )
        return self._speedups[stored.path]

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
    if claim.lane is not None and claim.lane != lane:
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
    if scale is None:
        return replace(blank, reason=Reason(code="needs-gpu" if needs_gpu else "never-measured"))
    court = _Court(bench=bench, claim=claim, lane=lane, machine=machine, scale=scale)
    parts = tuple(part for setting in claim.settings or (None,) for part in court.parts(setting))
    if needs_gpu:
        parts = tuple(replace(part, outcome="not-measured", reason=Reason(code="needs-gpu")) for part in parts)
    ruling = _over_settings(claim, parts)
    if claim.bound.kind == "shown" and ruling.outcome != "not-measured":
        ruling = replace(ruling, outcome="shown")
    files = sorted({file for part in parts for file in part.files})
    return replace(
        blank,
        scale=scale,
        outcome=ruling.outcome,
        reason=ruling.reason,
        interval=None if needs_gpu else ruling.interval,
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
        pieces = quantity.parts if isinstance(quantity, Each) else {"": quantity}
        return [self._part(label, piece, setting) for label, piece in pieces.items()]

    def _part(self, label: str, quantity: Measured | Fact, setting: str | None) -> Part:
        found = [one for where in quantity.cases() for one in self._look(where, setting)]
        holds = None
        if isinstance(quantity, Fact):
            ruling, holds = self._fact(quantity, found)
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
        cases = self.bench.article.find(where.experiment, where.at(setting))
        return [self.bench.find(self.machine, where.lane or self.lane, case, self.scale) for case in cases]

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

    def _number(self, quantity: Measured, setting: str | None, found: Sequence[Found]) -> _Ruling:
        """Return what a number says: through the gates, one after another, then against the bound."""
        unmeasured = self._unmeasured(found)
        if unmeasured is not None:
            return unmeasured
        leaves = _leaves(quantity)
        timed = [one for leaf in leaves if not isinstance(leaf, FirstCall) for one in self._look(leaf.where, setting)]
        first = [self._look(leaf.where, setting) for leaf in leaves if isinstance(leaf, FirstCall)]
        criteria = self.bench.criteria
        problem = (
            _not_timed(timed, first)
            or _first(_wrong_result, found)
            or _first(self.bench.no_graphs, found)
            or _too_few_pairs(timed, criteria)
            or _too_few_processes(first, criteria)
        )
        if problem is not None:
            return _undecided_by(problem)
        draws = self._draws(quantity, setting)
        interval = interval_of(draws, criteria, "s" if isinstance(quantity, FirstCall) else "x")
        problem = _throttled(timed, criteria) or _noisy(draws, criteria, few=bool(first))
        if problem is not None:
            return _undecided_by(problem, interval)
        problem = different_environments(found)
        if problem is not None:
            return _undecided_by(problem)
        return _against(self.claim.bound, interval)

    def _unmeasured(self, found: Sequence[Found]) -> _Ruling | None:
        """Return the ruling where a file is not there or does not count."""
        missing = [one for one in found if one.stored is None]
        if len(missing) == len(found):
            return self._never_measured(found)
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

    def _never_measured(self, found: Sequence[Found]) -> _Ruling:
        elsewhere = sorted({one.lane for one in found if one.lane != self.lane}, key=_natural)
        absent = [lane for lane in elsewhere if self.machine not in self.bench.machines(lane)]
        reason = Reason(code="never-measured")
        if absent:
            reason = Reason(code="baseline-lane-missing", details={"lane": absent[0]})
        return _Ruling(outcome="not-measured", reason=reason, interval=None)

    def _draws(self, quantity: Measured, setting: str | None) -> Draws:
        criteria = self.bench.criteria
        match quantity:
            case Ratio(over, under):
                return self._draws(over, setting) / self._draws(under, setting)
            case Spread(where):
                return spread([self.bench.speedup(one.there) for one in self._look(where, setting)])
            case Speedup(where):
                files = [one.there for one in self._look(where, setting)]
                seed = seed_of(*(self.bench.seed(one.file, "replicate") for one in files))
                return hierarchical([self.bench.speedup(one) for one in files], criteria.draws, seed)
            case FirstCall(where):
                found = [one.file for one in self._look(where, setting)]
                seed = seed_of(*(self.bench.seed(file, "first call") for file in found))
                seconds = [file.measurements["first_call"].samples[0] for file in found]
                return processes_draws(seconds, criteria.draws, seed)


def _leaves(quantity: Measured) -> list[Speedup | FirstCall | Spread]:
    return [quantity.over, quantity.under] if isinstance(quantity, Ratio) else [quantity]


def _undecided_by(reason: Reason, interval: Interval | None = None) -> _Ruling:
    return _Ruling(outcome="inconclusive", reason=reason, interval=interval)


def _steady_names(file: CaseFile) -> tuple[str, str]:
    clock = "gpu" if "eager_gpu" in file.measurements else "wall"
    return f"eager_{clock}", f"compiled_{clock}"


def _steady(file: CaseFile) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    """Return seconds a call of eager and compiled, pair by pair: by GPU events where there are any, else wall."""
    eager, compiled = (np.asarray(file.measurements[name].samples) for name in _steady_names(file))
    return eager, compiled


def _not_timed(timed: Sequence[Found], first: Sequence[Sequence[Found]]) -> Reason | None:
    for one in timed:
        for name in _steady_names(one.file):
            if name not in one.file.measurements:
                return Reason(code="not-timed", details={"case": one.case.name, "metric": name})
    for one in (one for group in first for one in group):
        if "first_call" not in one.file.measurements:
            return Reason(code="not-timed", details={"case": one.case.name, "metric": "first_call"})
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


def _too_few_processes(first: Sequence[Sequence[Found]], criteria: Criteria) -> Reason | None:
    needed = max(2, criteria.minimum_processes)
    for group in first:
        if len(group) < needed:
            return Reason(code="too-few-processes", details={"processes": len(group), "needed": needed})
    return None


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
    first = file.measurements.get("first_call")
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


def interval_of(draws: Draws, criteria: Criteria, unit: Literal["x", "s"]) -> Interval:
    """Return the interval of a quantity from its draws."""
    low, centre, high = draws.interval(criteria.confidence)
    return Interval(low=low, centre=centre, high=high, unit=unit)


def _natural(lane: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key by which 2.5 comes before 2.15, and names after numbers."""
    return tuple((int(piece), "") if piece.isdigit() else (10**9, piece) for piece in re.findall(r"\d+|[^\d.]+", lane))
