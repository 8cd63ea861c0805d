"""Section 2: from TorchScript to TorchDynamo.

Timed: ResNet-50 by TorchScript, traced and frozen; `cache-saves-time` rests on the first calls of section 4's cases.
Observed: what TorchScript does with control flow that depends on data, and what it warns of; which models are
captured whole; which backend compiled a graph when none was named; which kernels it generated and ran, and whether a
CUDA graph was replayed; how many graphs serve several lengths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from experiments.benchmarks import COLD, WARM
from reportkit.claims import (
    SHOWN,
    TRUE,
    Claim,
    Each,
    Fact,
    FirstCall,
    Ratio,
    Speedup,
    Untestable,
    Where,
    above,
    at_most,
)
from reportkit.plan import Case, Experiment, Here, Section, Sides, Unavailable
from reportkit.records import Finding

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    from reportkit.bench.inductor import Seen
    from reportkit.plan import Kind
    from reportkit.records import Scalar

    Prepare = Callable[[Case, Here], Any]

MODELS = ("resnet50", "vit", "bert", "gpt2", "unet")

LENGTHS = tuple(range(2, 2 + 8))
"""Eight sequence lengths from 2 up: 0 and 1 are special to PyTorch's dynamic shapes."""


def _table(workload: str, processes: tuple[str, ...], lane: str | None = None) -> Where:
    return Where("table", {"workload": workload, "precision": "d", "process": processes}, lane)


def _warm_over_cold(workload: str) -> Ratio:
    return Ratio(FirstCall(_table(workload, WARM)), FirstCall(_table(workload, COLD)))


CLAIMS = (
    Claim(
        id="torchscript-can-speed-up",
        quantity=Speedup(Where("torchscript", {"workload": "resnet50", "precision": "d"})),
        bound=above(1.02),
        on="cuda",
    ),
    Claim(
        id="torchscript-no-control-flow",
        quantity=Fact(Where("torchscript-control-flow", {}), "scripting-fails"),
        bound=TRUE,
        on="any",
    ),
    Claim(
        id="torchscript-adoption",
        quantity=Untestable((Where("torchscript-control-flow", {}),)),
        bound=SHOWN,
        on="any",
    ),
    Claim(
        id="capture-unmodified",
        quantity=Each(
            {
                # By its name alone GPT-2 would be its generation.
                "gpt2-forward" if model == "gpt2" else model: Fact(Where("capture", {"model": model}), "captured-whole")
                for model in MODELS
            }
        ),
        bound=TRUE,
        on="any",
    ),
    Claim(
        id="default-inductor",
        quantity=Fact(Where("default-backend", {}), "inductor-by-default"),
        bound=TRUE,
        on="any",
    ),
    Claim(id="uses-cuda-graphs", quantity=Fact(Where("cuda-graphs", {}), "graph-replayed"), bound=TRUE, on="cuda"),
    Claim(id="uses-triton-kernels", quantity=Fact(Where("triton-kernels", {}), "kernels-ran"), bound=TRUE, on="cuda"),
    Claim(id="uses-cpp-kernels", quantity=Fact(Where("cpp-kernels", {}), "kernels-ran"), bound=TRUE, on="any"),
    Claim(
        id="dynamic-new-in-2.5",
        quantity=Fact(Where("dynamic-lengths", {}), "one-graph", expect=False),
        bound=TRUE,
        on="any",
        lane="2.4",
    ),
    Claim(
        id="cache-new-in-2.5",
        quantity=Each(
            {
                "2.4": Fact(_table("resnet50", WARM, "2.4"), "cache-hit", expect=False),
                "2.5": Fact(_table("resnet50", WARM, "2.5"), "cache-hit"),
            }
        ),
        bound=TRUE,
        on="any",
        lane="2.5",
    ),
    Claim(
        id="cache-hits",
        quantity=Each(
            {
                "resnet50": Fact(_table("resnet50", WARM), "all-cache-hits"),
                "bert": Fact(_table("bert", WARM), "all-cache-hits"),
            }
        ),
        bound=TRUE,
        on="any",
    ),
    Claim(
        id="cache-saves-time",
        quantity=Each({"resnet50": _warm_over_cold("resnet50"), "bert": _warm_over_cold("bert")}),
        bound=at_most(0.5),
        on="cuda",
    ),
)


