"""The built site in a real Chromium: both languages, both themes, desk and phone, from disk and below a path.

Screenshots go to `tests/site/screenshots`, which git ignores: they are for eyes.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from experiments import ARTICLE
from tests.site.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.site.conftest import Built

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCREENSHOTS = Path(__file__).parent / "screenshots"
DESK, PHONE = 1440, 390
HEAVIEST = 250_000
"""Bytes, compressed, of all that a first visit to a page loads. Vega comes on top, where a chart is."""
VEGA = "assets/vega.js"
THEMES = {"light": "default", "dark": "slate"}
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the Chromium of this machine."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; Debian: apt install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield chromium
        chromium.close()


Scheme = Literal["light", "dark"]


class Watched:
    """A page, and everything that went wrong on it."""

    def __init__(self, browser: Browser, width: int, scheme: Scheme, allowed: str) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.troubles: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda said: self.troubles.append(f"{self.page.url}: {said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"{self.page.url}: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda asked: self._request(asked.url, allowed))

    def _request(self, url: str, allowed: str) -> None:
        self.asked.add(url)
        if not url.startswith((allowed, "data:", "blob:", "about:")):
            self.troubles.append(f"{self.page.url} asked for {url}")

    def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def visit(self, url: str) -> None:
        """Open a page and wait for its charts; what it asks for is in `asked`."""
        self.asked.clear()
        self.page.goto(url)
        self.settle()

    def settle(self) -> None:
        """Wait until every chart that is in sight is interactive; a chart in a closed fold has no width."""
        self.page.wait_for_function(
            "[...document.querySelectorAll('figure.rk-chart')].every(one =>"
            " !one.querySelector('.rk-plot').clientWidth || one.querySelector('.rk-live svg'))"
        )

    def fit(self, width: int) -> None:
        """Note what is wider than the screen, after charts had the time to be drawn anew for it."""
        self.page.set_viewport_size({"width": width, "height": 900})
        try:
            self.page.wait_for_function(f"document.documentElement.scrollWidth <= {width}", timeout=5000)
        except PlaywrightTimeout:
            self.troubles.append(f"{self.page.url} is wider than {width}: {self.page.evaluate(WIDER)}")


WIDER = """() => [...document.querySelectorAll('.md-main *')]
    .filter(one => one.getBoundingClientRect().right > innerWidth && !one.closest('.rk-scroll'))
    .slice(0, 3).map(one => one.outerHTML.slice(0, 100))"""


def address(built: Built, page: str, language: str) -> str:
    """Return a page's address on disk."""
    return (built.site / ("zh" if language == "zh" else "") / f"{page}.html").as_uri()


def compressed(site: Path, root: str, asked: set[str]) -> int:
    """Return how many bytes the files of those addresses have, each compressed; Vega left out."""
    names = {unquote(url.removeprefix(root)).partition("?")[0] for url in asked if url.startswith(root)}
    return sum(_compressed(site / name) for name in names if name != VEGA)


@functools.cache
def _compressed(file: Path) -> int:
    return len(gzip.compress(file.read_bytes(), 6))


# Every page is opened four times: in each language from disk and below a path, in either theme, on a phone and on a
# desk; and each time the window is then made the other one.
@pytest.mark.parametrize(
    ("place", "language", "scheme", "width"),
    [
        ("disk", "en", "light", PHONE),
        ("disk", "zh", "dark", DESK),
        ("path", "en", "dark", DESK),
        ("path", "zh", "light", PHONE),
    ],
)
@pytest.mark.timeout(900)
def test_every_page(  # noqa: PLR0913, PLR0917 -- pytest's way
    browser: Browser, full: Built, served: str, place: str, language: str, scheme: Scheme, width: int
) -> None:
    root = full.site.as_uri() + "/" if place == "disk" else served
    shown = set(full.kinds(language))
    watched = Watched(browser, width, scheme, root)
    SCREENSHOTS.mkdir(exist_ok=True)
    heavy: list[tuple[str, int]] = []
    for name in full.pages(language):
        watched.fit(width)
        watched.visit(f"{root}{'zh/' if language == 'zh' else ''}{name}.html")
        size = compressed(full.site, root, watched.asked)
        if size > HEAVIEST:
            heavy.append((name, size))
        if watched.page.evaluate("document.body.dataset.mdColorScheme") != THEMES[scheme]:
            watched.troubles.append(f"{name} is not {scheme}")
        for each in (width, DESK + PHONE - width):
            watched.fit(each)
            if name in shown:
                file = f"{language}-{name.replace('/', '-')}-{scheme}-{each}.png"
                watched.page.screenshot(path=SCREENSHOTS / file, full_page=True)
    watched.page.close()
    assert not watched.troubles
    assert not heavy


