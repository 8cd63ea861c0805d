"""Claims as data: a quantity, made of measured cases, held against a bound fixed beforehand.

Nothing here computes; `reportkit.judge` does. A claim has no prose either: its statement, the
reading of loose words and its place in the article are in `experiments/claims.LANGUAGE.toml`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reportkit.plan import Axis, PlanError
from reportkit.records import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING_AXIS = "precision"
"""The axis that a claim's settings vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a quantity is held to: an interval, or the outside of one, or plain truth.

    `low` and `high` of None are unbounded; `open` excludes the ends (strictly above, below).
    `kind` says how it was written: a control is `shown`, has no verdict and stays out of the tally.
    """

    kind: Literal["range", "outside", "true", "shown"]
    low: float | None = None
    high: float | None = None
    open: bool = False

    def __post_init__(self) -> None:
        """Refuse a bound that contradicts itself."""
        ends = [end for end in (self.low, self.high) if end is not None]
        if not all(math.isfinite(end) for end in ends):
            message = f"a bound is made of finite numbers, this one has {self.low} and {self.high}"
            raise PlanError(message)
        if self.open and (self.kind != "range" or len(ends) != 1):
            message = "a bound is open at one end only: strictly above, or strictly below"
            raise PlanError(message)
        if self.kind in {"true", "shown"}:
            if (self.low, self.high) != (None, None):
                message = f"a bound of kind {self.kind!r} has no numbers, this one has {self.low} and {self.high}"
                raise PlanError(message)
        elif self.low is None and self.high is None:
            message = f"a bound of kind {self.kind!r} needs a number"
            raise PlanError(message)
        elif self.low is not None and self.high is not None and self.low >= self.high:
            message = f"a bound that contradicts itself: at least {self.low} and at most {self.high}"
            raise PlanError(message)
        elif self.kind == "outside" and None in {self.low, self.high}:
            message = "a bound of kind 'outside' needs both its numbers"
            raise PlanError(message)


def at_least(low: float) -> Bound:
    """Return the bound `low` or more."""
    return Bound(kind="range", low=low)


def at_most(high: float) -> Bound:
    """Return the bound `high` or less."""
    return Bound(kind="range", high=high)


def above(low: float) -> Bound:
    """Return the bound strictly more than `low`."""
    return Bound(kind="range", low=low, open=True)


def below(high: float) -> Bound:
    """Return the bound strictly less than `high`."""
    return Bound(kind="range", high=high, open=True)


def between(low: float, high: float) -> Bound:
    """Return the bound `low` to `high`, ends included."""
    return Bound(kind="range", low=low, high=high)


def outside(low: float, high: float) -> Bound:
    """Return the bound below `low` or above `high`."""
    return Bound(kind="outside", low=low, high=high)


TRUE = Bound(kind="true")
SHOWN = Bound(kind="shown")


@dataclass(frozen=True, slots=True)
class Where:
    """Some cases of an experiment: those on these values of its axes, in every other value of the rest."""

    experiment: str
    axes: Mapping[str, Axis | tuple[Axis, ...]]
    lane: str | None = None
    """The lane to look in, where it isn't the one judged."""

    def at(self, setting: str | None) -> Mapping[str, Axis | tuple[Axis, ...]]:
        """Return the axes with the claim's setting put in."""
        return self.axes if setting is None else {**self.axes, SETTING_AXIS: setting}


@dataclass(frozen=True, slots=True)
class Speedup:
    """Eager over compiled time of one case, or of its replicates taken together.

    `base` names what stands in eager's place where that is compiled as well, such as another mode.
    """

    where: Where
    base: str | None = None

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return (self.where,)


@dataclass(frozen=True, slots=True)
class FirstCall:
    """What a first compiled call cost, over fresh processes: one a case.

    `metric` is what is taken of each process's file, in seconds; with `of`, its share of another one.
    """

    where: Where
    metric: str = "first_call"
    of: str | None = None

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return (self.where,)


@dataclass(frozen=True, slots=True)
class Side:
    """Seconds a call of one side of a timed case in steady state, by the clock that is judged."""

    where: Where
    side: Literal["eager", "compiled"]

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return (self.where,)


@dataclass(frozen=True, slots=True)
class Metric:
    """The middle of one metric of one case.

    `name` is a measurement's, such as `eager_wall`, `eager_busy`, `compiled_energy`, or one that an experiment made;
    or a number of the case file: `counters.unique_graphs`, `launches.eager`, `memory.compiled_allocated`.
    """

    where: Where
    name: str

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return (self.where,)


@dataclass(frozen=True, slots=True)
class Spread:
    """The largest speedup over the smallest, among single cases."""

    where: Where | tuple[Where, ...]

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return self.where if isinstance(self.where, tuple) else (self.where,)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One quantity over another."""

    over: Number
    under: Number

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return (*self.over.cases(), *self.under.cases())


@dataclass(frozen=True, slots=True)
class Sum:
    """Quantities of one unit added up, each so many times: `Sum(((1, first_call), (1000, a_call)))`."""

    terms: tuple[tuple[float, Number], ...]

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return tuple(where for _, term in self.terms for where in term.cases())


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest of several quantities of one unit, taken as a whole in each draw."""

    parts: tuple[Number, ...]

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return tuple(where for part in self.parts for where in part.cases())


