"""What a build publishes: the article, its case files, the verdicts on them. Loaded and judged once.

Pages ask this for rows and never look at the disk or judge for themselves.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from reportkit import lanes, records
from reportkit.claims import SETTING_AXIS, Each, Speedup, Untestable
from reportkit.compare import compare_pairs
from reportkit.digest import codes, digests
from reportkit.judge import Criteria, judge, observe, unused
from reportkit.plan import load_article, sift
from reportkit.site.exports import exports
from reportkit.site.texts import Texts, load_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from reportkit.claims import Claim
    from reportkit.compare import Comparison
    from reportkit.digest import Code
    from reportkit.judge import Interval, Observation, Outcome, Part, Unused, Verdict
    from reportkit.plan import Article
    from reportkit.records import Damaged, Stored
    from reportkit.site.exports import Export

DECIDED = ("supported", "refuted", "inconclusive")

ON_ITS_MERITS = ("inside", "outside", "straddles", "depends-on-setting")
"""Reasons of a verdict that passed every gate: its interval counts, whatever it says."""

Worth = Literal["pays", "does-not", "depends"]
"""Whether compiling a workload makes a call faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One lane on one machine at one scale: what was measured there."""

    lane: str
    machine: str
    scale: str
    files: tuple[Stored, ...]
    local: bool
    contributed: bool

    @property
    def flags(self) -> tuple[str, ...]:
        """What a reader must know of it: small shapes, files not kept, a machine outside the article's list."""
        held = (
            ("smoke", self.scale == "smoke"),
            ("local", self.local),
            ("contributed", self.contributed and self.scale == "full"),
        )
        return tuple(name for name, holds in held if holds)

    @property
    def first(self) -> str:
        """The day of the oldest file."""
        return min(stored.file.provenance.started for stored in self.files)[:10]

    @property
    def last(self) -> str:
        """The day of the newest file."""
        return max(stored.file.provenance.started for stored in self.files)[:10]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A workload's speedup in one lane, with what it is a gain upon."""

    claim: str
    experiment: str
    workload: str
    setting: str | None
    verdict: Verdict
    part: Part
    processes: tuple[Observation, ...]
    """The processes that the speedup rests on, one a case file."""

    @property
    def centre(self) -> float:
        """The speedup itself."""
        return self.part.interval.centre if self.part.interval else math.nan

    @property
    def eager(self) -> Interval | None:
        """The median of eager's seconds a call over those processes."""
        return _middle([one.eager for one in self.processes if one.eager])

    @property
    def compiled(self) -> Interval | None:
        """The same of compiled."""
        return _middle([one.compiled for one in self.processes if one.compiled])


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """All speedups of a workload at one kind of work in one lane on one machine: one a precision."""

    family: str
    name: str
    timed: tuple[Timed, ...]
    """The largest speedup first."""
    worth: Worth


