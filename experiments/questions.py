"""Section 5: the five questions.

Timed: ResNet-50's first compiled calls at a recompile limit of 1 (question 2); ResNet-50 in the modes that promise
more than the default (question 4); ResNet-50 and BERT under autocast (question 5). All of it is inference under
`no_grad` on both sides, and importing inductor is timed apart.
Not timed: building models, moving them to the device, the check against fp64, the autocast copies' first casts.
Observed: what Dynamo makes of a C++ extension (question 1); graphs for eight batch sizes (2); whether the Hugging
Face Trainer and `from_pretrained` compile (3); whether `torch.cuda.amp` is deprecated (5).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from experiments.benchmarks import COLD, THREE
from reportkit.claims import (
    SHOWN,
    TRUE,
    Claim,
    Each,
    Fact,
    FirstCall,
    Metric,
    Ratio,
    Side,
    Speedup,
    Untestable,
    Where,
    Works,
    at_least,
    at_most,
    below,
    between,
    outside,
)
from reportkit.plan import Case, Experiment, Here, Section, Sides, Unavailable
from reportkit.records import Finding, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reportkit.records import Scalar

    Evidence = dict[str, Scalar | None]

BESIDE_DEFAULT = "beside-default"
"""A process that times a mode against the default mode, not against eager."""

MOST_GRAPHS = 64
"""The recompile limit where graphs are counted, so that the limit is not what is counted."""


def _table(workload: str, precision: str, process: str | tuple[str, ...]) -> Where:
    return Where("table", {"workload": workload, "precision": precision, "process": process})


def _mode(mode: str, process: str | tuple[str, ...]) -> Where:
    return Where("modes", {"mode": mode, "process": process})


def _amp(workload: str) -> Where:
    return Where("amp", {"workload": workload})


def _compiled_over_eager(where: Where, metric: str) -> Ratio:
    """Return a metric of the compiled side over that of eager; `metric` has a place for the side."""
    return Ratio(Metric(where, metric.format("compiled")), Metric(where, metric.format("eager")))


def _default_over(where: Where) -> Ratio:
    """Return the default mode's time over a mode's, from two processes."""
    return Ratio(Side(_table("resnet50", "h", "cold-1"), "compiled"), Side(where, "compiled"))


def _section_4(process: str | tuple[str, ...]) -> Mapping[str, Where]:
    """Return section 4's models as a user first compiles them: at PyTorch's defaults, but GPT-2 in fp16."""
    return {
        "resnet50": _table("resnet50", "d", process),
        "bert": _table("bert", "d", process),
        "gpt2": Where("generate", {"workload": "gpt2", "precision": "h", "process": process}),
        "cnn-stream": Where("stream", {"workload": "cnn-stream", "precision": "d", "process": process}),
        "unet": _table("unet", "d", process),
    }


CLAIMS = (
    Claim(
        id="q1-one-line",
        quantity=Each({name: Works(where) for name, where in _section_4("cold-1").items()}),
        bound=TRUE,
        on="any",
    ),
    Claim(
        id="q1-extension-needs-care",
        quantity=Each(
            {
                "unregistered": Fact(Where("extension", {"kind": "unregistered"}), "breaks"),
                "registered": Fact(Where("extension", {"kind": "registered"}), "mended"),
            }
        ),
        bound=TRUE,
        on="any",
    ),
    Claim(
        id="q2-first-call-slow",
        # The UNet has one cold process a precision, since each takes a minute: those are its three.
        quantity=Each(
            {
                **{name: FirstCall(where) for name, where in _section_4(COLD).items()},
                "unet": FirstCall(Where("table", {"workload": "unet", "process": "cold-1"})),
            }
        ),
        bound=between(2, 100),
        on="cuda",
    ),
    Claim(
        id="q2-phases",
        quantity=Each(
            {
                name: FirstCall(_table(name, "d", COLD), metric="entire_frame_compile", of="first_call")
                for name in ("resnet50", "bert")
            }
        ),
        bound=at_least(0.8),
        on="cuda",
    ),
    Claim(
        id="q2-limit-controls",
        quantity=Ratio(FirstCall(Where("limit", {})), FirstCall(_table("resnet50", "d", COLD))),
        bound=outside(0.9, 1.1),
        on="cuda",
    ),
    Claim(
        id="q2-dynamic-helps",
        quantity=Ratio(
            Metric(Where("batch-sizes", {"dynamic": "true"}), "graphs"),
            Metric(Where("batch-sizes", {"dynamic": "false"}), "graphs"),
        ),
        bound=at_most(0.5),
        on="any",
    ),
    Claim(id="q3-trainer", quantity=Fact(Where("trainer", {}), "trains"), bound=TRUE, on="any"),
    Claim(
        id="q3-from-pretrained",
        quantity=Fact(Where("from-pretrained", {}), "flag-compiles"),
        bound=TRUE,
        on="any",
    ),
    # Default against max-autotune in turns, in one process: the stricter ruler. What a process is dealt (clock,
    # temperature, where its tensors lie) falls on both alike, and the interval is that of the pairs. A ratio of two
    # processes' times would leave that out of its interval, and it can be a good part of the 10 % looked for.
    Claim(
        id="q4-gain",
        quantity=Speedup(_mode("max-autotune", BESIDE_DEFAULT), base="default"),
        bound=between(1.05, 1.21),
        on="cuda",
    ),
    Claim(
        id="q4-gain-graphs",
        quantity=Each(
            {
                "reduce-overhead": _default_over(_mode("reduce-overhead", "cold-1")),
                "max-autotune-no-cudagraphs": _default_over(_mode("max-autotune-no-cudagraphs", "warm-2")),
            }
        ),
        bound=SHOWN,
        on="cuda",
    ),
    Claim(
        id="q4-compile-doubles",
        quantity=Ratio(FirstCall(_mode("max-autotune", THREE)), FirstCall(_table("resnet50", "h", COLD))),
        bound=between(1.7, 2.5),
        on="cuda",
    ),
    Claim(
        id="q4-default-first",
        quantity=Untestable(
            (
                _table("resnet50", "h", "cold-1"),
                _mode("reduce-overhead", "cold-1"),
                _mode("max-autotune", "cold-1"),
            )
        ),
        bound=SHOWN,
        on="any",
    ),
    Claim(
        id="q5-amp-works",
        quantity=Each({name: Works(_amp(name), unbroken=True) for name in ("resnet50", "bert")}),
        bound=TRUE,
        on="cuda",
    ),
    Claim(
        id="q5-less-memory",
        quantity=Each(
            {
                f"{name}-{what}": _compiled_over_eager(where, "memory.{}_allocated")
                for name in ("resnet50", "bert")
                for what, where in (
                    ("inference", _amp(name)),
                    ("training", Where("training", {"workload": name, "precision": "a"})),
                )
            }
        ),
        bound=below(0.98),
        on="cuda",
    ),
    Claim(
        id="q5-less-energy",
        quantity=Each({name: _compiled_over_eager(_amp(name), "{}_energy") for name in ("resnet50", "bert")}),
        bound=below(0.98),
        on="cuda",
    ),
    Claim(id="q5-amp-api", quantity=Fact(Where("amp-api", {}), "undeprecated"), bound=TRUE, on="any"),
)


@dataclass(frozen=True, slots=True)
class Captured:
    """What Dynamo counted while something was called, from nothing."""

    graphs: int
    breaks: int
    reason: str | None
    """The beginning of the first reason for a break, on one line."""
    output: Any = field(repr=False)


def _captured(call: Callable[[], Any]) -> Captured:
    from torch._dynamo.utils import counters as dynamo

    from reportkit.bench import counters

    counters.reset()
    output = call()
    reasons = dynamo["graph_break"]
    first = next(iter(reasons), None)
    return Captured(
        graphs=counters.unique_graphs(),
        breaks=sum(reasons.values()),
        reason=None if first is None else " ".join(first.split())[:300],
        output=output,
    )


EXTENSION = "scaled_gelu_extension"

SOURCE = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/gelu.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

at::Tensor own_gelu(const at::Tensor& x) { return at::gelu(x); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("own_gelu", &own_gelu); }

TORCH_LIBRARY(reportkit_extension, m) { m.def("own_gelu(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(reportkit_extension, CPU, m) { m.impl("own_gelu", own_gelu); }
TORCH_LIBRARY_IMPL(reportkit_extension, CUDA, m) { m.impl("own_gelu", own_gelu); }
TORCH_LIBRARY_IMPL(reportkit_extension, Meta, m) { m.impl("own_gelu", own_gelu); }
"""
"""One C++ function in two ways: bound to Python, as extensions long were, and registered as PyTorch's operator.

The registration for Meta tells Dynamo the result's shape and type without computing it.
"""