@dataclass(frozen=True, slots=True)
class GeometricMean:
    """The geometric mean of several ratios."""

    parts: tuple[Number, ...]

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return tuple(where for part in self.parts for where in part.cases())


Number = Speedup | FirstCall | Side | Metric | Spread | Ratio | Sum | Smallest | GeometricMean


@dataclass(frozen=True, slots=True)
class Fact:
    """A finding, and whether it is expected to hold or not to."""

    where: Where
    finding: str
    expect: bool = True

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return (self.where,)


@dataclass(frozen=True, slots=True)
class Works:
    """The fact that cases run through a graph or more, and match eager by the fp64 rule; `unbroken`: in one piece."""

    where: Where
    unbroken: bool = False

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return (self.where,)


@dataclass(frozen=True, slots=True)
class SomeBelow:
    """The fact that some case's speedup lies below a number, and does so again in a second process of that case.

    The high end of its interval must, corrected for the number of cases by Holm's method. `again` maps the name of a
    case to that of the case that repeats it.
    """

    wheres: tuple[Where, ...]
    high: float
    again: Mapping[str, str]

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return self.wheres


@dataclass(frozen=True, slots=True)
class Untestable:
    """Nothing here can be measured against the claim; some cases may be shown beside it."""

    shown: tuple[Where, ...] = ()

    def cases(self) -> tuple[Where, ...]:
        """Return what is shown beside it."""
        return self.shown


@dataclass(frozen=True, slots=True)
class Each:
    """Several quantities of one kind, by label, each held to the bound: one refuted refutes all."""

    parts: Mapping[str, Number | Fact | Works]

    def cases(self) -> tuple[Where, ...]:
        """Return what it is made of."""
        return tuple(where for part in self.parts.values() for where in part.cases())


Quantity = Number | Fact | Works | SomeBelow | Untestable | Each
Measured = Speedup | FirstCall | Side | Metric | Spread
"""Numbers that are made of no others."""
Leaf = Measured | Fact | Works | SomeBelow | Untestable

TRUTHS = (Fact, Works, SomeBelow)
"""Quantities that hold or do not."""


def parts_of(quantity: Number) -> tuple[Number, ...]:
    """Return the numbers that a number is made of; none where it is measured itself."""
    match quantity:
        case Ratio(over, under):
            return over, under
        case Sum(terms):
            return tuple(term for _, term in terms)
        case Smallest(parts) | GeometricMean(parts):
            return parts
        case _:
            return ()


def leaves(quantity: Quantity) -> tuple[Leaf, ...]:
    """Return what a quantity is made of, down to what is made of nothing else, in order."""
    match quantity:
        case Each(parts):
            return tuple(leaf for part in parts.values() for leaf in leaves(part))
        case Ratio() | Sum() | Smallest() | GeometricMean():
            return tuple(leaf for part in parts_of(quantity) for leaf in leaves(part))
        case _:
            return (quantity,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One atomic, checkable statement: what is measured, and the bound that it is held to."""

    id: str
    quantity: Quantity
    bound: Bound
    on: Literal["any", "cuda"]
    """Machines it can be judged on: any, or those with a CUDA GPU."""
    settings: tuple[str, ...] = ()
    """Precisions it is judged under; where they disagree it depends on the setting."""
    lane: str | None = None
    """The only lane that it speaks of; elsewhere it says so."""

    def __post_init__(self) -> None:
        """Refuse an id that can't be an address, a setting named twice, and a fact held to a number or the reverse."""
        parts = tuple(self.quantity.parts.values()) if isinstance(self.quantity, Each) else (self.quantity,)
        if not NAME.fullmatch(self.id):
            message = f"claim {self.id!r} is no valid name ({NAME.pattern})"
            raise PlanError(message)
        if self.on not in {"any", "cuda"}:
            message = f"claim {self.id!r} is judged on {self.on!r}; machines are 'any' or 'cuda'"
            raise PlanError(message)
        if any(isinstance(part, Spread) for part in parts) and self.bound.high is not None and self.bound.high < 1:
            message = f"claim {self.id!r}: a spread is never below 1, and the bound asks for {self.bound.high} at most"
            raise PlanError(message)
        twice = next((setting for setting in self.settings if self.settings.count(setting) > 1), None)
        if twice is not None:
            message = f"claim {self.id!r} names setting {twice!r} twice"
            raise PlanError(message)
        if isinstance(self.quantity, Untestable):
            if self.bound.kind != "shown":
                message = f"claim {self.id!r} can't be tested, so that it is held to nothing; its bound is SHOWN"
                raise PlanError(message)
            return
        facts = {isinstance(part, TRUTHS) for part in parts}
        if len(facts) != 1 or (facts != {self.bound.kind == "true"} and self.bound.kind != "shown"):
            message = f"claim {self.id!r}: a fact is held to be true, a number to a range; this mixes them"
            raise PlanError(message)
