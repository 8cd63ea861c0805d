"""What the site offers to programs: valid by schema and profile, the same bytes each time, harmless in a cell."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pandas as pd
import pytest
import requests
from rocrate_validator import services
from rocrate_validator.models import Severity
from rocrate_validator.utils.http import HttpRequester

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.__main__ import main
from reportkit.records import Measurement
from reportkit.site import exports, texts
from reportkit.site.edition import Edition
from tests.casefiles import DIGESTS, case_file, changed, run_files, write_run
from tests.site.conftest import HOSTILE, ROOT, hostile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reportkit.records import CaseFile
    from reportkit.site.exports import Export
    from tests.site.conftest import Built

LANES = ("2.4", "2.5", "2.15")
QUICK = judge.Criteria(draws=200)
TERMS = Path(__file__).parent / "crate-terms.json"
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
RUNS_IN_A_CELL = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201")


def edition(project: Path, files: Iterable[CaseFile] = ()) -> Edition:
    """Return the edition of files that are written below `project`."""
    for file in files:
        records.write(project / "results", file)
    stored, damaged = records.load(project)
    assert not damaged
    return Edition(
        project=project,
        article=ARTICLE,
        lanes=LANES,
        stored=tuple(stored),
        damaged=(),
        verdicts=judge.judge(ARTICLE, stored, LANES, DIGESTS, QUICK),
        observations=judge.observe(ARTICLE, stored, DIGESTS, QUICK),
        criteria=QUICK,
        texts=texts.load_texts(ROOT, ARTICLE),
    )


def of(made: Edition, kind: str) -> Export:
    return next(one for one in made.exports if one.kind == kind)


def csv_rows(made: Edition) -> list[dict[str, str]]:
    text = gzip.decompress(of(made, "samples-csv").data).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def parquet(made: Edition) -> pd.DataFrame:
    return pd.read_parquet(io.BytesIO(of(made, "samples-parquet").data))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Return an edition with two lanes on the article's machine, a failed case, and small shapes that were not kept."""
    project = tmp_path_factory.mktemp("whole")
    write_run(project, lane="2.4", only="table")
    files = [file for file in run_files() if file.case != "table.bert-d-cold-1"]
    failed = case_file("table.bert-d-cold-1", status="crashed")
    write_run(project, folder="runs", gpu=False, scale="smoke", only="table")
    return edition(project, [*files, failed])


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Return an edition in which nothing was ever measured."""
    return edition(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Return an edition of a stranger's files, a metric of theirs being called like a formula."""
    file = hostile(case_file(machine="stranger"))
    nasty = {text: Measurement(unit="s", samples=[1.0]) for text in (*RUNS_IN_A_CELL, HOSTILE, "\u7f16\u8bd1")}
    return edition(tmp_path_factory.mktemp("strangers"), [changed(file, measurements=file.measurements | nasty)])


EVERY = pytest.mark.parametrize("name", ["whole", "empty", "strangers"])


