"""The runner against workloads that misbehave: a case's fault is that case's alone, and is on file."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from reportkit import records
from reportkit.plan import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reportkit.bench.messages import Message, Request
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
    where = r"(?s)Segmentation fault.*section\.py., line \d+ in misbehave"
    assert re.search(where, files["segfaults"].traceback or "")
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


def test_pairs_are_measured_or_refused_with_a_reason(
    wish: Callable[..., Wish], toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner

    runner.run(wish("pairs"))
    said = capsys.readouterr().out

    files = on_file(toy)
    fine = files["fine"]
    assert fine.status == "complete"
    assert fine.findings["graph-breaks"] == records.Finding(holds=False, evidence={})
    assert {"entire_frame_compile", "backend_compile"} <= set(fine.measurements)
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
    wrong = re.search(r"with a WRONG result: (.*?);", said)
    assert wrong
    assert set(wrong[1].split(", ")) == {f"pairs.{kind}" for kind in right if not right[kind]}
    assert re.search(r"^pairs\.nan  complete  \d+ s; the result is WRONG: \S", said, re.MULTILINE)
    assert files["recompiles"].status == "failed"
    assert "graphs were compiled while steady state was timed" in (files["recompiles"].reason or "")


def test_a_warm_case_is_measured_on_the_caches_of_its_cold_case(
    wish: Callable[..., Wish], toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner

    assert runner.run(wish("cold.fine-again")) == 0
    assert on_file(toy)["fine-again"].findings["cache-hit"].holds
    # The second run has only the warm case to measure, and fills its caches by the cold one's first call.
    next(toy.rglob("cold.fine-again--*.json")).unlink()
    assert runner.run(wish("cold.fine-again", resume=True)) == 0

    assert "the caches of cold.fine are not there; filling them again" in capsys.readouterr().out
    assert on_file(toy)["fine-again"].findings["cache-hit"].holds


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("raises", "failed: RuntimeError: no caches"),
        ("exits", "crashed: it ended with exit code 7"),
        ("needs", "unavailable: needs a unicorn"),
    ],
)
def test_a_warm_case_whose_caches_can_not_be_filled_is_not_measured(
    kind: str, reason: str, wish: Callable[..., Wish], toy: Path
) -> None:
    from reportkit.bench import runner

    said = f"nothing was measured, since cold.{kind}, which fills its caches, ended as {reason}"
    status = "unavailable" if kind == "needs" else "failed"
    runner.run(wish(f"cold.{kind}-again"))  # Its cold case has just gone wrong.
    after = on_file(toy)[f"{kind}-again"]
    next(toy.rglob(f"cold.{kind}-again--*.json")).unlink()
    runner.run(wish(f"cold.{kind}-again", resume=True))  # Filling its caches goes wrong.
    refilled = on_file(toy)[f"{kind}-again"]

    for file in (after, refilled):
        assert (file.status, file.reason, file.findings, file.measurements) == (status, said, {}, {})


ANCHORED = """
from dataclasses import replace

from experiments import section
from reportkit.plan import Article, Case, Experiment
from reportkit.records import Finding, Measurement


def prepare(case, here):
    def observe():
        if {fails}:
            raise RuntimeError("adrift")
        return {{
            "launch": Measurement(unit="s", samples=[3.0, 1.0, 2.0]),
            "power": Measurement(unit="W", samples=[7.0]),
            "fine": Finding(holds=True, evidence={{}}),
        }}

    return observe


