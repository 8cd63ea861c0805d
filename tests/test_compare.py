"""Release ratios: of which files, when significant, when relevant, and why not."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import ARTICLE
from reportkit import compare, records
from reportkit.judge import REASONS, Criteria
from reportkit.plan import PlanError
from reportkit.records import CaseFile, Measurement, Stored
from tests.casefiles import DIGESTS, case_file, changed, environment

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from reportkit.compare import Comparison, ReleaseRatio

QUICK = Criteria(draws=300)
CASE = "table.resnet50-d-cold-1"
ANCHORS = {"launch": 4.1e-6, "copy": 1.9e-3, "mobilenet": 5.2e-3}
MEMORY = {
    "eager_allocated": 3 * 2**30,
    "eager_reserved": 4 * 2**30,
    "compiled_allocated": 2**31,
    "compiled_reserved": 2**31,
}
LAUNCHES = {"eager": 161, "compiled": 54, "eager_least": 161, "compiled_least": 54}


def filed(files: Iterable[CaseFile], folder: str = "results") -> list[Stored]:
    return [Stored(f"{folder}/{records.relative_path(file).as_posix()}", file) for file in files]


def measured(lane: str = "2.5", case: str = CASE, **fields: Any) -> CaseFile:
    """Return a file of a lane whose host is like any other's, anchors and passes included."""
    usual: dict[str, Any] = {"anchors": ANCHORS, "memory": MEMORY, "launches": LAUNCHES}
    return case_file(case, **({"lane": lane} | usual | fields))


def compared(*files: CaseFile, lanes: tuple[str, str] = ("2.5", "2.15")) -> tuple[Comparison, ...]:
    return compare.compare(ARTICLE, filed(files), DIGESTS, *lanes, QUICK)


def ratio(one: CaseFile, other: CaseFile, metric: compare.Metric = "compiled_time") -> ReleaseRatio:
    [comparison] = compared(one, other, lanes=(one.lane, other.lane))
    [row] = comparison.rows
    found = row.of(metric)
    assert found is not None
    return found


H100 = records.Environment(
    **{name: getattr(environment(), name) for name in records.Environment.__struct_fields__} | {"gpu": "NVIDIA H100"}
)

FASTER: dict[str, Any] = {"speedup": 1.63 * 1.3}
"""Compiled takes 1.3 times less than in the other lane, eager the same."""

