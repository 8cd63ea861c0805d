"""Section 0: can the ruler be trusted? The measuring, held against answers that are known.

Timed: a call against an identical one, where there is no difference; a call repeated 100 times
against one repeated 102, 105 and 120 times, where the ratio is true by construction; and traps, each
by a naive timer that falls into it and then by the ruler.
Observed at the start of every run: how fast this machine launches, copies and runs MobileNetV2
today, so that runs on different days can be told to be alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments import calibration
from reportkit.claims import TRUE, Claim, Each, Fact, Speedup, Where, between
from reportkit.plan import Case, Experiment, Here, Section, Sides, Trap, Unavailable
from reportkit.records import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], Any]

LANE = "2.5"
"""Two controls are measured in every lane, and the rest once a machine: in this one."""

REPEATS = 100
"""Repeats on the shorter side of a known difference."""

REFUSED = ("cached-result", "mutated-inputs", "zero-graphs", "recompiling", "profiler-on")
REFUSED_ON_A_GPU = ("tf32-one-side",)
"""Traps whose samples mean nothing: they must be refused."""

SEEN_THROUGH = ("first-call", "zeros")
SEEN_THROUGH_ON_A_GPU = ("no-synchronisation", "side-stream", "cold-clocks")
"""Traps with the same work on both sides: the ruler must say that there is no difference."""


def _right_size(longer: int) -> tuple[float, float]:
    """Return the bound of a known difference: its true size, give or take one percent."""
    return longer / REPEATS / 1.01, longer / REPEATS * 1.01


def _difference(longer: int, lane: str | None = LANE) -> Claim:
    experiment = "repeats" if lane is None else "repeats-more"
    return Claim(
        id=f"difference-{longer - REPEATS}",
        quantity=Speedup(Where(experiment, {"repeats": longer})),
        bound=between(*_right_size(longer)),
        on="any",
        lane=lane,
    )


def _refused(traps: tuple[str, ...]) -> Each:
    return Each({trap: Fact(Where("traps", {"trap": trap}), "refused") for trap in traps})


def _same(traps: tuple[str, ...]) -> Each:
    return Each({trap: Speedup(Where("traps", {"trap": trap})) for trap in traps})


NO_DIFFERENCE = between(0.99, 1.01)

CLAIMS = (
    Claim(id="no-difference", quantity=Speedup(Where("same", {})), bound=NO_DIFFERENCE, on="any"),
    Claim(
        id="no-difference-small",
        quantity=Each({name: Speedup(Where("same-small", {"workload": name})) for name in ("mobilenet", "gelu-alone")}),
        bound=NO_DIFFERENCE,
        on="any",
        lane=LANE,
    ),
    _difference(102),
    _difference(105, lane=None),
    _difference(120),
    Claim(id="traps-refused", quantity=_refused(REFUSED), bound=TRUE, on="any", lane=LANE),
    Claim(id="traps-refused-gpu", quantity=_refused(REFUSED_ON_A_GPU), bound=TRUE, on="cuda", lane=LANE),
    Claim(id="traps-seen-through", quantity=_same(SEEN_THROUGH), bound=NO_DIFFERENCE, on="any", lane=LANE),
    Claim(
        id="traps-seen-through-gpu",
        quantity=_same(SEEN_THROUGH_ON_A_GPU),
        bound=NO_DIFFERENCE,
        on="cuda",
        lane=LANE,
    ),
)


def prepare_same(case: Case, here: Here) -> Sides:
    """Return the same call twice."""
    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    return Sides(
        eager=workloads.quiet(model, inputs),
        compiled=workloads.quiet(model, inputs),
        reference=None,
        tolerance=1e-3,
        inputs=inputs,
    )


def prepare_repeats(case: Case, here: Here) -> Sides:
    """Return a call repeated as often as the case says, and one repeated 100 times."""
    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    longer = int(case.axes["repeats"])
    return Sides(
        eager=workloads.quiet(model, inputs, longer),
        compiled=workloads.quiet(model, inputs, REPEATS),
        reference=None,
        tolerance=1e-3,
        inputs=inputs,
    )


def prepare_anchors(case: Case, here: Here) -> Callable[[], dict[str, Measurement]]:
    """Return the call that measures what two runs are compared by: a launch, a copy, and MobileNetV2.

    A launch is one of a thousand that are not waited for; a copy moves 256 MiB within the device
    (smoke: 16 MiB); MobileNetV2 runs eagerly at batch 1.
    """
    import torch

    from experiments import workloads
    from reportkit.bench import timing

    model, inputs = getattr(workloads, case.workload)(here)
    one = torch.zeros(1, device=here.device)
    source = torch.empty((256 if here.scale == "full" else 16) << 20, dtype=torch.uint8, device=here.device)
    target = torch.empty_like(source)
    calls: dict[str, tuple[Call, int]] = {
        "launch": (lambda: one.add_(1), 1000),
        "copy": (lambda: target.copy_(source), 20),
        "mobilenet": (workloads.quiet(model, inputs), 10),
    }

    def observe() -> dict[str, Measurement]:
        measured = {}
        for name, (call, number) in calls.items():
            block = _repeated(call, number)
            warmups = 5
            for _ in range(warmups):
                timing.once(block, here)
            samples = [round(timing.once(block, here)[0] / number, timing.RESOLUTION) for _ in range(30)]
            measured[name] = Measurement(unit="s", samples=samples, warmups=warmups, calls=number)
        return measured

    return observe


def _repeated(call: Call, number: int) -> Call:
    def block() -> None:
        for _ in range(number):
            call()

    return block


def _naive(eager: list[float], compiled: list[float]) -> dict[str, Measurement]:
    """Return what a naive timer says, in seconds a call."""
    sides = {"naive_eager": eager, "naive_compiled": compiled}
    return {
        name: Measurement(unit="s", samples=[max(1e-9, round(one, 9)) for one in samples])
        for name, samples in sides.items()
    }


def _stopwatch(call: Call, here: Here | None, calls: int = 20, loops: int = 5) -> list[float]:
    """Return seconds a call of a plain loop; `here` None does not wait for the device."""
    from time import perf_counter

    from reportkit.bench import timing

    seconds = []
    for _ in range(loops):
        start = perf_counter()
        for _ in range(calls):
            call()
        if here is not None:
            timing.synchronize(here)
        seconds.append((perf_counter() - start) / calls)
    return seconds


def prepare_traps(case: Case, here: Here) -> Trap:
    """Return the sides of a trap and the timer that falls into it."""
    from experiments import workloads

    traps = {
        "first-call": _first_call,
        "no-synchronisation": _no_synchronisation,
        "side-stream": _side_stream,
        "cached-result": _cached_result,
        "mutated-inputs": _mutated_inputs,
        "zeros": _zeros,
        "tf32-one-side": _tf32_one_side,
        "zero-graphs": _zero_graphs,
        "recompiling": _recompiling,
        "cold-clocks": _cold_clocks,
        "profiler-on": _profiler_on,
    }
    trap = str(case.axes["trap"])
    if trap in {*REFUSED_ON_A_GPU, *SEEN_THROUGH_ON_A_GPU} and here.device != "cuda":
        message = "needs a GPU: on a CPU a call returns when its work is done, and TF32 and GPU clocks do not exist"
        raise Unavailable(message)
    model, inputs = getattr(workloads, case.workload)(here)
    return traps[trap](model, inputs, here)


def _first_call(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time one call of either side: of the compiled side it is the one that compiles."""
    import torch

    from experiments import workloads

    def many(numbers: torch.Tensor) -> torch.Tensor:
        for _ in range(REPEATS):
            output = model(numbers)
        return output

    # Dynamo alone, which runs the same operators: then there is no difference but the compiling.
    eager, compiled = workloads.quiet(many, inputs), workloads.quiet(torch.compile(many, backend="eager"), inputs)

    def naive() -> dict[str, Measurement]:
        return _naive(_stopwatch(eager, here, 1, 1), _stopwatch(compiled, here, 1, 1))

    return Trap(sides=Sides(eager=eager, compiled=compiled, reference=None, tolerance=1e-3), naive=naive, compiles=True)


