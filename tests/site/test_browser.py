"""The built site in a real Chromium: both languages, both themes, desk and phone, from disk and below a path.

Screenshots go to `tests/site/screenshots`, which git ignores: they are for eyes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.site.conftest import Built

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCREENSHOTS = Path(__file__).parent / "screenshots"
PAGES = (
    "index",
    "article/index",
    "article/eager",
    "article/ecosystem",
    "article/inductor",
    "article/benchmarks",
    "article/questions",
    "article/limits",
    "article/outlook",
    "article/advice",
    "ledger",
    "ruler",
    "claims/traps-refused",
    "claims/table-resnet50",
    "claims/cache-new-in-2.5",
    "claims/bert-compile-costly",
    "method",
    "glossary",
    "architecture",
    "decisions/index",
    "decisions/0001-paired-median-ratio",
)
SHOWN = ("index", "article/benchmarks", "ledger", "ruler", "claims/table-resnet50")
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


class Watched:
    """A page, and everything that went wrong on it."""

    def __init__(self, browser: Browser, width: int, scheme: Literal["light", "dark"], allowed: str) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.troubles: list[str] = []
        self.page.on("console", lambda said: self.troubles.append(f"{self.page.url}: {said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"{self.page.url}: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((allowed, "data:", "blob:", "about:"))
                else self.troubles.append(f"{self.page.url} asked for {asked.url}")
            ),
        )

    def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def settle(self) -> None:
        """Wait until every chart is interactive."""
        self.page.wait_for_function(
            "document.querySelectorAll('figure.rk-chart').length === document.querySelectorAll('.rk-live svg').length"
        )


def address(built: Built, page: str, language: str) -> str:
    """Return a page's address on disk."""
    return (built.site / ("zh" if language == "zh" else "") / f"{page}.html").as_uri()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_every_page_from_disk(
    browser: Browser, full: Built, language: str, scheme: Literal["light", "dark"], width: int
) -> None:
    watched = Watched(browser, width, scheme, full.site.as_uri())
    SCREENSHOTS.mkdir(exist_ok=True)
    for name in PAGES:
        watched.page.goto(address(full, name, language))
        watched.settle()
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert (
            watched.page.evaluate("document.body.dataset.mdColorScheme")
            == {"light": "default", "dark": "slate"}[scheme]
        )
        if name in SHOWN:
            file = f"{language}-{name.replace('/', '-')}-{scheme}-{width}.png"
            watched.page.screenshot(path=SCREENSHOTS / file, full_page=True)
    watched.page.close()
    assert not watched.troubles


@pytest.mark.parametrize("which", ["empty", "smoke", "attacked"])
def test_sites_with_less_in_them(browser: Browser, request: pytest.FixtureRequest, which: str) -> None:
    built: Built = request.getfixturevalue(which)
    watched = Watched(browser, 390, "light", built.site.as_uri())
    SCREENSHOTS.mkdir(exist_ok=True)
    for name in PAGES:
        for language in ("en", "zh"):
            watched.page.goto(address(built, name, language))
            watched.settle()
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390, name
    watched.page.goto(address(built, "index", "en"))
    watched.page.screenshot(path=SCREENSHOTS / f"{which}-index-390.png", full_page=True)
    watched.page.close()
    assert not watched.troubles


@pytest.mark.parametrize("place", ["disk", "path"])
def test_the_language_switch_stays_on_the_page(browser: Browser, full: Built, served: str, place: str) -> None:
    root = full.site.as_uri() + "/" if place == "disk" else served
    watched = Watched(browser, 1440, "light", root)
    for name in PAGES:
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
        ("zh/", "\u7f16\u8bd1\u7f13\u5b58", "claims/cache-hits"),
        ("zh/", "\u56fe\u6355\u83b7", "ecosystem"),
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


def test_the_ledger_filters_sorts_and_keeps_its_state_in_the_address(browser: Browser, full: Built) -> None:
    watched = Watched(browser, 1440, "light", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "ledger", "en"))
    rows = page.locator(".rk-ledger tbody tr")
    every = rows.count()
    page.select_option("select[aria-label=verdict]", "refuted")
    refuted = page.locator(".rk-ledger tbody tr:visible")
    assert 0 < refuted.count() < every
    assert "outcome=refuted" in page.url
    page.reload()
    assert page.locator(".rk-ledger tbody tr:visible").count() == refuted.count()
    page.select_option("select[aria-label=verdict]", "")
    head = page.locator(".rk-ledger thead th").nth(5)
    head.focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    centres = [float(one) for one in rows.evaluate_all("all => all.map(r => r.cells[5].dataset.sort).filter(Boolean)")]
    assert centres == sorted(centres)
    page.goto(address(full, "index", "en"))
    counted = int(page.inner_text(".rk-tally .rk-refuted strong"))
    page.click(".rk-tally .rk-refuted a")
    page.wait_for_selector(".rk-filters")
    assert page.locator(".rk-ledger tbody tr:visible").count() == counted
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
    watched.page.locator(".rk-live .mark-symbol path").first.hover()
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
