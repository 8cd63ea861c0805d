"""Case files made up for tests: whole ones by default, and whatever a test wants changed.

Nothing in here was measured. Samples come from a seeded generator, so that they are the same on
every machine and in every run.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec

from experiments import ARTICLE
from reportkit import records
from reportkit.claims import Each, Fact
from reportkit.records import CaseFile, Correctness, Environment, Finding, Measurement, Provenance, Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from reportkit.claims import Claim

DIGEST = "0123456789abcdef"
RUN = "20261130t120000z"
COMMIT = "f00dfeed" * 5
DIGESTS = {case.name: DIGEST for experiment in ARTICLE.experiments for case in experiment.cases}
"""What `judge` and the site take for the digests of now, where files are made with the default digest."""


def environment(*, gpu: bool = True, torch: str = "2.5.1+cu124", **overrides: Any) -> Environment:
    """Return an environment with or without a GPU."""
    fields: dict[str, Any] = {
        "torch": torch,
        "torch_git": f"a8d6afb511a6{torch[:3]}",
        "cuda": "12.4",
        "cudnn": "90100" if gpu else None,
        "triton": "3.1.0",
        "driver": "570.86.15" if gpu else None,
        "gpu": "NVIDIA H200" if gpu else None,
        "gpu_id": "5f2a9c11" if gpu else None,
        "cpu": "Intel(R) Xeon(R) Platinum 8480C" if gpu else "AMD EPYC 7B13",
        "cores": 16 if gpu else 2,
        "kernel": "6.1.0",
        "python": "3.11.2",
        "compiler": "c++ (Debian 12.2.0-14) 12.2.0",
        "packages": {"torch": torch, "transformers": "4.46.3"},
        "variables": {},
        "lock": {"lock": "77aa", "locked": True, "index": None},
    }
    return Environment(**(fields | overrides))


def provenance(
    *, started: str = "2026-11-30T12:00:00Z", dirty: bool = False, commit: str | None = COMMIT
) -> Provenance:
    """Return where a file comes from; it finished when it started."""
    return Provenance(
        command="python -m reportkit run --lane 2.5",
        commit=commit,
        dirty=dirty,
        started=started,
        finished=started,
        reportkit="0.1.0",
    )


def steady(
    speedup: float = 1.63, *, pairs: int = 60, eager: float = 0.0124, noise: float = 0.004, seed: str = ""
) -> dict[str, Measurement]:
    """Return the GPU and wall times of both sides: `pairs` pairs around a true `speedup`.

    `eager` is seconds a call; `noise` is the relative standard deviation of a sample.
    """
    chance = random.Random(f"steady {seed}")  # noqa: S311 -- made-up samples, no secret

    def times(centre: float) -> list[float]:
        return [float(f"{centre * max(0.01, chance.gauss(1, noise)):.6g}") for _ in range(pairs)]

    return {
        f"{side}_{clock}": Measurement(
            unit="s", samples=times(centre * (1.02 if clock == "wall" else 1)), warmups=20, calls=5
        )
        for clock in ("gpu", "wall")
        for side, centre in (("eager", eager), ("compiled", eager / speedup))
    }


def case_file(  # noqa: PLR0913 -- every default is a choice that some test changes
    case: str = "table.resnet50-d-cold-1",
    *,
    gpu: bool = True,
    speedup: float | None = 1.63,
    pairs: int = 60,
    eager: float = 0.0124,
    noise: float = 0.004,
    first_call: float | None = 24.0,
    findings: Mapping[str, bool] | None = None,
    started: str = "2026-11-30T12:00:00Z",
    dirty: bool = False,
    status: str = "complete",
    right: bool = True,
    graphs: int = 1,
    **overrides: Any,
) -> CaseFile:
    """Return a case file of that case: complete, fresh under DIGEST, clean, full-scale on an H200.

    `speedup` None leaves steady state out, `first_call` None the first call. `overrides` replace
    fields of the record by name; a status other than complete has no samples unless given.
    """
    experiment = case.split(".", 1)[0]
    plan = {c.name: c for e in ARTICLE.experiments for c in e.cases}.get(case)
    known = any(e.id == experiment for e in ARTICLE.experiments)
    measurements: dict[str, Measurement] = {}
    if status == "complete":
        if speedup is not None:
            measurements |= steady(speedup, pairs=pairs, eager=eager, noise=noise, seed=f"{case} {started}")
        if first_call is not None:
            measurements["first_call"] = Measurement(unit="s", samples=[first_call])
    if not gpu:
        measurements = {name: m for name, m in measurements.items() if not name.endswith("_gpu")}
    fields: dict[str, Any] = {
        "schema": records.SCHEMA,
        "protocol": records.PROTOCOL,
        "digest": DIGEST,
        "run": RUN,
        "section": ARTICLE.section_of(experiment).id if known else "benchmarks",
        "experiment": experiment,
        "case": case,
        "lane": "2.5",
        "machine": "nvidia-h200" if gpu else "dev-cpu",
        "scale": "full",
        "axes": dict(plan.axes) if plan else {},
        "status": status,
        "reason": None if status == "complete" else "the child ended without an answer",
        "traceback": None if status == "complete" else "RuntimeError: made up",
        "provenance": provenance(started=started, dirty=dirty),
        "environment": environment(gpu=gpu),
        "settings": {"float32_matmul_precision": "highest"},
        "counters": {"unique_graphs": graphs, "graph_breaks": 0},
        "correctness": Correctness(
            right=right,
            eager_error=1e-6,
            compiled_error=1.1e-6 if right else 0.3,
            noise_floor=0.0,
            tolerance=1e-3,
            multiplier=3.0,
        )
        if measurements
        else None,
        "measurements": measurements,
        "findings": {
            name: Finding(holds=holds, evidence={"made up": True}) for name, holds in (findings or {}).items()
        },
        "telemetry": Telemetry(
            clock=[1.98e9] * pairs if speedup is not None else [],
            busy_clock=1.98e9,
            temperature=[41.0, 55.0],
            power=[120.0, 610.0],
        )
        if gpu
        else Telemetry(missing="no GPU"),
        "phases": {"import": 4.0, "prepare": 1.5},
    }
    return CaseFile(**(fields | overrides))


def _facts(claims: Iterable[Claim]) -> list[Fact]:
    facts: list[Fact] = []
    for claim in claims:
        parts = claim.quantity.parts.values() if isinstance(claim.quantity, Each) else (claim.quantity,)
        facts += [part for part in parts if isinstance(part, Fact)]
    return facts


def run_files(  # noqa: PLR0913 -- as case_file
    *,
    lane: str = "2.5",
    gpu: bool = True,
    scale: str = "full",
    digests: Mapping[str, str] | None = None,
    speedups: Mapping[str, float] | None = None,
    findings: Mapping[str, bool] | None = None,
    only: str = "",
    **overrides: Any,
) -> list[CaseFile]:
    """Return a file for every case of the article whose name starts with `only`, as one run leaves them.

    `speedups` is by the value of the axis `workload`, `findings` by their names; a finding not
    named there holds. `overrides` go to `case_file`.
    """
    speedups = {"resnet50": 1.63, "bert": 1.25} | dict(speedups or {})
    torch = {"2.4": "2.4.1+cu121", "2.5": "2.5.1+cu124", "2.15": "2.15.0+cu130"}.get(lane, "2.16.0.dev20261129+cu130")
    files = []
    for experiment in ARTICLE.experiments:
        for case in experiment.cases:
            if not case.name.startswith(only):
                continue
            observed = {
                fact.finding: (findings or {}).get(fact.finding, True)
                for fact in _facts(ARTICLE.claims)
                if fact.where.experiment == experiment.id and case.matches(fact.where.axes)
            }
            timed = experiment.kind == "timing"
            workload = str(case.axes.get("workload"))
            slow = 2.0 if workload == "bert" else 1.0
            fields: dict[str, Any] = {
                "lane": lane,
                "gpu": gpu,
                "scale": scale,
                "digest": (digests or DIGESTS)[case.name],
                "environment": environment(gpu=gpu, torch=torch),
                "speedup": speedups.get(workload, 1.2) if timed and case.steady else None,
                "first_call": (22.0 if case.cache == "cold" else 6.0) * slow if timed else None,
                "findings": observed,
            }
            files.append(case_file(case.name, **(fields | overrides)))
    return files


def write_run(project: Path, *, folder: str = "results", **wishes: Any) -> list[Path]:
    """Write what `run_files` returns below `project`/`folder`; return the paths."""
    return [records.write(project / folder, file) for file in run_files(**wishes)]


def changed(file: CaseFile, **fields: Any) -> CaseFile:
    """Return the file with fields replaced."""
    return msgspec.structs.replace(file, **fields)
