"""The case file: one case, measured once. The only bridge between the two worlds.

A file holds what was observed and where: samples, counters, findings, environment. It holds no
mean, no ratio and no verdict, so that it can be judged again by another rule. It is written once
and never edited. This module is the format: its types, how it is written, and everything that a
file must satisfy before another part of the program may believe it.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

# 1: first format.
SCHEMA = 1
"""The format that this version writes. An older one stays readable, an unknown one is refused."""

# 1: blocks of 50 ms, each side's by itself.
# 2: blocks of 5 ms, those of a pair equally long; on a GPU at least five calls of less than 10 ms.
# 3: blocks of 2 ms; on a GPU, in place of five calls, one that is not timed goes before those of a block.
PROTOCOL = 3
"""How time is taken. Raised by hand whenever the meaning of a sample changes; older files go stale."""

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
LARGEST_FILE = 2_000_000
"""Bytes. A case file is some tens of kilobytes; a larger one is refused unread."""

SHORTEST_TIME, LONGEST_TIME = 1e-9, 1e7
"""Seconds. Clocks tick in nanoseconds; and ratios of times must stay finite."""

TIMES = {"first_call", "eager_wall", "compiled_wall", "eager_gpu", "compiled_gpu"}
"""The measurements that are judged."""

MOST_SAMPLES = 4000
"""A measurement holds at most this many samples, so that a lane stays under 4 MB."""

Name = Annotated[str, Meta(pattern=rf"^{NAME.pattern}$")]
Scale = Literal["full", "smoke"]
Status = Literal["complete", "failed", "crashed", "timed-out", "out-of-memory", "unavailable", "interrupted"]
Unit = Literal["s", "B", "J", "W", "Hz", "1"]
Scalar = str | bool | int | float


class RecordError(ValueError):
    """A case file that can't be believed; the message says which, why and what to do."""


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all parts of a case file share: immutable, by keyword, nothing unknown."""


class Provenance(Record, frozen=True):
    """Who made the file, from what."""

    command: str
    """The command line, paths relative to the project."""
    commit: str | None
    """The git commit of the tree, or None where neither git nor a build-info.json tells."""
    dirty: bool
    """Whether the tree differed from that commit (results/ and runs/ aside), or can't be known."""
    started: str
    """UTC, ISO 8601, to the second."""
    finished: str
    reportkit: str


class Environment(Record, frozen=True):
    """Where it ran, as read in the measured process."""

    torch: str
    torch_git: str
    cuda: str | None
    cudnn: str | None
    triton: str | None
    driver: str | None
    gpu: str | None
    gpu_id: str | None
    """A hash of the GPU's UUID: tells two GPUs apart without naming either."""
    cpu: str
    cores: int
    kernel: str
    python: str
    compiler: str | None
    """First line of `c++ --version`, the compiler of inductor's CPU backend."""
    packages: dict[str, str]
    variables: dict[str, str]
    """Environment variables that change what torch does."""
    lock: dict[str, Scalar | None]
    """The lane's stamp: lock digest, whether everything installed was locked, other index."""
    notes: list[str] = []
    """What else is special about the machine, such as CUDA images that were zeroed to carry it."""


class Measurement(Record, frozen=True):
    """All samples of one metric of one case, in the order they were taken."""

    unit: Unit
    samples: list[float]
    warmups: int = 0
    """Calls made and thrown away before the first sample."""
    calls: int = 1
    """Calls timed together for one sample; a sample is their mean."""


class Finding(Record, frozen=True):
    """A yes-or-no observation and what it rests on."""

    holds: bool
    evidence: dict[str, Scalar | None]
    """Counters, messages and generated code, by a short English name."""


class Correctness(Record, frozen=True):
    """The compiled result held against eager's by their errors against an fp64 copy.

    Source of the rule: `same` in PyTorch's torch/_dynamo/utils.py, as its benchmarks use it.
    """

    right: bool
    eager_error: float | None
    """Root mean square error of eager against fp64; None where no fp64 copy could run."""
    compiled_error: float | None
    noise_floor: float | None
    """Largest absolute difference between two eager runs; None where it is no number."""
    tolerance: float
    multiplier: float
    detail: str = ""


