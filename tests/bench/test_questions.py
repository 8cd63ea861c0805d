"""Section 5 by real torch: each fact can be found either way, and what can't be observed says why."""

from __future__ import annotations

import os
import socket
import sysconfig
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from experiments import questions
from reportkit.plan import Here, Sides

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reportkit.bench.messages import Answer
    from reportkit.plan import Case, Experiment

HERE = Here(scale="smoke", device="cpu")

pytestmark = [pytest.mark.torch, pytest.mark.every_lane]


def planned(name: str) -> tuple[Experiment, Case]:
    return next((e, case) for e in questions.EXPERIMENTS for case in e.cases if case.name == name)


@pytest.fixture
def measured(tmp_path: Path) -> Callable[[str], Answer]:
    """Return what measures one of the section's cases in this process."""
    from reportkit.bench import case

    def measure(name: str) -> Answer:
        with (tmp_path / "answers").open("wb") as stream:
            return case.measure(*planned(name), HERE, case.Progress(name, stream.fileno()))

    return measure


def holds(answer: Answer, finding: str) -> bool:
    assert answer.status == "complete", answer.traceback
    return answer.findings[finding].holds


@pytest.mark.slow
def test_an_extension_breaks_the_graph_until_it_is_registered(
    measured: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    unregistered, registered = measured("extension.unregistered"), measured("extension.registered")
    assert holds(unregistered, "breaks")
    assert "own_gelu" in str(unregistered.findings["breaks"].evidence["reason"])
    assert holds(registered, "mended")

    # The other way round: whatever the case is called, the operator decides.
    bound, operator = questions._extension(), torch.ops.reportkit_extension
    monkeypatch.setattr(questions, "_extension", lambda: operator)
    assert not holds(measured("extension.unregistered"), "breaks")
    monkeypatch.setattr(torch.ops, "reportkit_extension", bound)
    assert not holds(measured("extension.registered"), "mended")

    # A break that Dynamo does not count would make "none" mean nothing.
    monkeypatch.setattr(torch._dynamo, "graph_break", lambda: None)
    answer = measured("extension.registered")
    assert answer.status == "failed"
    assert "the controls did not do as they must" in (answer.reason or "")


@pytest.mark.parametrize("missing", ["CC", "CXX", "Python.h"])
def test_without_what_it_is_built_with_an_extension_says_what_is_missing(
    missing: str, measured: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # As in a process that has built nothing yet.
    monkeypatch.setattr(questions, "_extension", questions._extension.__wrapped__)
    if missing == "Python.h":
        monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(tmp_path))
    else:
        monkeypatch.setenv(missing, "no-such-compiler -O2" if missing == "CC" else "no-such-compiler")
    answer = measured("extension.registered")
    assert answer.status == "unavailable"
    assert (missing if missing == "Python.h" else "the compiler no-such-compiler") in (answer.reason or "")


@pytest.mark.slow
@pytest.mark.parametrize(("dynamic", "graphs"), [("true", 1), ("false", 8), ("default", 2)])
def test_graphs_for_eight_batch_sizes(dynamic: str, graphs: int, measured: Callable[[str], Answer]) -> None:
    answer = measured(f"batch-sizes.{dynamic}")
    assert answer.status == "complete", answer.reason
    assert answer.measurements["graphs"].samples == [graphs]


def test_no_graph_at_all_is_no_count(measured: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    answer = measured("batch-sizes.true")
    assert answer.status == "failed"
    assert "call 1 of 8 ran without a graph" in (answer.reason or "")
    assert not answer.measurements


def test_a_count_of_what_is_not_eagers_result_is_no_count(
    measured: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    from experiments import workloads

    monkeypatch.setattr(workloads, "alike", lambda *_: False)
    answer = measured("batch-sizes.true")
    assert answer.status == "failed"
    assert "did not return what eager does" in (answer.reason or "")
    assert not answer.measurements


def test_the_limit_has_its_old_name_in_every_lane() -> None:
    from reportkit.bench import case, counters

    limits = [one for experiment in questions.EXPERIMENTS for one in experiment.cases if one.experiment == "limit"]
    assert {one.settings["torch._dynamo.config.cache_size_limit"] for one in limits} == {1}
    former = case.apply_setting("torch._dynamo.config.cache_size_limit", 1)
    try:
        assert counters.switches()["dynamo.recompile_limit"] == 1
    finally:
        case.apply_setting("torch._dynamo.config.cache_size_limit", former)
    assert counters.switches()["dynamo.recompile_limit"] == former == 8


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection."""

    def refuse(*_: object) -> None:
        message = "a connection to another host"
        raise AssertionError(message)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_the_trainer_trains_through_a_graph_and_leaves_nothing(measured: Callable[[str], Answer]) -> None:
    before = dict(os.environ)
    answer = measured("trainer.gpt2-tiny")
    assert holds(answer, "trains")
    evidence = answer.findings["trains"].evidence
    assert (evidence["steps"], evidence["graphs without the flag (control)"]) == (10, 0)
    assert dict(os.environ) == before


@pytest.mark.slow
def test_a_trainer_that_takes_the_flag_and_compiles_nothing_is_found_out(
    measured: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = questions._train
    monkeypatch.setattr(questions, "_train", lambda model, rows, here, **_: train(model, rows, here))
    answer = measured("trainer.gpt2-tiny")
    assert not holds(answer, "trains")
    assert answer.findings["trains"].evidence["graphs"] == 0


@pytest.mark.parametrize("losses", [[2.0, 1.0], [*[2.0] * 9, float("nan")], [1.0] * 10])
def test_a_control_that_does_not_train_is_no_finding(
    losses: list[float], measured: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "_train", lambda *_, **__: losses)
    answer = measured("trainer.gpt2-tiny")
    assert answer.status == "failed"
    assert "without the flag (control)" in (answer.reason or "")


def test_the_old_amp_interface_is_deprecated_and_would_be_seen_not_to_be(
    measured: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    answer = measured("amp-api.gelu")
    assert not holds(answer, "undeprecated")
    evidence = answer.findings["undeprecated"].evidence
    assert evidence["deprecation warnings of torch.cuda.amp"] == 2
    assert evidence["the same of torch.amp (control)"] == 0
    assert "torch.amp" in str(evidence["warning 1"])

    def other_warning() -> None:
        warnings.warn("no GPU here", UserWarning, stacklevel=1)

    monkeypatch.setattr(torch.cuda.amp, "autocast", lambda: torch.amp.autocast("cuda"))
    monkeypatch.setattr(torch.cuda.amp, "GradScaler", other_warning)
    assert holds(measured("amp-api.gelu"), "undeprecated")


@pytest.mark.parametrize("case", ["reduce-overhead-resnet50-h-cold-1", "max-autotune-no-cudagraphs-resnet50-h-warm-2"])
def test_a_mode_of_cuda_graphs_needs_a_gpu(case: str, measured: Callable[[str], Answer]) -> None:
    answer = measured(f"modes.{case}")
    assert answer.status == "unavailable"
    assert "needs a GPU" in (answer.reason or "")


def sides(name: str) -> Sides:
    """Return the sides of a case, with the smallest model there is in place of its own."""
    experiment, case = planned(name)
    prepared = experiment.prepare(replace(case, workload="gelu_chain"), HERE)
    assert isinstance(prepared, Sides)
    return prepared


@pytest.mark.slow
@pytest.mark.parametrize(("process", "graphs"), [("cold-1", 0), ("beside-default", 1)])
def test_a_mode_is_held_against_eager_or_the_default_mode(process: str, graphs: int) -> None:
    import torch

    from reportkit.bench import counters

    pair = sides(f"modes.max-autotune-resnet50-h-{process}")
    counters.reset()
    expected = pair.eager()
    assert counters.unique_graphs() == graphs
    assert torch.allclose(pair.compiled(), expected, atol=1e-4)
    assert counters.unique_graphs() == graphs + 1
    pair.eager()
    pair.compiled()
    assert counters.unique_graphs() == graphs + 1


@pytest.mark.slow
def test_both_sides_run_under_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from reportkit.bench import counters

    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: compile_(model, backend="aot_eager"))
    pair = sides("amp.resnet50-a")
    counters.reset()
    eager, compiled = pair.eager(), pair.compiled()
    assert eager.dtype == compiled.dtype == torch.bfloat16
    assert torch.allclose(eager, compiled, atol=1e-2)
    assert counters.unique_graphs() == 1
    assert pair.reference is not None
    assert pair.reference().dtype == torch.float64
