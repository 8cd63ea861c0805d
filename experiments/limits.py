"""Section 6: limits, or which models do not fly.

Timed: whole training steps (forward, loss, backward and AdamW's step together, the step outside the compiled part),
and the forward part alone; small models at batch 1, with their first calls; a layer of routed experts beside a
dense one of equal work; recursive and recurrent networks; a chain of elementwise operators around one that was
written by hand, around the same maths in PyTorch, and around a user's Triton kernel.
Observed: whether routed experts can be captured whole.
Not timed: building models and data, the checks, and the first pass over the trees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments.benchmarks import THREE
from reportkit.claims import (
    TRUE,
    Claim,
    Each,
    Fact,
    FirstCall,
    Ratio,
    Side,
    Speedup,
    Sum,
    Where,
    above,
    at_most,
    below,
    between,
)
from reportkit.plan import Case, Experiment, Here, Section, Sides, Unavailable
from reportkit.records import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Cast = Callable[[], Any]

SCALE = {"a": 1024.0, "d": 1.0}
"""What a loss is multiplied by before its backward pass: in fp16 gradients would vanish. AdamW's steps don't change."""

CALLS = 1000
"""Calls over which a small model must earn back what compiling it cost."""


def training(workload: str, precision: str | None = None) -> Where:
    """Return the training step of a workload, in the precision that is named or in the claim's setting."""
    return Where("training", {"workload": workload, **({"precision": precision} if precision else {})})


def small(workload: str, *processes: str) -> Where:
    """Return processes of a model at batch 1."""
    return Where("small", {"workload": workload, "precision": "d", "process": processes})


def _earned(workload: str) -> Ratio:
    """Return eager's time for all calls over compiled's, the cold first call included."""
    steady = small(workload, THREE[0])
    return Ratio(
        Sum(((CALLS, Side(steady, "eager")),)),
        Sum(((1, FirstCall(small(workload, *THREE))), (CALLS, Side(steady, "compiled")))),
    )


def _speedup(experiment: str, workload: str) -> Speedup:
    return Speedup(Where(experiment, {"workload": workload}))


CLAIMS = (
    Claim(
        id="inference-over-training",
        quantity=Each(
            {
                name: Ratio(Speedup(Where("amp", {"workload": name, "precision": "a"})), Speedup(training(name, "a")))
                for name in ("resnet50", "bert")
            }
        ),
        bound=above(1.05),
        on="cuda",
    ),
    Claim(
        id="training-range",
        quantity=Each({name: Speedup(training(name)) for name in ("resnet50", "bert")}),
        bound=between(0.95, 1.26),
        on="cuda",
        settings=("a", "d"),
    ),
    Claim(
        id="backward-is-bottleneck",
        quantity=Ratio(
            Speedup(Where("forward", {"workload": "bert", "precision": "a"})), Speedup(training("bert", "a"))
        ),
        bound=above(1.05),
        on="cuda",
    ),
    Claim(
        id="small-model-not-worth",
        quantity=Each({name: _earned(name) for name in ("mobilenet", "resnet50")}),
        bound=below(1.0),
        on="cuda",
    ),
    Claim(id="moe-breaks", quantity=Fact(Where("moe-capture", {}), "breaks"), bound=TRUE, on="any"),
    Claim(
        id="moe-gains-less",
        quantity=Ratio(_speedup("moe", "moe"), _speedup("moe", "dense")),
        bound=below(0.95),
        on="cuda",
    ),
    Claim(
        id="recursive-gains-less",
        quantity=Each({name: _speedup("recursive", name) for name in ("trees", "lstm")}),
        bound=at_most(1.05),
        on="cuda",
    ),
    Claim(
        id="custom-kernel-unfused",
        quantity=Ratio(_speedup("operator", "opaque"), _speedup("operator", "same-maths")),
        bound=below(0.95),
        on="cuda",
    ),
)


def _cast(case: Case, here: Here) -> Cast:
    """Return what makes the context of a forward pass: autocast, or none."""
    import contextlib

    from experiments import workloads

    return (lambda: workloads.autocast(here)) if case.axes["precision"] == "a" else contextlib.nullcontext


