"""A small article of made-up experiments, with samples and counts of every kind, for whatever a claim may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reportkit.claims import Where
from reportkit.plan import Article, Case, Experiment, Section
from tests.casefiles import DIGEST, case_file, measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reportkit.claims import Claim
    from reportkit.plan import Kind
    from reportkit.records import CaseFile, Scale

WORKLOADS = ("a", "b", "c")
PROCESSES = ("p-1", "p-2", "p-3")
SPEEDUPS = {"a": 1.5, "b": 1.2, "c": 2.0}
FIRST = {"p-1": 10.0, "p-2": 11.0, "p-3": 10.5}


def case(experiment: str, axes: Mapping[str, str], scales: tuple[Scale, ...] = ("full", "smoke")) -> Case:
    return Case(experiment=experiment, axes=axes, workload="w", cost={"full": 1, "smoke": 1}, scales=scales)


def experiment(name: str, kind: Kind, *cases: Case) -> Experiment:
    return Experiment(id=name, kind=kind, cases=cases, prepare=lambda _case, _here: dict)


EXPERIMENTS = (
    experiment(
        "timed",
        "timing",
        *(
            case(
                "timed",
                {"workload": workload, "process": process},
                ("full", "smoke") if process == "p-1" else ("full",),
            )
            for workload in WORKLOADS
            for process in PROCESSES
        ),
    ),
    experiment("counted", "fact", *(case("counted", {"dynamic": value}) for value in ("default", "false"))),
    experiment("large", "timing", case("large", {"workload": "a"}, ("full",))),
    experiment("traced", "control", case("traced", {"workload": "a"})),
)
DIGESTS = {one.name: DIGEST for each in EXPERIMENTS for one in each.cases}


def timed(workload: str | tuple[str, ...], *processes: str, lane: str | None = None) -> Where:
    return Where("timed", {"workload": workload, "process": processes or ("p-1",)}, lane)


def counted(value: str) -> Where:
    return Where("counted", {"dynamic": value})


def files(*, scale: Scale = "full", **more: Any) -> dict[str, CaseFile]:
    """Return a file for each case, by its name: samples, counts and passes of every kind."""
    found: dict[str, CaseFile] = {}
    for each in EXPERIMENTS:
        for one in each.cases:
            if scale not in one.scales:
                continue
            if each.kind == "fact":
                graphs = 2.0 if one.axes["dynamic"] == "default" else 8.0
                file = case_file(one.name, speedup=None, first_call=None, scale=scale, axes=dict(one.axes), **more)
                found[one.name] = measured(file, "1", graphs=[graphs])
                continue
            workload, process = str(one.axes["workload"]), str(one.axes.get("process", "p-1"))
            file = case_file(
                one.name,
                speedup=SPEEDUPS[workload],
                first_call=FIRST[process],
                noise=0.001,
                scale=scale,
                axes=dict(one.axes),
                launches={"eager": 40, "eager_least": 38, "compiled": 10, "compiled_least": 10},
                memory={"eager_allocated": 4 * 2**30, "compiled_allocated": 3 * 2**30},
                **more,
            )
            file = measured(file, "s", eager_busy=[0.0060, 0.0061, 0.0062, 0.0061, 0.0060])
            file = measured(file, "s", entire_frame_compile=[0.9 * FIRST[process]], alone=[1.0])
            found[one.name] = measured(file, "J", eager_energy=[2.0, 2.02], compiled_energy=[1.0, 1.01])
    return found


def article(*claims: Claim) -> Article:
    return Article(
        id="a",
        lane="2.5",
        machines=("nvidia-h200",),
        sections=(Section(id="benchmarks", number=1, claims=claims, experiments=EXPERIMENTS),),
    )
