"""The measured process: one case, or at smoke scale the facts of one section, one after another.

Started by the runner as `python -m reportkit.bench.child DESCRIPTOR`, with a `Request` on its standard
input. Answers go to the descriptor alone; what a workload prints goes to the streams, which the
runner keeps the end of. A case that changed the process for those after it is the last one in it.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter  # Bound now: a workload may put something else into `time`.
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np

from reportkit.bench import counters, timing
from reportkit.bench.environment import read as read_environment
from reportkit.bench.messages import Answer, Hello, Phase, Refusal, Request, Spent, send
from reportkit.plan import Case, Experiment, Here, Sides, load_article
from reportkit.records import Correctness, Finding, Measurement, Status, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_TRACEBACK = 6000
"""Characters of a traceback that are kept, from its end."""

STARTED_IN = Path.cwd()
"""Asked once: a workload may go elsewhere, or delete the folder."""

SEED = 0
"""What every call that is compared starts its random numbers from, as PyTorch's benchmarks do."""


@dataclass(slots=True)
class Progress:
    """What is known of a case so far; an answer can be made of it at any moment."""

    case: str
    descriptor: int
    process: int = field(default_factory=os.getpid)
    phases: dict[str, float] = field(default_factory=dict)
    correctness: Correctness | None = None
    measurements: dict[str, Measurement] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    telemetry: Telemetry = field(default_factory=Telemetry)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tell the runner that a phase begins, and note how long it lasted."""
        send(self.descriptor, Phase(case=self.case, phase=name))
        start = perf_counter()
        try:
            yield
        finally:
            if os.getpid() != self.process:
                os._exit(0)  # A workload forked, and its twin came back from it: one answers, not two.
            self.phases[name] = round(self.phases.get(name, 0.0) + perf_counter() - start, 3)

    def answer(self, status: Status, reason: str | None = None, trace: str | None = None) -> Answer:
        """Return what is known, with how it ended."""
        return Answer(
            case=self.case,
            status=status,
            reason=reason,
            traceback=trace,
            settings=counters.switches(),
            counters=counters.read(),
            correctness=self.correctness,
            measurements=self.measurements,
            findings=self.findings,
            telemetry=self.telemetry,
            phases=self.phases,
        )


def main() -> int:
    """Serve one request; return an exit code."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)  # noqa: FBT003 -- its own signature
    # Compile workers that outlive us must not hold the pipe open.
    _end_with_the_runner()
    runner = _take_standard_input()
    request = msgspec.json.decode(runner.readline(), type=Request)
    start = perf_counter()
    try:
        import torch
    except ImportError as error:
        send(descriptor, Refusal(reason=f"torch can't be imported here: {error}"))
        return 2
    release = torch.__version__.split("+")[0]
    if request.torch is not None and release != request.torch:
        send(descriptor, Refusal(reason=f"the torch here is {torch.__version__}, and the lane pins {request.torch}"))
        return 2
    imported = round(perf_counter() - start, 3)
    send(descriptor, Hello(environment=read_environment(STARTED_IN, request.lane)))
    if request.scale is None:
        return 0
    here = Here(scale=request.scale, device="cuda" if torch.cuda.is_available() else "cpu")
    article = load_article(STARTED_IN)
    cases = {case.name: (experiment, case) for experiment in article.experiments for case in experiment.cases}
    # A process of one case has no neighbour to guard, and imports nothing for it.
    before = counters.left_behind() if len(request.cases) > 1 else {}
    for name in request.cases:
        progress = Progress(name, descriptor)
        if name == request.cases[0]:
            progress.phases["import"] = imported
        send(descriptor, run(*cases[name], here, progress, prime=request.prime))
        if not runner.readline():
            return 1  # The runner is gone.
        if name != request.cases[-1]:
            after = counters.left_behind()
            changed = sorted(what for what in before.keys() | after.keys() if before.get(what) != after.get(what))
            if changed:
                send(descriptor, Spent(reason=f"{name} changed its process ({', '.join(changed)})"))
                return 0
    return 0


