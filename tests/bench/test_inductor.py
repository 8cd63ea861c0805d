"""What inductor says that it did, in every lane: its code, its record of what it timed, and what then ran."""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any
from unittest.mock import MagicMock

import pytest

from reportkit.bench import inductor
from reportkit.plan import Here

pytestmark = [pytest.mark.torch, pytest.mark.every_lane]

HERE = Here(scale="smoke", device="cpu")


@pytest.mark.parametrize(("backend", "generates"), [("inductor", True), ("aot_eager", False)])
def test_generated_kernels_are_named_and_seen_to_run(backend: str, generates: bool) -> None:  # noqa: FBT001
    import torch

    from experiments import workloads

    call = workloads.quiet(torch.compile(workloads.gelu_chain(HERE)[0], backend=backend), workloads.gelu_chain(HERE)[1])
    for _ in range(2):  # A cache that is warm from the first time hides nothing the second.
        seen = inductor.observe(call)
        kernels = seen.kernels("cpp")
        assert bool(kernels) is generates
        assert (inductor.runs_of(kernels, inductor.ran(call, HERE)) > 0) is generates
        assert bool(kernels and seen.lines(kernels[0])) is generates
    assert not seen.kernels("triton")
    assert not seen.missing


@pytest.mark.slow
def test_algorithms_that_were_timed_are_on_record() -> None:
    import torch
    from torch._inductor import config

    model = torch.nn.Linear(256, 256).eval()
    rows = torch.randn(64, 256)
    compiled = torch.compile(model, mode="max-autotune-no-cudagraphs")
    # With more threads 2.4 and 2.5 write a template that no C++ compiler takes.
    with config.patch({"freezing": True, "cpp.threads": 1}), torch.no_grad():
        seen = inductor.observe(lambda: compiled(rows))

    (contest,) = seen.contests
    library = {name for name in contest.seconds if name == "_mkl_linear"}
    assert len(library) == 1
    assert len(contest.seconds) > 1
    assert all(0 < seconds < 1 for seconds in contest.seconds.values())
    assert contest.used == library & {contest.fastest}
    assert (contest.kind, contest.triton, seen.timed()) == ("algorithms", set(), 0)


def tune(milliseconds: dict[str, float]) -> None:
    """Let this version of inductor tune a kernel of so many configurations, each as fast as is given."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    tuner = MagicMock(save_cache_hook=None, inductor_meta={}, compile_id=None, is_backward=False)
    tuner.fn.__name__ = "triton_per_fused_0"
    tuner.precompile_time_taken_ns = 0
    tuner.launchers = [MagicMock(config=name, cache_hash="", n_spills=0) for name in milliseconds]
    for method in ("bench", "benchmark_all_configs"):
        setattr(tuner, method, functools.partial(getattr(CachingAutotuner, method), tuner))
    CachingAutotuner.autotune_to_one_config(tuner)


@pytest.mark.parametrize(
    ("milliseconds", "timed", "used"),
    [
        ({"XBLOCK: 1": 3.0, "XBLOCK: 8": 2.0, "XBLOCK: 32": 4.0}, 3, "XBLOCK: 8"),
        ({"XBLOCK: 1": 3.0, "XBLOCK: 8": math.inf}, 1, "XBLOCK: 1"),
    ],
)
def test_configurations_that_were_timed_are_on_record(
    milliseconds: dict[str, float], timed: int, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    def bench(_self: object, launcher: Any, *_arguments: object, **_named: object) -> float:
        return milliseconds[launcher.config]

    monkeypatch.setattr(CachingAutotuner, "bench", bench)
    seen = inductor.observe(lambda: tune(milliseconds))
    (contest,) = seen.contests
    assert (contest.work, contest.kind, seen.timed()) == ("triton_per_fused_0", "configurations", timed)
    assert contest.seconds == {name: ms / 1e3 for name, ms in milliseconds.items() if math.isfinite(ms)}
    assert contest.used == {contest.fastest} == {used}
    assert CachingAutotuner.bench is bench, "what was watched is let alone again"


@pytest.mark.parametrize("place", [inductor.ALGORITHMS, inductor.CONFIGURATIONS], ids=lambda place: place[1])
def test_a_record_that_a_version_lacks_is_named_and_not_taken_for_an_empty_one(
    place: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    module, owner, method = place
    monkeypatch.delattr(getattr(importlib.import_module(module), owner), method)
    assert inductor.observe(lambda: None).missing == (".".join(place),)
    assert inductor.observe(lambda: None).contests == ()


TEMPLATE = """
triton_tem_fused_mm_0 = async_compile.triton('triton_tem_fused_mm_0', '''
@triton_heuristics.template(
    num_stages=3,
    num_warps=4,
    triton_meta={'signature': {0: '*fp16'}},
)
@triton.jit
def triton_tem_fused_mm_0(arg_A, arg_B, out_ptr0):
    GROUP_M : tl.constexpr = 8
    ACC_TYPE : tl.constexpr = tl.float32
    BLOCK_M : tl.constexpr = 64
    BLOCK_N : tl.constexpr = 128
    INDEX_DTYPE : tl.constexpr = tl.int32
''')
"""
"""The parts of a matrix product's generated code that are looked at, as 2.15 writes them."""

