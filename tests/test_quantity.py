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
        (x(1.6281, 1.6302, 1.6319), "1.630x", "[1.628, 1.632]"),
        (x(1.45, 1.63, 1.85), "1.63x", "[1.45, 1.85]"),
        (x(0.27, 0.44, 0.72), "0.44x", "[0.27, 0.72]"),
        (x(1.1, 2.0, 3.4), "2.0x", "[1.1, 3.4]"),
        (x(0.3, 0.5, 9.0), "0.5x", "[0.3, 9.0]"),
        (x(0.98, 0.9999, 1.02), "1.00x", "[0.98, 1.02]"),
        (x(0.4512, 0.4522, 0.4533), "0.4522x", "[0.4512, 0.4533]"),
        (x(2, 12, 40), "12x", "[2, 40]"),
        (x(1.42, 1.42, 1.42), "1.42x", "[1.42, 1.42]"),
        (s(0.01228, 0.0123, 0.01234), "12.30 ms", "[12.28, 12.34] ms"),
        (s(0.9994, 0.9996, 0.9999), "1.000 s", "[0.999, 1.000] s"),
        (s(20.1, 24.4, 29.2), "24.4 s", "[20.1, 29.2] s"),
        (s(1.231e-6, 1.234e-6, 1.238e-6), "1.234 \u00b5s", "[1.231, 1.238] \u00b5s"),
        (s(118, 123, 131), "123 s", "[118, 131] s"),
        (s(1100, 1234, 1400), "1230 s", "[1100, 1400] s"),
        # Narrower than 1 % of the centre: a fourth figure, of a ratio near no difference a third decimal.
        (x(0.9991, 0.9998, 1.0005), "1.000x", "[0.999, 1.001]"),
        (x(1.0013, 1.0046, 1.0095), "1.005x", "[1.001, 1.010]"),
        (x(1.0195, 1.0199, 1.0204), "1.020x", "[1.019, 1.021]"),
        (x(0.991, 0.9956, 1.0009), "0.9956x", "[0.9910, 1.0009]"),
        (x(0.9905, 0.996, 1.0005), "0.996x", "[0.990, 1.001]"),
        (x(121.1, 121.4, 121.9), "121.4x", "[121.1, 121.9]"),
        # An end off no difference stays off it, whatever the width.
        (x(1.004, 1.02, 1.04), "1.02x", "[1.004, 1.04]"),
        (x(1.00021, 1.001, 1.002), "1.001x", "[1.0002, 1.002]"),
        (x(0.93, 0.96, 0.9996), "0.960x", "[0.930, 0.9996]"),
        (x(1.0, 1.01, 1.02), "1.01x", "[1.00, 1.02]"),
        (x(1.00000001, 1.05, 1.1), "1.05x", "[1.00, 1.10]"),
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
    narrow = interval.high - interval.low < quantity.NARROW * centre
    digits = re.sub(r"[^0-9]", "", quantity.format_ratio(interval)).lstrip("0").rstrip("0")
    if min(abs(interval.low - 1), abs(interval.high - 1)) > 0.01:
        assert len(digits) <= quantity.MOST_FIGURES + narrow


@given(st.floats(1e-4, 0.5), st.floats(1e-4, 1), st.booleans())
def test_an_interval_off_no_difference_is_printed_off_it(gap: float, width: float, above: bool) -> None:  # noqa: FBT001
    near, far = (1 + gap, 1 + gap + width) if above else (1 - gap, 1 - gap - 0.4 * width)
    low, high = sorted((near, far))
    shown = quantity.format_interval(x(low, (low + high) / 2, high))
    first, last = (float(end) for end in shown[1:-1].split(", "))
    assert first > 1 or last < 1
