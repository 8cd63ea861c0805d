"""Dynamo's and inductor's counters and switches under one set of names, whatever the version calls them.

A counter that this version of torch does not have is None, never zero: zero means that it was
counted and did not happen.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import importlib
import os
import resource
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from reportkit.bench.environment import CLEARED, TELLING
from reportkit.records import Finding, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMERS = {
    # 2.4 names a timer after the function, 2.5 and later by hand.
    "entire_frame_compile": ("_compile.compile_inner", "_compile.<locals>.compile_inner"),
    "backend_compile": ("OutputGraph.call_user_compiler",),
}
"""Dynamo's timers of its work on a frame, and of what its backend has of that, by the names that versions give them."""

APART = "apart"
"""The group among Dynamo's own counters that holds what `apart` leaves out, so that a reset forgets it as well."""


def reset() -> None:
    """Forget every compiled graph and every count."""
    import torch._dynamo
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()


def unique_graphs() -> int:
    """Return how many graphs Dynamo has captured since the last `reset`."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Leave out of every count what is compiled inside."""
    from torch._dynamo.utils import counters, graph_break_reasons

    before = {group: collections.Counter(counts) for group, counts in counters.items()}
    breaks, recompiled = len(graph_break_reasons), recompiles() or 0
    try:
        yield
    finally:
        more = (recompiles() or 0) - recompiled
        counters.clear()
        counters.update(before)
        del graph_break_reasons[breaks:]
        # Dynamo names graphs by its count of compiled frames, which is not ours to set back.
        counters[APART]["recompiles"] += more


def recompiles() -> int | None:
    """Return how often a frame was compiled again; a last time that its limit refuses counts as one."""
    from torch._dynamo import convert_frame
    from torch._dynamo.utils import counters

    compiled = getattr(convert_frame, "FRAME_COMPILE_COUNTER", None)
    if compiled is None:
        return None
    return int(sum(max(0, number - 1) for number in compiled.values()) - counters[APART]["recompiles"])


def break_reasons() -> dict[str, int]:
    """Return how often Dynamo broke a graph, by its own words.

    Its list is read, and not its counter of breaks, which leaves out those at an `if` or a loop over data.
    """
    from torch._dynamo.utils import graph_break_reasons

    return dict(collections.Counter(one.reason for one in graph_break_reasons))


def compile_seconds() -> dict[str, float]:
    """Return what Dynamo's own timers have summed up in this process, over all frames, in seconds.

    A timer is there once it has run for the first time. Of a training step, the backward pass is in it where it is
    compiled along with the forward pass, and not where it is when first called.
    """
    from torch._dynamo.utils import compilation_time_metrics

    summed = {
        ours: [sum(compilation_time_metrics[name]) for name in names if name in compilation_time_metrics]
        for ours, names in TIMERS.items()
    }
    return {ours: sum(seconds) for ours, seconds in summed.items() if seconds}


def read() -> dict[str, int | None]:
    """Return every counter that a case file holds."""
    from torch._dynamo.utils import counters

    def counted(group: str, name: str) -> int:
        return int(counters[group].get(name, 0))

    autograd_cache = _config("torch._functorch.config", "enable_autograd_cache") is not None
    return {
        "unique_graphs": counted("stats", "unique_graphs"),
        "calls_captured": counted("stats", "calls_captured"),
        "graph_breaks": sum(break_reasons().values()),
        "recompiles": recompiles(),
        "fxgraph_cache_hit": counted("inductor", "fxgraph_cache_hit"),
        "fxgraph_cache_miss": counted("inductor", "fxgraph_cache_miss"),
        "fxgraph_cache_bypass": counted("inductor", "fxgraph_cache_bypass"),
        "autograd_cache_hit": counted("aot_autograd", "autograd_cache_hit") if autograd_cache else None,
        "autograd_cache_miss": counted("aot_autograd", "autograd_cache_miss") if autograd_cache else None,
    }


def cache_findings(counts: dict[str, int | None]) -> dict[str, Finding]:
    """Return whether a process on warm caches hit inductor's graph cache at all, and for every graph.

    The hit counter is believed, not the clock: without any graph cache a second process is faster
    too, since compiled kernels and the page cache survive.
    """
    hits, misses, bypasses = (counts[f"fxgraph_cache_{kind}"] or 0 for kind in ("hit", "miss", "bypass"))
    evidence: dict[str, Scalar | None] = {name: count for name, count in counts.items() if "cache" in name}
    evidence |= {"unique_graphs": counts["unique_graphs"], **cache_switches()}
    return {
        "cache-hit": Finding(holds=hits > 0, evidence=evidence),
        "all-cache-hits": Finding(holds=hits > 0 and misses == 0 and bypasses == 0, evidence=evidence),
    }