@dataclass(frozen=True, kw_only=True)
class Edition:
    """Everything that the pages of both languages are made from."""

    project: Path
    article: Article
    lanes: tuple[str, ...]
    stored: tuple[Stored, ...]
    damaged: tuple[Damaged, ...]
    verdicts: tuple[Verdict, ...]
    observations: tuple[Observation, ...]
    criteria: Criteria
    texts: Mapping[str, Texts]
    digests: Mapping[str, str] = field(default_factory=dict)
    """The digest of each case's code now, by the case's name."""
    unused: Mapping[str, Unused] = field(default_factory=dict)
    """Why a file does not speak for its case, lane and machine, by path."""

    @functools.cached_property
    def by_path(self) -> Mapping[str, Stored]:
        """Every case file by its path."""
        return {stored.path: stored for stored in self.stored}

    @functools.cached_property
    def observed(self) -> Mapping[str, Observation]:
        """The observation of each file that counts, by its path."""
        return {observation.stored.path: observation for observation in self.observations}

    @functools.cached_property
    def claims(self) -> Mapping[str, Claim]:
        """Every claim by its id."""
        return {claim.id: claim for claim in self.article.claims}

    @functools.cached_property
    def comparisons(self) -> Mapping[tuple[str, str], tuple[Comparison, ...]]:
        """Every pair of lanes, the earlier one first, and what they have in common on each machine."""
        pairs = list(itertools.combinations(self.lanes, 2))
        return compare_pairs(self.article, self.stored, self.digests, pairs, self.criteria, self.observations)

    def of(self, claim: str, lane: str | None = None) -> tuple[Verdict, ...]:
        """Return a claim's verdicts, in one lane or all, those that count more first within a lane."""
        found = [v for v in self.verdicts if v.claim == claim and lane in {None, v.lane}]
        return tuple(sorted(found, key=lambda v: (self.lanes.index(v.lane), _rank(v))))

    def shown(self, claim: str) -> tuple[Verdict, ...]:
        """Return a claim's verdicts, without those that only miss a GPU in a lane where another says more."""
        found = self.of(claim)
        return tuple(
            v for v in found if v.reason.code != "needs-gpu" or sum(other.lane == v.lane for other in found) == 1
        )

    @property
    def judged(self) -> tuple[Claim, ...]:
        """The article's claims that have a verdict: a control has none, what can't be tested has one."""
        claims = self.article.checked
        return tuple(one for one in claims if one.bound.kind != "shown" or isinstance(one.quantity, Untestable))

    def tally(self, verdicts: Iterable[Verdict]) -> dict[Outcome, tuple[int, bool]]:
        """Return how many verdicts have each outcome, and whether any of those rests on local files.

        One that does not count, at smoke scale or of a contributed machine, is not measured.
        """
        found: dict[Outcome, tuple[int, bool]] = {}
        for verdict in verdicts:
            counts = self.counts(verdict)
            outcome: Outcome = verdict.outcome if counts or verdict.outcome == "not-testable" else "not-measured"
            number, local = found.get(outcome, (0, False))
            found[outcome] = number + 1, local or (counts and verdict.local)
        return found

    def headline(self, claim: str) -> Verdict:
        """Return the verdict that speaks for a claim, on the machine that counts most.

        Of the lane that the claim speaks of, else of the article's.
        """
        return (self.of(claim, self.claims[claim].lane or self.article.lane) or self.of(claim))[0]

    @functools.cached_property
    def code(self) -> Mapping[str, tuple[Code, ...]]:
        """The source of what a claim's cases run, by the claim's id."""
        return codes(self.article, {claim.id: self.article.needs(claim) for claim in self.article.claims})

    def behind(self, claim: str) -> tuple[Stored, ...]:
        """Return the files behind every verdict on a claim, in the order of verdicts."""
        paths = dict.fromkeys(
            path
            for verdict in self.of(claim)
            for path in (*verdict.files, *(path for part in verdict.parts for path in part.files))
        )
        return tuple(self.by_path[path] for path in paths if path in self.by_path)

    def history(self, claim: str) -> tuple[tuple[Stored, Unused], ...]:
        """Return the other files of a claim's cases, the newest first, and why no verdict on it rests on them."""
        cases = {case.name for case in self.article.needs(self.claims[claim])}
        used = {stored.path for stored in self.behind(claim)}
        found = [
            (stored, self.unused[stored.path])
            for stored in self.stored
            if stored.file.case in cases and stored.path in self.unused and stored.path not in used
        ]
        return tuple(sorted(found, key=lambda one: (one[0].file.provenance.started, one[0].path), reverse=True))

    def counts(self, verdict: Verdict) -> bool:
        """Return whether a verdict is in the tally: full scale, on one of the article's own machines."""
        return verdict.scale == "full" and not verdict.contributed

    @functools.cached_property
    def exports(self) -> tuple[Export, ...]:
        """What it offers to programs, made once for both languages."""
        return exports(self)

    @functools.cached_property
    def measured(self) -> tuple[Measured, ...]:
        """What was measured, by lane, machine and scale; the article's machines at full scale first."""
        groups: dict[tuple[str, str, str], list[Stored]] = {}
        for stored in self.stored:
            file = stored.file
            groups.setdefault((file.lane, file.machine, file.scale), []).append(stored)
        found = [
            Measured(
                lane=lane,
                machine=machine,
                scale=scale,
                files=tuple(files),
                local=any(stored.local for stored in files),
                contributed=machine not in self.article.machines,
            )
            for (lane, machine, scale), files in groups.items()
        ]
        known = {lane: place for place, lane in enumerate(self.lanes)}
        return tuple(
            sorted(found, key=lambda m: (m.scale != "full", m.contributed, m.machine, known.get(m.lane, 99), m.lane))
        )

    @functools.cached_property
    def timed(self) -> tuple[Timed, ...]:
        """Every speedup by compiling that a claim of the article asks for and that has an interval, at full scale.

        One that two claims ask for is there once, as the first one's.
        """
        compiling = {experiment.id for experiment in self.article.experiments if experiment.kind == "timing"}
        found: dict[tuple[str, ...], Timed] = {}
        for claim in self.article.checked:
            for verdict in self.of(claim.id):
                if verdict.scale != "full":
                    continue
                for part in verdict.parts:
                    asked = _speedup(claim, part)
                    if asked is None or part.interval is None or asked.base or asked.where.experiment not in compiling:
                        continue
                    one = Timed(
                        claim=claim.id,
                        experiment=asked.where.experiment,
                        workload=str(asked.where.axes.get("workload", part.label)),
                        setting=part.setting or _precision(asked),
                        verdict=verdict,
                        part=part,
                        processes=tuple(self.observed[p] for p in part.files if p in self.observed),
                    )
                    found.setdefault(part.files, one)
        return tuple(found.values())

    def speedups(self, lane: str) -> tuple[Timed, ...]:
        """Return the speedups of a lane that passed every gate, on the machine that counts most, the largest first."""
        found = [one for one in self.timed if one.verdict.lane == lane and one.part.reason.code in ON_ITS_MERITS]
        own = [one for one in found if not one.verdict.contributed] or found
        return tuple(
            sorted(
                (one for one in own if one.verdict.machine == own[0].verdict.machine),
                key=lambda one: one.centre,
                reverse=True,
            )
        )

    def worth(self, lane: str) -> tuple[Workload, ...]:
        """Return every workload of a lane with whether compiling it pays; those that differ most from 1 first.

        It pays where each of its intervals lies above the criteria's range of no difference; it does not where each
        lies below 1 or in that range; else it depends: on the precision, or on samples that do not decide.
        """
        groups: dict[tuple[str, str], list[Timed]] = {}
        for one in self.speedups(lane):
            groups.setdefault((self.article.family(one.experiment), one.workload), []).append(one)
        found = [
            Workload(family=family, name=name, timed=tuple(timed), worth=self._worth(timed))
            for (family, name), timed in groups.items()
        ]
        return tuple(sorted(found, key=lambda one: -max(abs(math.log(timed.centre)) for timed in one.timed)))

    def _worth(self, timed: list[Timed]) -> Worth:
        low, high = self.criteria.no_difference
        intervals = [one.part.interval for one in timed if one.part.interval]
        if all(one.low > high for one in intervals):
            return "pays"
        if all(one.high < 1 or (low <= one.low and one.high <= high) for one in intervals):
            return "does-not"
        return "depends"


