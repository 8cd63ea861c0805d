"""What inductor says that it did: the code that it generated, what it timed to choose between, and what then ran.

PyTorch has no public record of its autotuning. It times in two private places, and both are watched for the length
of a call. `AlgorithmSelectorCache.log_results` is handed the times of whole algorithms: library calls and templates.
`CachingAutotuner.bench` times one configuration of a generated Triton kernel. A version that lacks one of them is
not taken to have timed nothing: `Seen.missing` says what it has no record of.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reportkit.plan import Here

ALGORITHMS = ("torch._inductor.select_algorithm", "AlgorithmSelectorCache", "log_results")
CONFIGURATIONS = ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner", "bench")
"""Where inductor times: module, class, method; the same in 2.4, 2.5 and 2.15."""

GRAPH_LAUNCH = "cudaGraphLaunch"
"""The call of CUDA's runtime that replays a graph, as the profiler names it."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Candidates for one piece of work that were timed against each other."""

    work: str
    """The operation, such as `mm`, or the name of the generated kernel."""
    kind: Literal["algorithms", "configurations"]
    seconds: dict[str, float] = field(default_factory=dict)
    """The time of each candidate, in the order of timing. One that could not run has none, and is left out."""
    triton: set[str] = field(default_factory=set)
    """Those of them that are Triton's; the others are calls of a library, or C++."""
    used: set[str] = field(default_factory=set)
    """Those that can be found in what was built: one where all is well, none where this can't tell."""

    @property
    def fastest(self) -> str:
        """The candidate of the shortest time. Raises ValueError where none could run."""
        return min(self.seconds, key=self.seconds.__getitem__)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one call and the compiling in it."""

    sources: tuple[str, ...]
    """The code generated for each graph."""
    contests: tuple[Contest, ...]
    missing: tuple[str, ...]
    """Records that this version of PyTorch does not have."""

    def timed(self, *, pointwise: bool = True) -> int:
        """Return the most Triton candidates that were timed for one piece of work, `pointwise` kernels left out or not.

        A kernel of one configuration is not timed, so that it counts as none.
        """
        rest = [one for one in self.contests if pointwise or not one.work.startswith("triton_poi")]
        return max((len(contest.triton) for contest in rest), default=0)

    def kernels(self, language: Literal["triton", "cpp"]) -> list[str]:
        """Return the names of the kernels that the generated code defines in a language."""
        # In C++ there are two ways to call a kernel; which one is the version's business.
        made = re.compile(rf"^\s*(\w+) = async_compile\.{language}(?:_pybinding)?\(", re.MULTILINE)
        return [name for source in self.sources for name in made.findall(source)]

    def lines(self, word: str, most: int = 3) -> str:
        """Return the first lines of the generated code that hold a word and call something; empty for none."""
        lines = [line.strip() for source in self.sources for line in source.splitlines()]
        found = [line for line in lines if word in line and "(" in line and not line.startswith("#")]
        return "\n".join(line[:200] for line in found[:most])


def observe(call: Callable[[], object]) -> Seen:
    """Make a call that compiles, on empty caches and with Dynamo reset, and return what inductor did for it.

    Generated kernels get names of their own, and C++ ones tell the profiler when they run: otherwise `ran` could not
    know them again.
    """
    from torch._inductor import config
    from torch._inductor.utils import fresh_inductor_cache, run_and_get_code

    algorithms: list[tuple[str, dict[Any, float]]] = []
    kernels: dict[int, tuple[Any, Contest]] = {}

    def note_algorithms(_result: object, name: str, _inputs: object, times: dict[Any, float], *_more: object) -> None:
        algorithms.append((name, dict(times)))

    def note_configuration(milliseconds: float, tuner: Any, launcher: Any, *_more: object) -> None:
        _, contest = kernels.setdefault(id(tuner), (tuner, Contest(tuner.fn.__name__, "configurations")))
        if math.isfinite(milliseconds):
            contest.seconds[str(launcher.config)] = milliseconds / 1e3
            contest.triton.add(str(launcher.config))

    with contextlib.ExitStack() as stack:
        stack.enter_context(fresh_inductor_cache())
        stack.enter_context(config.patch({"triton.unique_kernel_names": True, "cpp.enable_kernel_profile": True}))
        watched = {
            place: stack.enter_context(_watched(*place, note))
            for place, note in ((ALGORITHMS, note_algorithms), (CONFIGURATIONS, note_configuration))
        }
        _, sources = run_and_get_code(call)
    for tuner, contest in kernels.values():
        if len(tuner.launchers) == 1:
            contest.used.add(str(tuner.launchers[0].config))
    return Seen(
        sources=tuple(sources),
        contests=(*(_contest(*one, sources) for one in algorithms), *(contest for _, contest in kernels.values())),
        missing=tuple(".".join(place) for place, there in watched.items() if not there),
    )


@contextlib.contextmanager
def _watched(module: str, owner: str, method: str, note: Callable[..., None]) -> Iterator[bool]:
    """Tell `note` of each result of a method, with the method's arguments; False where there is no such method."""
    try:
        place = getattr(importlib.import_module(module), owner)
        former = inspect.getattr_static(place, method)
    except (ImportError, AttributeError):
        yield False
        return
    bare = getattr(place, method)

    @functools.wraps(bare)
    def watching(*arguments: Any, **named: Any) -> Any:
        result = bare(*arguments, **named)
        note(result, *arguments)
        return result

    setattr(place, method, staticmethod(watching) if isinstance(former, staticmethod) else watching)
    try:
        yield True
    finally:
        setattr(place, method, former)