def losses(parts: Mapping[str, Callable[..., Any]], inputs: tuple[Any, ...], cast: Cast) -> Iterator[tuple[str, Any]]:
    """Yield each loss of a training step with the name of the part that learns from it.

    A loss is yielded outside of `cast`, where backward passes belong.
    """
    if "learner" in parts:
        with cast():
            loss, _ = parts["learner"](*inputs)
        yield "learner", loss
        return
    images, noise, real, made = inputs
    with cast():
        fakes = parts["generator"](noise)
        loss = parts["critic"](images, real) + parts["critic"](fakes.detach(), made)
    yield "critic", loss
    with cast():
        loss = parts["critic"](fakes, real)
    yield "generator", loss


def gradients(
    model: Any, parts: Mapping[str, Callable[..., Any]], inputs: tuple[Any, ...], cast: Cast, scale: float
) -> list[Any]:
    """Return each loss of a step, and of its scaled gradient the logarithm of the size, and the direction.

    Nothing learns. The direction is made of numbers around 1, so that a tolerance means the same for every model.
    """
    import torch

    found = []
    for name, loss in losses(parts, inputs, cast):
        (loss * scale).backward()
        gradient = torch.cat([parameter.grad.flatten() for parameter in model[name].parameters()])
        model.zero_grad()
        size = gradient.square().mean().sqrt()
        found += [loss.detach(), size.log(), gradient / size]
    return found


def prepare_training(case: Case, here: Here) -> Sides:
    """Build one model and one optimizer a part, which both sides train in turn.

    One state for both is the same state; and a second model would lie in the memory of a side that is measured for
    it. What is checked are losses and gradients at the weights that the model began with, whatever it has learned.
    """
    import contextlib
    import copy

    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    cast, scale = _cast(case, here), SCALE[str(case.axes["precision"])]
    compiled = {name: torch.compile(part) for name, part in model.items()}
    # Small steps: thousands of them on one batch must neither end in numbers that are none, nor in zeros.
    optimizers = {name: torch.optim.AdamW(part.parameters(), lr=1e-6) for name, part in model.items()}
    beginning = {name: tensor.cpu().clone() for name, tensor in model.state_dict().items()}

    def step(parts: Mapping[str, Callable[..., Any]]) -> list[Any]:
        seen = []
        for name, loss in losses(parts, inputs, cast):
            (loss * scale).backward()
            optimizers[name].step()
            model.zero_grad()
            seen.append(loss.detach())
        return seen

    @contextlib.contextmanager
    def begun() -> Iterator[None]:
        now = copy.deepcopy(model.state_dict())
        model.load_state_dict(beginning)
        try:
            # Dropout draws numbers, and nothing depends on them: a check that leaves the generators as they were
            # is compared as any other is.
            with torch.random.fork_rng(range(torch.cuda.device_count())):
                yield
        finally:
            model.load_state_dict(now)

    def checked(parts: Mapping[str, Callable[..., Any]]) -> list[Any]:
        with begun():
            return gradients(model, parts, inputs, cast, scale)

    def reference() -> list[Any]:
        with begun():
            twin, exact = workloads.double(model, inputs)
        return gradients(twin, dict(twin.items()), exact, contextlib.nullcontext, scale)

    eager = dict(model.items())
    floating = tuple(tensor for tensor in inputs if tensor.is_floating_point() and tensor.dim() > 1)
    return Sides(
        eager=lambda: step(eager),
        compiled=lambda: step(compiled),
        reference=None,
        tolerance=_tolerance(case),
        check=Sides(
            eager=lambda: checked(eager),
            compiled=lambda: checked(compiled),
            reference=reference,
            tolerance=_tolerance(case),
            inputs=floating,
        ),
    )


def _tolerance(case: Case) -> float:
    # PyTorch's own for training: 1e-3, and 1e-2 under autocast.
    return {"d": 1e-3, "a": 1e-2}[str(case.axes["precision"])]


