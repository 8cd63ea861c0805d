"""One case in its process, from its settings to its answer, whatever its workload does."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter  # Bound now: a workload may put something else into `time`.
from typing import TYPE_CHECKING

from reportkit.bench import counters, passes, timing
from reportkit.bench.correctness import alike, compare, follows, kept, on_host, random_state, reset_random, still
from reportkit.bench.messages import Answer, Phase, send
from reportkit.plan import REFUSED, Case, Experiment, Here, Sides, Trap, Unavailable
from reportkit.records import Correctness, Finding, Measurement, Scalar, Status, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from reportkit.bench.messages import Only

LONGEST_TRACEBACK = 6000
"""Characters of a traceback that are kept, from its end."""

FIRST_CALLS = ("first_call", "second_call", "third_call")
"""Calls of the compiled side before what it returned is compared: CUDA graphs are replayed by the third."""

MOST_REASONS = 8
LONGEST_REASON = 160
"""How many reasons of graph breaks a case file holds, and of how many characters."""

STARTED_IN = Path.cwd()
"""Asked once: a workload may go elsewhere, or delete the folder."""


@dataclass(slots=True)
class Progress:
    """What is known of a case so far; an answer can be made of it at any moment."""

    case: str
    descriptor: int
    process: int = field(default_factory=os.getpid)
    phases: dict[str, float] = field(default_factory=dict)
    correctness: Correctness | None = None
    measurements: dict[str, Measurement] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    telemetry: Telemetry = field(default_factory=Telemetry)
    launches: dict[str, int] | None = None
    memory: dict[str, int] | None = None
    energy: dict[str, float] | None = None

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tell the runner that a phase begins, and note how long it lasted."""
        send(self.descriptor, Phase(case=self.case, phase=name))
        start = perf_counter()
        try:
            yield
        finally:
            if os.getpid() != self.process:
                os._exit(0)  # A workload forked, and its twin came back from it: one answers, not two.
            self.phases[name] = round(self.phases.get(name, 0.0) + perf_counter() - start, 3)

    def answer(self, status: Status, reason: str | None = None, trace: str | None = None) -> Answer:
        """Return what is known, with how it ended."""
        return Answer(
            case=self.case,
            status=status,
            reason=reason,
            traceback=trace,
            settings=counters.switches(),
            counters=counters.read(),
            correctness=self.correctness,
            measurements=self.measurements,
            findings=self.findings,
            telemetry=self.telemetry,
            launches=self.launches,
            memory=self.memory,
            energy=self.energy,
            phases=self.phases,
        )


def measure(experiment: Experiment, case: Case, here: Here, progress: Progress, *, only: Only | None = None) -> Answer:
    """Measure one case, or only a part of it; whatever it raises becomes an answer that says so."""
    import torch

    recursion = sys.getrecursionlimit()
    with contextlib.ExitStack() as undo:
        try:
            with progress.phase("settings"):
                counters.reset()
                reset_random()
                torch.set_float32_matmul_precision("highest")
                for name, value in case.settings.items():
                    undo.callback(apply_setting, name, apply_setting(name, value))
            with progress.phase("prepare"):
                prepared = experiment.prepare(case, here)
            _measure(prepared, experiment, case, here, progress, only)
        except Unavailable as error:
            return progress.answer("unavailable", str(error))
        except BaseException as error:  # noqa: BLE001 -- whatever a workload raises, exits included, is this case's result
            _recurse_at_least(recursion)  # To tell of it takes some frames.
            return progress.answer(_failure(error), _reason(error), _trace(error))
        _recurse_at_least(recursion)
        return progress.answer("complete")


def _measure(
    prepared: Sides | Trap | Callable[[], Mapping[str, Finding | Measurement]],
    experiment: Experiment,
    case: Case,
    here: Here,
    progress: Progress,
    only: Only | None,
) -> None:
    compiles = experiment.kind == "timing"
    if isinstance(prepared, Trap):
        _spring(prepared, case, here, progress)
    elif not isinstance(prepared, Sides):
        with progress.phase("observe"):
            seen = prepared()
        progress.findings |= {name: _plain(one) for name, one in seen.items() if isinstance(one, Finding)}
        progress.measurements |= {name: one for name, one in seen.items() if isinstance(one, Measurement)}
    elif only == "first-call":
        _import_inductor(here, progress)
        with progress.phase("first-calls"):
            timing.once(prepared.compiled, here)
    elif only is not None:
        side = only.removeprefix("memory-")
        with progress.phase("memory"):
            progress.memory = passes.peak_memory(side, prepared, here)
    else:
        try:
            within = timing.USUAL if compiles else timing.CONTROL
            _time(prepared, case, here, progress, compiles=compiles, within=within)
        finally:
            progress.findings |= _breaks() if compiles else {}
        for name in (name for name in case.passes if name != "memory" and here.device == "cuda"):
            with progress.phase(name):
                try:
                    observed = passes.launches(prepared, here) if name == "launches" else passes.energy(prepared, here)
                except Exception as error:  # noqa: BLE001 -- the timing stands without it, and the file says so
                    progress.findings[f"{name}-pass"] = Finding(holds=False, evidence={"reason": _reason(error)})
                    continue
            progress.launches = observed.launches or progress.launches
            progress.energy = observed.energy or progress.energy
            progress.measurements |= observed.measurements


