"""Steady state: eager and compiled in pairs of blocks, until the ratio is known well enough.

One sample is the mean time of a call in a block of calls that lasts at least 2 ms. A pair is a
block of either side, one after the other and as long as each other; pairs alternate their order
(ABBA), so that a drift falls on both sides alike. How long to go on is decided at 30, 60, 120 ...
pairs by the width of the interval and the budget alone, never by where a bound lies. Source of the
parts: PyTorch's benchmarks/dynamo/common.py (interleaving), NVBench (clock test), pyperf and
torch.utils.benchmark (blocks calibrated by time).
"""

from __future__ import annotations

import gc
import math
from dataclasses import dataclass, field
from time import perf_counter  # Bound now: a workload may put something else into `time`.
from typing import TYPE_CHECKING, Any

import numpy as np

from reportkit.bench.environment import nvml_device
from reportkit.records import MOST_SAMPLES, Measurement, Telemetry
from reportkit.statistics import precise_enough

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from reportkit.plan import Here, Sides
    from reportkit.records import Scale

BLOCK = 0.002
"""Seconds that a block lasts at least."""

LEAD_BELOW = 0.02
"""On a GPU a call that is not timed goes before a block of calls shorter than so many seconds. After a wait the GPU is
idle until the host has launched something, which in use happens once; the lead keeps that out of the sample."""

FIRST_LOOK = 30
"""Pairs before the interval is looked at for the first time; then at twice as many, and so on."""

USUAL, CONTROL = 0.01, 0.005
"""Half the width of the ratio's interval at which timing stops; that of a control, whose bound is 1 % to either side
of a ratio known by construction, must be well inside it. Which it is depends on the kind of case alone."""

SLOW_CLOCK = 0.75
"""A sample taken under this share of the busy clock drops its pair."""

RESOLUTION = 9
"""Decimals of a second that are kept: clocks here tick in nanoseconds or coarser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a scale warms up and measures, in seconds."""

    warm_up: float
    budget: float


PACES: dict[Scale, Pace] = {"full": Pace(warm_up=1.0, budget=10.0), "smoke": Pace(warm_up=0.3, budget=6.0)}

FEWEST_WARM_UPS = 5
"""Calls of a side that are thrown away at the least, those that find the block's length aside."""


UNDISTURBED = 3
"""Blocks of which the fastest tells how long a call takes when nothing disturbs it."""

UNSEEN, AROUND = 0.02, 1e-4
"""Share of a block's wall time that GPU events may miss, and seconds besides, for recording and waiting around the
block, beside those of launching the lead; more, and work ran where they don't look."""


class Refused(Exception):  # noqa: N818 -- it says what happened to the case
    """Something went on while steady state was timed that leaves the samples without a meaning."""


class Recompiled(Refused):
    """A graph was compiled while steady state was being timed."""


class Gpu:
    """The GPU's own counters through NVML, or the reason why there are none."""

    def __init__(self, here: Here) -> None:
        """Open NVML where a GPU is measured."""
        self.missing: str | None = None
        self._handle: Any = None
        if here.device != "cuda":
            self.missing = "measured on a CPU: GPU events, clocks, temperature and power do not exist"
            return
        import pynvml

        try:
            self._handle = nvml_device()
            pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM)
        except pynvml.NVMLError as error:
            self.missing, self._handle = f"NVML did not answer: {error}", None

    def clock(self) -> float | None:
        """Return the SM clock in Hz."""
        if self._handle is None:
            return None
        import pynvml

        return float(pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM)) * 1e6

    def energy(self) -> float | None:
        """Return the joules that the GPU has used since its driver was loaded, or None where it does not count them."""
        if self._handle is None:
            return None
        import pynvml

        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        except pynvml.NVMLError:
            return None  # Boards before Volta have no such counter.

    def state(self) -> tuple[list[float], list[float], list[str]]:
        """Return temperature (degrees Celsius), power (watts), and reasons for a lowered clock, as of now."""
        if self._handle is None:
            return [], [], []
        import pynvml

        temperature = pynvml.nvmlDeviceGetTemperature(self._handle, pynvml.NVML_TEMPERATURE_GPU)
        try:
            power = [pynvml.nvmlDeviceGetPowerUsage(self._handle) / 1000]
        except pynvml.NVMLError:
            power = []  # Some boards do not report it; an empty list says so.
        reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)
        named = {
            "hardware slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
            "hardware thermal slowdown": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
            "software thermal slowdown": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
            "power cap": pynvml.nvmlClocksThrottleReasonSwPowerCap,
        }
        return [float(temperature)], power, [name for name, bit in named.items() if reasons & bit]


