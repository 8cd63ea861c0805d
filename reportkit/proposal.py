"""What somebody else's tree would add to the results: read as data, held against the tree that is there.

Nothing of that tree is imported, run or followed. A pull request's check calls this from the base branch.
"""

from __future__ import annotations

import filecmp
import os
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from reportkit import records
from reportkit.plan import contradiction
from reportkit.records import Damaged, RecordError, Stored, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reportkit.plan import Article

RESULTS = "results"
_GIT = ".git"


def review(
    base: Path, proposed: Path, article: Article, lanes: Iterable[str]
) -> tuple[tuple[Stored, ...], tuple[Damaged, ...]]:
    """Return the case files that a whole tree adds to that of `base`, and everything to refuse in it, by path.

    A tree may add case files, and nothing else: those that are there are never edited or deleted, and
    other changes come by themselves, where a person reads them as code.

    Raises:
        OSError: a folder can't be read.
    """
    known = tuple(lanes)
    added: list[Stored] = []
    refused = list(_outside(base, proposed))
    ours, theirs = base / RESULTS, proposed / RESULTS
    if theirs.is_symlink() or not theirs.is_dir():
        return (), (*refused, Damaged(RESULTS, "no folder; it holds the case files, and is never moved or deleted"))
    there, found = set(_files(ours)), set(_files(theirs))
    deleted = "deleted; a case file stays, and a newer one of its case counts instead"
    refused += [Damaged(_shown(name), deleted) for name in there - found]
    for name in sorted(found):
        try:
            if name not in there:
                added.append(Stored(_shown(name), _new(theirs, name, article, known)))
            elif not _same(ours / name, theirs / name):
                refused.append(Damaged(_shown(name), "changed; a case file is never edited, measure the case again"))
        except RecordError as error:
            refused.append(Damaged(_shown(name), one_line(str(error))))
    return tuple(added), tuple(sorted(refused, key=lambda one: one.path))


def _new(theirs: Path, name: str, article: Article, lanes: tuple[str, ...]) -> records.CaseFile:
    """Return an added case file.

    Raises:
        RecordError: it is none, or contradicts its path or the plan.
    """
    file = records.read(theirs / name, theirs)
    problem = contradiction(article, lanes, file)
    if problem:
        raise RecordError(problem)
    return file


def _outside(base: Path, proposed: Path) -> Iterator[Damaged]:
    """Return what differs outside the results, deletions by what git has of the base."""
    for name in sorted({*_files(proposed, (_GIT, RESULTS)), *_tracked(base)}):
        ours, theirs = base / name, proposed / name
        if not os.path.lexists(theirs):
            what = "deleted"
        elif not os.path.lexists(ours):
            what = "added"
        elif _same(ours, theirs):
            continue
        else:
            what = "changed"
        yield Damaged(one_line(name), f"{what} outside {RESULTS}/; case files come without other changes")


def _files(root: Path, left_out: tuple[str, ...] = ()) -> Iterator[str]:
    """Return the path of everything below `root` that is no folder, and of links to folders, which are not followed."""
    for here, folders, files in os.walk(root, onerror=_fail):
        top = Path(here) == root
        links = [name for name in folders if Path(here, name).is_symlink()]
        folders[:] = [name for name in folders if not (top and name in left_out)]
        for name in (*files, *links):
            if not (top and name in left_out):
                yield Path(here, name).relative_to(root).as_posix()


def _fail(error: OSError) -> NoReturn:
    raise error


def _same(ours: Path, theirs: Path) -> bool:
    """Return whether both are the same link, or files of the same bytes."""
    modes = [path.lstat().st_mode for path in (ours, theirs)]
    if all(map(stat.S_ISLNK, modes)):
        return ours.readlink() == theirs.readlink()
    return all(map(stat.S_ISREG, modes)) and filecmp.cmp(ours, theirs, shallow=False)


def _tracked(base: Path) -> list[str]:
    """Return the files outside the results that git has of the base; none where there is no git."""
    command = ["git", "-C", os.fspath(base), "ls-files", "-z", "--", ".", f":!{RESULTS}"]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []  # A folder without git: what is deleted outside the results can't be told there.
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _shown(name: str) -> str:
    return one_line(f"{RESULTS}/{name}")
