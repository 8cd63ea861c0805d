"""Every gate, bound and rule of the judge, one row each."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.claims import (
    SHOWN,
    TRUE,
    Bound,
    Claim,
    Each,
    Fact,
    FirstCall,
    Ratio,
    Speedup,
    Spread,
    Where,
    above,
    at_least,
    at_most,
    below,
    between,
    outside,
)
from reportkit.judge import REASONS, Criteria, Interval, Verdict
from reportkit.plan import Article, Case, Experiment, Section
from reportkit.records import CaseFile, Stored
from tests.casefiles import DIGEST, DIGESTS, case_file, changed, environment, run_files

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from reportkit.plan import Kind

LANES = ("2.4", "2.5", "2.15")
QUICK = Criteria(draws=400)


def filed(files: Iterable[CaseFile], folder: str = "results") -> list[Stored]:
    return [Stored(f"{folder}/{records.relative_path(file).as_posix()}", file) for file in files]


@cache
def about(claim: str) -> Article:
    """Return the article with one claim, where it was: judging all of them for each test takes minutes."""
    sections = [
        replace(section, claims=tuple(c for c in section.claims if c.id == claim)) for section in ARTICLE.sections
    ]
    return replace(ARTICLE, sections=tuple(sections))


def judged(
    files: Iterable[CaseFile], claim: str = "table-resnet50", *, lane: str = "2.5", folder: str = "results"
) -> list[Verdict]:
    return list(judge.judge(about(claim), filed(files, folder), (lane,), DIGESTS, QUICK))


def said(files: Iterable[CaseFile], claim: str = "table-resnet50", **more: Any) -> tuple[str, str]:
    [verdict] = judged(files, claim, **more)
    return verdict.outcome, verdict.reason.code


def headline(
    change: Callable[[CaseFile], CaseFile | None] = lambda file: file,
    only: str = "table.resnet50-d-cold-1",
    **more: Any,
) -> list[CaseFile]:
    """Return a whole run with `change` made to the files whose name starts with `only`; None leaves one out."""
    files = [change(file) if file.case.startswith(only) else file for file in run_files(**more)]
    return [file for file in files if file is not None]


def with_environment(**fields: Any) -> Callable[[CaseFile], CaseFile]:
    return lambda file: changed(file, environment=environment(**fields))


def with_telemetry(**fields: Any) -> Callable[[CaseFile], CaseFile]:
    return lambda file: changed(file, telemetry=msgspec.structs.replace(file.telemetry, **fields))


def remade(**fields: Any) -> Callable[[CaseFile], CaseFile]:
    return lambda file: case_file(file.case, **fields)


def without(metric: str) -> Callable[[CaseFile], CaseFile]:
    return lambda file: changed(
        file, measurements={k: m for k, m in file.measurements.items() if not k.endswith(metric)}
    )


NUMBER_GATES: dict[str, tuple[list[CaseFile], tuple[str, str]]] = {
    "all is well": (headline(), ("supported", "inside")),
    "stale code": (headline(remade(digest="f" * 16)), ("inconclusive", "stale")),
    "stale protocol": (headline(lambda file: changed(file, protocol=0)), ("inconclusive", "stale")),
    "dirty": (headline(remade(dirty=True)), ("inconclusive", "dirty")),
    "failed": (headline(remade(status="failed")), ("inconclusive", "failed")),
    "out of memory": (headline(remade(status="out-of-memory")), ("inconclusive", "failed")),
    "unavailable": (headline(remade(status="unavailable")), ("not-measured", "unavailable")),
    "one missing": (headline(lambda _: None), ("inconclusive", "not-all-measured")),
    "all missing": (headline(lambda _: None, only="table.resnet50"), ("not-measured", "never-measured")),
    "one setting missing": (headline(lambda _: None, only="table.resnet50-t"), ("inconclusive", "not-all-measured")),
    "not timed": (headline(without("_gpu")), ("supported", "inside")),
    "not timed at all": (
        headline(lambda file: without("_wall")(without("_gpu")(file))),
        ("inconclusive", "not-timed"),
    ),
    "wrong": (headline(remade(right=False)), ("inconclusive", "wrong-result")),
    "unchecked": (headline(lambda file: changed(file, correctness=None)), ("inconclusive", "unchecked-result")),
    "no graphs": (headline(remade(graphs=0)), ("inconclusive", "no-graphs")),
    "no graph counter": (headline(lambda file: changed(file, counters={})), ("inconclusive", "no-graphs")),
    "few pairs": (headline(remade(pairs=29)), ("inconclusive", "too-few-pairs")),
    "throttled": (headline(with_telemetry(dropped_pairs=16)), ("inconclusive", "throttled")),
    "hardly throttled": (headline(with_telemetry(dropped_pairs=15)), ("supported", "inside")),
    "noisy": (headline(remade(noise=0.8)), ("inconclusive", "noisy")),
    "another driver": (headline(with_environment(driver="571")), ("inconclusive", "different-environments")),
    "another torch build": (headline(with_environment(torch_git="b")), ("inconclusive", "different-environments")),
    "another package": (
        headline(with_environment(packages={"torch": "2.5.1+cu124", "transformers": "4.57.6"})),
        ("inconclusive", "different-environments"),
    ),
    "another variable": (headline(with_environment(variables={"A": "b"})), ("supported", "inside")),
    "too fast": (run_files(speedups={"resnet50": 2.4}), ("refuted", "outside")),
    "too slow": (run_files(speedups={"resnet50": 1.1}), ("refuted", "outside")),
    "at the bound": (run_files(speedups={"resnet50": 1.42}), ("inconclusive", "straddles")),
    "settings disagree": (
        headline(remade(speedup=1.2), only="table.resnet50-t"),
        ("inconclusive", "depends-on-setting"),
    ),
    "a setting undecided": (
        headline(remade(speedup=1.42), only="table.resnet50-t"),
        ("inconclusive", "straddles"),
    ),
    "wrong before noisy": (headline(remade(right=False, noise=0.9, pairs=3)), ("inconclusive", "wrong-result")),
    "stale before dirty": (headline(remade(digest="f" * 16, dirty=True)), ("inconclusive", "stale")),
}


@pytest.mark.parametrize("gate", NUMBER_GATES)
def test_a_speedup_passes_every_gate_or_says_which_not(gate: str) -> None:
    files, expected = NUMBER_GATES[gate]
    assert said(files) == expected


def test_details_are_those_that_sentences_may_use() -> None:
    everything = [
        verdict
        for files, _ in NUMBER_GATES.values()
        for verdict in judge.judge(ARTICLE, filed(files), LANES, DIGESTS, QUICK)
    ]
    everything += judge.judge(ARTICLE, filed(run_files(gpu=False, scale="smoke")), LANES, DIGESTS, QUICK)
    reasons = [reason for v in everything for reason in (v.reason, *(part.reason for part in v.parts))]
    for reason in reasons:
        assert set(reason.details) == set(REASONS[reason.code]), reason.code


OTHER_CLAIMS: dict[str, tuple[str, list[CaseFile], tuple[str, str]]] = {
    "spread: stable": ("resnet50-stable", run_files(), ("supported", "inside")),
    "spread: one process apart": (
        "resnet50-stable",
        headline(remade(speedup=1.9), only="table.resnet50-d-cold-4"),
        ("refuted", "outside"),
    ),
    "spread: one process missing": (
        "resnet50-stable",
        headline(lambda _: None, only="table.resnet50-d-cold-5"),
        ("inconclusive", "not-all-measured"),
    ),
    "first calls: slower": ("bert-compile-costly", run_files(), ("supported", "inside")),
    "first calls: no clock needed": (
        "bert-compile-costly",
        headline(without("_gpu"), only="table"),
        ("supported", "inside"),
    ),
    "first calls: missing": (
        "bert-compile-costly",
        headline(without("first_call"), only="table.bert-d-cold-3"),
        ("inconclusive", "not-timed"),
    ),
    "first calls: scattered": (
        "bert-compile-costly",
        headline(remade(first_call=400.0), only="table.bert-d-cold-3"),
        ("inconclusive", "noisy"),
    ),
    "each ratio": ("cache-saves-time", run_files(), ("supported", "inside")),
    "each: one refuted refutes": (
        "cache-saves-time",
        headline(remade(first_call=40.0), only="table.bert-d-warm"),
        ("refuted", "outside"),
    ),
    "each: one undecided": (
        "cache-saves-time",
        headline(remade(right=False), only="table.bert-d-warm-4"),
        ("inconclusive", "wrong-result"),
    ),
    "each: one part missing": (
        "cache-saves-time",
        headline(lambda _: None, only="table.bert"),
        ("inconclusive", "not-all-measured"),
    ),
    "fact: holds": ("default-inductor", run_files(), ("supported", "finding-holds")),
    "fact: fails": (
        "default-inductor",
        run_files(findings={"inductor-by-default": False}),
        ("refuted", "finding-fails"),
    ),
    "fact: failed": (
        "default-inductor",
        headline(remade(status="crashed"), only="default-backend"),
        ("inconclusive", "failed"),
    ),
    "fact: without the finding": (
        "default-inductor",
        headline(lambda file: changed(file, findings={}), only="default-backend"),
        ("inconclusive", "finding-missing"),
    ),
    "fact: its case counts no graphs itself": (
        "default-inductor",
        headline(lambda file: changed(file, counters={}), only="default-backend"),
        ("supported", "finding-holds"),
    ),
    "fact of a timing case: no graphs": (
        "cache-hits",
        headline(lambda file: changed(file, counters={"unique_graphs": 0}), only="table.bert-d-warm-3"),
        ("inconclusive", "no-graphs"),
    ),
    "fact: one of three processes disagrees": (
        "cache-hits",
        headline(
            lambda file: changed(
                file, findings={n: msgspec.structs.replace(f, holds=False) for n, f in file.findings.items()}
            ),
            only="table.bert-d-warm-3",
        ),
        ("refuted", "finding-fails"),
    ),
}


@pytest.mark.parametrize("what", OTHER_CLAIMS)
def test_other_quantities(what: str) -> None:
    claim, files, expected = OTHER_CLAIMS[what]
    assert said(files, claim) == expected


@pytest.mark.parametrize(
    ("bound", "low", "high", "expected"),
    [
        (between(1.2, 1.4), 1.2, 1.4, "supported"),
        (between(1.2, 1.4), 1.1, 1.2, "inconclusive"),
        (between(1.2, 1.4), 1.0, 1.1, "refuted"),
        (between(1.2, 1.4), 1.5, 1.6, "refuted"),
        (between(1.2, 1.4), 1.0, 1.6, "inconclusive"),
        (at_least(1.2), 1.2, 1.3, "supported"),
        (at_least(1.2), 1.1, 1.19, "refuted"),
        (at_least(1.2), 1.1, 1.2, "inconclusive"),
        (at_most(0.5), 0.4, 0.5, "supported"),
        (at_most(0.5), 0.5, 0.6, "inconclusive"),
        (at_most(0.5), 0.51, 0.6, "refuted"),
        (above(1.0), 1.0, 1.1, "inconclusive"),
        (above(1.0), 1.01, 1.1, "supported"),
        (above(1.0), 0.9, 1.0, "refuted"),
        (below(0.95), 0.9, 0.95, "inconclusive"),
        (below(0.95), 0.9, 0.94, "supported"),
        (below(0.95), 0.95, 0.99, "refuted"),
        (outside(0.9, 1.1), 0.7, 0.8, "supported"),
        (outside(0.9, 1.1), 1.2, 1.3, "supported"),
        (outside(0.9, 1.1), 0.9, 1.1, "refuted"),
        (outside(0.9, 1.1), 0.8, 0.9, "inconclusive"),
        (outside(0.9, 1.1), 0.8, 1.3, "inconclusive"),
        (SHOWN, 0.8, 1.3, "shown"),
    ],
)
def test_bounds(bound: Bound, low: float, high: float, expected: str) -> None:
    ruling = judge._against(bound, Interval(low=low, centre=(low + high) / 2, high=high))
    assert ruling.outcome == expected
    assert ruling.interval is not None


@given(st.floats(0.1, 3), st.floats(0, 1), st.floats(0.1, 3), st.floats(0.01, 2), st.floats(0, 2), st.floats(0, 2))
def test_a_wider_bound_never_turns_supported_into_refuted(
    low: float, width: float, bound: float, span: float, down: float, up: float
) -> None:
    interval = Interval(low=low, centre=low + width / 2, high=low + width)
    narrow = judge._against(between(bound, bound + span), interval).outcome
    wide = judge._against(between(bound - down, bound + span + up), interval).outcome
    rank = {"refuted": 0, "inconclusive": 1, "supported": 2}
    assert rank[wide] >= rank[narrow]


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_files_decides_nothing(chance: random.Random) -> None:
    files = MIXED[:]
    chance.shuffle(files)
    assert judge.judge(ARTICLE, files, LANES, DIGESTS, QUICK) == EXPECTED
    assert judge.observe(ARTICLE, files, DIGESTS, QUICK) == OBSERVED


LATER: dict[str, Any] = {"run": "20261201t080000z", "started": "2026-12-01T08:00:00Z"}
MIXED = [
    *filed(run_files(only="table.resnet50-d")),
    *filed(run_files(only="table.resnet50-d", dirty=True, **LATER), "runs"),
    *filed(run_files(only="table.resnet50-t", digest="0" * 16)),
    *filed(run_files(only="table.resnet50-t", digest="1" * 16, run="20261130t120000z-2"), "runs"),
    *filed(run_files(lane="2.4", gpu=False, scale="smoke", findings={"cache-hit": False}), "runs"),
    *filed(run_files(gpu=False, scale="smoke", only="table.resnet50"), "runs"),
]
EXPECTED = judge.judge(ARTICLE, MIXED, LANES, DIGESTS, QUICK)
OBSERVED = judge.observe(ARTICLE, MIXED, DIGESTS, QUICK)


def test_the_newest_file_that_counts_counts() -> None:
    old = run_files(speedups={"resnet50": 1.2})
    new = run_files(**LATER)
    assert said([*old, *new]) == ("supported", "inside")
    assert said([*old, *run_files(**LATER, dirty=True)]) == ("refuted", "outside")
    assert said([*old, *run_files(**LATER, digest="f" * 16)]) == ("refuted", "outside")
    assert said([*old, *run_files(**LATER, status="failed")]) == ("refuted", "outside")
    [verdict] = judged([*old, *new])
    assert all(LATER["run"] in file for file in verdict.files)
    assert not verdict.local


def test_full_scale_is_never_overruled_by_smoke_nor_mixed_with_it() -> None:
    smoke = run_files(scale="smoke", speedups={"resnet50": 1.2}, **LATER)
    [verdict] = judged([*run_files(), *smoke])
    assert (verdict.outcome, verdict.scale) == ("supported", "full")
    [verdict] = judged(smoke)
    assert verdict.scale == "smoke"
    # There is one precision at smoke scale.
    assert {part.setting: part.outcome for part in verdict.parts} == {"d": "refuted", "t": "not-measured"}
    [verdict] = judged([*smoke, *headline(lambda _: None, only="table.resnet50-t")])
    assert (verdict.reason.code, verdict.scale) == ("not-all-measured", "full")


def test_a_kept_copy_counts_before_the_local_one() -> None:
    files = [*filed(run_files(), "runs"), *filed(run_files())]
    verdicts = judge.judge(ARTICLE, files, ("2.5",), DIGESTS, QUICK)
    assert not any(verdict.local for verdict in verdicts)
    assert all(file.startswith("results/") for verdict in verdicts for file in verdict.files)
    assert all(v.local for v in judged(run_files(), folder="runs"))


def test_nothing_measured_is_a_row_too() -> None:
    verdicts = judge.judge(ARTICLE, [], LANES, DIGESTS, QUICK)
    assert len(verdicts) == len(ARTICLE.claims) * len(LANES)
    assert {v.machine for v in verdicts} == {None}
    assert {v.outcome for v in verdicts} == {"not-measured", "not-testable"}
    assert {v.reason.code for v in verdicts} == {"lane-never-measured", "see-lane", "not-testable"}
    order = [(claim.id, lane) for claim in ARTICLE.claims for lane in LANES]
    assert [(v.claim, v.lane) for v in verdicts] == order


def test_a_machine_has_a_row_in_each_lane_that_it_has_a_file_of_and_the_articles_come_first() -> None:
    files = [
        *run_files(only="default", machine="a-machine"),
        *run_files(only="default", machine="nvidia-h200"),
        *run_files(only="default", lane="2.4", machine="b-machine"),
    ]
    rows = [(v.lane, v.machine, v.contributed) for lane in LANES for v in judged(files, "default-inductor", lane=lane)]
    assert rows == [
        ("2.4", "b-machine", True),
        ("2.5", "nvidia-h200", False),
        ("2.5", "a-machine", True),
        ("2.15", None, False),
    ]
    everything = judge.judge(ARTICLE, filed(run_files(only="default")), ("2.5",), DIGESTS, QUICK)
    assert {v.reason.code for v in everything if v.claim == "table-bert"} == {"never-measured"}


def test_without_a_gpu_cuda_claims_are_not_measured_and_their_times_are_shown() -> None:
    cpu = run_files(gpu=False, scale="smoke")
    [verdict] = judged(cpu)
    assert (verdict.outcome, verdict.reason.code, verdict.interval) == ("not-measured", "needs-gpu", None)
    assert [part.outcome for part in verdict.parts] == ["not-measured", "not-measured"]
    assert {part.setting for part in verdict.parts if part.interval is not None} == {"d"}  # All that smoke scale has.
    assert verdict.files
    assert said(cpu, "default-inductor") == ("supported", "finding-holds")
    everything = judge.judge(ARTICLE, filed(run_files(gpu=False, only="default")), ("2.5",), DIGESTS, QUICK)
    assert {v.reason.code for v in everything if v.claim == "table-bert"} == {"needs-gpu"}


CACHE = "cache-new-in-2.5"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (False, True, ("supported", "finding-holds")),
        (True, True, ("refuted", "finding-fails")),
        (False, False, ("refuted", "finding-fails")),
        (None, True, ("not-measured", "baseline-lane-missing")),
        (None, False, ("refuted", "finding-fails")),
    ],
)
def test_a_claim_over_two_lanes_of_one_machine(old: bool | None, new: bool, expected: tuple[str, str]) -> None:  # noqa: FBT001
    files = run_files(gpu=False, scale="smoke", findings={"cache-hit": new})
    if old is not None:
        files += run_files(lane="2.4", gpu=False, scale="smoke", findings={"cache-hit": old})
    assert said(files, CACHE) == expected
    [verdict] = judged(files, CACHE)
    assert [part.holds for part in verdict.parts] == [old, new]
    elsewhere = judged(files, CACHE, lane="2.15")
    assert [(v.outcome, v.reason.code, v.reason.details) for v in elsewhere] == [
        ("not-measured", "see-lane", {"lane": "2.5"})
    ]


def test_the_other_lane_on_another_machine_is_no_baseline() -> None:
    files = run_files() + run_files(lane="2.4", machine="nvidia-a100", findings={"cache-hit": False})
    [verdict] = [v for v in judged(files, CACHE) if v.machine == "nvidia-h200"]
    assert verdict.reason.code == "baseline-lane-missing"


def test_of_nightly_only_the_newest_build_counts() -> None:
    def nightly(build: str, **more: Any) -> list[CaseFile]:
        return [changed(file, environment=environment(torch_git=build), lane="nightly") for file in run_files(**more)]

    def verdict(files: list[CaseFile]) -> Verdict:
        [found] = [
            v for v in judge.judge(ARTICLE, filed(files), ("nightly",), DIGESTS, QUICK) if v.claim == "table-resnet50"
        ]
        return found

    whole = nightly("old")
    assert verdict(whole).outcome == "supported"
    assert verdict([*whole, *nightly("new", only="table.resnet50-d", **LATER)]).reason.code == "not-all-measured"
    assert verdict([*whole, *nightly("new", only="table.resnet50-d", dirty=True, **LATER)]).outcome == "supported"
    assert verdict([*whole, *nightly("old", only="table.resnet50-d", **LATER)]).outcome == "supported"


def test_a_shown_claim_has_no_verdict_but_its_number() -> None:
    claims = {c.id: c for c in ARTICLE.claims}
    shown = replace(claims["table-resnet50"], id="shown-one", bound=SHOWN)
    article = with_claims(shown)
    [verdict] = judge.judge(article, filed(run_files()), ("2.5",), DIGESTS, QUICK)
    assert (verdict.outcome, verdict.reason.code) == ("shown", "shown")
    assert verdict.interval is not None
    [verdict] = judge.judge(article, filed(headline(remade(right=False))), ("2.5",), DIGESTS, QUICK)
    assert (verdict.outcome, verdict.reason.code, verdict.interval) == ("shown", "wrong-result", None)


def with_claims(*claims: Claim) -> Article:
    last = ARTICLE.sections[-1]
    emptied = tuple(replace(section, claims=()) for section in ARTICLE.sections[:-1])
    return replace(ARTICLE, sections=(*emptied, replace(last, claims=claims)))


def test_too_few_processes() -> None:
    where = Where("table", {"workload": "resnet50", "precision": "d", "process": ("cold-1", "cold-2")})
    claim = Claim(id="few", quantity=FirstCall(where), bound=between(2, 100), on="cuda")
    [verdict] = judge.judge(with_claims(claim), filed(run_files()), ("2.5",), DIGESTS, QUICK)
    assert (verdict.reason.code, verdict.reason.details) == ("too-few-processes", {"processes": 2, "needed": 3})


def test_a_first_call_is_in_seconds() -> None:
    where = Where("table", {"workload": "resnet50", "precision": "d", "process": ("cold-1", "cold-2", "cold-3")})
    claim = Claim(id="level", quantity=FirstCall(where), bound=between(2, 100), on="cuda")
    [verdict] = judge.judge(with_claims(claim), filed(run_files()), ("2.5",), DIGESTS, QUICK)
    assert verdict.outcome == "supported"
    assert verdict.interval is not None
    assert verdict.interval.unit == "s"
    assert verdict.interval.centre == pytest.approx(22)


def test_a_ratio_may_compare_lanes_but_not_machines() -> None:
    there, here = (
        Where("table", {"workload": "resnet50", "precision": "d", "process": "cold-1"}, lane) for lane in ("2.4", "2.5")
    )
    claim = Claim(
        id="both", quantity=Ratio(Speedup(there), Speedup(here)), bound=between(0.9, 1.1), on="cuda", lane="2.5"
    )
    article = with_claims(claim)
    files = run_files() + run_files(lane="2.4")
    [verdict] = judge.judge(article, filed(files), ("2.5",), DIGESTS, QUICK)
    assert verdict.outcome == "supported"
    files = run_files() + run_files(lane="2.4", environment=environment(torch="2.4.1", driver="535"))
    [verdict] = judge.judge(article, filed(files), ("2.5",), DIGESTS, QUICK)
    assert verdict.reason.details == {"field": "driver", "one": "535", "other": "570.86.15"}


def test_the_interval_is_around_the_truth_and_the_same_every_time() -> None:
    [one], [other] = judged(run_files()), judged(run_files())
    assert one == other
    assert one.interval is not None
    assert one.interval.low < 1.63 < one.interval.high
    assert one.interval.centre == pytest.approx(1.63, rel=5e-3)


def test_observations_are_the_current_file_of_each_case() -> None:
    cold = "table.resnet50-d-cold-1"
    files = [
        *run_files(only=cold),
        *run_files(only=cold, dirty=True, **LATER),
        *run_files(lane="2.15", only=cold, digest="f" * 16),
        *run_files(lane="2.4", only=cold, right=False),
        *run_files(lane="2.4", only="default-backend"),
    ]
    seen = judge.observe(ARTICLE, filed(files), DIGESTS, QUICK)
    assert [(o.case, o.stored.file.lane, o.stale, o.problem.code if o.problem else None) for o in seen] == [
        ("default-backend.gelu", "2.4", False, None),
        (cold, "2.4", False, "wrong-result"),
        (cold, "2.5", False, None),
        (cold, "2.15", True, "stale"),
    ]
    fact, wrong, good, stale = seen
    assert (fact.eager, fact.speedup, fact.first_call) == (None, None, None)
    assert wrong.eager is not None
    assert wrong.speedup is None
    assert good.eager is not None
    assert good.speedup is not None
    assert good.eager.unit == "s"
    assert good.eager.centre == pytest.approx(0.0124, rel=0.01)
    assert good.speedup.centre == pytest.approx(1.63, rel=0.01)
    assert good.first_call == 22.0
    assert stale.speedup is not None


def test_a_file_that_does_not_speak_for_its_case_says_why() -> None:
    name = "table.resnet50-d-cold-1"
    runs: dict[str, dict[str, Any]] = {
        "protocol": {"protocol": records.PROTOCOL - 1},
        "digest": {"digest": "0" * 16},
        "dirty": {"dirty": True},
        "unavailable": {"status": "unavailable"},
        "failed": {"status": "out-of-memory"},
        "superseded": {},
        "overruled": {"scale": "smoke"},
    }
    files = [
        case_file(name, **{"digest": DIGESTS[name], "run": f"run-{why}", "started": f"2026-11-0{day}T00:00:00Z"} | wish)
        for day, (why, wish) in enumerate(runs.items(), 1)
    ]
    current = case_file(name, digest=DIGESTS[name], run="current", started="2026-11-20T00:00:00Z")
    found = judge.unused(ARTICLE, filed([*files, current]), DIGESTS)
    assert {path.partition("--run-")[2].removesuffix(".json"): why for path, why in found.items()} == {
        why: why for why in runs
    }
    # Where none counts, the newest speaks; every other one still says what is wrong with it.
    stale = [one for one in files if one.run in {"run-protocol", "run-digest"}]
    assert list(judge.unused(ARTICLE, filed(stale), DIGESTS).values()) == ["protocol"]


def test_a_file_of_an_older_nightly_does_not_speak() -> None:
    name = "table.resnet50-d-cold-1"
    files = [
        case_file(
            name,
            digest=DIGESTS[name],
            lane="nightly",
            run=f"run-{day}",
            started=f"2026-11-0{day}T00:00:00Z",
            environment=environment(torch_git=f"{day}" * 40),
        )
        for day in (1, 2)
    ]
    [(path, why)] = judge.unused(ARTICLE, filed(files), DIGESTS).items()
    assert path.endswith("--run-1.json")
    assert why == "older-build"


def test_objects_are_json_with_the_promised_keys() -> None:
    verdicts = judge.judge(ARTICLE, filed(run_files()), LANES, DIGESTS, QUICK)
    objects = json.loads(json.dumps(judge.as_objects(verdicts)))
    assert len(objects) == len(verdicts)
    keys = {"id", "section", "lane", "machine", "scale", "local", "verdict", "reason"}
    keys |= {"interval", "bound", "parts", "files"}
    assert all(set(one) == keys for one in objects)
    parts = {"label", "setting", "verdict", "reason", "interval", "holds", "files"}
    assert all(set(part) == parts for one in objects for part in one["parts"])
    assert all({file for part in one["parts"] for file in part["files"]} <= set(one["files"]) for one in objects)
    sentences = {code: code + "".join(f" {{{detail}}}" for detail in details) for code, details in REASONS.items()}
    worded = judge.as_objects(verdicts, sentences)
    assert worded[0]["reason"]["sentence"] == "lane-never-measured 2.4"


def test_the_table_is_aligned_and_says_no_more_than_the_interval() -> None:
    table = judge.as_table(judge.judge(ARTICLE, filed(run_files(), "runs"), ("2.5",), DIGESTS, QUICK))
    lines = table.splitlines()
    assert len(lines) == 1 + len(ARTICLE.claims)
    row = next(line for line in lines if line.startswith("table-resnet50"))
    assert "nvidia-h200 (local)  full" in row
    assert row.endswith("inside")
    assert "1.631x" in row
    column = lines[0].index("lane")
    # The lane's column starts where its heading does; 2.5 is the only lane judged.
    assert {line[column : column + 4].strip() for line in lines[1:]} == {"2.5"}


FACT_PLAN: Mapping[str, Any] = {"experiment": "f", "workload": "w", "cost": {"full": 1, "smoke": 1}}
ALIKE: Mapping[str, Any] = {**FACT_PLAN, "experiment": "alike"}


def test_a_fact_over_several_workloads_needs_each() -> None:
    experiment = Experiment(
        id="f",
        kind="fact",
        cases=tuple(Case(axes={"workload": name}, **FACT_PLAN) for name in ("a", "b")),
        prepare=lambda _case, _here: dict,
    )
    quantity = Each({name: Fact(Where("f", {"workload": name}), "x") for name in ("a", "b")})
    claim = Claim(id="c", quantity=quantity, bound=TRUE, on="any")
    section = Section(id="s", number=1, claims=(claim,), experiments=(experiment,))
    article = Article(id="a", lane="2.5", machines=(), sections=(section,))
    digests = {"f.a": DIGEST, "f.b": DIGEST}

    def outcome(**found: bool) -> str:
        files = [case_file(f"f.{name}", speedup=None, first_call=None, findings={"x": h}) for name, h in found.items()]
        return judge.judge(article, filed(files), ("2.5",), digests, QUICK)[0].outcome

    assert outcome(a=True, b=True) == "supported"
    assert outcome(a=True, b=False) == "refuted"
    assert outcome(b=False) == "refuted"
    assert outcome(b=True) == "inconclusive"


@pytest.mark.parametrize(
    ("kind", "outcome", "code"),
    [
        ("timing", "inconclusive", "no-graphs"),
        ("control", "supported", "inside"),
        ("trap", "supported", "inside"),
        ("bench", "supported", "inside"),
    ],
)
def test_only_a_timing_must_have_compiled_something(kind: Kind, outcome: str, code: str) -> None:
    experiment = Experiment(
        id="alike", kind=kind, cases=(Case(axes={"workload": "a"}, **ALIKE),), prepare=lambda _case, _here: dict
    )
    where = Where("alike", {"workload": "a"})
    number = Claim(id="number", quantity=Speedup(where), bound=between(0.97, 1.03), on="any")
    fact = Claim(id="fact", quantity=Fact(where, "x"), bound=TRUE, on="any")
    section = Section(id="s", number=0, claims=(number, fact), experiments=(experiment,))
    article = Article(id="a", lane="2.5", machines=(), sections=(section,))
    files = filed([case_file("alike.a", speedup=1.0, graphs=0, findings={"x": True})])

    said = {v.claim: v for v in judge.judge(article, files, ("2.5",), {"alike.a": DIGEST}, QUICK)}
    [seen] = judge.observe(article, files, {"alike.a": DIGEST}, QUICK)

    assert (said["number"].outcome, said["number"].reason.code) == (outcome, code)
    assert said["fact"].outcome == outcome
    assert (seen.speedup is None) == (kind == "timing")
    assert (seen.problem is None) == (kind != "timing")
    [wrong] = judge.observe(article, filed([changed(files[0].file, correctness=None)]), {"alike.a": DIGEST}, QUICK)
    assert wrong.problem is not None
    assert wrong.problem.code == "unchecked-result"


def test_a_spread_takes_two_processes() -> None:
    where = Where("table", {"workload": "resnet50", "precision": "d", "process": "cold-1"})
    claim = Claim(id="one", quantity=Spread(where), bound=at_most(1.05), on="cuda")
    [verdict] = judge.judge(with_claims(claim), filed(run_files()), ("2.5",), DIGESTS, QUICK)
    assert (verdict.reason.code, verdict.reason.details) == ("too-few-processes", {"processes": 1, "needed": 2})


def test_a_machine_on_which_only_the_ruler_was_tried_says_nothing_of_a_claim() -> None:
    only = case_file("calibration.aa-quiet", machine="elsewhere")
    assert {verdict.machine for verdict in judged([*headline(), only])} == {"nvidia-h200"}
    assert judged([only])[0].machine is None


def test_what_timed_nothing_is_not_stale_by_the_protocol() -> None:
    old = [changed(file, protocol=1) for file in run_files(only="from-pretrained")]
    assert not old[0].measurements
    assert said(old, "q3-from-pretrained") == ("supported", "finding-holds")
