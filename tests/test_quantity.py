"""Figures carry no digit that the samples don't."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reportkit import quantity
from reportkit.claims import SHOWN, TRUE, above, at_least, at_most, below, between, outside
from reportkit.judge import Interval


def x(low: float, centre: float, high: float) -> Interval:
    return Interval(low=low, centre=centre, high=high)


def s(low: float, centre: float, high: float) -> Interval:
    return Interval(low=low, centre=centre, high=high, unit="s")


def test_a_count_is_whole() -> None:
    assert quantity.format_quantity(Interval(low=1234, centre=1234, high=1234, unit="1")) == "1234"


def size(octets: int) -> Interval:
    return Interval(low=octets, centre=octets, high=octets, unit="B")


@pytest.mark.parametrize(
    ("interval", "centre", "ends"),
    [
        (x(1.60, 1.63, 1.66), "1.63x", "[1.60, 1.66]"),
        (x(1.6281, 1.6302, 1.6319), "1.63x", "[1.62, 1.64]"),
        (x(1.45, 1.63, 1.85), "1.63x", "[1.45, 1.85]"),
        (x(0.27, 0.44, 0.72), "0.44x", "[0.27, 0.72]"),
        (x(1.1, 2.0, 3.4), "2.0x", "[1.1, 3.4]"),
        (x(0.3, 0.5, 9.0), "0.5x", "[0.3, 9.0]"),
        (x(0.98, 0.9999, 1.02), "1.00x", "[0.98, 1.02]"),
        (x(0.4512, 0.4522, 0.4533), "0.452x", "[0.451, 0.454]"),
        (x(2, 12, 40), "12x", "[2, 40]"),
        (x(1.42, 1.42, 1.42), "1.42x", "[1.42, 1.42]"),
        (s(0.01228, 0.0123, 0.01234), "12.3 ms", "[12.2, 12.4] ms"),
        (s(0.9994, 0.9996, 0.9999), "1.00 s", "[0.99, 1.00] s"),
        (s(20.1, 24.4, 29.2), "24.4 s", "[20.1, 29.2] s"),
        (s(1.231e-6, 1.234e-6, 1.238e-6), "1.23 \u00b5s", "[1.23, 1.24] \u00b5s"),
        (s(118, 123, 131), "123 s", "[118, 131] s"),
        (s(1100, 1234, 1400), "1230 s", "[1100, 1400] s"),
        (size(3 * 2**29), "1.50 GiB", "[1.50, 1.50] GiB"),
        (size(700 * 2**20), "700 MiB", "[700, 700] MiB"),
        (size(512), "512 B", "[512, 512] B"),
    ],
)
def test_figures_stop_where_the_interval_does(interval: Interval, centre: str, ends: str) -> None:
    assert quantity.format_quantity(interval) == centre
    assert quantity.format_interval(interval) == ends


@pytest.mark.parametrize(
    ("bound", "unit", "text"),
    [
        (between(1.42, 1.87), "x", "1.42 to 1.87"),
        (above(1.02), "x", "> 1.02"),
        (below(0.95), "x", "< 0.95"),
        (at_least(1.3), "x", ">= 1.3"),
        (at_most(0.5), "x", "<= 0.5"),
        (outside(0.9, 1.1), "x", "outside 0.9 to 1.1"),
        (between(2, 100), "s", "2 to 100 s"),
        (above(1.0), "x", "> 1"),
        (TRUE, "x", "true"),
        (SHOWN, "x", "shown, not judged"),
    ],
)
def test_bounds_read_as_in_the_table_of_claims(bound: object, unit: str, text: str) -> None:
    assert quantity.format_bound(bound, unit) == text  # type: ignore[arg-type]


def test_another_language_brings_its_own_words() -> None:
    words = {**quantity.BOUND_WORDS, "at-most": "\u2264 {high}{unit}"}
    assert quantity.format_bound(at_most(0.5), words=words) == "\u2264 0.5"


@given(
    st.floats(1e-3, 1e4),
    st.floats(0, 0.9),
    st.floats(0, 5),
)
def test_a_printed_interval_holds_the_one_computed_in_three_figures(centre: float, down: float, up: float) -> None:
    interval = x(centre * (1 - down), centre, centre * (1 + up))
    low, high = (float(end) for end in quantity.format_interval(interval)[1:-1].split(", "))
    slack = 2e-5 * centre
    assert low <= interval.low + slack
    assert high >= interval.high - slack
    digits = re.sub(r"[^0-9]", "", quantity.format_ratio(interval)).lstrip("0").rstrip("0")
    assert len(digits) <= quantity.MOST_FIGURES