class Telemetry(Record, frozen=True):
    """The GPU's clocks and state around the timing; every list runs along the samples."""

    clock: list[float] = []
    """SM clock in Hz, one a pair, the lower of its two blocks."""
    busy_clock: float | None = None
    """SM clock in Hz at the end of the warm-up."""
    dropped_pairs: int = 0
    """Pairs thrown away because a sample ran under 75 % of the busy clock."""
    temperature: list[float] = []
    """Degrees Celsius, before and after."""
    power: list[float] = []
    """Watts, before and after."""
    throttled: list[str] = []
    """The driver's reasons for a lowered clock, seen while timing."""
    missing: str | None = None
    """Why there is no telemetry: no GPU, or no access to its counters."""


class CaseFile(Record, frozen=True):
    """One case, measured once, or the reason why it could not be."""

    schema: int
    protocol: int
    digest: str
    """Hash of the code that the case ran (reportkit.digest)."""
    run: Name
    section: Name
    experiment: Name
    case: Name
    lane: Name
    machine: Name
    scale: Scale
    axes: dict[str, Scalar]
    status: Status
    reason: str | None
    """One sentence for anything but `complete`."""
    traceback: str | None
    """The end of the child's traceback or output, paths relative."""
    provenance: Provenance
    environment: Environment | None
    """None only where the child died before it could tell."""
    settings: dict[str, Scalar | None]
    """Torch's switches as read back in the child after they were set."""
    counters: dict[str, int | None]
    """Dynamo's and inductor's counters; None for one that this version of torch does not have."""
    correctness: Correctness | None
    measurements: dict[str, Measurement]
    findings: dict[str, Finding]
    telemetry: Telemetry
    phases: dict[str, float]
    """Seconds the case spent, by phase: import, prepare, correctness, first calls, warm-up, timing."""
    launches: dict[str, int] | None = None
    memory: dict[str, int] | None = None
    energy: dict[str, float] | None = None
    anchors: dict[str, float] | None = None
    """Seconds of what every run measures besides, by name: they tell whether two hosts are alike."""


class Stored(Struct, frozen=True):
    """A case file and where it lies."""

    path: str
    """Relative to the project's root, with forward slashes."""
    file: CaseFile

    @property
    def local(self) -> bool:
        """Whether it lies outside results/, that is, was never kept."""
        return not self.path.startswith("results/")


class Damaged(Struct, frozen=True):
    """A file that lies where a case file should, and is none."""

    path: str
    problem: str


def encode(file: CaseFile) -> bytes:
    """Return the file as sorted, indented JSON with a final newline.

    Raises:
        RecordError: the record breaks a rule of `check`, or is too large to be read again.
    """
    check(file)
    data = msgspec.json.format(msgspec.json.encode(file, order="sorted"), indent=1) + b"\n"
    if len(data) > LARGEST_FILE:
        message = f"{len(data)} bytes; a case file has at most {LARGEST_FILE}"
        raise RecordError(message)
    return data


def decode(data: bytes) -> CaseFile:
    """Return the case file in `data`.

    Raises:
        RecordError: not JSON, not this schema, not these types, or breaking a rule of `check`.
    """
    try:
        _refuse_other(msgspec.json.decode(data, type=_Schema).schema)
        file = msgspec.json.decode(data, type=CaseFile)
        json.loads(data, object_pairs_hook=_without_twins)
    except RecordError:
        raise
    except (msgspec.DecodeError, ValueError) as error:
        message = f"not a case file of schema {SCHEMA}: {error}"
        raise RecordError(message) from error
    except RecursionError as error:
        message = "not a case file: nested too deeply"
        raise RecordError(message) from error
    check(file)
    return file


class _Schema(Struct):
    schema: int


def _refuse_other(schema: int) -> None:
    if schema != SCHEMA:
        age = "newer" if schema > SCHEMA else "unknown"
        message = f"{age} schema {schema}; this reportkit reads {SCHEMA}. Update reportkit to read it."
        raise RecordError(message)


