"""A table with tools, alone on a page: what Python writes, and what the script makes of it in a real browser."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from experiments import ARTICLE
from reportkit.judge import Interval
from reportkit.site import tables
from reportkit.site.markup import Html, element, escape, join
from reportkit.site.tables import Cell, Column, Filter, Row
from reportkit.site.texts import load_texts
from tests.site.conftest import HOSTILE, ROOT, golden
from tests.site.test_browser import Watched, browser  # noqa: F401 -- a fixture is used by its name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playwright.sync_api import Browser, Page

    from reportkit.site.texts import Texts

SCRIPT = ROOT / "reportkit" / "site" / "theme" / "assets" / "site.js"
ENGLISH = load_texts(ROOT, ARTICLE)["en"]

ROWS = (
    # name, lane, kind, ratio, minor
    ("beta", "2.5", "vision", (1.19, 1.2, 1.21), False),
    ("Alpha", "2.15", "text", (1.9, 2.0, 2.1), False),
    ("gamma", "2.5", "text", None, False),
    ("delta", "2.15", "vision", (0.999, 1.0, 1.001), True),
    ("epsilon", "nightly", "text", (9.9, 10.0, 10.1), True),
)


def made(texts: Texts, rows: Sequence[Row] | None = None, name: str = "") -> Html:
    """Return a table of those rows, or of the rows given under the same head."""
    columns = [
        Column(key="name", title="name"),
        Column(key="lane", title="lane"),
        Column(title="drawing"),
        Column(key="ratio", title="ratio", figures=True, numbers=tables.ends(texts, "ratio")),
    ]
    own = [
        Row(
            cells=(
                Cell(shown=escape(title), head=True),
                Cell(shown=escape(lane), sort=("2.5", "2.15", "nightly").index(lane)),
                Cell(shown=element("svg", element("title", escape("never text")))),
                tables.figure(Interval(low=ratio[0], centre=ratio[1], high=ratio[2]) if ratio else None),
            ),
            filed={"lane": lane, "kind": kind},
            minor=minor,
        )
        for title, lane, kind, ratio, minor in ROWS
    ]
    filters = [
        Filter(key="lane", title="lane", words=[("2.5", "2.5"), ("2.15", "2.15")], reveals=True),
        Filter(key="kind", title="kind", words=[("vision", "pictures"), ("text", "words")]),
    ]
    return tables.table(
        texts, columns, own if rows is None else rows, filters, file="made", name=name, more="{count} others too"
    )


def page_of(folder: Path, *parts: Html) -> str:
    """Write a page of these parts with the site's script; return its address on disk."""
    script = f'<script src="{SCRIPT.as_uri()}"></script>'
    text = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title>{join(parts)}{script}</html>'
    (folder / "page.html").write_text(text, encoding="utf-8")
    return (folder / "page.html").as_uri()


def names(page: Page, which: int = 0) -> list[str]:
    """Return the heads of the rows that are shown, in order."""
    return page.locator("table").nth(which).locator("tbody tr:visible th").all_inner_texts()


def state(page: Page) -> dict[str, list[str]]:
    """Return the address's query."""
    return parse_qs(page.evaluate("location.search.slice(1)"))


