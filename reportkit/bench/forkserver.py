"""A process that has imported torch, Dynamo and the model libraries, and becomes a measured one by forking.

The runner starts it as `python -m reportkit.bench.forkserver DESCRIPTOR LIBRARIES...` and asks it, over a socket,
for one child after another. It imports, and does nothing else: no tensor, no compiling, no GPU is touched
before the fork. A child is given its variables before anything of inductor could read them, and becomes the
runner's own: the runner waits for it and ends it like one that it had started itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec
from msgspec import Struct

from reportkit.bench import environment as env

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

MARK = "REPORTKIT_CHILD"
"""The variable by which what a workload started is found, wherever it has gone."""

BLANK = "0" * 16
"""What the variable holds in the server, as long as a child's token, which takes its place."""

PATIENCE = 300.0
"""Seconds in which the server must have imported all."""

BIRTH = 60.0
"""Seconds in which a child must be there."""

MESSAGE = 1 << 16
"""Bytes of the longest message on the socket."""

PRIVATE = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Variables that differ from child to child. Every version reads them when it compiles, and not before."""

WORKERS = ("torch._inductor.compile_fx", "torch._inductor.async_compile", "torch._inductor.compile_worker")
"""What compiles, and starts processes and threads for it: nothing may bring it in before the fork. What Dynamo's own
import brings of inductor's settings, and of Triton, does no more than define things."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


class Ready(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server is like when it begins to fork."""

    preloaded: list[str]
    modules: list[str]
    """What is imported of that which compiles: nothing, or the server is not fit."""
    threads: int
    """Threads that it has once it has forked; numpy's end with the first fork, as they do with every one."""
    gpu_touched: bool
    """Whether a fork could not use CUDA."""


class Birth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a child begins with; its three descriptors come with the message."""

    runner: int
    variables: dict[str, str]


class Born(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The child is there, and is the runner's."""

    process: int


class ServerError(Exception):
    """The server is not there, or not fit to be forked."""


def main() -> int:
    """Import what is asked for, then fork a child for each request, until the runner is gone."""
    end_with_parent()
    runner = socket.socket(fileno=int(sys.argv[1]))
    runner.set_inheritable(False)
    import numpy as np  # noqa: F401 -- only to be there
    import torch._dynamo  # noqa: F401 -- seconds in each process else; it compiles nothing and starts nothing

    preloaded = [name for name in sys.argv[2:] if _harmless(name)]
    for name in preloaded:
        importlib.import_module(name)
    gpu_touched = not _in_a_fork(_can_use_cuda)
    ready = Ready(preloaded=preloaded, modules=_compiler(), threads=_threads(), gpu_touched=gpu_touched)
    runner.send(msgspec.json.encode(ready))
    while True:
        data, descriptors, _, _ = socket.recv_fds(runner, MESSAGE, 3)
        if not data:
            return 0
        middle = os.fork()
        if middle == 0:
            # The child of a process that ends at once becomes the runner's, which has asked the kernel for it.
            if os.fork():
                os._exit(0)
            _live(runner, descriptors, msgspec.json.decode(data, type=Birth))
        for descriptor in descriptors:
            os.close(descriptor)
        os.waitpid(middle, 0)


def _live(runner: socket.socket, descriptors: Sequence[int], birth: Birth) -> NoReturn:
    """Become a measured process, as if just started."""
    os.setsid()
    _show_mark(birth.variables[MARK])  # First, so that one whose runner did not wait for it is found.
    deadline = time.monotonic() + BIRTH
    while os.getppid() != birth.runner:
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.001)
    end_with_parent()
    if os.getppid() != birth.runner:
        os._exit(1)
    order, output, answers = descriptors
    for number, stream in ((0, order), (1, output), (2, output)):
        os.dup2(stream, number)
    os.close(order)
    os.close(output)
    os.environ.update(birth.variables)
    sys.argv[1:] = [str(answers)]
    runner.send(msgspec.json.encode(Born(process=os.getpid())))
    runner.close()
    from reportkit.bench import child

    child.leave(child.main())


def _show_mark(token: str) -> None:
    """Write the token where other processes see a process's variables, so that what it forks is found too.

    The kernel shows the memory that a program was started with; setting a variable leaves it as it was.
    """
    text = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    start, end = int(text[47]), int(text[48])  # env_start and env_end, fields 50 and 51 of proc(5)
    at = ctypes.string_at(start, end - start).find(f"{MARK}={BLANK}\0".encode())
    if at >= 0:
        ctypes.memmove(start + at + len(MARK) + 1, token.encode(), len(BLANK))