def cache_switches() -> dict[str, Scalar | None]:
    """Return whether the persistent caches are on; None for one that this version does not have."""
    return {
        "fx_graph_cache": _config("torch._inductor.config", "fx_graph_cache"),
        "enable_autograd_cache": _config("torch._functorch.config", "enable_autograd_cache"),
    }


def switches() -> dict[str, Scalar | None]:
    """Return torch's switches that matter to a timing, as they stand now."""
    import torch

    limit = _config("torch._dynamo.config", "recompile_limit")
    cuda = torch.backends.cuda
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "default_dtype": str(torch.get_default_dtype()),
        "threads": torch.get_num_threads(),
        "sdpa.flash": cuda.flash_sdp_enabled(),
        "sdpa.mem_efficient": cuda.mem_efficient_sdp_enabled(),
        "sdpa.math": cuda.math_sdp_enabled(),
        "sdpa.cudnn": cuda.cudnn_sdp_enabled() if hasattr(cuda, "cudnn_sdp_enabled") else None,
        "dynamo.recompile_limit": limit if limit is not None else _config("torch._dynamo.config", "cache_size_limit"),
        "dynamo.automatic_dynamic_shapes": _config("torch._dynamo.config", "automatic_dynamic_shapes"),
        "inductor.max_autotune": _config("torch._inductor.config", "max_autotune"),
        "inductor.freezing": _config("torch._inductor.config", "freezing"),
        "inductor.cpp_wrapper": _config("torch._inductor.config", "cpp_wrapper"),
        **{f"cache.{name}": value for name, value in cache_switches().items()},
    }


def profiler_on() -> bool:
    """Whether one of torch's profilers is watching this process."""
    import torch

    return bool(torch.autograd._profiler_enabled())  # noqa: SLF001 -- there is no public question


def left_behind() -> dict[str, object]:
    """Return all that a case may change for the next one in its process, by name, as it stands now."""
    import torch

    configurations = {
        f"{module}.{name}": repr(value)
        for module in ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
        for name, value in _whole_config(module).items()
    }
    telling = {n: v for n, v in os.environ.items() if n in TELLING or n.startswith(CLEARED)}
    telling.pop("CUDA_MODULE_LOADING", None)  # Torch sets it itself, when it first touches a GPU.
    return {
        **switches(),
        **configurations,
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": (torch.is_autocast_enabled(), torch.is_autocast_cpu_enabled()),
        "anomaly mode": torch.is_anomaly_enabled(),
        "profiler": profiler_on(),
        "default device": str(torch.get_default_device()),
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.deterministic),
        "time": tuple(
            getattr(time, name) for name in ("time", "perf_counter", "perf_counter_ns", "monotonic", "sleep")
        ),
        "working folder": _working_folder(),
        "cache folder": os.path.isdir(os.path.dirname(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "/"))),  # noqa: PTH112, PTH120 -- a name may be missing
        "environment variables": telling,
        "signal handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "memory limits": (resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_DATA)),
        "standard streams": (sys.stdout, sys.stderr),
        "garbage collector": (gc.isenabled(), gc.get_threshold()),
        "Python threads": {thread.ident for thread in threading.enumerate() if not _of_a_library(thread)},
    }


def _whole_config(module: str) -> dict[str, object]:
    config = importlib.import_module(module)
    # Renamed between versions.
    copy = next(c for name in ("get_config_copy", "to_dict", "shallow_copy_dict") if (c := getattr(config, name, None)))
    return dict(copy())


def _working_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 -- compared, not used
    except FileNotFoundError:
        return None


def _of_a_library(thread: threading.Thread) -> bool:
    """Whether torch, or a progress bar, keeps the thread for the life of the process."""
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__
    return module.split(".")[0] in {"torch", "concurrent", "multiprocessing", "tqdm"}


def _config(module: str, name: str) -> Scalar | None:
    try:
        value = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None  # This version has no such switch, which is what None says.
    return value if isinstance(value, str | bool | int | float) else str(value)