def _no_synchronisation(model: Any, inputs: tuple[Any, ...], _here: Here) -> Trap:
    """Time the launching: one side waits for its result by itself, and the other one returns at once."""
    import torch

    from experiments import workloads

    work = workloads.quiet(model, inputs, REPEATS)

    def waits() -> object:
        output = work()
        torch.cuda.synchronize()
        return output

    def naive() -> dict[str, Measurement]:
        work()
        torch.cuda.synchronize()
        # Few enough calls that their launches fit the queue, which else makes the host wait after all.
        compiled = _stopwatch(work, None, 2, 1)
        torch.cuda.synchronize()
        return _naive(_stopwatch(waits, None, 2, 1), compiled)

    return Trap(sides=Sides(eager=waits, compiled=work, reference=None, tolerance=1e-3), naive=naive)


def _side_stream(model: Any, inputs: tuple[Any, ...], _here: Here) -> Trap:
    """Time by events on the current stream work that runs on another one."""
    import torch

    from experiments import workloads

    work = workloads.quiet(model, inputs, REPEATS)
    stream = torch.cuda.Stream()

    def aside() -> object:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            return work()

    def by_events(call: Call) -> list[float]:
        seconds = []
        for _ in range(5):
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            seconds.append(begin.elapsed_time(end) / 1000)
        return seconds

    def naive() -> dict[str, Measurement]:
        work()
        aside()
        return _naive(by_events(work), by_events(aside))

    return Trap(sides=Sides(eager=work, compiled=aside, reference=None, tolerance=1e-3), naive=naive)


