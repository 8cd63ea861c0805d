"""What an edition offers to programs: its verdicts, its samples, its case files, and a crate that says what is what.

Every file but two has a part of its own SHA-256 in its name, so that an address never changes what it holds:
other content has another address. The two are the index, which lists the others, and the metadata of
the crate, whose name is prescribed. The same case files give the same bytes.

Text of strangers stays what it is in JSON and Parquet. In CSV a cell that a spreadsheet would run is defused.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import shutil
import tempfile
import weakref
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reportkit import __version__, records
from reportkit.judge import Outcome, as_objects
from reportkit.records import PROTOCOL, Name, Record, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reportkit.judge import Verdict
    from reportkit.records import CaseFile, Stored
    from reportkit.site.edition import Edition

Kind = Literal[
    "verdicts", "verdicts-schema", "case-file-schema", "samples-csv", "samples-parquet", "case-files", "crate"
]
KINDS: tuple[Kind, ...] = (
    "verdicts",
    "samples-parquet",
    "samples-csv",
    "case-files",
    "verdicts-schema",
    "case-file-schema",
    "crate",
)
"""What there is, in the order that a page lists it; without a case file there is no crate."""

FOLDER = "data"
"""Where they lie below the site's root, shared by the languages; case files lie there too, below their own paths."""
INDEX = "index.json"
CRATE = "ro-crate-metadata.json"
LICENCE = "Apache-2.0"
"""Of the data, as of the code: the LICENSE at the top of the project speaks of all of it."""

_FORMAT = 1
"""Of the index and of the verdicts: raised where a reader of an older one would go wrong."""
_LICENCE_AT = "https://www.apache.org/licenses/LICENSE-2.0"
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]
_MEDIA = {
    "json": "application/json",
    "csv.gz": "application/gzip",
    "parquet": "application/vnd.apache.parquet",
    "zip": "application/zip",
}
_IN_NAME = 16
"""Hexadecimal digits of the hash in a name."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell begins with that a spreadsheet takes for a formula, in full width too."""
_AT_ONCE = 250
"""Case files whose samples are a table in memory at a time."""

COLUMNS = (
    "file",
    "machine",
    "lane",
    "scale",
    "experiment",
    "case",
    "run",
    "started",
    "torch",
    "counts",
    "local",
    "contributed",
    "metric",
    "unit",
    "calls",
    "place",
    "value",
)
"""Of the samples, a row each. `counts` is whether verdicts rest on the file; `place` is the sample's among those
of its metric, from 0; pairs are samples of one place."""


class CaseFileOf(Record, frozen=True):
    """A case file that a verdict rests on."""

    path: str
    """Below the folder of this file."""
    sha256: str


class ReasonOf(Record, frozen=True):
    """Why a verdict is what it is."""

    code: str
    details: dict[str, str | float]


class IntervalOf(Record, frozen=True):
    """What was compared with the bound."""

    low: float
    centre: float
    high: float
    unit: Literal["x", "s", "B", "J", "W", "Hz", "1"]
    """x for a ratio."""


class BoundOf(Record, frozen=True):
    """What the claim is held to; an end of null is none, `open` leaves the ends out."""

    kind: Literal["range", "outside", "true", "shown"]
    low: float | None
    high: float | None
    open: bool


class PartOf(Record, frozen=True):
    """The claim under one setting, or for one of its workloads, or both."""

    label: str | None
    setting: str | None
    verdict: Outcome
    reason: ReasonOf
    interval: IntervalOf | None
    holds: bool | None
    files: list[str]


class VerdictOf(Record, frozen=True):
    """What is known of a claim in one lane, on one machine, at one scale."""

    id: Name
    section: Name
    statement: dict[str, str]
    """By language."""
    lane: Name
    machine: Name | None
    scale: Scale | None
    verdict: Outcome
    reason: ReasonOf
    interval: IntervalOf | None
    bound: BoundOf
    parts: list[PartOf]
    files: list[CaseFileOf]
    counted: bool
    """Whether it is in the tally: full scale, on one of the article's own machines."""
    local: bool
    """Whether a file that it rests on was never kept."""
    contributed: bool
    """Whether the machine is none of the article's own."""


class Verdicts(Record, frozen=True):
    """Every verdict of an edition, in reading order."""

    format: int
    article: Name
    reportkit: str
    protocol: int
    criteria: dict[str, float | int | list[float]]
    """The thresholds they were judged by."""
    verdicts: list[VerdictOf]


