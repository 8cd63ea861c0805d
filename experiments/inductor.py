"""Section 3: what Inductor does.

Timed: nothing of its own; `fusion-fewer-launches` rests on the launches of section 4's cases.
Observed: what Inductor times before it chooses, from its own record; and how many graphs serve a range of lengths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reportkit.claims import TRUE, Claim, Each, Fact, Metric, Ratio, Where, at_most
from reportkit.plan import Case, Experiment, Here, Section, Unavailable
from reportkit.records import Finding, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.bench.inductor import Seen
    from reportkit.records import Scalar

LENGTHS = tuple(range(128, 512 + 1, 32))
"""The article's range, in tokens."""


def _launches(workload: str) -> Ratio:
    where = Where("table", {"workload": workload, "precision": "h", "process": "cold-1"})
    return Ratio(Metric(where, "launches.compiled"), Metric(where, "launches.eager"))


def _autotune(what: str, finding: str) -> Fact:
    return Fact(Where("autotune", {"what": what}), finding)


def _graphs(dynamic: str) -> Metric:
    return Metric(Where("lengths-range", {"dynamic": dynamic, "positions": 1024}), "graphs")


CLAIMS = (
    Claim(
        id="fusion-fewer-launches",
        quantity=Each({name: _launches(name) for name in ("resnet50", "bert", "unet")}),
        bound=at_most(0.8),
        on="cuda",
    ),
    Claim(id="autotune-attention", quantity=_autotune("attention", "several-candidates-timed"), bound=TRUE, on="cuda"),
    Claim(
        id="autotune-normalization",
        quantity=_autotune("normalization", "several-candidates-timed"),
        bound=TRUE,
        on="cuda",
    ),
    Claim(id="autotune-picks-fastest", quantity=_autotune("matmul", "fastest-is-used"), bound=TRUE, on="cuda"),
    Claim(id="range-kernel", quantity=_graphs("default"), bound=at_most(2), on="any"),
    Claim(
        id="range-fewer-recompiles",
        quantity=Ratio(_graphs("default"), _graphs("false")),
        bound=at_most(0.5),
        on="any",
    ),
)


