"""Every quantity that a claim can ask for: what it comes to, in which unit, and what keeps it from being judged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reportkit import judge, records
from reportkit.claims import (
    SHOWN,
    TRUE,
    Bound,
    Claim,
    Each,
    Fact,
    FirstCall,
    GeometricMean,
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
    above,
    at_least,
    at_most,
    below,
    between,
)
from reportkit.judge import REASONS, Criteria, Interval, Verdict
from reportkit.plan import PlanError
from reportkit.records import CaseFile, Finding, Stored
from tests.casefiles import case_file, changed, environment, measured
from tests.quantities import DIGESTS, FIRST, PROCESSES, WORKLOADS, article, counted, files, timed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reportkit.claims import Number, Quantity

QUICK = Criteria(draws=400)


def judged(quantity: Quantity, bound: Bound, found: Iterable[CaseFile], *, lane: str = "2.5", **more: Any) -> Verdict:
    claim = Claim(id="c", quantity=quantity, bound=bound, **{"on": "any", **more})
    stored = [Stored(f"results/{records.relative_path(file).as_posix()}", file) for file in found]
    [verdict] = judge.judge(article(claim), stored, (lane,), DIGESTS, QUICK)
    for reason in (verdict.reason, *(part.reason for part in verdict.parts)):
        assert set(reason.details) == set(REASONS[reason.code])
    return verdict


def shown(quantity: Quantity, found: Iterable[CaseFile] | None = None) -> Interval:
    verdict = judged(quantity, SHOWN, files().values() if found is None else found)
    assert verdict.interval is not None, verdict.reason
    return verdict.interval


EAGER, COMPILED = Side(timed("a"), "eager"), Side(timed("a"), "compiled")
LAUNCHES = Ratio(Metric(timed("a"), "launches.eager"), Metric(timed("a"), "launches.compiled"))
COLD = FirstCall(timed("a", *PROCESSES))
FIRST_MEAN = math.prod(FIRST.values()) ** (1 / 3)


@pytest.mark.parametrize(
    ("quantity", "centre", "unit"),
    [
        (EAGER, 0.0124, "s"),
        (COMPILED, 0.0124 / 1.5, "s"),
        (Side(timed("a", *PROCESSES), "compiled"), 0.0124 / 1.5, "s"),
        (Ratio(EAGER, COMPILED), 1.5, "x"),
        (Ratio(COMPILED, Side(timed("c"), "compiled")), 2.0 / 1.5, "x"),
        (Metric(timed("a"), "eager_wall"), 0.0124 * 1.02, "s"),
        (Metric(timed("a"), "eager_busy"), 0.00608, "s"),
        (Ratio(Metric(timed("a"), "eager_busy"), Metric(timed("a"), "eager_wall")), 0.00608 / 0.012648, "x"),
        (Metric(timed("a"), "compiled_energy"), 1.005, "J"),
        (Metric(timed("a"), "memory.compiled_allocated"), 3 * 2**30, "B"),
        (Metric(timed("a"), "launches.compiled"), 10, "1"),
        (Metric(timed("a"), "counters.unique_graphs"), 1, "1"),
        (Metric(counted("default"), "graphs"), 2, "1"),
        (Ratio(Metric(counted("default"), "graphs"), Metric(counted("false"), "graphs")), 0.25, "x"),
        (COLD, FIRST_MEAN, "s"),
        (FirstCall(timed("a", *PROCESSES), "entire_frame_compile"), 0.9 * FIRST_MEAN, "s"),
        (FirstCall(timed("a", *PROCESSES), "entire_frame_compile", of="first_call"), 0.9, "x"),
        (Spread(timed(WORKLOADS)), 2.0 / 1.2, "x"),
        (Spread((timed("a"), timed("b"), Where("large", {}))), 1.5 / 1.2, "x"),
        (Smallest((Speedup(timed("a")), Speedup(timed("b")))), 1.2, "x"),
        (Ratio(Smallest((Speedup(timed("a")), Speedup(timed("c")))), Speedup(timed("b"))), 1.25, "x"),
        (GeometricMean(tuple(Speedup(timed(one)) for one in WORKLOADS)), (1.5 * 1.2 * 2) ** (1 / 3), "x"),
        (Sum(((1, COLD), (1000, COMPILED))), FIRST_MEAN + 12.4 / 1.5, "s"),
        (Sum(((1, Metric(counted("default"), "graphs")), (2, Metric(counted("false"), "graphs")))), 18, "1"),
        (Ratio(Sum(((1000, EAGER),)), Sum(((1, COLD), (1000, COMPILED)))), 12.4 / (FIRST_MEAN + 12.4 / 1.5), "x"),
    ],
)
def test_what_it_comes_to_and_in_which_unit(quantity: Number, centre: float, unit: str) -> None:
    interval = shown(quantity)
    assert interval.centre == pytest.approx(centre, rel=2e-3)
    assert interval.low <= interval.centre <= interval.high
    assert interval.unit == unit


def test_counts_are_exact_and_launches_range_over_what_was_seen() -> None:
    for name, value in (("launches.compiled", 10), ("memory.eager_allocated", 2**32), ("counters.unique_graphs", 1)):
        interval = shown(Metric(timed("a"), name))
        assert (interval.low, interval.centre, interval.high) == (value, value, value)
    interval = shown(LAUNCHES)
    assert (interval.low, interval.centre, interval.high) == (3.8, 4.0, 4.0)
    without = changed(files()["timed.a-p-1"], launches={"eager": 40, "compiled": 10})
    interval = shown(LAUNCHES, [without])
    assert (interval.low, interval.high) == (4.0, 4.0)


def test_an_exact_count_meets_its_bound_to_the_letter() -> None:
    quantity = Metric(counted("default"), "graphs")
    for graphs, outcome in ((3.0, "supported"), (4.0, "refuted")):
        file = measured(files()["counted.default"], "1", graphs=[graphs])
        assert judged(quantity, at_most(3), [file]).outcome == outcome


def test_few_samples_are_told_by_students_t() -> None:
    # Two windows of energy, one percent apart: half a percent of error, times 12.7.
    interval = shown(Metric(timed("a"), "compiled_energy"))
    assert math.log(interval.high / interval.centre) == pytest.approx(12.706 * math.log(1.01) / 2, rel=0.1)
    resampled = shown(Metric(timed("a"), "eager_wall"))
    assert interval.high / interval.centre > 10 * (resampled.high / resampled.centre - 1) + 1


def test_a_share_of_a_first_call_is_taken_process_by_process() -> None:
    apart = FirstCall(timed("a", *PROCESSES), "entire_frame_compile", of="first_call")
    interval = shown(apart)
    # The processes differ by a tenth, and their shares not at all.
    assert interval.high - interval.low < 1e-9
    assert shown(COLD).high / shown(COLD).low > 1.1


PERCENT = Ratio(Metric(timed("a"), "eager_energy"), Metric(timed("a"), "compiled_energy"))
ONE = ("timed.a-p-1",)
GATES: dict[str, tuple[Number, dict[str, Any], tuple[str, ...], tuple[str, str]]] = {
    "all is well": (LAUNCHES, {}, ONE, ("supported", "inside")),
    "no such counter": (Metric(timed("a"), "counters.recompiles"), {}, ONE, ("inconclusive", "not-timed")),
    "a counter that this version lacks": (
        Metric(timed("a"), "counters.unique_graphs"),
        {"counters": {"unique_graphs": None}},
        ONE,
        ("inconclusive", "not-timed"),
    ),
    "no launches": (LAUNCHES, {"launches": None}, ONE, ("inconclusive", "not-timed")),
    "no such measurement": (Metric(timed("a"), "compiled_busy"), {}, ONE, ("inconclusive", "not-timed")),
    "nothing of the whole": (
        FirstCall(timed("a", *PROCESSES), "first_call", of="nothing"),
        {},
        ONE,
        ("inconclusive", "not-timed"),
    ),
    "one sample of what scatters": (Metric(timed("a"), "alone"), {}, ONE, ("inconclusive", "too-few-samples")),
    "a count of nothing": (
        LAUNCHES,
        {"launches": {"eager": 40, "compiled": 0}},
        ONE,
        ("inconclusive", "nothing-counted"),
    ),
    "few windows are allowed more noise": (PERCENT, {}, ONE, ("supported", "inside")),
    "wrong": (LAUNCHES, {"right": False}, ONE, ("inconclusive", "wrong-result")),
    "unchecked": (COMPILED, {"correctness": None}, ONE, ("inconclusive", "unchecked-result")),
    "no graphs": (COMPILED, {"graphs": 0}, ONE, ("inconclusive", "no-graphs")),
    "of eager alone, and compiled is wrong": (EAGER, {"right": False, "graphs": 0}, ONE, ("supported", "inside")),
    "few pairs of a side": (EAGER, {"pairs": 29}, ONE, ("inconclusive", "too-few-pairs")),
    "few pairs of a metric": (Metric(timed("a"), "eager_gpu"), {"pairs": 29}, ONE, ("inconclusive", "too-few-pairs")),
    "few pairs, and none is asked for": (LAUNCHES, {"pairs": 29}, ONE, ("supported", "inside")),
    "few processes": (FirstCall(timed("a", "p-1", "p-2")), {}, ONE, ("inconclusive", "too-few-processes")),
    "few processes of a term": (
        Sum(((1, FirstCall(timed("a"))), (9, EAGER))),
        {},
        ONE,
        ("inconclusive", "too-few-processes"),
    ),
    "another driver": (
        Ratio(Speedup(timed("a")), Speedup(timed("b"))),
        {"environment": environment(driver="571")},
        ONE,
        ("inconclusive", "different-environments"),
    ),
    "dirty": (LAUNCHES, {"dirty": True}, ONE, ("inconclusive", "dirty")),
    "failed": (
        Metric(counted("default"), "graphs"),
        {"status": "failed"},
        ("counted.default",),
        ("inconclusive", "failed"),
    ),
    "a control compiles nothing": (Speedup(Where("traced", {})), {"graphs": 0}, ("traced.a",), ("supported", "inside")),
    "a control may be wrong": (
        Side(Where("traced", {}), "compiled"),
        {"right": False},
        ("traced.a",),
        ("inconclusive", "wrong-result"),
    ),
    "a fact has no result to check": (
        Metric(counted("default"), "graphs"),
        {"correctness": None, "counters": {}},
        ("counted.default",),
        ("supported", "inside"),
    ),
}  # fmt: skip


def respoilt(wishes: Mapping[str, Any], names: Iterable[str]) -> list[CaseFile]:
    """Return whole files, those of that name made with other wishes."""
    whole = files()
    if {"correctness", "counters", "launches", "environment"} & set(wishes):
        return [changed(file, **wishes) if name in names else file for name, file in whole.items()]
    other = {name: files(**wishes)[name] if name in names else file for name, file in whole.items()}
    return list(other.values())


@pytest.mark.parametrize("gate", GATES)
def test_a_number_passes_every_gate_or_says_which_not(gate: str) -> None:
    quantity, wishes, names, expected = GATES[gate]
    verdict = judged(quantity, at_least(0.001), respoilt(wishes, names))
    assert (verdict.outcome, verdict.reason.code) == expected


def test_a_case_that_is_asked_for_twice_is_missing_once() -> None:
    verdict = judged(
        Each({"one": LAUNCHES, "two": Ratio(EAGER, Speedup(timed("b")))}), above(1), [files()["timed.b-p-1"]]
    )
    missing = verdict.parts[1].reason
    assert (missing.code, missing.details["measured"], missing.details["needed"]) == ("not-all-measured", 1, 2)


def test_at_smoke_scale_only_what_is_planned_there_is_asked_for() -> None:
    smoke = files(scale="smoke").values()
    assert judged(Speedup(timed("a", *PROCESSES)), between(1.4, 1.6), smoke).outcome == "supported"
    assert judged(Spread(timed(WORKLOADS, *PROCESSES)), at_least(1.2), smoke).outcome == "supported"
    few = judged(COLD, between(2, 100), smoke)
    assert (few.reason.code, few.reason.details) == ("too-few-processes", {"processes": 1, "needed": 3})
    lone = judged(Spread(timed("a", *PROCESSES)), at_most(1.05), smoke)
    assert lone.reason.code == "too-few-processes"
    none = judged(Ratio(Speedup(timed("a")), Speedup(Where("large", {}))), above(1), smoke)
    assert (none.outcome, none.reason.code, none.reason.details) == (
        "not-measured",
        "no-case-at-scale",
        {"scale": "smoke"},
    )


def test_at_full_scale_no_process_may_be_missing() -> None:
    found = files()
    del found["timed.a-p-3"]
    assert judged(Speedup(timed("a", *PROCESSES)), above(1), found.values()).reason.code == "not-all-measured"


def test_lanes_are_compared_case_by_case() -> None:
    old = [changed(file, lane="2.4") for file in files().values()]
    quantity = Ratio(
        Sum(((1, Metric(Where("counted", {"dynamic": "default"}), "graphs")),)),
        Sum(((1, Metric(Where("counted", {"dynamic": "false"}, "2.4"), "graphs")),)),
    )
    assert judged(quantity, below(1), [*files().values(), *old]).outcome == "supported"
    missing = judged(quantity, below(1), files().values())
    assert (missing.outcome, missing.reason.code, missing.reason.details) == (
        "not-measured",
        "baseline-lane-missing",
        {"lane": "2.4"},
    )
    other = next(file for file in old if file.case == "counted.default")
    assert judged(quantity, below(1), [*files().values(), other]).reason.code == "not-all-measured"


# -- works


WORKS = Works(timed(WORKLOADS))


@pytest.mark.parametrize(
    ("wishes", "unbroken", "expected"),
    [
        ({}, True, ("supported", "works", True)),
        ({"right": False}, False, ("refuted", "works-wrong", False)),
        ({"graphs": 0}, False, ("refuted", "works-uncompiled", False)),
        ({"counters": {"unique_graphs": 3, "graph_breaks": 2}}, True, ("refuted", "works-broken", False)),
        ({"counters": {"unique_graphs": 3, "graph_breaks": 2}}, False, ("supported", "works", True)),
        ({"counters": {"unique_graphs": 3, "graph_breaks": None}}, True, ("inconclusive", "not-timed", None)),
        ({"counters": {}}, False, ("inconclusive", "not-timed", None)),
        ({"correctness": None}, False, ("inconclusive", "unchecked-result", None)),
        ({"status": "failed"}, False, ("inconclusive", "failed", None)),
        ({"status": "unavailable"}, False, ("not-measured", "unavailable", None)),
        ({"dirty": True, "right": False}, False, ("inconclusive", "dirty", None)),
    ],
)
def test_works(wishes: dict[str, Any], *, unbroken: bool, expected: tuple[str, str, bool | None]) -> None:
    verdict = judged(replace(WORKS, unbroken=unbroken), TRUE, respoilt(wishes, ("timed.b-p-1",)))
    assert (verdict.outcome, verdict.reason.code, verdict.parts[0].holds) == expected


def test_one_that_does_not_work_refutes_whatever_is_missing() -> None:
    wrong = files(right=False)["timed.b-p-1"]
    assert judged(WORKS, TRUE, [wrong]).outcome == "refuted"
    assert judged(WORKS, TRUE, [files()["timed.b-p-1"]]).reason.code == "not-all-measured"
    each = Each({one: Works(timed(one)) for one in WORKLOADS})
    assert judged(each, TRUE, [wrong]).outcome == "refuted"


# -- some below


SLOW = SomeBelow((timed(WORKLOADS, *PROCESSES),), 0.97, {f"timed.{one}-p-1": f"timed.{one}-p-2" for one in WORKLOADS})


def slower(**speedups: float) -> list[CaseFile]:
    """Return whole files with other speedups by case: `b_2` for timed.b-p-2."""
    found = files()
    for short, speedup in speedups.items():
        name = "timed.{}-p-{}".format(*short.split("_"))
        found[name] = case_file(name, speedup=speedup, noise=0.004, axes=found[name].axes)
    return list(found.values())


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (slower(), ("refuted", "none-below")),
        (slower(b_1=0.9, b_2=0.9), ("supported", "some-below")),
        (slower(b_1=0.9), ("inconclusive", "not-repeated")),
        (slower(b_3=0.9), ("inconclusive", "not-repeated")),
        (slower(b_1=0.9, c_2=0.9), ("inconclusive", "not-repeated")),
        (slower(b_1=0.97), ("inconclusive", "none-proven")),
        (slower(b_1=0.97)[1:], ("inconclusive", "not-all-measured")),
        (slower()[1:], ("inconclusive", "not-all-measured")),
        (slower(b_1=0.9, b_2=0.9)[1:], ("supported", "some-below")),
        (respoilt({"right": False}, ONE), ("inconclusive", "wrong-result")),
        (respoilt({"pairs": 20}, ONE), ("inconclusive", "too-few-pairs")),
        (respoilt({"status": "unavailable"}, ONE), ("inconclusive", "unavailable")),
        ([], ("not-measured", "lane-never-measured")),
    ],
)
def test_some_below(found: list[CaseFile], expected: tuple[str, str]) -> None:
    verdict = judged(SLOW, TRUE, found)
    assert (verdict.outcome, verdict.reason.code) == expected
    holds = {"supported": True, "refuted": False}.get(expected[0])
    assert [part.holds for part in verdict.parts] == [holds] * bool(found)


def test_the_slowest_that_was_repeated_is_shown() -> None:
    verdict = judged(SLOW, TRUE, slower(b_1=0.9, b_2=0.91, c_1=0.8, a_1=0.95, a_2=0.95))
    assert verdict.reason.details == {"case": "timed.b-p-1", "again": "timed.b-p-2", "high": 0.97}
    assert verdict.interval is not None
    assert verdict.interval.centre == pytest.approx(0.9, rel=0.01)


def test_what_one_case_alone_would_show_is_not_enough_among_many() -> None:
    alone = SomeBelow((timed("b", "p-1", "p-2"),), 0.97, {"timed.b-p-1": "timed.b-p-2"})
    for noise, speedup in ((0.02, 0.9605), (0.03, 0.955)):
        found = {file.case: file for file in slower()}
        for process in ("p-1", "p-2"):
            name = f"timed.b-{process}"
            found[name] = case_file(name, speedup=speedup, noise=noise, axes=found[name].axes)
        few, many = judged(alone, TRUE, found.values()), judged(SLOW, TRUE, found.values())
        order = ("refuted", "inconclusive", "supported")
        assert order.index(many.outcome) <= order.index(few.outcome)


def test_at_smoke_scale_nothing_is_repeated() -> None:
    found = {**files(scale="smoke")}
    found["timed.b-p-1"] = case_file("timed.b-p-1", speedup=0.9, scale="smoke", axes=found["timed.b-p-1"].axes)
    assert judged(SLOW, TRUE, found.values()).reason.code == "not-repeated"


def test_a_repeat_is_another_case_that_the_claim_rests_on() -> None:
    for again in ({"timed.a-p-1": "timed.a-p-1"}, {"timed.a-p-1": "timed.z-p-1"}, {"timed.z": "timed.a-p-1"}):
        claim = Claim(id="c", quantity=replace(SLOW, again=again), bound=TRUE, on="any")
        with pytest.raises(PlanError, match="repeat"):
            article(claim)


# -- what can't be tested


def test_what_can_not_be_tested_is_so_in_every_lane_and_on_every_machine() -> None:
    claim = Claim(id="c", quantity=Untestable(), bound=SHOWN, on="cuda", lane="2.5")
    found = [
        *files().values(),
        *(changed(file, machine="dev-cpu", environment=environment(gpu=False)) for file in files().values()),
    ]
    stored = [Stored(f"results/{records.relative_path(file).as_posix()}", file) for file in found]
    rows = judge.judge(
        article(claim, Claim(id="d", quantity=EAGER, bound=SHOWN, on="any")), stored, ("2.4", "2.5"), DIGESTS, QUICK
    )
    mine = [row for row in rows if row.claim == "c"]
    assert [(row.lane, row.machine, row.files) for row in mine] == [
        ("2.4", None, ()),
        ("2.5", "nvidia-h200", ()),
        ("2.5", "dev-cpu", ()),
    ]
    assert {(row.outcome, row.reason.code) for row in mine} == {("not-testable", "not-testable")}
    assert [one["verdict"] for one in judge.as_objects(mine)] == ["not-testable"] * 3


def test_what_is_shown_beside_it_is_listed() -> None:
    verdict = judged(Untestable((counted("default"),)), SHOWN, files().values())
    assert (verdict.outcome, verdict.interval, verdict.parts) == ("not-testable", None, ())
    assert [file.rpartition("/")[2].partition("--")[0] for file in verdict.files] == ["counted.default"]
    failed = judged(
        Untestable((counted("default"),)), SHOWN, [changed(files()["counted.default"], status="failed", reason="x")]
    )
    assert failed.outcome == "not-testable"
    assert len(failed.files) == 1


def test_without_a_gpu_nothing_holds_or_fails() -> None:
    found = [
        changed(
            file,
            machine="dev-cpu",
            environment=environment(gpu=False),
            findings={"f": Finding(holds=True, evidence={})},
        )
        for file in files().values()
    ]
    for quantity in (WORKS, SLOW, Fact(counted("default"), "f")):
        verdict = judged(quantity, TRUE, found, on="cuda")
        assert (verdict.outcome, verdict.reason.code) == ("not-measured", "needs-gpu")
        assert [part.holds for part in verdict.parts] == [None]


# -- what holds of all of them


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2) -> Number:
    """Return a number of any kind, made of others."""
    where = timed(draw(st.sampled_from(WORKLOADS)), draw(st.sampled_from(PROCESSES)))
    leaves: list[Number] = [
        Speedup(where),
        Side(where, "eager"),
        Side(where, "compiled"),
        Metric(where, "launches.eager"),
        Metric(where, "eager_busy"),
        FirstCall(timed(str(where.axes["workload"]), *PROCESSES)),
        Spread(timed(WORKLOADS)),
    ]
    if depth == 0:
        return draw(st.sampled_from(leaves))
    inner = numbers(depth=depth - 1)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    made = st.one_of(
        st.builds(Ratio, inner, inner),
        some.map(Smallest),
        some.map(GeometricMean),
        st.lists(st.tuples(st.floats(0.5, 100), inner), min_size=1, max_size=3).map(lambda terms: Sum(tuple(terms))),
    )
    return draw(st.one_of(st.sampled_from(leaves), made))


WHOLE = list(files().values())


@settings(max_examples=40, deadline=None)
@given(numbers())
def test_any_number_has_an_interval_that_holds_its_centre(quantity: Number) -> None:
    interval = shown(quantity, WHOLE)
    assert 0 < interval.low <= interval.centre <= interval.high < math.inf
    assert shown(quantity, WHOLE[::-1]) == interval


@settings(max_examples=25, deadline=None)
@given(numbers(depth=1), st.sampled_from(sorted(file.case for file in WHOLE)))
def test_no_number_is_judged_with_a_file_missing_that_it_needs(quantity: Number, name: str) -> None:
    left = [file for file in WHOLE if file.case != name]
    whole, less = judged(quantity, at_least(0), WHOLE), judged(quantity, at_least(0), left)
    needed = any(name == path.rpartition("/")[2].partition("--")[0] for path in whole.files)
    assert (less.outcome == whole.outcome) is (not needed)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.85, 1.1), st.floats(0.001, 0.03), st.integers(0, 5))
def test_more_cases_never_support_what_fewer_did_not(speedup: float, noise: float, more: int) -> None:
    names = ["timed.b-p-1", "timed.b-p-2", *(f"timed.{one}-p-{n}" for one in "ac" for n in (1, 2, 3))][: 2 + more]
    found = [
        case_file(
            name,
            speedup=speedup if name.startswith("timed.b") else 1.2,
            noise=noise,
            axes={"workload": name[6], "process": name[8:]},
        )
        for name in names
    ]
    few = SomeBelow((timed("b", "p-1", "p-2"),), 0.97, {"timed.b-p-1": "timed.b-p-2"})
    if judged(SLOW, TRUE, found).outcome == "supported":
        assert judged(few, TRUE, found).outcome == "supported"


def test_a_file_says_what_it_lacks_by_its_own_name() -> None:
    file = msgspec.structs.replace(files()["timed.a-p-1"], memory=None)
    verdict = judged(Metric(timed("a"), "memory.eager_allocated"), at_most(1), [file])
    assert verdict.reason.details == {"case": "timed.a-p-1", "metric": "memory.eager_allocated"}