@pytest.mark.parametrize(("which", "language"), [("empty", "en"), ("smoke", "zh"), ("attacked", "en")])
def test_sites_with_less_in_them(browser: Browser, request: pytest.FixtureRequest, which: str, language: str) -> None:
    built: Built = request.getfixturevalue(which)
    watched = Watched(browser, PHONE, "light", built.site.as_uri())
    SCREENSHOTS.mkdir(exist_ok=True)
    for name in built.kinds(language):
        watched.visit(address(built, name, language))
        watched.fit(PHONE)
    watched.page.goto(address(built, "index", language))
    watched.page.screenshot(path=SCREENSHOTS / f"{which}-index-390.png", full_page=True)
    watched.page.close()
    assert not watched.troubles


@pytest.mark.parametrize("place", ["disk", "path"])
def test_the_language_switch_stays_on_the_page(browser: Browser, full: Built, served: str, place: str) -> None:
    root = full.site.as_uri() + "/" if place == "disk" else served
    watched = Watched(browser, DESK, "light", root)
    for name in full.kinds("en"):
        watched.page.goto(f"{root}{name}.html")
        watched.page.click("[data-md-component=twin]")
        watched.page.wait_for_url(f"{root}zh/{name}.html")
        assert watched.page.evaluate("document.documentElement.lang") == "zh"
        watched.page.click("[data-md-component=twin]")
        watched.page.wait_for_url(f"{root}{name}.html")
    watched.page.close()
    assert not watched.troubles


@pytest.mark.parametrize("place", ["disk", "path"])
@pytest.mark.parametrize(
    ("language", "query", "page"),
    [
        ("zh/", "\u7f16\u8bd1", "claims/eager-many-launches"),
        ("zh/", "\u7f16\u8bd1\u7f13\u5b58", "claims/cache-hits"),
        ("zh/", "\u56fe\u6355\u83b7", "ecosystem"),
        ("zh/", "\u52a8\u6001\u5f62\u72b6", "inductor"),
        ("zh/", "\u9996\u6b21\u8c03\u7528", "benchmarks"),
        ("", "inductor", "default-inductor"),
    ],
)
def test_search_finds(  # noqa: PLR0913, PLR0917 -- pytest's way
    browser: Browser, full: Built, served: str, place: str, language: str, query: str, page: str
) -> None:
    root = full.site.as_uri() + "/" if place == "disk" else served
    watched = Watched(browser, 1440, "light", root)
    watched.page.goto(f"{root}{language}index.html")
    watched.page.click(".md-search__input")
    watched.page.keyboard.type(query)
    watched.page.keyboard.press("End")  # As an input method does, the text above comes without a key; this is one.
    watched.page.wait_for_selector(".md-search-result__item a")
    listed, found = -1, list[str]()
    while len(found) > listed:  # The theme lists some, and more when one scrolls to the last of them.
        listed = len(found)
        watched.page.eval_on_selector(".md-search__scrollwrap", "one => one.scrollTo(0, one.scrollHeight)")
        watched.page.wait_for_timeout(500)
        found = watched.page.eval_on_selector_all(".md-search-result__item a", "all => all.map(one => one.href)")
    assert any(page in link for link in found), found
    # And the word itself is found, not only its parts.
    files = {full.site / unquote(re.split("[?#]", link.removeprefix(root))[0]) for link in found}
    assert any(query in file.read_text(encoding="utf-8").lower() for file in files)
    watched.page.close()
    assert not watched.troubles


def test_search_shows_a_strangers_text_as_text(browser: Browser, attacked: Built) -> None:
    watched = Watched(browser, 1440, "light", attacked.site.as_uri())
    watched.page.goto(address(attacked, "index", "en"))
    watched.page.click(".md-search__input")
    watched.page.keyboard.type("onerror")
    watched.page.wait_for_selector(".md-search-result__item a")
    watched.page.wait_for_timeout(300)
    assert watched.page.locator(".md-search-result img").count() == 0
    watched.page.close()
    assert not watched.troubles