def prepare_forward(case: Case, here: Here) -> Sides:
    """Return the forward part of a training step: the loss with all that a backward pass would need, and none made."""
    import contextlib

    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    cast = _cast(case, here)

    def forward(part: Callable[..., Any]) -> Callable[[], Any]:
        def call() -> Any:
            with cast():
                loss, logits = part(*inputs)
            return loss.detach(), logits.detach()

        return call

    def undrawn(call: Callable[[], Any]) -> Callable[[], Any]:
        def checked() -> Any:
            with torch.random.fork_rng(range(torch.cuda.device_count())):
                return call()

        return checked

    def reference() -> Any:
        twin, exact = workloads.double(model, inputs)
        with contextlib.ExitStack() as drawn:
            drawn.enter_context(torch.random.fork_rng(range(torch.cuda.device_count())))
            loss, logits = twin["learner"](*exact)
        return loss.detach(), logits.detach()

    eager, compiled = forward(model["learner"]), forward(torch.compile(model["learner"]))
    return Sides(
        eager=eager,
        compiled=compiled,
        reference=None,
        tolerance=_tolerance(case),
        check=Sides(eager=undrawn(eager), compiled=undrawn(compiled), reference=reference, tolerance=_tolerance(case)),
    )


def prepare_small(case: Case, here: Here) -> Sides:
    """Return a model at batch 1."""
    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here, batch=1)
    return workloads.sides(model, inputs, 1e-4)


def prepare_moe(case: Case, here: Here) -> Sides:
    """Return the routed layer or the dense one.

    Two scores that nearly tie may swap places by rounding, and another expert's result is no rounding error: what is
    checked of the routed layer is its result on the experts that eager chose.
    """
    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    if case.axes["workload"] != "moe":
        return workloads.sides(model, inputs, 1e-3)
    compiled = torch.compile(model)

    def routed(layer: Callable[..., Any], tokens: Any) -> Callable[[], Any]:
        def call() -> Any:
            with torch.no_grad():
                return layer(tokens, model.choose(*inputs))

        return call

    def reference() -> Any:
        twin, (exact,) = workloads.double(model, inputs)
        return routed(twin, exact)()

    return Sides(
        eager=workloads.quiet(model, inputs),
        compiled=workloads.quiet(compiled, inputs),
        reference=None,
        tolerance=1e-3,
        check=Sides(
            eager=routed(model, *inputs),
            compiled=routed(compiled, *inputs),
            reference=reference,
            tolerance=1e-3,
            inputs=inputs,
        ),
    )


def prepare_moe_capture(case: Case, here: Here) -> Callable[[], dict[str, Finding]]:
    """Return the call that asks for the routed layer as one graph; the dense layer beside it must be one."""
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = getattr(workloads, case.workload)(here)

    def observe() -> dict[str, Finding]:
        beside, control = workloads.whole(*workloads.dense(here))
        if beside != 1:
            message = f"the dense layer is {control} with fullgraph=True, so that nothing is known of the other"
            raise RuntimeError(message)
        graphs, found = workloads.whole(model, inputs)
        counters.reset()
        workloads.quiet(torch.compile(model, backend="aot_eager"), inputs)()
        counts = counters.read()
        return {
            "breaks": Finding(
                holds=graphs != 1,
                evidence={
                    "error with fullgraph=True": found,
                    "graphs by default": counts["unique_graphs"],
                    "operators in them": counts["calls_captured"],
                    "dense layer with fullgraph=True (control)": control,
                },
            )
        }

    return observe


def prepare_recursive(case: Case, here: Here) -> Sides:
    """Return one pass over the trees, each given to the compiled network as it comes; or the recurrent network's call.

    The first compiled call is the pass in which trees of new forms are compiled, until Dynamo's limit.
    """
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    if case.axes["workload"] != "trees":
        return workloads.sides(model, inputs, 1e-4)

    def reference() -> Any:
        twin, _ = workloads.double(model, ())
        return workloads.one_by_one(twin, tree_map(lambda leaf: leaf.double(), inputs))()

    return Sides(
        eager=workloads.one_by_one(model, inputs),
        compiled=workloads.one_by_one(torch.compile(model), inputs),
        reference=reference,
        tolerance=1e-4,
        inputs=tuple(tree_leaves(inputs)),
    )


