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

    import resource
    import shutil
    import signal
    import subprocess
    import threading

    import torch

    descriptor = int(sys.argv[1])
    if kind == "switches":
        torch.use_deterministic_algorithms(True)
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("high")
        torch.set_num_threads(1 + torch.get_num_threads())
        torch.set_default_dtype(torch.float64)
        torch._dynamo.config.cache_size_limit = 1
    if kind == "process":
        os.chdir("/")
        signal.signal(signal.SIGINT, lambda *_: None)
        sys.setrecursionlimit(400)
    if kind == "clock":
        time.perf_counter = lambda: 0.0
        time.sleep = lambda _: None
    if kind == "threads":
        # Not a daemon: a process waits for it before it ends.
        threading.Thread(target=time.sleep, args=(3600,)).start()
    if kind == "fills":
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), -1))
        full = []
        while True:
            full.append(torch.ones(1 << 22))
    if kind == "uncached":
        shutil.rmtree(os.path.dirname(os.path.dirname(os.environ["TORCHINDUCTOR_CACHE_DIR"])))
    if kind == "sys-exit":
        sys.exit(0)
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "base":
        raise BaseException("neither")
    if kind == "recursion":
        sys.setrecursionlimit(sys.getrecursionlimit())
        depth = len(__import__("inspect").stack())
        sys.setrecursionlimit(depth + 5)
        misbehave.__get__(kind)  # Whatever is called now has hardly a frame left.
        raise RuntimeError("deep")
    if kind == "stray":
        subprocess.Popen(["sleep", "3600"], start_new_session=True)
    if kind == "twin":
        os.fork()  # Both come back.
    if kind == "asks":
        sys.stdin.read()
    if kind == "closes":
        os.close(descriptor)
    if kind == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(3600)
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


def around():
    """Return what a neighbour could have changed, as this case finds it."""
    import os
    import resource
    import signal
    import sys
    import threading
    import time

    import torch

    return {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "grad": torch.is_grad_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "threads": torch.get_num_threads(),
        "dtype": str(torch.get_default_dtype()),
        "cache_size_limit": torch._dynamo.config.cache_size_limit,
        "folder": os.path.basename(os.getcwd()),
        "handler": repr(signal.getsignal(signal.SIGINT)),
        "recursion": sys.getrecursionlimit(),
        "clock": repr((time.perf_counter, time.sleep)),
        "python_threads": threading.active_count(),
        "memory": repr(resource.getrlimit(resource.RLIMIT_AS)),
        "cache": os.path.isdir(os.path.dirname(os.environ["TORCHINDUCTOR_CACHE_DIR"])),
    }


def prepare_side(case, here):
    """Return a pair whose result can't be held against the other side's as it comes, and some that can."""
    import os
    import sys

    import torch

    from experiments import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    kind = case.axes["kind"]
    buffer = torch.empty(4, 8)
    calls = {True: 0, False: 0}
    if kind in {"switches", "clock"}:
        misbehave(kind)
    if kind == "exits":
        sys.exit(0)

    def side(is_eager):
        @torch.no_grad()
        def call():
            calls[is_eager] += 1
            result = model(inputs)
            if kind == "buffer":
                return buffer.copy_(result)[:2]
            if kind == "buffer-wrong":
                return buffer.copy_(result if is_eager else result + 1)[:2]
            if kind == "random":
                return result + torch.rand(4, 8)
            if kind == "other-random":
                torch.rand(1 if is_eager else 2)
                return result + torch.rand(4, 8)
            if kind == "noise":
                return result + os.urandom(1)[0] + 256 * calls[is_eager]
            if kind == "input":
                inputs.add_(1)
            if kind == "parameters":
                model.weight.mul_(0.5)
            if kind == "late" and calls[is_eager] > 4:
                return torch.zeros(4, 8)
            if kind == "nan-both":
                return result * float("nan")
            if kind == "dtype" and not is_eager:
                return result.double()
            if kind == "empty":
                return result[:0]
            if kind == "two-shapes":
                return result[: calls[is_eager]]
            if kind == "imaginary":
                return torch.complex(result, result if is_eager else -result)
            return result

        return call

    def reference():
        import copy

        with torch.no_grad():
            exact = copy.deepcopy(model).double()(inputs.double())
            if kind == "imaginary":
                return torch.complex(exact, exact)
            return exact[:2] if kind in {"buffer", "buffer-wrong"} else exact

    return Sides(
        eager=side(True),
        compiled=torch.compile(side(False), backend="eager") if kind == "plain" else side(False),
        reference=None if kind in {"random", "dtype", "empty", "nan-both"} else reference,
        tolerance=1e-4,
    )