def synchronize(here: Here) -> None:
    """Wait until the device has done all that it was given."""
    if here.device == "cuda":
        import torch

        torch.cuda.synchronize()


def once(call: Callable[[], Any], here: Here) -> tuple[float, Any]:
    """Return the wall seconds of one call, the device's work included, and what it returned."""
    synchronize(here)
    start = perf_counter()
    output = call()
    synchronize(here)
    return round(perf_counter() - start, RESOLUTION), output


@dataclass(frozen=True, slots=True)
class Block:
    """Mean seconds a call in a block: by the wall clock, and by GPU events (None without a GPU)."""

    wall: float
    gpu: float | None
    aside: float = 0.0
    """Seconds a call that the wall clock may have counted before the events saw anything: the host's for launching the
    lead, which are most of them gone where the GPU has more to do than the host, and for recording and waiting."""

    @property
    def whole(self) -> bool:
        """Whether the events saw all the work: what runs on another stream they do not see."""
        return self.gpu is None or self.gpu >= (1 - UNSEEN) * self.wall - self.aside


def _block(call: Callable[[], Any], calls: int, here: Here, leads: int = 0) -> Block:
    """Time a block of calls; `leads` calls go before those that the events see, and the wall clock counts them in."""
    if here.device != "cuda":
        start = perf_counter()
        for _ in range(calls):
            call()
        return Block((perf_counter() - start) / calls, None)
    import torch

    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start = perf_counter()
    for _ in range(leads):
        call()
    launching = perf_counter() - start if leads else 0.0
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    wall = perf_counter() - start
    return Block(wall / (leads + calls), begin.elapsed_time(end) / 1000 / calls, (launching + AROUND) / (leads + calls))


