"""Facts of sections 2 and 3 by real torch on a CPU: what holds, what does not, and what claims nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE, ecosystem, inductor
from reportkit.bench.inductor import Contest, Seen
from reportkit.plan import Here

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.bench.messages import Answer

pytestmark = pytest.mark.torch

HERE = Here(scale="smoke", device="cpu")


def measured(name: str, tmp_path: Any) -> Answer:
    """Return the answer for one of the article's own cases, measured in this process."""
    from reportkit.bench import case
    from reportkit.bench.messages import send

    experiment = ARTICLE.experiment(name.split(".", maxsplit=1)[0])
    one = next(c for c in experiment.cases if c.name == name)
    with (tmp_path / "answers").open("wb") as stream:
        answer = case.measure(experiment, one, HERE, case.Progress(name, stream.fileno()))
        send(stream.fileno(), answer)  # As a child does: evidence that is no plain value can't be.
    return answer


@pytest.mark.parametrize(
    ("name", "finding", "holds", "control"),
    [
        ("torchscript-control-flow.control-flow", "scripting-fails", False, "tracing a data-dependent if"),
        ("torchscript-control-flow.control-flow", "warns-of-its-end", False, "warnings of its end"),
        *((f"capture.{model}", "captured-whole", True, "control") for model in ecosystem.MODELS),
        ("cpp-kernels.gelu", "kernels-ran", True, "control"),
        ("dynamic-lengths.bert", "one-graph", True, "control"),
    ],
)
def test_a_fact_of_lane_2_5_with_its_evidence(
    name: str,
    finding: str,
    holds: bool,  # noqa: FBT001
    control: str,
    tmp_path: Any,
) -> None:
    answer = measured(name, tmp_path)
    assert answer.status == "complete", answer.traceback
    assert answer.findings[finding].holds is holds, answer.findings
    assert any(control in name for name in answer.findings[finding].evidence)


@pytest.mark.parametrize(
    ("name", "graphs"),
    [
        ("lengths-range.default-1024", 2),
        ("lengths-range.default-512", 3),
        ("lengths-range.false-1024", len(inductor.LENGTHS)),
    ],
)
def test_graphs_for_a_range_of_lengths(name: str, graphs: int, tmp_path: Any) -> None:
    answer = measured(name, tmp_path)
    assert answer.status == "complete", answer.traceback
    assert answer.measurements["graphs"].samples == [graphs]


@pytest.mark.parametrize(
    "name",
    ["cuda-graphs.gelu", "triton-kernels.gelu", "autotune.attention", "autotune.normalization", "autotune.matmul"],
)
def test_a_fact_about_gpus_says_that_it_needs_one(name: str, tmp_path: Any) -> None:
    answer = measured(name, tmp_path)
    assert (answer.status, answer.findings) == ("unavailable", {})
    assert (answer.reason or "").startswith("needs a GPU")


