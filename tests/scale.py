"""How loading, judging and rendering grow: at one run of the article in one lane, at ten, and at a hundred.

Run as a program (`python -m tests.scale [RUNS ...]`) it makes a project of made-up case files for each
size in a folder that it deletes, 3 machines and 8 lanes, a hundred runs being 10^6 samples, builds its site
in a process of its own, and prints processor seconds and memory: the peak of any one process by the end of each step,
and of all together, what they share counted once. Nothing is written under
results/. It ends with 1 where a size needs more memory than a reader's laptop should give.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from experiments import ARTICLE
from reportkit import records
from reportkit.digest import digests
from tests.casefiles import environment, run_files
from tests.site.conftest import copy_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reportkit.records import CaseFile

SIZES = (1, 10, 100)
MACHINES = ("nvidia-h200", "made-up-b", "made-up-c")
MADE_UP_LANES = ("2.6", "2.7", "2.8", "2.9")
LANES = ("2.4", "2.5", "2.15", "nightly", *MADE_UP_LANES)
PAIRS = 32
"""Of a steady case: a run then has about 10^4 samples."""
MOST = 1e9
"""Bytes, of all processes together."""
LOOK = 0.2
"""Seconds between two looks at the memory of all processes."""
STEPS = ("loading", "judging", "rendering")
LANE = """
[[lane]]
id = "{name}"
kind = "stable"
torch = "{name}.0"
python = ["3.11", "3.12"]
download_gb = 1.0
installed_gb = 1.0
minutes = 1
"""


def runs(number: int) -> Iterator[list[CaseFile]]:
    """Yield the case files of so many runs, each the whole article in one lane on one machine.

    All places are filled once before any has a history.
    """
    now = digests(ARTICLE)
    benches = {experiment.id for experiment in ARTICLE.experiments if experiment.kind == "bench"}
    places = [(machine, lane) for machine in MACHINES for lane in LANES]
    for run in range(number):
        machine, lane = places[run % len(places)]
        packages = {f"made-up-{place}": f"1.{place}.0" for place in range(55)}
        files = run_files(
            lane=lane,
            machine=machine,
            digests=now,
            pairs=PAIRS,
            run=f"made-up-{run:03}",
            started=f"2026-{1 + run // 28:02}-{1 + run % 28:02}T12:00:00Z",
            environment=environment(torch=f"{lane}.0", packages=packages),
            settings={f"made-up.{place}": bool(place % 2) for place in range(18)},
        )
        yield [file for file in files if file.experiment not in benches]


def make(project: Path, number: int) -> dict[str, int]:
    """Make a project with so many runs; return how many files and samples they are, and bytes."""
    copy_project(project)
    with (project / "lanes" / "lanes.toml").open("a", encoding="utf-8") as table:
        table.writelines(LANE.format(name=name) for name in MADE_UP_LANES)
    for name in MADE_UP_LANES:
        for kind in ("in", "txt"):
            (project / "lanes" / f"{name}.{kind}").write_text(f"torch=={name}.0\n", encoding="utf-8")
    made = {"files": 0, "samples": 0, "bytes": 0}
    for files in runs(number):
        for file in files:
            path = project / "results" / records.relative_path(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            data = records.encode(file)
            path.write_bytes(data)  # Not by `records.write`, which waits for the disk.
            made["files"] += 1
            made["samples"] += sum(len(one.samples) for one in file.measurements.values())
            made["bytes"] += len(data)
    return made


def build(project: Path) -> dict[str, float]:
    """Build the project's site in this process; return processor seconds by step, and the peak of memory, in bytes."""
    from reportkit.site import build as site
    from reportkit.site import edition

    took = dict.fromkeys(STEPS, 0.0)
    peak = dict.fromkeys(STEPS, 0.0)

    def timed(step: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def whole(*arguments: Any) -> Any:
            begun = _worked()
            try:
                return call(*arguments)
            finally:
                took[step] += _worked() - begun
                peak[step] = _peak()

        return whole

    module: Any = edition
    module.records.load = timed("loading", records.load)
    module.sift = timed("loading", module.sift)
    module.judge = timed("judging", module.judge)
    module.observe = timed("judging", module.observe)
    begun = _worked()
    if site.build(project):
        message = f"the site of {project.name} was not built; see above"
        raise SystemExit(message)
    took["rendering"] = _worked() - begun - took["loading"] - took["judging"]
    peak["rendering"] = _peak()
    return {**took, **{f"{step} peak": value for step, value in peak.items()}}


def _worked() -> float:
    """Return the seconds of processor time of this process and those it waited for: others' work does not count."""
    return sum(os.times()[:4])


def _peak() -> float:
    """Return the largest memory that this process, or one it waited for, has had so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in whose) * unit


def measured(number: int) -> dict[str, float]:
    """Return what a project of so many runs is, and what building its site takes, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        project = Path(folder) / f"runs-{number}"
        made = make(project, number)
        child = [sys.executable, "-m", "tests.scale", "--build", os.fspath(project)]
        running = subprocess.Popen(child, stdout=subprocess.PIPE, text=True)
        together = 0.0
        while True:
            try:
                said, _ = running.communicate(timeout=LOOK)
                break
            except subprocess.TimeoutExpired:
                together = max(together, _together(running.pid))
        if running.returncode:
            sys.stderr.write(said)
            raise SystemExit(running.returncode)
        return {**made, **json.loads(said.splitlines()[-1]), "together": together}


def _together(process: int) -> float:
    """Return the memory of a process and all below it now, in bytes; pages that several share count once."""
    total = 0.0
    first = psutil.Process(process)
    for one in (first, *first.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # It ended meanwhile.
            memory = one.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total


def main(arguments: list[str]) -> int:
    """Measure each size and print a line for it; return 1 where memory is more than `MOST`."""
    if arguments[:1] == ["--build"]:
        print(json.dumps(build(Path(arguments[1]))))  # noqa: T201 -- the answer to the parent
        return 0
    sizes = [int(text) for text in arguments] or list(SIZES)
    heads = "".join(f"{step:>11}{'peak':>8}" for step in STEPS)
    head = f"{'runs':>5}{'files':>8}{'samples':>9}{'MB':>6}{heads}{'together':>12}"
    print(head)  # noqa: T201 -- the interface of a benchmark
    worst = 0.0
    for number in sizes:
        seen = measured(number)
        steps = "".join(f"{seen[step]:9.1f} s{seen[f'{step} peak'] / 1e6:5.0f} MB" for step in STEPS)
        size = f"{number:5}{seen['files']:8}{seen['samples']:9}{seen['bytes'] / 1e6:6.0f}"
        print(f"{size}{steps}{seen['together'] / 1e6:9.0f} MB", flush=True)  # noqa: T201 -- as above
        worst = max(worst, seen["together"])
    told = "as wanted" if worst < MOST else "too much"
    print(f"largest memory: {worst / 1e9:.2f} GB, {told}: the goal is less than {MOST / 1e9:.0f} GB")  # noqa: T201
    return 0 if worst < MOST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