def prepare_autotune(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that compiles one operation and reads what Inductor timed for it.

    Each has a control of the record itself: something that this version is known to time several candidates for.
    """
    import torch

    if here.device != "cuda":
        message = "needs a GPU: on a CPU Inductor generates C++, and has no Triton candidates to time"
        raise Unavailable(message)
    from experiments import workloads
    from reportkit.bench import inductor

    def seen(model: Callable[..., Any], inputs: workloads.Inputs, mode: str | None = None) -> Seen:
        one = inductor.observe(workloads.quiet(torch.compile(model, mode=mode), inputs))
        if one.missing:
            message = f"torch {torch.__version__} has no record of what it times: there is no {', '.join(one.missing)}"
            raise Unavailable(message)
        return one

    observe = {"attention": observe_attention, "normalization": observe_normalization, "matmul": observe_matmul}
    return lambda: observe[str(case.axes["what"])](seen, here)


def observe_attention(seen: Callable[..., Seen], here: Here) -> dict[str, Finding]:
    """Count the Triton candidates timed for attention; kernels that only lay out its inputs are none of them."""
    from experiments import workloads

    control = seen(*workloads.narrow_product(here), "max-autotune-no-cudagraphs").timed()
    _require(control > 1, f"for a matrix product under max-autotune {control} Triton candidates were timed")
    default, tuned = (seen(*workloads.attention(here), mode) for mode in (None, "max-autotune"))
    evidence: dict[str, Scalar | None] = {
        "Triton candidates timed in default mode": default.timed(pointwise=False),
        "the same under max-autotune": tuned.timed(pointwise=False),
        "code in default mode": default.lines("attention"),
        "for a matrix product under max-autotune (control)": control,
    }
    try:
        from torch.nn.attention.flex_attention import flex_attention
    except ImportError:
        evidence["FlexAttention"] = "this version has none"
    else:
        _, inputs = workloads.attention(here)
        for mode in (None, "max-autotune-no-cudagraphs"):
            flex = seen(flex_attention, inputs, mode)
            evidence[f"for FlexAttention, {mode or 'default'}"] = flex.timed(pointwise=False)
    return {"several-candidates-timed": Finding(holds=default.timed(pointwise=False) > 1, evidence=evidence)}


def observe_normalization(seen: Callable[..., Seen], here: Here) -> dict[str, Finding]:
    """Count the configurations timed for layer norm, at BERT's width and at a small one."""
    from experiments import workloads

    control = seen(*workloads.gelu(here)).timed()
    _require(control > 1, f"for a GELU {control} configurations were timed")
    default = seen(*workloads.layer_norm(here))
    evidence: dict[str, Scalar | None] = {
        "Triton candidates timed in default mode": default.timed(),
        "the same under max-autotune": seen(*workloads.layer_norm(here), "max-autotune").timed(),
        "the same at width 64 in default mode": seen(*workloads.layer_norm(here, width=64)).timed(),
        "kernels": ", ".join(default.kernels("triton")),
        "for a GELU in default mode (control)": control,
    }
    return {"several-candidates-timed": Finding(holds=default.timed() > 1, evidence=evidence)}


def observe_matmul(seen: Callable[..., Seen], here: Here) -> dict[str, Finding]:
    """Hold the candidate that the generated code uses against the times of all that were tried."""
    from experiments import workloads

    contests = [c for c in seen(*workloads.narrow_product(here), "max-autotune").contests if c.kind == "algorithms"]
    contest = max(contests, key=lambda one: len(one.seconds), default=None)
    if contest is None or len(contest.seconds) < 2:  # noqa: PLR2004 -- two are a contest
        message = f"{len(contest.seconds) if contest else 0} candidates were timed, so that there was nothing to choose"
        raise RuntimeError(message)
    _require(
        0 < len(contest.used) < len(contest.seconds),
        f"{len(contest.used)} of {len(contest.seconds)} candidates look like the one that the generated code uses",
    )
    order = sorted(contest.seconds, key=contest.seconds.__getitem__)
    evidence: dict[str, Scalar | None] = {
        "candidates timed": len(contest.seconds),
        "Triton candidates among them": len(contest.triton),
        "used": "; ".join(sorted(contest.used)),
        "fastest": contest.fastest,
        "its seconds": contest.seconds[order[0]],
        "second": order[1],
        "the second's seconds": contest.seconds[order[1]],
        "slowest, seconds": contest.seconds[order[-1]],
    }
    return {"fastest-is-used": Finding(holds=contest.fastest in contest.used, evidence=evidence)}


def _require(held: bool, found: str) -> None:  # noqa: FBT001 -- it is the one thing that is asked
    if not held:
        message = f"a control failed, so that nothing is claimed: {found}"
        raise RuntimeError(message)


def prepare_lengths(case: Case, here: Here) -> Callable[[], dict[str, Measurement]]:
    """Return the call that counts the graphs for BERT over the range of lengths, the shortest first.

    The model is as small as at smoke scale in any case: what Dynamo guards on has no regard to depth or width.
    """
    from experiments import workloads

    model, calls = workloads.bert_positions(replace(here, scale="smoke"), int(case.axes["positions"]), LENGTHS)
    options = {"default": {}, "false": {"dynamic": False}}[str(case.axes["dynamic"])]

    def observe() -> dict[str, Measurement]:
        return {"graphs": Measurement(unit="1", samples=[workloads.graphs_for(model, calls, **options)])}

    return observe


def _lengths(dynamic: str, positions: int) -> Case:
    # Without dynamic shapes each length is a graph, and the default limit is 8.
    limit = {"torch._dynamo.config.cache_size_limit": 64} if dynamic == "false" else {}
    return Case(
        experiment="lengths-range",
        axes={"dynamic": dynamic, "positions": positions},
        workload="bert_positions",
        settings=limit,
        cost={"full": 8 if dynamic == "default" else 20, "smoke": 8 if dynamic == "default" else 18},
    )


EXPERIMENTS = (
    Experiment(
        id="autotune",
        kind="fact",
        cases=tuple(
            Case(
                experiment="autotune",
                axes={"what": what},
                workload=workload,
                cost={"full": cost, "smoke": 2},
            )
            for what, workload, cost in (
                ("attention", "attention", 20),
                ("normalization", "layer_norm", 8),
                ("matmul", "narrow_product", 12),
            )
        ),
        prepare=prepare_autotune,
    ),
    Experiment(
        id="lengths-range",
        kind="fact",
        # With 512 positions the last length is the whole table of them, which is an edge case.
        cases=(_lengths("default", 1024), _lengths("default", 512), _lengths("false", 1024)),
        prepare=prepare_lengths,
    ),
)

SECTION = Section(id="inductor", number=3, claims=CLAIMS, experiments=EXPERIMENTS)
