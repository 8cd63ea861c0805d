"""The drawing, as the text it is; `REPORTKIT_GOLDEN=1` writes the expectations anew, to be looked at."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reportkit.claims import Bound, above, at_most, between, outside
from reportkit.judge import Interval, Outcome
from reportkit.site.drawing import domain, draw

GOLDEN = Path(__file__).parent / "golden"
FLOATS = st.floats(1e-6, 1e6)


def x(low: float, centre: float, high: float) -> Interval:
    return Interval(low=low, centre=centre, high=high)


@pytest.mark.parametrize(
    ("name", "intervals", "bound", "outcome"),
    [
        ("refuted", [x(1.35, 1.36, 1.37)], between(1.42, 1.87), "refuted"),
        ("supported-above", [x(1.9, 2.0, 2.2)], above(1.0), "supported"),
        ("straddles", [x(1.40, 1.43, 1.46)], between(1.42, 1.87), "inconclusive"),
        ("depends", [x(1.30, 1.31, 1.32), x(1.60, 1.61, 1.62)], between(1.42, 1.87), "inconclusive"),
        ("outside", [x(0.5, 0.52, 0.55)], outside(0.9, 1.1), "supported"),
        ("unmeasured", [], at_most(0.5), "not-measured"),
        ("wide", [x(0.01, 0.02, 0.03)], at_most(0.5), "supported"),
        ("seconds", [Interval(low=20, centre=24, high=29, unit="s")], between(2, 100), "supported"),
    ],
)
@pytest.mark.parametrize("size", ["small", "large"])
def test_drawing(name: str, intervals: list[Interval], bound: Bound, outcome: Outcome, size: str) -> None:
    one = all(interval.unit == "x" for interval in intervals)
    scale = domain(bound, intervals, one=one)
    large = size == "large"
    drawn = draw(intervals, bound, outcome, scale, size="large" if large else "small", alternative=f"{name}, in words")
    file = GOLDEN / f"{name}-{size}.svg"
    text = drawn.replace("><", ">\n<") + "\n"
    if os.environ.get("REPORTKIT_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


@given(st.tuples(FLOATS, FLOATS, FLOATS).map(sorted), FLOATS)
def test_everything_lies_within_the_drawing(numbers: list[float], high: float) -> None:
    interval = x(*numbers)
    scale = domain(at_most(high), [interval], one=True)
    drawn = draw([interval], at_most(high), "supported", scale, size="large", alternative="")
    places = [float(place) for place in re.findall(r'"(-?[\d.]+)%"', drawn)]
    assert places
    assert all(0 <= place <= 100 for place in places)
    assert scale.share(numbers[0]) <= scale.share(numbers[1]) <= scale.share(numbers[2])
