"""The measured process: one case, or at smoke scale the facts of one section, one after another.

Started by the runner as `python -m reportkit.bench.child DESCRIPTOR`, or forked by its server, with a
`Request` on its standard input. Answers go to the descriptor alone; what a workload prints goes to the
streams, which the runner keeps the end of. A case that changed the process for those after it is the last one in it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from time import perf_counter  # Bound now: a workload may put something else into `time`.
from typing import BinaryIO, NoReturn

import msgspec

from reportkit.bench import counters
from reportkit.bench.case import STARTED_IN, Progress, measure
from reportkit.bench.environment import read as read_environment
from reportkit.bench.forkserver import end_with_parent
from reportkit.bench.messages import Hello, Refusal, Request, Spent, send
from reportkit.plan import Here, load_article


def main() -> int:
    """Serve one request; return an exit code."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)  # noqa: FBT003 -- its own signature
    # Compile workers that outlive us must not hold the pipe open.
    end_with_parent()  # A later run wants the machine for itself.
    runner = _take_standard_input()
    faulthandler.enable()  # Where a workload kills the process, the end of what it printed says in which call.
    request = msgspec.json.decode(runner.readline(), type=Request)
    start = perf_counter()
    try:
        import torch
    except ImportError as error:
        send(descriptor, Refusal(reason=f"torch can't be imported here: {error}"))
        return 2
    release = torch.__version__.split("+")[0]
    if request.torch is not None and release != request.torch:
        send(descriptor, Refusal(reason=f"the torch here is {torch.__version__}, and the lane pins {request.torch}"))
        return 2
    # In a forked process next to nothing: the server has paid for it, once for all.
    imported = round(perf_counter() - start, 3)
    send(descriptor, Hello(environment=read_environment(STARTED_IN, request.lane)))
    if request.scale is None:
        return 0
    here = Here(scale=request.scale, device="cuda" if torch.cuda.is_available() else "cpu")
    article = load_article(STARTED_IN)
    cases = {case.name: (experiment, case) for experiment in article.experiments for case in experiment.cases}
    # A process of one case has no neighbour to guard, and imports nothing for it.
    before = counters.left_behind() if len(request.cases) > 1 else {}
    for name in request.cases:
        progress = Progress(name, descriptor)
        if name == request.cases[0]:
            progress.phases["import"] = imported
        send(descriptor, measure(*cases[name], here, progress, only=request.only))
        if not runner.readline():
            return 1  # The runner is gone.
        if name != request.cases[-1]:
            after = counters.left_behind()
            changed = sorted(what for what in before.keys() | after.keys() if before.get(what) != after.get(what))
            if changed:
                send(descriptor, Spent(reason=f"{name} changed its process ({', '.join(changed)})"))
                return 0
    return 0


def _take_standard_input() -> BinaryIO:
    """Return what the runner says, and leave an empty standard input to the workloads."""
    runner = os.fdopen(os.dup(0), "rb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return runner


def leave(code: int) -> NoReturn:
    """End the process at once: all is said, and to take torch and the GPU's context down in order takes a second."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # A workload may have put something else there, or closed it.
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())
