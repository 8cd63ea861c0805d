"""The command line on bad input: one message that says what, where and what to do; a nonzero exit; nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit import records
from reportkit.digest import digests
from tests.casefiles import case_file

if TYPE_CHECKING:
    from reportkit.records import CaseFile

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the project without anything measured."""
    project = tmp_path / "project"
    for folder in ("experiments", "lanes", "docs"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return project


def reportkit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reportkit", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a failed command wrote to its errors."""
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize("command", ["verdicts", "check", "keep", "report", "build-info", "compare 2.4 2.5"])
def test_another_folder_than_the_projects_is_refused(command: str, tmp_path: Path) -> None:
    assert "run this in the project's root folder" in one_line(reportkit(tmp_path, *command.split()))


def test_an_unknown_lane_is_answered_with_the_nearest(project: Path) -> None:
    assert "2.5" in one_line(reportkit(project, "run", "--lane", "2.6"))


def test_an_environment_that_can_not_measure_says_which_can(project: Path) -> None:
    told = one_line(reportkit(project, "run", "--lane", "2.5", "--plan"))
    assert 'nox -s "experiments(2.5)"' in told


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("benchmarks.py", "between(1.42, 1.87)", "between(1.87, 1.42)", "a bound that contradicts itself"),
        ("benchmarks.py", 'on="cuda"', 'on="gpu"', "judged on 'gpu'"),
        ("benchmarks.py", "at_most(1.05)", "at_most(0.5)", "a spread is never below 1"),
        ("questions.py", "CLAIMS = (", "CLAIMS = ((", "SyntaxError"),
        ("questions.py", "CLAIMS = (", "import nosuchmodule\n\nCLAIMS = (", "No module named 'nosuchmodule'"),
    ],
)
def test_a_mistake_in_the_plan_is_told_with_its_file_and_line(
    file: str, old: str, new: str, told: str, project: Path
) -> None:
    path = project / "experiments" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))

    line = one_line(reportkit(project, "verdicts"))

    assert f"experiments/{file}:" in line
    assert told in line


def test_verdicts_has_every_claim_in_every_lane(project: Path) -> None:
    done = reportkit(project, "verdicts", "--json")

    rows = json.loads(done.stdout)
    assert done.returncode == 0
    assert {row["lane"] for row in rows} == {"2.4", "2.5", "2.15", "nightly"}
    assert len(rows) == 4 * len({row["id"] for row in rows})
    assert {row["verdict"] for row in rows} == {"not-measured", "not-testable"}
    keys = {"id", "section", "lane", "machine", "scale", "local", "verdict", "reason"}
    keys |= {"interval", "bound", "parts", "files"}
    assert all(row.keys() == keys for row in rows)


def test_a_file_that_contradicts_the_plan_is_damaged(project: Path) -> None:
    records.write(project / "results", case_file())
    assert "1 case files are whole" in reportkit(project, "check").stdout

    path = next((project / "results").rglob("*.json"))
    path.write_text(path.read_text().replace('"process": "', '"process": "not-'))
    done = reportkit(project, "check")

    assert done.returncode == 1
    assert "its axes are" in one_line(done)


@pytest.mark.parametrize("command", ["check", "verdicts"])
def test_damage_is_told_on_one_line_each_and_the_rest_goes_on(command: str, project: Path) -> None:
    folder = project / "runs" / "a"
    folder.mkdir(parents=True)
    (folder / "two\nlines.json").write_text("{")

    done = reportkit(project, command)

    assert "runs/a/two\\nlines.json" in one_line(done)
    assert done.stdout


def test_a_text_that_is_no_toml_is_told_by_check(project: Path) -> None:
    with (project / "experiments" / "claims.zh.toml").open("a") as stream:
        stream.write("x = [\n")
    assert "experiments/claims.zh.toml" in one_line(reportkit(project, "check"))


def anchored(lane: str, **fields: Any) -> CaseFile:
    """Return a file that counts in that lane."""
    return case_file(lane=lane, digest=digests(ARTICLE)["table.resnet50-d-cold-1"], anchors={"launch": 4e-6}, **fields)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("2.5 2.51", "no lane is called '2.51'; did you mean 2.5 or 2.15?"),
        ("2.5 2.5", "2.5 can't be compared with itself; name two lanes"),
        ("2.4 2.5", "2.4 has files of no machine; 2.5 has files of nvidia-h200"),
        ("2.4 2.5", '`nox -s "experiments(2.4)"`'),
        ("2.5 2.15", "2.5 has files of nvidia-h200; 2.15 has files of nvidia-h100"),
        ("2.5 2.15 --machine nvidia-h20", "did you mean nvidia-h200, nvidia-h100?"),
        ("2.5 2.15 --machine nvidia-h200", "in both 2.5 and 2.15 on nvidia-h200"),
    ],
)
def test_lanes_that_can_not_be_compared_are_told_in_one_line(arguments: str, told: str, project: Path) -> None:
    records.write(project / "results", anchored("2.5"))
    records.write(project / "results", anchored("2.15", machine="nvidia-h100"))

    done = reportkit(project, "compare", *arguments.split())

    assert done.returncode == 2
    assert told in one_line(done)
    assert done.stdout == ""


def test_compare_prints_a_table_or_objects(project: Path) -> None:
    records.write(project / "results", anchored("2.5"))
    records.write(project / "results", anchored("2.15", speedup=2.1))

    table = reportkit(project, "compare", "2.5", "2.15")
    [row] = json.loads(reportkit(project, "compare", "2.5", "2.15", "--machine", "nvidia-h200", "--json").stdout)

    assert table.returncode == 0
    assert table.stdout.startswith("2.5 to 2.15 on nvidia-h200, full scale: 1 of 1 cases compared")
    assert "significant, relevant" in table.stdout
    assert (row["case"], row["baseline"], row["candidate"]) == ("table.resnet50-d-cold-1", "2.5", "2.15")
    assert [path.split("/")[2] for path in row["files"]] == ["2.5", "2.15"]
    assert row["release_ratios"][0]["significant"] is True


def test_keeping_from_nowhere_is_refused(project: Path) -> None:
    assert "there is no folder elsewhere" in one_line(reportkit(project, "keep", "--from", "elsewhere"))


def test_a_results_folder_that_is_a_file_is_one_message(project: Path) -> None:
    records.write(project / "results", case_file())
    (project / "results").rename(project / "runs")
    (project / "results").write_text("")

    done = reportkit(project, "keep")

    assert done.returncode == 3
    assert "results" in one_line(done)