def test_the_ledger_shows_a_row_a_claim_and_the_rest_when_asked(browser: Browser, full: Built) -> None:
    watched = Watched(browser, 1440, "light", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "ledger", "en"))
    shown = page.locator(".rk-ledger tbody tr:visible")
    every = page.locator(".rk-ledger tbody tr").count()
    assert shown.count() == len(ARTICLE.claims) < every
    page.get_by_label("verdict", exact=True).select_option("refuted")
    refuted = shown.count()
    assert 0 < refuted < len(ARTICLE.claims)
    page.get_by_label("lane", exact=True).select_option("2.15")
    assert set(page.locator(".rk-ledger tbody tr:visible td:nth-child(3)").all_inner_texts()) == {"2.15"}
    page.reload()
    assert "lane=2.15" in page.url
    assert "verdict=refuted" in page.url
    page.get_by_role("button", name="show all again").click()
    page.get_by_role("button", name="measured").press("Enter")
    sorts = page.locator(".rk-ledger tbody tr").evaluate_all("all => all.map(r => r.cells[5].dataset.sort)")
    centres = [float(one) for one in sorts if one]
    assert centres == sorted(centres)
    page.goto(address(full, "index", "en"))
    counted = int(page.inner_text(".rk-tally .rk-refuted strong"))
    page.click(".rk-tally .rk-refuted a")
    page.wait_for_selector(".rk-filters")
    # The ledger also has what was refuted at smoke scale, which does not count.
    assert shown.filter(has_text="nvidia-h200").count() == counted
    page.close()
    assert not watched.troubles


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_pair_of_lanes_is_filtered_shared_and_taken_along(browser: Browser, full: Built, language: str) -> None:
    watched = Watched(browser, 390, "light", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "compare/2.5-to-2.15", language))
    shown = page.locator(".rk-compare tbody tr:visible")
    every, first = page.locator(".rk-compare tbody tr").count(), shown.count()
    assert 0 < first < every
    page.locator(".rk-switch input").check()
    assert shown.count() == every
    page.locator(".rk-filters select").nth(0).select_option("4")
    assert "more=1" in page.url
    assert "section=4" in page.url
    fourth = shown.count()
    assert 0 < fourth < every
    page.reload()
    assert shown.count() == fourth
    # The name of a row stays in sight while the figures scroll by.
    page.locator(".rk-scroll:has(.rk-compare)").evaluate("one => { one.scrollLeft = 900; }")
    name = shown.first.locator("th").bounding_box()
    assert name
    assert 0 <= name["x"] < 40
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    with page.expect_download() as waited:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.reader(io.StringIO(Path(waited.value.path()).read_text(encoding="utf-8-sig"))))
    assert waited.value.suggested_filename == "2.5-to-2.15-nvidia-h200.csv"
    assert len(rows) == fourth + 1
    assert {len(row) for row in rows} == {len(rows[0])}
    with page.expect_download() as waited:
        page.get_by_role("button", name="Markdown").click()
    text = Path(waited.value.path()).read_text(encoding="utf-8")
    assert len(text.splitlines()) == fourth + 2
    page.close()
    assert not watched.troubles


def test_without_scripts_a_pair_of_lanes_is_whole(browser: Browser, full: Built) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 900})
    page = context.new_page()
    page.goto(address(full, "compare/2.5-to-2.15", "en"))
    rows = page.locator(".rk-compare tbody tr")
    assert page.locator(".rk-compare tbody tr:visible").count() == rows.count() > 50
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_searching_the_ledger_is_not_searching_the_site(browser: Browser, full: Built) -> None:
    watched = Watched(browser, 1440, "light", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "ledger", "en"))
    page.get_by_label("find", exact=True).fill("BERT")
    page.reload()
    assert 0 < page.locator(".rk-ledger tbody tr:visible").count() < len(ARTICLE.claims)
    page.wait_for_timeout(500)  # The theme reads its own search from the address when it has started.
    assert not page.locator(".md-search__output").is_visible()
    page.close()
    assert not watched.troubles


def test_without_scripts_every_drawing_and_row_is_there(browser: Browser, full: Built) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 900})
    page = context.new_page()
    page.goto(address(full, "article/benchmarks", "en"))
    assert page.locator(".rk-narrow svg:visible").count() == page.locator("figure.rk-chart").count() > 2
    assert page.locator(".rk-save:visible").count() == 0
    assert page.locator(".rk-wide svg:visible").count() == 0
    page.goto(address(full, "ledger", "en"))
    assert page.locator(".rk-ledger tbody tr:visible").count() > 20
    context.close()


