"""What a claim's page says beside its verdict: the code, other runs, and what machines read."""

from __future__ import annotations

import functools
import html
import inspect
import json
import re
import sys
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from experiments import ARTICLE, benchmarks
from reportkit import judge, records
from reportkit.claims import Claim
from reportkit.records import CaseFile, Stored
from reportkit.site import pages
from reportkit.site.edition import Edition
from reportkit.site.figures import Figures
from reportkit.site.texts import LANGUAGES, load_texts
from tests.casefiles import COMMIT, DIGESTS, changed, provenance, run_files
from tests.site.conftest import HOSTILE, ROOT, golden

MEASURED = ("table-resnet50", "table-bert")
CLAIMS = (*MEASURED, "table-gpt2")
QUICK = judge.Criteria(draws=200)
LANES = ("2.4", "2.5")
SECTION = next(one for one in ARTICLE.sections if one.id == "benchmarks")
SMALL = replace(
    ARTICLE,
    anchors=None,
    first=(),
    last=(),
    families={},
    sections=(replace(SECTION, claims=tuple(claim for claim in SECTION.claims if claim.id in CLAIMS)),),
)


def earlier(day: int, **wishes: Any) -> list[CaseFile]:
    """Return the files of a run of an earlier day."""
    started = f"2026-10-{day:02}T12:00:00Z"
    origin = provenance(started=started, dirty=wishes.pop("dirty", False), commit=wishes.pop("commit", COMMIT))
    files = run_files(only="table.", provenance=origin, run=f"202610{day:02}t120000z-a1b2", **wishes)
    return [file for file in files if file.case.startswith("table.")]


def stored(files: list[CaseFile], folder: str = "results") -> list[Stored]:
    return [Stored(f"{folder}/{records.relative_path(file).as_posix()}", file) for file in files]


def edition(files: list[Stored]) -> Edition:
    return Edition(
        project=ROOT,
        article=SMALL,
        lanes=LANES,
        stored=tuple(files),
        damaged=(),
        verdicts=judge.judge(SMALL, files, LANES, DIGESTS, QUICK),
        observations=judge.observe(SMALL, files, DIGESTS, QUICK),
        criteria=QUICK,
        texts=load_texts(ROOT, ARTICLE),
        unused=judge.unused(SMALL, files, DIGESTS),
    )


@functools.cache
def whole() -> Edition:
    """Return an edition with a run that counts, and others that don't, each for a reason of its own."""
    speedups = {"resnet50": 1.36, "bert": 1.04}
    old = dict.fromkeys(DIGESTS, "0" * 16)
    files = [file for file in run_files(speedups=speedups) if file.case.startswith("table.")]
    broken = [
        changed(file, status="crashed", reason="made up", measurements={}, correctness=None, counters={})
        for file in earlier(5)
    ]
    return edition(
        stored(files)
        + stored(earlier(1, digests=old))
        + stored(earlier(2, dirty=True))
        + stored(earlier(3, commit=None), "runs")
        + stored(earlier(4, scale="smoke"), "runs")
        + stored(broken)
    )


@functools.cache
def written(language: str) -> dict[str, str]:
    one = whole()
    made = pages.generated(one, one.texts[language], "" if language == "en" else "../", "A checked edition")
    return {page.path: page.text for page in made}


def page(claim: str, language: str = "en") -> str:
    return written(language)[f"claims/{claim}.md"]


def part(text: str, heading: str) -> str:
    """Return what stands below a heading of a page."""
    return text.partition(f"{{#{heading}}}\n")[2].partition("\n## ")[0].strip("\n")


def review(text: str) -> dict[str, Any]:
    """Return the ClaimReview of a page."""
    [found] = re.findall(r'<script type="application/ld\+json">(.*?)</script>', text)
    assert "<" not in found
    made: dict[str, Any] = json.loads(found)
    return made


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("heading", ["history", "repeat"])
def test_part(heading: str, language: str) -> None:
    golden(f"claim-{heading}-{language}.html", part(page("table-resnet50", language), heading))


@pytest.mark.parametrize("language", LANGUAGES)
def test_review(language: str) -> None:
    made = {claim: review(page(claim, language)) for claim in CLAIMS}
    golden(f"claim-review-{language}.json", json.dumps(made, ensure_ascii=False, indent=1))


def test_the_code_is_the_source_that_a_case_runs() -> None:
    shown = part(page("table-bert"), "code")
    first, line = inspect.getsourcelines(benchmarks.prepare)
    assert "torch" not in sys.modules
    assert "".join(first).rstrip() in plain(shown)
    assert f"prepare experiments/benchmarks.py:{line}" in plain(shown)
    workloads = (ROOT / "experiments" / "workloads.py").read_text(encoding="utf-8").splitlines()
    place = next(number for number, text in enumerate(workloads, 1) if text.startswith("def bert_base("))
    assert f"bert_base experiments/workloads.py:{place}" in plain(shown)
    assert "SEED = 1337" in plain(shown)  # What these reach.
    assert "def resnet50" not in plain(shown)
    # It stands in the page as inert text: no template, no Markdown.
    assert not re.search(r"[{}`*]", shown)


