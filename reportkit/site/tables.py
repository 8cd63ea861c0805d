"""Tables that a reader can search, filter, sort, share by address and download.

A table of these is a plain one with every row in it; `theme/assets/site.js`, whose first comment is
the contract, adds the tools where scripts run. Pages say what a cell shows, what it sorts by and
which plain numbers it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reportkit.site import charts, lines
from reportkit.site.markup import Html, element, escape, plain, prose, scroll

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reportkit.judge import Interval
    from reportkit.site.texts import Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its head, and what it is called in the address and in a CSV."""

    title: str
    key: str = ""
    """In the address, where a reader sorts by it; without one it is no data, and in no download."""
    figures: bool = False
    """Whether it is aligned as figures are."""
    numbers: tuple[str, ...] = ()
    """The heads that it has in a CSV, one for each of a cell's numbers; else it is there as it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one cell shows, and what stands behind it."""

    shown: Html
    sort: float | str | None = None
    """What it is sorted by; else the middle one of its numbers, else its text."""
    numbers: tuple[float, ...] = ()
    """As many as its column has heads for, or none where it is empty."""
    text: str | None = None
    """What it says in a search and a download, where that is not what it shows."""
    head: bool = False
    """Whether it names the row."""
    class_: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row."""

    cells: tuple[Cell, ...]
    filed: Mapping[str, str] = field(default_factory=dict)
    """Its value by the key of each filter; empty: under none."""
    minor: bool = False
    """Whether it is hidden until asked for, where scripts run."""
    class_: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A choice among the values that rows are filed under."""

    key: str
    title: str
    words: Sequence[tuple[str, str]] = ()
    """Values and what they are called, in order; others come last and as they are."""
    reveals: bool = False
    """Whether choosing one shows minor rows too."""


def table(  # noqa: PLR0913 -- what a table is made of, by name
    texts: Texts,
    columns: Sequence[Column],
    rows: Sequence[Row],
    filters: Sequence[Filter] = (),
    *,
    file: str,
    name: str = "",
    more: str | None = None,
    class_: str = "",
) -> Html:
    """Return a table with tools.

    `file` is what a download is called, before its ending. `name` begins the table's keys in the address: one table
    of a page may do without. `more` is the label of the switch that shows minor rows, with `{count}` in it.
    """
    labels = texts.labels
    words = {key: labels[f"table.{key}"] for key in _WORDS} | ({"more": more} if more is not None else {})
    told = {
        "name": name,
        "file": file,
        "filters": [
            {"key": one.key, "title": plain(one.title), "words": [list(word) for word in one.words]}
            | ({"reveals": True} if one.reveals else {})
            for one in filters
        ],
        "words": words,
    }
    return element(
        "div",
        element("script", charts.script_json(told), type="application/json"),
        scroll(
            element(
                "table",
                element("thead", element("tr", *(_head(column) for column in columns))),
                element("tbody", *(_row(columns, row) for row in rows)),
                class_=f"rk-table {class_}".rstrip(),
            )
        ),
        class_="rk-sheet",
    )


_WORDS = ("find", "all", "count", "more", "clear", "none", "download", "csv", "markdown")


def ends(texts: Texts, title: str) -> tuple[str, str, str]:
    """Return the heads in a CSV of a column whose cells `figure` makes: low end, centre, high end."""
    return texts("table.low", title=plain(title)), plain(title), texts("table.high", title=plain(title))


def figure(interval: Interval | None) -> Cell:
    """Return the cell of an interval: centre and ends as figures, and as three plain numbers in the interval's unit."""
    if interval is None:
        return Cell(shown=escape("\u2013"), text="")
    return Cell(shown=lines.number(interval), numbers=(interval.low, interval.centre, interval.high))


def _head(column: Column) -> Html:
    return element(
        "th",
        prose(column.title),
        scope="col",
        class_="rk-number" if column.figures else None,
        data_key=column.key or None,
        data_numbers="|".join(one.replace("|", "/") for one in column.numbers) or None,
    )


def _row(columns: Sequence[Column], row: Row) -> Html:
    return element(
        "tr",
        *(_cell(column, cell) for column, cell in zip(columns, row.cells, strict=True)),
        class_=row.class_,
        data_minor=row.minor,
        **{f"data_{key}": value for key, value in row.filed.items() if value},
    )


def _cell(column: Column, cell: Cell) -> Html:
    classes = " ".join(one for one in ("rk-number" if column.figures else "", cell.class_ or "") if one)
    sort = f"{cell.sort:.6g}" if isinstance(cell.sort, float) else cell.sort
    return element(
        "th" if cell.head else "td",
        cell.shown,
        scope="row" if cell.head else None,
        class_=classes or None,
        data_sort=None if sort is None else str(sort),
        data_numbers=" ".join(f"{number:.6g}" for number in cell.numbers) or None,
        data_text=cell.text,
    )
