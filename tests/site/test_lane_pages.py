"""Pages of lanes, pairs and machines, over made-up files: golden in both languages, honest where there is nothing."""

from __future__ import annotations

import functools
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit import judge, lanes, records
from reportkit.claims import Untestable
from reportkit.records import Stored
from reportkit.site import comparisons, machines, texts
from reportkit.site import lanes as lane_pages
from reportkit.site.edition import Edition
from tests.casefiles import DIGESTS, case_file, changed, measured, run_files
from tests.site.conftest import HOSTILE, ROOT, golden

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reportkit.records import CaseFile

LANGUAGES = texts.load_texts(ROOT, ARTICLE)
LANES = tuple(lane.id for lane in lanes.lanes(ROOT))
QUICK = judge.Criteria(draws=200)
ANCHORS = {"launch": 2.4e-6, "copy": 1.3e-4, "mobilenet": 3.1e-3}
PAIR = "compare/2.5-to-2.15.md"
MAKERS = (lane_pages, comparisons, machines)


def edition(files: Iterable[CaseFile] = (), folder: str = "results", known: Sequence[str] = LANES) -> Edition:
    stored = tuple(Stored(f"{folder}/{records.relative_path(file).as_posix()}", file) for file in files)
    return Edition(
        project=ROOT,
        article=ARTICLE,
        lanes=tuple(known),
        stored=stored,
        damaged=(),
        verdicts=judge.judge(ARTICLE, stored, known, DIGESTS, QUICK),
        observations=judge.observe(ARTICLE, stored, DIGESTS, QUICK),
        criteria=QUICK,
        texts=LANGUAGES,
        digests=DIGESTS,
    )


def pages(of: Edition, language: str = "en") -> dict[str, str]:
    """Return every page of the three makers by its path."""
    above = "" if language == "en" else "../"
    return {page.path: page.text for maker in MAKERS for page in maker.generated(of, LANGUAGES[language], above)}


