"""Section 0 by real torch: what must be refused is, with its reason, and what is counted is counted right."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit.bench import passes, timing
from reportkit.plan import Here, Sides
from reportkit.records import Finding, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.bench.messages import Answer

HERE = Here(scale="smoke", device="cpu")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time no longer than it takes to see what happens; no time is asserted."""
    monkeypatch.setitem(timing.PACES, "smoke", timing.Pace(warm_up=0.01, budget=0.5))


def measured(name: str, tmp_path: Any) -> Answer:
    """Return the answer for one of the article's own cases, measured in this process."""
    from reportkit.bench import case

    experiment = next(e for e in ARTICLE.experiments if e.id == name.split(".", maxsplit=1)[0])
    one = next(c for c in experiment.cases if c.name == name)
    with (tmp_path / "answers").open("wb") as stream:
        return case.measure(experiment, one, HERE, case.Progress(name, stream.fileno()))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("trap", "words"),
    [
        ("cached-result", "did not follow eager"),
        ("mutated-inputs", "not close to eager's"),
        ("zero-graphs", "no graph was captured"),
        ("recompiling", "graphs were compiled while steady state was timed"),
        ("profiler-on", "a profiler is on"),
    ],
)
def test_a_trap_without_a_meaning_is_refused_with_its_reason(trap: str, words: str, tmp_path: Any) -> None:
    import torch

    try:
        answer = measured(f"traps.{trap}", tmp_path)
    finally:
        if torch.autograd._profiler_enabled():
            torch.autograd._disable_profiler()
    assert answer.status == "complete", answer.traceback
    assert answer.findings["refused"].holds
    assert words in str(answer.findings["refused"].evidence["reason"])
    assert answer.measurements.keys() >= {"naive_eager", "naive_compiled"}


@pytest.mark.torch
@pytest.mark.parametrize("trap", ["first-call", "zeros"])
def test_a_trap_with_the_same_work_on_both_sides_is_measured(trap: str, tmp_path: Any) -> None:
    answer = measured(f"traps.{trap}", tmp_path)
    assert answer.status == "complete", answer.traceback
    assert not answer.findings["refused"].holds, answer.findings
    assert answer.measurements.keys() >= {"naive_eager", "naive_compiled", "eager_wall", "compiled_wall"}


@pytest.mark.torch
def test_a_trap_that_needs_a_gpu_says_so(tmp_path: Any) -> None:
    answer = measured("traps.side-stream", tmp_path)
    assert answer.status == "unavailable"
    assert "needs a GPU" in (answer.reason or "")


@pytest.mark.torch
def test_a_control_is_timed_without_compiling(tmp_path: Any) -> None:
    answer = measured("same-small.gelu-alone", tmp_path)
    assert answer.status == "complete", answer.traceback
    assert answer.correctness is not None
    assert answer.correctness.right
    assert "first_call" not in answer.measurements
    assert answer.counters["unique_graphs"] == 0


@pytest.mark.torch
def test_anchors_are_three_times(tmp_path: Any) -> None:
    answer = measured("anchors.all", tmp_path)
    assert answer.status == "complete", answer.traceback
    assert set(answer.measurements) == {"launch", "copy", "mobilenet"}


@pytest.mark.torch
def test_calls_that_change_a_switch_while_they_are_timed_are_refused(tmp_path: Any) -> None:
    import torch

    from reportkit.bench import case

    calls = 0

    def work() -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 20:
            torch.set_float32_matmul_precision("high")
        return torch.ones(4)

    experiment = next(e for e in ARTICLE.experiments if e.id == "same")
    sides = Sides(eager=work, compiled=work, reference=None, tolerance=1e-3)
    changed = replace(experiment, prepare=lambda _case, _here: sides)
    with (tmp_path / "answers").open("wb") as stream:
        progress = case.Progress("same.resnet50", stream.fileno())
        answer = case.measure(changed, experiment.cases[0], HERE, progress)
    assert answer.status == "failed"
    assert "change torch's switches while they are timed: " in (answer.reason or "")
    assert "float32_matmul_precision" in (answer.reason or "")


@pytest.mark.torch
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", ["numbers", "indices"])
def test_a_kept_result_is_found_out_by_other_inputs(kept: bool, kind: str) -> None:  # noqa: FBT001 -- a case of the table
    import torch

    from reportkit.bench import correctness

    numbers = torch.randn(8, 8) if kind == "numbers" else torch.randint(0, 100, (8, 8))
    before = numbers.clone()
    result = numbers * 2
    sides = Sides(
        eager=lambda: numbers * 2,
        compiled=(lambda: result) if kept else (lambda: numbers + numbers),
        reference=None,
        tolerance=1e-4,
        inputs=(numbers,),
    )
    first, second, ours = (correctness.kept(call, HERE)[1] for call in (sides.eager, sides.eager, sides.compiled))
    right = correctness.compare(first, second, ours, sides)
    assert right.right
    assert correctness.follows(right, sides, HERE).right is not kept
    assert torch.equal(numbers, before)


