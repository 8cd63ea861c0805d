"""What must hold for every page there is, by rule: whoever adds a page has it checked without listing it."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.site.conftest import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.site.conftest import Built

pytestmark = pytest.mark.slow

LANGUAGES = ("en", "zh")
ATTACKS = (
    "<script>alert",
    "<img src=x",
    "</code></pre></td> {",
    "<!-- ]]>",
    "[l](javascript:",
    "onclick=alert(1)}",
    "{% raw %}",
    "\u202e",
)
"""What of a stranger's text must never stand in a page as it was written."""
FOREIGN = re.compile(r"""(?:src|srcset|data|action|poster)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?(?:https?:)?//""")


def test_every_attack_is_part_of_the_hostile_text() -> None:
    assert all(attack in HOSTILE for attack in ATTACKS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_strangers_text_stands_in_no_page_as_it_was_written(attacked: Built, language: str) -> None:
    root = attacked.site / ("zh" if language == "zh" else "")
    showing = set[str]()
    for name in attacked.pages(language):
        page = (root / f"{name}.html").read_text(encoding="utf-8")
        # Data in a script is read by programs alone; the next test holds that it can't leave its script.
        page = re.sub(r"<script[^>]*json\"?>.*?</script>", "", page, flags=re.DOTALL)
        assert [attack for attack in ATTACKS if attack in page] == [], name
        if "alert(1)" in html.unescape(page):
            showing.add(name.rpartition("/")[0])
    # It is there to be read: on the ledger, where damage is listed, and on the pages of claims.
    assert {"", "claims"} <= showing


@pytest.mark.parametrize("which", ["full", "attacked"])
def test_data_in_a_page_ends_no_script_element(request: pytest.FixtureRequest, which: str) -> None:
    built: Built = request.getfixturevalue(which)
    found = 0
    for language in LANGUAGES:
        root = built.site / ("zh" if language == "zh" else "")
        for name in built.pages(language):
            page = (root / f"{name}.html").read_text(encoding="utf-8")
            for kind, data in re.findall(
                r"<script[^>]*type=\"?([\w/+.-]+json)\"?[^>]*>(.*?)</script>", page, re.DOTALL
            ):
                assert "<" not in data, (name, kind)
                json.loads(data)
                found += 1
    assert found > len(LANGUAGES)


@pytest.mark.parametrize("which", ["full", "empty", "smoke", "attacked"])
def test_every_page_has_its_twin(request: pytest.FixtureRequest, which: str) -> None:
    built: Built = request.getfixturevalue(which)
    assert built.pages("en") == built.pages("zh")
    assert len(built.pages("en")) > 10


@pytest.mark.parametrize("which", ["full", "attacked"])
def test_nothing_that_a_page_loads_is_on_another_host(request: pytest.FixtureRequest, which: str) -> None:
    built: Built = request.getfixturevalue(which)
    assert [
        (_name(built, file), found[0])
        for file in sorted(built.site.resolve().rglob("*"))
        if file.suffix in {".html", ".css", ".svg"}
        for found in FOREIGN.finditer(file.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize("which", ["full", "empty", "smoke", "attacked"])
def test_every_page_is_reached_from_home_and_no_link_is_dead(request: pytest.FixtureRequest, which: str) -> None:
    # LinkChecker asks a server about one of these sites; this is how all of them are from disk.
    built: Built = request.getfixturevalue(which)
    site = built.site.resolve()
    pages = {file: file.read_text(encoding="utf-8") for file in site.rglob("*.html")}
    ids = {file: set(re.findall(r'\sid="([^"]*)"', page)) for file, page in pages.items()}
    home = site / "index.html"
    reached, waiting, dead = {home}, [home], set[tuple[str, str]]()
    while waiting:
        at = waiting.pop()
        for link in re.findall(r'<a\s[^>]*?href="([^"]*)"', pages[at]):
            there = html.unescape(link)
            if re.match(r"[a-z]+:", there):
                continue
            path, _, anchor = there.partition("#")
            to = (at.parent / unquote(path.partition("?")[0])).resolve() if path else at
            if not to.is_relative_to(site) or not to.is_file():
                dead.add((_name(built, at), there))
            elif to in pages:
                if anchor and unquote(anchor) not in ids[to] and not anchor.startswith("__"):
                    dead.add((_name(built, at), there))
                if to not in reached:
                    reached.add(to)
                    waiting.append(to)
    assert dead == set()
    assert {_name(built, file) for file in pages.keys() - reached} == set()


def test_search_does_not_find_a_charts_ticks(full: Built) -> None:
    index = (full.site / "search" / "search_index.js").read_text(encoding="utf-8")
    drawn = re.findall(
        r'class="rk-(?:wide|narrow)"[^>]*>(<svg.*?</svg>)', full.page("claims/good-cases.html"), re.DOTALL
    )
    assert len(drawn) > 2
    for svg in drawn:
        ticks = "".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))[:24]
        assert len(ticks) == 24
        assert ticks not in index


def _name(built: Built, file: Path) -> str:
    return file.relative_to(built.site.resolve()).as_posix()
