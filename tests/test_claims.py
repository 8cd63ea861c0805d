"""Bounds that make sense, and those of the declared claims to the letter of the list fixed beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from experiments import ARTICLE
from reportkit.claims import (
    SHOWN,
    TRUE,
    Bound,
    Claim,
    Each,
    Fact,
    FirstCall,
    GeometricMean,
    Quantity,
    Ratio,
    Side,
    Smallest,
    Speedup,
    Spread,
    Sum,
    Where,
    above,
    at_least,
    at_most,
    below,
    between,
    outside,
)
from reportkit.plan import PlanError
from reportkit.quantity import format_bound

if TYPE_CHECKING:
    from collections.abc import Callable

FIXED = {
    # id: section, bound, on, settings, lane; as fixed before the first measurement. Never edited to fit a result.
    "default-inductor": (2, "true", "any", (), None),
    "cache-new-in-2.5": (2, "true", "any", (), "2.5"),
    "cache-hits": (2, "true", "any", (), None),
    "cache-saves-time": (2, "<= 0.5", "cuda", (), None),
    "table-resnet50": (4, "1.42 to 1.87", "cuda", ("d", "t"), None),
    "table-bert": (4, "1.09 to 1.44", "cuda", ("d", "t"), None),
    "table-gpt2": (4, "1.02 to 1.28", "cuda", (), None),
    "table-dynamic-cnn": (4, "1.03 to 1.36", "cuda", ("d", "t"), None),
    "table-sd": (4, "1.37 to 1.82", "cuda", ("h", "d", "t"), None),
    "resnet50-stable": (4, "<= 1.05", "cuda", (), None),
    "bert-compile-costly": (4, "> 1", "cuda", (), None),
    "gpt2-memory-bound": (4, ">= 0.5", "cuda", (), None),
    "dynamic-costs": (4, "< 0.95", "cuda", (), None),
    "compute-bound-gain-more": (4, "> 1.15", "cuda", (), None),
    "llm-gain-limited": (4, "<= 1.2", "cuda", (), None),
    "llm-static-cache": (4, "shown, not judged", "cuda", (), None),
    "q3-from-pretrained": (5, "true", "any", (), None),
    "dynamic-near-static": (7, ">= 0.9", "cuda", (), None),
}


def test_the_declared_claims_are_those_fixed_beforehand() -> None:
    declared = {
        claim.id: (section.number, format_bound(claim.bound), claim.on, claim.settings, claim.lane)
        for section in ARTICLE.sections
        if section.number > 0
        for claim in section.claims
    }
    assert declared == FIXED


def leaves(quantity: Quantity) -> list[Speedup | Spread | FirstCall | Side]:
    """Return the parts of a quantity that are times of cases."""
    match quantity:
        case Ratio(over, under):
            return [*leaves(over), *leaves(under)]
        case Sum(terms):
            return [leaf for _, term in terms for leaf in leaves(term)]
        case Each(parts):
            return [leaf for part in parts.values() for leaf in leaves(part)]
        case Smallest(parts) | GeometricMean(parts):
            return [leaf for part in parts for leaf in leaves(part)]
        case Speedup() | Spread() | FirstCall() | Side():
            return [quantity]
        case _:
            return []


def test_what_claims_time_is_timed_and_first_calls_come_from_three_processes() -> None:
    found = 0
    for claim in ARTICLE.claims:
        for leaf in leaves(claim.quantity):
            for where in leaf.cases():
                for setting in claim.settings or (None,):
                    cases = ARTICLE.find(where.experiment, where.at(setting))
                    found += len(cases)
                    if isinstance(leaf, FirstCall):
                        assert len(cases) >= 3, claim.id
                    else:
                        assert all(case.steady for case in cases), claim.id
    assert found


def test_a_known_difference_is_held_to_its_size_give_or_take_a_percent() -> None:
    bounds = {claim.id: claim.bound for claim in ARTICLE.claims if claim.id.startswith("difference-")}
    assert {name: format_bound(bound) for name, bound in bounds.items()} == {
        "difference-2": "1.01 to 1.03",
        "difference-5": "1.04 to 1.06",
        "difference-20": "1.19 to 1.21",
    }
    assert all(bound.low is not None and bound.low > 1.009 for bound in bounds.values())


@pytest.mark.parametrize(
    ("claim", "point"),
    [("table-resnet50", 1.63), ("table-bert", 1.25), ("table-dynamic-cnn", 1.18), ("table-sd", 1.58)],
)
def test_a_point_carries_fifteen_percent_either_way(claim: str, point: float) -> None:
    bound = {c.id: c.bound for c in ARTICLE.claims}[claim]
    assert (bound.low, bound.high) == (round(point / 1.15, 2), round(point * 1.15, 2))
    assert bound.low is not None
    assert bound.low > 1.02


@pytest.mark.parametrize(
    "make",
    [
        lambda: between(1.5, 1.2),
        lambda: between(1.2, 1.2),
        lambda: outside(1.1, 0.9),
        lambda: Bound(kind="range"),
        lambda: Bound(kind="outside", low=0.9),
        lambda: Bound(kind="outside", high=1.1),
        lambda: Bound(kind="true", low=1.0),
        lambda: Bound(kind="shown", high=1.0),
        lambda: above(float("nan")),
        lambda: at_most(float("inf")),
        lambda: between(float("-inf"), 1.0),
        lambda: Bound(kind="outside", low=0.9, high=1.1, open=True),
        lambda: Bound(kind="range", low=0.9, high=1.1, open=True),
        lambda: Bound(kind="true", open=True),
    ],
)
def test_a_bound_that_contradicts_itself_is_refused(make: Callable[[], Bound]) -> None:
    with pytest.raises(PlanError, match="bound"):
        make()


HERE = Where("e", {})
FACT, NUMBER = Fact(HERE, "f"), Speedup(HERE)


@pytest.mark.parametrize(
    ("quantity", "bound"),
    [
        (FACT, at_least(1.0)),
        (NUMBER, TRUE),
        (Each({"a": FACT, "b": FACT}), below(1.0)),
        (Each({"a": NUMBER}), TRUE),
        (Each({"a": FACT, "b": NUMBER}), TRUE),
        (Each({"a": NUMBER, "b": FACT}), at_least(1.0)),
        (Each({}), TRUE),
    ],
)
def test_a_fact_is_true_and_a_number_in_a_range(quantity: Quantity, bound: Bound) -> None:
    with pytest.raises(PlanError, match="claim 'c'"):
        Claim(id="c", quantity=quantity, bound=bound, on="any")


@pytest.mark.parametrize("quantity", [FACT, NUMBER, Spread(HERE), Ratio(NUMBER, NUMBER), Each({"a": FACT})])
def test_a_control_may_be_either(quantity: Quantity) -> None:
    assert Claim(id="c", quantity=quantity, bound=SHOWN, on="any").bound is SHOWN


def test_settings_are_named_once_and_ids_can_be_addresses() -> None:
    with pytest.raises(PlanError, match="setting 'd' twice"):
        Claim(id="c", quantity=NUMBER, bound=at_least(1.0), on="any", settings=("d", "d"))
    with pytest.raises(PlanError, match="no valid name"):
        Claim(id="a claim/..", quantity=NUMBER, bound=at_least(1.0), on="any")


def test_a_setting_takes_its_axis_and_nothing_else() -> None:
    where = Where("e", {"workload": "bert", "precision": "t"})
    assert where.at(None) == where.axes
    assert where.at("d") == {"workload": "bert", "precision": "d"}


def test_quantities_know_the_places_they_are_made_of() -> None:
    one, other = Where("e", {"a": 1}), Where("e", {"a": 2})
    assert Ratio(Speedup(one), Speedup(other)).cases() == (one, other)
    assert Each({"x": Fact(one, "f"), "y": Fact(other, "f")}).cases() == (one, other)
