"""A stranger's tree is data: whole new case files are told, anything else is refused, each with one message."""

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
from reportkit.proposal import review
from tests.casefiles import case_file

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
LANES = ("2.4", "2.5", "2.15", "nightly")
OLD = records.relative_path(case_file()).as_posix()
MINE = "dev-cpu"


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Return a base with one case file and a page, in git, and a copy of it that a stranger may change."""
    base = tmp_path / "base"
    records.write(base / "results", case_file())
    (base / "docs").mkdir()
    (base / "docs" / "page.md").write_text("# A page\n", encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", "-C", base, *command], check=True)
    proposed = tmp_path / "proposed"
    shutil.copytree(base, proposed)
    return base, proposed


def add(proposed: Path, **fields: Any) -> Path:
    """Write one whole new case file of the stranger's machine."""
    return records.write(proposed / "results", case_file(machine=MINE, **fields))


def edit(path: Path, **fields: object) -> None:
    """Change fields of a case file, whatever they then say."""
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")


def changed_old(proposed: Path) -> str:
    edit(proposed / "results" / OLD, reason="better")
    return f"results/{OLD}"


def a_space_in_old(proposed: Path) -> str:
    path = proposed / "results" / OLD
    path.write_bytes(path.read_bytes() + b"\n")
    return f"results/{OLD}"


def deleted_old(proposed: Path) -> str:
    (proposed / "results" / OLD).unlink()
    return f"results/{OLD}"


def old_is_a_link(proposed: Path) -> str:
    path = proposed / "results" / OLD
    elsewhere = proposed.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    return f"results/{OLD}"


def no_results(proposed: Path) -> str:
    shutil.rmtree(proposed / "results")
    return "results"


def results_are_a_link(proposed: Path) -> str:
    (proposed / "results").rename(proposed.parent / "elsewhere")
    (proposed / "results").symlink_to(proposed.parent / "elsewhere")
    return "results"


def a_link(proposed: Path) -> str:
    path = add(proposed)
    path.unlink()
    path.symlink_to("/etc/passwd")
    return path.relative_to(proposed).as_posix()


def a_linked_folder(proposed: Path) -> str:
    (proposed / "results" / "stranger").symlink_to("/etc")
    return "results/stranger"


def a_pipe(proposed: Path) -> str:
    path = add(proposed)
    path.unlink()
    os.mkfifo(path)
    return path.relative_to(proposed).as_posix()


def too_large(proposed: Path) -> str:
    path = add(proposed)
    path.write_bytes(path.read_bytes() + b" " * records.LARGEST_FILE)
    return path.relative_to(proposed).as_posix()


def truncated(proposed: Path) -> str:
    path = add(proposed)
    path.write_bytes(path.read_bytes()[:500])
    return path.relative_to(proposed).as_posix()


def not_finite(proposed: Path) -> str:
    path = add(proposed)
    path.write_text(path.read_text(encoding="utf-8").replace("24.0", "1e999"), encoding="utf-8")
    return path.relative_to(proposed).as_posix()


def not_a_number(proposed: Path) -> str:
    path = add(proposed)
    path.write_text(path.read_text(encoding="utf-8").replace("24.0", "NaN"), encoding="utf-8")
    return path.relative_to(proposed).as_posix()


def another_place(proposed: Path) -> str:
    path = add(proposed)
    path = path.rename(path.with_name(f"x{path.name}"))
    return path.relative_to(proposed).as_posix()


def a_bad_machine(proposed: Path) -> str:
    path = add(proposed)
    edit(path, machine="../../evil")
    return path.relative_to(proposed).as_posix()


def a_hidden_file(proposed: Path) -> str:
    path = add(proposed)
    path = path.rename(path.with_name(f".{path.name}"))
    return path.relative_to(proposed).as_posix()


def an_odd_name(proposed: Path) -> str:
    (proposed / "results" / "::error::\n{{ x }}<b>\u202e").write_text("{}", encoding="utf-8")
    return "results/::error::\\n{{ x }}<b>\\u202e"


def an_odd_field(proposed: Path) -> str:
    path = add(proposed)
    edit(path, **{"x\n::stop-commands::y": 1})
    return path.relative_to(proposed).as_posix()


def a_program(proposed: Path) -> str:
    (proposed / "results" / "conftest.py").write_text("raise SystemExit", encoding="utf-8")
    return "results/conftest.py"


def an_unknown_lane(proposed: Path) -> str:
    return add(proposed, lane="9.9").relative_to(proposed).as_posix()


def an_unknown_section(proposed: Path) -> str:
    return add(proposed, section="elsewhere").relative_to(proposed).as_posix()


def other_axes(proposed: Path) -> str:
    path = add(proposed)
    edit(path, axes={"workload": "mine"})
    return path.relative_to(proposed).as_posix()


