"""What a quantity is called: in a sentence that says how it is measured, and in front of a figure.

Numbers may be made of others, and so are their names: a ratio of two speedups is called by what both are and
by the places they are measured at, as far as those differ.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from reportkit.claims import (
    Each,
    Fact,
    FirstCall,
    GeometricMean,
    Measured,
    Metric,
    Ratio,
    Side,
    Smallest,
    SomeBelow,
    Speedup,
    Spread,
    Sum,
    Untestable,
    Works,
    parts_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reportkit.claims import Number, Quantity, Where
    from reportkit.records import Scalar
    from reportkit.site.texts import Texts


_PROCESS = "process"
_OF_A_SIDE = re.compile(
    r"(launches\.|memory\.)?(?P<side>eager|compiled)(_(?P<kind>gpu|wall|busy|energy|allocated|reserved))?"
)


def listed(texts: Texts, words: list[str], between: str = "comma") -> str:
    """Return words one after another with the language's comma, or its semicolon, between them."""
    return functools.reduce(lambda first, second: texts(f"list.{between}", first=first, second=second), words or [""])


def quantity(texts: Texts, asked: Quantity) -> str:
    """Return in words how a claim is measured."""
    if isinstance(asked, Each):
        said = {texts.called(label): quantity(texts, part) for label, part in asked.parts.items()}
        if len(set(said.values())) == 1:
            return texts("quantity.each", part=next(iter(said.values())), labels=listed(texts, list(said)))
        each = [texts("verdict.named", name=name, value=words) for name, words in said.items()]
        return listed(texts, each, "semicolon")
    match asked:
        case Speedup(_, base):
            name = texts.name("base", base)
            words = texts("quantity.speedup-over", base=name) if base else texts("quantity.speedup")
        case FirstCall(metric="first_call", of=None):
            words = texts("quantity.first-call")
        case Spread():
            [places] = _places(texts, (asked,))
            words = texts("quantity.spread")
            words = texts("list.aside", first=words, second=places) if places else words
        case Fact():
            words = texts("quantity.fact")
        case Works(_, unbroken):
            words = texts("quantity.works-unbroken" if unbroken else "quantity.works")
        case SomeBelow(_, high):
            words = texts("quantity.some-below", high=high)
        case Untestable(shown):
            words = texts("quantity.untestable-shown" if shown else "quantity.untestable")
        case _:
            words = what(texts, asked)
    return texts.sentence(words)


def short(texts: Texts, asked: Quantity) -> str:
    """Return what a figure is called where it stands alone; nothing for a speedup, which needs no name."""
    if isinstance(asked, Each):
        return short(texts, next(iter(asked.parts.values())))
    if isinstance(asked, Speedup) and asked.base is None:
        return ""
    words = counted(texts, asked)
    composed = isinstance(asked, Ratio | Sum) or (isinstance(asked, FirstCall) and asked.of is not None)
    return texts("short.ratio", what=words) if composed else words


def counted(texts: Texts, asked: Quantity) -> str:
    """Return what a bound is a bound of, a speedup too; nothing for what is a finding."""
    match asked:
        case Each(parts):
            words = counted(texts, next(iter(parts.values())))
        case SomeBelow():
            words = texts("short.some-below")
        case Fact() | Works() | Untestable():
            words = ""
        case _:
            words = what(texts, asked)
    return words


def what(texts: Texts, asked: Number) -> str:
    """Return what a number is, in words that fit inside a sentence; of several places, which ones."""
    match asked:
        case Smallest(parts):
            words = _of_several(texts, "smallest", parts)
        case GeometricMean(parts):
            words = _of_several(texts, "geometric-mean", parts)
        case Sum(terms):
            each = zip(terms, _apart(texts, parts_of(asked)), strict=True)
            counted = [
                name if times == 1 else texts("what.times", times=f"{times:g}", what=name) for (times, _), name in each
            ]
            words = functools.reduce(lambda first, second: texts("what.sum", first=first, second=second), counted)
        case Ratio(over, under):
            words = _ratio(texts, over, under)
        case _:
            words = _measured(texts, asked)
    return words


def _ratio(texts: Texts, over: Number, under: Number) -> str:
    """Return what a ratio is of, said once where it is of the same on both sides of the line."""
    sided, other = _sided(texts, over), _sided(texts, under)
    here, there = _places(texts, (over, under))
    if what(texts, over) == what(texts, under) and here != there:
        return texts("what.ratio-of-one", what=what(texts, over), over=here, under=there)
    if sided and other and sided[0] == other[0] and here == there:
        over_side, under_side = (texts(f"chart.{side}") for _, side in (sided, other))
        return texts("what.ratio-of-one", what=sided[0], over=over_side, under=under_side)
    each = [
        texts("what.grouped", what=words) if isinstance(number, Ratio | Sum) and len(parts_of(number)) > 1 else words
        for number, words in zip((over, under), _apart(texts, (over, under)), strict=True)
    ]
    return texts("what.ratio", over=each[0], under=each[1])


