"""A case file is believed only if it is whole, of this format, true to its rules and in its place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reportkit import records
from reportkit.records import RecordError
from tests.casefiles import case_file, changed, run_files, write_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.records import CaseFile

OLD = Path(__file__).parent / "data" / "schema-1.json"
GOOD = records.encode(case_file(findings={"cache-hit": True}))
NASTY = '{{ 7*7 }} {% raw %} <script>alert("x")</script> | [a](javascript:x) `` \\ \u202e \x00 </td>'


def put(*path: str | int, value: Any) -> bytes:
    document: Any = json.loads(GOOD)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return json.dumps(document).encode()


def sample(text: str) -> bytes:
    """Return a case file with this text for a sample."""
    compact = json.dumps(json.loads(GOOD))
    assert compact.count('"samples": [24.0]') == 1
    return compact.replace('"samples": [24.0]', f'"samples": [{text}]').encode()


def appended(text: str) -> bytes:
    return GOOD.rstrip()[:-1] + text.encode() + b"}"


REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "truncated"),
    "truncated": (GOOD[: len(GOOD) // 2], "not a case file"),
    "trailing": (GOOD + b"{}", "trailing"),
    "a list": (b"[]", "Expected `object`"),
    "null": (b"null", "Expected `object`"),
    "not UTF-8": (GOOD.replace(b"NVIDIA", b"NVIDI\xc1"), "UTF-8"),
    "a byte-order mark": (b"\xef\xbb\xbf" + GOOD, "not a case file"),
    "half a surrogate": (GOOD.replace(b"NVIDIA", b"\\ud800"), "not a case file"),
    "newer schema": (put("schema", value=2), "newer schema 2; this reportkit reads 1. Update reportkit"),
    "unknown schema": (put("schema", value=0), "unknown schema 0"),
    "schema in words": (put("schema", value="1"), "Expected `int`"),
    "schema true": (put("schema", value=True), "Expected `int`"),
    "NaN": (sample("NaN"), "not a case file"),
    "infinity": (sample("Infinity"), "not a case file"),
    "1e999": (sample("1e999"), "out of range"),
    "minus 1e999": (put("phases", "import", value=4.0).replace(b'"import": 4.0', b'"import": -1e999'), "out of range"),
    "a sample of 400 digits": (sample("9" * 400), "out of range"),
    "a counter of 30 digits": (put("counters", "unique_graphs", value=10**30), "64 bits"),
    "a counter of 400 digits": (put("counters", "unique_graphs", value=10**400), "64 bits"),
    "an axis of 30 digits": (put("axes", "n", value=10**30), "64 bits"),
    "a counter of 5000 digits": (GOOD.replace(b'"unique_graphs": 1', b'"unique_graphs": ' + b"9" * 5000), "not a case"),
    "a negative counter": (put("counters", "unique_graphs", value=-1), "negative"),
    "negative drops": (put("telemetry", "dropped_pairs", value=-60), "negative"),
    "a field twice": (appended(',"lane":"2.4"'), "there twice: 'lane'"),
    "a schema twice": (appended(',"schema":1'), "there twice: 'schema'"),
    "a field twice deep inside": (
        GOOD.replace(b'"unique_graphs": 1', b'"unique_graphs": 0, "unique_graphs": 1'),
        "there twice: 'unique_graphs'",
    ),
    "deep": (appended(',"axes":' + "[" * 100_000 + "]" * 100_000), "nested too deeply|not a case file"),
    "an unknown field": (appended(',"verdict":"supported"'), "unknown field `verdict`"),
    "a sample in words": (sample('"24"'), "Expected `float`"),
    "a sample true": (sample("true"), "Expected `float`"),
    "no sample": (sample(""), "has 0 samples"),
    "a negative sample": (sample("-1.0"), "negative sample"),
    "a time of zero": (sample("0.0"), "a time outside"),
    "a time that makes ratios infinite": (sample("5e-324"), "a time outside"),
    "a time of ages": (sample("1e300"), "a time outside"),
    "two first calls": (sample("24.0, 25.0"), "one first call"),
    "a time in bytes": (put("measurements", "first_call", "unit", value="B"), "is a time"),
    "no calls": (put("measurements", "first_call", "calls", value=0), "counts 0 calls"),
    "unequal pairs": (put("measurements", "eager_gpu", "samples", value=[1.0] * 59), "in pairs"),
    "one side only": (GOOD.replace(b'"eager_wall"', b'"eager_well"'), "only one of"),
    "a name with a folder": (put("machine", value="../x"), "regex"),
    "a name with a final newline": (put("machine", value="nvidia-h200\n"), "no valid name"),
    "a name in other digits": (put("machine", value="h\u0662"), "regex"),
    "a name too long": (put("machine", value="m" * 65), "regex"),
    "a case of another experiment": (put("case", value="default-backend.gelu"), "not one of experiment"),
    "a digest that is none": (put("digest", value="{{ x }}"), "no hexadecimal"),
    "a moment that is none": (put("provenance", "started", value="yesterday"), "no moment"),
    "finished before it started": (put("provenance", "finished", value="2025-11-30T12:00:00Z"), "before it started"),
    "a status of its own": (put("status", value="great"), "Invalid enum"),
    "failed without a reason": (put("status", value="failed"), "without a reason"),
    "complete without an environment": (put("environment", value=None), "without an environment"),
    "complete without anything": (
        json.dumps({**json.loads(GOOD), "measurements": {}, "findings": {}}).encode(),
        "neither measurements nor findings",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_one_message(what: str) -> None:
    data, words = REFUSED[what]
    with pytest.raises(RecordError, match=words):
        records.decode(data)


def test_clocks_of_unequal_length_are_refused() -> None:
    file = case_file()
    short = {
        name: msgspec.structs.replace(measured, samples=measured.samples[:40]) if name.endswith("_wall") else measured
        for name, measured in file.measurements.items()
    }
    with pytest.raises(RecordError, match=r"have \[40, 60\] samples"):
        records.encode(changed(file, measurements=short))


def test_what_is_refused_when_read_is_refused_when_written() -> None:
    for file in (
        changed(case_file(), phases={"import": float("nan")}),
        changed(case_file(), counters={"unique_graphs": 2**64}),
        changed(case_file(), traceback="x" * (records.LARGEST_FILE + 1)),
        changed(case_file(), anchors={"launch": 0.0}),
        changed(case_file(), anchors={"launch": -4e-6}),
        changed(case_file(), memory={"eager_allocated": -1}),
        changed(case_file(), launches={"compiled": -1}),
    ):
        with pytest.raises(RecordError):
            records.encode(file)


def test_strings_may_hold_anything_and_come_back_as_they_were(tmp_path: Path) -> None:
    file = changed(case_file(status="failed"), reason=NASTY, traceback=NASTY * 20)
    path = records.write(tmp_path, file)
    assert records.read(path, tmp_path) == file


def test_a_file_is_written_sorted_indented_and_once(tmp_path: Path) -> None:
    path = records.write(tmp_path, case_file())
    assert path == tmp_path / "nvidia-h200/2.5/benchmarks/table.resnet50-d-cold-1--20261130t120000z.json"
    text = path.read_text()
    assert text.endswith("}\n")
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert text.startswith('{\n "anchors": null,')
    with pytest.raises(RecordError, match="never overwritten"):
        records.write(tmp_path, case_file())
    assert path.read_text() == text
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        records.write(tmp_path, case_file())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_old_file_stays_readable() -> None:
    # Never regenerate this file: it stands for all that were committed when schema 1 was written.
    file = records.decode(OLD.read_bytes())
    assert (file.schema, file.case, file.status) == (1, "table.resnet50-d-warm-2", "complete")
    assert file.measurements["eager_gpu"].samples[0] == 0.0123456
    assert file.findings["cache-hit"].evidence == {"fxgraph_cache_hit": 1, "fx_graph_cache": True}
    assert records.encode(file) == OLD.read_bytes()


def shift(path: Path, _root: Path) -> Path:
    target = path.with_name("table.resnet50-d-cold-2--20261130t120000z.json")
    path.rename(target)
    return target


def another_machine(path: Path, root: Path) -> Path:
    target = root / "nvidia-a100" / path.relative_to(root / "nvidia-h200")
    target.parent.mkdir(parents=True)
    path.rename(target)
    return target


def link(path: Path, root: Path) -> Path:
    elsewhere = root.parent / "elsewhere.json"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    return path


def dangling(path: Path, root: Path) -> Path:
    path.unlink()
    path.symlink_to(root / "nowhere")
    return path


def linked_folder(path: Path, root: Path) -> Path:
    machine = root / "nvidia-h200"
    elsewhere = root.parent / "elsewhere"
    machine.rename(elsewhere)
    machine.symlink_to(elsewhere)
    return machine if path.exists() else path


def folder(path: Path, _root: Path) -> Path:
    path.unlink()
    path.mkdir()
    return path


def pipe(path: Path, _root: Path) -> Path:
    path.unlink()
    os.mkfifo(path)
    return path


def large(path: Path, _root: Path) -> Path:
    path.write_bytes(GOOD + b" " * records.LARGEST_FILE)
    return path


def half(path: Path, _root: Path) -> Path:
    path.write_bytes(path.read_bytes()[:999])
    return path


def odd_name(path: Path, root: Path) -> Path:
    target = root / "{{ x }}" / "<b>.json"
    target.parent.mkdir()
    path.rename(target)
    return target


DAMAGES: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "another case's name": (shift, "in the wrong place: by its own words it is nvidia-h200/2.5/benchmarks/"),
    "another machine's folder": (another_machine, "in the wrong place"),
    "a link": (link, "symbolic link"),
    "a link to nothing": (dangling, "symbolic link"),
    "a folder that is a link": (linked_folder, "symbolic link"),
    "a folder named like a file": (folder, "no plain file"),
    "a pipe": (pipe, "no plain file"),
    "too large": (large, "larger than 2 MB"),
    "half of it": (half, "not a case file"),
    "odd names": (odd_name, "in the wrong place"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_one_damaged_file_is_named_and_the_others_are_read(damage: str, tmp_path: Path) -> None:
    break_it, words = DAMAGES[damage]
    root = tmp_path / "results"
    path = records.write(root, case_file())
    broken = break_it(path, root)
    write_run(tmp_path, machine="dev-cpu", gpu=False, scale="smoke", folder="runs", only="default-backend")
    stored, damaged = records.load(tmp_path)
    assert [one.path for one in damaged] == [broken.relative_to(tmp_path).as_posix()]
    assert words in damaged[0].problem
    assert str(tmp_path) not in damaged[0].problem
    assert [one.local for one in stored] == [True]


def test_an_unreadable_file_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records.write(tmp_path / "results", case_file())

    def denied(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", "/secret/place")

    monkeypatch.setattr(Path, "read_bytes", denied)
    _, [damage] = records.load(tmp_path)
    assert damage.problem == "can't be read: Permission denied"


def test_nothing_there_is_no_damage_and_what_a_killed_writer_left_is_ignored(tmp_path: Path) -> None:
    assert records.load(tmp_path) == ([], [])
    path = records.write(tmp_path / "results", case_file())
    path.with_name(f".{path.name}.tmp").write_bytes(b"{")
    path.with_name(f".{path.name}").write_bytes(b"{")
    stored, damaged = records.load(tmp_path)
    assert len(stored) == 1
    assert damaged == []


def test_keep_takes_full_scale_clean_files_and_says_why_not_others(tmp_path: Path) -> None:
    runs, results = tmp_path / "runs", tmp_path / "results"

    def wrote(name: str, **fields: Any) -> CaseFile:
        file = case_file(run=name, **fields)
        records.write(runs, file)
        return file

    good, failed = wrote("good"), wrote("failed", status="failed")
    wrote("small", scale="smoke")
    wrote("dirty", dirty=True)
    wrote("cut", status="interrupted")
    (runs / "junk.json").write_text("{")
    kept, left = records.keep(runs, results)
    assert kept == 2
    assert {path.rpartition("--")[2]: why.partition(":")[0] for path, why in left} == {
        "junk.json": "not a case file of schema 1",
        "small.json": "smoke scale",
        "dirty.json": "made from a dirty tree",
        "cut.json": "interrupted",
    }
    assert {one.file.run for one in records.load(tmp_path, ("results",))[0]} == {good.run, failed.run}
    assert records.keep(runs, results)[0] == 0


def test_the_schema_is_exported() -> None:
    schema = json.loads(records.json_schema())
    assert "CaseFile" in schema["$defs"]
    assert schema["$defs"]["CaseFile"]["additionalProperties"] is False


def test_every_made_up_file_obeys_the_rules() -> None:
    for file in run_files() + run_files(gpu=False, scale="smoke", lane="2.4"):
        assert records.decode(records.encode(file)) == file


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(json.loads(GOOD))), JSON)
def test_whatever_a_field_holds_it_is_read_or_refused(field: str, value: Any) -> None:
    try:
        file = records.decode(put(field, value=value))
    except RecordError as error:
        assert str(error)  # noqa: PT017 -- most are refused; what is not must be whole
    else:
        assert records.decode(records.encode(file)) == file


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=3))
def test_bytes_flipped_anywhere_never_crash(position: int, flipped: bytes) -> None:
    data = GOOD[:position] + flipped + GOOD[position + len(flipped) :]
    try:
        records.decode(data)
    except RecordError as error:
        assert str(error)  # noqa: PT017 -- either way is fine, a crash is not


def test_what_files_say_alike_is_in_memory_once(tmp_path: Path) -> None:
    write_run(tmp_path, only="table")
    write_run(tmp_path, only="table", lane="2.4")
    stored, damaged = records.load(tmp_path)

    assert not damaged
    by_lane = {lane: [one.file for one in stored if one.file.lane == lane] for lane in ("2.4", "2.5")}
    for files in by_lane.values():
        assert len({id(file.environment) for file in files}) == 1
    old, new = (files[0].environment for files in by_lane.values())
    assert old is not None
    assert new is not None
    assert (old.torch, new.torch) == ("2.4.1+cu121", "2.5.1+cu124")
    assert len({id(one.file.settings) for one in stored}) == 1
