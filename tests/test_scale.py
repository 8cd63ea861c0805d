"""The benchmark of the site's growth makes what it says, measures every step and leaves the project alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reportkit import records
from tests import scale

ROOT = Path(__file__).parents[1]


def test_a_hundred_runs_are_three_machines_eight_lanes_and_a_million_samples() -> None:
    made = list(scale.runs(25))
    places = {(file.machine, file.lane) for files in made for file in files}
    samples = [sum(len(one.samples) for file in files for one in file.measurements.values()) for files in made]

    assert len(places) == 3 * 8
    assert len({file.run for files in made for file in files}) == 25
    assert 0.9e6 < sum(samples) * 4 < 1.2e6
    paths = [records.relative_path(file) for files in made for file in files]
    assert len(set(paths)) == len(paths)


@pytest.mark.slow
def test_it_prints_seconds_and_memory_of_each_step() -> None:
    def results() -> set[Path]:
        return set((ROOT / "results").rglob("*")) if (ROOT / "results").exists() else set()

    before = results()
    done = subprocess.run(
        [sys.executable, "-m", "tests.scale", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.fspath(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    head, line, last = done.stdout.splitlines()
    assert head.split() == [
        "runs",
        "files",
        "samples",
        "MB",
        "loading",
        "peak",
        "judging",
        "peak",
        "rendering",
        "peak",
        "together",
    ]
    numbers = [float(word) for word in line.split() if word not in {"s", "MB"}]
    assert len(numbers) == 4 + 2 * len(scale.STEPS) + 1
    assert all(number >= 0 for number in numbers)
    peaks = numbers[5:-1:2]
    assert peaks == sorted(peaks)
    assert "the goal is less than 1 GB" in last
    assert results() == before
