"""Section 5: the five questions.

Timed: nothing.
Observed: whether `from_pretrained` takes a flag that compiles the model (question 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reportkit.claims import TRUE, Claim, Fact, Where
from reportkit.plan import Case, Experiment, Here, Section
from reportkit.records import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

CLAIMS = (
    Claim(
        id="q3-from-pretrained",
        quantity=Fact(Where("from-pretrained", {}), "flag-compiles"),
        bound=TRUE,
        on="any",
    ),
)


def prepare(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Save a small model, and return the call that loads it with the flag and runs it.

    The control loads the same folder without the flag, so that a refusal is known to be the
    flag's and not the folder's; a positive control compiles that model by hand, so that a count
    of zero graphs is known to mean that nothing was compiled.
    """
    import tempfile

    import torch
    import transformers
    from torch._dynamo.utils import counters

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)

    def graphs(call: Callable[..., object]) -> int:
        torch._dynamo.reset()
        counters.clear()
        with torch.no_grad():
            call(*inputs)
        return int(counters["stats"]["unique_graphs"])

    def observe() -> dict[str, Finding]:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            load = type(model).from_pretrained
            plain = load(folder).eval().to(here.device)
            evidence: dict[str, str | bool | int | float | None] = {
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


EXPERIMENT = Experiment(
    id="from-pretrained",
    kind="fact",
    cases=(
        Case(
            experiment="from-pretrained",
            axes={"workload": "gpt2-tiny"},
            workload="gpt2_tiny",
            cost={"full": 20, "smoke": 20},
        ),
    ),
    prepare=prepare,
)

SECTION = Section(id="questions", number=5, claims=CLAIMS, experiments=(EXPERIMENT,))
