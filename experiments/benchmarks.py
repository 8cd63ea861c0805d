"""Section 4: typical models in numbers.

Timed: inference under `no_grad` on both sides, forward pass only, `torch.compile(model)` with no
options; and the first compiled calls, importing inductor apart.
Not timed: importing torch, building the model, moving it to the device, the check against fp64.
"""

from __future__ import annotations

from reportkit.claims import Claim, FirstCall, Ratio, Speedup, Spread, Where, above, at_most, between
from reportkit.plan import Case, Experiment, Here, Section, Sides

COLD = ("cold-1", "cold-2", "cold-3", "cold-4", "cold-5")
"""Processes that start on empty caches."""

WARM = ("warm-2", "warm-3", "warm-4", "warm-5", "warm-6")
"""Processes that start on the caches that cold-1 of the same workload and precision left."""

HEADLINE = ("cold-1", "warm-2", "warm-3")
"""The replicates of a headline case, planned before the first sample and judged together."""


def _headline(workload: str) -> Where:
    return Where("table", {"workload": workload, "process": HEADLINE})


def _cold(workload: str) -> Where:
    return Where("table", {"workload": workload, "precision": "d", "process": COLD})


CLAIMS = (
    Claim(
        id="table-resnet50",
        quantity=Speedup(_headline("resnet50")),
        bound=between(1.42, 1.87),
        on="cuda",
        settings=("d", "t"),
    ),
    Claim(
        id="table-bert",
        quantity=Speedup(_headline("bert")),
        bound=between(1.09, 1.44),
        on="cuda",
        settings=("d", "t"),
    ),
    Claim(id="resnet50-stable", quantity=Spread(_cold("resnet50")), bound=at_most(1.05), on="cuda"),
    Claim(
        id="bert-compile-costly",
        quantity=Ratio(FirstCall(_cold("bert")), FirstCall(_cold("resnet50"))),
        bound=above(1.0),
        on="cuda",
    ),
)


def prepare(case: Case, here: Here) -> Sides:
    """Build the model once; eager and compiled share its weights, and `compiled` is not yet called."""
    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    compiled = torch.compile(model)

    def reference() -> object:
        return workloads.quiet(*workloads.double(model, inputs))()

    # PyTorch's own tolerances: 1e-4 in its TorchBench suite, 1e-3 for Hugging Face's models.
    tolerance = {"resnet50": 1e-4, "bert_base": 1e-3}[case.workload]
    return Sides(
        eager=workloads.quiet(model, inputs),
        compiled=workloads.quiet(compiled, inputs),
        reference=reference,
        tolerance=tolerance,
        inputs=inputs,
    )


def _case(workload: str, precision: str, process: str) -> Case:
    cold = process in COLD
    return Case(
        experiment="table",
        axes={"workload": workload, "precision": precision, "process": process},
        workload={"resnet50": "resnet50", "bert": "bert_base"}[workload],
        settings={"float32_matmul_precision": {"d": "highest", "t": "high"}[precision]},
        cache="cold" if cold else "warm",
        follows=None if cold else f"table.{workload}-{precision}-cold-1",
        steady=process in HEADLINE or (workload == "resnet50" and cold),
        passes=("launches", "memory") if process == HEADLINE[0] else (),
        cost={"full": 40 if cold else 30, "smoke": 45 if cold else 25},
    )


EXPERIMENT = Experiment(
    id="table",
    kind="timing",
    cases=(
        *(_case("resnet50", "d", process) for process in (*COLD, *WARM)),
        *(_case("resnet50", "t", process) for process in HEADLINE),
        # First calls are judged over five processes; only the headline's are timed in steady state.
        *(_case("bert", "d", process) for process in (*COLD, *WARM)),
        *(_case("bert", "t", process) for process in HEADLINE),
    ),
    prepare=prepare,
)

SECTION = Section(id="benchmarks", number=4, claims=CLAIMS, experiments=(EXPERIMENT,))
