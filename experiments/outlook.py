"""Section 7: the outlook.

Timed: one pass of BERT over six lengths, eagerly and compiled, once for any length and once for each of them.
Observed: for which kinds of device inductor has code generators, and whether this version compiles a model that
nobody asked it to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reportkit.claims import SHOWN, TRUE, Claim, Fact, Metric, Ratio, Speedup, Sum, Untestable, Where, at_least, below
from reportkit.plan import Case, Experiment, Here, Section, Sides
from reportkit.records import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

OLDEST, NEWEST = "2.4", "2.15"
"""The lanes between which recompiles have grown rarer, or not."""


def _graphs(lane: str | None = None) -> Sum:
    """Return how many graphs a lane needs by default for lengths, batch sizes and image sizes that vary."""
    return Sum(
        (
            (1, Metric(Where("lengths-range", {"dynamic": "default", "positions": 1024}, lane), "graphs")),
            (1, Metric(Where("batch-sizes", {"dynamic": "default"}, lane), "graphs")),
            (
                1,
                Metric(
                    Where("stream", {"workload": "cnn-stream", "precision": "d", "process": "cold-1"}, lane),
                    "counters.unique_graphs",
                ),
            ),
        )
    )


def _lengths(shapes: str) -> Speedup:
    return Speedup(Where("lengths", {"shapes": shapes}))


DYNAMIC_OVER_EACH = Ratio(_lengths("dynamic"), _lengths("each"))
"""What is left of the speedup where one graph serves every length."""

CLAIMS = (
    Claim(id="pytorch-3-default", quantity=Untestable((Where("defaults", {}),)), bound=SHOWN, on="any"),
    Claim(
        id="shapes-generalised",
        quantity=Ratio(_graphs(), _graphs(OLDEST)),
        bound=below(1.0),
        on="any",
        lane=NEWEST,
    ),
    Claim(id="dynamic-near-static", quantity=DYNAMIC_OVER_EACH, bound=at_least(0.9), on="cuda"),
    Claim(id="other-hardware", quantity=Fact(Where("backends", {}), "mps"), bound=TRUE, on="any"),
)

VARLEN = (Claim(id="varlen-caution", quantity=DYNAMIC_OVER_EACH, bound=below(0.95), on="cuda"),)
"""The same number, of which section 8 claims something else."""


def prepare_lengths(case: Case, here: Here) -> Sides:
    """Return one pass over six lengths: by one graph for all of them, or by one for each."""
    import torch

    from experiments import workloads

    model, tokens = getattr(workloads, case.workload)(here)
    model, tokens = workloads.half(model, tokens, here)
    compiled = torch.compile(model, dynamic=case.axes["shapes"] == "dynamic")

    return workloads.sides(model, tokens, 1e-3, compiled=compiled, run=workloads.one_by_one)


def prepare_backends(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:  # noqa: ARG001 -- one case
    """Return the call that has inductor list what it generates code for, as it does before it first compiles.

    That the list has the device which is measured here shows that it is the list.
    """
    import torch
    from torch._inductor.codegen import common
    from torch._inductor.graph import GraphLowering

    def generator(device: str) -> str | None:
        found = common.get_scheduling_for_device(device)
        # Several are chosen between when code is generated, by a function of no name.
        return None if found is None else getattr(found, "__name__", str(found)).replace("<lambda>", "one of several")

    def observe() -> dict[str, Finding]:
        if hasattr(common, "init_backend_registration"):
            common.init_backend_registration()
        else:
            # A method in 2.4, and one that asks nothing of its object.
            GraphLowering.init_backend_registration(None)
        if generator(here.device) is None:
            message = f"inductor does not list {here.device}, which it compiles for: its list is somewhere else"
            raise RuntimeError(message)
        mps = generator("mps")
        return {
            "mps": Finding(
                holds=mps is not None,
                evidence={
                    "mps": mps,
                    "xpu": generator("xpu"),
                    f"{here.device} (control)": generator(here.device),
                    "all devices listed": ", ".join(sorted(common.device_codegens)),
                    "CUDA that this torch is built for; ROCm has a build of its own": torch.version.cuda,
                },
            )
        }

    return observe


def prepare_defaults(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that runs a model as it is and counts the graphs; the control is compiled by hand."""
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = getattr(workloads, case.workload)(here)

    def graphs(callee: Callable[..., object]) -> int:
        counters.reset()
        workloads.quiet(callee, inputs, repeats=3)()
        return counters.unique_graphs()

    def observe() -> dict[str, Finding]:
        plain, by_hand = graphs(model), graphs(torch.compile(model, backend="aot_eager"))
        if not by_hand:
            message = "a model that was compiled by hand shows no graph either: the count says nothing"
            raise RuntimeError(message)
        return {
            "compiles-by-default": Finding(
                holds=plain > 0,
                evidence={
                    "torch": str(torch.__version__),
                    "graphs of a model called as it is": plain,
                    "graphs of the same, compiled by hand (control)": by_hand,
                },
            )
        }

    return observe


def _fact(name: str, smoke: float) -> Case:
    return Case(experiment=name, axes={"workload": "gelu"}, workload="gelu_chain", cost={"full": 4, "smoke": smoke})


LENGTHS = Experiment(
    id="lengths",
    kind="timing",
    cases=tuple(
        Case(
            experiment="lengths",
            axes={"workload": "bert", "precision": "h", "shapes": shapes},
            workload="bert_lengths",
            # The default of 8 graphs would do; what is compared should not hang on it.
            settings={"torch._dynamo.config.cache_size_limit": 64},
            scales=("full", "smoke") if shapes == "dynamic" else ("full",),
            cost={"full": full, "smoke": smoke},
        )
        for shapes, full, smoke in (("dynamic", 35, 25), ("each", 60, 40))
    ),
    prepare=prepare_lengths,
)

EXPERIMENTS = (
    LENGTHS,
    Experiment(id="backends", kind="fact", cases=(_fact("backends", 10),), prepare=prepare_backends),
    Experiment(id="defaults", kind="fact", cases=(_fact("defaults", 5),), prepare=prepare_defaults),
)

SECTION = Section(id="outlook", number=7, claims=CLAIMS, experiments=EXPERIMENTS)