def _cached_result(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time a side that computes once and returns the same result ever after."""
    from experiments import workloads

    work = workloads.quiet(model, inputs, REPEATS)
    kept: list[object] = []

    def remembers() -> object:
        if not kept:
            kept.append(work())
        return kept[0]

    def naive() -> dict[str, Measurement]:
        remembers()
        return _naive(_stopwatch(work, here), _stopwatch(remembers, here))

    sides = Sides(eager=work, compiled=remembers, reference=None, tolerance=1e-3, inputs=inputs)
    return Trap(sides=sides, naive=naive)


def _mutated_inputs(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time a side that empties half of what is left of its input, and skips what is empty."""
    import torch

    from experiments import workloads

    left = inputs[0].clone()
    work = workloads.quiet(model, inputs, REPEATS)

    def consumes() -> object:
        with torch.no_grad():
            rows = left.abs().sum(dim=1).nonzero()[:, 0]
            output = torch.zeros_like(left)
            for _ in range(REPEATS):
                output[rows] = model(left[rows])
            left[len(rows) // 2 :] = 0
            return output

    def naive() -> dict[str, Measurement]:
        return _naive(_stopwatch(work, here), _stopwatch(consumes, here))

    return Trap(sides=Sides(eager=work, compiled=consumes, reference=None, tolerance=1e-3), naive=naive)


def _zeros(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time one side on random numbers, and the other on zeros, which cost a GPU less power."""
    import torch

    from experiments import workloads

    work, twin = workloads.quiet(model, inputs, REPEATS), workloads.quiet(model, inputs, REPEATS)
    nothing = workloads.quiet(model, tuple(torch.zeros_like(one) for one in inputs), REPEATS)

    def naive() -> dict[str, Measurement]:
        work()
        return _naive(_stopwatch(work, here), _stopwatch(nothing, here))

    sides = Sides(eager=work, compiled=twin, reference=None, tolerance=1e-3, inputs=inputs)
    return Trap(sides=sides, naive=naive)


def _tf32_one_side(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time one side in fp32, and the other with TF32 switched on for as long as it lasts."""
    import torch

    from experiments import workloads

    # Once: a product of a product would be compared after its errors have grown on both sides.
    work = workloads.quiet(model, inputs)

    def rounds() -> object:
        torch.backends.cuda.matmul.allow_tf32 = True
        output = work()
        torch.backends.cuda.matmul.allow_tf32 = False
        return output

    def reference() -> object:
        twin, doubled = workloads.double(model, inputs)
        return workloads.quiet(twin, doubled)()

    def naive() -> dict[str, Measurement]:
        work()
        rounds()
        return _naive(_stopwatch(work, here), _stopwatch(rounds, here))

    return Trap(sides=Sides(eager=work, compiled=rounds, reference=reference, tolerance=1e-4), naive=naive)


def _zero_graphs(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Count breaks where one inside a loop made Dynamo skip the whole frame: there are none, and no graph either."""
    import torch
    from torch._dynamo.utils import counters

    from experiments import workloads

    def loop(numbers: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            numbers = model(numbers)
            torch._dynamo.graph_break()
        return numbers

    eager, compiled = workloads.quiet(loop, inputs), workloads.quiet(torch.compile(loop, backend="eager"), inputs)

    def naive() -> dict[str, Measurement]:
        counters.clear()
        compiled()
        breaks = Measurement(unit="1", samples=[float(sum(counters["graph_break"].values()))])
        return _naive(_stopwatch(eager, here), _stopwatch(compiled, here)) | {"naive_graph_breaks": breaks}

    return Trap(sides=Sides(eager=eager, compiled=compiled, reference=None, tolerance=1e-3), naive=naive, compiles=True)


def _recompiling(_model: Any, _inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time a side that meets another length at every call, and compiles for it."""
    import torch

    numbers = torch.randn(1 << 16, device=here.device)
    length = {"eager": 2, "compiled": 2}

    def total(some: torch.Tensor) -> torch.Tensor:
        return (some * 0).sum()

    compiled = torch.compile(total, backend="eager", dynamic=False)

    def longer(side: str, function: Callable[[torch.Tensor], torch.Tensor]) -> Call:
        def call() -> object:
            length[side] += 1
            with torch.no_grad():
                return function(numbers[: length[side]])

        return call

    sides = Sides(eager=longer("eager", total), compiled=longer("compiled", compiled), reference=None, tolerance=1e-3)

    def naive() -> dict[str, Measurement]:
        return _naive(_stopwatch(sides.eager, here, 5), _stopwatch(sides.compiled, here, 5))

    return Trap(sides=sides, naive=naive, compiles=True)


def _cold_clocks(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time first one side and then the other on a GPU that was idle: the first one finds its clocks low."""
    from time import sleep

    from experiments import workloads

    work, twin = workloads.quiet(model, inputs, REPEATS), workloads.quiet(model, inputs, REPEATS)

    def naive() -> dict[str, Measurement]:
        work()
        sleep(5)
        return _naive(_stopwatch(work, here, 1, 5), _stopwatch(twin, here, 1, 5))

    sides = Sides(eager=work, compiled=twin, reference=None, tolerance=1e-3, inputs=inputs)
    return Trap(sides=sides, naive=naive)


def _profiler_on(model: Any, inputs: tuple[Any, ...], here: Here) -> Trap:
    """Time one side before a profiler is switched on, and the other after; it is left on."""
    from torch.autograd.profiler import profile

    from experiments import workloads

    work, twin = workloads.quiet(model, inputs, REPEATS), workloads.quiet(model, inputs, REPEATS)

    def naive() -> dict[str, Measurement]:
        work()
        before = _stopwatch(work, here, 2)
        profile().__enter__()
        return _naive(before, _stopwatch(twin, here, 2))

    return Trap(sides=Sides(eager=work, compiled=twin, reference=None, tolerance=1e-3), naive=naive)


def _trap(trap: str) -> Case:
    # Where one side launches with more ado than the other, or waits, only long kernels hide it.
    workload = {
        "first-call": "long_product",
        "no-synchronisation": "long_product",
        "side-stream": "long_product",
        "tf32-one-side": "product_in_single",
        "profiler-on": "gelu",
        "recompiling": "gelu",
    }.get(trap, "product")
    compiling = trap in {"first-call", "zero-graphs", "recompiling"}
    limits = ("cache_size_limit", "accumulated_cache_size_limit")
    return Case(
        experiment="traps",
        axes={"trap": trap},
        workload=workload,
        cache="cold",
        settings={f"torch._dynamo.config.{name}": 100_000 for name in limits} if trap == "recompiling" else {},
        cost={"full": 12, "smoke": 20 if compiling else 10},
    )


def _control(experiment: str, axes: dict[str, str | int], workload: str) -> Case:
    return Case(experiment=experiment, axes=axes, workload=workload, cost={"full": 6, "smoke": 12})


EXPERIMENTS = (
    Experiment(
        id="anchors",
        kind="fact",
        cases=(
            Case(
                experiment="anchors",
                axes={"anchor": "all"},
                workload="mobilenet_v2",
                cost={"full": 5, "smoke": 10},
            ),
        ),
        prepare=prepare_anchors,
    ),
    Experiment(
        id="same",
        kind="control",
        cases=(_control("same", {"workload": "resnet50"}, "resnet50_half"),),
        prepare=prepare_same,
    ),
    Experiment(
        id="repeats", kind="control", cases=(_control("repeats", {"repeats": 105}, "product"),), prepare=prepare_repeats
    ),
    Experiment(
        id="same-small",
        kind="control",
        cases=(
            _control("same-small", {"workload": "mobilenet"}, "mobilenet_v2"),
            _control("same-small", {"workload": "gelu-alone"}, "gelu"),
        ),
        prepare=prepare_same,
        lane=LANE,
    ),
    Experiment(
        id="repeats-more",
        kind="control",
        cases=tuple(_control("repeats-more", {"repeats": longer}, "product") for longer in (102, 120)),
        prepare=prepare_repeats,
        lane=LANE,
    ),
    Experiment(
        id="traps",
        kind="trap",
        cases=tuple(_trap(trap) for trap in (*SEEN_THROUGH, *SEEN_THROUGH_ON_A_GPU, *REFUSED, *REFUSED_ON_A_GPU)),
        prepare=prepare_traps,
        lane=LANE,
    ),
)

SECTION = Section(id="controls", number=0, claims=CLAIMS, experiments=(*EXPERIMENTS, *calibration.EXPERIMENTS))
