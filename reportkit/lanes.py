"""Which lanes there are, and how the environment of each is made and kept.

A lane is one pinned PyTorch with everything installed beside it. Its environment lies in
``.nox/lane-ID`` and carries a stamp, written last: an interrupted set-up never counts as ready, and
an unchanged one is used as it is. reportkit itself is in no environment; it runs from source.

Standard library only: the noxfile imports this in nox's interpreter, where nothing else is.

Variables that it reads:

``REPORTKIT_TORCH_INDEX``
    Another source of torch for the stable lanes (CPU or ROCm builds): an address, or a folder of
    wheels. Every other package keeps the version of the lock. The stamp says ``locked: false``.
``REPORTKIT_NIGHTLY_INDEX``
    Another source of nightly builds, an address or a folder, in place of PyTorch's own.
``REPORTKIT_NIGHTLY``
    The exact nightly build, such as ``2.16.0.dev20261129``; without it the newest.
``CXX``
    The C++ compiler, as for PyTorch.
"""

import dataclasses
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
STAMP = "reportkit-stamp.json"
# Nightly and another index are resolved on the spot. A dead address is to be skipped in seconds.
IMPATIENT = {"UV_HTTP_RETRIES": "1", "UV_HTTP_TIMEOUT": "10"}
PROBE = """
import json, platform, sysconfig
paths = [sysconfig.get_path(name) for name in ("include", "purelib")]
print(json.dumps([platform.python_version(), *paths]))
"""


class SetupError(Exception):
    """An environment can't be made. The message says what is wrong and what to do."""


class LaneUnavailableError(SetupError):
    """One lane can't be had on this machine or at this moment; others can."""


LINE = "100 Mbit/s"
"""The line that the minutes of set-up in lanes.toml are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row of ``lanes/lanes.toml``."""

    id: str
    kind: Literal["stable", "nightly"]
    python: tuple[str, str]
    """Oldest and newest Python, such as ``("3.11", "3.12")``; both included."""
    download_gb: float
    installed_gb: float
    minutes: int
    """Of set-up on a new machine, by a line of `LINE`."""
    torch: str | None = None
    """Version of torch; None where the index decides."""
    index_cuda: str | None = None
    index_cpu: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What an environment holds, as the file in it says: ``reportkit-stamp.json``."""

    lane: str
    lock_sha256: str
    """Of the requirements installed: the lane's lock, or what was resolved on the spot."""
    asked_sha256: str
    """Of everything that was asked for; differs: the environment is made anew."""
    python: str
    torch_index: str | None
    """Where torch came from, if not from the lock."""
    locked: bool
    """True if everything came from the committed lock, checked by hash."""
    nightly_build: str | None


@dataclass(frozen=True, slots=True)
class _Python:
    path: str
    version: str
    include: Path
    purelib: Path

    @property
    def minor(self) -> tuple[int, ...]:
        return _numbers(self.version)[:2]


def lanes(root: Path = ROOT) -> tuple[Lane, ...]:
    """Return every lane in reading order."""
    rows = tomllib.loads((root / "lanes" / "lanes.toml").read_text(encoding="utf-8"))["lane"]
    return tuple(Lane(**{**row, "python": tuple(row["python"])}) for row in rows)


def named(name: str, root: Path = ROOT) -> Lane:
    """Return the lane of this name.

    Raises:
        SetupError: There is none; the message has the nearest names.
    """
    known = {lane.id: lane for lane in lanes(root)}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.5) or list(known)
        raise SetupError(f"no lane is called {name!r}; did you mean {' or '.join(near)}?")
    return known[name]


def asked(name: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the packages that a lane is made from, in the order of its ``.in`` file."""
    written = (root / "lanes" / f"{name}.in").read_text(encoding="utf-8")
    return tuple(re.findall(r"^([A-Za-z0-9][A-Za-z0-9._-]*)", written, re.MULTILINE))


def pinned(lane: Lane, root: Path = ROOT) -> dict[str, str]:
    """Return every package and version that a lane's lock names; of nightly, what stays the same beside its torch."""
    file = f"{lane.id}.txt" if lane.kind == "stable" else "constraints.txt"
    written = (root / "lanes" / file).read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)", written, re.MULTILINE))