def _contest(work: str, times: dict[Any, float], sources: list[str]) -> Contest:
    """Return the contest of algorithms: their times, and which of them the generated code calls."""
    templates = [_defined(kernel) for source in sources for kernel in _templates(source)]
    contest = Contest(work, "algorithms")
    for choice, milliseconds in times.items():
        if not math.isfinite(milliseconds):
            continue
        described = _described(choice)
        name = f"{choice.name} ({', '.join(f'{key}={value}' for key, value in described.items())})".removesuffix(" ()")
        contest.seconds[name] = milliseconds / 1e3
        if type(choice).__name__.startswith("Triton"):
            contest.triton.add(name)
            if any(_agree(described, template) for template in templates):
                contest.used.add(name)
        elif any(re.search(rf"\.{re.escape(choice.name)}(\.default)?\(", source) for source in sources):
            contest.used.add(name)
    return contest


def _described(choice: Any) -> dict[str, str]:
    """Return the constants of a template's candidate, which it has only as a text: `BLOCK_M=64, num_warps=4`."""
    # Renamed after 2.5. Library calls have neither, or something else there.
    text = getattr(choice, "description", "") or getattr(choice, "debug_extra", "")
    return {key: value.strip("'\"") for key, value in re.findall(r"(\w+)=([^,]+)", str(text))}


def _templates(source: str) -> list[str]:
    """Return the parts of generated code that are a Triton template filled in."""
    return [part for part in source.split("async_compile.triton(")[1:] if "@triton_heuristics.template(" in part]


def _defined(kernel: str) -> dict[str, str]:
    """Return the constants that a filled-in template was built with."""
    found = re.findall(r"^\s*(\w+) : tl\.constexpr = (\S+)", kernel, re.MULTILINE)
    return dict(found) | dict(re.findall(r"^\s*(num_stages|num_warps)=(\d+)", kernel, re.MULTILINE))


def _agree(described: dict[str, str], defined: dict[str, str]) -> bool:
    """Whether a candidate's constants are those of a kernel: all that both name, the size of a block among them."""
    shared = described.keys() & defined.keys()
    return any(key.startswith("BLOCK") for key in shared) and all(
        described[key] == defined[key].strip("'\"") for key in shared
    )


def ran(call: Callable[[], object], here: Here) -> Counter[str]:
    """Return how often what ran in a call, by the profiler's names: kernels, launches, graph replays, C++ kernels."""
    from reportkit.bench import passes

    passes.profiled(call, here)  # The first profile of a process sets the tracer up, and may miss kernels.
    return Counter(event.name for event in passes.profiled(call, here))


def runs_of(kernels: list[str], events: Counter[str]) -> int:
    """Return how often kernels ran: the profiler puts the number of their graph before the names of C++ ones."""
    return sum(number for name, number in events.items() if re.sub(r"^graph_\d+_", "", name) in kernels)
