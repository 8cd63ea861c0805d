"""What is observed of a timed case in passes of its own: launches and busy time, energy, peak memory.

None of it is done while time is taken. A profiler slows what it watches, and windows that are long
enough for the GPU's energy counter would cost the timing its pairs.
"""

from __future__ import annotations

import gc
import math
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from reportkit.bench import timing
from reportkit.records import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reportkit.plan import Here, Sides

PROFILED = 3
"""Calls of a side that are profiled, one by one; of a long one, whose events take seconds to read, a single call."""

LONG = 0.1
"""Seconds from which on a call is long."""

WINDOW = 2.0
"""Seconds of a window over which energy is counted: the counter moves some ten times a second."""

WINDOWS = "ecceecce"
"""Sides of the windows, in order: four a side, so that they have a spread."""

SETTLE = 2.0
"""Seconds without work before the GPU counts as idle: its clocks and its power take that long to fall."""

IDLE = 1.0
"""Seconds for which the idle GPU's power is averaged."""

MEMORY_CALLS = 3
"""Calls before the peak of memory is set back, and after it: CUDA graphs are recorded by the third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a pass leaves for the case file."""

    launches: dict[str, int] | None = None
    energy: dict[str, float] | None = None
    measurements: dict[str, Measurement] = field(default_factory=dict)


def launches(sides: Sides, here: Here) -> Observed:
    """Count the kernels of a call of either side, and the time in which at least one was running.

    Copies and fills by the driver are left out, and kernels inside a replayed graph counted one by one. The time
    is the union of the kernels' spans, so that kernels side by side are not counted twice.

    Raises:
        RuntimeError: no kernel was seen, as where the profiler has no access to the GPU's tracer.
    """
    counted: dict[str, int] = {}
    busy: dict[str, Measurement] = {}
    for side, call in (("eager", sides.eager), ("compiled", sides.compiled)):
        profiled(call, here)  # The first profile of a process sets the tracer up, and may miss kernels.
        many = timing.once(call, here)[0] < LONG
        spans = [_kernels(call, here) for _ in range(PROFILED if many else 1)]
        numbers = [len(one) for one in spans]
        if not min(numbers):
            message = f"the profiler saw no kernel of {side}; it may have no access to the GPU's tracer"
            raise RuntimeError(message)
        counted[side] = max(numbers)
        counted[f"{side}_least"] = min(numbers)
        seconds = [round(union(one), timing.RESOLUTION) for one in spans]
        busy[f"{side}_busy"] = Measurement(unit="s", samples=seconds)
    return Observed(launches=counted, measurements=busy)


def profiled(call: Callable[[], Any], here: Here) -> Any:
    """Return the events of one call, as torch's profiler sees them; the first profile of a process may miss kernels."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if here.device == "cuda" else [])]
    timing.synchronize(here)
    with profile(activities=activities) as profiler:
        call()
        timing.synchronize(here)
    return profiler.events()


def _kernels(call: Callable[[], Any], here: Here) -> list[tuple[float, float]]:
    """Return start and end in seconds of every kernel of one call."""
    from torch.autograd import DeviceType

    return [
        (event.time_range.start / 1e6, event.time_range.end / 1e6)
        for event in profiled(call, here)
        if event.device_type == DeviceType.CUDA
        and is_kernel(event.name)
        and not getattr(event, "is_user_annotation", False)  # Torch 2.4 does not tell.
    ]


def is_kernel(name: str) -> bool:
    """Whether a device event is a kernel, and not a copy, a fill or a range that a user marked."""
    return not name.startswith(("Memcpy", "Memset", "ProfilerStep", "gpu_user_annotation", "## "))


def union(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of spans, in their unit."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def energy(sides: Sides, here: Here) -> Observed:
    """Count the energy of a call of either side, in joules, over alternating windows, by the GPU's own counter.

    The idle GPU's watts come first, once it has settled after whatever ran before. They are those of a GPU that
    this process holds, with its clocks as the driver leaves them; nothing is subtracted. All lasts some 19 s.

    Raises:
        RuntimeError: the GPU has no such counter, or it stopped answering.
    """
    gpu = timing.Gpu(here)
    timing.synchronize(here)
    sleep(SETTLE)
    idle = _window(lambda: sleep(IDLE), gpu, here, IDLE)
    calls = {"e": sides.eager, "c": sides.compiled}
    windows: dict[str, list[tuple[float, int]]] = {"e": [], "c": []}
    for side in WINDOWS:
        joules, _, number = _window(calls[side], gpu, here, WINDOW)
        windows[side].append((joules, number))
    return Observed(
        energy={"idle_watts": round(idle[0] / idle[1], 3)},
        measurements={
            f"{name}_energy": Measurement(
                unit="J",
                samples=[round(joules / number, 9) for joules, number in windows[side]],
                calls=min(number for _, number in windows[side]),
            )
            for side, name in (("e", "eager"), ("c", "compiled"))
        },
    )


def _window(call: Callable[[], Any], gpu: timing.Gpu, here: Here, seconds: float) -> tuple[float, float, int]:
    """Return joules, seconds and calls of a window that lasts at least that long."""
    number, before, start = 0, _joules(gpu), perf_counter()
    while (elapsed := perf_counter() - start) < seconds:
        batch = max(1, number // 4)  # Waiting for each call would leave the GPU idle between them.
        for _ in range(batch):
            call()
        timing.synchronize(here)
        number += batch
    return _joules(gpu) - before, elapsed, number


def _joules(gpu: timing.Gpu) -> float:
    joules = gpu.energy()
    if joules is None:
        message = "the GPU's energy counter does not answer"
        raise RuntimeError(message)
    return joules


def peak_memory(side: str, sides: Sides, here: Here) -> dict[str, int] | None:
    """Return the most bytes that one side needs in steady state, allocated and reserved, private pools included."""
    if here.device != "cuda":
        return None
    import torch

    call = {"eager": sides.eager, "compiled": sides.compiled}[side]
    for _ in range(MEMORY_CALLS):
        call()
    timing.synchronize(here)
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(MEMORY_CALLS):
        call()
    timing.synchronize(here)
    return {
        f"{side}_allocated": torch.cuda.max_memory_allocated(),
        f"{side}_reserved": torch.cuda.max_memory_reserved(),
    }