ANCHORS = Experiment(
    id="anchors",
    kind="fact",
    cases=(Case(experiment="anchors", axes={{"kind": "anchor"}}, workload="small", cost={{"full": 2, "smoke": 2}}),),
    prepare=prepare,
)
SECTION = replace(section.SECTION, experiments=(*section.SECTION.experiments, ANCHORS))
ARTICLE = Article(id="toy", lane="toy", machines=(), sections=(SECTION,), anchors="anchors")
"""


def anchor(project: Path, *, fails: bool) -> None:
    (project / "experiments" / "anchors.py").write_text(ANCHORED.format(fails=fails))
    (project / "experiments" / "__init__.py").write_text("from experiments.anchors import ARTICLE as ARTICLE\n")


def test_anchors_run_first_and_are_in_every_file_after_them(
    wish: Callable[..., Wish], toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner

    anchor(toy, fails=False)
    assert runner.run(wish("facts.fine", plan=True)) == 0
    assert "3 s  2 cases at smoke scale" in capsys.readouterr().out

    assert runner.run(wish("facts.fine")) == 0
    files = on_file(toy)
    assert files["anchor"].anchors is None
    assert files["fine"].anchors == {"launch": 2.0}

    assert runner.run(wish("facts.fine", resume=True)) == 0  # Anchors for nothing are not measured.
    assert "nothing to do" in capsys.readouterr().out
    assert len(records.load(toy)[0]) == 2

    assert runner.run(wish("facts.fine", "facts.after", resume=True)) == 0
    stored = [one.file for one in records.load(toy)[0]]
    assert sorted(file.axes["kind"] for file in stored) == ["after", "anchor", "anchor", "fine"]
    assert on_file(toy)["after"].anchors == {"launch": 2.0}


def test_a_run_whose_anchors_fail_goes_on_without(
    wish: Callable[..., Wish], toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner

    anchor(toy, fails=True)
    assert runner.run(wish("facts.fine")) == runner.FAILED

    assert capsys.readouterr().out.count("the anchors (anchors.anchor) could not be measured") == 1
    assert on_file(toy)["fine"].status == "complete"
    assert on_file(toy)["fine"].anchors is None


def test_peak_memory_comes_from_a_process_a_side_and_its_failure_costs_only_itself(
    wish: Callable[..., Wish], toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner
    from reportkit.bench.messages import Answer, Hello

    asked: list[tuple[str | None, Path]] = []
    converse = runner.converse

    def with_a_gpu(project: Path, request: Request, cache: Path, *rest: Any) -> Iterator[Message | None]:
        asked.append((request.only, cache))
        if request.only == "memory-eager":
            yield Answer(case=request.cases[0], status="complete", memory={"eager_allocated": 5})
        elif request.only == "memory-compiled":
            raise runner.ChildError("crashed", "it was killed by SIGBUS", "")
        else:
            for message in converse(project, request, cache, *rest):
                if isinstance(message, Hello):
                    gpu = msgspec.structs.replace(message.environment, gpu="Unicorn 9000")
                    yield Hello(environment=gpu)
                else:
                    yield message

    monkeypatch.setattr(runner, "converse", with_a_gpu)
    code = (toy / "experiments" / "section.py").read_text()
    code = code.replace('"many", kind="fact"', '"many", kind="timing"').replace(
        "prepare=prepare_many", "prepare=prepare_side"
    )
    code = code.replace(
        '"many", [f"{number:03}" for number in range(150)]', '"many", ["plain"], passes=("memory",), steady=False'
    )
    (toy / "experiments" / "section.py").write_text(code)

    assert runner.run(wish("many")) == 0

    assert on_file(toy)["plain"].status == "complete"
    assert on_file(toy)["plain"].memory == {"eager_allocated": 5}
    assert [only for only, _ in asked] == [None, None, "memory-eager", "memory-compiled"]
    assert len({cache for _, cache in asked[1:]}) == 1
    assert "the peak memory of compiled is missing (crashed: it was killed by SIGBUS)" in capsys.readouterr().out
    missing = on_file(toy)["plain"].findings["memory-pass-compiled"]
    assert (missing.holds, missing.evidence["reason"]) == (False, "crashed: it was killed by SIGBUS")


def test_a_case_is_measured_at_its_own_scales_alone_and_one_that_is_named_is_told(
    wish: Callable[..., Wish], toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reportkit.bench import runner

    assert runner.run(wish("scaled", plan=True)) == 0
    assert "2 s  2 cases at smoke scale" in capsys.readouterr().out
    assert runner.run(wish("scaled", plan=True, scale="full")) == 0
    assert "5 s  5 cases at full scale" in capsys.readouterr().out

    # Neither is what a case of another scale follows measured for it.
    assert runner.run(wish("scaled.larger", "scaled.both", "scaled.warm", "large")) == 0
    lines = capsys.readouterr().out.splitlines()
    told = "not measured at smoke scale, but with --scale full: scaled.larger, scaled.warm, large"
    assert [line for line in lines if "not measured" in line] == [told]
    assert set(on_file(toy)) == {"both"}


@pytest.mark.parametrize("names", [("scaled.large",), ("scaled.warm", "large")])
@pytest.mark.parametrize("anchored", [True, False])
def test_where_nothing_is_left_of_a_scale_it_is_said_and_nothing_runs(
    names: tuple[str, ...],
    anchored: bool,  # noqa: FBT001 -- a case of the table
    wish: Callable[..., Wish],
    toy: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from reportkit import __main__ as main
    from reportkit.bench import runner
    from reportkit.bench.messages import Hello

    if anchored:
        anchor(toy, fails=False)
    words = f"not measured at smoke scale, but with --scale full: {', '.join(names)}$"
    with pytest.raises(PlanError, match=words):
        runner.run(wish(*names))
    with pytest.raises(PlanError, match=words):
        runner.run(wish(*names, plan=True))
    # Where no scale is asked for, the machine decides.
    probe = runner.probe

    def without_a_gpu(*given: Any) -> Hello:
        return Hello(environment=msgspec.structs.replace(probe(*given).environment, gpu=None))

    monkeypatch.setattr(runner, "probe", without_a_gpu)
    with pytest.raises(PlanError, match=words):
        runner.run(wish(*names, scale=None))
    monkeypatch.chdir(toy)
    assert main.main(["run", "--lane", "toy", "--scale", "smoke", *names]) == runner.USAGE
    assert records.load(toy)[0] == []


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
    said = capsys.readouterr().out
    assert "nothing fits" in said
    assert re.search(r"not started, to keep the budget: pairs\.\S+, .*; go on with --resume", said)
    assert records.load(toy)[0] == []


def test_a_folder_that_can_not_be_written_to_is_refused_before_anything_is_measured(
    wish: Callable[..., Wish], toy: Path
) -> None:
    from reportkit.bench import runner

    (toy / "runs").write_text("a file where the folder should be")
    with pytest.raises(runner.RunError, match="case files can't be written to") as caught:
        runner.run(wish("facts.fine"))
    assert caught.value.code == runner.NO_ROOM


def test_the_caches_of_a_killed_runner_go_with_the_next_run(
    wish: Callable[..., Wish], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from reportkit.bench import runner

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"{runner.SCRATCH}{ended.pid}-abc"
    mine = tmp_path / f"{runner.SCRATCH}{os.getpid()}-abc"
    for folder in (left, mine):
        folder.mkdir()

    assert runner.run(wish("facts.fine", budget=0.5)) == 0

    assert not left.exists()
    assert mine.exists()


def test_a_backends_failure_is_told_by_its_own_words() -> None:
    from reportkit.bench import case

    error = RuntimeError("backend='inductor' raised:\nInvalidCxxCompiler: No working C++ compiler found\n\nmore")
    told = "RuntimeError: backend='inductor' raised: InvalidCxxCompiler: No working C++ compiler found"
    assert case._reason(error) == told


def test_a_plan_says_what_a_budget_leaves(wish: Callable[..., Wish], capsys: pytest.CaptureFixture[str]) -> None:
    from reportkit.bench import runner

    assert runner.run(wish("pairs", plan=True, budget=2.0)) == 0
    assert capsys.readouterr().out.count("does not fit the budget") >= 1


def test_a_plan_prints_cases_and_their_sum(wish: Callable[..., Wish], capsys: pytest.CaptureFixture[str]) -> None:
    from reportkit.bench import runner

    assert runner.run(wish("pairs", plan=True)) == 0
    assert "6 s  6 cases at smoke scale" in capsys.readouterr().out


def test_what_a_case_changes_in_its_process_does_not_reach_the_next(wish: Callable[..., Wish], toy: Path) -> None:
    from reportkit.bench import runner

    complete = ("plain", "switches", "process", "clock", "threads", "uncached", "asks", "twin", "stray", "last")
    faulty = ("fills", "sys-exit", "interrupt", "base", "recursion", "closes")

    code = runner.run(wish(*(f"attacks.{kind}" for kind in (*complete, *faulty))))

    files = on_file(toy)
    assert code == runner.FAILED
    assert {kind: file.status for kind, file in files.items()} == {
        **dict.fromkeys(complete, "complete"),
        **dict.fromkeys(faulty, "failed"),
        "fills": "out-of-memory",
        "closes": "crashed",
    }
    for kind in complete:
        assert files[kind].findings["fine"].evidence == files["plain"].findings["fine"].evidence, kind
    reasons = {kind: files[kind].reason for kind in ("sys-exit", "interrupt", "base")}
    assert reasons == {
        "sys-exit": "SystemExit: 0",
        "interrupt": "KeyboardInterrupt: without a message; see the traceback",
        "base": "BaseException: neither",
    }
    assert "Bad file descriptor" in (files["closes"].traceback or "")
    assert len(records.load(toy)[0]) == len(complete) + len(faulty)
    assert left_over(toy) == []


def left_over(project: Path) -> list[str]:
    """Return the command lines of processes that the project's cases have left."""
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            # Only what a measured process starts has both.
            variables = (process / "environ").read_bytes()
            if b"REPORTKIT_CHILD=" in variables and str(project).encode() in variables:
                left.append((process / "cmdline").read_bytes().decode().replace("\0", " "))
        except OSError:
            continue  # It has just ended, or is another user's.
    return left


