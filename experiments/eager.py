"""Section 1: what eager execution costs.

Timed: inference under `no_grad` on both sides by PyTorch's defaults, `torch.compile(model)` with no options: ResNet-50
at three batch sizes beside that of section 4, and an MLP.
Observed: how many kernels a call launches, and in which part of it any of them runs.
"""

from __future__ import annotations

from reportkit.claims import SHOWN, Claim, Each, Metric, Ratio, Spread, Untestable, Where, at_least, at_most
from reportkit.plan import Case, Experiment, Here, Section, Sides

BATCHES = (8, 32, 256)
"""Of ResNet-50; 64 is section 4's, and 1 is section 6's."""


def _table(workload: str) -> Where:
    return Where("table", {"workload": workload, "precision": "d", "process": "cold-1"})


def _in_half(workload: str) -> Where:
    return Where("table", {"workload": workload, "precision": "h", "process": "cold-1"})


def _one_image(workload: str) -> Where:
    return Where("small", {"workload": workload, "process": "cold-1"})


def _launches(where: Where) -> Ratio:
    return Ratio(Metric(where, "launches.eager"), Metric(where, "launches.compiled"))


CLAIMS = (
    Claim(
        id="eager-many-launches",
        quantity=Each(
            {
                "resnet50": _launches(_table("resnet50")),
                "bert": _launches(_table("bert")),
                "mlp": _launches(Where("mlp", {"workload": "mlp"})),
            }
        ),
        bound=at_least(1.3),
        on="cuda",
    ),
    Claim(
        id="eager-idle-gpu",
        quantity=Ratio(Metric(_one_image("mobilenet"), "eager_busy"), Metric(_one_image("mobilenet"), "eager_wall")),
        bound=at_most(0.8),
        on="cuda",
    ),
    Claim(
        id="gain-varies-batch",
        quantity=Spread((_one_image("resnet50"), Where("batches", {}), _table("resnet50"))),
        bound=at_least(1.2),
        on="cuda",
    ),
    Claim(
        id="gain-varies-model",
        quantity=Spread(
            (
                *(_in_half(workload) for workload in ("resnet50", "mobilenet", "vit", "bert", "unet")),
                Where("generate", {"workload": "gpt2", "precision": "h", "process": "cold-1"}),
            )
        ),
        bound=at_least(1.2),
        on="cuda",
    ),
    Claim(id="gain-varies-hardware", quantity=Untestable((_table("resnet50"),)), bound=SHOWN, on="any"),
)


def prepare(case: Case, here: Here) -> Sides:
    """Build the model once; eager and compiled share its weights, and `compiled` is not yet called."""
    from experiments import workloads

    size = {"batch": case.axes["batch"]} if "batch" in case.axes else {}
    model, inputs = getattr(workloads, case.workload)(here, **size)
    return workloads.sides(model, inputs, 1e-4)


EXPERIMENTS = (
    Experiment(
        id="batches",
        kind="timing",
        cases=tuple(
            Case(
                experiment="batches",
                axes={"workload": "resnet50", "batch": batch},
                workload="resnet50_settled",
                # At smoke scale the images are two, whatever the batch: section 4's case, which runs there.
                scales=("full",),
                cost={"full": 25, "smoke": 45},
            )
            for batch in BATCHES
        ),
        prepare=prepare,
    ),
    Experiment(
        id="mlp",
        kind="timing",
        cases=(
            Case(
                experiment="mlp",
                axes={"workload": "mlp", "precision": "d"},
                workload="mlp",
                passes=("launches",),
                cost={"full": 13, "smoke": 25},
            ),
        ),
        prepare=prepare,
    ),
)

SECTION = Section(id="eager", number=1, claims=CLAIMS, experiments=EXPERIMENTS)
