"""Case files made up for tests: whole ones by default, and whatever a test wants changed.

Nothing in here was measured. Samples come from a seeded generator, so that they are the same on
every machine and in every run.
"""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from experiments import ARTICLE, controls
from reportkit import records
from reportkit.claims import Fact, FirstCall, Metric, leaves
from reportkit.records import CaseFile, Correctness, Environment, Finding, Measurement, Provenance, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from reportkit.plan import Case
    from reportkit.records import Unit

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


def _asked(case: Case, *kinds: type) -> list[Any]:
    """Return what claims ask of a case, of these kinds."""
    return [
        leaf
        for claim in ARTICLE.claims
        for leaf in leaves(claim.quantity)
        if isinstance(leaf, kinds)
        for where in leaf.cases()
        if where.experiment == case.experiment and any(case.matches(where.at(one)) for one in claim.settings or (None,))
    ]


def _metrics(file: CaseFile, case: Case, *, gpu: bool) -> CaseFile:
    """Return the file with every metric that a claim asks of its case, and what its passes leave."""
    names = [name for leaf in _asked(case, Metric) for name in (leaf.name,)]
    names += [name for leaf in _asked(case, FirstCall) for name in (leaf.metric, leaf.of) if name]
    if gpu and "launches" in case.passes:
        file = changed(file, launches={"eager": 60, "eager_least": 60, "compiled": 20, "compiled_least": 20})
        file = measured(file, "s", eager_busy=[0.0101, 0.0102] * 2, compiled_busy=[0.0061, 0.0062] * 2)
    if gpu and "memory" in case.passes:
        sizes = {"eager_allocated": 2**31, "compiled_allocated": 2**30}
        file = changed(file, memory=sizes | {"eager_reserved": 2**32, "compiled_reserved": 2**31})
    if gpu and "energy" in case.passes:
        file = measured(file, "J", eager_energy=[2.0, 2.02], compiled_energy=[1.0, 1.01])
    for name in dict.fromkeys(names):
        if "." not in name and name not in file.measurements:
            time = name.endswith(("_call", "_compile"))
            file = measured(file, "s" if time else "1", **{name: [5.0 if time else 2.0]})
    if not file.measurements and not file.findings:
        return changed(file, findings={"made-up": Finding(holds=True, evidence={"made up": True})})
    return file


def run_files(  # noqa: PLR0913 -- as case_file
    *,
    lane: str = "2.5",
    gpu: bool = True,
    scale: str = "full",
    digests: Mapping[str, str] | None = None,
    speedups: Mapping[str, float] | None = None,
    findings: Mapping[str, bool] | None = None,
    only: str = "",
    times: Callable[[Case], Mapping[str, Any]] | None = None,
    **overrides: Any,
) -> list[CaseFile]:
    """Return a file for every case of the article whose name starts with `only`, as one run leaves them.

    `speedups` is by the value of the axis `workload`, `findings` by their names; a finding not
    named there holds. `times` returns what `case_file` takes for one case in place of those. `overrides` go to
    `case_file` for all.
    """
    speedups = {"resnet50": 1.63, "bert": 1.25} | dict(speedups or {})
    torch = {"2.4": "2.4.1+cu121", "2.5": "2.5.1+cu124", "2.15": "2.15.0+cu130"}.get(lane, "2.16.0.dev20261129+cu130")
    files: list[CaseFile] = []
    for experiment in ARTICLE.experiments:
        for case in experiment.cases:
            if not case.name.startswith(only) or scale not in case.scales:
                continue
            observed = {fact.finding: (findings or {}).get(fact.finding, True) for fact in _asked(case, Fact)}
            timed = experiment.kind == "timing"
            known = int(case.axes.get("repeats", 100)) / 100  # What a control is by construction; a trap is 1.
            workload = str(case.axes.get("workload"))
            slow = 2.0 if workload == "bert" else 1.0
            fields: dict[str, Any] = {
                "lane": lane,
                "gpu": gpu,
                "scale": scale,
                "digest": (digests or DIGESTS)[case.name],
                "environment": environment(gpu=gpu, torch=torch),
                "speedup": known if experiment.kind in {"control", "trap"} else None,
                "first_call": (22.0 if case.cache == "cold" else 6.0) * slow if timed else None,
                "findings": observed,
                "phases": {"import": 0.4, "prepare": 1.5, "steady-state": 11.1},
            }
            if timed and case.steady:
                fields["speedup"] = speedups.get(workload, 1.2)
            if not {"started", "provenance"} & set(overrides):
                fields["provenance"] = moments(len(files))
            if timed and times:
                given = times(case)
                fields |= given if case.steady else {**given, "speedup": None}
            file = case_file(case.name, **(fields | overrides))
            if file.status == "complete":
                file = _metrics(_of_the_ruler(file, experiment.kind, gpu=gpu), case, gpu=gpu)
            files.append(file)
    return files