def prepare_operator(case: Case, here: Here) -> Sides:
    """Return the chain around one of three GELUs; all are held against PyTorch's in fp64."""
    from experiments import workloads

    kind = case.axes["workload"]
    if kind == "triton" and here.device != "cuda":
        message = "needs a GPU: a user's Triton kernel does not run on a CPU"
        raise Unavailable(message)
    gelu = _gelu(str(kind), here)
    model, inputs = workloads.chain(here, gelu) if gelu else workloads.chain(here)
    plain, _ = workloads.chain(here)

    def reference() -> Any:
        return workloads.quiet(plain, tuple(tensor.double() for tensor in inputs))()

    return replace(workloads.sides(model, inputs, 1e-4), reference=reference)


def _gelu(kind: str, here: Here) -> Callable[[Any], Any] | None:
    """Return the scaled GELU that is not PyTorch's own, ready to run; None for PyTorch's own."""
    from experiments import workloads

    if kind == "triton":
        from experiments import triton_gelu

        return lambda numbers: triton_gelu.scaled_gelu(numbers, workloads.GELU_SCALE)
    if kind == "opaque":
        from experiments import opaque

        opaque.launcher(here.device)
        operator = opaque.scaled_gelu()
        return lambda numbers: operator(numbers, workloads.GELU_SCALE)
    return None


def _case(experiment: str, workload: str, precision: str, full: float, smoke: float, **fields: Any) -> Case:
    function = {
        "resnet50": "resnet50_training",
        "bert": "bert_training",
        "dcgan": "dcgan_training",
        "moe": "mixture",
        "opaque": "chain",
        "same-maths": "chain",
        "triton": "chain",
    }.get(workload, workload)
    return Case(
        experiment=experiment,
        axes={"workload": workload, "precision": precision},
        workload=function,
        cost={"full": full, "smoke": smoke},
        **fields,
    )


def _small(workload: str, process: str) -> Case:
    first = process == THREE[0]
    mobilenet = workload == "mobilenet"
    return Case(
        experiment="small",
        axes={"workload": workload, "precision": "d", "process": process},
        workload="mobilenet_v2" if mobilenet else "resnet50_settled",
        cache="cold",
        # Of the smaller one a second process is timed: section 8 asks whether a slow case is slow again.
        steady=first or (mobilenet and process == THREE[1]),
        scales=("full", "smoke") if first and mobilenet else ("full",),
        passes=("launches",) if first and mobilenet else (),
        cost={"full": 22 if first else 14, "smoke": 40},
    )


EXPERIMENTS = (
    Experiment(
        id="training",
        kind="timing",
        cases=(
            # Generating code for a backward pass takes a CPU a minute: at smoke scale there is one of each kind.
            _case("training", "resnet50", "a", 88, 90, passes=("memory",), scales=("full",)),
            _case("training", "resnet50", "d", 66, 90, scales=("full",)),
            _case("training", "bert", "a", 88, 40, passes=("memory",), scales=("full",)),
            _case("training", "bert", "d", 62, 40),
            _case("training", "dcgan", "a", 44, 60, scales=("full",)),
        ),
        prepare=prepare_training,
    ),
    Experiment(
        id="forward",
        kind="timing",
        cases=(_case("forward", "bert", "a", 46, 35, scales=("full",)),),
        prepare=prepare_forward,
    ),
    Experiment(
        id="small",
        kind="timing",
        cases=tuple(_small(workload, process) for workload in ("mobilenet", "resnet50") for process in THREE),
        prepare=prepare_small,
    ),
    Experiment(
        id="moe",
        kind="timing",
        cases=tuple(_case("moe", workload, "h", 12, 15) for workload in ("moe", "dense")),
        prepare=prepare_moe,
    ),
    Experiment(
        id="moe-capture",
        kind="fact",
        cases=(
            Case(
                experiment="moe-capture",
                axes={"workload": "moe"},
                workload="mixture",
                cost={"full": 3, "smoke": 8},
            ),
        ),
        prepare=prepare_moe_capture,
    ),
    Experiment(
        id="recursive",
        kind="timing",
        cases=(_case("recursive", "trees", "d", 44, 30), _case("recursive", "lstm", "d", 12, 12)),
        prepare=prepare_recursive,
    ),
    Experiment(
        id="operator",
        kind="timing",
        cases=tuple(_case("operator", kind, "d", 10, 12) for kind in ("opaque", "same-maths", "triton")),
        prepare=prepare_operator,
    ),
)

SECTION = Section(id="limits", number=6, claims=CLAIMS, experiments=EXPERIMENTS)