def _plain(finding: Finding) -> Finding:
    """Return a finding whose evidence is of the plain types: libraries have strings and numbers of their own kinds."""
    evidence = {
        name: next((kind(value) for kind in (bool, int, float, str) if isinstance(value, kind)), None)
        for name, value in finding.evidence.items()
    }
    return Finding(holds=bool(finding.holds), evidence=evidence)


def _spring(trap: Trap, case: Case, here: Here, progress: Progress) -> None:
    """Let a naive timer fall into a trap, then measure the same sides as any others, and note whether we refused."""
    with progress.phase("naive"):
        progress.measurements |= trap.naive()
    refusal = ""
    try:
        _time(trap.sides, case, here, progress, compiles=trap.compiles, within=timing.CONTROL)
    except timing.Refused as error:  # Anything else is a trap that is broken.
        refusal = str(error)
    if not refusal and progress.correctness is not None and not progress.correctness.right:
        refusal = progress.correctness.detail
    if not refusal and trap.compiles and not counters.unique_graphs():
        refusal = "no graph was captured, so that nothing was compiled"
    progress.findings[REFUSED] = Finding(holds=bool(refusal), evidence={"reason": refusal})


def _recurse_at_least(limit: int) -> None:
    """Undo a lowered recursion limit; inductor raises it when it is imported, and that may stay."""
    sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))


def _failure(error: BaseException) -> Status:
    import torch

    # Torch has no type of its own for it on a CPU; the words are those of c10/core/CPUAllocator.cpp.
    on_cpu = isinstance(error, RuntimeError) and "you tried to allocate" in str(error)
    return "out-of-memory" if on_cpu or isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) else "failed"


def apply_setting(name: str, value: str | bool | int) -> str | bool | int:  # noqa: FBT001 -- a switch may be boolean
    """Set one of torch's switches by its own name; return what it was.

    Raises:
        AttributeError: this version of torch has no such switch.
    """
    import importlib

    import torch

    former: str | bool | int
    if name == "float32_matmul_precision":
        former = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(str(value))
        return former
    module, _, attribute = name.rpartition(".")
    owner = importlib.import_module(module)
    if not hasattr(owner, attribute):
        message = f"this torch ({torch.__version__}) has no setting {name}"
        raise AttributeError(message)
    former = getattr(owner, attribute)
    setattr(owner, attribute, value)
    return former


def _import_inductor(here: Here, progress: Progress) -> None:
    """Pay for the import of inductor, which takes seconds once a process, whatever is compiled."""
    import torch

    with progress.phase("inductor-import"):
        seconds, _ = timing.once(lambda: torch.compile(lambda x: x + 1)(torch.ones(8, device=here.device)), here)
        progress.measurements["inductor_import"] = Measurement(unit="s", samples=[seconds])
    counters.reset()


def _time(sides: Sides, case: Case, here: Here, progress: Progress, *, compiles: bool, within: float) -> None:
    import torch

    if compiles:
        _import_inductor(here, progress)
    firsts: dict[str, Measurement] = {}
    with progress.phase("eager-first-calls"):
        seconds, first, second, draws = _twice(sides.eager, here)
        firsts["eager_first_call"] = Measurement(unit="s", samples=[seconds])
    with progress.phase("first-calls"):
        spent = counters.compile_seconds()
        for name in FIRST_CALLS:
            seconds, output = kept(sides.compiled, here)
            firsts[name] = Measurement(unit="s", samples=[seconds])
            if compiles:
                progress.measurements |= firsts
            if compiles and name == FIRST_CALLS[0]:
                _note_compile_seconds(spent, progress)
    if case.cache == "warm":
        progress.findings |= counters.cache_findings(counters.read())
    # Not before the first calls: what a check compiles would be there already, in memory and in the caches.
    checked = sides.check or sides
    with progress.phase("correctness"), counters.apart():
        timed = (first, output)
        if sides.check is not None:
            _, first, second, draws = _twice(checked.eager, here)
            for _ in FIRST_CALLS:
                _, output = kept(checked.compiled, here)
        progress.correctness = alike(compare(first, second, output, checked, draws=draws), *timed)
        outputs = {"eager": on_host(first), "compiled": on_host(output)}
    del first, second, output, timed
    if here.device == "cuda":
        torch.cuda.empty_cache()
    if case.steady:
        with progress.phase("steady-state"):
            measurements, progress.telemetry = _steady(sides, here, within)
            progress.measurements |= measurements
        with progress.phase("correctness"), counters.apart():
            progress.correctness = still(progress.correctness, outputs, checked, here)
            progress.correctness = follows(progress.correctness, checked, here)


