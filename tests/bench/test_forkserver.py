"""The process that measured ones are forked from: what it may have imported, and what a child of it is like."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reportkit import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reportkit.bench.forkserver import Server
    from reportkit.bench.runner import Wish

pytestmark = [
    pytest.mark.torch,
    pytest.mark.every_lane,
    pytest.mark.skipif(sys.platform != "linux", reason="forked only on Linux"),
]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a server of this project's own libraries, and of one that is not installed."""
    from reportkit.bench.forkserver import Server

    server = Server(ROOT, ("torchvision", "transformers", "no_such_library"))
    yield server
    server.close()


def environment(server: Server, cache: Path) -> None:
    """Ask a child of the server for its environment."""
    from reportkit.bench import runner
    from reportkit.bench.messages import Hello, Request

    request = Request(lane="2.5", torch=None, scale=None, cases=[])
    messages = list(runner.converse(ROOT, request, cache, 60.0, server))
    assert any(isinstance(message, Hello) for message in messages)


def test_before_the_fork_nothing_that_compiles_is_there_and_no_thread_and_no_gpu(
    server: Server, tmp_path: Path
) -> None:
    environment(server, tmp_path)

    ready = server.ready
    assert ready is not None
    assert ready.preloaded == ["torchvision", "transformers"]
    assert ready.modules == []
    assert (ready.threads, ready.gpu_touched) == (1, False)


def test_settings_and_variables_of_a_forked_process_are_its_own(server: Server, tmp_path: Path) -> None:
    """Inductor's settings are imported before the fork; where its folders lie is asked after it."""
    from reportkit.bench.forkserver import MARK, PRIVATE

    environment(server, tmp_path)
    assert server._process is not None
    shown = (Path("/proc") / str(server._process.pid) / "environ").read_bytes()
    assert not [name for name in PRIVATE if name.encode() in shown]
    assert MARK.encode() in shown


def test_a_server_that_dies_is_started_again(server: Server, tmp_path: Path) -> None:
    environment(server, tmp_path)
    first = server._process
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    environment(server, tmp_path)

    assert server._process is not None
    assert server._process.pid != first.pid


def _settled(folder: Path) -> dict[int, str]:
    """Return a process's descriptors once it has closed the socket over which it says that it is there."""
    deadline = time.monotonic() + 60
    while True:
        opened = {int(path.name): str(path.readlink()) for path in folder.iterdir()}
        if time.monotonic() > deadline or not any("socket" in name for name in opened.values()):
            return opened
        time.sleep(0.05)


def test_a_child_has_no_descriptor_but_its_own_and_shows_its_mark(server: Server) -> None:
    from reportkit.bench.forkserver import MARK, PRIVATE
    from reportkit.bench.runner import kill

    reader, writer = os.pipe()
    other, another = os.pipe()
    os.set_inheritable(another, True)  # noqa: FBT003 -- its own signature
    variables = {**dict.fromkeys(PRIVATE, "/nowhere"), MARK: "0123456789abcdef"}
    with tempfile.TemporaryFile() as output:
        child = server.fork(variables, output.fileno(), writer)
        try:
            folder = Path("/proc") / str(child.pid)
            opened = _settled(folder / "fd")
            assert f"{MARK}=0123456789abcdef".encode() in (folder / "environ").read_bytes().split(b"\0")
            assert os.getsid(child.pid) == child.pid
            assert not [name for name in opened.values() if "socket" in name]
            assert f"pipe:[{os.fstat(other).st_ino}]" not in opened.values()
            assert child.poll() is None
        finally:
            kill(child)
            child.stdin.close()
            for descriptor in (reader, writer, other, another):
                os.close(descriptor)
    assert child.wait() == -signal.SIGKILL


def test_where_there_is_no_server_a_child_is_started_alone_and_it_is_said_once(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fit, server.why = False, "made up"
    environment(server, tmp_path)
    environment(server, tmp_path)
    assert server.ready is None
    assert capsys.readouterr().out.count("imports torch anew, since none can be forked: made up") == 1


def test_a_forked_case_compiles_into_its_own_folder_under_its_own_settings(
    wish: Callable[..., Wish], toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reportkit.bench import runner
    from reportkit.bench.forkserver import Forked

    seen: list[list[str]] = []
    note = runner._note_caches

    def look(case: object, file: object, cache: Path, context: object) -> None:
        seen.append([path.name for path in cache.iterdir()])
        note(case, file, cache, context)  # type: ignore[arg-type]

    born: list[object] = []
    bear = runner._child
    monkeypatch.setattr(runner, "_note_caches", look)

    def watch(*given: Any) -> object:
        born.append(bear(*given))
        return born[-1]

    monkeypatch.setattr(runner, "_child", watch)
    section = toy / "experiments" / "section.py"
    plain = 'cache="cold", steady=False'
    code = section.read_text()
    assert code.count(plain) == 1
    # The limit has the name that all versions know.
    section.write_text(code.replace(plain, f'{plain}, settings={{"torch._dynamo.config.cache_size_limit": 3}}'))

    assert runner.run(wish("cold.fine-again")) == 0

    files = {one.file.case: one.file for one in records.load(toy)[0]}
    cold, warm = files["cold.fine"], files["cold.fine-again"]
    assert (cold.status, warm.status) == ("complete", "complete")
    assert len(born) == 3
    assert all(isinstance(one, Forked) for one in born)
    assert [names for names in seen if "inductor" in names]
    assert cold.settings["dynamo.recompile_limit"] == 3
    assert warm.settings["dynamo.recompile_limit"] != 3
    # What the cold process compiled lies where the warm one looks, in every version that has a cache of graphs.
    assert warm.findings["cache-hit"].holds is bool(warm.settings["cache.fx_graph_cache"])