def _end_with_the_runner() -> None:
    """Ask the kernel to end this process when the runner ends, however: a later run wants the machine for itself."""
    if sys.platform == "linux":
        import ctypes

        parent_death_signal = 1  # PR_SET_PDEATHSIG, linux/prctl.h
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def _take_standard_input() -> BinaryIO:
    """Return what the runner says, and leave an empty standard input to the workloads."""
    runner = os.fdopen(os.dup(0), "rb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return runner


def run(experiment: Experiment, case: Case, here: Here, progress: Progress, *, prime: bool = False) -> Answer:
    """Measure one case; whatever it raises becomes an answer that says so."""
    import torch

    recursion = sys.getrecursionlimit()
    with contextlib.ExitStack() as undo:
        try:
            with progress.phase("settings"):
                counters.reset()
                _reset_random()
                torch.set_float32_matmul_precision("highest")
                for name, value in case.settings.items():
                    undo.callback(apply_setting, name, apply_setting(name, value))
            with progress.phase("prepare"):
                prepared = experiment.prepare(case, here)
            if isinstance(prepared, Sides):
                _time(prepared, case, here, progress, prime=prime)
            else:
                with progress.phase("observe"):
                    progress.findings = prepared()
        except BaseException as error:  # noqa: BLE001 -- whatever a workload raises, exits included, is this case's result
            _recurse_at_least(recursion)  # To tell of it takes some frames.
            return progress.answer(_failure(error), _reason(error), _trace(error))
        _recurse_at_least(recursion)
        return progress.answer("complete")


def _recurse_at_least(limit: int) -> None:
    """Undo a lowered recursion limit; inductor raises it when it is imported, and that may stay."""
    sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))


def _failure(error: BaseException) -> Status:
    import torch

    # Torch has no type of its own for it on a CPU; the words are those of c10/core/CPUAllocator.cpp.
    on_cpu = isinstance(error, RuntimeError) and "you tried to allocate" in str(error)
    return "out-of-memory" if on_cpu or isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) else "failed"


def _reset_random() -> None:
    """Start every generator that a workload may draw from anew."""
    import torch

    torch.manual_seed(SEED)
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002 -- the global generator is what a workload would use


def _random_state(here: Here) -> bytes:
    import torch

    states = [torch.get_rng_state()] + ([torch.cuda.get_rng_state()] if here.device == "cuda" else [])
    return b"".join(state.numpy().tobytes() for state in states)


def apply_setting(name: str, value: str | bool | int) -> str | bool | int:  # noqa: FBT001 -- a switch may be boolean
    """Set one of torch's switches by its own name; return what it was.

    Raises:
        AttributeError: this version of torch has no such switch.
    """
    import importlib

    import torch

    former: str | bool | int
    if name == "float32_matmul_precision":
        former = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(str(value))
        return former
    module, _, attribute = name.rpartition(".")
    owner = importlib.import_module(module)
    if not hasattr(owner, attribute):
        message = f"this torch ({torch.__version__}) has no setting {name}"
        raise AttributeError(message)
    former = getattr(owner, attribute)
    setattr(owner, attribute, value)
    return former


def _time(sides: Sides, case: Case, here: Here, progress: Progress, *, prime: bool) -> None:
    import torch

    with progress.phase("inductor-import"):
        # Importing inductor takes seconds and is paid once a process, whatever is compiled.
        seconds, _ = timing.once(lambda: torch.compile(lambda x: x + 1)(torch.ones(8, device=here.device)), here)
        progress.measurements["inductor_import"] = Measurement(unit="s", samples=[seconds])
    counters.reset()
    if prime:
        with progress.phase("first-calls"):
            timing.once(sides.compiled, here)
        return
    with progress.phase("eager-first-calls"):
        seconds, first = _kept(sides.eager, here)
        progress.measurements["eager_first_call"] = Measurement(unit="s", samples=[seconds])
        _, second = _kept(sides.eager, here)
        started_from = _random_state(here)
        _reset_random()
        draws = _random_state(here) != started_from
    with progress.phase("first-calls"):
        for name in ("first_call", "second_call", "third_call"):
            seconds, output = _kept(sides.compiled, here)
            progress.measurements[name] = Measurement(unit="s", samples=[seconds])
    if case.cache == "warm":
        progress.findings |= counters.cache_findings(counters.read())
    with progress.phase("correctness"):
        progress.correctness = compare(first, second, output, sides, draws=draws)
        outputs = {"eager": _on_host(first), "compiled": _on_host(output)}
    del first, second, output
    if here.device == "cuda":
        torch.cuda.empty_cache()
    if case.steady:
        with progress.phase("steady-state"):
            measurements, progress.telemetry = timing.steady_state(sides, here, counters.unique_graphs)
            progress.measurements |= measurements
        with progress.phase("correctness"):
            progress.correctness = _still(progress.correctness, outputs, sides, here)