def unscriptable(here: Here) -> dict[str, Any]:
    import torch

    class Outside(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.tensor(x.numpy() * 2)

    return {"if": (Outside(), (torch.ones(2).to(here.device),))}


def breaking(_name: str, _here: Here) -> tuple[Any, tuple[Any, ...]]:
    import torch

    class Breaking(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x * 2 if x.sum().item() > 0 else x

    return Breaking(), (torch.ones(2),)


def by_length(_here: Here, _positions: int, lengths: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    import torch

    class ByLength(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x * 2 if x.shape[1] < 5 else x * 3

    return ByLength(), [(torch.ones(11, length),) for length in lengths]


def without_kernels(here: Here) -> tuple[Any, tuple[Any, ...]]:
    import torch

    return torch.nn.Linear(64, 64).to(here.device), (torch.ones(8, 64),)


@pytest.mark.parametrize(
    ("name", "workload", "instead", "expected"),
    [
        ("torchscript-control-flow.control-flow", "control_flow", unscriptable, ("scripting-fails", True)),
        ("capture.bert", "capture_model", breaking, ("captured-whole", False)),
        ("cpp-kernels.gelu", "gelu_chain", without_kernels, ("kernels-ran", False)),
        ("dynamic-lengths.bert", "bert_positions", by_length, ("one-graph", False)),
    ],
)
def test_a_fact_is_the_other_way_where_the_model_is(
    name: str,
    workload: str,
    instead: Any,
    expected: tuple[str, bool],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from experiments import workloads

    monkeypatch.setattr(workloads, workload, instead)
    answer = measured(name, tmp_path)
    assert answer.status == "complete", answer.traceback
    finding, holds = expected
    assert answer.findings[finding].holds is holds, answer.findings


@pytest.mark.parametrize(
    ("name", "owner", "attribute", "instead"),
    [
        ("torchscript-control-flow.control-flow", "experiments.workloads", "alike", lambda *_: True),
        ("capture.gpt2", "torch._dynamo", "graph_break", lambda *_: None),
        ("cpp-kernels.gelu", "reportkit.bench.inductor", "runs_of", lambda *_: 1),
        ("dynamic-lengths.bert", "experiments.workloads", "graphs_for", lambda *_, **__: 1),
    ],
)
def test_a_fact_whose_control_fails_claims_nothing(
    name: str, owner: str, attribute: str, instead: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    importlib.import_module("torch._dynamo")
    monkeypatch.setattr(importlib.import_module(owner), attribute, instead)
    answer = measured(name, tmp_path)
    assert (answer.status, answer.findings) == ("failed", {})
    assert "a control failed, so that nothing is claimed" in (answer.reason or "")


def test_a_count_of_graphs_is_refused_where_a_call_ran_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch._dynamo import config

    from experiments import workloads

    model, calls = by_length(HERE, 0, range(2, 7))
    with config.patch(cache_size_limit=2), pytest.raises(RuntimeError, match="call 3 of 5 ran without a graph"):
        workloads.graphs_for(model, calls, dynamic=False)
    monkeypatch.setattr(torch, "allclose", lambda *_, **__: False)
    with pytest.raises(RuntimeError, match="did not return what eager does"):
        workloads.graphs_for(model, calls)


@pytest.mark.every_lane
def test_the_old_names_of_the_limits_are_taken_by_every_lane(tmp_path: Any) -> None:
    from torch._dynamo import config

    from reportkit.bench.case import apply_setting

    names = [f"torch._dynamo.config.{name}" for name in ("cache_size_limit", "accumulated_cache_size_limit")]
    former = [apply_setting(name, 64) for name in names]
    try:
        if hasattr(config, "recompile_limit"):
            assert (config.recompile_limit, config.accumulated_recompile_limit) == (64, 64)
    finally:
        for name, value in zip(names, former, strict=True):
            apply_setting(name, value)
    assert former[0] == 8
    assert int(former[1]) >= 64, "the limit over all graphs of a function is never the one that is met first"
    answer = measured("lengths-range.false-1024", tmp_path)
    assert answer.measurements["graphs"].samples == [len(inductor.LENGTHS)], answer.traceback


def seen(*numbers: int, work: str = "mm") -> Seen:
    contests = tuple(
        Contest(
            work,
            "algorithms",
            seconds={f"triton_{n}": (n + 1) / 1e3 for n in range(number)},
            triton={f"triton_{n}" for n in range(number)},
            used={"triton_0"} if number else set(),
        )
        for number in numbers
    )
    return Seen(sources=(), contests=contests, missing=())


def scripted(answers: dict[str, Seen]) -> Callable[..., Seen]:
    """Return a stand-in for a compile and its record, by the mode that it is asked in and what is compiled."""

    def look(model: Any, _inputs: Any, mode: str | None = None) -> Seen:
        name = getattr(model, "__name__", type(model).__name__)
        return answers.get(f"{name} {mode}", answers.get(name, seen()))

    return look


def used(*names: str) -> Seen:
    contest = seen(3).contests[0]
    return Seen((), (Contest("mm", "algorithms", contest.seconds, contest.triton, set(names)),), ())


LINEAR, GELU, NORM, ATTENTION = "Linear", "GELU", "LayerNorm", "scaled_dot_product_attention"


@pytest.mark.parametrize(
    ("observe", "answers", "holds"),
    [
        (inductor.observe_attention, {LINEAR: seen(3), ATTENTION: seen(2)}, True),
        (inductor.observe_attention, {LINEAR: seen(3), ATTENTION: seen(1)}, False),
        (inductor.observe_attention, {LINEAR: seen(3), ATTENTION: seen()}, False),
        (inductor.observe_attention, {LINEAR: seen(3), ATTENTION: seen(2, work="triton_poi_fused_0")}, False),
        (inductor.observe_attention, {LINEAR: seen(3), f"{ATTENTION} max-autotune": seen(4)}, False),
        (inductor.observe_attention, {LINEAR: seen(0), ATTENTION: seen(2)}, None),
        (inductor.observe_normalization, {GELU: seen(2), NORM: seen(2)}, True),
        (inductor.observe_normalization, {GELU: seen(2), NORM: seen(1)}, False),
        (inductor.observe_normalization, {GELU: seen(2), f"{NORM} max-autotune": seen(4)}, False),
        (inductor.observe_normalization, {GELU: seen(), NORM: seen()}, None),
        (inductor.observe_matmul, {LINEAR: used("triton_0")}, True),
        (inductor.observe_matmul, {LINEAR: used("triton_1")}, False),
        (inductor.observe_matmul, {LINEAR: used()}, None),
        (inductor.observe_matmul, {LINEAR: used("triton_0", "triton_1", "triton_2")}, None),
        (inductor.observe_matmul, {LINEAR: seen(1)}, None),
        (inductor.observe_matmul, {LINEAR: seen()}, None),
    ],
)
def test_autotuning_is_judged_by_the_record_and_not_at_all_where_the_record_fails(
    observe: Callable[..., Any],
    answers: dict[str, Seen],
    holds: bool | None,  # noqa: FBT001
) -> None:
    if holds is None:
        with pytest.raises(RuntimeError, match=r"nothing is claimed|nothing to choose"):
            observe(scripted(answers), HERE)
    else:
        (finding,) = observe(scripted(answers), HERE).values()
        assert finding.holds is holds, finding.evidence
