"""What only a GPU can show, on cases whose answers are known: `nox -s tests -- -m gpu` on a machine with one."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit.plan import Here, Sides

if TYPE_CHECKING:
    from collections.abc import Callable

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU, and there is none"),
]

HERE = Here(scale="full", device="cuda")
MEBIBYTE = 1 << 20


def chain(length: int, on: Any) -> Callable[[], object]:
    """Return a call of that many kernels, a copy, and a fill."""

    def call() -> object:
        numbers = on
        for _ in range(length):
            numbers = numbers + 1
        copy = torch.empty_like(numbers)
        copy.copy_(numbers)
        return numbers

    return call


def pair(eager: Callable[[], object], compiled: Callable[[], object]) -> Sides:
    return Sides(eager=eager, compiled=compiled, reference=None, tolerance=1e-4)


def test_launches_are_kernels_without_copies() -> None:
    from reportkit.bench import passes

    numbers = torch.ones(1 << 20, device="cuda")
    seen = passes.launches(pair(chain(7, numbers), chain(3, numbers)), HERE)
    assert seen.launches == {"eager": 7, "eager_least": 7, "compiled": 3, "compiled_least": 3}
    assert set(seen.measurements) == {"eager_busy", "compiled_busy"}


def test_kernels_of_a_replayed_graph_are_counted_one_by_one() -> None:
    from reportkit.bench import passes

    numbers = torch.ones(1 << 20, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        chain(5, numbers)()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain(5, numbers)()
    seen = passes.launches(pair(chain(5, numbers), graph.replay), HERE)
    assert seen.launches is not None
    assert seen.launches["eager"] == 5
    # Torch 2.5 launches two more at each replay, as far as seen the fills of the random generator's seed and offset.
    assert seen.launches["compiled"] in {5, 7}


def test_peak_memory_is_what_the_call_needs() -> None:
    from reportkit.bench import passes

    kept = torch.zeros(16 * MEBIBYTE, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    gc.collect()  # What the tests before this one left would be freed in the middle of it.
    base = torch.cuda.memory_allocated()

    def needs(mebibytes: int) -> Callable[[], object]:
        return lambda: torch.zeros(mebibytes * MEBIBYTE // 4, device="cuda").sum() + kept[0]

    sides = pair(needs(256), needs(64))
    eager, compiled = (passes.peak_memory(side, sides, HERE) for side in ("eager", "compiled"))
    assert eager is not None
    assert compiled is not None
    # The allocator rounds up to 2 MiB, and a sum has a workspace.
    assert 0 <= eager["eager_allocated"] - base - 256 * MEBIBYTE < 4 * MEBIBYTE
    assert 0 <= compiled["compiled_allocated"] - base - 64 * MEBIBYTE < 4 * MEBIBYTE
    assert eager["eager_reserved"] >= eager["eager_allocated"]


def test_energy_is_counted_and_the_idle_gpu_too() -> None:
    from reportkit.bench import passes

    numbers = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    seen = passes.energy(pair(lambda: numbers @ numbers, lambda: numbers @ numbers), HERE)
    assert seen.energy is not None
    assert seen.energy["idle_watts"] > 0
    assert all(min(one.samples) > 0 for one in seen.measurements.values())


@pytest.mark.parametrize("trap", ["tf32-one-side", "side-stream", "no-synchronisation", "cold-clocks"])
def test_a_trap_of_a_gpu_is_refused_or_seen_through(trap: str, tmp_path: Any) -> None:
    from reportkit.bench import case

    experiment = next(e for e in ARTICLE.experiments if e.id == "traps")
    one = next(c for c in experiment.cases if c.axes["trap"] == trap)
    with (tmp_path / "answers").open("wb") as stream:
        answer = case.measure(experiment, one, HERE, case.Progress(one.name, stream.fileno()))
    assert answer.status == "complete", answer.traceback
    assert answer.findings["refused"].holds is (trap == "tf32-one-side"), answer.findings
    if trap == "side-stream":
        assert "eager_gpu" not in answer.measurements
        assert "another stream" in (answer.telemetry.missing or "")
    if trap in {"no-synchronisation", "cold-clocks"}:
        assert "eager_gpu" in answer.measurements


def test_passes_end_up_in_the_answer(tmp_path: Any) -> None:
    from reportkit.bench import case

    experiment = next(e for e in ARTICLE.experiments if e.id == "same-small")
    one = replace(experiment.cases[1], passes=("launches", "energy"))
    with (tmp_path / "answers").open("wb") as stream:
        answer = case.measure(experiment, one, HERE, case.Progress(one.name, stream.fileno()))
    assert answer.status == "complete", answer.traceback
    assert answer.launches == {"eager": 1, "eager_least": 1, "compiled": 1, "compiled_least": 1}
    assert answer.energy is not None


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("cuda-graphs.gelu", "graph-replayed"),
        ("triton-kernels.gelu", "kernels-ran"),
        ("autotune.attention", "several-candidates-timed"),
        ("autotune.normalization", "several-candidates-timed"),
        ("autotune.matmul", "fastest-is-used"),
    ],
)
def test_a_fact_about_gpus_passes_its_control(name: str, finding: str, tmp_path: Any) -> None:
    from reportkit.bench import case

    experiment = ARTICLE.experiment(name.split(".", maxsplit=1)[0])
    one = next(c for c in experiment.cases if c.name == name)
    with (tmp_path / "answers").open("wb") as stream:
        answer = case.measure(experiment, one, HERE, case.Progress(one.name, stream.fileno()))
    assert answer.status == "complete", answer.traceback
    if experiment.id != "autotune":  # What is timed in default mode is the version's business.
        assert answer.findings[finding].holds, answer.findings
    assert answer.findings[finding].evidence