def _without_twins(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that names a field twice; parsers differ on which one they believe."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        message = f"a field is there twice: {max(names, key=names.count)!r}"
        raise RecordError(message)


def check(file: CaseFile) -> None:
    """Hold a record against the rules that its types can't express.

    Raises:
        RecordError: the first rule broken, in words.
    """
    for rule in (
        _problems_of_names,
        _problems_of_numbers,
        _problems_of_samples,
        _problems_of_pairs,
        _problems_of_story,
    ):
        for problem in rule(file):
            raise RecordError(problem)


def _problems_of_names(file: CaseFile) -> Iterator[str]:
    for field in ("run", "section", "experiment", "case", "lane", "machine"):
        name = getattr(file, field)
        if not NAME.fullmatch(name):  # The types' `$` lets a final newline pass.
            yield f"{field} {name!r} is no valid name ({NAME.pattern})"
    if not file.case.startswith(f"{file.experiment}."):
        yield f"case {file.case!r} is not one of experiment {file.experiment!r}"
    if not re.fullmatch(r"[0-9a-f]{8,64}", file.digest):
        yield f"digest {file.digest!r} is no hexadecimal number"


def _problems_of_numbers(file: CaseFile) -> Iterator[str]:
    for number in _numbers(msgspec.to_builtins(file)):
        if isinstance(number, int):
            if not -(2**63) <= number < 2**63:
                yield "a whole number is larger than 64 bits hold"
        elif not math.isfinite(number):
            yield "a number is not finite"
    counts: dict[str, int | None] = {
        **file.counters,
        **{f"{name} launches": count for name, count in (file.launches or {}).items()},
        **{f"{name} bytes": count for name, count in (file.memory or {}).items()},
        "dropped_pairs": file.telemetry.dropped_pairs,
        "protocol": file.protocol,
    }
    for name, count in counts.items():
        if count is not None and count < 0:
            yield f"{name!r} is negative: {count}"
    for name, time in (file.anchors or {}).items():
        if not SHORTEST_TIME <= time <= LONGEST_TIME:
            yield f"anchor {name!r} is a time outside {SHORTEST_TIME:g} to {LONGEST_TIME:g} s"


def _problems_of_samples(file: CaseFile) -> Iterator[str]:
    for name, measurement in file.measurements.items():
        samples = measurement.samples
        if not samples or len(samples) > MOST_SAMPLES:
            yield f"measurement {name!r} has {len(samples)} samples; 1 to {MOST_SAMPLES} are allowed"
        elif min(samples) < 0:
            yield f"measurement {name!r} has a negative sample"
        elif measurement.unit == "s" and not (min(samples) >= SHORTEST_TIME and max(samples) <= LONGEST_TIME):
            yield f"measurement {name!r} has a time outside {SHORTEST_TIME:g} to {LONGEST_TIME:g} s"
        if measurement.calls < 1 or measurement.warmups < 0:
            yield f"measurement {name!r} counts {measurement.calls} calls, {measurement.warmups} warm-ups"
        if name in TIMES and measurement.unit != "s":
            yield f"measurement {name!r} is a time, and in {measurement.unit!r}"
    first = file.measurements.get("first_call")
    if first is not None and len(first.samples) > 1:
        yield f"a process has one first call, and this one {len(first.samples)}"


def _problems_of_pairs(file: CaseFile) -> Iterator[str]:
    lengths: set[int] = set()
    for clock in ("wall", "gpu"):
        sides = [file.measurements.get(f"{side}_{clock}") for side in ("eager", "compiled")]
        if (sides[0] is None) != (sides[1] is None):
            yield f"only one of eager_{clock} and compiled_{clock} is there; they are taken in pairs"
        lengths |= {len(side.samples) for side in sides if side is not None}
    if len(lengths) > 1:
        yield f"eager and compiled have {sorted(lengths)} samples; they are taken in pairs, on all clocks at once"


def _problems_of_story(file: CaseFile) -> Iterator[str]:
    provenance = file.provenance
    for moment in (provenance.started, provenance.finished):
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment, re.ASCII):
            yield f"{moment!r} is no moment in UTC, such as 2026-11-30T12:00:00Z"
    if provenance.started > provenance.finished:
        yield f"finished {provenance.finished}, before it started {provenance.started}"
    if file.status != "complete" and not file.reason:
        yield f"status {file.status!r} without a reason"
    if file.status == "complete":
        if file.environment is None:
            yield "complete, but without an environment"
        if not file.measurements and not file.findings:
            yield "complete, but neither measurements nor findings"


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _numbers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)


def relative_path(file: CaseFile) -> Path:
    """Return where the file belongs below results/ or runs/: MACHINE/LANE/SECTION/CASE--RUN.json."""
    return Path(file.machine, file.lane, file.section, f"{file.case}--{file.run}.json")