def _sided(texts: Texts, asked: Number) -> tuple[str, str] | None:
    """Return what a number is but for the side it is of, and that side; None where it is of none."""
    if isinstance(asked, Side):
        return texts("what.time"), asked.side
    found = _OF_A_SIDE.fullmatch(asked.name) if isinstance(asked, Metric) else None
    return (texts(f"metric.{found['kind'] or 'launches'}"), found["side"]) if found else None


def _measured(texts: Texts, asked: Measured) -> str:
    sided = _sided(texts, asked)
    if sided:
        return texts(f"what.{sided[1]}", what=sided[0])
    match asked:
        case Speedup(_, base):
            words = texts("what.speedup-over", base=texts.name("base", base)) if base else texts("what.speedup")
        case Spread():
            words = texts("what.spread")
        case Metric(_, name):
            words = metric(texts, name)
        case FirstCall(_, name, of):
            words = metric(texts, name)
            words = texts("what.share", part=words, whole=metric(texts, of)) if of else words
        case Side():
            words = ""  # It has a side.
    return words


def metric(texts: Texts, name: str) -> str:
    """Return what a metric is called: by the article, by us, or as it is in the file."""
    return texts.names.get("metric", {}).get(name) or texts.labels.get(f"metric.{name}") or name


def _of_several(texts: Texts, key: str, parts: Sequence[Number]) -> str:
    words = list(dict.fromkeys(what(texts, part) for part in parts))
    if len(words) > 1:
        return texts(f"what.{key}", parts=listed(texts, _apart(texts, parts)))
    first = texts(f"what.{key}-of-one", what=words[0])
    places = [place for place in _places(texts, parts) if place]
    return texts("list.aside", first=first, second=listed(texts, places)) if places else first


def _apart(texts: Texts, numbers: Sequence[Number]) -> list[str]:
    """Return what each of several numbers is, with the place where that tells them apart."""
    # A number of several places names them itself.
    single = [isinstance(number, Measured) for number in numbers]
    return [
        texts("list.aside", first=what(texts, number), second=place) if place and alone else what(texts, number)
        for number, place, alone in zip(numbers, _places(texts, numbers), single, strict=True)
    ]


def _places(texts: Texts, numbers: Sequence[Number]) -> list[str]:
    """Return what distinguishes the places that each of several numbers is measured at; nothing where they are one."""
    among = [where for number in numbers for where in number.cases()]
    return [
        listed(texts, list(dict.fromkeys(_place(texts, where, among) for where in number.cases())))
        for number in numbers
    ]


def _place(texts: Texts, where: Where, among: Sequence[Where]) -> str:
    """Return a place by the first thing that is not the same for all.

    Workload, another axis, lane, experiment; the caches of a process last, since replicates start on either.
    """
    axes = [axis for axis in ("workload", *where.axes) if axis != _PROCESS and all(axis in one.axes for one in among)]
    for axis in axes:
        if len({_at(texts, other, axis) for other in among}) > 1:
            return _at(texts, where, axis)
    if len({other.lane for other in among}) > 1:
        return texts("what.lane", lane=where.lane) if where.lane else texts("what.this-lane")
    if len({other.experiment for other in among}) > 1:
        return texts.name("experiment", where.experiment)
    caches = [_at(texts, other, _PROCESS) for other in among if _PROCESS in other.axes]
    return _at(texts, where, _PROCESS) if len(caches) == len(among) and len(set(caches)) > 1 else ""


def _at(texts: Texts, where: Where, axis: str) -> str:
    """Return what a place is called by its value, or values, on an axis; of a process, the caches it starts on."""
    found = where.axes[axis]
    values = found if isinstance(found, tuple) else (found,)
    if axis == _PROCESS:
        return texts("what.warm" if str(values[0]).startswith("warm") else "what.cold")
    return listed(texts, [on_axis(texts, axis, one) for one in values])


def on_axis(texts: Texts, axis: str, value: Scalar) -> str:
    """Return what a value of an axis is called; a bare number with its axis, since it says nothing alone."""
    return texts.names.get(axis, {}).get(str(value)) or (value if isinstance(value, str) else f"{axis} {value}")
