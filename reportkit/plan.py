"""What an article's experiments are made of: cases, experiments, sections, the article.

Everything here is a frozen value without torch, so that the report world can read the plan. Only
`Experiment.prepare` runs in the bench world, and imports what it needs when it is called.
"""

from __future__ import annotations

import difflib
import importlib
import math
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from reportkit.records import NAME, Damaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reportkit.claims import Claim
    from reportkit.records import CaseFile, Finding, Measurement, Scale, Stored

Axis = str | int
Cache = Literal["shared", "cold", "warm"]
Pass = Literal["launches", "energy", "memory"]
Kind = Literal["timing", "control", "trap", "fact", "bench"]


RULER = 0
"""The number of the section that measures the measuring."""


class PlanError(ValueError):
    """A plan, or a wish about it, that makes no sense; the message says what and what to do."""


class Unavailable(Exception):  # noqa: N818 -- it says what the case is, as `plan.Unavailable("needs a GPU")`
    """Raised by `prepare`, or by the call that it returns, where a case can't run; the message says what it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One point on an experiment's axes.

    `name` is derived from the axes, so that it is stable and unique. `cost` is the estimated
    seconds of the case at each scale, everything included: `--budget` trusts it.
    """

    experiment: str
    axes: Mapping[str, Axis]
    workload: str
    """The function of the article's `workloads` module that builds the model; part of the digest."""
    cost: Mapping[Scale, float]
    cache: Cache = "shared"
    """cold: a process with fresh, private caches. warm: a process on the caches that the case
    `follows` left. shared: fresh caches at full scale; at smoke scale those of the section."""
    follows: str | None = None
    steady: bool = True
    """Whether steady state is timed after the first calls (timing experiments only)."""
    settings: Mapping[str, str | bool | int] = field(default_factory=lambda: MappingProxyType({}))
    """Torch's own switches, set in the child before `prepare`: `float32_matmul_precision`, or a
    dotted name such as `torch._dynamo.config.cache_size_limit`."""
    scales: tuple[Scale, ...] = ("full", "smoke")
    """Scales that it is measured at. Replicates and first calls are many processes; at smoke scale one is enough."""
    passes: tuple[Pass, ...] = ()
    """Further observations of a timed case, each in a pass of its own after the timing: kernel launches
    and busy time from the profiler, energy from the GPU's counter, peak memory in a fresh process a side."""

    @property
    def name(self) -> str:
        """The experiment and the axes' values, joined: `table.resnet50-d-cold-1`."""
        return f"{self.experiment}.{'-'.join(str(value) for value in self.axes.values())}"

    def caches(self, scale: Scale) -> Cache:
        """Return which caches its first call finds: shared ones are fresh at full scale, and so cold there."""
        return "cold" if self.cache == "shared" and scale == "full" else self.cache

    def matches(self, where: Mapping[str, Axis | tuple[Axis, ...]]) -> bool:
        """Whether the case has the value, or one of the values, that `where` gives for each axis it names."""
        return all(
            self.axes.get(axis) in (value if isinstance(value, tuple) else (value,)) for axis, value in where.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where a case runs, given to `prepare`."""

    scale: Scale
    device: Literal["cuda", "cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What `prepare` returns for a timing case: the same work, twice, everything untimed done.

    A side is a call without arguments that returns tensors (or nested tuples, lists, dicts of
    them). `reference` computes the same outputs by an fp64 copy, or is None where none can run.
    `tolerance` is absolute and relative, as in PyTorch's benchmark suite. `inputs` are the tensors that both
    calls read: after timing they are changed in place, and both sides must follow. Numbers are turned round and
    negated, indices and masks rolled along their last dimension; a mask of ones stays what it is, which does no harm.
    `check` is what is compared in place of the timed calls, where those change their state (training) or end in
    tokens: both sides and the reference of something that can be compared, such as loss and gradients from
    the starting state, or logits of given tokens. Its calls return the same each time that they are called. They run
    after the timed first calls, since what they compile would make those shorter, and before steady state; so what
    the timed calls change they have copies of, made when first called, so that peak memory goes without. What they
    compile is in no count of the case.
    """

    eager: Callable[[], Any]
    compiled: Callable[[], Any]
    reference: Callable[[], Any] | None
    tolerance: float
    inputs: tuple[Any, ...] = ()
    check: Sides | None = None


REFUSED = "refused"
"""The finding of a trap that says whether its sides were refused; its evidence `reason` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """What `prepare` returns for a trap: two sides, and a timer that is taken in by them.

    `naive` returns seconds a call of either side, as that timer has them: `naive_eager` and
    `naive_compiled`. It runs first, then the sides are measured as any others are.
    """

    sides: Sides
    naive: Callable[[], dict[str, Measurement]]
    compiles: bool = False
    """Whether the second side is compiled, so that there must be a graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The plan that makes claims measurable.

    `prepare(case, here)` returns `Sides` for kind `timing`, and for kind `control`, where neither side
    is compiled; a `Trap` for kind `trap`; and a call that returns findings, measurements or both by name
    for kinds `fact` and `bench`. A bench measures the ruler itself, and runs only where it is named.
    """

    id: str
    kind: Kind
    cases: tuple[Case, ...]
    prepare: Callable[[Case, Here], Sides | Trap | Callable[[], Mapping[str, Finding | Measurement]]]
    lane: str | None = None
    """The lane that it is measured in; in another one it runs only where it is named."""

    def __post_init__(self) -> None:
        """Refuse a name that can't be a file's, a duplicate, and a case that follows nothing."""
        names = [case.name for case in self.cases]
        for name in (self.id, *names):
            if not NAME.fullmatch(name):
                message = f"experiment {self.id!r}: {name!r} is no valid name ({NAME.pattern})"
                raise PlanError(message)
        if len(set(names)) != len(names):
            message = f"experiment {self.id!r} has two cases of one name: {sorted(names)}"
            raise PlanError(message)
        for case in self.cases:
            if case.experiment != self.id:
                message = f"case {case.name!r} says experiment {case.experiment!r}, and is in {self.id!r}"
                raise PlanError(message)
            cold = {other.name for other in self.cases if other.cache == "cold"}
            if (case.cache == "warm") != (case.follows is not None) or case.follows not in {None, *cold}:
                message = f"case {case.name!r}: a warm case follows a cold one of its experiment; no other does"
                raise PlanError(message)
            lost = [
                other for other in self.cases if other.name == case.follows and set(case.scales) - set(other.scales)
            ]
            if not case.scales or lost:
                message = (
                    f"case {case.name!r} is measured at scales {case.scales}, and what it follows is not at all of them"
                )
                raise PlanError(message)
            if set(case.cost) != {"full", "smoke"} or min(case.cost.values()) <= 0:
                message = f"case {case.name!r}: its cost is seconds at each scale, and not {dict(case.cost)}"
                raise PlanError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the article: what it claims, and the experiments that live in its module.

    Section 0 is not the article's: its claims are about the measuring, and stay out of the tally.
    """

    id: str
    number: int
    claims: tuple[Claim, ...]
    experiments: tuple[Experiment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """What is checked: its sections in reading order, and the lane that its headline is judged on."""

    id: str
    lane: str
    machines: tuple[str, ...]
    """Machines whose files count in the tally and the headline; others are shown as contributed."""
    sections: tuple[Section, ...]
    anchors: str | None = None
    """The experiment that every run begins with, so that runs on different days can be told to be alike."""
    preload: tuple[str, ...] = ()
    """Libraries that workloads import, to be imported once for all measured processes, where that is harmless."""
    first: tuple[str, ...] = ()
    """Sections, experiments and cases that are measured before all others, in this order: a budget, and the end of the
    time that a machine is lent for, cut what comes last."""
    last: tuple[str, ...] = ()
    """Those that are measured after all others, in this order: what costs much and says least."""
    families: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Kinds of work, with the experiments of each, in the order that pages show them in: an inference and a training
    step are not to stand in one row of speedups as if they were alike."""

    def __post_init__(self) -> None:
        """Refuse ids that occur twice, and anchors or families of experiments that there are none of."""
        for kind, ids in {
            "section": [section.id for section in self.sections],
            "claim": [claim.id for claim in self.claims],
            "experiment": [experiment.id for experiment in self.experiments],
        }.items():
            twice = sorted({name for name in ids if ids.count(name) > 1})
            if twice:
                message = f"two of one {kind} id: {', '.join(twice)}"
                raise PlanError(message)
        known = {experiment.id for experiment in self.experiments}
        if self.anchors not in {None, *known}:
            message = f"the anchors are experiment {self.anchors!r}, and there is none"
            raise PlanError(message)
        self._check_families(known)
        for claim in self.claims:
            for where in claim.quantity.cases():
                if where.experiment not in known:
                    message = f"claim {claim.id!r} rests on experiment {where.experiment!r}, and there is none"
                    raise PlanError(message)
                for setting in claim.settings or (None,):
                    if not self.find(where.experiment, where.at(setting)):
                        place = f"{where.experiment} at {dict(where.at(setting))}"
                        message = f"claim {claim.id!r} rests on {place}, and no case lies there"
                        raise PlanError(message)
            self._check_repeats(claim)
        self._check_queue()

    def _check_queue(self) -> None:
        queue = self.queue(case for experiment in self.experiments for case in experiment.cases)
        places = {case.name: place for place, case in enumerate(queue)}
        for case in queue:
            if case.follows and places[case.follows] > places[case.name]:
                message = f"case {case.name!r} would be measured before {case.follows!r}, which it follows"
                raise PlanError(message)

    def _own(self, *names: str) -> tuple[Case, ...]:
        """Return the cases in sections, in experiments and of these names, in the order of the names."""
        found: dict[str, Case] = {}
        for name in names:
            within = [
                case
                for section in self.sections
                for experiment in section.experiments
                for case in experiment.cases
                if name in {section.id, experiment.id, case.name}
            ]
            if not within:
                message = f"{name!r} is to be measured first or last, and is no section, experiment or case"
                raise PlanError(message)
            found.update({case.name: case for case in within})
        return tuple(found.values())

    def queue(self, cases: Iterable[Case]) -> list[Case]:
        """Return the cases in the order in which they are measured: anchors, what is first, the rest, what is last."""
        first = {case.name: number for number, case in enumerate(self._own(*self.first))}
        last = {case.name: number for number, case in enumerate(self._own(*self.last))}

        def place(case: Case) -> tuple[bool, bool, float]:
            # What is said to be last is so, even within a section that is first.
            late = case.name in last
            number = last[case.name] if late else first.get(case.name, math.inf)
            return case.experiment != self.anchors, late, number

        return sorted(cases, key=place)  # Stable: reading order otherwise.

    def _check_families(self, known: set[str]) -> None:
        sorted_in = [name for experiments in self.families.values() for name in experiments]
        for name in sorted_in:
            if name not in known or sorted_in.count(name) > 1:
                message = f"experiment {name!r} is named {sorted_in.count(name)} times in families; " + (
                    "it belongs to one" if name in known else "there is none"
                )
                raise PlanError(message)

    def _check_repeats(self, claim: Claim) -> None:
        from reportkit.claims import SomeBelow  # It imports this module.

        if isinstance(claim.quantity, SomeBelow):
            names = {case.name for case in self.needs(claim)}
            for name, repeat in claim.quantity.again.items():
                if name == repeat or not {name, repeat} <= names:
                    message = f"claim {claim.id!r}: {repeat!r} is to repeat {name!r}; it rests on no two such cases"
                    raise PlanError(message)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Every claim, in reading order."""
        return tuple(claim for section in self.sections for claim in section.claims)

    @property
    def checked(self) -> tuple[Claim, ...]:
        """Every claim of the article itself, in reading order: those about the measuring left out."""
        return tuple(claim for section in self.sections if section.number != RULER for claim in section.claims)

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """Every experiment, in reading order."""
        return tuple(experiment for section in self.sections for experiment in section.experiments)

    def experiment(self, name: str) -> Experiment:
        """Return the experiment of that id. Raises KeyError."""
        return {experiment.id: experiment for experiment in self.experiments}[name]

    def section_of(self, experiment: str) -> Section:
        """Return the section in whose module the experiment lives. Raises StopIteration for none."""
        return next(s for s in self.sections if any(e.id == experiment for e in s.experiments))

    def family(self, experiment: str) -> str:
        """Return the kind of work that an experiment times; its own id where it is of none that is named."""
        return next((family for family, experiments in self.families.items() if experiment in experiments), experiment)

    def find(self, experiment: str, where: Mapping[str, Axis | tuple[Axis, ...]]) -> tuple[Case, ...]:
        """Return the cases of an experiment at a place on its axes, in plan order."""
        return tuple(case for case in self.experiment(experiment).cases if case.matches(where))

    def needs(self, claim: Claim) -> tuple[Case, ...]:
        """Return the cases a claim rests on, in all its settings, in plan order."""
        found: dict[str, Case] = {}
        for setting in claim.settings or (None,):
            for where in claim.quantity.cases():
                found.update({case.name: case for case in self.find(where.experiment, where.at(setting))})
        return tuple(found.values())

    def select(self, names: Iterable[str], lane: str | None = None) -> tuple[Case, ...]:
        """Return the cases that `names` (sections, experiments, cases, claims) ask for, in plan order.

        A section stands for its experiments' cases and for those its claims rest on, wherever
        they live; no name at all for every section. Neither brings a bench, nor an experiment that is
        measured in another lane than `lane`. A warm case brings the one it follows, and anything the anchors.

        Raises:
            PlanError: a name is unknown; the message has the nearest ones.
        """
        everything = tuple(case for experiment in self.experiments for case in experiment.cases)
        wanted: set[str] = set()
        known = {section.id: section for section in self.sections}
        claims = {claim.id: claim for claim in self.claims}
        experiments = {experiment.id: experiment for experiment in self.experiments}
        cases = {case.name: case for case in everything}
        names = tuple(names)
        usual = {e.id for e in self.experiments if e.kind != "bench" and (lane is None or e.lane in {None, lane})}
        for name in names or known:
            if name in known:
                wanted |= {c.name for e in known[name].experiments for c in e.cases if e.id in usual}
                wanted |= {c.name for claim in known[name].claims for c in self.needs(claim) if c.experiment in usual}
            elif name in claims:
                wanted |= {c.name for c in self.needs(claims[name])}
            elif name in experiments:
                wanted |= {c.name for c in experiments[name].cases}
            elif name in cases:
                wanted.add(name)
            else:
                message = unknown("section, claim, experiment or case", name, (*known, *claims, *experiments, *cases))
                raise PlanError(message)
        wanted |= {cases[name].follows or name for name in wanted}
        wanted |= {case.name for case in everything if case.experiment == self.anchors}
        return tuple(case for case in everything if case.name in wanted)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a name that isn't known: what, the nearest names, and all of a short list."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return f"unknown {kind} {name!r}; did you mean {', '.join(near)}?"
    most = 12
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"unknown {kind} {name!r}; known: {', '.join(known[:most])}{more}"


def load_article(project: Path) -> Article:
    """Return the article of the project at `project`: `ARTICLE` in its package `experiments`.

    Raises:
        PlanError: there is no such package there, or it declares no article.
    """
    if not (project / "experiments" / "__init__.py").is_file():
        message = f"no experiments/ here ({project}); run this in the project's root folder"
        raise PlanError(message)
    if str(project) not in sys.path:
        sys.path.insert(0, str(project))
    try:
        article = getattr(importlib.import_module("experiments"), "ARTICLE", None)
    except Exception as error:
        message = f"{_place(project, error)}: {error if isinstance(error, PlanError) else _told(error)}"
        raise PlanError(message) from error
    if not isinstance(article, Article):
        message = "experiments/__init__.py declares no ARTICLE"
        raise PlanError(message)
    return article


def _place(project: Path, error: Exception) -> str:
    """Return where in experiments/ an error comes from: file and line of the innermost frame there."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno))
    folder = project / "experiments"
    ours = [(Path(name), line) for name, line in frames if Path(name).is_relative_to(folder)]
    if not ours:
        return "experiments/"
    path, line = ours[-1]
    return f"{path.relative_to(project).as_posix()}:{line}"


def _told(error: Exception) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}"


def contradiction(article: Article, lanes: Iterable[str], file: CaseFile) -> str | None:
    """Return how a case file contradicts the plan that it belongs to; None where it does not.

    A case that the plan no longer has is history and contradicts nothing.
    """
    if file.lane not in lanes:
        return f"lane {file.lane!r} is not in lanes/lanes.toml"
    if file.section not in {section.id for section in article.sections}:
        return f"section {file.section!r} is none of the article's"
    for experiment in article.experiments:
        for case in experiment.cases:
            if case.name == file.case and dict(case.axes) != file.axes:
                return f"its axes are {file.axes}, and those of {case.name} are {dict(case.axes)}"
    return None


def sift(
    article: Article, lanes: Iterable[str], loaded: tuple[list[Stored], list[Damaged]]
) -> tuple[list[Stored], list[Damaged]]:
    """Move files that contradict the plan from those that were read to those that are damaged."""
    stored, damaged = loaded
    known = tuple(lanes)
    problems = {one.path: contradiction(article, known, one.file) for one in stored}
    false = [Damaged(path, problem) for path, problem in problems.items() if problem]
    return [one for one in stored if not problems[one.path]], sorted([*damaged, *false], key=lambda one: one.path)