def write(root: Path, file: CaseFile) -> Path:
    """Write the file to its place below `root` (results/ or runs/) so that it is whole or absent.

    Raises:
        RecordError: it can't be encoded, or a file of that name is there already.
        OSError: the disk is full or not writable; nothing is left behind.
    """
    data = encode(file)
    path = root / relative_path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        message = f"{path} exists already; case files are never overwritten"
        raise RecordError(message)
    scratch = path.with_name(f".{path.name}.tmp")
    try:
        with scratch.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        scratch.unlink(missing_ok=True)
    return path


def read(path: Path, root: Path) -> CaseFile:
    """Return the case file at `path`, somewhere below `root` (results/ or runs/).

    Raises:
        RecordError: a link, no plain file, unreadable, too large, not a case file, or not the one its path names.
    """
    if path.is_symlink() or any(parent.is_symlink() for parent in path.parents if root in parent.parents):
        message = "a symbolic link; case files are plain files"
        raise RecordError(message)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            message = "no plain file"
            raise RecordError(message)
        if status.st_size > LARGEST_FILE:
            message = f"larger than {LARGEST_FILE // 1_000_000} MB; no case file is"
            raise RecordError(message)
        data = path.read_bytes()
    except OSError as error:
        message = f"can't be read: {error.strerror}"
        raise RecordError(message) from error
    file = decode(data)
    belongs = relative_path(file)
    if path.relative_to(root) != belongs:
        message = f"in the wrong place: by its own words it is {belongs.as_posix()}"
        raise RecordError(message)
    return file


def load(project: Path, folders: tuple[str, ...] = ("results", "runs")) -> tuple[list[Stored], list[Damaged]]:
    """Return every case file of a project, sorted by path, and every file that is a damaged one."""
    stored: list[Stored] = []
    damaged: list[Damaged] = []
    known: dict[bytes, Any] = {}
    for folder in folders:
        root = project / folder
        for path in sorted(_candidates(root)):
            shown = one_line(path.relative_to(project).as_posix())
            try:
                stored.append(Stored(shown, _sharing(read(path, root), known)))
            except RecordError as error:
                damaged.append(Damaged(shown, one_line(str(error))))
    return stored, damaged


def _sharing(file: CaseFile, known: dict[bytes, Any]) -> CaseFile:
    """Return the file with what it says as another one does taken from there: most of its memory, samples aside."""
    shared = {
        name: known.setdefault(msgspec.msgpack.encode(its), its)
        for name in ("environment", "settings")
        if (its := getattr(file, name)) is not None
    }
    return msgspec.structs.replace(file, **shared)


def _candidates(root: Path) -> Iterator[Path]:
    """Return what looks like a case file below `root`, and links to folders, which are not followed."""
    for here, folders, files in os.walk(root):
        for name in files:
            # A name with a dot is left by a writer that was killed: never renamed, so never a case file.
            if name.endswith(".json") and not name.startswith("."):
                yield Path(here, name)
        for name in folders:
            path = Path(here, name)
            if name.endswith(".json") or path.is_symlink():
                yield path


def json_schema() -> str:
    """Return the JSON Schema of a case file."""
    return json.dumps(msgspec.json.schema(CaseFile), indent=1, sort_keys=True) + "\n"


def one_line(text: str) -> str:
    """Return a text on one line, nothing in it invisible, whatever a stranger put into it."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def keep(source: Path, results: Path) -> tuple[int, list[tuple[str, str]]]:
    """Copy what may count from `source` (runs/) into `results`; return how many, and what was left and why.

    Full-scale files from a clean tree are kept, failed ones too: a failure is a result. A file
    that is kept already is left in silence.

    Raises:
        OSError: the disk is full or not writable.
    """
    kept = 0
    left: list[tuple[str, str]] = []
    for path in sorted(_candidates(source)):
        shown = one_line(path.relative_to(source).as_posix())
        try:
            file = read(path, source)
        except RecordError as error:
            left.append((shown, one_line(str(error))))
            continue
        why = _no_keeper(file)
        if why:
            left.append((shown, why))
        elif not (results / relative_path(file)).exists():
            write(results, file)
            kept += 1
    return kept, left


def _no_keeper(file: CaseFile) -> str | None:
    if file.scale != "full":
        return f"{file.scale} scale"
    if file.provenance.dirty:
        return "made from a dirty tree"
    return "interrupted" if file.status == "interrupted" else None
