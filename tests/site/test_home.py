"""The home page in each state it can be in: golden in both languages, and what its columns say."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.claims import Untestable
from reportkit.plan import PlanError
from reportkit.records import PROTOCOL, Stored
from reportkit.site import texts
from reportkit.site.edition import Edition
from reportkit.site.figures import Figures
from reportkit.site.home import MOST, HomePage
from tests.casefiles import DIGESTS, changed, run_files, whole_files
from tests.site.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reportkit.records import CaseFile

GOLDEN = Path(__file__).parent / "golden"
LANES = ("2.4", "2.5", "2.15", "nightly")
QUICK = judge.Criteria(draws=200)
STATES = ("nothing", "smoke", "stale", "one-lane", "whole")
TEXTS = texts.load_texts(ROOT, ARTICLE)


def edition(files: Iterable[CaseFile], folder: str = "results") -> Edition:
    stored = [Stored(f"{folder}/{records.relative_path(file).as_posix()}", file) for file in files]
    return Edition(
        project=ROOT,
        article=ARTICLE,
        lanes=LANES,
        stored=tuple(stored),
        damaged=(),
        verdicts=judge.judge(ARTICLE, stored, LANES, DIGESTS, QUICK),
        observations=judge.observe(ARTICLE, stored, DIGESTS, QUICK),
        criteria=QUICK,
        texts=TEXTS,
    )


@functools.cache
def state(name: str) -> Edition:
    """Return the edition of a project that was measured that far."""
    match name:
        case "nothing":
            return edition([])
        case "smoke":
            return edition(run_files(gpu=False, scale="smoke", findings={"flag-compiles": False}), "runs")
        case "stale":
            return edition(changed(file, protocol=PROTOCOL - 1) for file in run_files())
        case "one-lane":
            return edition(whole_files(lanes=("2.5",), machines=("nvidia-h200",)))
        case _:
            return edition(whole_files())


def page(name: str, language: str = "en") -> HomePage:
    return HomePage(state(name), TEXTS[language], "index.md")


def words(made: str) -> str:
    """Return what a fragment shows, as one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", made))).strip()


@functools.cache
def answer(name: str) -> str:
    """Return the answer's panels in English, drawn once."""
    return page(name).answer()


def panel(name: str, lane: str) -> str:
    """Return the panel of a lane."""
    parts = re.split(r'(?=<section id="lane-)', answer(name))
    [found] = [part for part in parts if part.startswith(f'<section id="lane-{lane}"')]
    return found


