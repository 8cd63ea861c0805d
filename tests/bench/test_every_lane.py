"""What the pinned model libraries must do on every lane, so that lanes differ by torch alone."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from reportkit.plan import Here

pytestmark = [pytest.mark.torch, pytest.mark.every_lane]

HERE = Here(scale="smoke", device="cpu")


def test_bert_is_one_graph_without_a_break() -> None:
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = workloads.bert_base(HERE)
    counters.reset()
    with torch.no_grad():
        torch.compile(model, backend="eager")(*inputs)

    counts = counters.read()
    assert (counts["unique_graphs"], counts["graph_breaks"]) == (1, 0)


def test_gpt2_generation_is_three_graphs_without_a_break() -> None:
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, (tokens,) = workloads.gpt2_tiny(HERE)
    counters.reset()
    model.forward = torch.compile(model.forward, backend="eager")
    mask = torch.ones_like(tokens)
    generated = model.generate(
        tokens, attention_mask=mask, min_new_tokens=8, max_new_tokens=8, do_sample=False, pad_token_id=0
    )

    counts = counters.read()
    assert generated.shape[1] == tokens.shape[1] + 8
    assert (counts["unique_graphs"], counts["graph_breaks"]) == (3, 0)


def test_every_counter_is_a_number_or_says_that_it_does_not_exist() -> None:
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = workloads.gelu_chain(HERE)
    counters.reset()
    assert counters.unique_graphs() == 0
    torch.compile(model, backend="eager")(*inputs)

    counts = counters.read()
    assert counts["unique_graphs"] == counters.unique_graphs() == 1
    absent = {name for name, count in counts.items() if count is None}
    has_cache = hasattr(__import__("torch._functorch.config")._functorch.config, "enable_autograd_cache")
    assert absent == (set() if has_cache else {"autograd_cache_hit", "autograd_cache_miss"})


def test_switches_are_read_back_as_they_were_set() -> None:
    import torch

    from reportkit.bench import case, counters

    before = torch.get_float32_matmul_precision()
    try:
        case.apply_setting("float32_matmul_precision", "high")
        assert counters.switches()["float32_matmul_precision"] == "high"
        assert counters.switches()["cuda.matmul.allow_tf32"] is True
    finally:
        torch.set_float32_matmul_precision(before)
    with pytest.raises(AttributeError, match=r"has no setting torch\._dynamo\.config\.no_such_switch"):
        case.apply_setting("torch._dynamo.config.no_such_switch", 1)


def test_a_breaks_reason_is_dynamos_and_an_if_over_data_is_one() -> None:
    import torch

    from reportkit.bench import counters

    def printing(numbers: torch.Tensor) -> torch.Tensor:
        numbers = numbers * 2
        print(end="")  # noqa: T201 -- it breaks the graph
        return numbers + 1

    def branching(numbers: torch.Tensor) -> torch.Tensor:
        return numbers + 1 if numbers.sum() > 0 else numbers - 1

    for function, words in ((printing, "print"), (branching, "jump")):
        counters.reset()
        torch.compile(function, backend="eager")(torch.ones(3))
        (reason,) = counters.break_reasons()
        assert words in reason
        assert (counters.read()["graph_breaks"], counters.read()["recompiles"]) == (1, 0)
    counters.reset()
    assert counters.break_reasons() == {}


def test_recompiles_are_counted_and_what_is_apart_is_not() -> None:
    import torch

    from reportkit.bench import counters

    def shift(numbers: torch.Tensor) -> torch.Tensor:
        return numbers + 1

    def broken(numbers: torch.Tensor) -> torch.Tensor:
        numbers = numbers * 2
        torch._dynamo.graph_break()
        return numbers + 1

    counters.reset()
    compiled = torch.compile(shift, backend="eager", dynamic=False)
    for length in (2, 3, 4, 3):
        compiled(torch.ones(length))
    counted = counters.read()
    assert (counted["unique_graphs"], counted["recompiles"]) == (3, 2)
    with counters.apart():
        for length in (5, 6):
            compiled(torch.ones(length))
            torch.compile(broken, backend="eager", dynamic=False)(torch.ones(length))
        assert counters.unique_graphs() == 9
        assert counters.recompiles() == 6
    assert counters.read() == counted
    assert counters.break_reasons() == {}
    compiled(torch.ones(7))
    assert (counters.unique_graphs(), counters.recompiles()) == (4, 3)
    counters.reset()
    assert counters.recompiles() == 0


def test_pytorchs_own_timers_say_less_than_the_first_call_took(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    import torch

    from experiments import ARTICLE, workloads
    from reportkit.bench import case
    from reportkit.plan import Case, Sides

    one = Case(experiment="timed", axes={"kind": "a"}, workload="none", cost={"full": 1, "smoke": 1}, steady=False)
    model, inputs = workloads.gelu_chain(HERE)
    compiled = workloads.quiet(torch.compile(model), inputs)
    sides = Sides(eager=workloads.quiet(model, inputs), compiled=compiled, reference=None, tolerance=1e-4)
    experiment = next(e for e in ARTICLE.experiments if e.kind == "timing")
    timed = replace(experiment, id="timed", cases=(one,), prepare=lambda _case, _here: sides)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    with (tmp_path / "answers").open("wb") as stream:
        answer = case.measure(timed, one, HERE, case.Progress(one.name, stream.fileno()))

    assert answer.status == "complete", answer.traceback
    names = ("backend_compile", "entire_frame_compile", "first_call")
    backend, frame, first = (answer.measurements[name].samples[0] for name in names)
    assert 0 < backend <= frame <= first
    assert frame > first / 2
    assert "compile-timers" not in answer.findings


@pytest.mark.parametrize("tells", [True, False])
def test_nvml_is_asked_about_the_gpu_that_torch_uses(tells: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 -- a case of the table
    """Of four GPUs, CUDA_VISIBLE_DEVICES leaves the third, which torch calls 0."""
    import hashlib

    import torch

    from reportkit.bench import environment, timing

    class NVMLError(Exception):
        pass

    uuids = [f"GPU-{number}" for number in range(4)]
    nvml = SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: uuids[index],
        nvmlDeviceGetHandleByUUID=lambda unique: uuids[uuids.index(unique)],
        nvmlDeviceGetUUID=lambda handle: handle,
        nvmlSystemGetDriverVersion=lambda: "1.2",
        nvmlDeviceGetClockInfo=lambda handle, _clock: 100 + uuids.index(handle),
    )
    told = {"uuid": "2"} if tells else {}
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: SimpleNamespace(**told))
    monkeypatch.setattr(torch.cuda, "_raw_device_count_nvml", lambda: 4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")

    assert timing.Gpu(Here(scale="full", device="cuda")).clock() == 102e6
    assert environment._nvml_identity() == (hashlib.sha256(b"GPU-2").hexdigest()[:16], "1.2")


def test_where_nvml_does_not_answer_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from reportkit.bench import environment, timing

    class NVMLError(Exception):
        pass

    def refuse() -> None:
        raise NVMLError("no driver")

    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=NVMLError, nvmlInit=refuse))
    gpu = timing.Gpu(Here(scale="full", device="cuda"))
    assert gpu.missing == "NVML did not answer: no driver"
    assert gpu.energy() is None
    assert environment._nvml_identity() == (None, None)