def moments(place: int) -> Provenance:
    """Return the provenance of a case that began ten seconds after the one before it, and took nine and a half."""
    begun = datetime(2026, 11, 30, 12, tzinfo=UTC) + timedelta(seconds=10 * place)
    text = "%Y-%m-%dT%H:%M:%SZ"
    ended = f"{begun + timedelta(seconds=9):{text}}"
    return msgspec.structs.replace(provenance(started=f"{begun:{text}}"), finished=ended)


def _of_the_ruler(file: CaseFile, kind: str, *, gpu: bool) -> CaseFile:
    """Return a file of section 0 with what its kind leaves besides; any other one as it is."""
    if kind == "trap":
        return _trap(file, gpu=gpu)
    if kind == "bench":
        made = timers(str(file.axes["workload"]), gpu=gpu) if "workload" in file.axes else trials(file)
        return changed(file, measurements=made, findings={}, correctness=None)
    if file.experiment == ARTICLE.anchors:
        times = {"launch": 2.4e-6, "copy": 1.3e-4, "mobilenet": 3.1e-3}
        return changed(file, measurements={name: _samples("s", time, 30, 0.01) for name, time in times.items()})
    return file


def _trap(file: CaseFile, *, gpu: bool) -> CaseFile:
    """Return the file of a trap: what the naive timer says, and whether and why ours refuses."""
    trap = str(file.axes["trap"])
    if not gpu and trap in {*controls.REFUSED_ON_A_GPU, *controls.SEEN_THROUGH_ON_A_GPU}:
        reason = "needs a GPU: made up"
        return changed(file, status="unavailable", reason=reason, measurements={}, findings={}, correctness=None)
    naive = {"naive_eager": _samples("s", 0.02, 5, 0.01), "naive_compiled": _samples("s", 0.0125, 5, 0.01)}
    if trap == "zero-graphs":
        naive["naive_graph_breaks"] = Measurement(unit="1", samples=[0.0])
    found = file.findings.get("refused")
    refused = found.holds if found else False
    finding = Finding(holds=refused, evidence={"reason": f"{trap} was found out" if refused else ""})
    return changed(file, measurements={**file.measurements, **naive}, findings={"refused": finding})


def timers(workload: str, *, gpu: bool = True) -> dict[str, Measurement]:
    """Return what six timers say of a workload, and what it costs them."""
    truth = 1.0 if workload == "tiny" else 1.05
    claims = {"ours": 0.003, "blocked-autorange": 0.01, "adaptive-autorange": 0.008}
    seconds = {"ours": 1.1, "thirty-pairs": 0.4, "hand-loop": 0.2} | dict.fromkeys(list(claims)[1:], 0.5)
    seconds |= {"do-bench": 0.3} if gpu else {}
    made = {"truth": Measurement(unit="1", samples=[truth])}
    for name, cost in seconds.items():
        noise = 0.002 if name == "ours" else 0.02
        centre = truth * (1.04 if name == "hand-loop" else 1)
        made[f"{name}.ratio"] = _samples("1", centre, 20, noise, f"{workload} {name}")
        made[f"{name}.seconds"] = _samples("s", cost, 20, 0.02, f"{workload} {name} s")
        if name in claims:
            made[f"{name}.error"] = _samples("1", claims[name], 20, 0.1, f"{workload} {name} e")
    return made


def trials(file: CaseFile, number: int = 400, missed: int = 20) -> dict[str, Measurement]:
    """Return trials of the ruler, of which `missed` do not hold the truth; none claims a difference falsely."""
    truth = 1.05 if file.axes.get("truth") == "known" else 1.0
    centres = [truth * (1.006 if trial < missed else 1.001) for trial in range(number)]
    made = {"low": [one - 0.004 for one in centres], "centre": centres, "high": [one + 0.004 for one in centres]}
    made |= {"pairs": [60.0] * number, "truth": [truth]}
    return {
        **{name: Measurement(unit="1", samples=[round(one, 6) for one in samples]) for name, samples in made.items()},
        "seconds": Measurement(unit="s", samples=[1.5] * number),
    }