class _Folder:
    """A folder for a while: it goes with whatever refers to it last."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="reportkit-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A file for programs. It waits on disk, in a folder that goes with the last of them: some are large."""

    kind: Kind | Literal["index"]
    name: str
    sha256: str
    size: int
    """Bytes."""
    rows: int | None
    """Verdicts, samples or case files in it."""
    folder: _Folder

    @property
    def path(self) -> Path:
        """Where it waits."""
        return self.folder.path / self.name

    @property
    def data(self) -> bytes:
        """What it holds."""
        return self.path.read_bytes()


def exports(edition: Edition) -> tuple[Export, ...]:
    """Return everything that the edition offers to programs, in the order of `KINDS`, the index last.

    Paths in the files are relative to the folder that they are put in, where the case files lie below theirs.

    Raises:
        OSError: a case file vanished while the edition was made, or the disk is full.
    """
    hashes = {stored.path: _sha256((edition.project / stored.path).read_bytes()) for stored in edition.stored}
    flags = _flags(edition)
    rows = sum(len(one.samples) for stored in edition.stored for one in stored.file.measurements.values())
    folder = _Folder()
    made: dict[Kind | Literal["index"], Export] = {}

    def add(kind: Kind | Literal["index"], name: str, data: bytes, count: int | None = None) -> None:
        digest = _sha256(data)
        name = name.format(hash=digest[:_IN_NAME])
        made[kind] = Export(kind=kind, name=name, sha256=digest, size=len(data), rows=count, folder=folder)
        made[kind].path.write_bytes(data)

    add("verdicts", "verdicts-{hash}.json", _json(_verdicts(edition, hashes)), len(edition.verdicts))
    add("samples-parquet", "samples-{hash}.parquet", _parquet(edition.stored, flags), rows)
    add("samples-csv", "samples-{hash}.csv.gz", _csv(edition.stored, flags), rows)
    add("case-files", "case-files-{hash}.zip", _zip(edition.project, edition.stored), len(edition.stored))
    add("verdicts-schema", "verdicts-schema-{hash}.json", _json(_schema(Verdicts)))
    add("case-file-schema", "case-file-schema-{hash}.json", records.json_schema().encode())
    if edition.stored:
        add("crate", CRATE, _json(_crate(edition, hashes, list(made.values()))))
    found = [made[kind] for kind in KINDS if kind in made]
    add("index", INDEX, _json(_index(edition, found)))
    return (*found, made["index"])


def write(edition: Edition, folder: Path) -> list[Path]:
    """Write every export into `folder`, and the case files as they lie; return the paths of the exports.

    Raises:
        OSError: the folder can't be written, or the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stored in edition.stored:
        copy = folder / stored.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(edition.project / stored.path, copy)
    return [Path(shutil.copyfile(one.path, folder / one.name)) for one in edition.exports]


def defused(text: str) -> str:
    """Return a text as a cell that no spreadsheet runs: with an apostrophe before what begins a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


# -- verdicts


def _verdicts(edition: Edition, hashes: Mapping[str, str]) -> Verdicts:
    return Verdicts(
        format=_FORMAT,
        article=edition.article.id,
        reportkit=__version__,
        protocol=PROTOCOL,
        criteria={name: list(its) if isinstance(its, tuple) else its for name, its in asdict(edition.criteria).items()},
        verdicts=[_verdict(edition, verdict, hashes) for verdict in edition.verdicts],
    )


def _verdict(edition: Edition, verdict: Verdict, hashes: Mapping[str, str]) -> VerdictOf:
    [known] = as_objects([verdict])
    return msgspec.convert(
        known
        | {
            "statement": {language: texts.claims[verdict.claim].statement for language, texts in edition.texts.items()},
            "files": [CaseFileOf(path=path, sha256=hashes[path]) for path in verdict.files],
            "counted": edition.counts(verdict),
            "contributed": verdict.contributed,
        },
        VerdictOf,
    )


def _schema(record: type[Record]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(record)}


# -- samples


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flags:
    """What a reader must know of a file before using its samples."""

    counts: bool
    local: bool
    contributed: bool


def _flags(edition: Edition) -> dict[str, _Flags]:
    counting = {path for path, seen in edition.observed.items() if seen.problem is None}
    return {
        stored.path: _Flags(
            counts=stored.path in counting,
            local=stored.local,
            contributed=stored.file.machine not in edition.article.machines,
        )
        for stored in edition.stored
    }


