"""Section 4: typical models in numbers.

Timed: inference under `no_grad` on both sides, `torch.compile(model)` with no options; for the UNet four
steps of denoising, for generation the whole of `generate`, for the stream one pass over its sizes; and
the first compiled calls, importing inductor apart.
Not timed: importing torch, building the model, moving it to the device, the check against fp64.

Which processes there are is decided by their price. A cold first call of the UNet or of GPT-2 XL takes about a minute,
one of the other models about ten seconds:

- ResNet-50 and BERT by default settings have five cold processes, because their first calls are compared, and vary
  by a tenth; and three warm ones, of which two are replicates.
- ResNet-50 in fp16 has three cold ones, because section 5 compares first calls there.
- The UNet has one cold process a precision: three first calls, which depend little on it. GPT-2 XL has three, since
  it has one precision; of these only the first is timed in steady state, which takes half a minute.
- The stream's cold processes by default settings are its replicates as well: they cost no more than warm ones.
- Everything else is one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reportkit.claims import (
    SHOWN,
    Claim,
    Each,
    FirstCall,
    Metric,
    Ratio,
    Smallest,
    Speedup,
    Spread,
    Where,
    above,
    at_least,
    at_most,
    below,
    between,
)
from reportkit.plan import Case, Experiment, Here, Section, Sides, Unavailable
from reportkit.records import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reportkit.plan import Pass
    from reportkit.records import Scale

COLD = ("cold-1", "cold-2", "cold-3", "cold-4", "cold-5")
"""Processes that start on empty caches."""

THREE = COLD[:3]
"""As many of them as first calls are judged over at the least."""

WARM = ("warm-2", "warm-3", "warm-4")
"""Processes that start on the caches that cold-1 of the same workload and precision left."""

HEADLINE = ("cold-1", "warm-2", "warm-3")
"""The replicates of a headline case, planned before the first sample and judged together."""


def _headline(workload: str) -> Where:
    return Where("table", {"workload": workload, "process": HEADLINE})


def _cold(workload: str) -> Where:
    return Where("table", {"workload": workload, "precision": "d", "process": COLD})


def _in_half(workload: str) -> Speedup:
    return Speedup(Where("table", {"workload": workload, "precision": "h", "process": HEADLINE}))


def _stream(**axes: str) -> Speedup:
    return Speedup(Where("stream", {**axes, "process": THREE}))


def _generated(workload: str) -> Speedup:
    return Speedup(Where("generate", {"workload": workload, "precision": "h", "process": HEADLINE}))


def _measured(name: str) -> Metric:
    return Metric(Where("token", {}), name)


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
    Claim(id="table-gpt2", quantity=_generated("gpt2"), bound=between(1.02, 1.28), on="cuda"),
    Claim(
        id="table-dynamic-cnn",
        quantity=_stream(workload="cnn-stream"),
        bound=between(1.03, 1.36),
        on="cuda",
        settings=("d", "t"),
    ),
    Claim(
        id="table-sd",
        quantity=Speedup(_headline("unet")),
        bound=between(1.37, 1.82),
        on="cuda",
        settings=("h", "d", "t"),
    ),
    Claim(id="resnet50-stable", quantity=Spread(_cold("resnet50")), bound=at_most(1.05), on="cuda"),
    Claim(
        id="bert-compile-costly",
        quantity=Ratio(FirstCall(_cold("bert")), FirstCall(_cold("resnet50"))),
        bound=above(1.0),
        on="cuda",
    ),
    Claim(
        id="gpt2-memory-bound",
        quantity=Ratio(
            Ratio(_measured("weights"), _measured("token")),
            Ratio(_measured("copied"), _measured("copy")),
        ),
        bound=at_least(0.5),
        on="cuda",
    ),
    Claim(
        id="dynamic-costs",
        quantity=Ratio(
            _stream(workload="cnn-stream", precision="d"),
            _stream(workload="cnn-fixed", precision="d"),
        ),
        bound=below(0.95),
        on="cuda",
    ),
    Claim(
        id="compute-bound-gain-more",
        quantity=Ratio(Smallest((_in_half("resnet50"), _in_half("unet"))), _generated("gpt2")),
        bound=above(1.15),
        on="cuda",
    ),
    Claim(id="llm-gain-limited", quantity=_generated("gpt2"), bound=at_most(1.2), on="cuda"),
    Claim(
        id="llm-static-cache",
        quantity=Each({name: _generated(name) for name in ("llama-static", "llama-graphs")}),
        bound=SHOWN,
        on="cuda",
    ),
)


PRECISIONS = {"d": "highest", "t": "high", "h": "highest"}
"""What each precision makes of fp32 matrix products, which fp16 has none of."""


def prepare(case: Case, here: Here) -> Sides:
    """Build the model once; eager and compiled share its weights, and `compiled` is not yet called."""
    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    if case.axes["precision"] == "h":
        model, inputs = workloads.half(model, inputs, here)
    name = case.axes["workload"]
    # PyTorch's own tolerances: in its TorchBench suite 1e-4, or 1e-3 in half precision; 1e-3 for Hugging Face's models.
    strict = name not in {"bert", "unet"} and case.axes["precision"] != "h"
    run = workloads.denoised if name == "unet" else workloads.quiet
    return workloads.sides(model, inputs, 1e-4 if strict else 1e-3, run=run)


def prepare_stream(case: Case, here: Here) -> Sides:
    """Return one pass over a stream of images, by one model, compiled once and left to its own devices."""
    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    return workloads.sides(model, inputs, 1e-4, run=workloads.one_by_one)


def prepare_generate(case: Case, here: Here) -> Sides:
    """Return generation by one model, and by another one that shares its weights and is compiled.

    The eager side counts graphs around each of its calls, and fails where it finds one: newer model libraries compile
    by themselves. What is compared is the logits of given tokens.
    """
    import copy

    import torch

    from experiments import workloads
    from reportkit.bench import counters

    name = str(case.axes["workload"])
    if name == "llama-graphs" and here.device != "cuda":
        message = "needs a GPU: without one there are no CUDA graphs"
        raise Unavailable(message)
    model, (prompt,) = getattr(workloads, case.workload)(here)
    twin, options = copy.copy(model), {}
    if name == "gpt2-wrapped":
        twin = torch.compile(twin)
    elif name == "gpt2":
        twin.forward = torch.compile(twin.forward)
    else:
        options = {"cache_implementation": "static"}
        twin.forward = torch.compile(twin.forward, mode="reduce-overhead" if name == "llama-graphs" else None)

    generate = workloads.generation(model, prompt)

    def eager() -> object:
        before = counters.unique_graphs()
        tokens = generate()
        captured = counters.unique_graphs() - before
        if captured:
            message = f"{captured} graphs were compiled on the eager side, so that there is nothing to compare with"
            raise RuntimeError(message)
        return tokens

    def reference() -> object:
        return workloads.teacher_forced(workloads.double(model, ())[0], prompt)()

    return Sides(
        eager=eager,
        compiled=workloads.generation(twin, prompt, **options),
        reference=None,
        tolerance=1e-3,
        check=Sides(
            eager=workloads.teacher_forced(model, prompt),
            compiled=workloads.teacher_forced(twin, prompt, **options),
            reference=reference,
            tolerance=1e-3,
        ),
    )


def prepare_token(case: Case, here: Here) -> Callable[[], Mapping[str, Measurement]]:
    """Return the call that measures what a token reads and takes, eagerly, and what a copy moves and takes.

    Every weight is read once a token, but for the table of positions, of which one row is: the table of tokens is
    the output layer as well. A token's time is that of `generate` over its tokens, the prompt's pass among them, which
    yields the first one. A copy reads and writes 1 GiB (smoke: 16 MiB).
    """
    import torch

    from experiments import workloads
    from reportkit.bench import timing

    model, (prompt,) = getattr(workloads, case.workload)(here)
    weights = sum(one.nbytes for one in model.parameters()) - model.transformer.wpe.weight.nbytes
    source = torch.empty((1024 if here.scale == "full" else 16) << 20, dtype=torch.uint8, device=here.device)
    target = torch.empty_like(source)
    generate = workloads.generation(model, prompt)

    def seconds(call: Callable[[], object], warmups: int, number: int, share: int = 1) -> Measurement:
        for _ in range(warmups):
            timing.once(call, here)
        samples = [round(timing.once(call, here)[0] / share, timing.RESOLUTION) for _ in range(number)]
        return Measurement(unit="s", samples=samples, warmups=warmups)

    def observe() -> Mapping[str, Measurement]:
        return {
            "weights": Measurement(unit="B", samples=[float(weights)]),
            "token": seconds(generate, 3, 10, workloads.NEW_TOKENS),
            "copied": Measurement(unit="B", samples=[2.0 * source.nbytes]),
            "copy": seconds(lambda: target.copy_(source), 5, 30),
        }

    return observe


WORKLOADS = {
    "resnet50": "resnet50_settled",
    "bert": "bert_base",
    "vit": "vit_b16",
    "unet": "unet",
    "mobilenet": "mobilenet_v2_many",
    "gpt2": "gpt2_xl",
    "gpt2-wrapped": "gpt2_xl",
    "llama-static": "llama",
    "llama-graphs": "llama",
    "cnn-stream": "cnn_stream",
    "cnn-fixed": "cnn_fixed",
}

PROCESSES: Mapping[tuple[str, str], tuple[str, ...]] = {
    # First what the headline needs, then further first calls: what a budget cuts last comes first. A warm process comes
    # in the same run as the cold one that it follows.
    ("resnet50", "d"): ("cold-1", *WARM),
    ("bert", "d"): ("cold-1", *WARM),
    ("unet", "h"): ("cold-1",),
    ("unet", "d"): ("cold-1",),
    ("unet", "t"): ("cold-1",),
    ("resnet50", "t"): ("cold-1",),
    ("bert", "t"): ("cold-1",),
    ("vit", "d"): ("cold-1",),
    ("vit", "t"): ("cold-1",),
    ("vit", "h"): ("cold-1",),
    ("resnet50", "h"): ("cold-1", "cold-2", "cold-3"),
    ("bert", "h"): ("cold-1",),
    ("mobilenet", "h"): ("cold-1",),
}

FURTHER: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("resnet50", "d"): COLD[1:],
    ("bert", "d"): COLD[1:],
}

START = 5.0
"""Seconds on an H200 until a process has built its model, imported inductor and checked the result."""

FIRST: Mapping[str, tuple[float, float]] = {
    "resnet50": (14, 5),
    "bert": (15, 5),
    "vit": (13, 5),
    "unet": (90, 35),
    "mobilenet": (10, 4),
}
"""Seconds of a first call on an H200, cold and warm."""

STEADY: Mapping[str, float] = {"unet": 24, "mobilenet": 7}
"""Seconds of steady state on an H200, where it is more than 4."""

SMOKE: Mapping[str, float] = {"resnet50": 45, "bert": 45, "vit": 20, "unet": 70, "mobilenet": 40}
"""Seconds of a cold process on two cores."""

LAUNCHES = {("resnet50", "d"): 2, ("bert", "d"): 2, ("resnet50", "h"): 2, ("bert", "h"): 2, ("unet", "h"): 15}
"""Where launches are counted, in cold-1, and the seconds that takes on an H200."""


def _case(workload: str, precision: str, process: str) -> Case:
    cold, headline = process in COLD, process in HEADLINE
    steady = headline or (workload, precision, cold) == ("resnet50", "d", True)
    counted = headline and cold and (workload, precision) in LAUNCHES
    passes: tuple[Pass, ...] = ("launches",) if counted else ()
    scales: tuple[Scale, ...] = ("full",)
    if process in {"cold-1", "warm-2"} and precision == "d":
        # Without a GPU the other precisions are the same thing again, and no claim on any machine rests on ViT.
        scales = ("full", "smoke") if workload != "vit" else ("full",)
    full = START + FIRST[workload][not cold] + steady * STEADY.get(workload, 4)
    return Case(
        experiment="table",
        axes={"workload": workload, "precision": precision, "process": process},
        workload=WORKLOADS[workload],
        settings={"float32_matmul_precision": PRECISIONS[precision]},
        cache="cold" if cold else "warm",
        follows=None if cold else f"table.{workload}-{precision}-cold-1",
        steady=steady,
        scales=scales,
        passes=passes,
        cost={
            "full": full + counted * LAUNCHES.get((workload, precision), 0),
            "smoke": SMOKE[workload] * (1 if cold else 0.6),
        },
    )


TABLE = Experiment(
    id="table",
    kind="timing",
    cases=tuple(
        _case(workload, precision, process)
        for planned in (PROCESSES, FURTHER)
        for (workload, precision), processes in planned.items()
        for process in processes
    ),
    prepare=prepare,
)


SHARING = frozenset({"cnn-fixed", "gpt2-wrapped", "llama-static", "llama-graphs"})
"""Workloads that share a process at smoke scale, since none of their first calls is judged; at full scale none does."""


def _streamed(workload: str, precision: str, process: str, full: float, smoke: float) -> Case:
    return Case(
        experiment="stream",
        axes={"workload": workload, "precision": precision, "process": process},
        workload=WORKLOADS[workload],
        settings={"float32_matmul_precision": PRECISIONS[precision]},
        cache="shared" if workload in SHARING else "cold",
        scales=("full", "smoke") if (workload, precision, process) == ("cnn-stream", "d", "cold-1") else ("full",),
        cost={"full": full, "smoke": smoke},
    )


STREAMS = Experiment(
    id="stream",
    kind="timing",
    cases=(
        _streamed("cnn-stream", "d", "cold-1", 28, 40),
        _streamed("cnn-fixed", "d", "cold-1", 22, 15),
        _streamed("cnn-stream", "t", "cold-1", 28, 40),
        _streamed("cnn-stream", "d", "cold-2", 28, 40),
        _streamed("cnn-stream", "d", "cold-3", 28, 40),
    ),
    prepare=prepare_stream,
)


def _generating(workload: str, process: str, full: float, smoke: float, *, steady: bool = True) -> Case:
    return Case(
        experiment="generate",
        axes={"workload": workload, "precision": "h", "process": process},
        workload=WORKLOADS[workload],
        cache="shared" if workload in SHARING else "cold",
        steady=steady,
        scales=("full", "smoke") if process == "cold-1" and workload != "llama-static" else ("full",),
        cost={"full": full, "smoke": smoke},
    )


GENERATE = Experiment(
    id="generate",
    kind="timing",
    cases=(
        _generating("gpt2", "cold-1", 100, 60),
        _generating("gpt2", "cold-2", 65, 60, steady=False),
        _generating("gpt2", "cold-3", 65, 60, steady=False),
        # Shown with its count of graphs, which is why it is not timed in steady state.
        _generating("gpt2-wrapped", "cold-1", 12, 15, steady=False),
        _generating("llama-static", "cold-1", 72, 40),
        _generating("llama-graphs", "cold-1", 72, 2),
    ),
    prepare=prepare_generate,
)

TOKEN = Experiment(
    id="token",
    kind="fact",
    cases=(
        Case(
            experiment="token",
            axes={"workload": "gpt2", "precision": "h"},
            workload=WORKLOADS["gpt2"],
            cost={"full": 11, "smoke": 8},
        ),
    ),
    prepare=prepare_token,
)

SECTION = Section(id="benchmarks", number=4, claims=CLAIMS, experiments=(TABLE, STREAMS, TOKEN, GENERATE))
