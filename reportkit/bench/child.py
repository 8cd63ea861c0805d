"""The measured process: one case, or at smoke scale the facts of one section, one after another.

Started by the runner as `python -m reportkit.bench.child DESCRIPTOR`, with a `Request` on its standard
input. Answers go to the descriptor alone; what a workload prints goes to the streams, which the
runner keeps the end of.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from reportkit.bench import counters, timing
from reportkit.bench.environment import read as read_environment
from reportkit.bench.messages import Answer, Hello, Message, Phase, Refusal, Request, send
from reportkit.plan import Case, Experiment, Here, Sides, load_article
from reportkit.records import Correctness, Finding, Measurement, Status, Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_TRACEBACK = 6000
"""Characters of a traceback that are kept, from its end."""


@dataclass(slots=True)
class Progress:
    """What is known of a case so far; an answer can be made of it at any moment."""

    case: str
    descriptor: int
    phases: dict[str, float] = field(default_factory=dict)
    correctness: Correctness | None = None
    measurements: dict[str, Measurement] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    telemetry: Telemetry = field(default_factory=Telemetry)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tell the runner that a phase begins, and note how long it lasted."""
        send(self.descriptor, Phase(case=self.case, phase=name))
        start = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.perf_counter() - start, 3)

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
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    project = Path.cwd()
    start = time.perf_counter()
    try:
        import torch
    except ImportError as error:
        send(descriptor, Refusal(reason=f"torch can't be imported here: {error}"))
        return 2
    release = torch.__version__.split("+")[0]
    if request.torch is not None and release != request.torch:
        send(descriptor, Refusal(reason=f"the torch here is {torch.__version__}, and the lane pins {request.torch}"))
        return 2
    imported = round(time.perf_counter() - start, 3)
    send(descriptor, Hello(environment=read_environment(project, request.lane)))
    if request.scale is None:
        return 0
    here = Here(scale=request.scale, device="cuda" if torch.cuda.is_available() else "cpu")
    article = load_article(project)
    cases = {case.name: (experiment, case) for experiment in article.experiments for case in experiment.cases}
    for name in request.cases:
        progress = Progress(name, descriptor)
        if name == request.cases[0]:
            progress.phases["import"] = imported
        send(descriptor, run(*cases[name], here, progress, prime=request.prime))
    return 0


def run(experiment: Experiment, case: Case, here: Here, progress: Progress, *, prime: bool = False) -> Message:
    """Measure one case; whatever it raises becomes an answer that says so."""
    import torch

    try:
        with progress.phase("settings"):
            counters.reset()
            torch.manual_seed(0)
            torch.set_float32_matmul_precision("highest")  # A neighbour in this process may have set it.
            for name, value in case.settings.items():
                apply_setting(name, value)
        with progress.phase("prepare"):
            prepared = experiment.prepare(case, here)
        if isinstance(prepared, Sides):
            _time(prepared, case, here, progress, prime=prime)
        else:
            with progress.phase("observe"):
                progress.findings = prepared()
    except (torch.cuda.OutOfMemoryError, MemoryError) as error:
        return progress.answer("out-of-memory", _reason(error), _trace(error))
    except Exception as error:  # noqa: BLE001 -- whatever a workload raises is this case's result
        return progress.answer("failed", _reason(error), _trace(error))
    return progress.answer("complete")


def apply_setting(name: str, value: str | bool | int) -> None:  # noqa: FBT001 -- a switch may be boolean
    """Set one of torch's switches by its own name.

    Raises:
        AttributeError: this version of torch has no such switch.
    """
    import importlib

    import torch

    if name == "float32_matmul_precision":
        torch.set_float32_matmul_precision(str(value))
        return
    module, _, attribute = name.rpartition(".")
    owner = importlib.import_module(module)
    if not hasattr(owner, attribute):
        message = f"this torch ({torch.__version__}) has no setting {name}"
        raise AttributeError(message)
    setattr(owner, attribute, value)


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
        first, second = (timing.once(sides.eager, here) for _ in range(2))
        progress.measurements["eager_first_call"] = Measurement(unit="s", samples=[first[0]])
    with progress.phase("first-calls"):
        for name in ("first_call", "second_call", "third_call"):
            seconds, output = timing.once(sides.compiled, here)
            progress.measurements[name] = Measurement(unit="s", samples=[seconds])
    if case.cache == "warm":
        progress.findings |= counters.cache_findings(counters.read())
    with progress.phase("correctness"):
        progress.correctness = compare(first[1], second[1], output, sides)
    del first, second, output
    if here.device == "cuda":
        torch.cuda.empty_cache()
    if case.steady:
        with progress.phase("steady-state"):
            measurements, progress.telemetry = timing.steady_state(sides, here, counters.unique_graphs)
            progress.measurements |= measurements


