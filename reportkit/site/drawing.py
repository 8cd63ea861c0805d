"""The interval against its bound: the drawing that says supported or refuted before a word is read.

A thin axis; the bound as a pale band; the observed interval as a bar with a dot at its centre; a tick
at 1.0 where it is a ratio. Positions are shares of the width, so that the drawing is laid out anew at
any width instead of shrunk; colours are classes, so that it follows the theme. Pure: same values,
same text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reportkit.quantity import format_interval, format_number, format_quantity
from reportkit.site.markup import Html, element, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reportkit.claims import Bound
    from reportkit.compare import Side
    from reportkit.judge import Interval, Outcome

MARGIN = 0.14
"""Share of the domain left free at each side, so that an open end is seen to go on."""

_INSET = 2.0
_NEAR_EDGE = 22.0
_DECADES_FOR_LOG = 20.0


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that the drawing's left and right edge stand for."""

    low: float
    high: float
    logarithmic: bool = False
    one: bool = True
    """Whether it is of ratios, so that 1.0 is marked."""

    def share(self, value: float) -> float:
        """Return where the value lies, 0 to 100; values beyond an edge lie on it."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        return _INSET + (100 - 2 * _INSET) * min(1.0, max(0.0, (value - low) / (high - low)))


def domain(bound: Bound, intervals: Iterable[Interval], *, one: bool) -> Domain:
    """Return a domain that holds the bound's ends, every interval and, where `one`, 1.0.

    Logarithmic where the largest is more than 20 times the smallest.
    """
    values = [value for value in (bound.low, bound.high) if value is not None]
    values += [value for interval in intervals for value in (interval.low, interval.high)]
    values += [1.0] if one or not values else []
    low, high = min(values), max(values)
    if low > 0 and high / low > _DECADES_FOR_LOG:
        factor = (high / low) ** MARGIN
        return Domain(low / factor, high * factor, logarithmic=True, one=one)
    spare = (high - low or abs(high) or 1.0) * MARGIN
    return Domain(low - spare, high + spare, one=one)


def draw(
    intervals: Sequence[Interval],
    bound: Bound,
    outcome: Outcome | Side,
    scale: Domain,
    *,
    size: Literal["small", "large"],
    alternative: str,
) -> Html:
    """Return the drawing as inline SVG; `alternative` says in words what it shows.

    Its colour is that of the outcome, or of a side where nothing is judged.

    One interval as a rule, none where nothing was measured, several where a verdict rests on their
    disagreement.
    """
    large = size == "large"
    top, height, middle = (20, 30, 35) if large else (3, 16, 11)
    marks = [_band(low, high, top, height) for low, high in _bands(bound, scale)]
    marks.append(
        element("line", x1="0%", x2="100%", y1=middle, y2=middle, class_="rk-axis"),
    )
    if scale.one and scale.low < 1 < scale.high:
        where = f"{scale.share(1.0):.2f}%"
        marks.append(
            element("line", x1=where, x2=where, y1=top - 2, y2=top + height + 2 + 12 * large, class_="rk-one"),
        )
        if large:
            marks.append(_text(scale.share(1.0), 76, "1.0", "rk-one-label"))
    for interval in intervals:
        low, centre, high = (scale.share(value) for value in (interval.low, interval.centre, interval.high))
        thick = 8 if large else 6
        marks += [
            element(
                "rect",
                x=f"{low:.2f}%",
                y=middle - thick // 2,
                width=f"{max(high - low, 0.3):.2f}%",
                height=thick,
                class_="rk-interval",
            ),
            element("circle", cx=f"{centre:.2f}%", cy=middle, r=6 if large else 4.5, class_="rk-centre"),
        ]
        if large:
            exact = interval.low == interval.high
            label = format_quantity(interval) + ("" if exact else f" {format_interval(interval)}")
            marks.append(_text(centre, 12, label, "rk-value"))
    if large:
        marks += _ends(bound, scale)
    return element(
        "svg",
        *marks,
        class_=f"rk-draw rk-draw-{size} rk-{outcome}",
        role="img",
        aria_label=alternative,
        width="100%",
        height=82 if large else 22,
    )


def _bands(bound: Bound, scale: Domain) -> list[tuple[float, float]]:
    """Return the stretches, in shares of the width, in which the bound is met."""
    low = 0.0 if bound.low is None else scale.share(bound.low)
    high = 100.0 if bound.high is None else scale.share(bound.high)
    if bound.kind == "range":
        return [(low, high)]
    return [(0.0, low), (high, 100.0)] if bound.kind == "outside" else []


def _band(low: float, high: float, top: int, height: int) -> Html:
    return element("rect", x=f"{low:.2f}%", y=top, width=f"{high - low:.2f}%", height=height, class_="rk-band")


def _ends(bound: Bound, scale: Domain) -> list[Html]:
    """Return the bound's numbers, each outside its end of the band where there is room for it."""
    marks = []
    both = bound.low is not None and bound.high is not None
    if bound.low is not None:
        anchor = "end" if both and scale.share(bound.low) > _NEAR_EDGE / 2 else "start"
        marks.append(_text(scale.share(bound.low), 64, format_number(bound.low), "rk-end", anchor))
    if bound.high is not None:
        anchor = "start" if both and scale.share(bound.high) < 100 - _NEAR_EDGE / 2 else "end"
        marks.append(_text(scale.share(bound.high), 64, format_number(bound.high), "rk-end", anchor))
    return marks


def _text(share: float, y: int, text: str, class_: str, anchor: str | None = None) -> Html:
    """Return a text that stays inside the drawing: near an edge it grows away from it."""
    if anchor is None:
        anchor = "start" if share < _NEAR_EDGE else "end" if share > 100 - _NEAR_EDGE else "middle"
    return element("text", escape(text), x=f"{share:.2f}%", y=y, text_anchor=anchor, class_=class_)