def prepare_many(case, here):
    """Return a fact that says in the log that it has begun, and is quick."""
    import time

    def observe():
        with open("log", "a") as log:
            log.write(f"{case.axes['kind']}\n")
        time.sleep(0.05)
        return {"fine": Finding(holds=True, evidence={})}

    return observe


def prepare_fact(case, here):
    """Return a call that misbehaves, or finds that all is fine."""

    def observe():
        evidence = {"device": here.device, **around()}
        misbehave(case.axes["kind"])
        return {"fine": Finding(holds=True, evidence=evidence)}

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


def prepare_cold(case, here):
    """Return a pair that writes its process's caches, or goes wrong before it has."""
    import os

    import torch

    from experiments import workloads
    from reportkit.plan import Unavailable

    kind = case.axes["kind"].removesuffix("-again")
    if kind == "raises":
        raise RuntimeError("no caches")
    if kind == "exits":
        os._exit(7)
    if kind == "needs":
        raise Unavailable("needs a unicorn")
    model, inputs = getattr(workloads, case.workload)(here)
    compiled_model = torch.compile(model)

    def compiled():
        with torch.no_grad():
            return compiled_model(inputs)

    def eager():
        with torch.no_grad():
            return model(inputs)

    return Sides(eager=eager, compiled=compiled, reference=None, tolerance=1e-4)


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
        ("fine", "raises", "exits", "after", "segfaults", "hangs", "prints", "garbage", "no-json", "memory", "forks", "deaf"),
    ),
    prepare=prepare_fact,
)
PAIRS = Experiment(
    id="pairs",
    kind="timing",
    cases=_cases("pairs", ("fine", "wrong", "shape", "nan", "recompiles", "no-tensor")),
    prepare=prepare_pair,
)
ATTACKS = Experiment(
    id="attacks",
    kind="fact",
    cases=_cases(
        "attacks",
        (
            *("plain", "switches", "process", "clock", "threads", "uncached", "asks", "twin", "fills", "sys-exit"),
            *("interrupt", "base", "recursion", "closes", "stray", "last"),
        ),
    ),
    prepare=prepare_fact,
)
SIDES = Experiment(
    id="sides",
    kind="timing",
    cases=_cases(
        "sides",
        (
            *("plain", "buffer", "buffer-wrong", "random", "other-random", "noise", "input", "parameters"),
            *("nan-both", "dtype", "empty", "two-shapes", "imaginary", "exits", "switches", "clock", "last"),
        ),
        steady=False,
    )
    + _cases("sides", ("late",)),
    prepare=prepare_side,
)
COLD = Experiment(
    id="cold",
    kind="timing",
    cases=tuple(
        case
        for kind in ("fine", "raises", "exits", "needs")
        for case in (
            *_cases("cold", (kind,), cache="cold", steady=False),
            *_cases("cold", (f"{kind}-again",), cache="warm", follows=f"cold.{kind}", steady=False),
        )
    ),
    prepare=prepare_cold,
)
MANY = Experiment(
    id="many", kind="fact", cases=_cases("many", [f"{number:03}" for number in range(150)]), prepare=prepare_many
)
SCALED = Experiment(
    id="scaled",
    kind="fact",
    cases=(
        *_cases("scaled", ("both",)),
        *_cases("scaled", ("large", "larger"), scales=("full",)),
        *_cases("scaled", ("cold",), cache="cold"),
        *_cases("scaled", ("warm",), cache="warm", follows="scaled.cold", scales=("full",)),
    ),
    prepare=prepare_fact,
)
LARGE = Experiment(id="large", kind="fact", cases=_cases("large", ("only",), scales=("full",)), prepare=prepare_fact)
SECTION = Section(
    id="section",
    number=1,
    claims=CLAIMS,
    experiments=(FACTS, PAIRS, ATTACKS, SIDES, COLD, MANY, SCALED, LARGE),
)
