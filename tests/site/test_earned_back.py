"""After how many calls a first call has been earned back: in a page's table, and in words where it never is."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.plan import PlanError
from reportkit.records import Stored
from reportkit.site.figures import Figures
from tests.casefiles import DIGESTS, run_files
from tests.site.test_tally import QUICK, edition

EAGER = 0.0124
"""Seconds of an eager call in made-up files."""

COLD = {"resnet50": 22.0, "bert": 44.0}
"""Seconds of a first call on empty caches in made-up files."""

FIRST, CALLS = 3, 4
"""Columns of a table's row."""


def fragments(speedups: dict[str, float], only: str = "table") -> Figures:
    stored = tuple(
        Stored(f"results/{records.relative_path(file).as_posix()}", file)
        for file in run_files(speedups=speedups, only=only)
    )
    made = replace(edition(ARTICLE), stored=stored, observations=judge.observe(ARTICLE, list(stored), DIGESTS, QUICK))
    return Figures(made, made.texts["en"])


def rows(table: str) -> dict[str, list[str]]:
    """Return the cells of each row, by the first one."""
    cells = [
        [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", table)
    ]
    return {row[0]: row for row in cells if row}


def test_a_first_call_is_divided_by_what_a_call_saves_and_warm_ones_are_left_out() -> None:
    found = rows(fragments({"resnet50": 1.63, "bert": 0.9}).earned_back("table"))
    calls = COLD["resnet50"] / (EAGER - EAGER / 1.63)
    assert float(found["ResNet-50, default precision"][CALLS].replace(",", "")) == pytest.approx(calls, rel=0.02)
    assert found["ResNet-50, default precision"][FIRST].startswith("22")
    assert found["BERT-base, default precision"][CALLS] == "never: not faster"


def test_against_another_case_its_own_first_call_is_saved() -> None:
    found = rows(fragments({"resnet50": 1.63, "bert": 1.25}).earned_back("table", "table.resnet50-d-cold-1"))
    assert found["BERT-base, default precision"][CALLS] == "never: not faster"
    found = rows(fragments({"resnet50": 1.25, "bert": 1.63}).earned_back("table", "table.resnet50-d-cold-1"))
    calls = (COLD["bert"] - COLD["resnet50"]) / (EAGER / 1.25 - EAGER / 1.63)
    assert float(found["BERT-base, default precision"][CALLS].replace(",", "")) == pytest.approx(calls, rel=0.02)


def test_where_nothing_is_measured_it_says_so_and_a_wrong_name_is_refused() -> None:
    nothing = fragments({}, only="nothing")
    assert "appears here" in nothing.earned_back("table")
    without_the_other = fragments({}, only="table.bert")
    assert "appears here" in without_the_other.earned_back("table", "table.resnet50-d-cold-1")
    with pytest.raises(PlanError, match="unknown experiment 'tabel'; did you mean table"):
        nothing.earned_back("tabel")
    with pytest.raises(PlanError, match="unknown case"):
        nothing.earned_back("table", "table.resnet50")