def column(made: str, kind: str) -> list[str]:
    """Return the lines of a column of a panel, in words."""
    [found] = re.findall(rf'<h2 id="home-{kind}-[^"]*".*?</section>', made, re.DOTALL)
    return [words(line) for line in re.findall(r"<li>(.*?)</li>", found, re.DOTALL)]


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("name", STATES)
def test_state(name: str, language: str) -> None:
    home = page(name, language)
    made = f"{home.machines()}\n{home.answer()}\n{home.tally()}\n{home.measured()}"
    # A chart's drawing depends on the fonts that are there; its data stands in its table.
    made = re.sub(r'<div class="rk-plot".*?</script>', "", made, flags=re.DOTALL)
    if name == "whole":  # A table a lane says little that one does not.
        made = re.sub(r"<details.*?</details>", "", made, flags=re.DOTALL)
    text = re.sub(r"(</(?:tr|p|li|h2|summary|details|figcaption|nav|section)>)", r"\1\n", made) + "\n"
    file = GOLDEN / f"home-{name}-{language}.html"
    if os.environ.get("REPORTKIT_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


def test_each_lane_has_its_own_answer_and_the_articles_comes_last() -> None:
    made = answer("whole")
    assert re.findall(r'id="lane-([^"]*)" class="([^"]*)"', made) == [
        ("2.4", "rk-lane"),
        ("2.15", "rk-lane"),
        ("nightly", "rk-lane"),
        ("2.5", "rk-lane rk-lane-first"),
    ]
    for lane in LANES:
        here = panel("whole", lane)
        assert f"With PyTorch {lane} on NVIDIA H200" in words(here)
        assert re.findall(r'<a href="#lane-([^"]*)" aria-current="true">', here) == [lane]
        assert "nvidia-l4" in words(here)  # Where other machines' verdicts are.


def test_a_lane_without_an_answer_says_so_and_how_to_fill_it() -> None:
    here = words(panel("one-lane", "2.15"))
    assert "Not answered for PyTorch 2.15 yet: it has not been measured." in here
    assert 'nox -s "experiments(2.15)" report' in here
    assert 'class="rk-unanswered"' in panel("one-lane", "2.5")
    assert "rk-pick" not in answer("nothing")


def test_a_workload_is_listed_once_with_its_kind_of_work() -> None:
    here = panel("whole", "2.5")
    pays = column(here, "pays")
    assert sum(line.startswith("ResNet-50") for line in pays) == 2
    assert sum("Inference" in line for line in pays if line.startswith("ResNet-50")) == 1
    assert sum("Training step" in line for line in pays if line.startswith("ResNet-50")) == 1
    assert any(line.startswith("Recursive cell over trees 0.7") for line in column(here, "does-not"))
    assert any("never earned back" in line for line in column(here, "does-not"))
    assert any(line.startswith("The gain depends strongly on the model") for line in column(here, "depends"))
    # What the article did not claim as a speedup by compiling is no row: TorchScript, controls, modes.
    assert "TorchScript" not in words(here)


def test_a_long_column_is_cut_and_leads_to_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reportkit.site.home.MOST", 3)
    made = page("one-lane").answer()
    here = made[made.index('<section id="lane-2.5"') :]
    pays = column(here, "pays")
    assert len(pays) == 3
    assert pays[0].startswith("ResNet-50")  # The largest first.
    assert "4 more on the ledger" in words(here)
    assert 'href="ledger.html?lane=2.5&machine=nvidia-h200"' in unescape(here)
    assert len(pays) < MOST


def test_precisions_that_disagree_make_a_workload_depend() -> None:
    files = [
        changed(file, measurements={**file.measurements, "compiled_gpu": file.measurements["eager_gpu"]})
        if file.case.startswith("table.bert-d") and "eager_gpu" in file.measurements
        else file
        for file in whole_files(lanes=("2.5",), machines=("nvidia-h200",))
    ]
    made = HomePage(edition(files), TEXTS["en"], "index.md").answer()
    [line] = [line for line in column(made[made.index('id="lane-2.5"') :], "depends") if line.startswith("BERT-base")]
    assert "1.00x default precision to 1.2" in line
    assert "or never" in line


def test_nothing_measured_points_to_what_needs_no_measuring() -> None:
    made = answer("nothing")
    assert 'href="article/index.html"' in made
    assert 'href="method.html"' in made
    assert 'nox -s "experiments(2.5)" report' in words(made)
    assert "<h2" not in made


def test_stale_files_are_counted_and_drawn_nowhere() -> None:
    assert "earlier version of the code or of the timing protocol" in words(answer("stale"))
    figures = Figures(state("stale"), TEXTS["en"])
    for made in (
        figures.times("table"),
        figures.first_calls("table"),
        figures.earned_back("small"),
        figures.compared("lengths"),
        figures.captured("generate"),
        figures.curve("batch", {1: "small.resnet50-d-cold-1", 8: "batches.resnet50-8"}),
    ):
        assert "<figure" not in made
        assert "<table" not in made
        assert "that counts" in words(made)
        assert 'nox -s "experiments(2.5)" -- ' in words(made)
        assert 'href="method.html#timing"' in made
    assert "-- small batches How" in words(
        figures.curve("batch", {1: "small.resnet50-d-cold-1", 8: "batches.resnet50-8"})
    )


def test_rows_of_one_name_are_told_apart_by_their_process() -> None:
    figures = Figures(state("one-lane"), TEXTS["en"])
    for made in (figures.times("table"), figures.compared("stream"), figures.captured("generate")):
        rows = [words(row) for row in re.findall(r"<tr>(<th scope=\"row\">.*?</th>)", made)]
        assert rows
        assert len(rows) == len(set(rows))
    assert "(cold" in words(figures.compared("stream"))
    assert "GPT-2 XL generation (whole model wrapped)" in words(figures.captured("generate"))


def test_charts_of_a_section_show_the_lane_that_was_measured() -> None:
    only = edition(whole_files(lanes=("2.15",), machines=("nvidia-h200",)))
    made = Figures(only, TEXTS["en"]).times("table")
    assert "lane 2.15 on nvidia-h200" in words(made)
    assert 'class="rk-lane rk-lane-first" aria-label="PyTorch 2.15"' in HomePage(only, TEXTS["en"], "index.md").answer()


def test_a_curve_needs_two_sizes_and_known_cases() -> None:
    figures = Figures(state("one-lane"), TEXTS["en"])
    assert "<figure" in figures.curve("batch", {1: "small.resnet50-d-cold-1", 8: "batches.resnet50-8"})
    assert "<figure" not in figures.curve("batch", {8: "batches.resnet50-8"})
    with pytest.raises(PlanError, match=r"unknown case 'batches\.resnet50-9'"):
        figures.curve("batch", {9: "batches.resnet50-9"})


def test_a_family_is_of_experiments_that_there_are() -> None:
    with pytest.raises(PlanError, match="'tabel' is named 1 times in families; there is none"):
        replace(ARTICLE, families={"inference": ("tabel",)})
    with pytest.raises(PlanError, match="'table' is named 2 times in families; it belongs to one"):
        replace(ARTICLE, families={"inference": ("table",), "training": ("table",)})


def test_the_tally_counts_what_is_no_control() -> None:
    controls = [c for c in ARTICLE.checked if c.bound.kind == "shown" and not isinstance(c.quantity, Untestable)]
    counted = sum(int(number) for number in re.findall(r"<strong>(\d+)</strong>", page("whole").tally()))
    assert counted == len(ARTICLE.checked) - len(controls)


def test_the_tally_counts_a_claim_in_the_lane_that_it_speaks_of() -> None:
    made = state("whole")
    elsewhere = [claim for claim in ARTICLE.checked if claim.lane not in {None, ARTICLE.lane}]
    assert elsewhere
    assert all(made.headline(claim.id).lane == claim.lane for claim in elsewhere)
    assert "not measured" not in words(page("whole").tally())
    # Where only the article's own lane was measured, they are what is missing.
    shown = words(page("one-lane").tally())
    assert "not measured" in shown