def _series(
    stored: Iterable[Stored], flags: Mapping[str, _Flags]
) -> Iterator[tuple[tuple[str | bool | int, ...], list[float]]]:
    """Yield each metric of each file: what all rows of it have in common, and its samples."""
    for one in stored:
        file, its = one.file, flags[one.path]
        torch = file.environment.torch if file.environment else ""
        where = (one.path, file.machine, file.lane, file.scale, file.experiment, file.case, file.run)
        known = (*where, file.provenance.started, torch, its.counts, its.local, its.contributed)
        for metric in sorted(file.measurements):
            measured = file.measurements[metric]
            yield (*known, metric, measured.unit, measured.calls), measured.samples


def _csv(stored: Sequence[Stored], flags: Mapping[str, _Flags]) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=6) as stream:
        stream.write(_line(COLUMNS))
        for common, samples in _series(stored, flags):
            first = _line([_cell(value) for value in common]).rstrip(b"\r\n")
            stream.writelines(first + f",{place},{value!r}\r\n".encode() for place, value in enumerate(samples))
    return packed.getvalue()


def _cell(value: str | bool | int) -> str:  # noqa: FBT001 -- a value of a table
    return str(value).lower() if isinstance(value, bool) else defused(str(value))


def _line(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)  # Its own line ends: with others it would leave a bare one in a cell unquoted.
    return text.getvalue().encode()


_TABLE = pa.schema(
    [
        *(pa.field(name, pa.dictionary(pa.int32(), pa.string())) for name in COLUMNS[:9]),
        *(pa.field(name, pa.bool_()) for name in COLUMNS[9:12]),
        *(pa.field(name, pa.dictionary(pa.int32(), pa.string())) for name in COLUMNS[12:14]),
        pa.field("calls", pa.int64()),
        pa.field("place", pa.int32()),
        pa.field("value", pa.float64()),
    ]
)


def _parquet(stored: Sequence[Stored], flags: Mapping[str, _Flags]) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, _TABLE, compression="zstd") as writer:
        for first in range(0, max(1, len(stored)), _AT_ONCE):
            series = list(_series(stored[first : first + _AT_ONCE], flags))
            lengths = [len(samples) for _, samples in series]
            rows = pa.array(np.repeat(np.arange(len(series)), lengths))
            columns = [
                pa.array([common[place] for common, _ in series], field.type).take(rows)
                for place, field in enumerate(list(_TABLE)[:-2])
            ]
            places = [np.arange(length) for length in lengths]
            values = [np.asarray(samples) for _, samples in series]
            columns += [pa.array(np.concatenate([np.arange(0), *places]), pa.int32())]
            columns += [pa.array(np.concatenate([np.zeros(0), *values]), pa.float64())]
            writer.write_table(pa.Table.from_arrays(columns, schema=_TABLE))
    pa.default_memory_pool().release_unused()
    return sink.getvalue()


# -- case files