@functools.cache
def _extension() -> Any:
    """Build the extension, once a process, and return its module; that loads its operator too.

    By setuptools, as PyTorch documents it for extensions that are installed: to build on the fly it wants ninja as
    well, which no lane brings.

    Raises:
        Unavailable: there is no compiler, or no header of Python's, to build it with.
    """
    import importlib.util
    import os
    import shutil
    import sysconfig
    import tempfile
    from pathlib import Path

    from setuptools import Distribution
    from torch.utils.cpp_extension import BuildExtension, CppExtension, get_cxx_compiler

    compilers = {(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0], get_cxx_compiler()}
    missing = [f"the compiler {name}" for name in sorted(compilers) if shutil.which(name) is None]
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        missing.append("Python's header Python.h")
    if missing:
        message = f"needs what C++ extensions are built with; missing here: {', '.join(missing)}"
        raise Unavailable(message)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{EXTENSION}.cpp"
        source.write_text(SOURCE, encoding="utf-8")
        # Not optimised: what it computes is PyTorch's own, and nothing of it is timed.
        extension = CppExtension(EXTENSION, [str(source)], extra_compile_args=["-O0", "-g0"])
        build = BuildExtension(Distribution({"name": EXTENSION, "ext_modules": [extension]}), use_ninja=False)
        build.build_lib = build.build_temp = folder
        build.ensure_finalized()
        build.run()
        spec = importlib.util.spec_from_file_location(EXTENSION, build.get_ext_fullpath(EXTENSION))
        if spec is None or spec.loader is None:
            message = f"the extension was built, and Python can't load {build.get_ext_fullpath(EXTENSION)}"
            raise RuntimeError(message)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def prepare_extension(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Build a C++ extension, and return the call that compiles a small model around it.

    Two controls: the same model with PyTorch's own GELU must not break, so that a break is the extension's; with a
    break put there by hand it must, so that none is known to mean none.
    """
    import torch
    from torch import nn

    from experiments import workloads

    module = _extension()
    registered = case.axes["kind"] == "registered"
    operator = torch.ops.reportkit_extension.own_gelu if registered else module.own_gelu
    model, inputs = getattr(workloads, case.workload)(here)
    before, _, after = model

    def around(middle: Callable[[Any], Any]) -> Callable[[Any], Any]:
        # Written out: Dynamo gives up on a whole torch.nn.Sequential for a break within, and captures nothing.
        return lambda numbers: after(middle(before(numbers)))

    def by_hand(numbers: Any) -> Any:
        torch._dynamo.graph_break()
        return nn.functional.gelu(numbers)

    def compiled(middle: Callable[[Any], Any]) -> Callable[[], Any]:
        return workloads.quiet(torch.compile(around(middle), backend="aot_eager"), inputs)

    def observe() -> dict[str, Finding]:
        own, broken = _captured(compiled(nn.functional.gelu)), _captured(compiled(by_hand))
        if not own.graphs or own.breaks or not broken.breaks:
            message = f"the controls did not do as they must: with PyTorch's own GELU {own}, with a break {broken}"
            raise RuntimeError(message)
        seen = _captured(compiled(operator))
        right = torch.allclose(seen.output, workloads.quiet(around(operator), inputs)())
        evidence: Evidence = {
            "graphs": seen.graphs,
            "graph breaks": seen.breaks,
            "reason": seen.reason,
            "returns what eager returns": right,
            "graph breaks with PyTorch's own GELU (control)": own.breaks,
            "graph breaks with one put there by hand (control)": broken.breaks,
        }
        captured = right and seen.graphs > 0
        if registered:
            return {"mended": Finding(holds=captured and seen.breaks == 0, evidence=evidence)}
        return {"breaks": Finding(holds=captured and seen.breaks > 0, evidence=evidence)}

    return observe


def prepare_limit(case: Case, here: Here) -> Sides:
    """Build ResNet-50 as section 4 does; the recompile limit is a setting of the case."""
    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    return workloads.sides(model, inputs, 1e-4)  # As in PyTorch's TorchBench suite.


BATCHES = range(2, 10)
"""Eight batch sizes from 2 up: a size of 1 is a case of its own to Dynamo."""


def prepare_batch_sizes(case: Case, here: Here) -> Callable[[], dict[str, Measurement]]:
    """Return the call that counts Dynamo's graphs over eight batch sizes, smallest first.

    The model is as small as at smoke scale in any case: what Dynamo guards on has no regard to depth or width.
    """
    from experiments import workloads

    model, (images,) = getattr(workloads, case.workload)(replace(here, scale="smoke"))
    batches = [(images[:1].repeat(size, 1, 1, 1),) for size in BATCHES]
    options = {"true": {"dynamic": True}, "false": {"dynamic": False}, "default": {}}[str(case.axes["dynamic"])]

    def observe() -> dict[str, Measurement]:
        return {"graphs": Measurement(unit="1", samples=[workloads.graphs_for(model, batches, **options)])}

    return observe


STEPS = 10
"""Steps that the Trainer trains for."""


def prepare_trainer(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that trains a small model with the Hugging Face Trainer, without the flag and with it.

    The data are one generated batch, over and over. Without the flag (the control) the same must train through no
    graph at all, so that a graph is known to be the flag's. Nothing is saved, reported or asked of another host.
    """
    import copy

    from experiments import workloads

    model, (tokens,) = getattr(workloads, case.workload)(here)
    rows = [{"input_ids": row, "labels": row} for row in tokens.cpu().repeat(2 * STEPS, 1)]

    def observe() -> dict[str, Finding]:
        import math

        def trained(**flags: str | bool) -> Captured:
            return _captured(lambda: _train(copy.deepcopy(model), rows, here, **flags))

        def learned(losses: list[float]) -> bool:
            return len(losses) == STEPS and all(map(math.isfinite, losses)) and losses[-1] < losses[0]

        plain = trained()
        if plain.graphs or not learned(plain.output):
            message = f"without the flag (control) there were {plain.graphs} graphs, and losses {plain.output}"
            raise RuntimeError(message)
        seen = trained(torch_compile=True, torch_compile_backend="aot_eager")
        losses = seen.output
        evidence: Evidence = {
            "steps": len(losses),
            "graphs": seen.graphs,
            "graph breaks": seen.breaks,
            "graphs without the flag (control)": plain.graphs,
            "loss of the first step": losses[0] if losses else None,
            "loss of the last step": losses[-1] if losses else None,
            "loss of the last step without the flag (control)": plain.output[-1],
        }
        return {"trains": Finding(holds=seen.graphs > 0 and learned(losses), evidence=evidence)}

    return observe


def _train(model: Any, rows: list[dict[str, Any]], here: Here, **flags: str | bool) -> list[float]:
    """Train for ten steps and return the loss of each."""
    import os
    import tempfile
    from unittest import mock

    import transformers

    # The Trainer tells its flags to accelerate by way of variables, and leaves them there.
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            max_steps=STEPS,
            per_device_train_batch_size=2,
            learning_rate=1e-3,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=here.device == "cpu",
            **flags,
        )
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
        trainer.train()
    return [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]


