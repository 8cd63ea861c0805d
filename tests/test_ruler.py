"""How good the ruler is, on made-up benches whose answer is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from reportkit import judge, ruler
from reportkit.records import Measurement
from tests.casefiles import case_file, provenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reportkit.records import CaseFile

Interval = tuple[float, float]
HOLDS, MISSES = (0.995, 1.005), (1.001, 1.005)
DIFFERS: Interval = (1.011, 1.02)


def one(*samples: float, unit: str = "1") -> Measurement:
    return Measurement(unit=unit, samples=list(samples))  # type: ignore[arg-type]


def trials(intervals: Sequence[Interval], truth: float = 1.0, pairs: int = 30) -> dict[str, Measurement]:
    """Return the measurements of a calibration with these intervals."""
    return {
        "pairs": one(*[float(pairs)] * len(intervals)),
        "low": one(*(low for low, _ in intervals)),
        "centre": one(*((low + high) / 2 for low, high in intervals)),
        "high": one(*(high for _, high in intervals)),
        "truth": one(truth),
    }


def read(ratios: Sequence[float], seconds: float) -> tuple[Sequence[float], float]:
    return ratios, seconds


def comparison(truth: float = 1.0, /, **timers: tuple[Sequence[float], float]) -> dict[str, Measurement]:
    """Return the measurements of a comparison: ratios and mean seconds by timer, `_` for `-`."""
    found = {"truth": one(truth)}
    for name, (ratios, seconds) in timers.items():
        found[f"{name.replace('_', '-')}.ratio"] = one(*ratios)
        found[f"{name.replace('_', '-')}.seconds"] = one(*([seconds] * len(ratios)), unit="s")
    return found


def spread(deviation: float, centre: float = 1.0, repeats: int = 20) -> list[float]:
    """Return ratios of which one has this relative standard deviation, over n - 1."""
    step = deviation * math.sqrt((repeats - 1) / repeats)
    return [centre * math.exp((-1) ** i * step) for i in range(repeats)]


def bench(measurements: dict[str, Measurement], workload: str = "launch-bound", **overrides: Any) -> CaseFile:
    return case_file(measurements=measurements, axes={"workload": workload}, **overrides)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    # Wilson's interval, by the tables in Newcombe 1998 (81 of 263, 15 of 148, 0 of 20, 1 of 29).
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (0, 0, 0.0, 1.0),
    ],
)
def test_a_share_has_wilsons_interval(hits: int, of: int, low: float, high: float) -> None:
    assert ruler.Share(hits, of).interval == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("intervals", "truth", "held", "false"),
    [
        ([HOLDS, HOLDS, MISSES, DIFFERS], 1.0, 2, (1, 4)),
        ([(0.98, 0.989), (0.98, 0.99)], 1.0, 0, (1, 2)),
        # With a difference to be found, finding one is not false.
        ([(1.04, 1.06), DIFFERS], 1.05, 1, (0, 0)),
        # An interval that ends at the truth holds it.
        ([(1.0, 1.0)], 1.0, 1, (0, 1)),
    ],
)
def test_coverage_and_false_differences(
    intervals: list[Interval], truth: float, held: int, false: tuple[int, int]
) -> None:
    measured = trials(intervals, truth)
    assert ruler.is_calibration(measured)
    assert ruler.coverage(measured) == ruler.Share(held, len(intervals))
    assert ruler.false_differences(measured) == ruler.Share(*false)


def test_readings_may_be_narrow_and_off_the_truth() -> None:
    measured = trials([(1.0485, 1.0495), (1.0486, 1.0494), (1.0483, 1.0497)], truth=1.05)
    assert ruler.coverage(measured) == ruler.Share(0, 3)
    assert ruler.bias(measured) == pytest.approx(1.049 / 1.05 - 1)
    assert ruler.half_width(measured) == pytest.approx(0.0005 / 1.049)


def test_what_the_judge_would_not_judge_is_no_false_difference() -> None:
    wide = [(1.02, 1.30), (1.02, 1.20)]
    assert ruler.false_differences(trials(wide)) == ruler.Share(1, 2)
    assert ruler.false_differences(trials(wide, pairs=29)) == ruler.Share(0, 2)


def test_a_false_difference_is_what_the_judge_would_claim() -> None:
    strict = judge.Criteria(no_difference=(0.9, 1.1), noise_ceiling=0.5, minimum_pairs=30)
    made = trials([(1.02, 1.03), (1.2, 1.3)])
    assert ruler.false_differences(made) == ruler.Share(2, 2)
    assert ruler.false_differences(made, strict) == ruler.Share(1, 2)


def test_a_noisy_timer_pays_for_repeating_and_a_precise_one_for_one_reading() -> None:
    measured = comparison(
        1.05,
        ours=read(spread(0.001, 1.05), 0.5),
        noisy=read(spread(0.02, 1.05), 0.1),
        false=read(spread(0.001, 1.08), 0.1),
    )
    assert ruler.is_comparison(measured)
    ours, false, noisy = ruler.timers(measured)
    assert (ours.name, false.name, noisy.name) == ("ours", "false", "noisy")
    assert ours.seconds == ours.cost == pytest.approx(0.5)
    assert noisy.deviation == pytest.approx(0.02)
    assert noisy.half_width == pytest.approx(0.0392, rel=1e-3)
    assert noisy.seconds == pytest.approx(0.1 * (1.96 * 2) ** 2, rel=1e-3)
    assert (ours.standing, false.standing, noisy.standing) == ("near", "off", "near")
    # Student's t of 19 degrees of freedom at 95 % is 2.093.
    assert math.log(noisy.ratio.high / 1.05) == pytest.approx(2.093 * 0.02 / math.sqrt(20), rel=1e-2)
    assert false.bias == pytest.approx(1.08 / 1.05 - 1)
    assert ours.error is None


@pytest.mark.parametrize(
    ("ratios", "truth", "standing"),
    [
        ([1.0, 1.001] * 4, 1.0, "near"),
        # A middle 2 % off the truth says nothing where readings differ by 15 %.
        ([0.822, 0.913, 1.084, 1.074, 0.812, 1.312, 1.063, 1.078], 1.05, "unknown"),
        ([1.067, 1.056, 1.098, 1.16, 1.058, 0.955, 1.141, 1.08], 1.0, "off"),
        ([0.97, 0.971] * 4, 1.0, "off"),
        # The truth is outside, but by less than is asked for.
        ([1.005, 1.006] * 4, 1.0, "near"),
        ([1.2], 1.0, "unknown"),
    ],
)
def test_a_timer_is_off_the_truth_only_where_its_readings_show_it(
    ratios: list[float], truth: float, standing: str
) -> None:
    (timer,) = ruler.timers(comparison(truth, ours=read(ratios, 1.0)))
    assert timer.standing == standing


def test_an_outlier_among_the_readings_counts() -> None:
    readings = [0.999, 1.002, 1.142, 0.997, 1.001, 0.871, 1.002, 1.003]
    (timer,) = ruler.timers(comparison(ours=read(readings, 0.2)))
    assert timer.deviation == pytest.approx(0.073, abs=0.002)
    assert timer.seconds > 40


def test_a_timers_own_error_bar_is_its_median() -> None:
    measured = comparison(ours=read([1.0, 1.0, 1.0], 1.0)) | {"ours.error": one(0.004, 0.005, 0.03)}
    assert ruler.timers(measured)[0].error == 0.005


def shares(held: int, missed: int, differing: int = 0) -> list[Interval]:
    return [HOLDS] * held + [MISSES] * missed + [DIFFERS] * differing


@pytest.mark.parametrize(
    ("intervals", "covered", "few_false"),
    [
        (shares(380, 20), True, True),
        (shares(371, 29), False, True),
        (shares(393, 7), False, True),
        (shares(380, 14, 6), True, False),
        (shares(380, 16, 4), True, True),
        (shares(95, 5), None, None),
        ([], None, None),
    ],
)
def test_goals_of_coverage(intervals: list[Interval], covered: bool | None, few_false: bool | None) -> None:  # noqa: FBT001
    # Split over two noises: trials are pooled.
    files = [bench(trials(part)) for part in (intervals[::2], intervals[1::2]) if part]
    found = {goal.id: goal for goal in ruler.goals(files)}
    assert found["coverage-aa"].met is covered
    assert found["false-differences"].met is few_false
    assert found["coverage-known"].met is None
    assert found["coverage-known"].value is None


@pytest.mark.parametrize(
    ("held", "missed", "known"),
    [(95, 5, None), (136, 14, False), (120, 30, True), (148, 2, False), (400, 0, True)],
)
def test_one_kind_outside_the_goal_is_known_only_where_its_interval_is(
    held: int, missed: int, *, known: bool | None
) -> None:
    assert ruler.odd_coverage(trials(shares(held, missed))) is known


FLAT = [1.0] * 20


@pytest.mark.parametrize(
    ("timers", "met"),
    [
        (
            {"ours": read(FLAT, 0.1), "thirty_pairs": read(FLAT, 0.2), "adaptive_autorange": read(FLAT, 0.3)},
            {"fastest": True, "thirty-pairs": True, "adaptive-autorange": True},
        ),
        (
            {"ours": read(FLAT, 0.1), "thirty_pairs": read(FLAT, 0.15), "hand_loop": read(FLAT, 0.05)},
            {"fastest": False, "thirty-pairs": False},
        ),
        # A rival that may be off the truth still counts as the fastest.
        (
            {"ours": read(FLAT, 0.1), "thirty_pairs": read(spread(0.03, 1.005), 0.001)},
            {"fastest": False, "thirty-pairs": False},
        ),
        # Ours that may be off it has not won yet.
        (
            {"ours": read(spread(0.001, 1.01), 0.1), "thirty_pairs": read(FLAT, 0.3)},
            {"fastest": None, "thirty-pairs": None},
        ),
        # A rival that is known to be off the truth is neither the fastest nor ever right.
        (
            {"ours": read(FLAT, 0.1), "thirty_pairs": read([1.02] * 20, 0.01)},
            {"fastest": True, "thirty-pairs": True},
        ),
        # Ours off the truth wins nothing.
        (
            {"ours": read([1.02] * 20, 0.1), "thirty_pairs": read(FLAT, 1.0)},
            {"fastest": False, "thirty-pairs": False},
        ),
        # Too few readings.
        (
            {"ours": read([1.0] * 3, 0.1), "thirty_pairs": read([1.0] * 3, 1.0)},
            {"fastest": None, "thirty-pairs": None},
        ),
    ],
)
def test_goals_of_efficiency(timers: dict[str, tuple[list[float], float]], met: dict[str, bool | None]) -> None:
    found = {goal.id: goal.met for goal in ruler.goals([bench(comparison(**timers))])}
    assert found.pop("fastest-launch-bound") is met.pop("fastest")
    assert {name: found.get(f"rival-{name}") for name in met} == met


def test_rivals_are_raced_where_launching_is_the_cost_alone() -> None:
    measured = comparison(ours=read(FLAT, 0.1), thirty_pairs=read(FLAT, 0.2))
    assert "rival-thirty-pairs" not in {goal.id for goal in ruler.goals([bench(measured, "tiny")])}


def test_files_that_are_no_bench_and_those_that_failed_say_nothing() -> None:
    failed = bench(comparison(ours=read(FLAT, 0.1), other=read(FLAT, 0.2)), status="failed", reason="for a test")
    assert all(goal.met is None for goal in ruler.goals([case_file(), failed]))
    assert not math.isnan(ruler.NONE.value)


def timed_case(start: int, end: int, run: str = "r1", case: str = "same.a", **phases: float) -> CaseFile:
    """Return a case that lasted from one second of a minute to another."""
    moments = [f"2026-11-30T12:00:{second:02}Z" for second in (start, end)]
    source = msgspec.structs.replace(provenance(started=moments[0]), finished=moments[1])
    seconds = {phase.strip("_").replace("_", "-"): value for phase, value in phases.items()}
    return case_file(run=run, case=case, experiment="same", section="controls", provenance=source, phases=seconds)


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ([], None),
        ([timed_case(0, 0, steady_state=1.0)], None),  # No time passed, by the clock of the files.
        ([timed_case(0, 10, steady_state=9.0)], 0.1),
        ([timed_case(0, 10, import_=2.0, steady_state=7.0)], 0.1),
        # Importing again in each process is overhead; the longest import is the one that had to be.
        ([timed_case(0, 10, import_=2.0, naive=8.0), timed_case(10, 20, import_=1.0, observe=9.0)], 0.05),
        # So are those of Dynamo and of inductor.
        (
            [
                timed_case(0, 10, settings=3.0, inductor_import=2.0, first_calls=5.0),
                timed_case(10, 20, settings=2.0, inductor_import=1.0, first_calls=7.0),
            ],
            0.15,
        ),
        # What lies between two cases is overhead, and so is a phase that nobody has named.
        ([timed_case(0, 10, steady_state=10.0), timed_case(30, 40, tidying=10.0)], 0.75),
        # Files come in any order.
        ([timed_case(30, 40, memory=10.0), timed_case(0, 10, energy=10.0)], 0.5),
        # Side by side on two GPUs.
        ([timed_case(0, 10, steady_state=10.0), timed_case(0, 10, steady_state=10.0)], 0.0),
        ([timed_case(0, 10)], 1.0),
    ],
)
def test_overhead_is_what_is_left_of_a_run(files: list[CaseFile], share: float | None) -> None:
    found = ruler.overhead(files)

    assert found == (None if share is None else pytest.approx(share))


def test_overhead_is_that_of_the_newest_run_with_enough_cases() -> None:
    old = [timed_case(n, n + 1, "r1", f"same.{n}", steady_state=0.5) for n in range(10)]
    new = [timed_case(n, n + 1, "r2", f"same.{n}", steady_state=0.9) for n in range(20, 30)]
    small = [timed_case(50, 59, "r3", "same.a")]
    bench = [
        msgspec.structs.replace(
            timed_case(n, n + 1, "r4", f"calibration.{n}", observe=1.0), measurements=trials([HOLDS])
        )
        for n in range(60, 72)
    ]

    assert ruler.newest_run(small) == ()
    assert ruler.overhead_goal(small).met is None
    assert ruler.overhead_goal(old).met is False
    goal = ruler.overhead_goal([*new, *small, *old, *bench])
    assert goal.value == pytest.approx(0.1)
    assert goal.met is True
    # A kept file lies in runs/ as well.
    assert ruler.overhead_goal([*new, *new]).value == pytest.approx(0.1)


@pytest.mark.parametrize(
    "made",
    [
        {**trials([HOLDS]), "high": one(1.0, 1.1)},
        {**trials([HOLDS]), "truth": one(0.0)},
        {**comparison(ours=read([1.0], 1.0)), "truth": one(0.0)},
        comparison(ours=read([0.0], 1.0)),
        {"ours.ratio": one(1.0), "truth": one(1.0)},
    ],
)
def test_what_a_stranger_made_up_is_no_bench(made: dict[str, Measurement]) -> None:
    assert not ruler.is_calibration(made)
    assert not ruler.is_comparison(made)


def test_a_timer_without_a_usable_reading_takes_no_part() -> None:
    made = comparison(ours=read([1.0], 1.0), other=read([0.0, 0.0], 1.0)) | {"third.ratio": one(1.0)}

    assert [timer.name for timer in ruler.timers(made)] == ["ours"]