def prepare(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that compiles a small module without naming a backend and sees who did it.

    Inductor counts the kernels that it generates. The count must rise for the default and must
    not rise for a control compiled with `backend="eager"`.
    """
    import inspect

    import torch
    import torch._inductor.metrics as inductor

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)

    def generated(**options: str) -> int:
        torch._dynamo.reset()
        before = inductor.generated_kernel_count
        with torch.no_grad():
            torch.compile(model, **options)(*inputs)
        return int(inductor.generated_kernel_count - before)

    def observe() -> dict[str, Finding]:
        control = generated(backend="eager")
        kernels = generated()
        return {
            "inductor-by-default": Finding(
                holds=kernels > 0 and control == 0,
                evidence={
                    "kernels generated by inductor": kernels,
                    "the same with backend='eager' (control)": control,
                    "default of torch.compile's backend": str(
                        inspect.signature(torch.compile).parameters["backend"].default
                    ),
                },
            )
        }

    return observe


def prepare_torchscript(case: Case, here: Here) -> Sides:
    """Trace and freeze the model; nothing here is compiled by Dynamo."""
    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    with torch.no_grad():
        frozen = torch.jit.freeze(torch.jit.trace(model, inputs))
    return workloads.sides(model, inputs, 1e-4, compiled=frozen)


def prepare_control_flow(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that scripts and traces an `if` and a `while` that depend on the data, and tries them.

    Controls of the trying: eager against itself must come out right, and a model that does nothing must not.
    """
    import warnings

    import torch

    from experiments import workloads

    models = getattr(workloads, case.workload)(here)

    def same(model: Any, _example: Any) -> Any:
        return model

    def nothing(_model: Any, _example: Any) -> Any:
        return torch.nn.Identity()

    def script(model: Any, _example: Any) -> Any:
        return torch.jit.script(model)

    def trace(model: Any, example: Any) -> Any:
        return torch.jit.trace(model, example, check_trace=False)

    def outcome(make: Callable[[Any, Any], Any], kind: str) -> str:
        model, ways = models[kind]
        try:
            made = make(model, ways[0])
            wrong = [way for way in ways if not workloads.alike(made(way), model(way))]
        except Exception as error:  # noqa: BLE001 -- however it fails, that is what is asked
            return workloads.told(error)
        return f"wrong on {len(wrong)} of {len(ways)} inputs" if wrong else "right"

    def observe() -> dict[str, Finding]:
        evidence: dict[str, Scalar | None] = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for kind in models:
                right, wrong = outcome(same, kind), outcome(nothing, kind)
                if right != "right" or not wrong.startswith("wrong"):
                    message = (
                        f"a control failed, so that nothing is claimed: eager is {right}, a model of nothing {wrong}"
                    )
                    raise RuntimeError(message)
                evidence[f"scripting a data-dependent {kind}"] = outcome(script, kind)
                evidence[f"tracing a data-dependent {kind}"] = outcome(trace, kind)
        fails = any(evidence[f"scripting a data-dependent {kind}"] != "right" for kind in models)
        said = {str(one.message).strip().splitlines()[0][:200]: one.category.__name__ for one in caught}
        outdated = [f"{name}: {text}" for text, name in said.items() if "deprecat" in text.lower()]
        warns: dict[str, Scalar | None] = {
            "torch": str(torch.__version__),
            "warnings of its end": len(outdated),
            **{f"warning {number}": text for number, text in enumerate(outdated, start=1)},
        }
        return {
            "scripting-fails": Finding(holds=fails, evidence=evidence),
            "warns-of-its-end": Finding(holds=bool(outdated), evidence=warns),
        }

    return observe


def prepare_capture(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that compiles a library's model as it is, and asks for it in one graph.

    The control is a model that breaks its graph on purpose: `fullgraph=True` must refuse it.
    """
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = workloads.capture_model(str(case.axes["model"]), here)

    def broken(*arguments: object) -> object:
        torch._dynamo.graph_break()
        return arguments

    def observe() -> dict[str, Finding]:
        accepted, control = workloads.whole(broken, inputs)
        if accepted is not None:
            message = "a control failed, so that nothing is claimed: fullgraph=True accepts a graph break"
            raise RuntimeError(message)
        graphs, found = workloads.whole(model, inputs)
        counts = counters.read()
        evidence: dict[str, Scalar | None] = {
            "fullgraph=True": found,
            "graphs": counts["unique_graphs"],
            "calls captured": counts["calls_captured"],
            "model": f"{type(model).__module__}.{type(model).__name__}",
            "a graph break on purpose (control)": control,
        }
        return {"captured-whole": Finding(holds=graphs == 1, evidence=evidence)}

    return observe


def prepare_triton(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that looks for Triton kernels."""
    if here.device != "cuda":
        message = "needs a GPU: on a CPU Inductor generates C++"
        raise Unavailable(message)
    return kernels_of(case, here, "triton")


def prepare_cpp(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that looks for C++ kernels, which are the CPU's, on any machine."""
    return kernels_of(case, replace(here, device="cpu"), "cpp")


def kernels_of(case: Case, here: Here, language: Literal["triton", "cpp"]) -> Callable[[], dict[str, Finding]]:
    """Return the call that compiles a small model and looks for generated kernels, and for their runs in the profiler.

    The control, by `aot_eager`, must have neither.
    """
    import torch

    from experiments import workloads
    from reportkit.bench import inductor

    model, inputs = getattr(workloads, case.workload)(here)

    def look(backend: str) -> tuple[Seen, list[str], int]:
        call = workloads.quiet(torch.compile(model, backend=backend), inputs)
        seen = inductor.observe(call)
        kernels = seen.kernels(language)
        return seen, kernels, inductor.runs_of(kernels, inductor.ran(call, here))

    def observe() -> dict[str, Finding]:
        _, none, control = look("aot_eager")
        if none or control:
            message = (
                f"a control failed, so that nothing is claimed: aot_eager has generated kernels: {', '.join(none)}"
            )
            raise RuntimeError(message)
        seen, kernels, runs = look("inductor")
        evidence: dict[str, Scalar | None] = {
            "kernels generated": ", ".join(kernels),
            "runs of them in a call, by the profiler": runs,
            "kernels by backend='aot_eager' (control)": len(none),
            "code": seen.lines(kernels[0] if kernels else "call"),
        }
        return {"kernels-ran": Finding(holds=bool(kernels) and runs >= len(kernels), evidence=evidence)}

    return observe


def prepare_cuda_graphs(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that compiles a small model by `reduce-overhead` and looks for the replay of a CUDA graph.

    The control is the default mode: the profiler must see it launch kernels, and replay nothing.
    """
    import torch

    from experiments import workloads
    from reportkit.bench import inductor

    if here.device != "cuda":
        message = "needs a GPU: CUDA graphs are CUDA's"
        raise Unavailable(message)
    model, inputs = getattr(workloads, case.workload)(here)

    def launched(mode: str | None) -> Counter[str]:
        torch._dynamo.reset()
        compiled = workloads.quiet(torch.compile(model, mode=mode), inputs)

        def call() -> object:
            torch.compiler.cudagraph_mark_step_begin()
            return compiled()

        for _ in range(3):  # The first call compiles, the second records, and those after it replay.
            call()
        return inductor.ran(call, here)

    def observe() -> dict[str, Finding]:
        control, seen = launched(None), launched("reduce-overhead")
        kernels = sum(number for name, number in control.items() if "LaunchKernel" in name)
        if not kernels or control[inductor.GRAPH_LAUNCH]:
            message = (
                "a control failed, so that nothing is claimed: in default mode the profiler saw "
                f"{kernels} launches of kernels and {control[inductor.GRAPH_LAUNCH]} of graphs"
            )
            raise RuntimeError(message)
        evidence: dict[str, Scalar | None] = {
            "graphs replayed in a call, reduce-overhead": seen[inductor.GRAPH_LAUNCH],
            "graphs replayed in default mode (control)": control[inductor.GRAPH_LAUNCH],
            "kernels launched one by one, reduce-overhead": sum(
                n for name, n in seen.items() if "LaunchKernel" in name
            ),
            "kernels launched one by one in default mode": kernels,
        }
        return {"graph-replayed": Finding(holds=seen[inductor.GRAPH_LAUNCH] > 0, evidence=evidence)}

    return observe


def prepare_lengths(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that counts the graphs for eight lengths with `dynamic=True`.

    The control is `dynamic=False`: there each length must be a graph of its own, or the count would say nothing.
    """
    from experiments import workloads

    model, calls = getattr(workloads, case.workload)(replace(here, scale="smoke"), 512, LENGTHS)

    def observe() -> dict[str, Finding]:
        control = workloads.graphs_for(model, calls, dynamic=False)
        if control != len(LENGTHS):
            message = f"a control failed, so that nothing is claimed: {control} graphs with dynamic=False"
            raise RuntimeError(message)
        graphs = workloads.graphs_for(model, calls, dynamic=True)
        evidence: dict[str, Scalar | None] = {
            "lengths": ", ".join(str(length) for length in LENGTHS),
            "graphs with dynamic=True": graphs,
            "graphs with dynamic=False (control)": control,
        }
        return {"one-graph": Finding(holds=graphs == 1, evidence=evidence)}

    return observe


def _alone(  # noqa: PLR0913, PLR0917 -- each is a field of the plan
    name: str, prepare: Prepare, workload: str, full: float, smoke: float, axes: Mapping[str, str], kind: Kind = "fact"
) -> Experiment:
    """Return an experiment of one case."""
    case = Case(experiment=name, axes=axes, workload=workload, cost={"full": full, "smoke": smoke})
    return Experiment(id=name, kind=kind, cases=(case,), prepare=prepare)


GELU = {"workload": "gelu"}

EXPERIMENTS = (
    _alone(
        "torchscript",
        prepare_torchscript,
        "resnet50_settled",
        8,
        15,
        {"workload": "resnet50", "precision": "d"},
        kind="control",
    ),
    _alone("torchscript-control-flow", prepare_control_flow, "control_flow", 2, 5, {"workload": "control-flow"}),
    Experiment(
        id="capture",
        kind="fact",
        cases=tuple(
            Case(experiment="capture", axes={"model": model}, workload="capture_model", cost={"full": 4, "smoke": 6})
            for model in MODELS
        ),
        prepare=prepare_capture,
    ),
    _alone("default-backend", prepare, "gelu_chain", 6, 20, GELU),
    _alone("cuda-graphs", prepare_cuda_graphs, "gelu_chain", 7, 2, GELU),
    _alone("triton-kernels", prepare_triton, "gelu_chain", 7, 2, GELU),
    _alone("cpp-kernels", prepare_cpp, "gelu_chain", 20, 15, GELU),
    _alone("dynamic-lengths", prepare_lengths, "bert_positions", 13, 12, {"workload": "bert"}),
)

SECTION = Section(id="ecosystem", number=2, claims=CLAIMS, experiments=EXPERIMENTS)
