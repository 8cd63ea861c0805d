"""Section 4's and 7's models on every lane: what they are, what of them is compiled, and what must not be."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest

from experiments import benchmarks, outlook
from reportkit.plan import Here, Sides, Unavailable
from reportkit.records import Measurement

if TYPE_CHECKING:
    from reportkit.plan import Case, Experiment

pytestmark = [pytest.mark.torch, pytest.mark.every_lane]

HERE = Here(scale="smoke", device="cpu")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Dynamo run what it captures as it is; what is captured does not hang on who compiles it."""
    import torch

    from reportkit.bench import counters

    counters.reset()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))


def case_of(experiment: Experiment, **axes: str) -> Case:
    return next(case for case in experiment.cases if case.matches(axes))


def sides_of(experiment: Experiment, **axes: str) -> Sides:
    sides = experiment.prepare(case_of(experiment, **axes), HERE)
    assert isinstance(sides, Sides)
    return sides


def agreed(sides: Sides) -> Any:
    """Hold the sides against each other as a case does; return the eager result, which is no trifle."""
    from reportkit.bench import correctness

    first, second = (correctness.tensors(sides.eager()) for _ in range(2))
    verdict = correctness.compare(first, second, correctness.tensors(sides.compiled()), sides)
    assert verdict.right, verdict.detail
    assert verdict.eager_error is not None
    assert all(float(one.double().abs().mean()) > 100 * sides.tolerance for one in first)
    return first


@pytest.mark.parametrize(
    ("workload", "shape"),
    [("resnet50", (2, 1000)), ("vit", (2, 1000)), ("mobilenet", (2, 1000)), ("unet", (1, 4, 8, 8))],
)
def test_a_model_of_the_table_is_captured_whole_and_its_result_can_be_wrong(
    workload: str, shape: tuple[int, ...]
) -> None:
    from reportkit.bench import counters

    (result,) = agreed(sides_of(benchmarks.TABLE, workload=workload))

    counts = counters.read()
    assert tuple(result.shape) == shape
    assert (counts["unique_graphs"], counts["graph_breaks"]) == (1, 0)


def test_half_precision_is_for_a_gpu_and_leaves_tokens_alone() -> None:
    import torch

    from experiments import workloads

    model, (tokens, mask) = workloads.bert_base(HERE)
    assert next(workloads.half(model, (tokens, mask), HERE)[0].parameters()).dtype is torch.float32

    there, inputs = workloads.half(model, (tokens, torch.ones(2)), Here(scale="smoke", device="cuda"))
    assert next(there.parameters()).dtype is torch.float16
    assert [one.dtype for one in inputs] == [torch.int64, torch.float16]


def test_generation_compiles_on_one_side_and_is_compared_along_the_same_way() -> None:
    import torch

    from reportkit.bench import counters

    sides = sides_of(benchmarks.GENERATE, workload="gpt2")
    eager = sides.eager()
    assert counters.unique_graphs() == 0

    compiled = sides.compiled()
    counts = counters.read()
    assert (counts["unique_graphs"], counts["graph_breaks"]) == (3, 0)
    assert tuple(eager.shape) == tuple(compiled.shape) == (1, 16 + 32)
    assert torch.equal(eager, compiled)

    assert sides.check is not None
    (logits,) = agreed(sides.check)
    assert tuple(logits.shape) == (32, 512)
    sides.eager()
    assert counters.unique_graphs() == 3


def test_a_static_cache_is_compiled_on_the_other_side_alone() -> None:
    from reportkit.bench import counters

    sides = sides_of(benchmarks.GENERATE, workload="llama-static")
    assert sides.eager().shape == sides.compiled().shape == (1, 16 + 32)
    assert sides.check is not None
    agreed(sides.check)

    counts = counters.read()
    assert counts["unique_graphs"]
    assert counts["graph_breaks"] == 0


def test_cuda_graphs_need_a_gpu() -> None:
    with pytest.raises(Unavailable, match="needs a GPU"):
        sides_of(benchmarks.GENERATE, workload="llama-graphs")


def test_an_eager_side_that_compiles_fails_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from experiments import workloads

    model, inputs = workloads.gpt2_xl(HERE)
    model.forward = torch.compile(model.forward)
    monkeypatch.setattr(workloads, "gpt2_xl", lambda _here: (model, inputs))

    with pytest.raises(RuntimeError, match=r"3 graphs were compiled on the eager side"):
        sides_of(benchmarks.GENERATE, workload="gpt2").eager()


def test_a_token_too_few_fails_the_case() -> None:
    import torch

    from experiments import workloads

    class Short:
        def generate(self, prompt: torch.Tensor, **_options: Any) -> torch.Tensor:
            return torch.cat([prompt, prompt], 1)

    prompt = torch.zeros(1, 16, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=r"32 new tokens were asked for, .* \(1, 32\)"):
        workloads.generation(Short(), prompt)()


def test_the_stream_has_sixteen_sizes_and_compiles_for_none_that_it_has_seen() -> None:
    from reportkit.bench import counters

    sides = sides_of(benchmarks.STREAMS, workload="cnn-stream")
    assert len({image.shape for image in sides.inputs}) == len(sides.inputs) == 16
    assert len(agreed(sides)) == 16
    graphs = counters.unique_graphs()
    assert 1 <= graphs < 16

    for _ in range(2):
        sides.compiled()
    assert counters.unique_graphs() == graphs


def test_the_one_size_has_the_stream_s_area(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments import workloads

    sizes: list[list[int]] = []
    monkeypatch.setattr(workloads, "_cnn", lambda _here, sides: sizes.append(sides))
    for workload in (workloads.cnn_stream, workloads.cnn_fixed):
        workload(Here(scale="full", device="cpu"))

    stream, fixed = sizes
    assert (min(stream), max(stream)) == (96, 256)
    assert stream != sorted(stream)
    assert len(stream) == len(fixed) == 16
    assert len(set(fixed)) == 1
    assert sum(side**2 for side in fixed) == pytest.approx(sum(side**2 for side in stream), rel=0.01)


def test_the_lengths_are_mixed_alike_wherever_tensors_are_made() -> None:
    import torch

    from experiments import workloads

    mixed = workloads._shuffled([128, 205, 282])
    with torch.device("meta"):  # Any other than the CPU's own; on a GPU it once failed here.
        assert workloads._shuffled([128, 205, 282]) == mixed


@pytest.mark.parametrize("shapes", ["dynamic", "each"])
def test_six_lengths_are_served_by_a_graph_each_or_by_fewer(shapes: str) -> None:
    from reportkit.bench import counters

    sides = sides_of(outlook.LENGTHS, shapes=shapes)
    agreed(sides)
    graphs = counters.unique_graphs()
    assert graphs == 6 if shapes == "each" else 1 <= graphs < 6
    sides.compiled()
    assert counters.unique_graphs() == graphs


def test_a_token_s_weights_are_all_but_the_positions() -> None:
    from experiments import workloads

    case = case_of(benchmarks.TOKEN)
    observe = benchmarks.TOKEN.prepare(case, HERE)
    assert callable(observe)
    seen = {name: one for name, one in observe().items() if isinstance(one, Measurement)}

    model, _ = workloads.gpt2_xl(HERE)
    positions = 4 * 1024 * 64
    assert seen["weights"].samples == [sum(one.nbytes for one in model.parameters()) - positions]
    assert {name: one.unit for name, one in seen.items()} == {"weights": "B", "token": "s", "copied": "B", "copy": "s"}
    assert seen["copied"].samples == [2 * (16 << 20)]
    assert all(one > 0 for one in seen["token"].samples)