def _samples(unit: Unit, centre: float, number: int, noise: float, seed: str = "") -> Measurement:
    """Return samples around a centre, of that relative standard deviation."""
    chance = random.Random(f"samples {seed} {centre}")  # noqa: S311 -- made-up samples, no secret
    return Measurement(unit=unit, samples=[float(f"{centre * chance.gauss(1, noise):.6g}") for _ in range(number)])


def write_run(project: Path, *, folder: str = "results", **wishes: Any) -> list[Path]:
    """Write what `run_files` returns below `project`/`folder`; return the paths."""
    return [records.write(project / folder, file) for file in run_files(**wishes)]


class Made(NamedTuple):
    """What a made-up case takes on the first machine in lane 2.5."""

    eager: float
    """Seconds a call."""
    speedup: float
    first: float
    """Seconds of a first call on empty caches."""


WHOLE: Mapping[str, Made] = {
    "": Made(0.004, 1.2, 9),
    "table.resnet50-d": Made(0.0166, 1.31, 14.2),
    "table.resnet50-t": Made(0.0161, 1.33, 14.1),
    "table.resnet50-h": Made(0.0088, 1.52, 14.6),
    "table.bert-d": Made(0.0523, 1.04, 15.3),
    "table.bert-t": Made(0.0164, 1.21, 15.0),
    "table.bert-h": Made(0.0081, 1.36, 15.8),
    "table.vit-d": Made(0.081, 1.03, 13.1),
    "table.vit-t": Made(0.0262, 1.14, 13.3),
    "table.vit-h": Made(0.0121, 1.19, 13.0),
    "table.unet-d": Made(0.392, 1.11, 88),
    "table.unet-t": Made(0.231, 1.24, 86),
    "table.unet-h": Made(0.118, 1.47, 91),
    "table.mobilenet-h": Made(0.0071, 1.83, 10.4),
    "batches.resnet50-8": Made(0.0055, 1.12, 14),
    "batches.resnet50-32": Made(0.0091, 1.26, 14),
    "batches.resnet50-256": Made(0.0641, 1.34, 14),
    "mlp": Made(0.00021, 1.62, 4.1),
    "stream.cnn-stream": Made(0.0124, 0.97, 21),
    "stream.cnn-fixed": Made(0.0031, 1.24, 8),
    "generate.gpt2": Made(1.21, 1.07, 61),
    "generate.llama-static": Made(1.34, 1.42, 31),
    "generate.llama-graphs": Made(1.34, 3.05, 36),
    "amp.resnet50": Made(0.0112, 1.38, 15),
    "amp.bert": Made(0.0103, 1.29, 17),
    "modes.reduce-overhead": Made(0.0088, 1.55, 16.5),
    "modes.max-autotune": Made(0.0088, 1.74, 139),
    "modes.max-autotune-resnet50-h-beside": Made(0.0058, 1.12, 40),
    "modes.max-autotune-no": Made(0.0088, 1.66, 44),
    "training.resnet50-a": Made(0.0331, 1.19, 31),
    "training.resnet50-d": Made(0.0505, 1.14, 30),
    "training.bert-a": Made(0.0308, 1.13, 33),
    "training.bert-d": Made(0.155, 1.02, 32),
    "training.dcgan": Made(0.0064, 0.93, 25),
    "forward.bert": Made(0.0107, 1.27, 21),
    "small.mobilenet": Made(0.0045, 1.41, 10.2),
    "small.resnet50": Made(0.0049, 1.18, 14.4),
    "moe.moe": Made(0.0021, 1.01, 12),
    "moe.dense": Made(0.0013, 1.09, 5),
    "recursive.trees": Made(0.0212, 0.71, 24),
    "recursive.lstm": Made(0.0061, 1.002, 2.2),
    "operator.opaque": Made(0.00121, 1.48, 4),
    "operator.same-maths": Made(0.00136, 3.9, 4),
    "operator.triton": Made(0.0012, 1.51, 5),
    "lengths.bert-h-dynamic": Made(0.0312, 1.16, 24),
    "lengths.bert-h-each": Made(0.0312, 1.27, 84),
    "tiny": Made(0.000052, 0.66, 3.1),
    "again.trees": Made(0.0212, 0.71, 24),
    "again.moe": Made(0.0021, 1.01, 12),
}
"""By the beginning of a case's name; the longest that fits counts."""

