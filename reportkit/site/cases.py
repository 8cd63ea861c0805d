"""What a case looks like in a table: its name in words, its marks, times, first call, memory, graphs, raw file.

Lane pages and compare pages are made of these cells, so that a case reads the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from reportkit.compare import allocated, captured
from reportkit.judge import Reason, exact
from reportkit.quantity import format_quantity
from reportkit.site import lines, naming, tables
from reportkit.site.claimreview import RAW
from reportkit.site.markup import NOTHING, Html, element, escape, join, prose, relative
from reportkit.site.tables import Cell, Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reportkit.compare import Side
    from reportkit.plan import Cache
    from reportkit.records import CaseFile, Scalar, Stored
    from reportkit.site.texts import Texts

NONE = "\u2013"
_SHORT = 160
"""Characters of what is said of one case in a table."""
_SIDES: tuple[Side, ...] = ("eager", "compiled")


def words(texts: Texts, axes: Mapping[str, Scalar]) -> str:
    """Return the place of a case on its axes in words."""
    return naming.listed(texts, [naming.on_axis(texts, axis, value) for axis, value in axes.items()])


def name(texts: Texts, case: str, axes: Mapping[str, Scalar], marks: Html) -> Cell:
    """Return the cell that names a row: the case as files call it, its marks, and what that means below."""
    said = words(texts, axes)
    shown = [element("code", escape(case)), marks, element("span", escape(said), class_="rk-words")]
    return Cell(shown=join([part for part in shown if part], " "), text=f"{case} {said}", sort=case, head=True)


def marks(texts: Texts, stored: Stored, code: str | None = None) -> Html:
    """Return what a reader must know before believing a file; `code` is of the reason why it does not count."""
    found = [
        key
        for key, holds in (
            ("local", stored.local),
            ("stale", code == "stale"),
            ("dirty", stored.file.provenance.dirty),
            ("failed", stored.file.status != "complete"),
            ("wrong", lines.wrong(stored.file)),
        )
        if holds
    ]
    return join([lines.flag(texts, key) for key in found], " ")


def how_wrong(texts: Texts, file: CaseFile) -> Html:
    """Return how a wrong result shows, in the file's own words or else by its errors; nothing where it is not wrong."""
    seen = file.correctness
    if seen is None or not lines.wrong(file):
        return NOTHING
    if seen.detail:
        said = lines.recorded(texts, seen.detail, _SHORT)
    else:
        errors = (NONE if one is None else f"{one:.2g}" for one in (seen.eager_error, seen.compiled_error))
        said = prose(texts("flag.wrong-by", **dict(zip(_SIDES, errors, strict=True))))
    return element("span", said, class_="rk-words")


def unsearched(table: Html) -> Html:
    """Return a table that the site's search leaves out: it has its own, and rows of figures would bury the prose."""
    return element("div", table, data_search_exclude=True)


def time(texts: Texts, title: str, key: str) -> Column:
    """Return the column of a side's time, or of another interval in seconds."""
    return Column(title=title, key=key, figures=True, numbers=tables.ends(texts, texts("cases.in-s", title=title)))


def first_call(seconds: float | None) -> Cell:
    """Return the cell of a first call."""
    return _one(seconds, "s")


def memory_column(texts: Texts, lane: str, key: str) -> Column:
    """Return the column of peak memory, of a lane after a space: both sides in one cell, sorted by the compiled one."""
    heads = [texts(f"what.{side}", what=texts("cases.in-bytes", lane=lane)) for side in _SIDES]
    return Column(title=texts("cases.memory", lane=lane), key=key, figures=True, numbers=(heads[0], heads[1]))


def memory(file: CaseFile) -> Cell:
    """Return the cell of the peak memory that eager and compiled allocated."""
    found = [allocated(file)[side] for side in _SIDES]
    numbers = [float(one) for one in found if one is not None]
    if not numbers:
        return Cell(shown=escape(NONE), text="")
    shown = " / ".join(NONE if one is None else format_quantity(exact(float(one), "B")) for one in found)
    both = len(numbers) == len(_SIDES)
    return Cell(shown=escape(shown), numbers=tuple(numbers) if both else (), sort=found[1] or "")


def graphs_column(texts: Texts, title: str, key: str) -> Column:
    """Return the column of graphs and breaks: both in one cell, sorted by the graphs."""
    heads = (texts("cases.graphs"), texts("cases.breaks"))
    return Column(title=title, key=key, figures=True, numbers=heads)


def graphs(file: CaseFile) -> Cell:
    """Return the cell of how many graphs were captured, and how many breaks were met."""
    found = captured(file)
    if not any(found) and not file.measurements:
        return Cell(shown=escape(NONE), text="", sort="")
    shown = " / ".join(NONE if one is None else str(one) for one in found)
    numbers = tuple(float(one) for one in found if one is not None)
    return Cell(
        shown=escape(shown),
        numbers=numbers if len(numbers) == len(found) else (),
        sort="" if found[0] is None else found[0],
    )


def caches(texts: Texts, found: Cache, seconds: float | None) -> Cell:
    """Return the cell of the caches that a first call found; nothing where there was none."""
    if seconds is None:
        return Cell(shown=escape(NONE), text="", sort="")
    return Cell(shown=escape(texts(f"cases.{found}")), class_="rk-nowrap")


def why(texts: Texts, reason: Reason) -> Html:
    """Return the sentence for a reason, what a stranger wrote in it cut short: the raw file has all of it."""
    details = {
        key: f"{detail[:_SHORT]} \u2026" if isinstance(detail, str) and len(detail) > _SHORT else detail
        for key, detail in reason.details.items()
    }
    return lines.reason(texts, Reason(code=reason.code, details=details))


def raw(at: str, above: str, stored: Stored, shown: str = "JSON") -> Html:
    """Return the link from a page to a case file as it lies on disk; `above` leads to the site's root."""
    return element("a", escape(shown), href=relative(at, f"{above}{RAW}/{stored.path}"))


def _one(value: float | None, unit: Literal["s", "B"]) -> Cell:
    if value is None:
        return Cell(shown=escape(NONE), text="")
    return Cell(shown=escape(format_quantity(exact(value, unit))), numbers=(value,))