def _zip(project: Path, stored: Iterable[Stored]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in stored:
            entry = zipfile.ZipInfo(one.path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # As on Unix, wherever it is made.
            archive.writestr(entry, (project / one.path).read_bytes())
    return packed.getvalue()


def _index(edition: Edition, found: Iterable[Export]) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "article": edition.article.id,
        "reportkit": __version__,
        "protocol": PROTOCOL,
        "licence": LICENCE,
        "measured": _newest(edition.stored),
        "files": [
            {"kind": one.kind, "name": one.name, "sha256": one.sha256, "bytes": one.size, "rows": one.rows}
            for one in found
        ],
    }


# -- the crate


def _crate(edition: Edition, hashes: Mapping[str, str], found: Sequence[Export]) -> dict[str, Any]:
    """Return the metadata of a Process Run Crate: each run as an action, with the case files that it left."""
    title = f"Checked edition of {edition.article.id}: measurements and verdicts"
    people = {"@id": "#contributors", "@type": "Organization", "name": "checked edition contributors"}
    tool = {
        "@id": f"#reportkit-{__version__}",
        "@type": "SoftwareApplication",
        "name": "reportkit",
        "softwareVersion": __version__,
    }
    runs: dict[tuple[str, str, str], list[Stored]] = {}
    for stored in edition.stored:
        runs.setdefault((stored.file.machine, stored.file.lane, stored.file.run), []).append(stored)
    torches = {_torch(stored.file): stored.file for stored in edition.stored if stored.file.environment}
    apps = [_application(at, file) for at, file in sorted(torches.items())]
    actions = [_action(name, files, tool["@id"], people["@id"]) for name, files in sorted(runs.items())]
    actions.append(_judging(found, tool["@id"], people["@id"]))
    files = [_file(one.name, one.size, one.sha256) for one in found]
    files += [
        _file(stored.path, (edition.project / stored.path).stat().st_size, hashes[stored.path])
        for stored in edition.stored
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": title,
        "description": "Every sample that was measured, and every verdict that was reached on them by rule.",
        "conformsTo": {"@id": _PROFILE},
        "license": {"@id": _LICENCE_AT},
        "publisher": {"@id": people["@id"]},
        "author": {"@id": people["@id"]},
        "datePublished": _newest(edition.stored),
        "hasPart": _ids(files),
        "mentions": _ids(actions),
    }
    descriptor = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    known = [
        {"@id": _PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {"@id": _LICENCE_AT, "@type": "CreativeWork", "name": LICENCE},
    ]
    return {"@context": _CONTEXT, "@graph": [descriptor, root, *known, people, tool, *apps, *actions, *files]}


def _action(name: tuple[str, str, str], files: Sequence[Stored], tool: str, people: str) -> dict[str, Any]:
    machine, lane, run = name
    complete = sum(stored.file.status == "complete" for stored in files)
    torches = sorted({_torch(stored.file) for stored in files if stored.file.environment})
    action = {
        "@id": f"#run-{machine}-{lane}-{run}",
        "@type": "CreateAction",
        "name": f"Run {run}: lane {lane} on {machine}",
        "description": f"{len(files)} cases were measured, each in a process of its own; {complete} are complete.",
        "startTime": _moment(min(stored.file.provenance.started for stored in files)),
        "endTime": _moment(max(stored.file.provenance.finished for stored in files)),
        "agent": {"@id": people},
        "instrument": [{"@id": tool}, *({"@id": one} for one in torches)],
        "result": [{"@id": _uri(stored.path)} for stored in files],
        "actionStatus": f"http://schema.org/{'Completed' if complete else 'Failed'}ActionStatus",
    }
    if not complete:
        action["error"] = f"none of {len(files)} cases is complete; each file says why"
    return action


def _judging(found: Sequence[Export], tool: str, people: str) -> dict[str, Any]:
    """Return the action that made the verdicts. It has no times: judged again, the same files give the same bytes."""
    names = {one.kind: {"@id": _uri(one.name)} for one in found}
    return {
        "@id": "#judging",
        "@type": "CreateAction",
        "name": "Judging",
        "description": "Every claim was held to its bound, by the thresholds that the verdicts name.",
        "agent": {"@id": people},
        "instrument": {"@id": tool},
        "object": names["case-files"],
        "result": [names[kind] for kind in ("verdicts", "samples-csv", "samples-parquet")],
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }


def _torch(file: CaseFile) -> str:
    """Return where the PyTorch of a file is from: its commit, if the file names one, else a name of its own."""
    environment = file.environment
    commit = environment.torch_git if environment else ""
    if re.fullmatch(r"[0-9a-f]{40}", commit):
        return f"https://github.com/pytorch/pytorch/tree/{commit}"
    return f"#torch-{_sha256(f'{environment and environment.torch} {commit}'.encode())[:_IN_NAME]}"


def _application(at: str, file: CaseFile) -> dict[str, Any]:
    version = file.environment.torch if file.environment else ""
    application = {"@id": at, "@type": "SoftwareApplication", "name": "PyTorch", "softwareVersion": version}
    return application | {"url": "https://pytorch.org"}


def _file(path: str, size: int, sha256: str) -> dict[str, Any]:
    ending = path.rpartition("/")[2].partition(".")[2]
    media = next((media for end, media in _MEDIA.items() if ending.endswith(end)), "application/octet-stream")
    found = {"@id": _uri(path), "@type": "File", "name": path.rpartition("/")[2], "sha256": sha256}
    return found | {"contentSize": str(size), "encodingFormat": media}


def _ids(entities: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"@id": entity["@id"]} for entity in entities]


def _uri(path: str) -> str:
    return quote(path)


# -- bytes


def _newest(stored: Iterable[Stored]) -> str | None:
    """Return when the newest file was finished: a date of the data, and not of this build."""
    return max((one.file.provenance.finished for one in stored), default=None)


def _moment(text: str) -> str:
    """Return a moment of a case file as the crate's profile writes it."""
    return f"{text.removesuffix('Z')}+00:00"


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1) + b"\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