def test_results_are_held_against_each_other_or_refused_with_the_reason(wish: Callable[..., Wish], toy: Path) -> None:
    from reportkit.bench import runner

    runner.run(wish("sides"))

    files = on_file(toy)
    said = {kind: file.correctness.detail for kind, file in files.items() if file.correctness}
    right = {kind for kind, file in files.items() if file.correctness and file.correctness.right}
    assert right == {"plain", "buffer", "random", "switches", "clock", "last"}
    assert {said[kind] for kind in right} == {""}
    expected = {
        "buffer-wrong": "the compiled error against fp64 is larger than eager's allows",
        "other-random": "the call draws random numbers, and the compiled result is not close to eager's",
        "noise": "two eager runs from the same seed differ",
        "input": "two eager runs from the same seed differ",
        "parameters": "two eager runs from the same seed differ",
        "late": "after timing, eager returns something else than before it",
        "nan-both": "the result has a NaN or an infinity",
        "dtype": "the compiled result has other types than eager's",
        "empty": "the call returns no element",
        "two-shapes": "two eager runs return other shapes or types",
        "imaginary": "the compiled error against fp64 is larger than eager's allows",
    }
    for kind, start in expected.items():
        assert said[kind].startswith(start), (kind, said[kind])
    assert (files["exits"].status, files["exits"].reason) == ("failed", "SystemExit: 0")
    assert {kind for kind, file in files.items() if file.status != "complete"} == {"exits"}
    assert files["switches"].settings["default_dtype"] == "torch.float64"
    assert files["clock"].settings == files["last"].settings == files["plain"].settings


