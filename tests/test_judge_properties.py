"""What holds of every judgement, whatever the files and the bounds are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.claims import Bound, Claim, Speedup, Where, above, at_least, at_most, below, between, outside
from reportkit.judge import Criteria, Interval, Verdict
from reportkit.records import Measurement, Stored
from tests.casefiles import DIGESTS, case_file, changed, run_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reportkit.plan import Article
    from reportkit.records import CaseFile

QUICK = Criteria(draws=200)
CASE = "table.resnet50-d-cold-1"
AXES = {"workload": "resnet50", "precision": "d", "process": "cold-1"}
SIDES: dict[str, int] = {"refuted": -1, "inconclusive": 0, "supported": 1}

ratios = st.floats(0.3, 3)
amounts = st.floats(0, 2)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[Bound, Bound]:
    """Return a bound of any kind, and one that holds whatever the first holds."""
    edge, width, more, other = draw(ratios), draw(st.floats(0.01, 2)), draw(amounts), draw(amounts)
    kinds = {
        "at least": (at_least(edge), at_least(edge - more)),
        "at most": (at_most(edge), at_most(edge + more)),
        "above": (above(edge), above(edge - more)),
        "below": (below(edge), below(edge + more)),
        "between": (between(edge, edge + width), between(edge - more, edge + width + other)),
        # Outside a smaller range lies more.
        "outside": (outside(edge - more, edge + width + other), outside(edge, edge + width)),
    }
    return kinds[draw(st.sampled_from(sorted(kinds)))]


def side(bound: Bound, low: float, high: float) -> int:
    return SIDES[judge._against(bound, Interval(low=low, centre=(low + high) / 2, high=high)).outcome]


@given(bounds(), ratios, amounts)
def test_a_wider_bound_of_any_kind_never_moves_a_verdict_towards_refuted(
    pair: tuple[Bound, Bound], low: float, width: float
) -> None:
    narrow, wide = pair
    assert side(wide, low, low + width) >= side(narrow, low, low + width)


@given(bounds(), ratios, amounts, amounts, amounts)
def test_a_wider_interval_decides_nothing_that_a_narrower_did_not(
    pair: tuple[Bound, Bound], low: float, width: float, down: float, up: float
) -> None:
    narrow, wide = side(pair[0], low, low + width), side(pair[0], low - down, low + width + up)
    # It either keeps the verdict or gives it up.
    assert wide in {narrow, 0}


def with_claim(bound: Bound) -> Article:
    """Return the article with one claim: the speedup of one case, held to a bound."""
    claim = Claim(id="one", quantity=Speedup(Where("table", AXES)), bound=bound, on="cuda")
    last = ARTICLE.sections[-1]
    emptied = tuple(replace(section, claims=()) for section in ARTICLE.sections[:-1])
    return replace(ARTICLE, sections=(*emptied, replace(last, claims=(claim,))))


def verdict(bound: Bound, file: CaseFile) -> Verdict:
    stored = [Stored(f"results/{records.relative_path(file).as_posix()}", file)]
    [found] = judge.judge(with_claim(bound), stored, ("2.5",), DIGESTS, QUICK)
    return found


def noisier(file: CaseFile, amount: float) -> CaseFile:
    """Return the file with every sample's distance from its side's typical one stretched, in proportion, both ways."""

    def stretched(one: Measurement) -> Measurement:
        typical = sorted(one.samples)[len(one.samples) // 2]
        return Measurement(
            unit=one.unit,
            samples=[typical * (sample / typical) ** (1 + amount) for sample in one.samples],
            warmups=one.warmups,
            calls=one.calls,
        )

    return changed(
        file, measurements={n: stretched(m) if n != "first_call" else m for n, m in file.measurements.items()}
    )


@settings(max_examples=80, deadline=None)
@given(bounds(), st.floats(0.5, 2.5), st.floats(0.001, 0.1), st.floats(0, 6), st.integers(0, 9))
def test_noise_never_turns_a_verdict_into_its_opposite(
    pair: tuple[Bound, Bound], speedup: float, noise: float, more: float, seed: int
) -> None:
    file = case_file(CASE, speedup=speedup, noise=noise, started=f"2026-11-30T12:00:0{seed}Z")
    quiet, loud = verdict(pair[0], file), verdict(pair[0], noisier(file, more))
    assert SIDES[quiet.outcome] * SIDES[loud.outcome] >= 0


@settings(max_examples=80, deadline=None)
@given(st.floats(0.5, 2.5), st.floats(0.002, 0.05), st.floats(0.5, 8), st.floats(-1, 1), st.integers(0, 9))
def test_noise_leaves_an_undecided_claim_undecided(
    speedup: float, noise: float, more: float, place: float, seed: int
) -> None:
    file = case_file(CASE, speedup=speedup, noise=noise, started=f"2026-11-30T12:00:0{seed}Z")
    interval = verdict(at_least(0), file).interval
    assert interval is not None
    # A bound that straddles: somewhere in the middle half of the interval.
    bound = at_least(interval.centre + place / 2 * min(interval.high - interval.centre, interval.centre - interval.low))
    assert verdict(bound, file).outcome == "inconclusive"
    assert verdict(bound, noisier(file, more)).outcome == "inconclusive"


SPOILS: dict[str, Callable[[CaseFile], CaseFile]] = {
    "stale code": lambda file: changed(file, digest="f" * 16),
    "stale protocol": lambda file: changed(file, protocol=0),
    "dirty": lambda file: changed(file, provenance=_dirty(file)),
    "smoke": lambda file: changed(file, scale="smoke"),
    "failed": lambda file: changed(file, status="failed", reason="made up"),
    "contributed": lambda file: changed(file, machine="strangers-gpu"),
}
GOOD = run_files(only="table.resnet50")
CLAIMS = {"table-resnet50", "resnet50-stable"}


def _dirty(file: CaseFile) -> records.Provenance:
    return records.Provenance(
        **{**{name: getattr(file.provenance, name) for name in file.provenance.__struct_fields__}, "dirty": True}
    )


def counted(files: list[CaseFile]) -> set[str]:
    """Return which claims the tally counts as supported at full scale, on the article's own machines."""
    stored = [Stored(f"results/{records.relative_path(file).as_posix()}", file) for file in files]
    return {
        one.claim
        for one in judge.judge(ARTICLE, stored, ("2.5",), DIGESTS, QUICK)
        if one.outcome == "supported" and one.scale == "full" and not one.contributed
    }