def downloaded(page: Page, word: str) -> tuple[str, str]:
    """Return the name and the text of a download."""
    with page.expect_download() as waited:
        page.get_by_role("button", name=word).click()
    return waited.value.suggested_filename, Path(waited.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_table_is_whole_without_scripts(language: str) -> None:
    golden(f"table-{language}.html", made(load_texts(ROOT, ARTICLE)[language]))


def test_what_a_stranger_wrote_stays_text() -> None:
    cells = (Cell(shown=escape(HOSTILE), text=HOSTILE, sort=HOSTILE), *(Cell(shown=escape("")) for _ in range(3)))
    table = made(ENGLISH, [Row(cells=cells, filed={"lane": HOSTILE})])

    for dangerous in ("<script>alert", "<img", "{{", "{%", 'b"', "`code`"):
        assert dangerous not in table


def in_a_browser(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test of the script, on pages opened from disk."""
    marked: Callable[..., None] = pytest.mark.browser(pytest.mark.slow(test))
    return marked


@in_a_browser
def test_filters_search_and_sort_go_together_and_come_back_with_the_address(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
) -> None:
    watched = Watched(browser, 1440, "light", "file:")
    page = watched.page
    page.goto(page_of(tmp_path, made(ENGLISH)) + "?h=other#kept")
    assert names(page) == ["beta", "Alpha", "gamma"]
    assert page.get_by_role("status").inner_text() == "3 of 3 rows"

    page.get_by_label("kind").select_option(label="words")
    page.get_by_role("button", name="ratio").press("Enter")
    page.get_by_label("find").fill("A")
    assert names(page) == ["Alpha", "gamma"]
    page.get_by_label("lane").select_option("2.15")
    assert names(page) == ["Alpha"]
    assert page.get_by_role("status").inner_text() == "1 of 5 rows"
    wanted = {"h": ["other"], "find": ["A"], "kind": ["text"], "lane": ["2.15"], "sort": ["ratio"]}
    assert state(page) == wanted
    assert page.evaluate("location.hash") == "#kept"

    page.reload()
    assert names(page) == ["Alpha"]
    assert state(page) == wanted
    page.get_by_label("find").fill("nowhere")
    assert names(page) == []
    assert page.get_by_role("status").inner_text() == "No row fits."
    assert page.get_by_role("button", name="CSV").is_disabled()
    page.get_by_role("button", name="show all again").click()
    assert names(page) == ["beta", "Alpha", "gamma"]
    assert state(page) == {"h": ["other"]}
    page.close()
    assert not watched.troubles


@in_a_browser
def test_every_column_sorts_up_down_and_back(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    watched = Watched(browser, 1440, "light", "file:")
    page = watched.page
    page.goto(page_of(tmp_path, made(ENGLISH)) + "?more=1")
    head = page.locator("th[data-key=ratio]")
    for direction, order in (
        ("ascending", ["delta", "beta", "Alpha", "epsilon", "gamma"]),
        ("descending", ["epsilon", "Alpha", "beta", "delta", "gamma"]),  # What is empty stays last.
        ("none", ["beta", "Alpha", "gamma", "delta", "epsilon"]),
    ):
        page.get_by_role("button", name="ratio").press("Space")
        assert head.get_attribute("aria-sort") == direction
        assert names(page) == order
    page.get_by_role("button", name="name").click()
    assert names(page) == ["Alpha", "beta", "delta", "epsilon", "gamma"]
    page.get_by_role("button", name="lane").click()
    assert names(page) == ["beta", "gamma", "Alpha", "delta", "epsilon"]
    assert page.locator("thead th:not([data-key])").get_attribute("aria-sort") is None
    page.close()
    assert not watched.troubles


@in_a_browser
def test_minor_rows_come_when_asked_for(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    watched = Watched(browser, 1440, "light", "file:")
    page = watched.page
    page.goto(page_of(tmp_path, made(ENGLISH)))
    page.get_by_label("2 others too").check()
    assert len(names(page)) == len(ROWS)
    assert state(page) == {"more": ["1"]}
    page.reload()
    assert len(names(page)) == len(ROWS)
    page.get_by_label("2 others too").uncheck()
    page.get_by_label("kind").select_option("vision")
    assert names(page) == ["beta"]
    page.get_by_label("lane").select_option("2.15")  # This one reveals.
    assert names(page) == ["delta"]
    page.close()
    assert not watched.troubles


@in_a_browser
def test_an_anchor_chooses_and_two_tables_keep_apart(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    watched = Watched(browser, 1440, "light", "file:")
    page = watched.page
    page.goto(page_of(tmp_path, made(ENGLISH), made(ENGLISH, name="second")) + "?second.kind=text#vision")
    assert names(page) == ["beta"]
    assert names(page, 1) == ["Alpha", "gamma"]
    page.get_by_role("button", name="name").nth(1).click()
    page.get_by_label("find").nth(1).fill("al")
    assert state(page) == {
        "kind": ["vision"],
        "second.kind": ["text"],
        "second.sort": ["name"],
        "second.find": ["al"],
    }
    assert not page.evaluate("location.hash")
    page.reload()
    assert names(page) == ["beta"]
    assert names(page, 1) == ["Alpha"]
    page.close()
    assert not watched.troubles


@in_a_browser
def test_a_csv_has_what_is_shown_as_plain_numbers(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    watched = Watched(browser, 1440, "light", "file:")
    page = watched.page
    page.goto(page_of(tmp_path, made(ENGLISH)) + "?sort=-ratio")
    name, text = downloaded(page, "CSV")
    assert name == "made.csv"
    assert text.startswith("\ufeff")
    assert list(csv.reader(io.StringIO(text.removeprefix("\ufeff")))) == [
        ["name", "lane", "ratio, low end", "ratio", "ratio, high end"],
        ["Alpha", "2.15", "1.9", "2", "2.1"],
        ["beta", "2.5", "1.19", "1.2", "1.21"],
        ["gamma", "2.5", "", "", ""],
    ]
    page.close()
    assert not watched.troubles


@in_a_browser
@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t="])
def test_a_cell_of_a_csv_never_starts_a_formula(browser: Browser, tmp_path: Path, begin: str) -> None:  # noqa: F811
    formula = f'{begin}cmd|"/c calc"!A1'
    rest = (Cell(shown=escape("-0.5")), Cell(shown=escape("")), Cell(shown=escape("")))
    rows = [
        Row(cells=(Cell(shown=escape(formula), text=formula, head=True), *rest), filed={"lane": formula}),
        Row(cells=(Cell(shown=escape(formula), head=True), *rest)),
    ]
    watched = Watched(browser, 1440, "light", "file:")
    watched.page.goto(page_of(tmp_path, made(ENGLISH, rows)))
    _, text = downloaded(watched.page, "CSV")
    read = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert read[1][0] == f"'{formula}"
    assert read[2][0] == f"'{formula.strip()}"
    assert [row[1] for row in read[1:]] == ["-0.5", "-0.5"]  # A number is one still.
    watched.page.close()
    assert not watched.troubles


@in_a_browser
def test_markdown_is_a_table_and_nothing_else(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    rest = (Cell(shown=escape("2.5")), Cell(shown=escape("")), Cell(shown=escape("1.2x")))
    rows = [Row(cells=(Cell(shown=escape("a|b *c* <img src=x> [l](u)\n`d`"), head=True), *rest))]
    watched = Watched(browser, 1440, "light", "file:")
    watched.page.goto(page_of(tmp_path, made(ENGLISH, rows)))
    name, text = downloaded(watched.page, "Markdown")
    assert name == "made.md"
    assert text.splitlines() == [
        "| name | lane | ratio |",
        "| --- | --- | --: |",
        r"| a\|b \*c\* \<img src=x\> \[l\](u) \`d\` | 2.5 | 1.2x |",
    ]
    watched.page.close()
    assert not watched.troubles