def measuring(*lanes: str, rest: str = "") -> str:
    """Return the command that measures lanes; `rest` is what else is asked for: `report`, or `-- NAMES`."""
    sessions = " ".join(f'"experiments({lane})"' for lane in lanes)
    return f"nox -s {sessions} {rest}".rstrip()


def read_stamp(environment: Path) -> Stamp | None:
    """Return what an environment (``sys.prefix``) holds; None where no set-up was completed."""
    try:
        return Stamp(**json.loads((environment / STAMP).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        # Missing, cut off, or of another version of this module: not a completed set-up of ours.
        return None


def lane_environment(name: str, root: Path = ROOT) -> Path:
    """Return the Python of a lane's environment, installing what is missing or has changed.

    Raises:
        LaneUnavailableError: No Python here suits the lane, or no index serves its torch.
        SetupError: The lane, the compiler or Python's headers are missing, or installing failed.
    """
    lane = named(name, root)
    python = _suitable_python(lane)
    folder = root / ".nox" / f"lane-{lane.id}"
    index = _index(lane)
    pin = os.environ.get("REPORTKIT_NIGHTLY") if lane.kind == "nightly" else None
    if pin is not None and not re.fullmatch(r"\d+(\.\d+)+((a|b|rc)\d+)?(\.dev\d+)?(\+[\w.]+)?", pin):
        raise LaneUnavailableError(
            f"lane {lane.id}: {pin!r} is no build, which looks like 2.16.0.dev20261129; "
            "change REPORTKIT_NIGHTLY_INDEX or REPORTKIT_NIGHTLY to try another"
        )
    lock = root / "lanes" / f"{_base(lane, root)}.txt"
    sources = [lock]
    if index is not None:
        sources += [root / "lanes" / f"{lane.id}.in", root / "lanes" / "constraints.txt"]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    asked = _digest(*texts, python.version, index or "", pin or "")
    present = read_stamp(folder)
    newest = lane.kind == "nightly" and pin is None
    if present and present.asked_sha256 == asked and not newest:
        return _unchanged(lane, folder, present)

    requirements = lock if index is None else _resolve(lane, python, index, pin, root)
    stamp = Stamp(
        lane=lane.id,
        lock_sha256=_digest(requirements.read_text(encoding="utf-8")),
        asked_sha256=asked,
        python=python.version,
        torch_index=_publishable(index),
        locked=index is None,
        nightly_build=_version_of("torch", requirements) if lane.kind == "nightly" else None,
    )
    if present == stamp:
        return _unchanged(lane, folder, stamp)
    torch = f"torch {_version_of('torch', requirements)}"
    size = f"{lane.download_gb} GB to download, {lane.installed_gb} GB on disk"
    source = f" from {index}, which may serve less," if index else ""
    _say(
        f"lane {lane.id}: installing {torch}{source} for Python {python.version} into "
        f"{folder.relative_to(root)}: about {size}, some {lane.minutes} minutes at 100 Mbit/s; "
        "what is in uv's cache already takes neither"
    )
    # Without require-hashes an index that states none could not be used; those stated are checked.
    hashes = ["--require-hashes"] if stamp.locked else []
    _install(folder, python, stamp, ["-r", requirements, *hashes, *_where(index)])
    _say_build(stamp)
    return folder / "bin" / "python"


def report_environment(root: Path = ROOT) -> Path:
    """Return the Python of the environment for the report, lint and tests; it has no torch.

    Raises:
        SetupError: Installing failed.
    """
    lock = root / "lanes" / "report.txt"
    python = _probe(sys.executable)
    folder = root / ".nox" / "report"
    digest = _digest(lock.read_text(encoding="utf-8"))
    stamp = Stamp(
        lane="report",
        lock_sha256=digest,
        asked_sha256=_digest(digest, python.version),
        python=python.version,
        torch_index=None,
        locked=True,
        nightly_build=None,
    )
    if read_stamp(folder) != stamp:
        _say(f"report: installing into {folder.relative_to(root)}: about 0.4 GB, no torch")
        _install(folder, python, stamp, ["-r", lock, "--require-hashes"])
    return folder / "bin" / "python"


def torch_test_environment(name: str, root: Path = ROOT) -> Path:
    """Return the Python of a lane with the test tools laid over it.

    The tools are in an environment of their own that also sees the lane's packages, so a lane holds
    nothing that its lock does not name.

    Raises:
        SetupError: As for `lane_environment`.
    """
    lane_python = _probe(str(lane_environment(name, root)))
    below = read_stamp(root / ".nox" / f"lane-{name}")
    if below is None:
        raise SetupError(f"lane {name}: its environment vanished while it was used; run this again")
    lock = root / "lanes" / "report.txt"
    folder = root / ".nox" / f"torch-tests-{name}"
    asked = _digest(below.asked_sha256, below.lock_sha256, lock.read_text(encoding="utf-8"))
    stamp = dataclasses.replace(below, asked_sha256=asked)
    if read_stamp(folder) != stamp:
        tools: list[str | Path] = ["pytest", "pytest-timeout", "hypothesis", "-c", lock]
        _install(folder, lane_python, stamp, tools, below=lane_python.purelib)
    return folder / "bin" / "python"


def lock(options: list[str], root: Path = ROOT) -> None:
    """Write every lock anew; pins stay where they can, unless options has ``--upgrade``.

    Raises:
        SetupError: A lock can't be resolved.
    """
    report = ["--extra", "report", "--group", "lint", "--group", "tests", "pyproject.toml"]
    sources = {lane.id: [f"lanes/{lane.id}.in"] for lane in lanes(root) if lane.kind == "stable"}
    for name, source in (sources | {"report": report}).items():
        _say(f"lanes/{name}.txt")
        command = ["pip", "compile", "--universal", "--python-version", "3.11", "--quiet"]
        command += ["--generate-hashes", "--no-emit-index-url"]
        command += ["--custom-compile-command", "nox -s lock"]
        command += [*options, "-o", f"lanes/{name}.txt", *source]
        if _uv(command, root).returncode:
            raise SetupError(f"lanes/{name}.txt can't be resolved; it is as it was")


def _suitable_python(lane: Lane) -> _Python:
    """Return the running Python if it suits the lane, or else another one of this machine."""
    oldest, newest = (_numbers(version) for version in lane.python)
    minors = [f"3.{minor}" for minor in range(newest[1], oldest[1] - 1, -1)]
    running = _probe(sys.executable)
    suitable = [running] if oldest <= running.minor <= newest else []
    if not suitable or not _has_headers(running):
        find = ["python", "find", "--system", "--no-python-downloads"]
        found = [_uv([*find, minor], quick=True) for minor in minors]
        suitable += [_probe(one.stdout.strip()) for one in found if one.returncode == 0]
    if not suitable:
        raise LaneUnavailableError(
            f"lane {lane.id} needs Python {' or '.join(reversed(minors))}, and this is Python "
            f"{running.version}; `uv python install {minors[0]}` adds one that will be found"
        )
    python = next(filter(_has_headers, suitable), suitable[0])
    _require_compiler(python)
    return python


def _has_headers(python: _Python) -> bool:
    return (python.include / "Python.h").is_file()


def _require_compiler(python: _Python) -> None:
    """Name what torch.compile needs from the system, all at once and before any download."""
    usual = "clang++" if sys.platform == "darwin" else "g++"
    compiler = (shlex.split(os.environ.get("CXX", "")) or [usual])[0]
    missing = []
    if shutil.which(compiler) is None:
        missing.append((f"a C++ compiler ({compiler})", "g++", "gcc-c++"))
    if not _has_headers(python):
        what = f"Python's headers ({python.include / 'Python.h'})"
        version = ".".join(map(str, python.minor))
        missing.append((what, f"python{version}-dev", f"python{version}-devel"))
    if missing:
        things, debian, fedora = (" ".join(row) for row in zip(*missing, strict=True))
        raise SetupError(
            f"torch.compile needs {things.replace(') ', ') and ')}; nothing is downloaded yet. "
            f"Debian, Ubuntu: apt install {debian}. Fedora: dnf install {fedora}. "
            "macOS: xcode-select --install, and the Python of python.org or Homebrew"
        )


def _index(lane: Lane) -> str | None:
    """Return where torch comes from, if not from the lock: an address or an absolute folder."""
    if lane.kind == "nightly":
        gpu = shutil.which("nvidia-smi") is not None
        asked = os.environ.get("REPORTKIT_NIGHTLY_INDEX")
        index = asked or (lane.index_cuda if gpu else lane.index_cpu)
    else:
        index = os.environ.get("REPORTKIT_TORCH_INDEX") or None
    if index is None or "://" in index:
        return index
    return str(Path(index).expanduser().resolve())


def _base(lane: Lane, root: Path) -> str:
    """Return the lane whose lock says the versions beside torch: for nightly the newest stable."""
    stable = [other.id for other in lanes(root) if other.kind == "stable"]
    return lane.id if lane.kind == "stable" else stable[-1]


def _resolve(lane: Lane, python: _Python, index: str, pin: str | None, root: Path) -> Path:
    """Resolve a lane with torch from an index, staying at the lock's versions beside it."""
    asked = f"lane {lane.id}: torch {pin or lane.torch or 'nightly'} can't be had from {index}"
    knobs = "REPORTKIT_NIGHTLY_INDEX or REPORTKIT_NIGHTLY"
    hint = f"change {knobs if lane.kind == 'nightly' else 'REPORTKIT_TORCH_INDEX'} to try another"
    if "://" not in index and not Path(index).is_dir():
        raise LaneUnavailableError(f"{asked}: no such folder; {hint}")

    folder = root / ".nox"
    folder.mkdir(exist_ok=True)
    output = folder / f"lane-{lane.id}.txt"
    # An output that exists is where uv takes its preferences from.
    shutil.copyfile(root / "lanes" / f"{_base(lane, root)}.txt", output)
    pinned = folder / f"lane-{lane.id}-pin.txt"
    pinned.write_text(f"torch=={pin}\n" if pin else "", encoding="utf-8")
    command = ["pip", "compile", *_where(index)]
    for package in ("torch", "torchvision"):
        command += ["--upgrade-package", package]
        command += ["--prerelease-package", f"{package}=allow"] if lane.kind == "nightly" else []
    command += ["--python", python.path, "--generate-hashes", "--no-header", "--no-annotate"]
    command += ["--emit-index-annotation", "--quiet", "-c", str(pinned), "-o", str(output)]
    done = _uv([*command, f"lanes/{lane.id}.in"], root, quick=True)
    if done.returncode:
        raise LaneUnavailableError(f"{asked}: {_cause(done.stderr)}; {hint}")

    resolved = output.read_text(encoding="utf-8")
    served = re.search(r"^torch==[^#]*# from (.*)$", resolved, re.MULTILINE)
    if served is None or index.rstrip("/") not in served[1]:
        raise LaneUnavailableError(f"{asked}: it serves no such torch; {hint}")
    build = _version_of("torch", output)
    if lane.kind == "nightly" and not re.search(r"\d(a|b|rc|\.dev)\d", build):
        raise LaneUnavailableError(f"{asked}: it serves {build}, a release, no nightly; {hint}")
    return output


def _install(
    folder: Path,
    python: _Python,
    stamp: Stamp,
    what: list[str | Path],
    below: Path | None = None,
) -> None:
    """Make an environment from nothing; only a complete one gets its stamp."""
    failed = f"{folder.name}: set-up failed, see uv's message above; the same command starts again"
    (folder / STAMP).unlink(missing_ok=True)
    venv: list[str | Path] = [
        "venv",
        "--quiet",
        "--clear",
        "--no-project",
        "--python",
        python.path,
        folder,
    ]
    if _uv(venv).returncode:
        raise SetupError(failed)
    if _uv(["pip", "install", "--python", folder, *what]).returncode:
        raise SetupError(failed)
    if below is not None:
        site = _probe(str(folder / "bin" / "python")).purelib
        (site / "reportkit-lane.pth").write_text(f"{below}\n", encoding="utf-8")
    written = folder / f"{STAMP}.part"
    text = json.dumps(dataclasses.asdict(stamp), indent=2, sort_keys=True)
    written.write_text(f"{text}\n", encoding="utf-8")
    written.replace(folder / STAMP)


def _unchanged(lane: Lane, folder: Path, stamp: Stamp) -> Path:
    _say(f"lane {lane.id}: {folder.parent.name}/{folder.name} is unchanged, nothing to install")
    _say_build(stamp)
    return folder / "bin" / "python"


def _say_build(stamp: Stamp) -> None:
    if stamp.nightly_build:
        again = f"REPORTKIT_NIGHTLY={stamp.nightly_build} {measuring(stamp.lane)}"
        _say(f"lane {stamp.lane}: torch {stamp.nightly_build}; the same build again: {again}")


def _where(index: str | None) -> list[str | Path]:
    """Return uv's options for an index: an address, a local index or a folder of wheels."""
    if index is None:
        return []
    # PyTorch's index also mirrors some versions of other packages, and not always the pinned ones:
    # look there first, then go on to the usual index. `_resolve` proves where torch came from.
    strategy: list[str | Path] = ["--index-strategy", "unsafe-first-match"]
    if "://" in index:
        return ["--index", index, *strategy]
    if (Path(index) / "torch").is_dir():
        return ["--index", Path(index).as_uri(), *strategy]
    return ["--find-links", index, *strategy]


def _publishable(index: str | None) -> str | None:
    """Return an index as a case file may name it: no password, no path of this machine."""
    if index is None:
        return None
    if "://" not in index:
        return f"folder {Path(index).name}"
    return re.sub(r"://[^/]*@", "://", index)


def _version_of(package: str, requirements: Path) -> str:
    found = re.search(rf"^{package}==(\S+)", requirements.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SetupError(f"{requirements}: names no {package}; `nox -s lock` writes it anew")
    return found[1]


def _uv(
    arguments: Sequence[str | Path], cwd: Path | None = None, *, quick: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run uv; quick: keep what it says, and give up soon where an index does not answer."""
    command = [_uv_path(), *map(str, arguments)]
    variables = os.environ | (IMPATIENT if quick else {})
    return subprocess.run(command, cwd=cwd, env=variables, text=True, capture_output=quick, check=False)


def _uv_path() -> str:
    """Return the uv beside nox, which need not be on the PATH, or else that of the PATH."""
    beside = Path(sys.executable).with_name("uv")
    path = str(beside) if beside.is_file() else shutil.which("uv")
    if path is None:
        raise SetupError("uv is missing: `pip install uv` into the environment that nox runs in")
    return path


def _cause(stderr: str) -> str:
    """Return uv's error as one line: what failed, and the last cause it gives."""
    what, *causes = re.split(r"\n\s*cause: ", stderr.strip())
    line = " ".join([what.removeprefix("error: "), *(f"({cause})" for cause in causes[-1:])])
    return " ".join(line.split())


def _probe(python: str) -> _Python:
    done = subprocess.run([python, "-c", PROBE], text=True, capture_output=True, check=False)
    if done.returncode:
        raise SetupError(f"{python} does not run: {done.stderr.strip()[-200:]}")
    version, include, purelib = json.loads(done.stdout)
    return _Python(python, version, Path(include), Path(purelib))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _say(line: str) -> None:
    # Flushed, so that it stands before what uv and the runner print.
    print(line, flush=True)  # noqa: T201 - telling what is installed is this module's interface
