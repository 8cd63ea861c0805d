"""How a measured quantity is written down: one place for every figure in tables, pages and messages.

A centre and the ends of its interval are shown to one place beyond the leading digit of half the
interval, and to no more than three significant figures, so that no digit is shown that the
samples don't carry (as `torch.utils.benchmark` trims its own). Where the whole interval is narrower than
1 % of its centre, a fourth is shown: of three, rounding would be most of what is printed. Ends are rounded
outwards: what is printed always holds what was computed, and an interval that straddles a bound never looks
as if it lay on one side. Nor does one that lies on one side of no difference look as if it reached it: that
end is shown to as many digits as that takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reportkit.claims import Bound
    from reportkit.judge import Interval

MOST_FIGURES = 3
NARROW = 0.01
"""Width of an interval, over its centre, below which it is shown to one figure more."""
NO_DIFFERENCE = 1.0
MOST_PLACES = 6
"""Decimal places at most for keeping an end off no difference: sides that are so nearly equal are."""

BOUND_WORDS: Mapping[str, str] = {
    "between": "{low} to {high}{unit}",
    "at-least": ">= {low}{unit}",
    "above": "> {low}{unit}",
    "at-most": "<= {high}{unit}",
    "below": "< {high}{unit}",
    "outside": "outside {low} to {high}{unit}",
    "true": "true",
    "shown": "shown, not judged",
}
"""Each kind of bound in English and ASCII; another language or typography passes its own."""

_UNITS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns")),
    "J": ((1.0, "J"), (1e-3, "mJ"), (1e-6, "\u00b5J")),
    "W": ((1.0, "W"), (1e-3, "mW")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")),
    "B": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
}


def format_number(value: float, figures: int = MOST_FIGURES) -> str:
    """Return a plain number such as a bound's, trailing zeros dropped: `1.02`, `100`, `0.5`."""
    text = f"{value:.{_decimals(value, figures)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_ratio(interval: Interval) -> str:
    """Return the centre of a ratio, such as a speedup: `1.63x`."""
    return f"{_centre(interval, 1.0)}x"


def format_seconds(interval: Interval) -> str:
    """Return the centre of a time in the unit that suits it: `12.3 ms`."""
    return _scaled(interval)


def format_quantity(interval: Interval) -> str:
    """Return the centre of an interval by its unit: `1.63x`, `12.3 ms`, `1.5 GiB`; a count in full."""
    if interval.unit == "1":
        return f"{interval.centre:.0f}" if interval.centre == round(interval.centre) else _centre(interval, 1.0)
    return _scaled(interval) if interval.unit in _UNITS else format_ratio(interval)


def format_interval(interval: Interval) -> str:
    """Return the ends of an interval, rounded outwards: `[1.60, 1.66]`, `[12.1, 12.5] ms`; counts in full."""
    if interval.unit == "1" and interval.low == round(interval.low) and interval.high == round(interval.high):
        return f"[{interval.low:.0f}, {interval.high:.0f}]"
    scale, unit = _unit(interval) if interval.unit in _UNITS else (1.0, "")
    place = _place(interval, scale)
    low = _end(interval.low / scale, place, math.floor, plain=interval.unit != "x")
    high = _end(interval.high / scale, place, math.ceil, plain=interval.unit != "x")
    shown = f"[{low}, {high}]"
    return f"{shown} {unit}" if unit else shown


def format_bound(bound: Bound, unit: str = "x", words: Mapping[str, str] = BOUND_WORDS) -> str:
    """Return a bound: `1.42 to 1.87`, `> 1.02`, `<= 0.5`, `true`; with its unit where that is seconds."""
    if bound.kind != "range":
        template = words[bound.kind]
    elif bound.low is None:
        template = words["below" if bound.open else "at-most"]
    elif bound.high is None:
        template = words["above" if bound.open else "at-least"]
    else:
        template = words["between"]
    return template.format(
        low="" if bound.low is None else format_number(bound.low),
        high="" if bound.high is None else format_number(bound.high),
        unit=" s" if unit == "s" else "",
    )


def format_share(share: float) -> str:
    """Return a share in percent: `1.2 %`, `20 %`."""
    return f"{format_number(100 * share, 2)} %"


def _scaled(interval: Interval) -> str:
    scale, unit = _unit(interval)
    return f"{_centre(interval, scale)} {unit}"


def _unit(interval: Interval) -> tuple[float, str]:
    """Return the largest unit, and its size in the quantity's own, in which the centre rounds to 1 or more."""
    units = _UNITS[interval.unit]
    for scale, unit in units:
        if float(f"{interval.centre / scale:.{MOST_FIGURES - 1}e}") >= 1:
            return scale, unit
    return units[-1]


def _decimals(value: float, figures: int) -> int:
    """Return how many decimals give a value that many significant figures; negative before the point counts as 0."""
    return max(0, figures - 1 - _magnitude(value, figures))


def _magnitude(value: float, figures: int = MOST_FIGURES) -> int:
    """Return the power of ten of the leading digit, after rounding (0.9999 is 1.00)."""
    return int(f"{abs(value):.{figures - 1}e}".partition("e")[2]) if value else 0


def _place(interval: Interval, scale: float) -> int:
    """Return the decimal place to show: one beyond that of half the interval, at most three or four figures.

    Negative places stand before the decimal point. The centre keeps one figure whatever its interval.
    """
    top = _magnitude(interval.centre / scale)
    width = (interval.high - interval.low) / scale
    finest = MOST_FIGURES - 1 - top
    if width <= 0:
        return finest
    finest += width < NARROW * abs(interval.centre / scale)
    supported = -math.floor(math.log10(width / 2) + 1e-9) + 1
    return min(finest, max(supported, -top))


def _end(value: float, place: int, towards: Callable[[float], int], *, plain: bool) -> str:
    """Return an end rounded outwards to a place; that of a ratio to as many more as keep it off no difference."""
    places = range(place, place + 1 if plain else max(place, MOST_PLACES) + 1)
    shown = [_outwards(value, one, towards) for one in places]
    return next((one for one in shown if plain or _side(float(one)) == _side(value)), shown[0])


def _side(ratio: float) -> int:
    """Return on which side of no difference a ratio is: 1 above, -1 below, 0 where it is just that."""
    return (ratio > NO_DIFFERENCE) - (ratio < NO_DIFFERENCE)


def _outwards(value: float, place: int, towards: Callable[[float], int]) -> str:
    step = 10.0**-place
    # The small shift keeps 1.42, which binary can't hold, from being rounded down to 1.41.
    shift = 1e-6 if towards is math.floor else -1e-6
    return _fixed(towards(value / step + shift) * step, place)


def _centre(interval: Interval, scale: float) -> str:
    place = _place(interval, scale)
    return _fixed(round(interval.centre / scale, place), place)


def _fixed(value: float, place: int) -> str:
    return f"{value + 0.0:.{max(0, place)}f}"
