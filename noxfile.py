"""Every task of this project; ``nox -l`` lists them.

Thin on purpose: what has an ``if`` in it is in `reportkit.lanes`, where it is tested. Sessions
share environments (report, lint and tests have one), so `reportkit.lanes` makes them, not nox.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # reportkit runs from source, in nox's interpreter as well

from reportkit import lanes  # noqa: E402

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "tests"]

each_lane = nox.parametrize("lane", [nox.param(lane.id, id=lane.id) for lane in lanes.lanes()])
reached: set[str] = set()  # the lanes that could be had, in this call of nox


def python_of(session: nox.Session, make: Callable[..., Path], *arguments: str) -> str:
    """Return the Python of an environment; skip the session where its lane can't be had."""
    try:
        return str(make(*arguments))
    except lanes.LaneUnavailableError as why:
        session.notify("any_lane")
        session.skip(str(why))
    except lanes.SetupError as why:
        session.error(str(why))


def run(session: nox.Session, python: str, *arguments: str) -> None:
    """Run a module from source, with time to finish a file when it is interrupted."""
    selects = "pytest" in arguments and session.posargs
    session.run(
        python,
        "-m",
        *arguments,
        env={"PYTHONPATH": str(ROOT)},
        external=True,
        # The tests are two runs: a selection may leave one of them with none, which pytest calls 5.
        success_codes=[0, 5] if selects else [0],
        interrupt_timeout=30,
        terminate_timeout=10,
    )


@nox.session(default=False)
@each_lane
def experiments(session: nox.Session, lane: str) -> None:
    """Measure in each lane; arguments after -- go to `python -m reportkit run`."""
    python = python_of(session, lanes.lane_environment, lane)
    reached.add(lane)
    run(session, python, "reportkit", "run", "--lane", lane, *session.posargs)


@nox.session(default=False)
def report(session: nox.Session) -> None:
    """Build the site, both languages, from the case files that are there."""
    run(session, python_of(session, lanes.report_environment), "reportkit", "report")


@nox.session(default=False)
def serve(session: nox.Session) -> None:
    """Serve the site on this machine, rebuilt on a change; -- --port 8001 takes another port."""
    run(session, python_of(session, lanes.report_environment), "reportkit", "serve", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types, the border between the two worlds, and the workflows."""
    python = python_of(session, lanes.report_environment)
    run(session, python, "ruff", "check")
    run(session, python, "ruff", "format", "--check")
    run(session, python, "codespell_lib")
    run(session, python, "mypy")
    session.run(str(Path(python).with_name("lint-imports")), external=True)
    session.run(str(Path(python).with_name("actionlint")), external=True)
    # Offline: what it would ask a host is whether a pinned action is a known bad one.
    session.run(str(Path(python).with_name("zizmor")), "--offline", "--quiet", ".github/workflows", external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests: those without torch, then the others in lane 2.5; arguments go to pytest."""
    python = python_of(session, lanes.report_environment)
    run(session, python, "pytest", "-m", "not torch", *session.posargs)
    lane_tests(session, "2.5")


@nox.session(default=False)
@each_lane
def lane_tests(session: nox.Session, lane: str) -> None:
    """Run the tests that need torch in one lane; arguments go to pytest."""
    python = python_of(session, lanes.torch_test_environment, lane)
    reached.add(lane)
    # A lane's libraries warn about each other; they are pinned, so nobody can act on it here.
    run(session, python, "pytest", "-m", "torch", "-W", "default", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure the site as `bench_site` does, then the ruler itself, in lane 2.5: coverage, and other timers.

    Arguments go to `python -m reportkit run`.
    """
    bench_site(session)
    lane = "2.5"
    python = python_of(session, lanes.lane_environment, lane)
    reached.add(lane)
    run(session, python, "reportkit", "run", "--lane", lane, "timers", "calibration", *session.posargs)


@nox.session(default=False)
def bench_site(session: nox.Session) -> None:
    """Measure how loading, judging and rendering grow: seconds and memory at 1, 10 and 100 times the runs."""
    run(session, python_of(session, lanes.report_environment), "tests.scale")


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Renew every lock after a change to what it is made from; -- --upgrade takes the newest."""
    try:
        lanes.lock(session.posargs)
    except lanes.SetupError as why:
        session.error(str(why))


@nox.session(default=False)
def any_lane(session: nox.Session) -> None:
    """Fail where every lane was skipped; a skipped lane asks for this by itself."""
    if not reached:
        session.error("every lane asked for was skipped; each says above what it needs")