def test_a_chart_can_be_asked_for_its_values(browser: Browser, full: Built) -> None:
    watched = Watched(browser, 1440, "dark", full.site.as_uri())
    watched.page.goto(address(full, "index", "en"))
    watched.settle()
    # Charts of lanes that are not chosen are drawn as well, and out of sight.
    watched.page.locator(".rk-live .mark-symbol path:visible").first.hover()
    watched.page.wait_for_selector("#vg-tooltip-element.visible")
    assert "ResNet-50" in watched.page.inner_text("#vg-tooltip-element")
    watched.page.close()
    assert not watched.troubles


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_ruler_works_on_a_phone(browser: Browser, full: Built, language: str) -> None:
    watched = Watched(browser, 390, "dark", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "ruler", language))
    watched.settle()
    folds = page.locator("details.rk-more")
    for place in range(folds.count()):
        folds.nth(place).evaluate("fold => { fold.open = true; }")
    watched.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # A table that is too wide scrolls inside itself, and can be reached by keyboard to do so.
    wide = page.locator(".rk-scroll").evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth)")
    assert wide
    assert page.locator(".rk-scroll:not([tabindex])").count() == 0
    # Everything a drawing or a chart shows has a name; what is met or missed is a word.
    assert page.locator("svg[role=img]:not([aria-label])").count() == 0
    for word in page.locator(".rk-ruler .rk-chip").all_inner_texts():
        assert len(word.strip()) > 1
    page.close()
    assert not watched.troubles


STOCK = """
site_name: stock
use_directory_urls: false
theme:
  name: material
  language: {language}
  font: false
  features: [navigation.tabs, navigation.sections, navigation.top, content.code.copy, search.highlight]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      toggle: {{icon: material/weather-night, name: dark}}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      toggle: {{icon: material/weather-sunny, name: light}}
markdown_extensions: [attr_list, tables, pymdownx.details, pymdownx.highlight, pymdownx.superfences]
nav: [{{A: index.md}}, {{B: [b.md, c.md]}}]
"""
PLAIN = "# A page\n\nA [link](b.md).\n\n## A part\n\n| a | b |\n|---|---|\n| c | d |\n\n```sh\nls\n```\n"
SERIOUS = ("serious", "critical")


def serious(axe: Axe, page: Page) -> dict[tuple[str, str], str]:
    """Return what axe finds serious on a page, by its rule and the element, with the first of its places."""
    found = axe.run(page, options={"resultTypes": ["violations"], "preload": False}).response["violations"]
    return {
        (one["id"], node["html"]): f"{one['id']}: {node['target']}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    }


@pytest.mark.parametrize(("language", "scheme", "width"), [("en", "light", PHONE), ("zh", "dark", DESK)])
@pytest.mark.timeout(900)
def test_nothing_serious_for_axe_beyond_stock_material(
    browser: Browser, full: Built, tmp_path: Path, language: str, scheme: Scheme, width: int
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text(STOCK.format(language=language), encoding="utf-8")
    for name in ("index", "b", "c"):
        (tmp_path / "docs" / f"{name}.md").write_text(PLAIN, encoding="utf-8")
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=tmp_path, check=True, env=quiet)
    axe = Axe()
    watched = Watched(browser, width, scheme, "")
    with serving(tmp_path / "site") as stocked:  # Stock Material does not work from disk.
        watched.page.goto(f"{stocked}b.html", wait_until="networkidle")
        stock = serious(axe, watched.page)
    beyond: dict[str, list[str]] = {}
    for name in full.kinds(language):
        watched.visit(address(full, name, language))
        for (rule, element), place in serious(axe, watched.page).items():
            if (rule, element) not in stock:
                beyond.setdefault(rule, []).append(f"{name}: {place} {element[:120]}")
    watched.page.close()
    assert {rule: found[:5] for rule, found in beyond.items()} == {}


def test_how_soon_a_chart_page_is_usable(browser: Browser, full: Built, capsys: pytest.CaptureFixture[str]) -> None:
    # Told and never asserted: a time depends on what else the machine does.
    watched = Watched(browser, DESK, "light", full.site.as_uri())
    watched.visit(address(full, "method", "en"))  # The first page pays for starting a process.
    began = time.perf_counter()
    watched.visit(address(full, "index", "en"))
    took = time.perf_counter() - began
    assert watched.page.locator(".rk-live svg").count() > 0
    watched.page.close()
    with capsys.disabled():
        sys.stdout.write(f"\nhome, with its chart: usable after {took:.2f} s in headless Chromium\n")
