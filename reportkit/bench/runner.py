"""From a wish to case files: which cases, in which processes, and what became of each.

The runner imports no torch. It starts a child for a case (at smoke scale, one for a section's facts),
listens on a pipe of its own, and writes a case file whatever happens: measured, failed, crashed,
timed out, or interrupted. A runner that is killed loses the case under way and no other.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import selectors
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec
from tqdm import tqdm

from reportkit import lanes, records
from reportkit.bench import environment as env
from reportkit.bench.case import shorten
from reportkit.bench.forkserver import MARK, PRIVATE, Forked, Server, ServerError
from reportkit.bench.messages import (
    Answer,
    GarbageError,
    Hello,
    Inbox,
    Message,
    Only,
    Phase,
    Refusal,
    Request,
    Spent,
)
from reportkit.digest import digests
from reportkit.plan import Article, Case, PlanError, load_article
from reportkit.records import CaseFile, Environment, Finding, Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

FAILED, USAGE, NO_ROOM = 1, 2, 3
"""Exit codes: some case could not be measured; the wish made no sense; nothing can be written.
Interrupted by a signal: 128 and its number."""

SCRATCH = "reportkit-run-"
"""What the names of folders with a run's caches begin with; the runner's process id follows."""

LOST = frozenset({"crashed", "timed-out"})
"""How a case ends whose child gave no answer."""

GRACE = 120.0
LATENESS = 6.0
"""A case may take this many times its estimated cost and `GRACE` seconds more before it counts as hung."""

FAREWELL = 10.0
"""Seconds that a child has to end once all is answered: threads or hooks of a workload may keep it."""

PROBE_LIMIT = 300.0
"""Seconds in which torch must have been imported."""

MOST_NAMED = 8
"""Cases that are named in one line."""

LONGEST_OUTPUT = 4000
"""Characters of a dead child's output that are kept, from its end."""


class RunError(Exception):
    """The run can't go on; the message says what, where and what to do."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        """Note the exit code that goes with it."""
        super().__init__(message)
        self.code = code


class Interrupted(BaseException):
    """A signal asked to stop. Not an Exception, so that nothing takes it for a case's failure."""

    def __init__(self, signum: int) -> None:
        """Note which signal."""
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line asked for."""

    project: Path
    names: tuple[str, ...]
    lane: str
    scale: Scale | None
    budget: float | None
    resume: bool
    plan: bool
    machine: str | None
    output: Path
    command: str


@dataclass(slots=True)
class Context:
    """What every case file of this run shares."""

    wish: Wish
    article: Article
    digests: dict[str, str]
    tree: tuple[str | None, bool]
    torch: str | None
    environment: Environment
    machine: str
    scale: Scale
    run: str
    scratch: Path
    server: Server
    caches: dict[str, Path] = field(default_factory=dict)
    """Cache folders that cold cases of this run have filled, by case name."""
    anchors: dict[str, float] | None = None
    """Medians of the anchors' measurements in this run, by metric, once all of them are complete."""
    unfilled: dict[str, Answer] = field(default_factory=dict)
    """How cold cases ended in this run that have filled no caches, by case name."""


def run(wish: Wish) -> int:
    """Measure what was wished for; return an exit code. Raises PlanError, RunError, RecordError."""
    article = load_article(wish.project)
    lane = lanes.named(wish.lane, wish.project)
    # Where the GPU decides, it is asked later; an unknown name is told before that.
    scale = wish.scale or (_guess_scale() if wish.plan else None)
    cases = _chosen(article, wish.names, lane.id, scale)
    if wish.plan and scale:
        show_plan(cases, scale, wish.budget)
        return 0
    _require_room(wish.output)
    _sweep()
    server = Server(wish.project, article.preload)
    with (
        _signals(),
        tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-") as scratch,
        contextlib.closing(server),
    ):
        try:
            hello = probe(wish, lane.torch, Path(scratch), server)
            context = _context(wish, article, lane.torch, hello, Path(scratch), server)
            cases = cases if scale else _chosen(article, wish.names, lane.id, context.scale)
            todo = _left(cases, context) if wish.resume else list(cases)
            return _run_all(todo, context)
        except Interrupted as stop:
            say(f"interrupted by {stop}; nothing was under way")
            return 128 + stop.signum