def prepare_from_pretrained(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Save a small model, and return the call that loads it with the flag and runs it.

    The control loads the same folder without the flag, so that a refusal is known to be the
    flag's and not the folder's; a positive control compiles that model by hand, so that a count
    of zero graphs is known to mean that nothing was compiled.
    """
    import tempfile

    import torch
    import transformers

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)

    def graphs(call: Callable[..., object]) -> int:
        return _captured(workloads.quiet(call, inputs)).graphs

    def observe() -> dict[str, Finding]:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            load = type(model).from_pretrained
            plain = load(folder).eval().to(here.device)
            evidence: Evidence = {
                "transformers": transformers.__version__,
                "graphs without the flag (control)": graphs(plain),
                "graphs after torch.compile by hand (control)": graphs(torch.compile(plain, backend="aot_eager")),
            }
            try:
                flagged = load(folder, torch_compile=True)
            except TypeError as error:
                evidence["from_pretrained(..., torch_compile=True)"] = f"TypeError: {error}"
                captured = 0
            else:
                evidence["from_pretrained(..., torch_compile=True)"] = "accepted"
                captured = graphs(flagged.eval().to(here.device))
                evidence["graphs with the flag"] = captured
        return {"flag-compiles": Finding(holds=captured > 0, evidence=evidence)}

    return observe


def prepare_modes(case: Case, here: Here) -> Sides:
    """Build ResNet-50 in fp16 once, and compile it in the mode; beside the default mode, `eager` is that mode.

    Each call of a mode says that a step begins, and its output is dropped before the next, so that CUDA graphs may
    write over it.
    """
    import torch

    from experiments import workloads

    mode = str(case.axes["mode"])
    if here.device != "cuda" and mode != "max-autotune":
        message = "needs a GPU: this mode is another with or without CUDA graphs, which a CPU does not have"
        raise Unavailable(message)
    model, inputs = getattr(workloads, case.workload)(here)
    model, inputs = workloads.half(model, inputs, here)

    def plain(*numbers: Any) -> Any:
        # A function of its own: torch 2.4 does not tell modes apart, and would go on with a function's first graph.
        return model(*numbers)

    # The tolerance is that of PyTorch's TorchBench suite for half precision.
    both = workloads.sides(model, inputs, 1e-3, compiled=torch.compile(model, mode=mode))

    def compiled() -> object:
        torch.compiler.cudagraph_mark_step_begin()
        return both.compiled()

    beside = case.axes["process"] == BESIDE_DEFAULT
    eager = workloads.quiet(torch.compile(plain), inputs) if beside else both.eager
    return replace(both, eager=eager, compiled=compiled)


def prepare_amp(case: Case, here: Here) -> Sides:
    """Build the model once; both sides run it under autocast to fp16 (on a CPU bf16, its own half precision)."""
    from experiments import workloads

    # The tolerance is that of PyTorch's TorchBench suite under autocast, and of its Hugging Face suite.
    model, inputs = getattr(workloads, case.workload)(here)
    both = workloads.sides(model, inputs, 1e-3)

    def under_autocast(call: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> object:
            with workloads.autocast(here):
                return call()

        return run

    return replace(both, eager=under_autocast(both.eager), compiled=under_autocast(both.compiled))


def prepare_amp_api(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that runs a small model the way of `torch.cuda.amp`, and (control) of `torch.amp`.

    Without a GPU autocast to CUDA does nothing but say so, which is no deprecation.
    """
    import warnings

    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)

    def deprecations(autocast: Callable[[], Any], scaler: Callable[[], Any]) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scaler()
            with autocast():
                workloads.quiet(model, inputs)()
        deprecated = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
        return [str(one.message).splitlines()[0][:200] for one in caught if issubclass(one.category, deprecated)]

    def observe() -> dict[str, Finding]:
        old = deprecations(torch.cuda.amp.autocast, torch.cuda.amp.GradScaler)
        new = deprecations(lambda: torch.amp.autocast("cuda"), lambda: torch.amp.GradScaler("cuda"))
        evidence: Evidence = {
            "deprecation warnings of torch.cuda.amp": len(old),
            "the same of torch.amp (control)": len(new),
            **{f"warning {number}": text for number, text in enumerate(old, start=1)},
        }
        return {"undeprecated": Finding(holds=not old, evidence=evidence)}

    return observe