def test_a_signal_between_cases_loses_nothing(
    wish: Callable[..., Wish], toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reportkit.bench import runner

    say = runner.say

    def say_and_stop(text: str) -> None:
        say(text)
        if text.startswith("facts.fine"):
            os.kill(os.getpid(), signal.SIGINT)  # When its file is there, and no other case has begun.

    monkeypatch.setattr(runner, "say", say_and_stop)
    done = threading.Event()
    another = threading.Thread(target=done.wait)  # It takes the signal where this thread does not.
    another.start()
    try:
        assert runner.run(wish("facts.fine")) == 128 + signal.SIGINT
    finally:
        done.set()
        another.join()
    assert {kind: file.status for kind, file in on_file(toy).items()} == {"fine": "complete"}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_killed_at_twenty_moments_loses_at_most_the_case_under_way_each_time(toy: Path) -> None:
    chance = random.Random(20261130)  # noqa: S311 -- moments, no secret
    command = [sys.executable, "-m", "reportkit", "run", "--lane", "toy", "--machine", "toy-machine", "many"]
    variables = os.environ | {"PYTHONPATH": f"{toy}{os.pathsep}{ROOT}"}
    log = toy / "log"
    log.touch()
    lost: list[int] = []
    for kill in range(20):
        before = set(on_file(toy))
        process = subprocess.Popen([*command, "--resume"], cwd=toy, env=variables, stdout=subprocess.DEVNULL)
        # One in five dies while torch is imported; the others once some more files are there.
        wanted = 0 if kill % 5 == 0 else chance.randrange(1, 8)
        while len(on_file(toy)) < len(before) + wanted:
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.1 if wanted else 4))
        process.kill()
        process.wait()
        while left_over(toy):
            time.sleep(0.02)  # The measured process follows the runner.
        assert before <= set(on_file(toy))
        begun = log.read_text().split()
        lost.append(len(begun) - len(on_file(toy)) - sum(lost))
        assert set(on_file(toy)) <= set(begun)
    assert set(lost) <= {0, 1}
    assert 1 in lost

    assert subprocess.run([*command, "--resume"], cwd=toy, env=variables, check=False).returncode == 0
    stored, damaged = records.load(toy)
    assert not damaged
    assert sorted(one.file.case for one in stored) == [f"many.{number:03}" for number in range(150)]
    assert {one.file.status for one in stored} == {"complete"}
    # Every case has begun once, and once more for each time that it was lost.
    assert len(log.read_text().split()) == 150 + sum(lost)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_loses_at_most_the_case_under_way(number: signal.Signals, toy: Path) -> None:
    command = [sys.executable, "-m", "reportkit", "run", "--lane", "toy", "--machine", "toy-machine"]
    process = subprocess.Popen(
        [*command, "facts.fine", "facts.deaf"],
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
        assert "deaf" not in files
    else:
        assert process.returncode == 128 + number
        assert files["deaf"].status == "interrupted"
        assert "go on with --resume" in output
    while left_over(toy):
        time.sleep(0.05)  # Whoever ends the runner ends the case, which would hang for an hour.


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