def _chosen(article: Article, names: Sequence[str], lane: str, scale: Scale | None) -> list[Case]:
    """Return the cases that names ask for, those that are measured at a scale where it is known, as they are queued.

    A name that asks for none of that scale is told, on one line with the others.

    Raises:
        PlanError: a name is unknown, or none of them asks for a case of that scale.
    """
    cases = {case.name: case for experiment in article.experiments for case in experiment.cases}

    def lost(name: str) -> bool:
        asked = [cases[name]] if name in cases else list(article.select((name,), lane))
        # Anchors come with any name, and are no answer to it, unless it is theirs.
        own = [case for case in asked if case.experiment != article.anchors] or asked
        return scale is not None and not any(scale in case.scales for case in own)

    gone = [name for name in names if lost(name)]
    left = [name for name in names if name not in gone]
    if gone:
        other = "full" if scale == "smoke" else "smoke"
        message = f"not measured at {scale} scale, but with --scale {other}: {', '.join(gone)}"
        if not left:
            raise PlanError(message)
        say(message)
    return article.queue(case for case in article.select(left, lane) if scale is None or scale in case.scales)


def _require_room(output: Path) -> None:
    """Refuse a folder that can't be written to before anything is measured for it."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output):
            pass
    except OSError as error:
        message = f"case files can't be written to {output}: {error.strerror}; mend that, or name another --output"
        raise RunError(message, NO_ROOM) from error


def _sweep() -> None:
    """Remove the caches of runners that were killed: each folder has its runner's process id in its name."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        owner = folder.name.removeprefix(SCRATCH).split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)  # Somebody else's, or gone already: not ours to remove.


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def show_plan(cases: Sequence[Case], scale: Scale, budget: float | None = None) -> None:
    """Print the cases, their estimated cost and its sum, and which of them a budget in seconds leaves."""
    spent = 0.0
    for case in cases:
        fits = budget is None or spent + case.cost[scale] <= budget
        spent += case.cost[scale] if fits else 0.0
        say(f"{case.cost[scale]:7.0f} s  {case.name}{'' if fits else '  (does not fit the budget)'}")
    total = sum(case.cost[scale] for case in cases)
    say(f"{total:7.0f} s  {len(cases)} cases at {scale} scale, about {total / 60:.1f} minutes")
    if budget is not None:
        say(f"{spent:7.0f} s  of them fit the budget, about {spent / 60:.1f} minutes")


def say(text: str) -> None:
    """Print a line at once, and beside a progress bar rather than through it."""
    tqdm.write(text, file=sys.stdout)
    sys.stdout.flush()


def _guess_scale() -> Scale:
    """Return full where the driver shows a GPU. A plan alone does not import torch to ask it."""
    return "full" if shutil.which("nvidia-smi") else "smoke"


def _context(wish: Wish, article: Article, torch: str | None, hello: Hello, scratch: Path, server: Server) -> Context:
    environment = hello.environment
    scale: Scale = wish.scale or ("full" if environment.gpu else "smoke")
    machine = wish.machine or env.machine_name(environment)
    if not records.NAME.fullmatch(machine):
        message = (
            f"machine name {machine!r} is not allowed: lower-case letters, digits, dot, dash and underscore, at most 64"
        )
        raise RunError(message)
    why = "" if wish.scale else f" (chosen: {'a' if environment.gpu else 'no'} CUDA GPU here)"
    tree = env.tree_state(wish.project)
    now = datetime.datetime.now(datetime.UTC)
    context = Context(
        wish=wish,
        article=article,
        digests=digests(article),
        tree=tree,
        torch=torch,
        environment=environment,
        machine=machine,
        scale=scale,
        run=f"{now:%Y%m%dt%H%M%S}-{secrets.token_hex(2)}",
        scratch=scratch,
        server=server,
    )
    say(f"lane {wish.lane}: torch {environment.torch} on {machine}, {scale} scale{why}, run {context.run}")
    if tree[1]:
        say("the tree is dirty or unknown to git: these files will be shown, and count for no verdict")
    return context