def compare(first: Any, second: Any, compiled: Any, sides: Sides) -> Correctness:
    """Hold the compiled output against eager's by their errors against fp64.

    A tensor is right if it is close to eager's by the tolerance, or if its root mean square error
    against fp64 is at most `multiplier` times eager's plus a tenth of the tolerance. Source: `same`
    in torch/_dynamo/utils.py, with its multiplier of 2 for fp32 and 3 for half precision.
    """
    import torch

    eager, again, ours = (tensors(output) for output in (first, second, compiled))
    half = any(tensor.dtype in {torch.float16, torch.bfloat16} for tensor in eager)
    multiplier = 3.0 if half else 2.0
    noise = max((float((a.double() - b.double()).abs().max()) for a, b in zip(eager, again, strict=True)), default=0.0)
    problem = _shape_problem(eager, ours)
    eager_error = compiled_error = None
    if not problem and sides.reference is not None:
        exact = tensors(sides.reference())
        eager_error, compiled_error = (_rmse(side, exact) for side in (eager, ours))
        close = all(
            torch.allclose(a, b, atol=sides.tolerance, rtol=sides.tolerance, equal_nan=True)
            for a, b in zip(eager, ours, strict=True)
        )
        allowed = all(
            _rmse([b], [c]) <= multiplier * _rmse([a], [c]) + sides.tolerance / 10
            for a, b, c in zip(eager, ours, exact, strict=True)
        )
        if not (close or allowed):
            problem = "the compiled error against fp64 is larger than eager's allows"
    elif not problem:
        close = all(
            torch.allclose(a, b, atol=sides.tolerance, rtol=sides.tolerance) for a, b in zip(eager, ours, strict=True)
        )
        problem = "" if close else "the compiled result is not close to eager's, and there is no fp64 copy to ask"
    if not problem and not all(bool(torch.isfinite(tensor).all()) for tensor in ours if tensor.is_floating_point()):
        problem = "the result has a NaN or an infinity, so that nothing can be said of its error"
    return Correctness(
        right=not problem,
        eager_error=_finite(eager_error),
        compiled_error=_finite(compiled_error),
        noise_floor=_finite(noise),
        tolerance=sides.tolerance,
        multiplier=multiplier,
        detail=problem,
    )


def _finite(number: float | None) -> float | None:
    """Return the number, or None for a NaN or an infinity, which a case file does not hold."""
    return number if number is not None and math.isfinite(number) else None


def _shape_problem(eager: list[Any], ours: list[Any]) -> str:
    if not eager:
        return "the call returns no tensor, so that there is nothing to compare"
    if [tuple(tensor.shape) for tensor in eager] != [tuple(tensor.shape) for tensor in ours]:
        return "the compiled result has other shapes than eager's"
    if [tensor.dtype for tensor in eager] != [tensor.dtype for tensor in ours]:
        return "the compiled result has other types than eager's"
    return ""


def _rmse(outputs: list[Any], exact: list[Any]) -> float:
    """Return the root mean square error over all elements, computed in fp64."""
    squares = sum(float(((a.double() - b.double()) ** 2).sum()) for a, b in zip(outputs, exact, strict=True))
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
    return f"{type(error).__name__}: {lines[0]}"[:500]


def _trace(error: BaseException) -> str:
    return shorten("".join(traceback.format_exception(error)))


def shorten(text: str) -> str:
    """Return the end of `text`, with the paths of this machine made relative."""
    for folder, name in ((str(Path.cwd()), "."), (sys.prefix, "ENV"), (str(Path.home()), "~")):
        text = text.replace(folder.rstrip("/") + "/", name + "/") if folder != "/" else text
    return text[-LONGEST_TRACEBACK:]


if __name__ == "__main__":
    sys.exit(main())
