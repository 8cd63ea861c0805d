"""Serve the site on this machine while it is written: built again on a change, and the browser told of it.

Each build is a process of its own, so that changed code is the code that builds. A failed one says why and leaves
the old site in place. MkDocs' own server serves and reloads; it builds nothing itself, or every page would wait.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from mkdocs.livereload import LiveReloadServer
from watchfiles import watch

from reportkit.plan import PlanError
from reportkit.site.build import OUTPUT

HOST = "127.0.0.1"
PORT = 8000
WATCHED = ("docs", "experiments", "lanes", "reportkit", "results", "runs", "mkdocs.yml", "mkdocs.zh.yml")


def serve(project: Path, port: int = PORT) -> int:
    """Build the site, serve it, and build it again whenever what it is made from changes; return 0 once interrupted.

    Raises:
        PlanError: the port is taken, or no port.
    """
    _refuse_taken(port)
    for folder in ("results", "runs"):
        (project / folder).mkdir(exist_ok=True)  # What is not there can't be watched.
    changes = watch(*(project / name for name in WATCHED if (project / name).exists()))
    with tempfile.TemporaryDirectory() as folder:
        server = LiveReloadServer(lambda: None, HOST, port, os.fspath(project / OUTPUT))
        server.watch(folder)
        thread = threading.Thread(target=server.serve, daemon=True)
        built = 0
        try:
            _build(project)
            thread.start()
            _await(thread, port)
            _say(f"{server.url} and {server.url}zh/ are served; a change rebuilds them, Ctrl-C ends this")
            for changed in changes:
                _say(f"{_named(project, sorted(path for _, path in changed))} changed; building")
                if _build(project):
                    built += 1
                    # The server sees this, and tells the browsers.
                    Path(folder, "built").write_text(f"{built}\n", encoding="utf-8")
                    _say("built; pages that are open load anew")
        except KeyboardInterrupt:
            _say("ended")
        finally:
            if thread.is_alive():
                server.shutdown()
    return 0


def _await(thread: threading.Thread, port: int) -> None:
    """Wait until the server answers.

    Raises:
        PlanError: it ended, since another program took the port while the site was built.
    """
    while True:
        try:
            socket.create_connection((HOST, port)).close()
        except OSError as error:
            if not thread.is_alive():
                message = f"port {port} was taken meanwhile; name another: `nox -s serve -- --port {PORT + 1}`"
                raise PlanError(message) from error
            time.sleep(0.05)
        else:
            return


def _build(project: Path) -> bool:
    """Build the site in a process of its own; return whether there is a new one. Damaged files don't prevent that."""
    before = _stamp(project)
    subprocess.run([sys.executable, "-m", "reportkit", "report"], cwd=project, check=False)
    return _stamp(project) != before


def _stamp(project: Path) -> tuple[int, int] | None:
    try:
        status = (project / OUTPUT / "index.html").stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            reason = "is no port" if isinstance(error, OverflowError) else f"can't be used ({error.strerror})"
            message = f"port {port} {reason}; name another: `nox -s serve -- --port {PORT + 1}`"
            raise PlanError(message) from error


def _named(project: Path, paths: list[str]) -> str:
    shown = [Path(path).relative_to(project).as_posix() for path in paths]
    return shown[0] if len(shown) == 1 else f"{shown[0]} and {len(shown) - 1} more"


def _say(text: str) -> None:
    sys.stdout.write(f"serve: {text}\n")
    sys.stdout.flush()