def _left(cases: Sequence[Case], context: Context) -> list[Case]:
    """Return the cases without a file that a resumed run could stand on, and the anchors before them, if any."""
    done: dict[str, str] = {}
    for stored in records.load(context.wish.project)[0]:
        file = stored.file
        same = (
            file.machine == context.machine
            and file.lane == context.wish.lane
            and file.scale == context.scale
            and file.protocol == records.PROTOCOL
            and context.digests.get(file.case) == file.digest
            and (file.environment is None or file.environment.torch_git == context.environment.torch_git)
            and (not file.provenance.dirty or context.tree[1])
        )
        if same and file.status != "interrupted":
            done[file.case] = file.status
    anchors = [case for case in cases if case.experiment == context.article.anchors]
    cases = [case for case in cases if case not in anchors]
    left = [case for case in cases if case.name not in done]
    here = [done[case.name] for case in cases if case.name in done]
    failed = sum(status not in {"complete", "unavailable"} for status in here)
    note = f", {failed} of them without a measurement (run without --resume to try those again)" if failed else ""
    say(f"resuming: {len(here)} of {len(cases)} cases have a file{note}")
    # What the anchors said in another run tells nothing about this one.
    return [*anchors, *left] if left else []


def _run_all(cases: list[Case], context: Context) -> int:
    files: list[CaseFile] = []
    skipped: list[str] = []
    deadline = None if context.wish.budget is None else time.monotonic() + context.wish.budget
    total = sum(case.cost[context.scale] for case in cases)
    interrupted = None
    with _bar(total) as bar:
        for group in _groups(cases, context.scale):
            cost = sum(case.cost[context.scale] for case in group)
            if deadline is not None and time.monotonic() + cost > deadline:
                skipped += [case.name for case in group]
                if group[0].experiment == context.article.anchors:
                    say(f"the anchors ({group[0].name}) do not fit the budget; this run's files go without")
                bar.total -= cost
                continue
            try:
                for file in _measure(group, context, bar):
                    files.append(file)
                    if file.experiment == context.article.anchors:
                        _anchor([one for one in files if one.experiment == file.experiment], context)
            except Interrupted as stop:
                interrupted = stop
                break
    _sum_up(files, skipped, context)
    if interrupted:
        say(f"interrupted by {interrupted}; go on with --resume")
        return 128 + interrupted.signum
    return FAILED if {file.status for file in files} - {"complete", "unavailable"} else 0


def _sum_up(files: Sequence[CaseFile], skipped: Sequence[str], context: Context) -> None:
    """Say what a run came to: how its cases ended, which of them are wrong, and which were not started."""
    counts = Counter(file.status for file in files)
    done = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    done = done or ("nothing fits" if skipped else "nothing to do")
    wrong = [file.case for file in files if file.correctness is not None and not file.correctness.right]
    if wrong:
        done += f"; with a WRONG result: {', '.join(wrong)}"
    say(f"run {context.run}: {done}; files under {_shown(context.wish.output, context.wish.project)}/{context.machine}")
    if skipped:
        more = f" and {len(skipped) - MOST_NAMED} more" if len(skipped) > MOST_NAMED else ""
        say(f"not started, to keep the budget: {', '.join(skipped[:MOST_NAMED])}{more}; go on with --resume")


def _anchor(files: list[CaseFile], context: Context) -> None:
    """Take the anchors from their files once all are there and complete; say so of one that is not."""
    if files[-1].status != "complete":
        say(f"the anchors ({files[-1].case}) could not be measured; the files after it in this run go without")
    expected = {case.name for case in context.article.experiment(files[-1].experiment).cases}
    if expected == {file.case for file in files if file.status == "complete"}:
        context.anchors = {
            metric: float(statistics.median(measurement.samples))
            for file in files
            for metric, measurement in file.measurements.items()
            if measurement.unit == "s"
        }


