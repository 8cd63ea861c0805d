"""Facts and pairs that go wrong, and some that do not."""

from reportkit.claims import TRUE, Claim, Fact, Speedup, Where, above
from reportkit.plan import Case, Experiment, Section, Sides
from reportkit.records import Finding

CLAIMS = (
    Claim(id="fact-holds", quantity=Fact(Where("facts", {"kind": "fine"}), "fine"), bound=TRUE, on="any"),
    Claim(id="pair-gains", quantity=Speedup(Where("pairs", {"kind": "fine"})), bound=above(1.02), on="any"),
)


def misbehave(kind):
    """Do what the case is named after, inside the measured process."""
    import ctypes
    import os
    import sys
    import time

    descriptor = int(sys.argv[1])
    if kind == "raises":
        raise RuntimeError("{{ 7 * 7 }} <script>alert(1)</script>")
    if kind == "exits":
        os._exit(7)
    if kind == "segfaults":
        ctypes.string_at(0)
    if kind == "hangs":
        time.sleep(3600)
    if kind == "prints":
        sys.stdout.write("x" * 20_000_000)
    if kind == "garbage":
        os.write(descriptor, b"\xff\xff\xff\xff this is no message")
    if kind == "no-json":
        os.write(descriptor, b"\x00\x00\x00\x05hello")
    if kind == "memory":
        raise MemoryError
    if kind == "forks" and os.fork() == 0:
        time.sleep(60)  # Holds every descriptor that it inherited.


def prepare_fact(case, here):
    """Return a call that misbehaves, or finds that all is fine."""

    def observe():
        misbehave(case.axes["kind"])
        return {"fine": Finding(holds=True, evidence={"device": here.device})}

    return observe


def prepare_pair(case, here):
    """Return a pair whose compiled side is wrong in one way."""
    import gc

    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    kind = case.axes["kind"]
    late = []

    def eager():
        with torch.no_grad():
            return model(inputs)

    compiled_model = torch.compile(model, backend="eager")

    def compiled():
        with torch.no_grad():
            if kind == "wrong":
                return model(inputs) + 1
            if kind == "shape":
                return model(inputs)[:2]
            if kind == "nan":
                return model(inputs) * float("nan")
            if kind == "recompiles" and not gc.isenabled() and not late:
                # The collector is off only while pairs are taken: this compiles in their midst.
                late.append(torch.compile(lambda x: x.cos(), backend="eager")(inputs))
            if kind == "no-tensor":
                return 3
            return compiled_model(inputs)

    def reference():
        import copy

        with torch.no_grad():
            return copy.deepcopy(model).double()(inputs.double())

    return Sides(
        eager=eager if kind != "no-tensor" else lambda: 3, compiled=compiled, reference=reference, tolerance=1e-4
    )


def _cases(experiment, kinds, **options):
    return tuple(
        Case(
            experiment=experiment,
            axes={"kind": kind},
            workload="small",
            cost={"full": 1, "smoke": 1},
            **options,
        )
        for kind in kinds
    )


FACTS = Experiment(
    id="facts",
    kind="fact",
    cases=_cases(
        "facts",
        ("fine", "raises", "exits", "after", "segfaults", "hangs", "prints", "garbage", "no-json", "memory", "forks"),
    ),
    prepare=prepare_fact,
)
PAIRS = Experiment(
    id="pairs",
    kind="timing",
    cases=_cases("pairs", ("fine", "wrong", "shape", "nan", "recompiles", "no-tensor")),
    prepare=prepare_pair,
)
SECTION = Section(id="section", number=1, claims=CLAIMS, experiments=(FACTS, PAIRS))
