"""Build the site, both languages, beside the old one; put it in its place only when all of it is there."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from reportkit.plan import PlanError
from reportkit.site import exports, notebooks
from reportkit.site.texts import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reportkit.site.edition import Edition

OUTPUT = "site"
MOST_SIDE_BY_SIDE = 1200
"""Case files up to which both languages are built at once: more of them, in two processes, need more than 1 GB."""
_QUIET = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
"""Notices of the site generator's makers, who went separate ways; nobody who builds this site can act on them."""


class BuildError(Exception):
    """The site could not be built; the message names the page and what is wrong there."""


def build(project: Path) -> int:
    """Build the site of the project into its folder `site`; return 0, or 1 where something is wrong.

    Everything is made in a folder of its own first: a failure leaves the old site as it was.
    Damaged case files don't stop the build: they are listed on the ledger, and the answer is 1.
    """
    project = project.resolve()
    os.environ.update(_QUIET)
    try:
        check_twins(project)
        edition = _edition(project)
        with tempfile.TemporaryDirectory(prefix=".site-", dir=project) as folder:
            fresh = Path(folder) / OUTPUT
            with contextlib.chdir(project), notebooks.kernels(edition, Path(folder) / "kernels"):
                _build_languages(project, fresh, side_by_side=len(edition.stored) <= MOST_SIDE_BY_SIDE)
            exports.write(edition, fresh / exports.FOLDER)
            _swap(fresh, project / OUTPUT, Path(folder) / "old")
    except (BuildError, PlanError) as error:
        sys.stderr.write(f"report: {error}\nreport: the site was not built; an earlier one is as it was\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"report: {error.filename or OUTPUT}: {error.strerror}; an earlier site is as it was\n")
        return 1
    for damaged in edition.damaged:
        sys.stderr.write(f"report: {damaged.path}: {damaged.problem}\n")
    _say(project, edition)
    return 1 if edition.damaged else 0


def check_twins(project: Path) -> None:
    """Refuse a page that only one language has.

    Raises:
        BuildError: the page, and where its twin belongs.
    """
    pages = {
        language: {
            page.relative_to(project / "docs" / language).as_posix()
            for page in (project / "docs" / language).rglob("*")
            if page.is_file()
        }
        for language in LANGUAGES
    }
    for language, found in pages.items():
        for other, others in pages.items():
            missing = sorted(found - others)
            if missing:
                message = (
                    f"docs/{other}/{missing[0]} is missing: docs/{language} has that page, and pages come in pairs"
                )
                raise BuildError(message)
    if not pages[LANGUAGES[0]]:
        message = f"docs/{LANGUAGES[0]} has no pages"
        raise BuildError(message)


def _edition(project: Path) -> Edition:
    from reportkit.site.edition import load_edition

    load_edition.cache_clear()  # A second build in one process sees what has changed since.
    return load_edition(project)


def _build_languages(project: Path, fresh: Path, *, side_by_side: bool) -> None:
    """Build every language below `fresh`; side by side, where a process can be split in two for it.

    Raises:
        BuildError: as for one language.
    """
    root, *others = LANGUAGES
    folders = {language: fresh.with_name(language) for language in others}
    if side_by_side and sys.platform == "linux":
        # The article is loaded and judged once, before the split. Elsewhere forking is not safe.
        with ProcessPoolExecutor(len(others), mp_context=multiprocessing.get_context("fork")) as pool:
            building = [pool.submit(_build_language, project, *one) for one in folders.items()]
            _build_language(project, root, fresh)
            for done in building:
                done.result()
    else:
        _build_language(project, root, fresh)
        for one in folders.items():
            gc.collect()  # What is left of the pages before it is as large as those that follow.
            _build_language(project, *one)
    for language, folder in folders.items():
        folder.rename(fresh / language)


def _build_language(project: Path, language: str, folder: Path) -> None:
    """Run MkDocs, strictly, for one language, into a folder of its own.

    Raises:
        BuildError: MkDocs warned or failed.
    """
    import jieba  # The search plugin would go on without it, and find no Chinese.
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort, MkDocsException, PluginError
    from nbclient.exceptions import CellExecutionError

    jieba.setLogLevel(logging.WARNING)
    root = language == LANGUAGES[0]
    file = project / ("mkdocs.yml" if root else f"mkdocs.{language}.yml")
    with _warnings() as warnings:
        try:
            config = load_config(os.fspath(file), site_dir=os.fspath(folder), strict=True)
            config.plugins.on_startup(command="build", dirty=False)
            try:
                mkdocs_build(config)
            finally:
                config.plugins.on_shutdown()
        except (MkDocsException, Abort) as error:
            # A hook's own error has the page in it; anything else is told by the warnings before it.
            plain = not isinstance(error, PluginError) and warnings
            message = f"{file.name}: {'; '.join(warnings)}" if plain else str(error)
            raise BuildError(message) from error
        except CellExecutionError as error:
            # MkDocs has named the page in front of all that the kernel said; what failed is enough.
            where = next(iter(re.findall(r"page '(.+?)'", " ".join(warnings))), "a notebook")
            told = error.evalue.strip().partition("\n")[0]
            message = f"docs/{language}/{where}: a cell failed: {error.ename}: {told}"
            raise BuildError(message) from error


@contextlib.contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect what MkDocs warns about, for one message; it prints nothing by itself."""
    found: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, handler = logging.getLogger("mkdocs"), Collect(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _swap(fresh: Path, site: Path, old: Path) -> None:
    """Put the fresh site in the old one's place; the old one goes with the folder it was made in."""
    if site.exists():
        site.rename(old)
    try:
        fresh.rename(site)
    except OSError:
        if old.exists():
            old.rename(site)
        raise


def _say(project: Path, edition: Edition) -> None:
    index = project / OUTPUT / "index.html"
    size = sum(file.stat().st_size for file in index.parent.rglob("*") if file.is_file())
    counted = f"{len(edition.claims)} claims, {len(edition.stored)} case files"
    damaged = f", {len(edition.damaged)} damaged and left out (listed on the ledger)" if edition.damaged else ""
    sys.stdout.write(
        f"report: {counted}{damaged}; {' and '.join(LANGUAGES)}, {size / 1e6:.0f} MB\n"
        f"report: {index}\n"
        f"report: open that file in a browser, or serve it: python -m http.server -d {OUTPUT}\n"
    )
