"""Notebooks: where they run, on what, and what of them becomes a page.

They run at every build, in a kernel of this environment that sees the exports and none of the user's own
settings. Their pages carry a whole JupyterLab style sheet and ask other hosts for scripts; both are taken out,
so that what is left looks like the site, in `site.css`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mkdocs.structure.toc import AnchorLink

    from reportkit.site.edition import Edition

FOLDER = "notebooks/"
"""Where they lie, below a language's folder."""

_FOREIGN = re.compile(
    r"<(style|script|clipboard-copy)\b.*?</\1\s*>"
    r'|<a class="anchor-link".*?</a>'
    r'|<div class="clipboard-copy-txt".*?</div>'
    r'|<div class="celltoolbar">.*?</div>\s*</div>'
    r'| id="cell-id=[^"]*"',  # Another one at every build.
    re.DOTALL,
)
_HEADING = re.compile(r'<h([1-6]) id="[^"]*">')
_CODE = re.compile(r'<div class="\s*highlight-ipynb[^"]*"><pre>(.*?)\s*</pre></div>', re.DOTALL)


_QUIET = """
import os, sys
os.dup2(os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
from ipykernel import kernelapp
kernelapp.launch_new_instance()
"""
"""A kernel whose own complaints go to a file: one that is ended may tell of its sockets, which is no news of the build.
What a cell says or raises comes another way."""


@contextlib.contextmanager
def kernels(edition: Edition, folder: Path) -> Iterator[None]:
    """Let notebooks run while the site of an edition is built; `folder` is theirs to fill.

    Raises:
        OSError: the folder can't be written.
    """
    data = folder / "exports"
    data.mkdir(parents=True)
    for export in edition.exports:
        shutil.copyfile(export.path, data / export.name)
    settings = folder / "settings"
    settings.mkdir()
    # A kernel listens on ports of this machine; only the build is to be understood there.
    encrypted = {"KernelManager": {"transport_encryption": "required"}}
    (settings / "jupyter_nbconvert_config.json").write_text(json.dumps(encrypted), encoding="utf-8")
    spec = folder / "own" / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-c", _QUIET, os.fspath(folder / "kernel-errors.txt"), "-f", "{connection_file}"]
    spec.joinpath("kernel.json").write_text(
        json.dumps(
            {
                "argv": argv,
                "display_name": "Python 3",
                "language": "python",
                "metadata": {"supported_encryption": ["curve"]},
            }
        ),
        encoding="utf-8",
    )
    before = dict(os.environ)
    os.environ.update(
        {
            "REPORTKIT_EXPORTS": os.fspath(data),
            "PYTHONPATH": os.pathsep.join([os.fspath(edition.project), *filter(None, [before.get("PYTHONPATH")])]),
            # Kernels of this environment, and no one's own start-up files, extensions or settings.
            "JUPYTER_PATH": os.fspath(folder / "own"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "JUPYTER_DATA_DIR": os.fspath(folder / "jupyter"),
            "JUPYTER_CONFIG_DIR": os.fspath(settings),
            "JUPYTER_RUNTIME_DIR": os.fspath(folder / "runtime"),
            "IPYTHONDIR": os.fspath(folder / "ipython"),
            # A debugger that nobody attaches would warn of frozen modules.
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def page(html: str, contents: Iterable[AnchorLink]) -> str:
    """Return a notebook's page without the style sheets, scripts and buttons that it brought.

    Its headings, and the entries of its contents, get names of ours: theirs are empty in Chinese.
    """
    steps = itertools.count()
    for entry in _flat(contents):
        entry.id = f"step-{next(steps)}"
    steps = itertools.count()
    html = _CODE.sub(r'<div class="highlight"><pre><code>\1</code></pre></div>', _FOREIGN.sub("", html))
    return _HEADING.sub(lambda found: f'<h{found[1]} id="step-{next(steps)}">', html)


def _flat(contents: Iterable[AnchorLink]) -> Iterator[AnchorLink]:
    for entry in contents:
        yield entry
        yield from _flat(entry.children)