def _kept(call: Callable[[], Any], here: Here) -> tuple[float, list[Any]]:
    """Return the seconds of one call and copies of its tensors: it may write the next result over this one."""
    _reset_random()
    seconds, output = timing.once(call, here)
    return seconds, [tensor.detach().clone() for tensor in tensors(output)]


def _on_host(outputs: list[Any]) -> list[Any]:
    return [tensor.cpu() for tensor in outputs]


def _still(correctness: Correctness, outputs: dict[str, list[Any]], sides: Sides, here: Here) -> Correctness:
    """Hold a last call of either side against its earlier result: if it changed, calls were not the same work."""
    if not correctness.right:
        return correctness
    noise = correctness.multiplier * (correctness.eager_error or 0.0)
    for side, call in (("eager", sides.eager), ("compiled", sides.compiled)):
        last = _on_host(_kept(call, here)[1])
        if _forms(outputs[side]) != _forms(last) or not _same_again(outputs[side], last, sides.tolerance, noise):
            detail = (
                f"after timing, {side} returns something else than before it, so that its calls were not the same work"
            )
            return msgspec.structs.replace(correctness, right=False, detail=detail)
    return correctness


def compare(first: list[Any], second: list[Any], ours: list[Any], sides: Sides, *, draws: bool = False) -> Correctness:
    """Hold the compiled output against eager's by their errors against fp64.

    A tensor is right if it is close to eager's by the tolerance, or if its root mean square error
    against fp64 is at most `multiplier` times eager's plus a tenth of the tolerance. Source: `same`
    in torch/_dynamo/utils.py, with its multiplier of 2 for fp32 and 3 for half precision. Where the
    call `draws` random numbers, only closeness counts: other numbers are as far from fp64 as eager's.
    """
    import torch

    half = any(tensor.dtype in {torch.float16, torch.bfloat16} for tensor in first)
    multiplier = 3.0 if half else 2.0
    noise = eager_error = compiled_error = None
    problem = "" if _forms(first) == _forms(second) else "two eager runs return other shapes or types"
    if not problem:
        problem = _shape_problem(first, ours)
        noise = max(
            (float((_wide(a) - _wide(b)).abs().max()) for a, b in zip(first, second, strict=True) if a.numel()),
            default=0.0,
        )
        if first and not _same_again(first, second, sides.tolerance):
            problem = (
                f"two eager runs from the same seed differ by up to {noise:.3g}: "
                "the call is random, or changes what it works on"
            )
    if not problem:
        _reset_random()
        exact = tensors(sides.reference()) if sides.reference is not None else None
        if exact is not None and _shapes(exact) != _shapes(first):
            problem = "the fp64 copy returns other shapes than eager, so that there is nothing to hold either against"
        else:
            if exact is not None:
                eager_error, compiled_error = (_rmse(side, exact) for side in (first, ours))
            problem = _not_finite(first, ours) or _difference(
                first, ours, None if draws else exact, sides.tolerance, multiplier
            )
            if draws and problem:
                problem = (
                    f"the call draws random numbers, and {problem}: compiled code may draw others from the same seed"
                )
    return Correctness(
        right=not problem,
        eager_error=_finite(eager_error),
        compiled_error=_finite(compiled_error),
        noise_floor=_finite(noise),
        tolerance=sides.tolerance,
        multiplier=multiplier,
        detail=problem,
    )


def _close(one: Any, other: Any, tolerance: float) -> bool:
    import torch

    return bool(torch.allclose(one, other, atol=tolerance, rtol=tolerance, equal_nan=True))