def _of_one_mode(mode: str, process: str) -> Case:
    """Return a case of ResNet-50 in a mode: seconds are those of a first call, and of the search for kernels."""
    cold = process in THREE
    search = 210 if cold and mode == "max-autotune" else 0
    return Case(
        experiment="modes",
        axes={"mode": mode, "workload": "resnet50", "precision": "h", "process": process},
        workload="resnet50_settled",
        cache="cold" if cold else "warm",
        follows=None if cold else "modes.max-autotune-resnet50-h-cold-1",
        # Three searches may end in three choices; the first one's is timed, and those that follow it run on it.
        steady=process not in THREE[1:],
        # A CPU has neither CUDA graphs nor Triton kernels to choose from; the search alone takes it a minute.
        scales=("full", "smoke") if mode == "reduce-overhead" else ("full",),
        cost={"full": 30 + search, "smoke": 50 if search else 2},
    )


EXPERIMENTS = (
    Experiment(
        id="extension",
        kind="fact",
        cases=tuple(
            Case(
                experiment="extension",
                axes={"kind": kind},
                workload="gelu_chain",
                # The second of them shares the first one's process at smoke scale, and its build.
                cost={"full": 9, "smoke": 30 if kind == "unregistered" else 3},
            )
            for kind in ("unregistered", "registered")
        ),
        prepare=prepare_extension,
    ),
    Experiment(
        id="limit",
        kind="timing",
        cases=tuple(
            Case(
                experiment="limit",
                axes={"workload": "resnet50", "precision": "d", "process": process},
                workload="resnet50_settled",
                # The article's name for it; newer versions call it recompile_limit, and keep this one as an alias.
                settings={"float32_matmul_precision": "highest", "torch._dynamo.config.cache_size_limit": 1},
                cache="cold",
                steady=False,
                scales=("full",),  # Without a GPU it is judged nowhere, and is section 4's case with another switch.
                cost={"full": 22, "smoke": 30},
            )
            for process in THREE
        ),
        prepare=prepare_limit,
    ),
    Experiment(
        id="batch-sizes",
        kind="fact",
        cases=tuple(
            Case(
                experiment="batch-sizes",
                axes={"dynamic": dynamic},
                workload="resnet50_settled",
                settings={} if dynamic == "default" else {"torch._dynamo.config.cache_size_limit": MOST_GRAPHS},
                cost={"full": 8, "smoke": 15},
            )
            for dynamic in ("true", "false", "default")
        ),
        prepare=prepare_batch_sizes,
    ),
    Experiment(
        id="trainer",
        kind="fact",
        cases=(
            Case(
                experiment="trainer",
                axes={"workload": "gpt2-tiny"},
                workload="gpt2_tiny",
                cost={"full": 7, "smoke": 15},
            ),
        ),
        prepare=prepare_trainer,
    ),
    Experiment(
        id="from-pretrained",
        kind="fact",
        cases=(
            Case(
                experiment="from-pretrained",
                axes={"workload": "gpt2-tiny"},
                workload="gpt2_tiny",
                cost={"full": 4, "smoke": 15},
            ),
        ),
        prepare=prepare_from_pretrained,
    ),
    Experiment(
        id="amp",
        kind="timing",
        cases=tuple(
            Case(
                experiment="amp",
                axes={"workload": workload, "precision": "a"},
                workload={"resnet50": "resnet50_settled", "bert": "bert_base"}[workload],
                passes=("memory", "energy"),
                scales=("full", "smoke") if workload == "bert" else ("full",),
                cost={"full": 72, "smoke": 45},
            )
            for workload in ("resnet50", "bert")
        ),
        prepare=prepare_amp,
    ),
    Experiment(
        id="amp-api",
        kind="fact",
        cases=(
            Case(
                experiment="amp-api",
                axes={"workload": "gelu"},
                workload="gelu_chain",
                cost={"full": 2, "smoke": 3},
            ),
        ),
        prepare=prepare_amp_api,
    ),
    # Last, and in it the second and third search: what costs most is what a budget leaves out first.
    Experiment(
        id="modes",
        kind="timing",
        cases=(
            _of_one_mode("reduce-overhead", THREE[0]),
            _of_one_mode("max-autotune", THREE[0]),
            _of_one_mode("max-autotune", BESIDE_DEFAULT),
            _of_one_mode("max-autotune-no-cudagraphs", "warm-2"),
            *(_of_one_mode("max-autotune", process) for process in THREE[1:]),
        ),
        prepare=prepare_modes,
    ),
)

SECTION = Section(id="questions", number=5, claims=CLAIMS, experiments=EXPERIMENTS)
