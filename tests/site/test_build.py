"""The whole site, built as a user builds it: with full files, small shapes, nothing, and a stranger's files."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from experiments import ARTICLE
from reportkit import records
from reportkit.digest import digests
from reportkit.records import Finding, Measurement, Scalar
from reportkit.site.home import MOST
from tests.casefiles import changed, run_files, write_run
from tests.site.conftest import HOSTILE, report

if TYPE_CHECKING:
    from tests.site.conftest import Built, MakeProject

pytestmark = pytest.mark.slow

NAMES = ("rk-answer", "rk-tally")
WORDS = re.compile(r"\s+")


class _Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def pages(built: Built) -> dict[str, str]:
    """Return every page of a site by its path."""
    return {
        file.relative_to(built.site).as_posix(): file.read_text(encoding="utf-8") for file in built.site.rglob("*.html")
    }


def words(page: str) -> str:
    """Return what a page shows, as one line."""
    return WORDS.sub(" ", _Page(page).text)  # Also where a space keeps a figure from being parted.


def test_it_ends_by_saying_where_the_site_is_and_how_to_open_it(full: Built) -> None:
    assert (full.code, full.errors) == (0, "")
    assert f"{full.site}/index.html" in full.output
    assert "python -m http.server -d site" in full.output


def test_every_page_has_its_twin_and_links_to_it(full: Built) -> None:
    every = pages(full)
    english = {path for path in every if not path.startswith("zh/")}
    assert {f"zh/{path}" for path in english} | english == set(every)
    assert {f"claims/{claim.id}.html" for claim in ARTICLE.claims} <= english
    for path, page in every.items():
        twins = [tag for tag in _Page(page).tags if tag[1].get("data-md-component") == "twin"]
        assert len(twins) == 1, path
        other = (Path(path).parent / str(twins[0][1]["href"])).as_posix()
        parts: list[str] = []
        for part in other.split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        expected = path.removeprefix("zh/") if path.startswith("zh/") else f"zh/{path}"
        assert "/".join(parts) == expected


def test_nothing_is_asked_of_another_host(full: Built) -> None:
    for path, page in pages(full).items():
        for tag, attributes in _Page(page).tags:
            for name in ("src", "srcset", "data", "action"):
                assert "//" not in (attributes.get(name) or ""), (path, tag, attributes)
            if tag == "link":
                assert "//" not in (attributes.get("href") or ""), (path, attributes)


def test_home_answers_with_figures(full: Built) -> None:
    shown = words(full.page("index.html"))
    assert re.search(
        r"Yes\. With PyTorch 2\.5 on NVIDIA H200, compiling makes ResNet-50 \(.*?\) 1\.36\d?x \[1\.3\d+, 1\.3\d+\]",
        shown,
    )
    assert re.search(r"compiling makes ResNet-50 \(.*?\) 1\.71\d?x \[1\.7\d+, 1\.7\d+\] as fast as eager", shown)
    assert "No A100 was measured." in shown
    assert "earned back after about" in shown
    chinese = words(full.page("zh/index.html"))
    assert "\u662f\u7684\u3002\u5728 NVIDIA H200 \u4e0a\u7528 PyTorch 2.5\uff0c" in chinese
    assert "\u901f\u5ea6\uff1aResNet-50" in chinese


def test_small_shapes_are_never_the_headline(smoke: Built) -> None:
    assert (smoke.code, smoke.errors) == (0, "")
    shown = words(smoke.page("index.html"))
    assert "Not answered yet: only small shapes were run, on dev-cpu." in shown
    assert re.search(r"\b[1-9]\d* not measured", shown)
    assert 'class="rk-chart"' not in smoke.page("index.html")
    assert "supported on 2.5, dev-cpu" in words(smoke.page("claims/cache-new-in-2.5.html")).replace("\u2713", "")
    assert ">smoke<" in smoke.page("claims/cache-hits.html")
    assert ">local<" in smoke.page("claims/cache-hits.html")


def test_with_nothing_measured_every_page_says_how_to_fill_it(empty: Built) -> None:
    assert (empty.code, empty.errors) == (0, "")
    shown = words(empty.page("index.html"))
    assert "Not answered yet: nothing has been measured." in shown
    for lane in ("2.4", "2.5", "2.15", "nightly"):
        assert f'not measured yet; to fill it: nox -s "experiments({lane})"' in shown
    assert not [path for path in (empty.site / "data").iterdir() if path.is_dir()]


def test_vega_comes_only_with_a_chart(full: Built, empty: Built) -> None:
    for built in (full, empty):
        for path, page in pages(built).items():
            assert ("assets/vega.js" in page) == ('class="rk-chart"' in page), path
    assert (full.site / "assets" / "vega.js").stat().st_size > 500_000
    assert not (full.site / "zh" / "assets" / "vega.js").exists()


def test_raw_files_are_two_clicks_away(full: Built) -> None:
    page = _Page(full.page("zh/claims/table-resnet50.html"))
    raw = [
        str(attributes["href"])
        for tag, attributes in page.tags
        if tag == "a" and "data/" in (attributes.get("href") or "")
    ]
    assert raw
    for link in raw:
        copied = (full.site / "zh" / "claims" / link).resolve()
        original = full.project / copied.relative_to(full.site.resolve() / "data")
        assert copied.read_bytes() == original.read_bytes()


@pytest.mark.parametrize("which", ["full", "smoke", "empty", "attacked"])
def test_every_claim_has_its_json_and_its_review(request: pytest.FixtureRequest, which: str) -> None:
    built: Built = request.getfixturevalue(which)
    for claim in ARTICLE.claims:
        made = json.loads(built.page(f"claims/{claim.id}.json"))
        folder = built.site / "claims"
        for file in {path for verdict in made["verdicts"] for path in verdict["files"]}:
            assert (folder / made["raw"] / file).is_file()
        assert all((folder / page).is_file() for page in made["pages"].values())
        for language in ("", "zh/"):
            page = built.page(f"{language}claims/{claim.id}.html")
            assert f'href="{"../../claims/" if language else ""}{claim.id}.json"' in page
            [found] = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page)
            review = json.loads(found)
            assert review["@type"] == "ClaimReview"
            verdict = made["headline"]["verdict"]
            assert ("reviewRating" in review) == (verdict in {"supported", "refuted", "inconclusive"})
            here = built.site / language / "claims"
            for file in (*review["isBasedOn"], review["subjectOf"]["contentUrl"], review["url"]):
                assert (here / file).is_file()


def test_a_claim_that_compares_lanes_is_repeated_in_both(empty: Built) -> None:
    page = html.unescape(empty.page("claims/cache-new-in-2.5.html"))

    assert 'nox -s "experiments(2.4)" "experiments(2.5)" report -- cache-new-in-2.5' in page
    # Where the claim is not judged there is nothing to fill.
    assert "experiments(2.15)" not in page


def test_a_strangers_text_is_shown_as_text(attacked: Built) -> None:
    every = pages(attacked)
    shown = WORDS.sub(" ", HOSTILE.replace("\u202e", "\ufffd"))
    assert shown in words(every["claims/default-inductor.html"])
    assert shown in words(every["zh/claims/q3-from-pretrained.html"])
    assert words(every["claims/table-bert.html"]).count(shown) >= 2
    for path, page in every.items():
        assert "{{" not in html.unescape(re.sub(r"\{\{ 7\*7 \}\}", "", html.unescape(page))), path
        for tag, attributes in _Page(page).tags:
            assert not any(name.startswith("on") for name in attributes), (path, tag, attributes)
            assert not (attributes.get("href") or "").startswith("javascript:"), (path, tag, attributes)
            assert attributes.get("src") != "x", (path, tag, attributes)
        assert "<script>alert" not in page, path


def test_damage_is_listed_and_everything_else_is_there(attacked: Built) -> None:
    assert attacked.code == 1
    assert attacked.errors.count("report: results/stranger/2.5/benchmarks/") == 2
    ledger = words(attacked.page("ledger.html"))
    assert "Damaged case files" in ledger
    assert "Input data was truncated" in ledger
    assert "{{ 7*7 }}{% raw %}<script>alert" in ledger
    assert "2 case files could not be read and are left out." in words(attacked.page("index.html"))
    assert "2 damaged and left out (listed on the ledger)" in attacked.output
    assert ">contributed<" in attacked.page("claims/table-resnet50.html")


def test_every_link_and_anchor_leads_somewhere(served: str, tmp_path: Path) -> None:
    config = tmp_path / "linkcheckerrc"
    config.write_text("[checking]\nmaxrequestspersecond=500\n[AnchorCheck]\n", encoding="utf-8")
    done = subprocess.run(
        [
            Path(sys.executable).with_name("linkchecker"),
            "--config",
            config,
            "--no-status",
            "--no-robots",
            "--threads=8",
            # A hundred and fifty pages of one kind would take it minutes; test_every_page reads the links of all pages.
            "--no-follow-url=/claims/",
            served,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, re.findall(r"URL .*\n(?:.*\n)*?Result .*", done.stdout)
    assert re.search(r"\d{2,} links? in|checked \d{2,}", done.stdout), done.stdout[-500:]


@pytest.mark.parametrize(
    ("file", "find", "instead", "message"),
    [
        ("docs/en/index.md", "{{ answer() }}", "{{ anwser() }}", "docs/en/index.md: 'anwser' is undefined"),
        ("docs/zh/index.md", "{{ answer() }}", "{{ statement('x') }}", "docs/zh/index.md: unknown claim 'x'"),
        ("docs/en/index.md", "{{ answer() }}", "{{ answer('x') }}", "docs/en/index.md: "),
        ("docs/en/index.md", "{{ answer() }}", "{{ answer.__globals__ }}", "docs/en/index.md: access to attribute"),
        ("docs/en/index.md", "## What", "[x](nowhere.md)\n\n## What", "nowhere.md"),
        ("docs/en/index.md", "## What", "[x](method.md#nowhere)\n\n## What", "#nowhere"),
        (
            "experiments/claims.en.toml",
            "[claims.table-bert]",
            "[claims.x]",
            "experiments/claims.en.toml: claims.table-bert",
        ),
        ("docs/zh/glossary.md", None, "", "docs/zh/glossary.md is missing"),
        ("reportkit/site/labels.zh.toml", "see-lane = ", "# ", "labels.zh.toml: reason.see-lane is missing"),
    ],
)
def test_a_mistake_is_one_message_and_the_old_site_stays(
    make_project: MakeProject, file: str, find: str | None, instead: str, message: str
) -> None:
    project = make_project("mistaken")
    (project / "site").mkdir()
    (project / "site" / "index.html").write_text("old", encoding="utf-8")
    page = project / file
    if find is None:
        page.unlink()
    else:
        text = page.read_text(encoding="utf-8")
        assert find in text
        page.write_text(text.replace(find, instead), encoding="utf-8")
    built = report(project)
    assert built.code == 1
    assert message in built.errors
    assert "Traceback" not in built.errors
    assert built.errors.count("\n") == 2
    assert built.page("index.html") == "old"
    assert not list(project.glob(".site-*"))


def test_home_is_short_and_leads_to_the_ledger(full: Built) -> None:
    home = full.page("index.html")
    shown = words(home)
    here = [claim for claim in ARTICLE.checked if claim.lane in {None, ARTICLE.lane}]
    assert f"of {len(here)} claims have measurements" in shown
    for column in re.findall(r'<section><h2 id="home-(?:pays|does-not|depends)-.*?</section>', home, re.DOTALL):
        assert column.count("<li>") <= MOST + 1
    for outcome in ("supported", "refuted", "not-measured"):
        assert f"ledger.html?verdict={outcome}" in html.unescape(home)
    assert "ledger.html?lane=2.15&machine=nvidia-h200" in html.unescape(home)


def test_the_ruler_has_every_part_in_both_languages(full: Built, empty: Built) -> None:
    for language in ("", "zh/"):
        page, nothing = full.page(f"{language}ruler.html"), empty.page(f"{language}ruler.html")
        for part in ("controls", "traps", "timers", "calibration", "overhead", "anchors"):
            assert f'id="{part}"' in page
            assert f'id="{part}"' in nothing
        assert page.count('class="rk-chart"') == 1
        # Traps, overhead and anchors are filled by a run of the section, the benches by their own session.
        assert words(nothing).count('nox -s "experiments(2.5)" report -- controls') == 3
        assert words(nothing).count("nox -s bench report") == 2
        for claim in ARTICLE.claims:
            assert (f'href="claims/{claim.id}.html"' in page) == (claim not in ARTICLE.checked)
    assert "All goals met." in words(full.page("ruler.html"))
    assert "Not measured yet." in words(empty.page("ruler.html"))
    assert "overhead of a run" not in words(empty.page("ruler.html"))
    assert '<a href="../ruler.html">' in full.page("claims/no-difference.html")
    assert "held to 0.99 to 1.01" in words(full.page("claims/no-difference.html"))


def test_what_one_lane_lacks_for_a_comparison_has_its_command(make_project: MakeProject) -> None:
    project = make_project("one-lane")
    write_run(project, digests=digests(ARTICLE))
    built = report(project)
    assert (built.code, built.errors) == (0, "")
    page = words(built.page("claims/cache-new-in-2.5.html"))
    assert 'It compares with lane 2.4, which was not measured on this machine. nox -s "experiments(2.4)" --' in page
    assert "-- cache-new-in-2.5" in page


def test_a_refuted_finding_says_in_one_line_what_error_it_met(make_project: MakeProject) -> None:
    project, now = make_project("refuted"), digests(ARTICLE)
    evidence: dict[str, Scalar | None] = {"accepted": True, "forward": "TypeError: got `torch_compile` <b>"}
    for file in run_files(digests=now, only="from-pretrained"):
        finding = Finding(holds=False, evidence=evidence)
        records.write(project / "results", changed(file, findings={"flag-compiles": finding}))
    built = report(project)
    assert (built.code, built.errors) == (0, "")
    seen = re.search(r'<p class="rk-seen">(.*?)</p>', built.page("claims/q3-from-pretrained.html"))
    assert seen
    assert " ".join(words(seen[1]).split()) == "What was seen: forward TypeError: got `torch_compile` <b>"


def test_the_article_index_marks_what_rests_on_a_local_run(smoke: Built) -> None:
    rows = re.findall(r'<li class="rk-section">(.*?)</li>', smoke.page("article/index.html"), re.DOTALL)
    assert len(rows) == len(ARTICLE.sections) - 1
    assert ">local<" in rows[-1]
    assert ">smoke<" in rows[-1]


def test_a_case_table_has_launches_memory_and_energy_only_where_a_file_has_them(
    full: Built, make_project: MakeProject
) -> None:
    heads = ("launches a call", "GPU busy", "peak memory, allocated", "peak memory, reserved", "energy a call")
    assert not any(head in words(full.page("claims/cache-hits.html")) for head in heads)
    project = make_project("passes")
    extra = {
        "eager_busy": Measurement(unit="s", samples=[0.006]),
        "compiled_busy": Measurement(unit="s", samples=[0.009]),
        "eager_energy": Measurement(unit="J", samples=[5.6789, 5.6789]),
        "compiled_energy": Measurement(unit="J", samples=[0.0123456]),
    }
    for file in run_files(digests=digests(ARTICLE), only="table.resnet50-d"):
        records.write(
            project / "results",
            changed(
                file,
                measurements=file.measurements | (extra if "eager_wall" in file.measurements else {}),
                launches={"eager": 612, "eager_least": 612, "compiled": 48, "compiled_least": 48},
                memory={"eager_allocated": 1_610_612_736, "compiled_allocated": 734_003_200},
            ),
        )
    built = report(project)
    assert (built.code, built.errors) == (0, "")
    page = words(built.page("claims/table-resnet50.html"))
    assert "612 / 48" in page
    assert "1.50 GiB / 700 MiB" in page
    assert "5.68 J / 12.3 mJ" in page
    assert re.search(r"4\d % / 100 %", page)
    assert "peak memory, reserved" not in page


def test_settings_that_differ_between_files_are_told_apart(full: Built) -> None:
    shown = words(full.page("claims/table-resnet50.html"))
    assert "against the lock" in shown
    assert "every package as locked" not in shown  # These made-up files do not tell.


def test_what_rests_on_a_local_run_says_so_on_home(make_project: MakeProject) -> None:
    project = make_project("local")
    write_run(project, folder="runs", digests=digests(ARTICLE), pairs=100)
    built = report(project)
    assert (built.code, built.errors) == (0, "")
    home = built.page("index.html")
    answer, tally = (re.findall(rf'class="{name}"[^>]*>(.*?)</(?:p|ul)>', home, re.DOTALL) for name in NAMES)
    assert ">local<" in answer[-1]  # The panel of the lane that was measured comes last.
    assert ">local<" in tally[0]
    assert "local: a run on this machine" in words(home)
    # The table under the strip plot has the median of all samples: that of the case files' table.
    page = words(built.page("claims/table-resnet50.html"))
    listed = re.findall(r"table\.resnet50-d-\S+ (?:local)?\d{4}-\d\d-\d\d([\d.]+ ms)", page)
    assert listed
    for eager in listed:
        assert page.count(eager) > 1, eager
