"""Intervals hold the truth about as often as they say, and are the same on every machine.

Run as a program (`python -m tests.test_statistics [REPEATS]`) it prints the coverage over simulated
A/A timings, with the looks and the stopping rule of the bench world.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reportkit import statistics
from reportkit.statistics import Draws

Array = npt.NDArray[np.float64]
Generator = np.random.Generator

KINDS = ("iid", "ar-0.5", "ar-0.8", "ar-0.95", "bursts")


def simulated(kind: str, pairs: int, deviation: float, chance: Generator) -> Array:
    """Return paired ratios of eager against itself: true ratio 1, relative deviation as given.

    ar-X: each deviation inherits X of the one before. bursts: for six pairs on average, 15 % of the
    time, one side is slowed or hastened by some five deviations.
    """
    logs = chance.normal(0, deviation, pairs)
    if kind.startswith("ar"):
        inherited = float(kind.split("-")[1])
        for i in range(1, pairs):
            logs[i] = inherited * logs[i - 1] + math.sqrt(1 - inherited**2) * logs[i]
    elif kind == "bursts":
        bursting = chance.random() < 0.15
        for i in range(pairs):
            if bursting:
                logs[i] += abs(chance.normal(5, 3)) * deviation * chance.choice([-1, 1])
            bursting = chance.random() < (5 / 6 if bursting else 0.15 / 0.85 / 6)
    ratios: Array = np.exp(logs)
    return ratios


def coverage(kind: str, deviation: float, repeats: int, seed: int = 1, most: int = 480) -> dict[str, float]:
    """Return how often the interval holds 1: at the first look, and where the rule stops (+-1 %, or `most` pairs)."""
    chance = np.random.default_rng(seed)
    first = last = pairs = 0
    for repeat in range(repeats):
        ratios = simulated(kind, most, deviation, chance)
        looked = 30
        while True:
            drawn = statistics.median_draws(ratios[:looked], 500, repeat)
            low, _, high = drawn.interval()
            first += looked == 30 and low <= 1 <= high
            if drawn.noise() <= 0.01 or looked >= most:
                break
            looked *= 2
        last += low <= 1 <= high
        pairs += looked
    return {"first look": first / repeats, "stopped": last / repeats, "pairs": pairs / repeats}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "least"),
    # ar-0.95 over 30 pairs is one deviation and no way to see it: that is what replicates are for.
    [("iid", 0.92), ("ar-0.5", 0.88), ("ar-0.8", 0.75), ("bursts", 0.90)],
)
def test_intervals_hold_the_truth_where_the_rule_stops(kind: str, least: float) -> None:
    assert coverage(kind, 0.02, repeats=200)["stopped"] >= least


@pytest.mark.parametrize(("processes", "between", "within"), [(3, 0.01, 0.0), (3, 0.0, 0.01), (3, 0.01, 0.01)])
def test_three_replicates_hold_the_truth(processes: int, between: float, within: float) -> None:
    chance = np.random.default_rng(4)
    held = 0
    for repeat in range(300):
        replicates = []
        for _ in range(processes):
            error = within * chance.normal(0, 1, 400)
            centre = between * chance.normal() + error[0]
            replicates.append(Draws(math.exp(centre), np.exp(centre + error[1:])))
        low, _, high = statistics.hierarchical(replicates, 399, repeat).interval()
        held += low <= 1 <= high
    assert held / 300 >= 0.93


def test_student_quantiles_agree_with_the_tables() -> None:
    tabled = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 29: 2.045, 120: 1.980}
    for freedom, quantile in tabled.items():
        assert statistics._student(freedom, 0.95) == pytest.approx(quantile, abs=1e-3)


def test_draws_are_the_same_everywhere() -> None:
    # numpy promises PCG64's raw stream for ever, and nothing here rests on more.
    assert statistics.seed_of(20261130, "table.resnet50-d-cold-1") == 11881635052035204968
    ratios = 1.6 + 0.01 * np.sin(np.arange(60.0) ** 2)
    low, centre, high = statistics.median_draws(ratios, 1000, 7).interval()
    assert (round(low, 6), round(centre, 6), round(high, 6)) == (1.595895, 1.598809, 1.602877)


@pytest.mark.parametrize("inherited", [0.0, 0.5, 0.8])
def test_persistence_is_found(inherited: float) -> None:
    ratios = simulated(f"ar-{inherited}", 2000, 0.01, np.random.default_rng(3))
    assert statistics.persistence(ratios) == pytest.approx(inherited, abs=0.06)


def test_a_drift_needs_longer_blocks_and_alternation_none() -> None:
    drift = 1 + np.arange(60.0) / 100
    alternating = 1 + 0.01 * (-1) ** np.arange(60.0)
    assert statistics.block_length(drift) == 15
    assert statistics.block_length(alternating) == 1
    assert statistics.block_length(np.ones(60)) == 1


def test_an_outlier_moves_neither_centre_nor_interval_much() -> None:
    ratios = simulated("iid", 60, 0.005, np.random.default_rng(5))
    before = statistics.median_draws(ratios, 1000, 1)
    ratios[17] = 40.0
    after = statistics.median_draws(ratios, 1000, 1)
    assert after.centre == pytest.approx(before.centre, rel=2e-3)
    assert after.interval()[2] == pytest.approx(before.interval()[2], rel=5e-3)


def test_paired_times_divide_a_common_drift_out() -> None:
    drift = np.linspace(1, 3, 60)
    chance = np.random.default_rng(6)
    eager = 0.01 * drift * np.exp(chance.normal(0, 0.002, 60))
    compiled = 0.005 * drift * np.exp(chance.normal(0, 0.002, 60))
    assert statistics.speedup_draws(eager, compiled, 1000, 1).centre == pytest.approx(2.0, rel=2e-3)
    assert statistics.precise_enough(eager, compiled)


def test_noise_keeps_timing_on() -> None:
    chance = np.random.default_rng(8)
    eager, compiled = np.exp(chance.normal(0, 0.1, (2, 30)))
    assert not statistics.precise_enough(eager, compiled)


def test_processes_are_the_mean_of_logarithms_with_student_around_it() -> None:
    drawn = statistics.processes_draws([10.0, 20.0, 40.0], 4001, 1)
    low, centre, high = drawn.interval()
    error = math.log(2) / math.sqrt(3)
    assert centre == pytest.approx(20)
    assert math.log(high / 20) == pytest.approx(4.3027 * error, rel=0.01)
    assert math.log(20 / low) == pytest.approx(4.3027 * error, rel=0.01)
    with pytest.raises(ValueError, match="needs two"):
        statistics.processes_draws([10.0], 100, 1)


def test_ratios_of_processes_combine_in_quadrature() -> None:
    one = statistics.processes_draws([1.0, 1.1, 0.9, 1.05, 0.95], 4000, 1)
    other = statistics.processes_draws([2.0, 2.2, 1.8, 2.1, 1.9], 4000, 2)
    ratio = (other / one).noise()
    assert one.noise() * 1.2 < ratio < one.noise() * 1.6


def test_one_replicate_is_itself_and_agreement_by_chance_does_not_narrow_three() -> None:
    ratios = simulated("iid", 60, 0.02, np.random.default_rng(9))
    one = statistics.median_draws(ratios, 1000, 1)
    assert statistics.hierarchical([one], 1000, 1).interval() == one.interval()
    others = [Draws(one.centre, np.random.default_rng(seed).permutation(one.draws)) for seed in (1, 2)]
    together = statistics.hierarchical([one, *others], 1000, 1)
    assert together.noise() > one.noise() / 3


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=6))
def test_a_spread_is_at_least_one_and_holds_its_centre(centres: list[float]) -> None:
    parts = [Draws(c, c * np.exp(np.random.default_rng(i).normal(0, 0.01, 200))) for i, c in enumerate(centres)]
    low, centre, high = statistics.spread(parts).interval()
    assert 1 <= low <= centre <= high
    assert centre == max(centres) / min(centres)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40))
def test_any_positive_series_has_an_interval(values: list[float]) -> None:
    low, centre, high = statistics.median_draws(np.array(values), 50, 1).interval()
    assert 0 < low <= centre <= high < math.inf


def test_few_samples_go_by_student_and_many_by_blocks() -> None:
    few = statistics.middle_draws(np.array([1.0, 1.01]), 4001, 1)
    assert math.log(few.interval()[2] / few.centre) == pytest.approx(12.706 * math.log(1.01) / 2, rel=0.02)
    many = simulated("iid", statistics.FEW, 0.01, np.random.default_rng(2))
    assert statistics.middle_draws(many, 400, 1).interval() == statistics.median_draws(many, 400, 1).interval()


def test_a_count_is_exact_or_anything_from_the_least_to_the_most() -> None:
    assert statistics.counted(7, 7, 400, 1).interval() == (7, 7, 7)
    one, other = statistics.counted(38, 40, 400, 1), statistics.counted(9, 10, 400, 2)
    assert one.interval() == (38, 40, 40)
    assert (one / other).interval() == (3.8, 4.0, 40 / 9)


def test_a_sum_and_the_smallest_are_taken_in_every_draw() -> None:
    one, other = Draws(2.0, np.array([1.0, 3.0])), Draws(3.0, np.array([2.0, 4.0]))
    added, least = statistics.total([(1, one), (10, other)]), statistics.smallest([one, other])
    assert (added.centre, added.draws.tolist()) == (32, [21, 43])
    assert (least.centre, least.draws.tolist()) == (2, [1, 3])


@pytest.mark.parametrize("freedom", [1, 3, 29, 200])
def test_a_chance_is_that_of_the_interval_beyond_the_limit(freedom: int) -> None:
    drawn = statistics.median_draws(simulated("iid", 60, 0.02, np.random.default_rng(3)), 2000, 1)
    low, centre, high = drawn.interval()
    assert statistics.chances(drawn, freedom, high)[0] == pytest.approx(0.025, rel=0.01)
    assert statistics.chances(drawn, freedom, low)[1] == pytest.approx(0.025, rel=0.01)
    assert all(one == pytest.approx(0.5) for one in statistics.chances(drawn, freedom, centre))
    further = statistics.chances(drawn, freedom, high * 1.05)[0]
    assert 0 < further < 0.025
    exact = statistics.counted(2, 2, 10, 1)
    assert statistics.chances(exact, freedom, 3) == (0, 1)
    assert statistics.chances(exact, freedom, 2) == (1, 1)


def test_holm_rejects_step_by_step() -> None:
    # Holm 1979's rule by hand: 0.05 / 4, / 3, / 2, / 1; the third fails, and so the last is not looked at.
    found = {"a": 0.01, "b": 0.016, "c": 0.03, "d": 0.04}
    assert statistics.holm(found, 0.05) == {"a", "b"}
    assert statistics.holm({**found, "c": 0.02}, 0.05) == {"a", "b", "c", "d"}
    assert statistics.holm({"d": 0.013, "a": 0.5}, 0.025) == set()
    assert statistics.holm({}, 0.05) == set()


def test_among_many_equal_cases_one_below_is_rarely_claimed() -> None:
    chance, false = np.random.default_rng(12), 0
    for repeat in range(60):
        found = {}
        for case in range(20):
            series = 0.97 * simulated("iid", 30, 0.02, chance)
            drawn = statistics.median_draws(series, 400, 1000 * repeat + case)
            found[str(case)] = statistics.chances(drawn, statistics.freedom_of(series), 0.97)[0]
        false += bool(statistics.holm(found, 0.025))
    assert false / 60 <= 0.1  # Without the correction, 1 - 0.975 ** 20 is 0.4.


def test_a_long_series_is_drawn_in_batches() -> None:
    ratios = simulated("iid", 4000, 0.01, np.random.default_rng(2))
    assert len(statistics.median_draws(ratios, 1200, 1).draws) == 1200


if __name__ == "__main__":
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"{'kind':8} {'deviation':>9} {'30 pairs':>9} {'stopped':>8} {'pairs':>6}")  # noqa: T201
    for deviation in (0.01, 0.04):
        for kind in KINDS:
            seen = coverage(kind, deviation, repeats)
            print(  # noqa: T201
                f"{kind:8} {deviation:9.0%} {seen['first look']:9.3f} {seen['stopped']:8.3f} {seen['pairs']:6.0f}"
            )