@dataclass(slots=True)
class Steady:
    """Samples of steady state, side by side: element i of every list belongs to pair i."""

    calls: dict[str, int]
    warmups: dict[str, int]
    leads: int = 0
    """Calls that go before those of a block and are not timed by GPU events."""
    within: float = USUAL
    """Half the width of the ratio's interval, as a share, at which it is known well enough."""
    wall: dict[str, list[float]] = field(default_factory=lambda: {"eager": [], "compiled": []})
    gpu: dict[str, list[float]] = field(default_factory=lambda: {"eager": [], "compiled": []})
    clock: list[float] = field(default_factory=list)
    busy_clock: float | None = None
    dropped: int = 0
    throttled: set[str] = field(default_factory=set)
    unseen: int = 0
    """Pairs with a block of which GPU events missed a part: they see the current stream alone."""

    @property
    def whole(self) -> bool:
        """Whether GPU events saw the work of most pairs."""
        return 2 * self.unseen <= self.pairs

    @property
    def pairs(self) -> int:
        """How many pairs count so far."""
        return len(self.wall["eager"])

    @property
    def judged(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Seconds a call of eager and of compiled, by the clock that is judged: GPU events where they are whole."""
        times = self.gpu if self.gpu["eager"] and self.whole else self.wall
        return np.asarray(times["eager"]), np.asarray(times["compiled"])

    def precise(self) -> bool:
        """Whether the interval of the ratio is narrow enough to stop."""
        return precise_enough(*self.judged, self.within)

    def measurements(self) -> dict[str, Measurement]:
        """Return the samples as a case file holds them."""
        return {
            f"{side}_{clock}": Measurement(
                unit="s",
                samples=[round(sample, RESOLUTION) for sample in times[side]],
                warmups=self.warmups[side],
                calls=self.calls[side],
            )
            for clock, times in (("wall", self.wall), ("gpu", self.gpu))
            for side in ("eager", "compiled")
            if times[side] and (clock == "wall" or self.whole)
        }


def steady_state(
    sides: Sides, here: Here, graphs: Callable[[], int], within: float = USUAL
) -> tuple[dict[str, Measurement], Telemetry]:
    """Time both sides in steady state until the ratio is known `within` that share; `graphs` counts compiled graphs.

    Raises:
        Recompiled: the count of graphs rose after the warm-up.
    """
    pace = PACES[here.scale]
    gpu = Gpu(here)
    calls: dict[str, Callable[[], Any]] = {"eager": sides.eager, "compiled": sides.compiled}
    warmups = {side: warm_up(call, here, pace.warm_up) for side, call in calls.items()}
    numbers, leads = calls_a_block(calls, here)
    steady = Steady(calls=numbers, leads=leads, within=within, warmups=warmups, busy_clock=gpu.clock())
    before, temperature, power = graphs(), *gpu.state()[:2]
    gc.collect()

    def unchanged() -> None:
        if graphs() != before:
            message = f"{graphs() - before} graphs were compiled while steady state was timed"
            raise Recompiled(message)

    take_pairs(steady, calls, here, gpu, pace.budget, unchanged)
    after = gpu.state()
    missing = gpu.missing
    if steady.gpu["eager"] and not steady.whole:
        missing = "GPU events are left out: they saw less than the wall clock, as where work runs on another stream"
    return steady.measurements(), Telemetry(
        clock=steady.clock,
        busy_clock=steady.busy_clock,
        dropped_pairs=steady.dropped,
        temperature=[*temperature, *after[0]],
        power=[*power, *after[1]],
        throttled=sorted(steady.throttled | set(after[2])),
        missing=missing,
    )


def warm_up(call: Callable[[], Any], here: Here, seconds: float) -> int:
    """Call for at least that long and often enough; return how many calls were made."""
    calls, start = 0, perf_counter()
    # What lies between calls counts as well: a call of nanoseconds would else take a minute to warm up.
    while calls < FEWEST_WARM_UPS or perf_counter() - start < seconds:
        once(call, here)
        calls += 1
    return calls


def calls_a_block(
    calls: Mapping[str, Callable[[], Any]], here: Here, block: float = BLOCK
) -> tuple[dict[str, int], int]:
    """Return how many calls of each side last `block` seconds, by trial, and how many go before them untimed.

    Both blocks are as long as each other, as nearly as whole calls allow: what takes the processor away hits the
    longer block more often, and would pass for a difference. For the same reason both have a lead or neither.
    """
    fitting, seconds = {}, {}
    for side, call in calls.items():
        fitting[side], seconds[side] = _fitting(call, here, block)
    length = max(fitting[side] * seconds[side] for side in calls)
    leads = int(here.device == "cuda" and min(seconds.values()) < LEAD_BELOW)
    return {side: max(1, round(length / seconds[side])) for side in calls}, leads


def _fitting(call: Callable[[], Any], here: Here, block: float) -> tuple[int, float]:
    """Return how many calls last at least `block` seconds when nothing disturbs them, and the seconds of one."""
    number = 1
    while True:
        took = _block(call, number, here).wall * number
        if took >= block:
            took = min(took, *(_block(call, number, here).wall * number for _ in range(UNDISTURBED - 1)))
        if took >= block:
            return number, took / number
        number = max(number + 1, math.ceil(1.1 * number * block / took))


def take_pairs(
    steady: Steady,
    calls: dict[str, Callable[[], Any]],
    here: Here,
    gpu: Gpu,
    budget: float,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Add pairs of blocks to `steady` until the ratio is known well enough or `budget` seconds are spent.

    `check` is called after each pair; what it raises ends the timing.
    """
    collecting = gc.isenabled()
    gc.disable()  # A collection inside a block would be charged to whichever side it falls on.
    try:
        _take_pairs(steady, calls, here, gpu, budget, check)
    finally:
        if collecting:
            gc.enable()


def _take_pairs(
    steady: Steady,
    calls: dict[str, Callable[[], Any]],
    here: Here,
    gpu: Gpu,
    budget: float,
    check: Callable[[], None],
) -> None:
    order = ("eager", "compiled")
    look = FIRST_LOOK
    start = perf_counter()
    while steady.pairs < MOST_SAMPLES:
        spent = perf_counter() - start
        # The first look is owed to every case; only a case ten times slower than planned misses it.
        if spent > budget and (steady.pairs >= FIRST_LOOK or spent > 10 * budget):
            return
        blocks: dict[str, Block] = {}
        clocks: list[float] = []
        for side in order:
            blocks[side] = _block(calls[side], steady.calls[side], here, steady.leads)
            clock = gpu.clock()
            if clock is not None:
                clocks.append(clock)
        order = (order[1], order[0])
        check()
        if clocks and steady.busy_clock and min(clocks) < SLOW_CLOCK * steady.busy_clock:
            steady.dropped += 1
            steady.throttled |= set(gpu.state()[2])
            continue
        steady.clock += [min(clocks)] if clocks else []
        steady.unseen += not all(block.whole for block in blocks.values())
        for side, block in blocks.items():
            steady.wall[side].append(block.wall)
            if block.gpu is not None:
                steady.gpu[side].append(block.gpu)
        if steady.pairs == look:
            if steady.precise():
                return
            look *= 2