VERDICTS: dict[str, tuple[dict[str, Any], tuple[bool | None, bool, str | None]]] = {
    "better": (FASTER, (True, True, None)),
    "worse": ({"speedup": 1.63 / 1.3}, (True, True, None)),
    "hardly better": ({"speedup": 1.63 * 1.03}, (True, False, None)),
    "the same": ({}, (False, False, "within-noise")),
    "better within noise": ({"speedup": 1.63 * 1.06, "noise": 0.9}, (False, True, "within-noise")),
    "anchors off by 2.9 %": ({**FASTER, "anchors": {**ANCHORS, "copy": 1.9e-3 * 1.029}}, (True, True, None)),
    "anchors off by 3 %": ({**FASTER, "anchors": {**ANCHORS, "copy": 1.9e-3 * 1.03}}, (True, True, None)),
    "anchors off by 3.1 %": (
        {**FASTER, "anchors": {**ANCHORS, "copy": 1.9e-3 * 1.031}},
        (False, True, "anchors-differ"),
    ),
    "anchors below by 3.1 %": (
        {**FASTER, "anchors": {**ANCHORS, "copy": 1.9e-3 / 1.031}},
        (False, True, "anchors-differ"),
    ),
    "one anchor shared": ({**FASTER, "anchors": {"launch": 4.1e-6, "other": 1.0}}, (True, True, None)),
    "no anchor shared": ({**FASTER, "anchors": {"other": 1.0}}, (False, True, "no-anchors")),
    "no anchors": ({**FASTER, "anchors": None}, (False, True, "no-anchors")),
    "another GPU": ({**FASTER, "environment": H100}, (False, True, "different-environments")),
    "another driver": (
        {**FASTER, "environment": environment(torch="2.15.0+cu130", driver="580.1")},
        (False, True, "different-environments"),
    ),
    "wrong": ({**FASTER, "right": False}, (False, True, "wrong-result")),
    "unchecked": ({**FASTER, "correctness": None}, (False, True, "unchecked-result")),
    "nothing compiled": ({**FASTER, "graphs": 0}, (False, True, "no-graphs")),
    "few pairs": ({**FASTER, "pairs": 29}, (False, True, "too-few-pairs")),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_release_ratio_is_significant_and_relevant_or_says_why_not(name: str) -> None:
    fields, expected = VERDICTS[name]
    found = ratio(measured(), measured("2.15", **fields))
    code = found.reason.code if found.reason else None
    assert (found.significant, found.relevant, code) == expected
    assert found.interval is not None
    assert found.interval.low <= found.centre <= found.interval.high
    assert found.reason is None or set(found.reason.details) == set(REASONS[found.reason.code])
    assert found.blamed == ("2.15" if name in {"wrong", "unchecked", "nothing compiled", "few pairs"} else None)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, None),
        ({"run": "20261129t080000z"}, "no-anchors"),
        ({"digest": "f" * 16}, "no-anchors"),
        ({"status": "failed", "reason": "made up"}, "no-anchors"),
        ({"measurements": {"copy": Measurement(unit="s", samples=[2.0, 1e-3, 1.04e-3])}}, "anchors-differ"),
    ],
)
def test_anchors_may_lie_in_a_case_of_the_same_run(change: dict[str, Any], code: str | None) -> None:
    taken = {"copy": Measurement(unit="s", samples=[1e-3, 9.0, 1e-3])}
    mine, its = (
        case_file("anchors.all", lane=lane, speedup=None, first_call=None, measurements=taken)
        for lane in ("2.5", "2.15")
    )
    files = [measured(anchors=None), measured("2.15", anchors=None, **FASTER), mine, changed(its, **change)]
    [comparison] = compared(*files)
    [row] = comparison.rows
    reason = row.ratios[0].reason
    assert (reason.code if reason else None) == code


def test_the_anchor_that_differs_most_is_named_with_its_share() -> None:
    anchors = {**ANCHORS, "launch": 4.1e-6 * 1.04, "mobilenet": 5.2e-3 / 1.2}
    reason = ratio(measured(), measured("2.15", anchors=anchors, **FASTER)).reason
    assert reason is not None
    assert reason.details["anchor"] == "mobilenet"
    assert reason.details["by"] == pytest.approx(0.2)
    assert reason.details["allowed"] == 0.03


def test_above_1_the_candidate_is_better_and_the_other_side_is_kept_apart() -> None:
    one, other = measured(), measured("2.15", **FASTER)
    compiled, eager = ratio(one, other), ratio(one, other, "eager_time")
    assert compiled.centre == pytest.approx(1.3, rel=0.01)
    assert compiled.baseline.centre == pytest.approx(0.0124 / 1.63, rel=0.01)
    assert compiled.baseline.unit == "s"
    assert eager.centre == pytest.approx(1, rel=0.01)
    assert eager.significant is False
    # A wrong compiled result says nothing of eager.
    assert ratio(one, measured("2.15", right=False, eager=0.01), "eager_time").significant is True


def test_one_value_a_lane_has_no_interval_and_is_never_significant() -> None:
    one = measured(first_call=24.0)
    other = measured("2.15", first_call=12.0, memory={**MEMORY, "compiled_allocated": 2**30}, launches={"compiled": 0})
    [comparison] = compared(one, other)
    [row] = comparison.rows
    seen = {found.metric: found.centre for found in row.ratios if found.interval is None}
    assert seen == {
        "first_call": 2.0,
        "compiled_allocated": 2.0,
        "compiled_reserved": 1.0,
        "eager_allocated": 1.0,
        "eager_reserved": 1.0,
    }
    assert {found.significant for found in row.ratios if found.interval is None} == {None}
    found = row.of("first_call")
    assert found is not None
    assert (found.relevant, found.reason.code if found.reason else None) == (True, "no-interval")


def test_without_gpu_events_in_both_the_wall_clock_is_compared() -> None:
    one = measured()
    wall = {name: taken for name, taken in one.measurements.items() if not name.endswith("_gpu")}
    found = ratio(one, measured("2.15", measurements=wall))
    assert found.baseline.centre == pytest.approx(0.0124 * 1.02 / 1.63, rel=0.01)
    assert found.centre == pytest.approx(1, rel=0.01)


