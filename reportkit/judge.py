"""Claims x case files x criteria -> verdicts. Pure: no clock, no disk, no randomness without a seed.

A verdict starts at inconclusive and earns its way out through the gates, each of which has a reason
code. Sentences for the codes are in the labels of each language; `Reason.details` fills them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reportkit.claims import Bound, Claim
    from reportkit.plan import Article, Case
    from reportkit.records import CaseFile, Scale, Stored

Outcome = Literal["supported", "refuted", "inconclusive", "not-measured", "not-testable", "shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Every threshold of the judge, in one place; the method page prints this record."""

    confidence: float = 0.95
    """Share of intervals meant to hold the truth."""
    draws: int = 4000
    """Bootstrap draws."""
    seed: int = 20261130
    minimum_pairs: int = 30
    """Pairs of blocks below which a steady-state ratio is not judged."""
    minimum_processes: int = 3
    """Fresh processes below which a first call is not judged."""
    noise_ceiling: float = 0.10
    """Half the interval over its centre, above which a speedup is too noisy to judge."""
    first_call_noise_ceiling: float = 0.75
    """The same for a ratio of first calls, which are few and vary more."""
    dropped_ceiling: float = 0.20
    """Share of pairs dropped for a low clock, above which a case was throttled."""
    no_difference: tuple[float, float] = (0.99, 1.01)
    """An interval inside this range is no difference."""


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
}
"""Every reason code, and the details that its sentence may use. `noise`, `ceiling`, `dropped` are shares."""


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
    unit: Literal["x", "s"] = "x"


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
    """
    raise NotImplementedError


def observe(
    article: Article, stored: Sequence[Stored], digests: Mapping[str, str], criteria: Criteria | None = None
) -> tuple[Observation, ...]:
    """Return the current file of every case, lane and machine, summed up."""
    raise NotImplementedError