def end_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, however."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _compiler() -> list[str]:
    return sorted(name for name in sys.modules if name.startswith(WORKERS))


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _can_use_cuda() -> bool:
    import torch

    return not torch.cuda._is_in_bad_fork()  # noqa: SLF001 -- there is no public question


def _in_a_fork(question: object) -> bool:
    """Answer a question in a forked process, so that what it does is not done here."""
    process = os.fork()
    if process == 0:
        yes = False
        with contextlib.suppress(BaseException):
            yes = bool(question())  # type: ignore[operator]
        os._exit(0 if yes else 1)
    return os.waitpid(process, 0)[1] == 0


def _harmless(name: str) -> bool:
    """Whether a library can be imported before the fork, as found out in a process that is thrown away."""

    def harmless() -> bool:
        importlib.import_module(name)
        return not _compiler() and _in_a_fork(_can_use_cuda) and _threads() == 1

    return _in_a_fork(harmless)


class Forked:
    """A measured process that a server has forked: of `subprocess.Popen`, what the runner needs."""

    def __init__(self, process: int, stdin: IO[bytes]) -> None:
        """Take over a process that is a child of this one."""
        self.pid = process
        self.stdin = stdin
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return how it ended, as Popen does; None while it runs."""
        if self._code is None:
            process, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if process else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a forked child", timeout or 0.0)
            time.sleep(0.005)
        return code


class Server:
    """The server as the runner has it: started when first needed, and again when it died."""

    def __init__(self, project: Path, libraries: Sequence[str]) -> None:
        """Note what it is to import; nothing is started."""
        self._project = project
        self._libraries = libraries
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self.ready: Ready | None = None
        self.fit = sys.platform == "linux"
        self.why = "" if self.fit else "it is done on Linux only"
        """Why there is no server to be forked, once that is known."""
        self.told = False
        """Whether the runner has said so."""

    def fork(self, variables: dict[str, str], output: int, answers: int) -> Forked:
        """Return a new measured process.

        Raises:
            ServerError: there is none to be had; start one in the other way.
        """
        for _ in range(2):  # One that died is started again, once.
            if not self.fit:
                break
            try:
                return _bear(self._start(), variables, output, answers)
            except (OSError, msgspec.DecodeError) as error:
                self.close()
                self.why = str(error) or type(error).__name__
                if isinstance(error, TimeoutError):
                    self.fit = False
        raise ServerError(self.why)

    def _start(self) -> socket.socket:
        if self._socket is not None and self._process is not None and self._process.poll() is None:
            return self._socket
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            # Without cache folders: each child has its own, and a folder read too early would be found out.
            common = {name: value for name, value in env.child_variables(Path()).items() if name not in PRIVATE}
            path = os.pathsep.join([str(self._project), *filter(None, [os.environ.get("PYTHONPATH")])])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "reportkit.bench.forkserver", str(theirs.fileno()), *self._libraries],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                cwd=self._project,
                env=common | {"PYTHONPATH": path, MARK: BLANK},
                start_new_session=True,
            )
        ours.settimeout(PATIENCE)
        data = ours.recv(MESSAGE)
        ours.settimeout(BIRTH)
        # What can't be imported, or would not survive a fork, is said by a child that is started alone.
        self.ready = msgspec.json.decode(data, type=Ready) if data else None
        if self.ready is None or self.ready.modules or self.ready.threads > 1 or self.ready.gpu_touched:
            self.close()
            self.fit = False
            message = "it is not fit to be forked"
            raise OSError(message)
        return ours

    def close(self) -> None:
        """End the server, if there is one."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None


def _bear(server: socket.socket, variables: dict[str, str], output: int, answers: int) -> Forked:
    order, ours = os.pipe()
    stdin = os.fdopen(ours, "wb")
    libc = ctypes.CDLL(None)
    # Only now, so that nothing else becomes ours that a workload leaves behind.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        birth = msgspec.json.encode(Birth(runner=os.getpid(), variables=variables))
        socket.send_fds(server, [birth], [order, output, answers])
        return Forked(msgspec.json.decode(server.recv(MESSAGE), type=Born).process, stdin)
    except BaseException:
        stdin.close()
        raise
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)
        os.close(order)


if __name__ == "__main__":
    sys.exit(main())
