"""Section 8: when it really was faster.

Timed: the smallest model there is, in two processes, and a second process of those cases of section 6 that may be
slower when compiled.
Observed: whether Dynamo's own profiler yields a report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.benchmarks import HEADLINE, THREE
from experiments.limits import prepare_moe, prepare_recursive, small, training
from experiments.outlook import VARLEN
from reportkit.claims import (
    TRUE,
    Claim,
    Each,
    Fact,
    GeometricMean,
    Ratio,
    SomeBelow,
    Speedup,
    Where,
    above,
    at_most,
    between,
)
from reportkit.plan import Case, Experiment, Here, Section, Sides
from reportkit.records import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

AGAIN: Mapping[str, str] = {
    "tiny.gelu-d-first": "tiny.gelu-d-second",
    "small.mobilenet-d-cold-1": "small.mobilenet-d-cold-2",
    "recursive.trees-d": "again.trees-d",
    "moe.moe-h": "again.moe-h",
}
"""Cases of inference that may be slower when compiled, each with the case that repeats it in a second process."""


def _good(workload: str) -> Speedup:
    return Speedup(Where("table", {"workload": workload, "process": HEADLINE}))


GOOD = ("resnet50", "vit", "unet")
"""What the article calls good cases, at medium batch and up."""


CLAIMS = (
    *VARLEN,
    Claim(
        id="good-cases",
        quantity=Each({name: _good(name) for name in GOOD}),
        bound=above(1.1),
        on="cuda",
        settings=("d", "t", "h"),
    ),
    Claim(
        id="batch-helps",
        quantity=Ratio(
            Speedup(Where("table", {"workload": "resnet50", "precision": "d", "process": HEADLINE})),
            Speedup(small("resnet50", THREE[0])),
        ),
        bound=above(1.0),
        on="cuda",
    ),
    Claim(
        id="generator-caution",
        quantity=Speedup(training("dcgan", "a")),
        bound=at_most(1.1),
        on="cuda",
    ),
    Claim(id="dynamo-profiler", quantity=Fact(Where("dynamo-profiler", {}), "yields-a-report"), bound=TRUE, on="any"),
    Claim(
        id="gain-30-60",
        quantity=GeometricMean(tuple(_good(name) for name in GOOD)),
        bound=between(1.24, 1.68),
        on="cuda",
        settings=("d", "t", "h"),
    ),
    Claim(
        id="can-be-slower",
        quantity=SomeBelow(
            (
                Where("tiny", {}),
                small("mobilenet", *THREE[:2]),
                Where("recursive", {"workload": "trees"}),
                Where("moe", {"workload": "moe"}),
                Where("again", {}),
            ),
            high=0.97,
            again=AGAIN,
        ),
        bound=TRUE,
        on="cuda",
    ),
)


def prepare_again(case: Case, here: Here) -> Sides:
    """Prepare a case of section 6, once more."""
    return (prepare_moe if case.axes["workload"] == "moe" else prepare_recursive)(case, here)


def prepare_tiny(case: Case, here: Here) -> Sides:
    """Return two linear layers around a GELU, on 8 rows of 64: a compiled call is its guards and little else."""
    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    return workloads.sides(model, inputs, 1e-4)


def prepare_profiler(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that runs a compiled model under `torch._dynamo.profiler`, and a model as it is beside it.

    A report of the compiled one must tell of its graph; one of the other must not, or it tells of nothing.
    """
    import importlib

    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = getattr(workloads, case.workload)(here)

    def observe() -> dict[str, Finding]:
        try:
            profiler = importlib.import_module("torch._dynamo.profiler")
        except ModuleNotFoundError as error:
            return {"yields-a-report": Finding(holds=False, evidence={"torch._dynamo.profiler": str(error)})}

        def report(call: Callable[[], object]) -> Any:
            call()  # What it compiles is not profiled.
            watch = profiler.Profiler()
            with watch.prof:
                call()
            return watch.results()

        counters.reset()
        compiled = torch.compile(model, backend=profiler.fx_insert_profiling)
        told, beside = (report(workloads.quiet(callee, inputs)) for callee in (compiled, model))
        graphs = {name: int(one.captured.graphs) for name, one in (("compiled", told), ("plain", beside))}
        return {
            "yields-a-report": Finding(
                holds=graphs["compiled"] > 0 and graphs["plain"] == 0,
                evidence={
                    "report": str(told).strip(),
                    "calls of graphs that it tells of": graphs["compiled"],
                    "operators that it saw inside them": int(told.captured.operators),
                    "operators that it saw at all": int(told.total.operators),
                    "report of a model that is not compiled (control)": str(beside).strip(),
                },
            )
        }

    return observe


EXPERIMENTS = (
    Experiment(
        id="dynamo-profiler",
        kind="fact",
        cases=(
            Case(
                experiment="dynamo-profiler",
                axes={"workload": "gelu"},
                workload="gelu_chain",
                cost={"full": 3, "smoke": 5},
            ),
        ),
        prepare=prepare_profiler,
    ),
    Experiment(
        id="tiny",
        kind="timing",
        cases=tuple(
            Case(
                experiment="tiny",
                axes={"workload": "gelu", "precision": "d", "process": process},
                workload="gelu_chain",
                scales=("full", "smoke") if process == "first" else ("full",),
                cost={"full": 12, "smoke": 15},
            )
            for process in ("first", "second")
        ),
        prepare=prepare_tiny,
    ),
    Experiment(
        id="again",
        kind="timing",
        cases=tuple(
            Case(
                experiment="again",
                axes={"workload": workload, "precision": precision},
                workload=function,
                scales=("full",),
                cost={"full": cost, "smoke": cost},
            )
            for workload, precision, function, cost in (("trees", "d", "trees", 44), ("moe", "h", "mixture", 12))
        ),
        prepare=prepare_again,
    ),
)

SECTION = Section(id="advice", number=8, claims=CLAIMS, experiments=EXPERIMENTS)
