"""The runner against workloads that misbehave: a case's fault is that case's alone, and is on file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reportkit import records
from reportkit.plan import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.bench.runner import Wish
    from reportkit.records import CaseFile

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]


def on_file(project: Path) -> dict[str, CaseFile]:
    """Return the project's case files by the kind of misbehaviour; none may be damaged."""
    stored, damaged = records.load(project)
    assert not damaged
    return {str(one.file.axes["kind"]): one.file for one in stored}


def test_one_bad_neighbour_costs_only_itself(wish: Callable[..., Wish], toy: Path) -> None:
    from reportkit.bench import runner

    names = [f"facts.{kind}" for kind in ("fine", "raises", "exits", "after", "segfaults", "prints", "memory")]

    code = runner.run(wish(*names))

    files = on_file(toy)
    assert code == runner.FAILED
    assert {kind: file.status for kind, file in files.items()} == {
        "fine": "complete",
        "raises": "failed",
        "exits": "crashed",
        "after": "complete",
        "segfaults": "crashed",
        "prints": "complete",
        "memory": "out-of-memory",
    }
    assert files["raises"].reason == "RuntimeError: {{ 7 * 7 }} <script>alert(1)</script>"
    assert "misbehave" in (files["raises"].traceback or "")
    assert files["exits"].reason == "it ended with exit code 7"
    assert "SIGSEGV" in (files["segfaults"].reason or "")
    assert str(toy) not in (files["raises"].traceback or "")


@pytest.mark.parametrize("kind", ["garbage", "no-json"])
def test_garbage_on_the_pipe_is_a_crash_that_says_so(kind: str, wish: Callable[..., Wish], toy: Path) -> None:
    from reportkit.bench import runner

    code = runner.run(wish(f"facts.{kind}", "facts.fine"))

    assert code == runner.FAILED
    assert on_file(toy)[kind].status == "crashed"
    assert on_file(toy)["fine"].status == "complete"


def test_a_hang_ends_at_the_limit(wish: Callable[..., Wish], toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reportkit.bench import runner

    monkeypatch.setattr(runner, "GRACE", 15.0)
    code = runner.run(wish("facts.hangs"))

    assert code == runner.FAILED
    assert on_file(toy)["hangs"].status == "timed-out"
    assert "no answer within" in (on_file(toy)["hangs"].reason or "")


def test_a_worker_left_behind_does_not_keep_the_runner(wish: Callable[..., Wish], toy: Path) -> None:
    from reportkit.bench import runner

    assert runner.run(wish("facts.forks")) == 0
    assert on_file(toy)["forks"].status == "complete"


def test_pairs_are_measured_or_refused_with_a_reason(wish: Callable[..., Wish], toy: Path) -> None:
    from reportkit.bench import runner

    runner.run(wish("pairs"))

    files = on_file(toy)
    fine = files["fine"]
    assert fine.status == "complete"
    assert fine.correctness
    assert fine.correctness.right
    assert len(fine.measurements["eager_wall"].samples) >= 30
    assert len(fine.measurements["eager_wall"].samples) == len(fine.measurements["compiled_wall"].samples)
    assert fine.counters["unique_graphs"] == 1
    assert "eager_gpu" not in fine.measurements
    assert "CPU" in (fine.telemetry.missing or "")
    right = {kind: file.correctness.right for kind, file in files.items() if file.correctness}
    assert right == {
        "fine": True,
        "wrong": False,
        "shape": False,
        "nan": False,
        "recompiles": True,
        "no-tensor": False,
    }
    assert files["recompiles"].status == "failed"
    assert "graphs were compiled while steady state was timed" in (files["recompiles"].reason or "")


def test_unknown_names_are_answered_with_the_nearest(wish: Callable[..., Wish]) -> None:
    from reportkit.bench import runner

    with pytest.raises(PlanError, match=r"unknown section, claim, experiment or case 'fact'; did you mean facts"):
        runner.run(wish("fact"))


def test_another_torch_than_the_lanes_is_refused(wish: Callable[..., Wish], toy: Path) -> None:
    from reportkit.bench import runner

    table = toy / "lanes" / "lanes.toml"
    table.write_text(table.read_text().replace('torch = "', 'torch = "9.'))

    with pytest.raises(runner.RunError, match=r"the torch here is .*, and the lane pins 9\."):
        runner.run(wish("facts.fine"))


def test_resume_measures_only_what_has_no_file(
    wish: Callable[..., Wish], toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner

    runner.run(wish("facts.fine"))
    code = runner.run(wish("facts.fine", "facts.after", resume=True))

    assert code == 0
    assert "resuming: 1 of 2 cases have a file" in capsys.readouterr().out
    assert len(records.load(toy)[0]) == 2


def test_a_budget_starts_nothing_that_would_not_fit(
    wish: Callable[..., Wish], toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner

    assert runner.run(wish("pairs", budget=0.5)) == 0
    assert "6 cases did not fit the budget" in capsys.readouterr().out
    assert records.load(toy)[0] == []


def test_a_plan_prints_cases_and_their_sum(wish: Callable[..., Wish], capsys: pytest.CaptureFixture[str]) -> None:
    from reportkit.bench import runner

    assert runner.run(wish("pairs", plan=True)) == 0
    assert "6 s  6 cases at smoke scale" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_loses_at_most_the_case_under_way(number: signal.Signals, toy: Path) -> None:
    command = [sys.executable, "-m", "reportkit", "run", "--lane", "toy", "--machine", "toy-machine"]
    process = subprocess.Popen(
        [*command, "facts.fine", "facts.hangs"],
        cwd=toy,
        env=os.environ | {"PYTHONPATH": f"{toy}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not on_file(toy) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(number)
    output = process.communicate(timeout=60)[0]

    files = on_file(toy)
    assert files["fine"].status == "complete"
    if number == signal.SIGKILL:
        assert "hangs" not in files
    else:
        assert process.returncode == 128 + number
        assert files["hangs"].status == "interrupted"
        assert "go on with --resume" in output


def test_a_full_disk_ends_the_run_and_keeps_what_was_written(
    wish: Callable[..., Wish], toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reportkit.bench import runner

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    runner.run(wish("facts.fine"))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(runner.RunError, match=r"No space left on device.*--resume") as caught:
        runner.run(wish("facts.after"))

    assert caught.value.code == runner.NO_ROOM
    assert list(on_file(toy)) == ["fine"]
    assert not list(toy.rglob("*.tmp"))
