"""Lanes and their environments, against real uv and tiny wheels; nothing here asks a network."""

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from reportkit import lanes

HERE = f"3.{sys.version_info.minor}"
ROOT = Path(__file__).resolve().parents[1]
RUNNER = """
import sys, torch
print("runner:", *sys.argv[1:], "with torch", torch.__version__)
"""
TABLE = f"""
[[lane]]
id = "1.0"
kind = "stable"
torch = "1.0.0"
python = ["{HERE}", "{HERE}"]
download_gb = 0.1
installed_gb = 0.2
minutes = 3

[[lane]]
id = "other-python"
kind = "stable"
torch = "1.0.0"
python = ["3.90", "3.91"]
download_gb = 0.1
installed_gb = 0.2
minutes = 3

[[lane]]
id = "nightly"
kind = "nightly"
python = ["{HERE}", "{HERE}"]
download_gb = 0.1
installed_gb = 0.2
minutes = 3
index_cuda = "http://127.0.0.1:9/cuda"
index_cpu = "http://127.0.0.1:9/cpu"
"""


def wheel(folder: Path, name: str, version: str) -> str:
    """Write a wheel that holds a version only; return its line for a lock."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"__version__ = {version!r}\n")
        head = "Metadata-Version: 2.1"
        archive.writestr(f"{about}/METADATA", f"{head}\nName: {name}\nVersion: {version}\n")
        tag = "Root-Is-Purelib: true\nTag: py3-none-any"
        archive.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tests\n{tag}\n")
        archive.writestr(f"{about}/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}=={version} --hash=sha256:{digest}\n"


def publish(index: Path, name: str, version: str) -> str:
    """Add a wheel to a local package index; return its line for a lock."""
    line = wheel(index / name, name.replace("-", "_"), version)
    files = sorted(path.name for path in (index / name).glob("*.whl"))
    page = "".join(f'<a href="{file}">{file}</a>\n' for file in files)
    (index / name / "index.html").write_text(page)
    return line


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of three lanes, whose usual index is a folder of tiny wheels: no network."""
    root = tmp_path / "project"
    (root / "lanes").mkdir(parents=True)
    (root / "reportkit").mkdir()
    shutil.copy(ROOT / "noxfile.py", root)
    for module in ("__init__.py", "lanes.py"):
        shutil.copy(ROOT / "reportkit" / module, root / "reportkit")
    (root / "reportkit" / "__main__.py").write_text(RUNNER)
    (root / "lanes" / "lanes.toml").write_text(TABLE)
    (root / "lanes" / "constraints.txt").write_text("model==3.0\n")
    for name, torch in (("1.0", "torch==1.0.0"), ("nightly", "torch")):
        (root / "lanes" / f"{name}.in").write_text(f"-c constraints.txt\n{torch}\nmodel\n")

    usual = tmp_path / "usual"
    lock = publish(usual, "torch", "1.0.0") + publish(usual, "model", "3.0")
    for name in ("1.0", "other-python"):
        (root / "lanes" / f"{name}.txt").write_text(lock)
    for version in ("2.0.0.dev20260101", "2.0.0.dev20260102"):
        wheel(tmp_path / "nightlies", "torch", version)
    for variable in [name for name in os.environ if name.startswith(("REPORTKIT_", "UV_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("UV_DEFAULT_INDEX", usual.as_uri())
    (tmp_path / "empty").mkdir()
    return root


def torch_of(python: Path) -> str:
    """Return the version of torch that an environment imports."""
    command = [str(python), "-c", "import torch; print(torch.__version__)"]
    return subprocess.check_output(command, text=True).strip()


def nox(project: Path, *sessions: str, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run nox in a project; return its exit status and all that it says."""
    command = [sys.executable, "-m", "nox", "--non-interactive", "-s", *sessions, "--", *arguments]
    done = subprocess.run(command, cwd=project, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_lanes_are_in_reading_order_and_each_has_its_lock() -> None:
    known = lanes.lanes()

    assert [lane.id for lane in known] == ["2.4", "2.5", "2.15", "nightly"]
    for lane in known:
        made_from = (ROOT / "lanes" / f"{lane.id}.in").read_text()
        assert made_from.startswith("-c constraints.txt\n")
        if lane.kind == "stable":
            lock = (ROOT / "lanes" / f"{lane.id}.txt").read_text()
            assert f"\ntorch=={lane.torch} " in lock
            assert f"torch=={lane.torch}\n" in made_from


def test_every_lane_holds_the_same_model_libraries() -> None:
    locks = [(ROOT / "lanes" / f"{name}.txt").read_text() for name in ("2.4", "2.5", "2.15")]
    pins = [line for line in (ROOT / "lanes/constraints.txt").read_text().split("\n") if "==" in line]

    assert {pin.split("==")[0] for pin in pins} >= {"transformers", "diffusers", "numpy"}
    for lock in locks:
        assert [pin for pin in pins if f"\n{pin} \\" not in lock] == []


def test_an_unknown_lane_is_told_its_nearest_names() -> None:
    with pytest.raises(lanes.SetupError, match=r"'2\.14'; did you mean 2\.4 or 2\.15\?"):
        lanes.named("2.14")
    with pytest.raises(lanes.SetupError, match="did you mean nightly"):
        lanes.named("nightli")


def test_a_second_call_installs_nothing(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    python = lanes.lane_environment("1.0", project)
    first = capfd.readouterr()
    made = (python.parents[1] / "pyvenv.cfg").stat().st_mtime_ns
    again = lanes.lane_environment("1.0", project)

    assert first.out.startswith("lane 1.0: installing torch 1.0.0 for Python 3.")
    assert "about 0.1 GB to download, 0.2 GB on disk, some 3 minutes" in first.out
    assert again == python
    assert capfd.readouterr().out == ("lane 1.0: .nox/lane-1.0 is unchanged, nothing to install\n")
    assert (python.parents[1] / "pyvenv.cfg").stat().st_mtime_ns == made
    assert torch_of(python) == "1.0.0"


def test_the_stamp_says_what_was_installed(project: Path) -> None:
    environment = lanes.lane_environment("1.0", project).parents[1]
    stamp = lanes.read_stamp(environment)

    assert stamp is not None
    lock = (project / "lanes" / "1.0.txt").read_bytes()
    assert stamp.lock_sha256 == hashlib.sha256(lock).hexdigest()
    assert (stamp.lane, stamp.locked, stamp.torch_index) == ("1.0", True, None)
    assert stamp.nightly_build is None
    assert stamp.python.startswith(f"{HERE}.")


def test_a_changed_lock_is_installed_anew(project: Path, tmp_path: Path) -> None:
    environment = lanes.lane_environment("1.0", project).parents[1]
    (environment / "left-over").touch()
    lock = project / "lanes" / "1.0.txt"
    lock.write_text(lock.read_text() + publish(tmp_path / "usual", "added", "1.0"))
    python = lanes.lane_environment("1.0", project)

    assert not (environment / "left-over").exists()
    subprocess.run([python, "-c", "import added"], check=True)


@pytest.mark.parametrize("left", ["", "{", "[]", '{"lane": "1.0"}', None])
def test_an_interrupted_set_up_never_counts_as_ready(project: Path, left: str | None) -> None:
    environment = lanes.lane_environment("1.0", project).parents[1]
    (environment / "half-installed").touch()
    stamp = environment / lanes.STAMP
    stamp.unlink() if left is None else stamp.write_text(left)
    lanes.lane_environment("1.0", project)

    assert not (environment / "half-installed").exists()
    assert lanes.read_stamp(environment) is not None


def test_a_wheel_that_is_not_the_locked_one_is_refused(project: Path) -> None:
    lock = project / "lanes" / "1.0.txt"
    good = lock.read_text()
    lock.write_text("torch==1.0.0 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(lanes.SetupError, match=r"lane-1\.0: set-up failed"):
        lanes.lane_environment("1.0", project)
    assert lanes.read_stamp(project / ".nox" / "lane-1.0") is None

    lock.write_text(good)
    assert torch_of(lanes.lane_environment("1.0", project)) == "1.0.0"


def test_a_missing_compiler_is_named_before_anything_is_made(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(lanes.SetupError) as caught:
        lanes.lane_environment("1.0", project)

    assert "a C++ compiler (no-such-compiler); nothing is downloaded" in str(caught.value)
    assert "apt install g++." in str(caught.value)
    assert not (project / ".nox").exists()


def test_missing_headers_and_compiler_are_named_in_one_message(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(lanes, "_has_headers", lambda _: False)
    with pytest.raises(lanes.SetupError) as caught:
        lanes.lane_environment("1.0", project)

    assert "a C++ compiler (no-such-compiler) and Python's headers (" in str(caught.value)
    assert f"apt install g++ python{HERE}-dev. Fedora: dnf install gcc-c++ " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_lane_for_another_python_says_which(project: Path) -> None:
    with pytest.raises(lanes.LaneUnavailableError) as caught:
        lanes.lane_environment("other-python", project)

    assert "needs Python 3.90 or 3.91, and this is Python 3." in str(caught.value)
    assert "`uv python install 3.91`" in str(caught.value)


def test_another_python_of_the_machine_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The running Python passes for one that is too new; the PATH has one that suits."""
    real = lanes._probe(sys.executable)

    def probe(python: str) -> lanes._Python:
        return dataclasses.replace(real, path=python, version=versions.get(python, real.version))

    versions = {sys.executable: "3.99.0"}
    monkeypatch.setattr(lanes, "_probe", probe)
    base = Path(sys.base_prefix) / "bin"
    monkeypatch.setenv("PATH", f"{base}{os.pathsep}{os.environ['PATH']}")

    found = lanes._suitable_python(lanes.named("1.0", project)).path

    assert found != sys.executable
    assert Path(found).is_file()


def test_nightly_from_a_folder_is_the_newest_build_and_says_how_to_ask_for_it_again(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("REPORTKIT_NIGHTLY_INDEX", str(tmp_path / "nightlies"))
    python = lanes.lane_environment("nightly", project)
    stamp = lanes.read_stamp(python.parents[1])

    assert torch_of(python) == "2.0.0.dev20260102"
    assert stamp is not None
    assert (stamp.nightly_build, stamp.locked) == ("2.0.0.dev20260102", False)
    assert stamp.torch_index == "folder nightlies"
    again = 'REPORTKIT_NIGHTLY=2.0.0.dev20260102 nox -s "experiments(nightly)"'
    assert again in capfd.readouterr().out
    subprocess.run([python, "-c", "import model; assert model.__version__ == '3.0'"], check=True)

    lanes.lane_environment("nightly", project)
    assert "is unchanged, nothing to install" in capfd.readouterr().out
    wheel(tmp_path / "nightlies", "torch", "2.0.0.dev20260103")
    assert torch_of(lanes.lane_environment("nightly", project)) == "2.0.0.dev20260103"


def test_a_pinned_nightly_is_that_build_and_then_needs_no_index(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("REPORTKIT_NIGHTLY_INDEX", str(tmp_path / "nightlies"))
    monkeypatch.setenv("REPORTKIT_NIGHTLY", "2.0.0.dev20260101")
    assert torch_of(lanes.lane_environment("nightly", project)) == "2.0.0.dev20260101"

    shutil.rmtree(tmp_path / "nightlies")
    capfd.readouterr()
    assert torch_of(lanes.lane_environment("nightly", project)) == "2.0.0.dev20260101"
    assert "is unchanged, nothing to install" in capfd.readouterr().out


def test_nightly_from_a_local_index(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    publish(index, "torch", "2.0.0.dev20260109")
    monkeypatch.setenv("REPORTKIT_NIGHTLY_INDEX", str(index))

    assert torch_of(lanes.lane_environment("nightly", project)) == "2.0.0.dev20260109"


@pytest.mark.parametrize(
    ("index", "pin", "reason"),
    [
        ("nightlies", "2.0.0.dev20251224", "no version of torch==2.0.0.dev20251224"),
        ("nightlies", "not a version", "'not a version' is no build"),
        ("missing", None, "no such folder"),
        ("empty", None, "it serves no such torch"),
        ("usual", None, "it serves 1.0.0, a release, no nightly"),
        ("http://127.0.0.1:9/simple", None, "(Connection refused"),
    ],
)
def test_a_nightly_that_cannot_be_had_is_one_line_and_leaves_what_is_there(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    index: str,
    pin: str | None,
    reason: str,
) -> None:
    monkeypatch.setenv("REPORTKIT_NIGHTLY_INDEX", str(tmp_path / "nightlies"))
    python = lanes.lane_environment("nightly", project)
    where = index if "://" in index else str(tmp_path / index)
    monkeypatch.setenv("REPORTKIT_NIGHTLY_INDEX", where)
    if pin:
        monkeypatch.setenv("REPORTKIT_NIGHTLY", pin)
    with pytest.raises(lanes.LaneUnavailableError) as caught:
        lanes.lane_environment("nightly", project)

    assert reason in str(caught.value)
    assert "change REPORTKIT_NIGHTLY_INDEX or REPORTKIT_NIGHTLY" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert torch_of(python) == "2.0.0.dev20260102"


def test_another_index_for_torch_moves_torch_only_and_is_recorded_as_unlocked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "cpu", "torch", "1.0.0+cpu")
    publish(tmp_path / "usual", "model", "3.1")
    monkeypatch.setenv("REPORTKIT_TORCH_INDEX", str(tmp_path / "cpu"))
    python = lanes.lane_environment("1.0", project)
    stamp = lanes.read_stamp(python.parents[1])

    assert torch_of(python) == "1.0.0+cpu"
    assert stamp is not None
    assert (stamp.locked, stamp.torch_index) == (False, "folder cpu")
    subprocess.run([python, "-c", "import model; assert model.__version__ == '3.0'"], check=True)

    monkeypatch.delenv("REPORTKIT_TORCH_INDEX")
    assert torch_of(lanes.lane_environment("1.0", project)) == "1.0.0"


def test_an_index_that_does_not_serve_torch_is_not_replaced_by_the_usual_one(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPORTKIT_TORCH_INDEX", str(tmp_path / "empty"))
    with pytest.raises(lanes.LaneUnavailableError, match="change REPORTKIT_TORCH_INDEX"):
        lanes.lane_environment("1.0", project)


def test_a_password_in_an_address_is_never_recorded() -> None:
    assert lanes._publishable("https://me:secret@host.example/whl") == "https://host.example/whl"


def test_test_tools_are_laid_over_a_lane_without_touching_it(project: Path, tmp_path: Path) -> None:
    tools = ("pytest", "pytest-timeout", "hypothesis")
    lock = "".join(publish(tmp_path / "usual", tool, "1.0") for tool in tools)
    (project / "lanes" / "report.txt").write_text(lock)
    python = lanes.torch_test_environment("1.0", project)
    code = "import torch, pytest, hypothesis, model; print(torch.__file__)"
    done = subprocess.run([python, "-c", code], text=True, capture_output=True, check=True)
    lane = project / ".nox" / "lane-1.0"

    assert Path(done.stdout.strip()).is_relative_to(lane)
    assert subprocess.run([lane / "bin/python", "-c", "import pytest"], check=False).returncode
    assert lanes.read_stamp(python.parents[1]) != lanes.read_stamp(lane)
    assert json.loads((python.parents[1] / lanes.STAMP).read_text())["lane"] == "1.0"


def test_a_session_takes_one_lane_and_hands_its_arguments_to_the_runner(project: Path) -> None:
    status, said = nox(project, "experiments(1.0)", arguments=("--scale", "smoke", "ecosystem"))

    assert status == 0, said
    assert "runner: run --lane 1.0 --scale smoke ecosystem with torch 1.0.0" in said


def test_lanes_that_cannot_be_had_are_skipped_while_the_others_go_on(project: Path) -> None:
    status, said = nox(project, "experiments")

    assert status == 0, said
    assert "runner: run --lane 1.0 with torch 1.0.0" in said
    assert "Session experiments(nightly) skipped: lane nightly: torch nightly can't be had" in said
    assert "Session experiments(other-python) skipped: lane other-python needs Python" in said


def test_a_call_whose_every_lane_was_skipped_fails(project: Path) -> None:
    status, said = nox(project, "experiments(nightly)", "experiments(other-python)")

    assert status == 1, said
    assert "every lane asked for was skipped" in said


def test_a_machine_without_a_compiler_fails_in_one_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    status, said = nox(project, "experiments(1.0)")

    assert status == 1
    assert "Session experiments(1.0) aborted: torch.compile needs a C++ compiler" in said
    assert "Traceback" not in said


def test_the_real_noxfile_names_every_session_of_the_readme() -> None:
    command = [sys.executable, "-m", "nox", "--list"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)

    sessions = ["experiments(2.4)", "experiments(2.5)", "experiments(2.15)", "experiments(nightly)"]
    for session in [*sessions, "report", "tests", "lint", "bench", "bench_site", "serve", "lock"]:
        assert f" {session} -> " in done.stdout


@pytest.mark.network
@pytest.mark.parametrize(
    ("lane", "python"),
    [(lane, minor) for lane in ("2.4", "2.5", "2.15") for minor in ("3.11", "3.12")]
    + [("2.15", "3.13"), ("report", "3.11"), ("report", "3.12"), ("report", "3.13")],
)
def test_a_lock_can_be_installed_from_wheels(lane: str, python: str, tmp_path: Path) -> None:
    command = [lanes._uv_path(), "pip", "install", "--dry-run", "--quiet", "--require-hashes"]
    # jieba is published as source only.
    command += ["--only-binary", ":all:", "--no-binary", "jieba", "--target", str(tmp_path)]
    command += ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    command += ["-r", str(ROOT / "lanes" / f"{lane}.txt")]
    done = subprocess.run(command, text=True, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr


def test_what_a_lane_is_made_from_and_pins_is_read_from_its_files() -> None:
    for lane in lanes.lanes(ROOT):
        wanted, pinned = lanes.asked(lane.id, ROOT), lanes.pinned(lane, ROOT)
        assert {"torch", "torchvision", "numpy"} <= set(wanted)
        assert pinned.get("torch") == lane.torch
        assert set(pinned) >= (set(wanted) if lane.kind == "stable" else set(wanted) - {"torch", "torchvision"})
        assert not any(mark in version for version in pinned.values() for mark in " ;\\")