def test_whole_files_support_these_claims() -> None:
    assert counted(GOOD) == CLAIMS


@pytest.mark.parametrize("spoil", SPOILS)
@settings(max_examples=15, deadline=None)
@given(whole=st.sets(st.sampled_from(range(len(GOOD)))), older=st.sets(st.sampled_from(range(len(GOOD)))))
def test_what_does_not_count_supports_nothing_and_does_not_help(spoil: str, whole: set[int], older: set[int]) -> None:
    spoilt = [SPOILS[spoil](changed(file, run="20261201t080000z")) for file in GOOD]
    kept = [GOOD[number] for number in sorted(whole)]
    # Spoilt in another way, or in the same one a run before.
    others = [SPOILS["stale code"](GOOD[number]) for number in sorted(older - whole)]
    assert counted([*spoilt, *others]) == set()
    assert counted([*kept, *others, *spoilt]) <= counted(kept)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_file_is_not_believed(tmp_path_factory: object, data: st.DataObject) -> None:
    root: Path = tmp_path_factory.mktemp("damaged")  # type: ignore[attr-defined]
    for file in GOOD:
        path = records.write(root / "results", file)
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 3))])
    stored, damaged = records.load(root)
    assert (len(stored), len(damaged)) == (0, len(GOOD))
    assert counted([one.file for one in stored]) == set()