@pytest.mark.torch
def test_other_inputs_are_none_that_a_call_could_not_take() -> None:
    import torch

    from reportkit.bench import correctness

    rows = torch.randn(7, 3)
    inputs = (
        torch.tensor([[1, 2, 6]]),
        torch.tensor([[True, True, False]]),
        torch.ones(2, 3, dtype=torch.int64),
        torch.tensor(5),
        torch.tensor(0.5),
    )
    before = [one.clone() for one in inputs]
    seen: list[list[object]] = []

    def call() -> object:
        seen.append([one.tolist() for one in inputs])
        indices, mask, ones, step, scale = inputs
        return rows[indices] * mask[..., None] * ones.sum() * step * scale

    sides = Sides(eager=call, compiled=call, reference=None, tolerance=1e-4, inputs=inputs)
    first, second, ours = (correctness.kept(call, HERE)[1] for _ in range(3))
    right = correctness.compare(first, second, ours, sides)
    assert correctness.follows(right, sides, HERE).right
    assert seen[-1] == [[[6, 1, 2]], [[False, True, True]], [[1] * 3] * 2, 5, -0.5]
    assert all(torch.equal(one, same) for one, same in zip(inputs, before, strict=True))


@pytest.mark.torch
def test_without_a_gpu_its_memory_is_not_said_and_its_energy_is_missed_by_name() -> None:
    sides = Sides(eager=list, compiled=list, reference=None, tolerance=1e-4)
    assert passes.peak_memory("eager", sides, HERE) is None
    with pytest.raises(RuntimeError, match="energy counter does not answer"):
        passes.energy(sides, HERE)


@pytest.mark.parametrize(
    ("spans", "length"),
    [
        ([], 0.0),
        ([(1.0, 3.0)], 2.0),
        ([(5.0, 6.0), (1.0, 3.0)], 3.0),
        ([(1.0, 4.0), (2.0, 3.0)], 3.0),
        ([(1.0, 3.0), (2.0, 5.0), (5.0, 6.0)], 5.0),
    ],
)
def test_kernels_side_by_side_are_not_counted_twice(spans: list[tuple[float, float]], length: float) -> None:
    assert math.isclose(passes.union(spans), length)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("triton_poi_fused_add_0", True),
        ("void at::native::vectorized_elementwise_kernel<4>", True),
        ("Memcpy DtoD (Device -> Device)", False),
        ("Memset (Device)", False),
        ("ProfilerStep#3", False),
    ],
)
def test_copies_and_fills_are_no_kernels(name: str, kernel: bool) -> None:  # noqa: FBT001 -- a case of the table
    assert passes.is_kernel(name) is kernel


def test_energy_is_that_of_a_call_over_alternating_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    used = 0.0
    rested = 0.0
    order: list[str] = []

    def work(side: str, seconds: float, watts: float) -> Callable[[], None]:
        def call() -> None:
            nonlocal now, used
            order.append(side)
            now, used = now + seconds, used + seconds * watts

        return call

    monkeypatch.setattr(passes, "perf_counter", lambda: now)

    def rest(seconds: float) -> None:
        nonlocal rested
        work("idle", seconds, 100.0 if rested >= passes.SETTLE else 400.0)()
        rested += seconds

    monkeypatch.setattr(passes, "sleep", rest)
    monkeypatch.setattr(timing, "Gpu", lambda _: SimpleNamespace(energy=lambda: used))
    sides = Sides(eager=work("e", 0.1, 500), compiled=work("c", 0.05, 600), reference=None, tolerance=1e-4)

    seen = passes.energy(sides, HERE)

    assert seen.energy == {"idle_watts": 100.0}  # Not while it was still cooling down.
    assert seen.measurements["eager_energy"].samples == pytest.approx([50.0] * 4)
    assert seen.measurements["compiled_energy"].samples == pytest.approx([30.0] * 4)
    turns = [side for side, following in zip(order, [*order[1:], ""], strict=True) if side != following]
    assert turns == ["idle", *"ecece"]
    assert now <= 20.5


@pytest.mark.torch
def test_findings_and_measurements_may_come_from_one_call(tmp_path: Any) -> None:
    from reportkit.bench import case

    experiment = next(e for e in ARTICLE.experiments if e.id == "anchors")
    seen: dict[str, Finding | Measurement] = {
        "yes": Finding(holds=True, evidence={}),
        "time": Measurement(unit="s", samples=[1.0]),
    }
    both = replace(experiment, prepare=lambda _case, _here: lambda: seen)
    with (tmp_path / "answers").open("wb") as stream:
        answer = case.measure(both, experiment.cases[0], HERE, case.Progress("anchors.all", stream.fileno()))
    assert set(answer.findings) == {"yes"}
    assert set(answer.measurements) == {"time"}


@pytest.mark.torch
def test_a_pass_that_fails_says_so_in_the_answer_and_the_timing_stands(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reportkit.bench import case

    def timed(_sides: Sides, _case: object, _here: Here, progress: case.Progress, **_: object) -> None:
        progress.measurements["eager_wall"] = Measurement(unit="s", samples=[1.0])

    monkeypatch.setattr(case, "_time", timed)
    experiment = next(e for e in ARTICLE.experiments if e.id == "same-small")
    sides = Sides(eager=list, compiled=list, reference=None, tolerance=1e-4)
    watched = replace(experiment, prepare=lambda _case, _here: sides)
    one = replace(experiment.cases[0], passes=("energy",))
    monkeypatch.setattr(timing, "Gpu", lambda _: SimpleNamespace(energy=lambda: None))
    monkeypatch.setattr(timing, "synchronize", lambda _: None)
    with (tmp_path / "answers").open("wb") as stream:
        progress = case.Progress(one.name, stream.fileno())
        answer = case.measure(watched, one, Here(scale="smoke", device="cuda"), progress)
    assert answer.status == "complete", answer.traceback
    assert "eager_wall" in answer.measurements
    assert not answer.findings["energy-pass"].holds
    assert "energy counter" in str(answer.findings["energy-pass"].evidence["reason"])