def _shown(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def _bar(total: float) -> tqdm[None]:
    """Return a bar over estimated seconds, or nothing where there is no terminal."""
    return tqdm(
        total=total,
        disable=not sys.stdout.isatty(),
        bar_format="{desc:52.52} {bar} {elapsed}{postfix}",
        file=sys.stdout,
    )


def _show(bar: tqdm[None], text: str | None = None) -> None:
    """Say on the bar what goes on, and how long the rest takes: the estimates, at the pace so far."""
    if bar.disable:
        return
    if text is not None:
        bar.set_description_str(text, refresh=False)
    elapsed = bar.format_dict["elapsed"]
    pace = elapsed / bar.n if bar.n else 1.0
    # What the case under way has spent already is no longer ahead.
    since = elapsed - pace * bar.n
    ahead = max(0.0, pace * (bar.total - bar.n) - since)
    bar.set_postfix_str(f"about {tqdm.format_interval(ahead)} left", refresh=True)


def _groups(cases: Sequence[Case], scale: Scale) -> list[list[Case]]:
    """Return which cases share a process: at smoke scale neighbours whose caches are shared, else none."""
    groups: list[list[Case]] = []
    open_to: str | None = None
    for case in cases:
        share = scale == "smoke" and case.cache == "shared" and "memory" not in case.passes
        if share and open_to == case.experiment:
            groups[-1].append(case)
        else:
            groups.append([case])
        open_to = case.experiment if share else None
    return groups


def _measure(group: list[Case], context: Context, bar: tqdm[None]) -> Iterator[CaseFile]:
    """Measure a group and write a file for each of its cases, one by one."""
    pending = list(group)
    alone = False
    while pending:
        together = pending[:1] if alone else list(pending)
        started = _now()
        try:
            cache = _cache(together[0], context, bar)
            # The process a case was timed in ends before others look at the case's memory.
            asked = _ask(together, cache, context, bar)
            for answer, environment in list(asked) if "memory" in together[0].passes else asked:
                case = pending[0]
                if answer.status in LOST and len(together) > 1:
                    # Whose fault it was is unknown, so its neighbours may not suffer for it.
                    say(f"{case.name}: the process it shared gave out ({answer.reason}); trying it alone")
                    alone = True
                    break
                whole = answer
                if "memory" in case.passes and answer.status == "complete" and environment.gpu:
                    whole = _with_memory(answer, case, cache, context, bar)
                with _undisturbed():
                    file = _write(case, whole, environment, started, context)
                    pending.remove(case)
                if case.cache == "cold":
                    _note_caches(case, file, cache, context)
                bar.update(case.cost[context.scale])
                yield file
                started = _now()
        except UnfilledError as error:
            with _undisturbed():
                file = _write(pending[0], error.answer, context.environment, started, context)
                case = pending.pop(0)
            bar.update(case.cost[context.scale])
            yield file
        except Interrupted as stop:
            if pending:
                answer = Answer(case=pending[0].name, status="interrupted", reason=f"stopped by {stop} while under way")
                yield _write(pending[0], answer, context.environment, started, context)
            raise


def _write(case: Case, answer: Answer, environment: Environment, started: str, context: Context) -> CaseFile:
    file = CaseFile(
        schema=records.SCHEMA,
        protocol=records.PROTOCOL,
        digest=context.digests[case.name],
        run=context.run,
        section=context.article.section_of(case.experiment).id,
        experiment=case.experiment,
        case=case.name,
        lane=context.wish.lane,
        machine=context.machine,
        scale=context.scale,
        axes=dict(case.axes),
        provenance=env.provenance(context.tree, context.wish.command, started, _now()),
        environment=environment,
        anchors=context.anchors,
        **{name: getattr(answer, name) for name in ANSWERED},
    )
    try:
        records.write(context.wish.output, file)
    except records.RecordError as error:
        # The child's answer can't be believed; that is what the file then says.
        file = msgspec.structs.replace(
            file,
            status="failed",
            reason=f"the measurement can't be written: {error}"[:500],
            correctness=None,
            measurements={},
            findings={},
            telemetry=records.Telemetry(),
            phases={},
        )
        records.write(context.wish.output, file)
    except OSError as error:
        message = (
            f"can't write {records.relative_path(file)} below {context.wish.output}: {error.strerror}. "
            "The files written before are whole; make room, or make it writable, and go on with --resume"
        )
        raise RunError(message, NO_ROOM) from error
    ending = "" if file.status == "complete" else f": {file.reason}"
    if file.correctness is not None and not file.correctness.right:
        ending += f"; the result is WRONG: {file.correctness.detail}"
    say(f"{case.name}  {file.status}  {_seconds(file):.0f} s{ending}")
    return file


def _seconds(file: CaseFile) -> float:
    """Return how long the case took, whatever became of it."""
    started, finished = (
        datetime.datetime.fromisoformat(when) for when in (file.provenance.started, file.provenance.finished)
    )
    return (finished - started).total_seconds()


ANSWERED = (
    "status",
    "reason",
    "traceback",
    "settings",
    "counters",
    "correctness",
    "measurements",
    "findings",
    "telemetry",
    "phases",
    "launches",
    "memory",
    "energy",
)
"""Fields of a case file that the child answers as they are."""


def _ask(cases: list[Case], cache: Path, context: Context, bar: tqdm[None]) -> Iterator[tuple[Answer, Environment]]:
    """Yield what became of each case, in order; ends early after a crash, which it yields last, or a spent process."""
    environment = context.environment
    left = [case.name for case in cases]
    limit = GRACE + LATENESS * max(case.cost[context.scale] for case in cases)
    request = _request(context, left)
    try:
        for message in converse(context.wish.project, request, cache, limit, context.server):
            if message is None:
                _show(bar)
            elif isinstance(message, Hello):
                environment = message.environment
            elif isinstance(message, Phase):
                _show(bar, f"{message.case}: {message.phase}")
            elif isinstance(message, Refusal):
                refused(message, context.wish.lane)
            elif isinstance(message, Spent):
                say(f"{message.reason}; the cases after it get a fresh one")
                return
            else:
                _expect(message, left)
                left.pop(0)
                yield message, environment
        if left:
            _lost("it ended without an answer")
    except ChildError as error:
        if left:  # How a process ends that has answered all decides nothing.
            lost = Answer(case=left[0], status=error.status, reason=error.reason, traceback=error.output or None)
            yield lost, environment


def _request(context: Context, cases: list[str], only: Only | None = None) -> Request:
    return Request(lane=context.wish.lane, torch=context.torch, scale=context.scale, cases=cases, only=only)


def refused(refusal: Refusal, lane: str) -> NoReturn:
    """Raise what a child's refusal means for the run."""
    message = f"{refusal.reason}; `{lanes.measuring(lane)}` makes the environment of that lane and runs in it"
    raise RunError(message)


def _expect(answer: Answer, left: list[str]) -> None:
    if answer.case not in left[:1]:
        _lost(f"it answered for {answer.case}, which was not asked")


def _lost(why: str) -> NoReturn:
    raise ChildError("crashed", why, "")


def _part(case: str, only: Only, cache: Path, limit: float, context: Context, bar: tqdm[None]) -> Answer:
    """Do one part of a case in a process of its own; return its answer, or how it ended without one."""
    answer = None
    try:
        for message in converse(context.wish.project, _request(context, [case], only), cache, limit, context.server):
            if message is None:
                _show(bar)
            elif isinstance(message, Refusal):
                refused(message, context.wish.lane)
            elif isinstance(message, Answer):
                _expect(message, [case])
                answer = message
        if answer is None:
            _lost("it ended without an answer")
    except ChildError as error:
        # How a process ends that has answered decides nothing.
        return answer or Answer(case=case, status=error.status, reason=error.reason, traceback=error.output or None)
    return answer


def _limit(case: Case, context: Context) -> float:
    return GRACE + LATENESS * case.cost[context.scale]


class UnfilledError(Exception):
    """The caches that a warm case is about are not there, so that nothing can be measured."""

    def __init__(self, case: Case, cold: Answer) -> None:
        """Make the warm case's answer of how the case that it follows ended."""
        super().__init__(case.name)
        # What can't run here can't run warm either, and that is no fault.
        status: records.Status = "unavailable" if cold.status == "unavailable" else "failed"
        how = f"{cold.status}: {cold.reason}" if cold.reason else cold.status
        reason = f"nothing was measured, since {cold.case}, which fills its caches, ended as {how}"[:500]
        self.answer = Answer(case=case.name, status=status, reason=reason, traceback=cold.traceback)


def _cache(case: Case, context: Context, bar: tqdm[None]) -> Path:
    """Return the folder of the caches a case runs on, filled first where a warm case needs it.

    Raises:
        UnfilledError: the case that this one follows did not complete, or its caches can't be filled again.
    """
    if case.cache != "warm":
        return _fresh(context)
    follows = case.follows or ""
    if follows in context.unfilled:
        raise UnfilledError(case, context.unfilled[follows])
    if follows not in context.caches or not context.caches[follows].is_dir():
        _show(bar, f"{case.name}: filling its caches")
        say(f"{case.name}: the caches of {follows} are not there; filling them again")
        cache = _fresh(context)
        answer = _part(follows, "first-call", cache, _limit(case, context), context, bar)
        if answer.status != "complete":
            context.unfilled[follows] = answer
            raise UnfilledError(case, answer)
        context.caches[follows] = cache
    return context.caches[follows]


def _note_caches(case: Case, file: CaseFile, cache: Path, context: Context) -> None:
    """Remember what a cold case left for those that follow it."""
    if file.status == "complete":
        context.caches[case.name] = cache
    else:
        context.unfilled[case.name] = Answer(case=case.name, status=file.status, reason=file.reason)


def _with_memory(answer: Answer, case: Case, cache: Path, context: Context, bar: tqdm[None]) -> Answer:
    """Return the answer with the peak memory of each side, from a fresh process each, and what that took.

    A side whose process failed is not there, and a finding says why. Imports are no part of the time.
    """
    memory: dict[str, int] = {}
    findings: dict[str, Finding] = {}
    seconds = 0.0
    sides: dict[str, Only] = {"eager": "memory-eager", "compiled": "memory-compiled"}
    for side, only in sides.items():
        _show(bar, f"{case.name}: memory, {side}")
        part = _part(case.name, only, cache, _limit(case, context), context, bar)
        if part.status == "complete":
            memory |= part.memory or {}
        else:
            why = f"{part.status}: {part.reason}"
            say(f"{case.name}: the peak memory of {side} is missing ({why})")
            findings[f"memory-pass-{side}"] = Finding(holds=False, evidence={"reason": why})
        seconds += sum(spent for phase, spent in part.phases.items() if phase not in {"import", "settings"})
    return msgspec.structs.replace(
        answer,
        memory=memory or None,
        findings=answer.findings | findings,
        phases=answer.phases | {"memory": round(seconds, 3)},
    )


def _fresh(context: Context) -> Path:
    context.scratch.mkdir(mode=0o700, exist_ok=True)  # A workload may have deleted it.
    return Path(tempfile.mkdtemp(dir=context.scratch, prefix="cache-"))  # 0700, by mkdtemp's contract.


class ChildError(Exception):
    """A child that gave no answer: how it ended, in the words of a case file."""

    def __init__(self, status: records.Status, reason: str, output: str) -> None:
        """Note the status, the reason and the end of what the child printed."""
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.output = output


def probe(wish: Wish, torch: str | None, scratch: Path, server: Server | None = None) -> Hello:
    """Return the environment as a child reads it.

    Raises:
        RunError: torch can't be imported, or is another version than the lane pins.
    """
    request = Request(lane=wish.lane, torch=torch, scale=None, cases=[])
    try:
        for message in converse(wish.project, request, scratch / "probe", PROBE_LIMIT, server):
            if isinstance(message, Hello):
                return message
            if isinstance(message, Refusal):
                refused(message, wish.lane)
    except ChildError as error:
        why = f"importing torch failed: {error.reason}\n{error.output}".rstrip()
        raise RunError(why) from error
    why = "importing torch failed without a word"
    raise RunError(why)


Process = subprocess.Popen[bytes] | Forked


def converse(
    project: Path, request: Request, cache: Path, limit: float, server: Server | None = None
) -> Iterator[Message | None]:
    """Start a child, yield its messages until it ends, and leave nothing of it behind.

    None is yielded once a second in which nothing was said. `limit` is in seconds, between one answer and the next.
    The child is forked by the server, or started anew where there is none.

    Raises:
        ChildError: it crashed, hung, or sent garbage.
    """
    reader, writer = os.pipe()
    token = secrets.token_hex(8)
    with tempfile.TemporaryFile() as output:
        try:
            process = _child(project, env.child_variables(cache) | {MARK: token}, output.fileno(), writer, server)
        except BaseException:
            os.close(reader)
            _end_strays(token)  # It may have been born, and not have told us.
            raise
        finally:
            os.close(writer)
        ended = False
        try:
            _tell(process, msgspec.json.encode(request))
            yield from _listen(process, reader, limit, len(request.cases))
            ended = True
        except (TimeoutError, GarbageError) as error:
            status: records.Status = "timed-out" if isinstance(error, TimeoutError) else "crashed"
            kill(process)
            raise ChildError(status, str(error), _tail(output)) from error
        finally:
            os.close(reader)
            code = process.wait() if ended else None
            kill(process)
            _end_strays(token)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()  # type: ignore[union-attr]
        if code:
            raise ChildError("crashed", _ending(code), _tail(output))


def _child(project: Path, variables: dict[str, str], output: int, writer: int, server: Server | None) -> Process:
    """Return a measured process that is about to read its request."""
    if server is not None:
        try:
            return server.fork({name: variables[name] for name in (*PRIVATE, MARK)}, output, writer)
        except ServerError as error:
            if not server.told:
                say(f"each process imports torch anew, since none can be forked: {error}")
            server.told = True
    return subprocess.Popen(
        [sys.executable, "-m", "reportkit.bench.child", str(writer)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=(writer,),
        cwd=project,
        env=variables | {"PYTHONPATH": _python_path(project)},
        start_new_session=True,  # So that it and what it started can be killed together.
    )


def _python_path(project: Path) -> str:
    return os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])


