"""What the measured process runs on, as it reads it itself; and what tree it was started from."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reportkit import __version__
from reportkit.lanes import read_stamp
from reportkit.records import Environment, Provenance, RecordError, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

BUILD_INFO = "build-info.json"
"""What stands in for git where a tree was sent without it: commit, dirty, and a hash of every file."""

OUTPUT = ("results", "runs")
"""Folders whose changes do not make a tree dirty: they are what runs write."""

TELLING = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "KMP_AFFINITY",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
"""Variables that change what torch does and hold no path: recorded, never changed."""

CLEARED = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_COMPILE", "TORCH_LOGS", "TORCH_TRACE", "TRITON_", "AOT_")
"""Variables of these names are taken from the child: a claim about defaults is about defaults."""


def child_variables(cache: Path) -> dict[str, str]:
    """Return the environment of a measured process whose compile caches lie in `cache`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CLEARED)}
    return kept | {
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        # Models come from configurations; a look-up on a hub would only cost time, or hang.
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }


def slug(text: str) -> str:
    """Return `text` as a name that may be a folder's: lower case, dashes, at most 64 characters."""
    plain = re.sub(r"\((r|tm|c)\)|\b(cpu|processor)\b|@.*", "", text.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64].rstrip("-") or "unknown"


def machine_name(environment: Environment) -> str:
    """Return a stable name for the machine: its GPU's, or else its processor's and how many cores it has."""
    if environment.gpu:
        return slug(environment.gpu)
    return f"{slug('cpu ' + environment.cpu)[:56].rstrip('-')}-{environment.cores}c".removeprefix("-")


def cpu_name() -> str:
    """Return the processor's model name, or what Python's platform module calls it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        return platform.processor() or platform.machine()
    return platform.processor() or platform.machine()


def _first_line(command: list[str]) -> str | None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None  # No such program here, which is what None says.
    return next(iter(answer.stdout.splitlines()), None)


def read(project: Path, lane: str) -> Environment:
    """Return the environment of this process; imports torch, and touches no device but to name it."""
    import torch

    gpu = gpu_id = driver = None
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        gpu = properties.name
        gpu_id, driver = _nvml_identity()
    zeroed = Path(next(iter(torch.__path__))).parent / "zeroed-cuda-images.txt"
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    packages: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        # The first of a name on the path is the one that is imported.
        if distribution.metadata["Name"]:
            packages.setdefault(distribution.metadata["Name"].lower().replace("_", "-"), distribution.version)
    return Environment(
        torch=str(torch.__version__),
        torch_git=torch.version.git_version or "unknown",
        cuda=torch.version.cuda,
        cudnn=None if cudnn is None else str(cudnn),
        triton=packages.get("triton"),
        driver=driver,
        gpu=gpu,
        gpu_id=gpu_id,
        cpu=cpu_name(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        compiler=_first_line([os.environ.get("CXX", "g++"), "--version"]),
        packages=packages,
        variables={name: os.environ[name] for name in TELLING if name in os.environ},
        lock=_lock(project / "lanes" / f"{lane}.txt", packages),
        notes=[zeroed.read_text(encoding="utf-8").strip()] if zeroed.is_file() else [],
    )


def _lock(path: Path, packages: dict[str, str]) -> dict[str, Scalar | None]:
    """Return how what is installed compares with the lane's lock, and the stamp of who installed it."""
    stamp = read_stamp(Path(sys.prefix))
    known: dict[str, Scalar | None] = {} if stamp is None else dict(dataclasses.asdict(stamp))
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        pins = locked(text)
        differing = sorted(
            f"{name} {packages[name]}, locked {version}"
            for name, version in pins.items()
            if packages.get(name, version) != version
        )
        known |= {
            "lock_file_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "differs_from_lock": "; ".join(differing) or None,
        }
    return known


def locked(text: str) -> dict[str, str]:
    """Return the version that a lock pins each package to on this Python and platform, by name."""
    from packaging.markers import Marker  # Torch's libraries bring it to every lane.

    pins = re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)(?: *; *([^\\\n]+))?", text, re.MULTILINE)
    return {name: version for name, version, marker in pins if not marker or Marker(marker.strip()).evaluate()}


def nvml_device() -> Any:
    """Return NVML's handle of the GPU that torch measures on, whichever that is of those in the machine.

    Raises:
        pynvml.NVMLError: NVML does not answer, or knows no such GPU.
    """
    import pynvml
    import torch

    pynvml.nvmlInit()
    unique = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    if unique is not None:
        return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{unique}")
    # Torch 2.4 tells neither that nor where on the bus it is; it does know what CUDA_VISIBLE_DEVICES leaves.
    return pynvml.nvmlDeviceGetHandleByIndex(torch.cuda._get_nvml_device_index(0))  # noqa: SLF001 -- no public question


def _nvml_identity() -> tuple[str | None, str | None]:
    import pynvml

    try:
        handle = nvml_device()
        unique = pynvml.nvmlDeviceGetUUID(handle)
        driver = pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError:
        return None, None
    return hashlib.sha256(str(unique).encode()).hexdigest()[:16], str(driver)


def _git(project: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(project), *arguments], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # No git here, or no repository: build-info.json is asked instead.
    return answer.stdout


def _tracked(project: Path) -> list[str] | None:
    listing = _git(project, "ls-files", "-z", "--", ".", *(f":!{folder}" for folder in OUTPUT))
    return None if listing is None else sorted(name for name in listing.split("\0") if name)


def _hashes(project: Path, names: Iterable[str]) -> dict[str, str]:
    return {
        name: hashlib.sha256((project / name).read_bytes()).hexdigest() for name in names if (project / name).is_file()
    }


def tree_state(project: Path) -> tuple[str | None, bool]:
    """Return the tree's commit and whether it is dirty; dirty too where nothing can tell.

    Raises:
        RecordError: build-info.json is there and unreadable.
    """
    commit = _git(project, "rev-parse", "HEAD")
    if commit is not None and _git(project, "rev-parse", "--show-prefix") == "\n":
        status = _git(project, "status", "--porcelain", "--", ".", *(f":!{folder}" for folder in OUTPUT))
        return commit.strip(), status is None or bool(status.strip())
    path = project / BUILD_INFO
    if not path.is_file():
        return None, True
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
        commit, dirty, files = str(info["commit"]), bool(info["dirty"]), dict(info["files"])
    except (ValueError, KeyError, TypeError) as error:
        message = f"{BUILD_INFO} is damaged ({error}); write it anew with `python -m reportkit build-info`"
        raise RecordError(message) from error
    # Code that the info does not know would run all the same.
    extra = {
        path.relative_to(project).as_posix()
        for folder in ("experiments", "reportkit")
        for path in (project / folder).rglob("*.py")
    } - files.keys()
    return commit, dirty or bool(extra) or _hashes(project, files) != files


def write_build_info(project: Path) -> Path:
    """Write build-info.json for a tree about to be sent to a machine without git.

    Raises:
        RecordError: this is no git checkout, so there is nothing to write.
    """
    names = _tracked(project)
    if names is None:
        message = f"{project} is no git checkout; {BUILD_INFO} is written where git is"
        raise RecordError(message)
    commit, dirty = tree_state(project)
    path = project / BUILD_INFO
    info = {"commit": commit, "dirty": dirty, "files": _hashes(project, names)}
    path.write_text(json.dumps(info, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def provenance(tree: tuple[str | None, bool], command: str, started: str, finished: str) -> Provenance:
    """Return the provenance of a case file."""
    commit, dirty = tree
    return Provenance(
        command=command, commit=commit, dirty=dirty, started=started, finished=finished, reportkit=__version__
    )
