"""A project of badly behaved workloads, measured by this environment's own torch."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reportkit.bench.runner import Wish

TOY = Path(__file__).parent / "toy"


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Path]:
    """Return the root of a copy of the toy project; its article is imported anew."""
    project = tmp_path / "toy"
    shutil.copytree(TOY, project, ignore=shutil.ignore_patterns("__pycache__"))
    torch = importlib.metadata.version("torch").split("+")[0]
    (project / "lanes").mkdir()
    (project / "lanes" / "lanes.toml").write_text(
        f'[[lane]]\nid = "toy"\nkind = "stable"\npython = ["3.11", "3.12"]\n'
        f'torch = "{torch}"\ndownload_gb = 1\ninstalled_gb = 1\nminutes = 1\n'
    )
    mine = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "experiments"}
    yield project
    for name in [name for name in sys.modules if name.split(".")[0] == "experiments"]:
        del sys.modules[name]
    sys.modules |= mine
    sys.path[:] = [entry for entry in sys.path if entry != str(project)]


@pytest.fixture
def wish(toy: Path) -> Callable[..., Wish]:
    """Return what makes a wish about the toy project."""
    from reportkit.bench.runner import Wish

    def make(*names: str, **options: Any) -> Wish:
        given: dict[str, Any] = {
            "project": toy,
            "names": names,
            "lane": "toy",
            "scale": "smoke",
            "budget": None,
            "resume": False,
            "plan": False,
            "machine": "toy-machine",
            "output": toy / "runs",
            "command": "python -m reportkit run",
        }
        return Wish(**{**given, **options})

    return make
