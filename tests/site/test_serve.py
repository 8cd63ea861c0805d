"""The site while it is written: built again in a process of its own, kept where that fails, ended by Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from reportkit.__main__ import main
from tests.site.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.site.conftest import MakeProject

pytestmark = pytest.mark.slow
LONG = 120


@dataclass
class Served:
    """A running `python -m reportkit serve`, and the lines that it prints."""

    process: subprocess.Popen[str]
    port: int
    lines: list[str] = field(default_factory=list)
    heard: threading.Condition = field(default_factory=threading.Condition)

    def listen(self) -> None:
        """Collect what it prints until it ends."""
        assert self.process.stdout
        for line in self.process.stdout:
            with self.heard:
                self.lines.append(line)
                self.heard.notify_all()

    def wait(self, text: str) -> None:
        """Wait for a line with that text after those waited for before."""
        with self.heard:
            assert self.heard.wait_for(lambda: any(text in line for line in self.lines), LONG), "".join(self.lines)
            self.lines = self.lines[next(i for i, line in enumerate(self.lines) if text in line) + 1 :]

    def page(self, path: str) -> str:
        """Return a page as a browser gets it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=30) as answer:
            text: str = answer.read().decode("utf-8")
            return text


@contextlib.contextmanager
def served(project: Path) -> Iterator[Served]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "reportkit", "serve", "--port", str(port)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.fspath(project), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    one = Served(process, port)
    listener = threading.Thread(target=one.listen, daemon=True)
    listener.start()
    try:
        yield one
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        listener.join(30)
        assert process.stdout
        process.stdout.close()


def small(project: Path) -> Path:
    """Leave out the notebooks: what is tested here is the same without them."""
    for language in ("en", "zh"):
        for notebook in (project / "docs" / language / "notebooks").glob("*.py"):
            notebook.write_text("# %% [markdown]\n# # Nothing\n", encoding="utf-8")
    return project


@pytest.mark.timeout(600)
def test_a_change_is_built_and_told_a_failure_is_not(make_project: MakeProject) -> None:
    project = small(make_project("serve"))
    glossary = project / "docs" / "en" / "glossary.md"
    text = glossary.read_text(encoding="utf-8")
    with served(project) as one:
        one.wait("are served")
        assert "livereload(" in one.page("index.html")
        assert "livereload(" in one.page("zh/index.html")
        with urllib.request.urlopen(f"http://127.0.0.1:{one.port}/livereload/0/1", timeout=30) as answer:
            before = int(answer.read())

        glossary.write_text(f"{text}\nA word that was not there.\n", encoding="utf-8")
        one.wait("docs/en/glossary.md changed")
        one.wait("built; pages that are open load anew")
        assert "A word that was not there." in one.page("glossary.html")
        # The browser asks for anything newer than what it has, and is answered once there is.
        with urllib.request.urlopen(f"http://127.0.0.1:{one.port}/livereload/{before}/1", timeout=70) as answer:
            assert int(answer.read()) > before

        glossary.write_text("{{ no_such_thing() }}", encoding="utf-8")
        one.wait("an earlier one is as it was")
        assert "A word that was not there." in one.page("glossary.html")
        assert not [line for line in one.lines if "load anew" in line]

        glossary.write_text(text, encoding="utf-8")
        one.wait("built; pages that are open load anew")
        assert "A word that was not there." not in one.page("glossary.html")

        os.killpg(one.process.pid, signal.SIGINT)
        one.wait("serve: ended")
        assert one.process.wait(30) == 0


def test_a_taken_port_is_named_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"port {port} can't be used" in said.err
    assert "name another: `nox -s serve -- --port 8001`" in said.err
    assert main(["serve", "--port", "70000"]) == 2
    assert "port 70000 is no port" in capsys.readouterr().err
