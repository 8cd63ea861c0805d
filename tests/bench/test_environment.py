"""What a case file says of its tree and machine, with git and without."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import msgspec
import pytest

from reportkit.bench import environment as env
from reportkit.records import NAME, RecordError
from tests.casefiles import environment

if TYPE_CHECKING:
    from pathlib import Path


def git(project: Path, *arguments: str) -> None:
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(project), *author, *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a committed project of two files."""
    project = tmp_path / "project"
    for folder in ("experiments", "reportkit"):
        (project / folder).mkdir(parents=True)
        (project / folder / "code.py").write_text("one = 1\n")
    (project / ".gitignore").write_text("build-info.json\nruns/\n")
    git(project.parent, "init", "-q", str(project))
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    return project


def test_a_committed_tree_is_clean_and_a_changed_one_dirty(project: Path) -> None:
    commit, dirty = env.tree_state(project)
    assert len(commit or "") == 40
    assert not dirty

    (project / "experiments" / "code.py").write_text("one = 2\n")
    assert env.tree_state(project) == (commit, True)


@pytest.mark.parametrize("folder", ["results", "runs"])
def test_what_runs_write_does_not_make_a_tree_dirty(folder: str, project: Path) -> None:
    (project / folder).mkdir()
    (project / folder / "case.json").write_text("{}\n")
    assert not env.tree_state(project)[1]


def test_a_lock_pins_what_its_markers_say_is_for_this_python() -> None:
    pytest.importorskip("packaging")
    text = """\
one==1.0 \\
    --hash=sha256:00
two==2.1 ; python_full_version < '3.0' \\
    --hash=sha256:00
two==2.2 ; python_full_version >= '3.0' \\
    --hash=sha256:00
three==3.0 ; sys_platform == 'nowhere' \\
    --hash=sha256:00
"""
    assert env.locked(text) == {"one": "1.0", "two": "2.2"}


def sent(project: Path, to: Path) -> Path:
    """Return a copy of the project as it arrives on a machine without git."""
    env.write_build_info(project)
    copy = to / "sent"
    subprocess.run(["cp", "-r", str(project), str(copy)], check=True)
    subprocess.run(["rm", "-rf", str(copy / ".git")], check=True)
    return copy


def test_a_tree_that_was_sent_is_what_its_build_info_says(project: Path, tmp_path: Path) -> None:
    assert env.tree_state(sent(project, tmp_path)) == env.tree_state(project)


@pytest.mark.parametrize(
    ("change", "text"),
    [("experiments/code.py", "one = 3\n"), ("reportkit/unknown.py", ""), ("experiments/code.py", None)],
    ids=["changed", "added", "removed"],
)
def test_a_tree_changed_after_it_was_sent_is_dirty(
    change: str, text: str | None, project: Path, tmp_path: Path
) -> None:
    copy = sent(project, tmp_path)
    if text is None:
        (copy / change).unlink()
    else:
        (copy / change).write_text(text)
    assert env.tree_state(copy)[1]


def test_without_git_and_build_info_nothing_is_known_and_so_dirty(tmp_path: Path) -> None:
    assert env.tree_state(tmp_path) == (None, True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"commit": "a"}', '{"commit": "a", "dirty": false, "files": 3}'])
def test_a_damaged_build_info_is_named_with_what_to_do(text: str, tmp_path: Path) -> None:
    (tmp_path / env.BUILD_INFO).write_text(text)
    with pytest.raises(RecordError, match=r"build-info\.json is damaged.*build-info"):
        env.tree_state(tmp_path)


def test_a_build_info_needs_git(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no git checkout"):
        env.write_build_info(tmp_path)


@pytest.mark.parametrize(
    ("gpu", "cpu", "cores", "name"),
    [
        ("NVIDIA H200", "any", 16, "nvidia-h200"),
        ("NVIDIA A100-SXM4-40GB", "any", 8, "nvidia-a100-sxm4-40gb"),
        (None, "Intel(R) Xeon(R) Platinum 8480C", 2, "intel-xeon-platinum-8480c-2c"),
        (None, "AMD EPYC 7B13", 2, "amd-epyc-7b13-2c"),
        (None, "Some CPU @ 2.20GHz", 4, "some-4c"),
        (None, "x" * 200, 4, "x" * 56 + "-4c"),
        (None, "\u795e\u5a01", 4, "unknown-4c"),
    ],
)
def test_a_machine_has_a_name_that_may_be_a_folder(gpu: str | None, cpu: str, cores: int, name: str) -> None:
    here = msgspec.structs.replace(environment(gpu=False), gpu=gpu, cpu=cpu, cores=cores)
    assert env.machine_name(here) == name
    assert NAME.fullmatch(name)


def test_a_child_starts_without_what_would_change_the_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_FX_GRAPH_CACHE", "0")
    monkeypatch.setenv("TORCH_LOGS", "+dynamo")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    variables = env.child_variables(tmp_path)

    assert "TORCHINDUCTOR_FX_GRAPH_CACHE" not in variables
    assert "TORCH_LOGS" not in variables
    assert variables["OMP_NUM_THREADS"] == "1"
    assert variables["TORCHINDUCTOR_CACHE_DIR"].startswith(str(tmp_path))


def test_build_info_holds_every_tracked_file_and_no_result(project: Path) -> None:
    (project / "results").mkdir()
    (project / "results" / "case.json").write_text("{}")
    git(project, "add", "-f", "results/case.json")
    files = json.loads(env.write_build_info(project).read_text())["files"]
    assert sorted(files) == [".gitignore", "experiments/code.py", "reportkit/code.py"]
