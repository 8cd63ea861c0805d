"""Small projects with made-up case files, each built once for all tests of a run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
import pytest

from experiments import ARTICLE
from reportkit import records
from reportkit.digest import digests
from reportkit.records import CaseFile, Finding
from tests.casefiles import case_file, provenance, write_run, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    MakeProject = Callable[[str], Path]

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("docs", "experiments", "lanes", "reportkit", "mkdocs.yml", "mkdocs.zh.yml")

FEW = 12
"""A folder with more pages than this has pages made alike, by a program."""

HOSTILE = (
    "{{ 7*7 }}{% raw %}<script>alert(1)</script><img src=x onerror=alert(1)> **bold** [l](javascript:alert(1)) "
    "`code` ${x} </code></pre></td> {#id .cls onclick=alert(1)} --8<-- 'a' \"b\" &lt; <!-- ]]> \\ \u202egnp.exe"
)
"""What a stranger may write into any string."""


def golden(name: str, made: str) -> None:
    """Hold what was made against the file of that name; with REPORTKIT_GOLDEN set, write the file instead."""
    # A chart's drawing depends on the fonts that are there; its data stands in its table.
    made = re.sub(r'<div class="rk-plot".*?</script>', "", made, flags=re.DOTALL)
    text = re.sub(r"(</(?:tr|p|summary|details|figcaption)>)", r"\1\n", made) + "\n"
    file = Path(__file__).parent / "golden" / name
    if os.environ.get("REPORTKIT_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


@dataclass(frozen=True, slots=True)
class Built:
    """A project after `python -m reportkit report`."""

    project: Path
    code: int
    output: str
    errors: str

    @property
    def site(self) -> Path:
        """The folder of the site."""
        return self.project / "site"

    def page(self, path: str) -> str:
        """Return a page's HTML."""
        return (self.site / path).read_text(encoding="utf-8")

    def pages(self, language: str) -> list[str]:
        """Return every page of a language by its path below that language's root, without the ending."""
        root = self.site / ("zh" if language == "zh" else "")
        found = (file.relative_to(root).with_suffix("").as_posix() for file in root.rglob("*.html"))
        return sorted(name for name in found if language == "zh" or not name.startswith("zh/"))

    def kinds(self, language: str) -> list[str]:
        """Return pages that stand for all: those of a folder, or the smallest, middle and largest where it has many."""
        root = self.site / ("zh" if language == "zh" else "")
        folders: dict[str, list[str]] = {}
        for name in sorted(self.pages(language), key=lambda name: (root / f"{name}.html").stat().st_size):
            folders.setdefault(name.rpartition("/")[0], []).append(name)
        few = [[n[0], n[len(n) // 2], n[-1]] if len(n) > FEW else n for n in folders.values()]
        return sorted(name for names in few for name in names)


def report(project: Path) -> Built:
    """Build the site of a project in a process of its own, as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "reportkit", "report"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.fspath(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Built(project, done.returncode, done.stdout, done.stderr)


def copy_project(folder: Path) -> Path:
    """Copy what a site is made from, without any case file."""
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    return folder


@pytest.fixture(scope="session")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> MakeProject:
    """Return a function that makes a project of that name."""
    return lambda name: copy_project(tmp_path_factory.mktemp("projects", numbered=True) / name)


@pytest.fixture(scope="session")
def empty(make_project: MakeProject) -> Built:
    """Return a site of a project where nothing was ever measured."""
    return report(make_project("empty"))


@pytest.fixture(scope="session")
def smoke(make_project: MakeProject) -> Built:
    """Return a site with nothing but small shapes on a CPU."""
    project, now = make_project("smoke"), digests(ARTICLE)
    write_run(
        project,
        lane="2.4",
        gpu=False,
        scale="smoke",
        digests=now,
        findings={"cache-hit": False, "all-cache-hits": False, "flag-compiles": False},
    )
    write_run(project, folder="runs", gpu=False, scale="smoke", digests=now, findings={"flag-compiles": False})
    return report(project)


@pytest.fixture(scope="session")
def full(make_project: MakeProject) -> Built:
    """Return a site with full-scale files of two lanes on the article's machine, and small shapes beside them."""
    project, now = make_project("full"), digests(ARTICLE)
    findings = {"flag-compiles": False}
    write_run(project, digests=now, speedups={"resnet50": 1.36, "bert": 1.04}, findings=findings)
    write_run(project, lane="2.15", digests=now, speedups={"resnet50": 1.71, "bert": 1.22}, findings=findings)
    write_run(project, folder="runs", lane="2.4", gpu=False, scale="smoke", digests=now)
    return report(project)


@pytest.fixture(scope="session")
def whole(make_project: MakeProject) -> Built:
    """Return a site where every case of the plan was measured in four lanes on two machines."""
    project = make_project("whole")
    write_whole(project, digests=digests(ARTICLE))
    return report(project)


def hostile(file: CaseFile) -> CaseFile:
    """Return the file with a stranger's text in every string that may hold any."""
    environment = file.environment
    assert environment
    text = dict.fromkeys(
        ("torch", "torch_git", "cuda", "cudnn", "triton", "driver", "gpu", "gpu_id", "cpu", "kernel", "python"), HOSTILE
    )
    return msgspec.structs.replace(
        file,
        reason=HOSTILE if file.status != "complete" else None,
        traceback=f"{HOSTILE}\n{HOSTILE}" if file.status != "complete" else None,
        provenance=msgspec.structs.replace(provenance(), command=HOSTILE, commit=HOSTILE),
        environment=msgspec.structs.replace(
            environment,
            **text,
            compiler=HOSTILE,
            packages={HOSTILE: HOSTILE},
            variables={HOSTILE: HOSTILE},
            notes=[HOSTILE],
        ),
        settings={HOSTILE: HOSTILE},
        findings={name: Finding(holds=f.holds, evidence={HOSTILE: HOSTILE}) for name, f in file.findings.items()},
    )


@pytest.fixture(scope="session")
def attacked(make_project: MakeProject) -> Built:
    """Return a site over a stranger's files, some of them damaged."""
    project, now = make_project("attacked"), digests(ARTICLE)
    # In two lanes, so that pages which hold one against the other have a stranger's text as well.
    for lane, experiment in ((lane, experiment) for lane in ("2.5", "2.15") for experiment in ARTICLE.experiments):
        for case in experiment.cases:
            finding = {"default-backend": "inductor-by-default", "from-pretrained": "flag-compiles"}.get(experiment.id)
            failed = case.name == "table.bert-d-cold-2"
            file = case_file(
                case.name,
                lane=lane,
                machine="stranger",
                digest=now[case.name],
                speedup=1.3 if experiment.kind == "timing" and case.steady and not failed else None,
                first_call=20.0 if experiment.kind == "timing" and not failed else None,
                status="crashed" if failed else "complete",
                findings={finding: True} if finding else {"cache-hit": True, "all-cache-hits": True},
                anchors={"launch": 4e-6},
            )
            records.write(project / "results", hostile(file))
    folder = project / "results" / "stranger" / "2.5" / "benchmarks"
    truncated = min(folder.glob("table.bert-t*"))
    truncated.write_bytes(truncated.read_bytes()[:300])
    (folder / f"{HOSTILE[:40].replace('/', '')}.json").write_text("{}", encoding="utf-8")
    return report(project)


class _Quiet(SimpleHTTPRequestHandler):
    """A server of files that says nothing: the output belongs to pytest."""

    def end_headers(self) -> None:
        """Allow LinkChecker more than ten requests a second."""
        self.send_header("LinkChecker", "yes")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        """Say nothing."""


@contextlib.contextmanager
def serving(root: Path) -> Iterator[str]:
    """Serve a folder on this machine alone, and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=os.fspath(root)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def served(full: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of the full site, served below a path of its own."""
    root = tmp_path_factory.mktemp("served")
    (root / "some").mkdir()
    (root / "some" / "path").symlink_to(full.site)
    with serving(root) as address:
        yield f"{address}some/path/"