def _tell(process: Process, line: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line + b"\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]


def _listen(process: Process, reader: int, limit: float, cases: int) -> Iterator[Message | None]:
    """Yield messages until the child's end of the pipe is closed, or the child is gone, or has long said all."""
    inbox = Inbox()
    answers = 0
    deadline = time.monotonic() + limit
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        while True:
            gone = process.poll() is not None  # Asked first: what it said before it went is still read.
            ready = selector.select(timeout=min(1.0, max(0.0, deadline - time.monotonic())))
            if ready:
                data = os.read(reader, 1 << 16)
                if not data:
                    break
                for message in inbox.feed(data):
                    yield message
                    if isinstance(message, Answer):
                        _tell(process, b"")  # Whoever took the answer has written its file by now.
                        answers += 1
                        deadline = time.monotonic() + (limit if answers < cases else FAREWELL)
            elif gone:
                break  # A worker that it left behind may hold the pipe open for ever.
            elif time.monotonic() > deadline:
                if cases and answers >= cases:
                    kill(process)
                    return
                late = f"no answer within {limit:.0f} s"
                raise TimeoutError(late)
            else:
                yield None
    try:
        process.wait(timeout=max(5.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        late = "it closed its pipe and did not end"
        raise TimeoutError(late) from error


def kill(process: Process) -> None:
    """End a child and whatever it started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_strays(token: str) -> None:
    """End what left the child's session, found by the variable it inherited; where there is no /proc, nothing is."""
    mark = f"{MARK}={token}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def _ending(code: int) -> str:
    if code > 0:
        return f"it ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = ", as the kernel does when memory runs out" if -code == signal.SIGKILL else ""
    return f"it was killed by {name}{hint}"


def _tail(output: object) -> str:
    stream = output
    size = stream.seek(0, os.SEEK_END)  # type: ignore[attr-defined]
    stream.seek(max(0, size - LONGEST_OUTPUT))  # type: ignore[attr-defined]
    return shorten(stream.read().decode("utf-8", "replace"))  # type: ignore[attr-defined]


def _now() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(slots=True)
class _Hold:
    """Whether a signal has to wait, and which one does."""

    held: bool = False
    waiting: int | None = None


_HOLD = _Hold()


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into `Interrupted`; a second one while it is handled is ignored."""

    def stop(signum: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if _HOLD.held:
            _HOLD.waiting = signum
            return
        raise Interrupted(signum)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait: what has been measured is written, and counts as written, in one go.

    To block them in this thread would not do: another thread, such as a progress bar's, would take them.
    """
    _HOLD.held = True
    try:
        yield
    finally:
        _HOLD.held = False
        waiting, _HOLD.waiting = _HOLD.waiting, None
        if waiting is not None:
            raise Interrupted(waiting)


def command_line() -> str:
    """Return the command as the case file tells it, without this machine's paths."""
    arguments = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return shlex.join(["python", "-m", "reportkit", *arguments])