def test_a_case_without_steady_state_compares_its_first_call() -> None:
    found = ratio(measured(speedup=None), measured("2.15", speedup=None, first_call=12.0), "first_call")
    assert found.centre == 2.0
    [comparison] = compared(measured(speedup=None), measured("2.15"))
    assert comparison.rows[0].of("compiled_time") is None


CHANGES: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing": ({}, False),
    "compiled time": (FASTER, True),
    "compiled time, a little": ({"speedup": 1.63 * 1.03}, False),
    "eager time": ({"eager": 0.0124 * 1.3, "speedup": 1.63 * 1.3}, True),
    "allocated memory": ({"memory": {**MEMORY, "eager_allocated": 2**31}}, True),
    "reserved memory": ({"memory": {**MEMORY, "eager_reserved": 2**31}}, False),
    "graphs": ({"graphs": 2}, True),
    "breaks": ({"counters": {"unique_graphs": 1, "graph_breaks": 1}}, True),
    "the first call, beside times": ({"first_call": 12.0}, False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_is_relevant_where_anything_firm_changed_enough(change: str) -> None:
    fields, expected = CHANGES[change]
    [comparison] = compared(measured(), measured("2.15", **fields))
    assert comparison.rows[0].relevant is expected


def test_a_row_without_times_is_relevant_by_its_first_call() -> None:
    for first, expected in ((12.0, True), (24.5, False)):
        [comparison] = compared(measured(speedup=None), measured("2.15", speedup=None, first_call=first))
        [row] = comparison.rows
        assert (row.relevant, row.significant) == (expected, False)


@pytest.mark.parametrize(
    ("case", "scale", "caches"),
    [
        (CASE, "full", "cold"),
        ("table.resnet50-d-warm-2", "full", "warm"),
        ("mlp.mlp-d", "full", "cold"),
        ("mlp.mlp-d", "smoke", "shared"),
    ],
)
def test_a_row_says_which_caches_its_first_calls_found(case: str, scale: str, caches: str) -> None:
    [comparison] = compared(*(measured(lane, case, scale=scale) for lane in ("2.5", "2.15")))
    assert [row.caches for row in comparison.rows] == [caches]


def test_pairs_compared_together_are_as_compared_alone() -> None:
    files = filed(
        measured(lane, f"table.resnet50-d-cold-{n}", machine=machine, speedup=1.3 + n / 10)
        for lane in ("2.4", "2.5", "2.15")
        for n in (1, 2)
        for machine in ("another", "nvidia-h200")
        if (lane, machine) != ("2.4", "another")
    )
    pairs = [("2.4", "2.5"), ("2.4", "2.15"), ("2.5", "2.15"), ("2.15", "nightly")]
    together = compare.compare_pairs(ARTICLE, files, DIGESTS, pairs, QUICK)
    assert together == {pair: compare.compare(ARTICLE, files, DIGESTS, *pair, QUICK) for pair in pairs}
    assert [one.machine for one in together["2.5", "2.15"]] == ["nvidia-h200", "another"]
    assert together["2.15", "nightly"] == ()


SPOILS: dict[str, Callable[[CaseFile], CaseFile]] = {
    "stale": lambda file: changed(file, digest="f" * 16),
    "dirty": lambda file: changed(file, provenance=changed_provenance(file.provenance, dirty=True)),
    "failed": lambda file: changed(file, status="failed", reason="made up"),
    "unavailable": lambda file: changed(file, status="unavailable", reason="made up"),
}


def changed_provenance(of: records.Provenance, **fields: Any) -> records.Provenance:
    return records.Provenance(**({name: getattr(of, name) for name in of.__struct_fields__} | fields))


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("side", [0, 1])
def test_a_file_that_does_not_count_is_not_compared_and_says_why(spoil: str, side: int) -> None:
    files = [measured(), measured("2.15", **FASTER)]
    files[side] = SPOILS[spoil](files[side])
    [comparison] = compared(*files)
    assert comparison.rows == ()
    [left] = comparison.uncompared
    reasons = [reason.code if reason else None for reason in (left.baseline, left.candidate)]
    assert reasons[side] == spoil
    assert reasons[1 - side] is None


def test_cases_of_one_lane_are_listed_and_those_of_neither_are_not() -> None:
    alone = measured("2.15", "table.bert-d-cold-1")
    [comparison] = compared(measured(), measured("2.15"), alone)
    assert [row.case for row in comparison.rows] == [CASE]
    [left] = comparison.uncompared
    assert left.case == "table.bert-d-cold-1"
    assert left.baseline is not None
    assert (left.baseline.code, left.candidate) == ("never-measured", None)


def test_the_largest_change_of_compiled_time_comes_first_and_replicates_stay_apart() -> None:
    by_case = {"cold-1": 1.1, "cold-2": 0.5, "cold-3": 1.6, "warm-2": 1.0}
    files = []
    for process, factor in by_case.items():
        name = f"table.resnet50-d-{process}"
        untimed = process == "warm-2"
        files += [
            measured("2.5", name),
            measured("2.15", name, speedup=None if untimed else 1.63 * factor),
        ]
    [comparison] = compared(*files)
    assert [row.case.removeprefix("table.resnet50-d-") for row in comparison.rows] == [
        "cold-2",
        "cold-3",
        "cold-1",
        "warm-2",
    ]
    assert all(row.baseline.speedup is not None for row in comparison.rows)
    assert comparison.rows[-1].candidate.speedup is None


def test_full_scale_is_compared_before_smoke_and_machines_stay_apart() -> None:
    smoke = [measured(lane, scale="smoke", gpu=False) for lane in ("2.5", "2.15")]
    full = [measured(lane) for lane in ("2.5", "2.15")]
    on_gpu = [changed(file, machine="nvidia-h200") for file in smoke]
    assert [(one.machine, one.scale) for one in compared(*full, *smoke, *on_gpu)] == [
        ("nvidia-h200", "full"),
        ("dev-cpu", "smoke"),
    ]
    assert [(one.machine, one.scale) for one in compared(full[0], *on_gpu)] == [("nvidia-h200", "smoke")]
    assert compared(full[0], changed(full[1], machine="other")) == ()


def test_a_lane_is_not_compared_with_itself() -> None:
    with pytest.raises(PlanError, match="can't be compared with itself"):
        compared(measured(), lanes=("2.5", "2.5"))


factors = st.floats(0.4, 2.5)
noises = st.floats(0.001, 0.1)


@settings(max_examples=40, deadline=None)
@given(factors, factors, noises, st.integers(0, 9))
def test_swapped_lanes_give_the_reciprocal_and_the_same_relevance(
    eager: float, speedup: float, noise: float, seed: int
) -> None:
    one = measured(started=f"2026-11-30T12:00:0{seed}Z", noise=noise)
    other = measured("2.15", speedup=1.63 * speedup, eager=0.0124 * eager, noise=noise)
    there, back = compared(one, other)[0].rows[0], compared(one, other, lanes=("2.15", "2.5"))[0].rows[0]
    assert [found.metric for found in there.ratios] == [found.metric for found in back.ratios]
    for mine, its in zip(there.ratios, back.ratios, strict=True):
        assert mine.centre * its.centre == pytest.approx(1)
        assert mine.relevant == its.relevant
        assert (mine.baseline, mine.candidate) == (its.candidate, its.baseline)
        if mine.interval is not None and its.interval is not None:
            assert mine.interval.low * its.interval.high == pytest.approx(1, rel=5e-3)


@settings(max_examples=40, deadline=None)
@given(factors, st.sampled_from(sorted(ANCHORS)), st.floats(0.031, 5), st.booleans())
def test_on_hosts_that_are_not_alike_nothing_is_significant(
    speedup: float,
    name: str,
    more: float,
    down: bool,  # noqa: FBT001 -- hypothesis passes it by name
) -> None:
    apart = {**ANCHORS, name: ANCHORS[name] / (1 + more) if down else ANCHORS[name] * (1 + more)}
    one = measured()
    for anchors, code in ((apart, "anchors-differ"), ({}, "no-anchors"), (None, "no-anchors")):
        other = measured("2.15", speedup=speedup, anchors=anchors)
        for found in compared(one, other)[0].rows[0].ratios:
            assert not found.significant
            if found.interval is not None:
                assert found.reason is not None
                assert found.reason.code == code


MIXED = [
    *filed([measured(case=f"table.resnet50-d-cold-{n}") for n in (1, 2, 3)]),
    *filed([measured("2.15", f"table.resnet50-d-cold-{n}", speedup=1.63 * n) for n in (1, 2, 4)]),
    *filed([measured("2.15", started="2026-12-01T08:00:00Z", run="20261201t080000z", dirty=True)], "runs"),
    *filed([measured("2.15", digest="f" * 16, run="20261129t080000z")], "runs"),
    *filed([measured(lane, scale="smoke", gpu=False) for lane in ("2.5", "2.15")], "runs"),
]
EXPECTED = compare.compare(ARTICLE, MIXED, DIGESTS, "2.5", "2.15", QUICK)


@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_files_decides_nothing(chance: random.Random) -> None:
    files = MIXED[:]
    chance.shuffle(files)
    assert compare.compare(ARTICLE, files, DIGESTS, "2.5", "2.15", QUICK) == EXPECTED


def test_the_text_is_a_summary_an_aligned_table_and_what_was_left_out() -> None:
    summary, note, heads, *rows = compare.as_text(EXPECTED[0]).splitlines()
    assert summary == (
        "2.5 to 2.15 on nvidia-h200, full scale: 2 of 4 cases compared; "
        "compiled time: 1 better, 0 worse, 1 neither; eager time: 0 better, 0 worse, 2 neither."
    )
    assert note.startswith("Release ratio: 2.5 over 2.15; above 1, 2.15 is better.")
    assert rows[0].startswith("table.resnet50-d-cold-2 ")
    assert {row[heads.index("compiled 2.15") :].split()[1] for row in rows[:2]} == {"ms"}
    assert "2.000x" in rows[0]
    assert "significant, relevant" in rows[0]
    assert "within-noise" in rows[1]
    assert rows[2:] == [
        "not compared: table.resnet50-d-cold-3: 2.5 counts, 2.15 never-measured",
        "not compared: table.resnet50-d-cold-4: 2.5 never-measured, 2.15 counts",
    ]
    assert "(local)" in compare.as_text(EXPECTED[1])


def test_the_text_has_first_calls_memory_and_graphs_of_both_lanes() -> None:
    other = measured(
        "2.15", first_call=12.0, memory={**MEMORY, "compiled_allocated": 2**30}, counters={"unique_graphs": 3}
    )
    [comparison] = compared(measured(), other)
    heads, row = (re.split(r" {2,}", line) for line in compare.as_text(comparison).splitlines()[2:])
    shown = dict(list(zip(heads, row, strict=True))[-9:])
    assert shown["first call 2.5"] == "24.0 s"
    assert shown["first call 2.15"] == "12.0 s"
    assert (shown["caches"], shown["release ratio"]) == ("cold", "2.00x")
    assert (shown["memory 2.5"], shown["memory 2.15"]) == ("2.00 GiB", "1.00 GiB")
    assert (shown["graphs, breaks 2.5"], shown["graphs, breaks 2.15"]) == ("1, 0", "3, -")


def test_no_release_ratio_is_called_a_speedup() -> None:
    objects = json.loads(json.dumps(compare.as_objects(EXPECTED)))
    assert len(objects) == 5
    assert len({tuple(sorted(one)) for one in objects}) == 1
    for one in objects:
        for found in one["release_ratios"]:
            assert not any("speedup" in key for key in (*found, found["metric"]))
            assert found["centre"] > 0
    first = objects[0]
    assert math.isclose(first["speedups"][1]["centre"] / first["speedups"][0]["centre"], 2, rel_tol=0.05)
    assert first["release_ratios"][0]["metric"] == "compiled_time"
    assert (first["significant"], first["relevant"], first["caches"]) == (True, True, "cold")
    assert first["first_calls"] == [24.0, 24.0]
    assert first["allocated"] == [{"compiled": 2**31, "eager": 3 * 2**30}] * 2
    assert (first["graphs"], first["breaks"]) == ([1, 1], [0, 0])