def _middle(found: list[Interval]) -> Interval | None:
    """Return the one with the median centre: of an even number the lower, so that it is one that was measured."""
    return sorted(found, key=lambda one: one.centre)[(len(found) - 1) // 2] if found else None


def _speedup(claim: Claim, part: Part) -> Speedup | None:
    """Return the speedup that the part is, or None where it is another quantity."""
    quantity = claim.quantity
    if isinstance(quantity, Each):
        quantity = quantity.parts.get(part.label, quantity)
    return quantity if isinstance(quantity, Speedup) else None


def _precision(asked: Speedup) -> str | None:
    """Return the precision of the cases themselves, where the claim has no settings."""
    found = asked.where.axes.get(SETTING_AXIS)
    return found if isinstance(found, str) else None


def _rank(verdict: Verdict) -> tuple[bool, bool, bool, bool, str]:
    return (
        verdict.scale != "full",
        verdict.contributed,
        verdict.outcome not in DECIDED,
        verdict.local,
        verdict.machine or "~",
    )


@functools.cache
def load_edition(project: Path) -> Edition:
    """Return the edition of the project as it is on disk; once a process, for both languages.

    Raises:
        PlanError: the plan, a translation or a label is at fault; the message says where.
    """
    article = load_article(project)
    texts = load_texts(project, article)
    order = tuple(lane.id for lane in lanes.lanes(project))
    stored, damaged = sift(article, order, records.load(project))
    digest_now = digests(article)
    criteria = Criteria()
    return Edition(
        project=project,
        article=article,
        lanes=order,
        stored=tuple(stored),
        damaged=tuple(damaged),
        verdicts=judge(article, stored, order, digest_now, criteria),
        observations=observe(article, stored, digest_now, criteria),
        criteria=criteria,
        texts=texts,
        digests=digest_now,
        unused=unused(article, stored, digest_now),
    )
