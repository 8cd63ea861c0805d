"""Section 7: what comes next.

Timed: one pass of BERT over six lengths, eagerly and compiled, once for any length and once for each of them.
"""

from __future__ import annotations

from reportkit.claims import Claim, Ratio, Speedup, Where, at_least, below
from reportkit.plan import Case, Experiment, Here, Section, Sides


def _lengths(shapes: str) -> Speedup:
    return Speedup(Where("lengths", {"shapes": shapes}))


DYNAMIC_OVER_EACH = Ratio(_lengths("dynamic"), _lengths("each"))
"""What is left of the speedup where one graph serves every length."""

CLAIMS = (Claim(id="dynamic-near-static", quantity=DYNAMIC_OVER_EACH, bound=at_least(0.9), on="cuda"),)

VARLEN = (Claim(id="varlen-caution", quantity=DYNAMIC_OVER_EACH, bound=below(0.95), on="cuda"),)
"""The same number, of which section 8 claims something else."""


def prepare_lengths(case: Case, here: Here) -> Sides:
    """Return one pass over six lengths: by one graph for all of them, or by one for each."""
    import torch

    from experiments import workloads

    model, tokens = getattr(workloads, case.workload)(here)
    model, tokens = workloads.half(model, tokens, here)
    compiled = torch.compile(model, dynamic=case.axes["shapes"] == "dynamic")

    def reference() -> object:
        return workloads.one_by_one(*workloads.double(model, tokens))()

    return Sides(
        eager=workloads.one_by_one(model, tokens),
        compiled=workloads.one_by_one(compiled, tokens),
        reference=reference,
        tolerance=1e-3,
    )


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
            cost={"full": full, "smoke": smoke},
        )
        for shapes, full, smoke in (("dynamic", 35, 25), ("each", 60, 40))
    ),
    prepare=prepare_lengths,
)

SECTION = Section(id="outlook", number=7, claims=CLAIMS, experiments=(LENGTHS,))
