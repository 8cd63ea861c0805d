"""The page on data and citing: every file it links to is there, and the number that it cites is in the verdicts."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import pytest

from reportkit.plan import PlanError
from reportkit.site.data import DataPage
from tests.casefiles import run_files
from tests.site.test_exports import edition, of

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


@LANGUAGES
def test_every_export_is_linked_from_below_the_languages_root(language: str, tmp_path: Path) -> None:
    made = edition(tmp_path, run_files(only="table"))
    shown = DataPage(made, made.texts[language], "data.md").exports()

    above = {"en": "data/", "zh": "../data/"}[language]
    assert re.findall(r'href="([^"]+)"', shown) == [f"{above}{one.name}" for one in made.exports]
    for one in made.exports:
        assert one.kind == "index" or f"SHA-256 {one.sha256}" in shown


@LANGUAGES
def test_a_citation_has_claim_figures_file_and_commit(language: str, tmp_path: Path) -> None:
    made = edition(tmp_path, run_files(only="table"))
    cited = html.unescape(DataPage(made, made.texts[language], "data.md").citation())

    verdicts = json.loads(of(made, "verdicts").data)["verdicts"]
    found = [row for row in verdicts if f" {row['id']}" in re.split("[,\uff0c]", cited)[0] and row["interval"]]
    assert found
    assert of(made, "verdicts").name in cited
    assert "f00dfeedf00d" in cited
    assert "nvidia-h200" in cited


@LANGUAGES
def test_with_nothing_measured_nothing_is_cited(language: str, tmp_path: Path) -> None:
    made = edition(tmp_path)
    page = DataPage(made, made.texts[language], "data.md")

    assert "rk-none" in page.citation()
    assert "crate" not in page.exports()
    with pytest.raises(PlanError, match="unknown export"):
        page.export("no-such")