@EVERY
def test_verdicts_are_valid_by_their_schema_and_name_files_by_hash(name: str, request: pytest.FixtureRequest) -> None:
    made: Edition = request.getfixturevalue(name)
    schema, verdicts = (json.loads(of(made, kind).data) for kind in ("verdicts-schema", "verdicts"))

    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(verdicts)
    rows = verdicts["verdicts"]
    assert [(row["id"], row["lane"], row["machine"], row["verdict"]) for row in rows] == [
        (verdict.claim, verdict.lane, verdict.machine, verdict.outcome) for verdict in made.verdicts
    ]
    for row in rows:
        assert set(row["statement"]) == {"en", "zh"}
        for file in row["files"]:
            assert hashlib.sha256((made.project / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    assert any(row["files"] for row in rows) == (name != "empty")


def test_a_verdict_that_breaks_the_schema_is_refused_by_it(whole: Edition) -> None:
    schema, verdicts = (json.loads(of(whole, kind).data) for kind in ("verdicts-schema", "verdicts"))
    for field, value in (("verdict", "perhaps"), ("lane", "Not A Name"), ("more", 1)):
        broken = json.loads(json.dumps(verdicts))
        broken["verdicts"][0][field] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate(broken)


def test_case_files_are_valid_by_their_schema(whole: Edition, strangers: Edition) -> None:
    for made in (whole, strangers):
        check = jsonschema.Draft202012Validator(json.loads(of(made, "case-file-schema").data))
        for stored in made.stored:
            check.validate(json.loads((made.project / stored.path).read_bytes()))


@EVERY
def test_csv_and_parquet_hold_every_sample_in_order(name: str, request: pytest.FixtureRequest) -> None:
    made: Edition = request.getfixturevalue(name)
    rows, table = csv_rows(made), parquet(made)
    expected = [
        (stored.path, exports.defused(metric), str(place), value)
        for stored in made.stored
        for metric in sorted(stored.file.measurements)
        for place, value in enumerate(stored.file.measurements[metric].samples)
    ]

    assert [(row["file"], row["metric"], row["place"], float(row["value"])) for row in rows] == expected
    assert list(table.columns) == list(exports.COLUMNS)
    assert len(table) == len(rows) == of(made, "samples-csv").rows == of(made, "samples-parquet").rows
    assert table["value"].tolist() == [value for *_, value in expected]
    assert table["place"].tolist() == [int(place) for _, _, place, _ in expected]
    assert table["file"].tolist() == [path for path, *_ in expected]


def test_samples_say_what_a_reader_must_know_of_their_file(whole: Edition, strangers: Edition) -> None:
    table = parquet(whole)
    assert set(table["lane"]) == {"2.4", "2.5"}
    assert table.loc[table["scale"] == "smoke", "local"].all()
    assert not table.loc[table["scale"] == "full", "local"].any()
    assert table.loc[table["scale"] == "full", "counts"].all()
    assert not table.loc[table["machine"] == "nvidia-h200", "contributed"].any()
    assert parquet(strangers)["contributed"].all()
    for made in (whole, strangers):
        rows, table = csv_rows(made), parquet(made)
        for flag in ("counts", "local", "contributed"):
            assert [row[flag] == "true" for row in rows] == table[flag].tolist()


@pytest.mark.parametrize("text", RUNS_IN_A_CELL)
def test_a_cell_never_starts_a_formula(text: str, strangers: Edition) -> None:
    found = exports.defused(text)
    assert found == f"'{text}"
    assert found in {row["metric"] for row in csv_rows(strangers)}
    assert text in set(parquet(strangers)["metric"])  # Nothing runs what is in Parquet.
    for row in csv_rows(strangers):
        for column, cell in row.items():
            assert column == "value" or not cell.startswith(RUNS_IN_A_CELL), (column, cell)


def test_text_of_any_language_survives(strangers: Edition) -> None:
    for metrics in ({row["metric"] for row in csv_rows(strangers)}, set(parquet(strangers)["metric"])):
        assert {"\u7f16\u8bd1", HOSTILE} <= metrics


@EVERY
def test_the_archive_holds_the_case_files_as_they_are(name: str, request: pytest.FixtureRequest) -> None:
    made: Edition = request.getfixturevalue(name)
    with zipfile.ZipFile(io.BytesIO(of(made, "case-files").data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [stored.path for stored in made.stored]
        for path in archive.namelist():
            assert archive.read(path) == (made.project / path).read_bytes()


@EVERY
def test_a_name_changes_with_its_content_and_the_index_lists_all(name: str, request: pytest.FixtureRequest) -> None:
    made: Edition = request.getfixturevalue(name)
    *files, index = made.exports
    listed = {one["name"]: one for one in json.loads(index.data)["files"]}

    assert index.name == "index.json"
    assert list(listed) == [one.name for one in files]
    assert [one.kind for one in files] == [kind for kind in exports.KINDS if kind != "crate" or made.stored]
    for one in files:
        digest = hashlib.sha256(one.data).hexdigest()
        assert listed[one.name]["sha256"] == digest
        assert listed[one.name]["bytes"] == len(one.data)
        assert one.kind == "crate" or f"-{digest[:16]}." in one.name


def test_another_sample_is_another_address(tmp_path: Path) -> None:
    one, other = (edition(tmp_path / str(speedup), [case_file(speedup=speedup)]) for speedup in (1.5, 1.6))
    for kind in ("verdicts", "samples-csv", "samples-parquet", "case-files"):
        assert of(one, kind).name != of(other, kind).name, kind
    for kind in ("verdicts-schema", "case-file-schema"):
        assert of(one, kind).name == of(other, kind).name, kind


def test_the_same_files_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    from tests.site.conftest import copy_project

    seen = []
    for place, seed in (("a", "1"), ("b", "2")):
        project = copy_project(tmp_path / place)
        write_run(project, only="table")
        done = subprocess.run(
            [sys.executable, "-m", "reportkit", "export", "out"],
            cwd=project,
            env={**os.environ, "PYTHONPATH": os.fspath(project), "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        out = project / "out"
        seen.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert seen[0] == seen[1]


def crate_problems(folder: Path, severity: Severity, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the profile's validator says against a crate; it asks no other host."""

    def get(_self: HttpRequester, url: str, **_settings: object) -> requests.Response:
        assert url == CONTEXT
        response = requests.Response()
        response.status_code = 200
        response.headers["Content-Type"] = "application/ld+json"
        response._content = TERMS.read_bytes()
        return response

    monkeypatch.setattr(HttpRequester, "get", get, raising=False)
    monkeypatch.setenv("ROCRATE_VALIDATOR_CACHE_AUTO_WARM", "false")
    settings = services.ValidationSettings(
        rocrate_uri=os.fspath(folder),
        profile_identifier="process-run-crate",
        requirement_severity=severity,
        offline=True,
        cache_path=folder.parent / "cache",
    )
    return sorted({str(issue.message) for issue in services.validate(settings).get_issues()})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # The validator's libraries warn of each other.
def test_the_crate_is_a_process_run_crate(
    whole: Edition, strangers: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, made in {"whole": whole, "strangers": strangers}.items():
        exports.write(made, tmp_path / name)
        assert crate_problems(tmp_path / name, Severity.REQUIRED, monkeypatch) == []
    broken = tmp_path / "whole" / exports.CRATE
    crate = json.loads(broken.read_bytes())
    for entity in crate["@graph"]:
        entity.pop("instrument", None)
    broken.write_text(json.dumps(crate), encoding="utf-8")
    assert any("instrument" in problem for problem in crate_problems(broken.parent, Severity.REQUIRED, monkeypatch))


def test_every_run_in_the_crate_points_at_files_that_are_there(whole: Edition, tmp_path: Path) -> None:
    exports.write(whole, tmp_path)
    graph = {entity["@id"]: entity for entity in json.loads((tmp_path / exports.CRATE).read_bytes())["@graph"]}
    runs = [entity for entity in graph.values() if entity["@id"].startswith("#run-")]

    assert {(stored.file.machine, stored.file.lane, stored.file.run) for stored in whole.stored} == {
        (stored.file.machine, stored.file.lane, stored.file.run)
        for run in runs
        for result in run["result"]
        for stored in whole.stored
        if stored.path == result["@id"]
    }
    for entity in graph.values():
        if entity["@type"] == "File":
            data = (tmp_path / entity["@id"]).read_bytes()
            assert entity["sha256"] == hashlib.sha256(data).hexdigest()
            assert entity["contentSize"] == str(len(data))
    used = re.findall(
        r'"@id": "([^"]+)"', json.dumps([one for one in graph.values() if one["@id"] != "ro-crate-metadata.json"])
    )
    assert {one for one in used if not one.startswith("https://w3id.org/ro/crate")} <= set(graph)


def test_where_nothing_was_measured_tables_are_empty_and_no_crate_tells_of_runs(empty: Edition) -> None:
    assert csv_rows(empty) == []
    assert len(parquet(empty)) == 0
    assert "crate" not in {one.kind for one in empty.exports}
    assert {row["verdict"] for row in json.loads(of(empty, "verdicts").data)["verdicts"]} <= {
        "not-measured",
        "not-testable",
    }


def test_exports_go_into_a_new_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")

    assert main(["export", os.fspath(tmp_path)]) == 2
    assert "is there already, and not empty; name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_the_site_offers_what_the_command_writes(full: Built, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reportkit", "export", os.fspath(tmp_path / "out")],
        cwd=full.project,
        env={**os.environ, "PYTHONPATH": os.fspath(full.project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()}
    data = full.site / "data"
    assert written == {path.relative_to(data) for path in data.rglob("*") if path.is_file()}
    for path in written:
        assert (data / path).read_bytes() == (tmp_path / "out" / path).read_bytes()