LIBRARY = "    extern_kernels.mm(arg1_1, reinterpret_tensor(arg0_1, (8, 8), (1, 8), 0), out=buf0)\n"


class Library:
    """A library's candidate, as far as it is looked at; like torch's own it is told apart by what it is, not holds."""

    def __init__(self, name: str, **texts: str) -> None:
        self.name = name
        vars(self).update(texts)


class TritonTemplateCaller(Library):
    """A template's candidate."""


def template(name: str, block: int) -> TritonTemplateCaller:
    text = f"ACC_TYPE='tl.float32', BLOCK_M=64, BLOCK_N={block}, GROUP_M=8, num_stages=3, num_warps=4"
    return TritonTemplateCaller(name, description=text)


def debug_template(name: str, block: int) -> TritonTemplateCaller:
    """Return the same, as 2.4 and 2.5 have it."""
    return TritonTemplateCaller(name, debug_extra=vars(template(name, block))["description"])


MM = Library("mm")


@pytest.mark.parametrize(
    ("source", "used"),
    [
        (TEMPLATE, {"triton_mm_2"}),
        (LIBRARY, {"mm"}),
        (LIBRARY.replace("extern_kernels.mm", "torch.ops.aten.mm.default"), {"mm"}),
        (LIBRARY.replace("mm", "bmm"), set()),
        (TEMPLATE.replace("BLOCK_N : tl.constexpr = 128", "BLOCK_N : tl.constexpr = 32"), set()),
        (TEMPLATE.replace("num_warps=4", "num_warps=8"), set()),
        ("", set()),
    ],
)
@pytest.mark.parametrize("make", [template, debug_template])
def test_what_the_generated_code_uses_is_found_in_it(source: str, used: set[str], make: Any) -> None:
    times = {
        MM: 0.02,
        make("triton_mm_1", 64): 0.03,
        make("triton_mm_2", 128): 0.01,
        make("triton_mm_3", 256): math.inf,
    }
    contest = inductor._contest("mm", times, [source])
    assert {name.split(" ")[0] for name in contest.used} == used
    assert [name.split(" ")[0] for name in contest.seconds] == ["mm", "triton_mm_1", "triton_mm_2"]
    assert contest.fastest.startswith("triton_mm_2 (ACC_TYPE=tl.float32, BLOCK_M=64")
    assert len(contest.triton) == 2


@pytest.mark.parametrize(
    ("name", "runs"),
    [("cpp_fused_0", 3), ("graph_12_cpp_fused_0", 3), ("cpp_fused_01", 0), ("aten::addmm", 0)],
)
def test_runs_are_those_of_the_kernels_named(name: str, runs: int) -> None:
    assert inductor.runs_of(["cpp_fused_0"], Counter({name: 3})) == runs


def test_pointwise_kernels_can_be_left_out() -> None:
    contests = (
        inductor.Contest("triton_poi_fused_0", "configurations", triton={"a", "b", "c"}),
        inductor.Contest("triton_per_fused_1", "configurations", triton={"a", "b"}),
    )
    seen = inductor.Seen(sources=(), contests=contests, missing=())
    assert (seen.timed(), seen.timed(pointwise=False)) == (3, 2)
    assert inductor.Seen(sources=(), contests=(), missing=()).timed() == 0