LANES = {"2.4": (1.03, 0.96), "2.5": (1.0, 1.0), "2.15": (0.94, 1.05), "nightly": (0.93, 1.06)}
"""What a lane multiplies eager time and speedup by."""

MACHINES = {"nvidia-h200": ("NVIDIA H200", 1.0, 1.0), "nvidia-l4": ("NVIDIA L4", 6.5, 1.05)}
"""A GPU each, and what the machine multiplies eager time and speedup by."""

NOT_SO = ("flag-compiles", "undeprecated", "several-candidates-timed", "yields-a-report", "compiles-by-default")
"""Findings that do not hold in a whole project."""


def whole_files(
    digests: Mapping[str, str] | None = None,
    lanes: Sequence[str] = tuple(LANES),
    machines: Sequence[str] = tuple(MACHINES),
    **wishes: Any,
) -> list[CaseFile]:
    """Return a file for every case of the plan in each of the lanes on each of the machines, with plausible times.

    On the smaller GPU the largest model runs out of memory in fp32.
    """
    files: list[CaseFile] = []
    for machine, lane in itertools.product(machines, lanes):
        gpu, slower, more = MACHINES[machine]
        eager_by, speedup_by = LANES[lane]

        def times(case: Case, lane: str = lane, by: tuple[float, ...] = (slower, more, eager_by, speedup_by)) -> Any:
            made = WHOLE[max((name for name in WHOLE if case.name.startswith(name)), key=len)]
            process = case.axes.get("process", "")
            chance = random.Random(f"{case.name.removesuffix(str(process))} {lane}")  # noqa: S311 -- no secret
            eager = made.eager * by[0] * by[2] * chance.uniform(0.98, 1.02)
            speedup = 1 + (made.speedup * chance.uniform(0.99, 1.02) - 1) * by[1] * by[3] ** 3
            first = random.Random(f"{case.name} {lane}").gauss(1, 0.04)  # noqa: S311 -- no secret
            first *= made.first * (0.34 if case.cache == "warm" else 1)
            return {"eager": eager, "speedup": speedup, "first_call": round(first, 3), "noise": 0.006}

        for file in run_files(
            lane=lane, digests=digests, findings=dict.fromkeys(NOT_SO, False), pairs=30, times=times, **wishes
        ):
            environment = file.environment and msgspec.structs.replace(file.environment, gpu=gpu)
            made = _counted(changed(file, machine=machine, environment=environment), slower)
            if machine != "nvidia-h200" and file.case.startswith("table.unet-d"):
                made = changed(made, status="out-of-memory", reason="CUDA out of memory", measurements={}, findings={})
            files.append(made)
    return files


def _counted(file: CaseFile, slower: float) -> CaseFile:
    """Return a file whose numbers are no times of both sides with plausible ones."""
    if file.case == "lengths-range.false-1024":
        file = measured(file, "1", graphs=[8.0])
    if file.case == "batch-sizes.false":
        file = measured(file, "1", graphs=[8.0])
    if file.experiment == "token":
        file = measured(file, "B", weights=[3.11e9], copied=[2.15e9])
        file = measured(file, "s", token=[0.0104 * slower] * 5, copy=[5.3e-4 * slower] * 5)
    if "entire_frame_compile" in file.measurements:
        first = file.measurements["first_call"].samples[0]
        file = measured(file, "s", entire_frame_compile=[round(first * 0.9, 3)])
    if file.experiment in {"table", "small", "modes", "lengths"} and "first_call" in file.measurements:
        file = measured(file, "s", inductor_import=[4.1])
    if file.launches:
        file = changed(file, launches={"eager": 312, "eager_least": 312, "compiled": 118, "compiled_least": 118})
    return file


def write_whole(project: Path, *, folder: str = "results", **wishes: Any) -> list[Path]:
    """Write what `whole_files` returns below `project`/`folder`; return the paths."""
    return [records.write(project / folder, file) for file in whole_files(**wishes)]


def measured(file: CaseFile, unit: Unit, **samples: list[float]) -> CaseFile:
    """Return the file with further measurements, by name; one that did not complete stays without."""
    if file.status != "complete":
        return file
    made = {name: Measurement(unit=unit, samples=its) for name, its in samples.items()}
    return changed(file, measurements={**file.measurements, **made})


def changed(file: CaseFile, **fields: Any) -> CaseFile:
    """Return the file with fields replaced."""
    return msgspec.structs.replace(file, **fields)