@pytest.mark.parametrize("claim", MEASURED)
def test_the_json_says_what_verdicts_print(claim: str) -> None:
    [text] = [one.text for one in pages.objects(whole()) if one.path == f"claims/{claim}.json"]
    made = json.loads(text)

    assert made["id"] == claim
    assert set(made["statement"]) == set(made["reading"]) == set(made["held_to"]) == set(LANGUAGES)
    assert made["verdicts"] == json.loads(json.dumps(judge.as_objects(whole().of(claim))))
    used = {path for verdict in made["verdicts"] for path in verdict["files"]}
    other = {one["file"]: one["why"] for one in made["unused"]}
    assert used
    assert not used & set(other)
    cases = set(made["cases"])
    assert used | set(other) == {one.path for one in whole().stored if one.file.case in cases}
    assert set(other.values()) == {"digest", "dirty", "superseded", "failed", "overruled"}
    assert made["pages"] == {"en": f"{claim}.html", "zh": f"../zh/claims/{claim}.html"}


def test_what_nobody_measured_has_no_rating_and_no_history() -> None:
    nothing = edition([])
    made = pages.generated(nothing, nothing.texts["en"], "", "A checked edition")
    for claim in CLAIMS:
        [text] = [one.text for one in made if one.path == f"claims/{claim}.md"]
        found = review(text)
        assert "reviewRating" not in found
        assert "datePublished" not in found
        assert found["isBasedOn"] == []
        assert "{#history}" not in text
        assert "{#code}" in text


def test_many_runs_are_cut_short_and_all_in_the_json() -> None:
    template = earlier(1, dirty=True)
    runs = [
        changed(file, run=f"20260901t{number:06}z-a1b2") for number in range(pages._MOST_RUNS + 3) for file in template
    ]
    one = edition(stored([*run_files(only="table."), *runs]))
    claim = SMALL.sections[0].claims[0]
    [text] = [p.text for p in pages.generated(one, one.texts["en"], "", "") if p.path == f"claims/{claim.id}.md"]
    shown = part(text, "history")
    assert shown.count("<tr>") == 1 + pages._MOST_RUNS
    assert "And 3 older ones" in plain(shown)
    [made] = [json.loads(p.text) for p in pages.objects(one) if p.path == f"claims/{claim.id}.json"]
    assert len({file["run"] for file in made["unused"]}) == pages._MOST_RUNS + 3


def test_a_claim_of_one_lane_leads_with_its_verdict_there() -> None:
    files = [file for lane in LANES for file in run_files(lane=lane, only="table.")]
    one = edition(stored(files))
    claim = replace(SMALL.sections[0].claims[0], lane="2.4")
    assert isinstance(claim, Claim)
    article = replace(SMALL, sections=(replace(SMALL.sections[0], claims=(claim,)),))
    verdicts = judge.judge(article, one.stored, LANES, DIGESTS, QUICK)
    speaks = replace(one, article=article, verdicts=verdicts).headline(claim.id)
    assert speaks.lane == "2.4"
    assert speaks.outcome != "not-measured"


@functools.cache
def wrong() -> Edition:
    """Return an edition in which one model's compiled results are wrong: once in words, else by their errors."""
    files = [
        file
        for file in run_files(times=lambda case: {"right": case.axes["workload"] != "resnet50"})
        if file.case.startswith("table.")
    ]
    said = next(file for file in files if file.case == "table.resnet50-d-cold-1")
    assert said.correctness is not None
    told = changed(said, correctness=msgspec.structs.replace(said.correctness, detail=HOSTILE))
    return edition(stored([told if file is said else file for file in files]))


@pytest.mark.parametrize(("language", "mark"), [("en", "wrong result"), ("zh", "\u7ed3\u679c\u9519\u8bef")])
def test_a_wrong_result_is_marked_with_its_times_and_without_a_speedup(language: str, mark: str) -> None:
    one = wrong()
    written = {page.path: page.text for page in pages.generated(one, one.texts[language], "../", "A checked edition")}
    text = written["claims/table-resnet50.md"]
    rows = [row for row in re.findall(r"<tr>.*?</tr>", part(text, "files")) if "table.resnet50" in html.unescape(row)]
    assert rows
    for row in rows:
        assert f'">{mark}</span>' in row
        assert "ms" in row
        assert not re.search(r"\dx", plain(row))
    [told] = [row for row in rows if "table.resnet50-d-cold-1<" in html.unescape(row)]
    assert "7*7" in plain(told)
    assert "<script>" not in told
    assert ('lang="en"' in told) == (language == "zh")
    assert all("0.3" in plain(row) for row in rows if row is not told)
    assert mark in plain(part(text, "samples"))
    assert mark not in plain(part(written["claims/table-bert.md"], "files"))


def test_a_wrong_result_is_in_no_chart_of_a_section() -> None:
    one = wrong()
    figures = Figures(one, one.texts["en"])
    for chart in (figures.times("table"), figures.first_calls("table"), figures.compared("table")):
        assert "BERT" in plain(chart)
        assert "ResNet" not in plain(chart)