def changed_page(proposed: Path) -> str:
    (proposed / "docs" / "page.md").write_text("# Mine\n", encoding="utf-8")
    return "docs/page.md"


def deleted_page(proposed: Path) -> str:
    (proposed / "docs" / "page.md").unlink()
    return "docs/page.md"


def added_program(proposed: Path) -> str:
    (proposed / "experiments").mkdir()
    (proposed / "experiments" / "__init__.py").write_text("raise SystemExit('it ran')", encoding="utf-8")
    return "experiments/__init__.py"


def a_link_outside(proposed: Path) -> str:
    (proposed / "lanes").symlink_to("/etc")
    return "lanes"


def page_is_a_link(proposed: Path) -> str:
    page = proposed / "docs" / "page.md"
    page.unlink()
    page.symlink_to("/etc/passwd")
    return "docs/page.md"


HOSTILE: dict[Callable[[Path], str], str] = {
    changed_old: "changed; a case file is never edited",
    a_space_in_old: "changed; a case file is never edited",
    deleted_old: "deleted; a case file stays",
    old_is_a_link: "changed; a case file is never edited",
    no_results: "no folder",
    results_are_a_link: "no folder",
    a_link: "symbolic link",
    a_linked_folder: "symbolic link",
    a_pipe: "no plain file",
    too_large: "larger than 2 MB",
    truncated: "not a case file",
    not_finite: "not a case file",
    not_a_number: "not a case file",
    another_place: "in the wrong place",
    a_bad_machine: "not a case file",
    a_hidden_file: "in the wrong place",
    an_odd_name: "not a case file",
    an_odd_field: "unknown field `x\\n::stop",
    a_program: "not a case file",
    an_unknown_lane: "lane '9.9' is not in lanes/lanes.toml",
    an_unknown_section: "section 'elsewhere' is none of the article's",
    other_axes: "its axes are",
    changed_page: "changed outside results/",
    deleted_page: "deleted outside results/",
    added_program: "added outside results/",
    a_link_outside: "added outside results/",
    page_is_a_link: "changed outside results/",
}


@pytest.mark.parametrize("attack", HOSTILE, ids=lambda attack: attack.__name__)
def test_what_is_no_addition_of_whole_case_files_is_refused(
    attack: Callable[[Path], str], trees: tuple[Path, Path]
) -> None:
    base, proposed = trees
    whole = add(proposed, lane="2.4")
    path = attack(proposed)
    added, refused = review(base, proposed, ARTICLE, LANES)
    assert [one.path for one in refused] == [path]
    assert HOSTILE[attack] in refused[0].problem
    assert "\n" not in refused[0].problem
    assert str(proposed) not in refused[0].problem
    # The others are told all the same, unless the folder itself is gone.
    assert [one.path for one in added] == ([whole.relative_to(proposed).as_posix()] if path != "results" else [])


def test_whole_new_case_files_are_let_in(trees: tuple[Path, Path]) -> None:
    base, proposed = trees
    mine, failed = add(proposed), add(proposed, lane="2.4", status="failed")
    added, refused = review(base, proposed, ARTICLE, LANES)
    assert refused == ()
    assert {one.path for one in added} == {one.relative_to(proposed).as_posix() for one in (mine, failed)}


def test_what_git_leaves_out_of_the_base_is_no_deletion(trees: tuple[Path, Path]) -> None:
    base, proposed = trees
    (base / "runs").mkdir()
    (base / "runs" / "local.json").write_text("{}", encoding="utf-8")
    assert review(base, proposed, ARTICLE, LANES) == ((), ())


def check(project: Path, folder: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reportkit", "check", folder],
        cwd=project,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_tells_what_is_new_and_fails_on_what_is_refused(tmp_path: Path) -> None:
    project, proposed = tmp_path / "project", tmp_path / "proposed"
    for folder in ("experiments", "lanes"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "results").mkdir()
    shutil.copytree(project, proposed)
    records.write(proposed / "results", case_file())
    add(proposed, lane="2.4")

    done = check(project, proposed)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"new: results/{OLD}: whole; nvidia-h200 is on the article's list" in done.stdout
    assert "dev-cpu is shown as contributed" in done.stdout
    assert done.stdout.endswith("2 new case files are whole, 0 things refused\n")

    # A program in that tree is told, and never run.
    (proposed / "experiments" / "__init__.py").write_text("raise SystemExit('it ran')", encoding="utf-8")
    done = check(project, proposed)
    assert done.returncode == 1
    assert done.stderr == (
        "refused: experiments/__init__.py: changed outside results/; case files come without other changes\n"
    )

    for wrong in (project, tmp_path / "nowhere"):
        done = check(project, wrong)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "name the whole tree to check against this one" in done.stderr