def words(made: str) -> str:
    """Return what a page shows, as one line."""
    made = re.sub(r"<script.*?</script>", " ", made, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", made))).strip()


def made(lane: str = "2.5", case: str = "table.resnet50-d-cold-1", **fields: Any) -> CaseFile:
    """Return a file on a host like any other's."""
    return case_file(case, **({"lane": lane, "anchors": ANCHORS} | fields))


def both(case: str, one: dict[str, Any], other: dict[str, Any], **fields: Any) -> list[CaseFile]:
    """Return the files of a case in two lanes."""
    return [made("2.5", case, **(fields | one)), made("2.15", case, **(fields | other))]


def memory(eager: int, compiled: int) -> dict[str, int]:
    return {"eager_allocated": eager << 20, "compiled_allocated": compiled << 20}


@functools.cache
def example() -> Edition:
    """Return two lanes on the article's machine and a stranger's, with a bit of everything."""
    same = both("table.bert-d-cold-1", {}, {}, speedup=1.2)
    better = both(
        "table.resnet50-d-cold-1",
        {"memory": memory(2048, 1024)},
        {"speedup": 1.9, "first_call": 12.0, "memory": memory(2048, 900), "graphs": 2},
    )
    worse = both("mlp.mlp-d", {}, {"eager": 0.02}, speedup=1.3)
    warm = both("table.resnet50-d-warm-4", {}, {"first_call": 3.1}, speedup=None, first_call=6.2)
    alone = [made("2.5", "table.vit-d-cold-1")]
    failed = both(
        "small.mobilenet-d-cold-1", {}, {"status": "out-of-memory", "reason": "CUDA out of memory", "speedup": None}
    )
    anchors = [
        measured(
            made(lane, "anchors.all", speedup=None, first_call=None, anchors=None, findings={"x": True}),
            "s",
            **{k: [v] * 3 for k, v in ANCHORS.items()},
        )
        for lane in ("2.5", "2.15")
    ]
    stranger = [changed(file, machine="stranger") for file in better]
    fact = [
        made("2.5", "capture.resnet50", speedup=None, first_call=None, findings={"one-graph": True, "right": False})
    ]
    return edition([*same, *better, *worse, *warm, *alone, *failed, *anchors, *stranger, *fact])


GOLDENS = {
    "compare": PAIR,
    "lanes": "lanes/index.md",
    "lane-unmeasured": "lanes/nightly.md",
    "machines": "machines/index.md",
}


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("name", GOLDENS)
def test_page(name: str, language: str) -> None:
    golden(f"{name}-{language}.html", pages(example(), language)[GOLDENS[name]])


def test_every_lane_and_every_pair_has_its_page_older_lane_first() -> None:
    found = pages(edition())
    assert {f"lanes/{lane}.md" for lane in LANES} | {"lanes/index.md"} <= set(found)
    pairs = [path for path in found if path.startswith("compare/")]
    assert pairs == [
        "compare/2.4-to-2.5.md",
        "compare/2.4-to-2.15.md",
        "compare/2.4-to-nightly.md",
        "compare/2.5-to-2.15.md",
        "compare/2.5-to-nightly.md",
        "compare/2.15-to-nightly.md",
    ]
    index = found["lanes/index.md"]
    for path in pairs:
        assert f'href="../{path.removesuffix(".md")}.html"' in index


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_a_lane_without_files_says_how_to_fill_it(language: str) -> None:
    found = pages(edition(), language)
    for lane in LANES:
        shown = found[f"lanes/{lane}.md"]
        assert LANGUAGES[language]("lanes.unmeasured", lane=lane) in words(shown)
        assert f'nox -s "experiments({lane})" report' in words(shown)
        assert "rk-sheet" not in shown
        assert words(found["lanes/index.md"]).count(f'nox -s "experiments({lane})" report') == 1
    assert "REPORTKIT_NIGHTLY=" in words(found["lanes/nightly.md"])
    assert "REPORTKIT_NIGHTLY=" not in words(found["lanes/2.5.md"])
    # What its lock pins is known without a run.
    assert "4.46.3" in words(found["lanes/nightly.md"])
    assert re.search(r"CUDA 12\.4\.127 ", words(found["lanes/2.5.md"]))
    assert re.search(r"cuDNN 9\.1\.0\.70 Triton 3\.1\.0 Python 3\.11", words(found["lanes/2.5.md"]))


def test_a_lane_shows_every_case_with_both_times_and_why_some_do_not_count() -> None:
    shown = pages(example())["lanes/2.15.md"]
    [table, other] = re.findall(r"<table class=\"rk-table rk-cases\">.*?</table>", shown)
    rows = [words(row) for row in re.findall(r"<tr.*?</tr>", table)[1:]]
    assert len(rows) == 6
    [resnet] = [row for row in rows if row.startswith("table.resnet50-d-cold-1")]
    assert re.search(
        r"ResNet-50, default precision, cold process 1 counts 12\.\d+ ms \[[^]]+\] ms 6\.5\d+ ms \[[^]]+\] ms "
        r"1\.(89|90|91)\d?x \[[^]]+\] 12\.0 s empty 2\.00 GiB / 900 MiB 2 / 0 2026-11-30 JSON",
        resnet,
    ), resnet
    [failed] = [row for row in rows if row.startswith("small.mobilenet")]
    assert "failed" in failed
    assert "not complete" in failed
    assert "did not complete (out of memory): CUDA out of memory" in failed
    assert len(re.findall(r"<tr.*?</tr>", other)) == 2
    raw = "../data/results/nvidia-h200/2.15/benchmarks/table.resnet50-d-cold-1--20261130t120000z.json"
    assert f'href="{raw}"' in shown
    assert f'href="../{raw}"' in pages(example(), "zh")["lanes/2.15.md"]


def test_a_case_that_times_nothing_is_hidden_until_asked_and_tells_its_findings() -> None:
    shown = pages(example())["lanes/2.5.md"]
    [row] = [row for row in re.findall(r"<tr[^>]*>.*?</tr>", shown) if "capture.resnet50" in row]
    assert " data-minor" in row
    assert "findings: 1 of 2 hold" in words(row)


def test_planned_cases_without_a_file_are_listed() -> None:
    every = run_files()
    shown = words(pages(edition(every))["lanes/2.5.md"])
    assert "Planned cases without a file" not in shown
    assert re.search(r"2026-11-30: (\d+) of \1 planned cases are complete", shown)
    shown = words(pages(edition(every[3:]))["lanes/2.5.md"])
    assert "Planned cases without a file of nvidia-h200 (3)" in shown
    assert all(file.case in shown for file in every[:3])


def test_the_tally_of_a_lane_counts_every_claim_that_speaks_of_it_once() -> None:
    counted = lane_pages.tally_of(edition(run_files()), "2.5")
    asked = [c for c in ARTICLE.checked if c.bound.kind != "shown" or isinstance(c.quantity, Untestable)]
    assert sum(number for number, _ in counted.values()) == sum(c.lane in {None, "2.5"} for c in asked)
    assert not any(local for _, local in counted.values())
    kept_nowhere = lane_pages.tally_of(edition(run_files(), "runs"), "2.5")
    assert any(local for _, local in kept_nowhere.values())
    contributed = lane_pages.tally_of(edition(run_files(machine="stranger")), "2.5")
    assert set(contributed) == {"not-measured", "not-testable"}


# -- pairs


def test_a_summary_says_in_words_what_changed() -> None:
    shown = words(pages(example())[PAIR])
    assert (
        "2.5 to 2.15 on nvidia-h200: eager is faster in 0 and slower in 1 of 3 cases; "
        "compiled is faster in 1 and slower in 1 of 3 cases. The largest changes:"
    ) in shown
    assert re.search(r"MLP, default precision: eager 1\.6\dx slower, compiled 1\.6\dx slower", shown)
    assert re.search(r"ResNet-50, default precision \(section 4's settings\): compiled 1\.1\dx faster", shown)
    assert "eager" not in words(re.findall(r"<li>ResNet.*?</li>", pages(example())[PAIR])[0])


def rows(shown: str) -> dict[str, str]:
    """Return the rows of the first table that compares, by the case's name."""
    table = re.findall(r"<table class=\"rk-table rk-compare\">.*?</table>", shown)[0]
    found = re.findall(r"<tr[^>]*>.*?</tr>", table)
    return {words(row).split(" ")[0]: row for row in found[1:]}


def test_rows_are_sorted_by_the_size_of_the_change_and_what_does_not_matter_is_minor() -> None:
    found = rows(pages(example())[PAIR])
    assert list(found) == [
        "mlp.mlp-d",
        "table.resnet50-d-cold-1",
        "table.bert-d-cold-1",
        "table.resnet50-d-warm-4",
    ]
    assert [" data-minor" in row for row in found.values()] == [False, False, True, False]
    assert "show also cases without a relevant change ({count})" in pages(example())[PAIR]


def test_significant_and_relevant_stand_apart_and_what_is_not_significant_is_dimmed() -> None:
    found = rows(pages(example())[PAIR])
    assert words(found["table.bert-d-cold-1"]).count("no within noise no") == 2
    assert found["table.bert-d-cold-1"].count("rk-dim") == 6
    assert words(found["mlp.mlp-d"]).count("yes yes") == 2
    assert "rk-dim" not in found["mlp.mlp-d"]
    assert 'data-eager="worse"' in found["mlp.mlp-d"]
    assert 'data-compiled="better"' in found["table.resnet50-d-cold-1"]


def test_a_release_ratio_is_never_called_a_speedup() -> None:
    shown = pages(example())[PAIR]
    head = re.findall(r"<thead>.*?</thead>", shown)[0]
    titles = [words(title) for title in re.findall(r"<th .*?</th>", head)]
    assert [title for title in titles if "speedup" in title] == ["speedup 2.5", "speedup 2.15"]
    assert [title for title in titles if "release ratio" in title] == [
        "eager release ratio 2.5/2.15",
        "compiled release ratio 2.5/2.15",
    ]
    for drawn in re.findall(r'aria-label="([^"]*)"', rows(shown)["mlp.mlp-d"]):
        assert unescape(drawn).startswith("Release ratio of ")


def test_columns_have_first_calls_memory_and_graphs_of_both_lanes() -> None:
    found = rows(pages(example())[PAIR])
    assert words(found["table.resnet50-d-cold-1"]).endswith(
        "empty 24.0 s 12.0 s 2.00 GiB / 1.00 GiB 2.00 GiB / 900 MiB 1 / 0 2 / 0 2.5 2.15"
    )
    assert "warm 6.20 s 3.10 s" in words(found["table.resnet50-d-warm-4"])


def test_cases_of_one_side_only_are_listed_with_why() -> None:
    shown = pages(example())[PAIR]
    [fold] = re.findall(r"<details[^>]*><summary>Cases that are not compared.*?</details>", shown)
    assert re.search(r"table\.vit-d-cold-1 \S.*? counts Not measured on this machine yet\.", words(fold))
    assert "(out of memory): CUDA out of memory" in words(fold)
    assert "open" not in fold.split(">")[0]


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize(
    ("files", "command"),
    [
        ([], 'nox -s "experiments(2.5)" "experiments(2.15)" report'),
        ([made("2.5")], 'nox -s "experiments(2.15)" report'),
        ([made("2.5"), made("2.15", machine="another")], 'nox -s "experiments(2.5)" "experiments(2.15)" report'),
    ],
)
def test_lanes_with_nothing_in_common_say_what_to_do(files: list[CaseFile], command: str, language: str) -> None:
    shown = pages(edition(files), language)[PAIR]
    assert LANGUAGES[language]("compare.nothing") in words(shown)
    assert command in words(shown)
    assert "rk-sheet" not in shown
    assert LANGUAGES[language]("lanes.no-pair") in words(pages(edition(files), language)["lanes/index.md"])


def test_lanes_without_a_case_that_counts_in_both_say_why() -> None:
    files = [made("2.5"), made("2.15", digest="f" * 16)]
    shown = pages(edition(files))[PAIR]
    assert "no case has a file that counts in both" in words(shown)
    assert "another version of its code" in words(shown)
    assert re.search(r"<details[^>]* open", shown)


def test_hosts_that_are_not_alike_are_said_first_and_nothing_is_significant() -> None:
    other = {**ANCHORS, "launch": ANCHORS["launch"] * 1.5}
    files = both("mlp.mlp-d", {}, {"anchors": other, "eager": 0.02})
    shown = pages(edition(files))[PAIR]
    assert "No release ratio here can be significant, however large" in words(shown)
    assert "their anchors (launch) differ by 50 %, and at most 3 % is accepted" in words(shown)
    assert 'nox -s "experiments(2.5)" "experiments(2.15)" report' in words(shown)
    assert shown.index('class="rk-damage"') < shown.index("rk-sheet")
    assert "no change of a time is both significant and relevant" in words(shown)
    assert words(rows(shown)["mlp.mlp-d"]).count("no hosts differ yes") == 2


def test_a_wrong_result_blames_its_lane() -> None:
    shown = pages(edition(both("mlp.mlp-d", {}, {"right": False})))[PAIR]
    assert "no wrong result, 2.15" in words(rows(shown)["mlp.mlp-d"])
    assert "Compiled gave a wrong result in mlp.mlp-d" in words(shown)


def test_two_machines_on_one_page_come_with_the_reason_not_to_compare_them() -> None:
    said = "its ratios are not to be held against another's: Why not to compare ratios across machines"
    for path in (PAIR, "lanes/2.5.md"):
        shown = pages(example())[path]
        assert said in words(shown), path
        assert 'href="../machines/index.html#apart"' in shown
        alone = pages(edition(both("mlp.mlp-d", {}, {})))[path]
        assert said not in words(alone), path
    assert len(re.findall("rk-table rk-compare", pages(example())[PAIR])) == 2


# -- machines


def test_a_machine_of_the_list_without_files_is_there_with_its_command() -> None:
    shown = words(pages(edition())["machines/index.md"])
    assert all(machine in shown for machine in ARTICLE.machines)
    assert f'nox -s "experiments({ARTICLE.lane})" report' in shown


def test_machines_say_whether_they_count_what_they_are_and_what_ran() -> None:
    shown = words(pages(example())["machines/index.md"])
    own, stranger = shown.index("nvidia-h200 One of this edition's own"), shown.index("stranger Outside this edition's")
    assert own < stranger
    assert "NVIDIA H200" in shown
    assert "Lane 2.5 2026-11-30; complete cases: 8; runs: 1" in shown
    assert "Lane 2.15 2026-11-30; complete cases: 5; runs: 1" in shown
    assert "launch copy MobileNetV2" in shown
    assert "the time of a call is what the host's processor needs to launch them" in shown


def test_only_the_newest_runs_of_a_machine_are_listed() -> None:
    many = [
        made(run=f"2026113{n // 60}t12{n % 60:02}00z", started=f"2026-11-30T1{n // 60}:{n % 60:02}:00Z")
        for n in range(70)
    ]
    shown = words(pages(edition(many))["machines/index.md"])
    assert "Older runs that are not listed: 10" in shown
    assert "runs: 70" in shown
    assert "2026-11-30 11:09" in shown
    assert "2026-11-30 10:09" not in shown.split("Runs", 1)[1]


# -- a stranger's files


@pytest.mark.parametrize("text", [HOSTILE, "x" * 5000])
def test_a_strangers_text_is_text_and_short(text: str) -> None:
    failed = [
        made(lane, "small.mobilenet-d-cold-1", speedup=None, status="failed", reason=text, machine="machine-x")
        for lane in ("2.5", "2.15")
    ]
    good = both("mlp.mlp-d", {}, {}, machine="machine-x")
    environment = good[0].environment
    assert environment
    import msgspec

    hostile = msgspec.structs.replace(
        environment, gpu=text, cpu=text, driver=text, kernel=text, torch=text, cudnn=text, notes=[text] * 9
    )
    files = [changed(file, environment=hostile) for file in (*failed, *good)]
    for language in texts.LANGUAGES:
        for path, shown in pages(edition(files), language).items():
            assert "<script>alert" not in shown, path
            assert "<img" not in shown, path
            assert "{{" not in shown, path
            assert "{%" not in shown, path
            assert len(shown) < 400_000, path


@pytest.mark.parametrize(("language", "mark"), [("en", "wrong result"), ("zh", "\u7ed3\u679c\u9519\u8bef")])
def test_a_wrong_result_is_marked_where_its_times_stand(language: str, mark: str) -> None:
    found = pages(edition(both("table.resnet50-d-cold-1", {"right": False}, {})), language)
    [row] = [row for row in re.findall(r"<tr.*?</tr>", found["lanes/2.5.md"]) if "12.42 ms" in words(row)]
    assert mark in words(row)
    assert not re.search(r"\dx", words(row))
    assert mark not in words(found["lanes/2.15.md"])
    assert f"{mark} 2.5" in words(found[PAIR])