def _twice(eager: Callable[[], Any], here: Here) -> tuple[float, list[Any], list[Any], bool]:
    """Return the seconds of a first call, what it and a second one returned, and whether it draws random numbers."""
    seconds, first = kept(eager, here)
    _, second = kept(eager, here)
    started_from = random_state(here)
    reset_random()
    return seconds, first, second, random_state(here) != started_from


def _note_compile_seconds(before: Mapping[str, float], progress: Progress) -> None:
    """Note what PyTorch's own timers say of the first call; of one that says nothing, that it does not."""
    now = counters.compile_seconds()
    spent = {name: round(now[name] - before.get(name, 0.0), timing.RESOLUTION) for name in now}
    silent = [name for name in counters.TIMERS if not spent.get(name)]
    progress.measurements |= {
        name: Measurement(unit="s", samples=[seconds]) for name, seconds in spent.items() if name not in silent
    }
    if silent:
        # Not zero seconds: nobody has counted them.
        unknown = [name for name in silent if name not in now]
        reason = "nothing was compiled in the first call"
        if unknown and counters.unique_graphs():
            reason = f"this version of PyTorch has no timer known as {' or '.join(unknown)}"
        progress.findings["compile-timers"] = Finding(holds=False, evidence={"reason": reason})


def _breaks() -> dict[str, Finding]:
    """Return whether graphs were broken and by what; nothing where no graph was captured, so that none could break."""
    if not counters.unique_graphs():
        return {}
    told: dict[str, int] = {}
    for words, number in counters.break_reasons().items():
        # The first line names the kind of break; newer versions tell of hints and stacks after it.
        reason = shorten(words.strip().split("\n")[0])[:LONGEST_REASON]
        told[reason] = told.get(reason, 0) + number
    most = sorted(told, key=lambda reason: (-told[reason], reason))
    evidence: dict[str, Scalar | None] = {reason: told[reason] for reason in most[:MOST_REASONS]}
    if most[MOST_REASONS:]:
        evidence["other reasons"] = sum(told[reason] for reason in most[MOST_REASONS:])
    return {"graph-breaks": Finding(holds=bool(told), evidence=evidence)}


def _steady(sides: Sides, here: Here, within: float) -> tuple[dict[str, Measurement], Telemetry]:
    """Time both sides; refuse samples taken under a profiler, or under switches that the calls change."""
    switches = counters.switches()
    _refuse_profiler()
    measured = timing.steady_state(sides, here, counters.unique_graphs, within)
    _refuse_profiler()
    changed = sorted(name for name, value in counters.switches().items() if switches[name] != value)
    if changed:
        message = f"the calls change torch's switches while they are timed: {', '.join(changed)}"
        raise timing.Refused(message)
    return measured


def _refuse_profiler() -> None:
    if counters.profiler_on():
        message = "a profiler is on; it slows what is timed, and each side differently"
        raise timing.Refused(message)


def _reason(error: BaseException) -> str:
    """Return the error's type and its first line that says something."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines or lines[0].startswith("from user code"):
        lines = ["without a message; see the traceback"]
    # Dynamo's wrapper ends its first line with "raised:", and the error itself is on the next.
    return f"{type(error).__name__}: {' '.join(lines[: 2 if lines[0].endswith('raised:') else 1])}"[:500]


def _trace(error: BaseException) -> str:
    return shorten("".join(traceback.format_exception(error)))


def shorten(text: str) -> str:
    """Return the end of `text`, with the paths of this machine made relative."""
    for folder, name in ((str(STARTED_IN), "."), (sys.prefix, "ENV"), (str(Path.home()), "~")):
        text = text.replace(folder.rstrip("/") + "/", name + "/") if folder != "/" else text
    return text[-LONGEST_TRACEBACK:]