def _same_again(before: list[Any], after: list[Any], tolerance: float, noise: float = 0.0) -> bool:
    """Whether a call returned what it had returned: by the tolerance, a tenth of it on average, and the noise known."""
    return all(
        _close(a, b, tolerance) or _rmse([a], [b]) <= noise + tolerance / 10 for a, b in zip(before, after, strict=True)
    )


def _difference(eager: list[Any], ours: list[Any], exact: list[Any] | None, tolerance: float, multiplier: float) -> str:
    """Return what is wrong with the compiled result, by the tolerance and by its error against fp64."""
    if all(_close(a, b, tolerance) for a, b in zip(eager, ours, strict=True)):
        return ""
    if exact is None:
        return "the compiled result is not close to eager's, and there is no fp64 copy to ask"
    allowed = all(
        _rmse([b], [c]) <= multiplier * _rmse([a], [c]) + tolerance / 10
        for a, b, c in zip(eager, ours, exact, strict=True)
    )
    return "" if allowed else "the compiled error against fp64 is larger than eager's allows"


def _not_finite(eager: list[Any], ours: list[Any]) -> str:
    import torch

    whole, other = (all(bool(torch.isfinite(tensor).all()) for tensor in side) for side in (eager, ours))
    if whole and not other:
        return "the compiled result has a NaN or an infinity, and eager's has none"
    return "" if whole else "the result has a NaN or an infinity, so that nothing can be said of its error"


def _finite(number: float | None) -> float | None:
    """Return the number, or None for a NaN or an infinity, which a case file does not hold."""
    return number if number is not None and math.isfinite(number) else None


def _shape_problem(eager: list[Any], ours: list[Any]) -> str:
    if not eager:
        return "the call returns no tensor, so that there is nothing to compare"
    if not any(tensor.numel() for tensor in eager):
        return "the call returns no element, so that there is nothing to compare"
    if _shapes(eager) != _shapes(ours):
        return "the compiled result has other shapes than eager's"
    if [tensor.dtype for tensor in eager] != [tensor.dtype for tensor in ours]:
        return "the compiled result has other types than eager's"
    return ""


def _forms(outputs: list[Any]) -> list[tuple[tuple[int, ...], Any]]:
    return [(tuple(tensor.shape), tensor.dtype) for tensor in outputs]


def _shapes(outputs: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in outputs]


def _wide(tensor: Any) -> Any:
    """Return the tensor in fp64, a complex one as its parts."""
    import torch

    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).double()


def _rmse(outputs: list[Any], exact: list[Any]) -> float:
    """Return the root mean square error over all elements, computed in fp64."""
    squares = sum(float(((_wide(a) - _wide(b)) ** 2).sum()) for a, b in zip(outputs, exact, strict=True))
    return float((squares / max(1, sum(tensor.numel() for tensor in exact))) ** 0.5)


def tensors(output: Any) -> list[Any]:
    """Return the tensors in nested tuples, lists, dicts and model outputs, in order."""
    import torch
    from torch.utils._pytree import tree_flatten

    if isinstance(output, dict):
        output = dict(output)  # A model library's output class is a dict that pytree may not know.
    return [leaf for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]


def _reason(error: BaseException) -> str:
    """Return the error's type and its first line that says something."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines or lines[0].startswith("from user code"):
        lines = ["without a message; see the traceback"]
    # Dynamo's wrapper ends its first line with "raised:", and the error itself is on the next.
    return f"{type(error).__name__}: {' '.join(lines[: 2 if lines[0].endswith('raised:') else 1])}"[:500]


def _trace(error: BaseException) -> str:
    return shorten("".join(traceback.format_exception(error)))


def shorten(text: str) -> str:
    """Return the end of `text`, with the paths of this machine made relative."""
    for folder, name in ((str(STARTED_IN), "."), (sys.prefix, "ENV"), (str(Path.home()), "~")):
        text = text.replace(folder.rstrip("/") + "/", name + "/") if folder != "/" else text
    return text[-LONGEST_TRACEBACK:]


if __name__ == "__main__":
    sys.exit(main())
