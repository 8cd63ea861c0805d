"""Lanes and charts in a real Chromium: picked without a script, stepped through by keyboard, saved from disk."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.site.test_browser import Watched, address, browser  # noqa: F401 -- a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.site.conftest import Built

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SVG = "{http://www.w3.org/2000/svg}"
SAVE = {"en": "Save as", "zh": "\u4fdd\u5b58\u4e3a"}
COLOURS = {"light": "#ffffff", "dark": "#14181d"}


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_lane_is_picked_by_its_address_with_and_without_scripts(
    browser: Browser,  # noqa: F811
    whole: Built,
    language: str,
    scripts: bool,  # noqa: FBT001 -- pytest's way
) -> None:
    context = browser.new_context(java_script_enabled=scripts, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(address(whole, "index", language))
    panels = page.locator(".rk-lane:visible")
    assert panels.count() == 1
    assert panels.get_attribute("id") == "lane-2.5"
    page.click(".rk-lane:visible .rk-pick a[href='#lane-2.15']")
    assert panels.count() == 1
    assert panels.get_attribute("id") == "lane-2.15"
    assert page.url.endswith("#lane-2.15")
    assert "PyTorch 2.15" in page.inner_text(".rk-lane:visible .rk-answer")
    assert "2.15" in page.inner_text(".rk-lane:visible figcaption")
    assert page.inner_text(".rk-lane:visible .rk-pick [aria-current]") == "2.15"
    assert page.locator(".rk-lane:visible .rk-plot svg:visible").count() == 1
    # The title is still in sight: nothing jumped.
    assert page.locator("h1").evaluate("one => one.getBoundingClientRect().top") > 0
    page.reload()
    assert panels.get_attribute("id") == "lane-2.15"
    page.go_back()
    assert panels.get_attribute("id") == "lane-2.5"
    page.goto(f"{address(whole, 'index', language)}#tally")
    assert panels.get_attribute("id") == "lane-2.5"
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_chart_is_saved_as_it_is_seen(
    browser: Browser,  # noqa: F811
    full: Built,
    language: str,
    scheme: str,
    tmp_path: Path,
) -> None:
    watched = Watched(browser, 1440, "dark" if scheme == "dark" else "light", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "article/benchmarks", language))
    watched.settle()
    figure = page.locator("figure.rk-chart").first
    saved = {}
    for kind in ("svg", "png"):
        button = figure.locator(f"button[data-kind={kind}]")
        assert button.inner_text() == f"{SAVE[language]} {kind.upper()}"
        with page.expect_download() as found:
            button.click()
        assert found.value.suggested_filename == f"chart-times.{kind}"
        saved[kind] = tmp_path / f"times.{kind}"
        found.value.save_as(saved[kind])
    root = ET.parse(saved["svg"]).getroot()  # noqa: S314 -- our own
    text = saved["svg"].read_text(encoding="utf-8")
    assert root.tag == f"{SVG}svg"
    assert "var(" not in text
    assert COLOURS[scheme] in text
    title = figure.locator("figcaption").inner_text()
    assert title in [one.text for one in root.iter(f"{SVG}text")]
    head = saved["png"].read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:24]) == tuple(2 * int(root.attrib[side]) for side in ("width", "height"))
    page.close()
    assert not watched.troubles


def test_a_chart_is_stepped_through_by_keyboard(browser: Browser, full: Built) -> None:  # noqa: F811
    watched = Watched(browser, 1440, "light", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "article/benchmarks", "en"))
    watched.settle()
    live = page.locator(".rk-live").first
    said = page.locator(".rk-said").first
    live.focus()
    assert said.inner_text() == "Arrow keys step through the points."
    page.keyboard.press("ArrowRight")
    first = said.inner_text()
    assert first.startswith("ResNet-50, default precision, eager, ")
    assert " ms / " in first
    assert live.locator("[data-at]").count() == 1
    page.keyboard.press("ArrowDown")
    assert said.inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert said.inner_text() == first
    page.keyboard.press("Tab")
    assert not said.inner_text()
    assert live.locator("[data-at]").count() == 0
    page.close()
    assert not watched.troubles


@pytest.mark.parametrize("language", ["en", "zh"])
def test_charts_are_named_in_the_pages_language(browser: Browser, full: Built, language: str) -> None:  # noqa: F811
    watched = Watched(browser, 390, "dark", full.site.as_uri())
    page = watched.page
    for name in ("index", "article/eager", "article/benchmarks", "article/questions", "article/advice"):
        page.goto(address(full, name, language))
        watched.settle()
        assert page.locator("figure.rk-chart").count() > 0
        named = page.locator(".rk-live, .rk-live [role=graphics-document]")
        assert all(named.evaluate_all("all => all.map(one => one.getAttribute('aria-label'))"))
        for label in page.locator(".rk-live svg [role=graphics-symbol]").evaluate_all(
            "all => all.map(one => one.getAttribute('aria-label'))"
        ):
            assert language == "en" or not {"legend", "axis", "titled"} & set((label or "").split()), label
        # Each has its data as a table, and what is drawn stays within the plot.
        assert page.locator("figure.rk-chart:not(:has(table))").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
    assert not watched.troubles


def test_print_gives_the_static_drawing(browser: Browser, full: Built) -> None:  # noqa: F811
    watched = Watched(browser, 1440, "dark", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "index", "en"))
    watched.settle()
    page.emulate_media(media="print")
    assert page.locator(".rk-live:visible").count() == 0
    assert page.locator(".rk-lane-first .rk-wide svg:visible").count() == 1
    assert page.locator(".rk-save:visible, .rk-pick:visible").count() == 0
    page.close()
    assert not watched.troubles


@pytest.mark.parametrize("query", ["\u7f16\u8bd1", "\u56fe\u6355\u83b7", "\u52a8\u6001\u5f62\u72b6"])
def test_chinese_search_finds_pages_that_have_the_words(browser: Browser, full: Built, query: str) -> None:  # noqa: F811
    watched = Watched(browser, 1440, "light", full.site.as_uri())
    page = watched.page
    page.goto(address(full, "index", "zh"))
    page.click(".md-search__input")
    page.keyboard.type(query)
    page.keyboard.press("End")  # As an input method does, the text above comes without a key; this is one.
    page.wait_for_selector(".md-search-result__item a")
    page.wait_for_timeout(300)
    found = [one.replace("\u200b", "") for one in page.locator(".md-search-result__item").all_inner_texts()]
    # The theme looks for parts of a word as well, and ranks by its own rule.
    assert sum(query in one for one in found[:4]) > 0, found[:4]
    page.close()
    assert not watched.troubles
