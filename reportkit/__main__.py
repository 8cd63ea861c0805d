"""The command line: `python -m reportkit`. Each command imports its own world and no other."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reportkit import __version__
from reportkit.lanes import SetupError
from reportkit.plan import PlanError
from reportkit.records import RecordError

if TYPE_CHECKING:
    from reportkit.plan import Article
    from reportkit.records import Damaged, Stored

EXIT_FAILED, EXIT_USAGE, EXIT_NO_ROOM = 1, 2, 3


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (PlanError, RecordError, SetupError) as error:
        sys.stderr.write(f"reportkit: {error}\n")
        return EXIT_USAGE
    except OSError as error:
        sys.stderr.write(
            f"reportkit: {error.filename or 'writing'}: {error.strerror}; nothing was lost, mend it and repeat\n"
        )
        return EXIT_NO_ROOM


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reportkit", description="Measure, judge and publish the claims of an article."
    )
    parser.add_argument("--version", action="version", version=f"reportkit {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="measure cases in this environment (a lane's); writes case files")
    run.add_argument("names", nargs="*", metavar="NAME", help="sections, claims, experiments or cases; none: all")
    run.add_argument("--lane", required=True, help="the lane this environment is; checked against its torch")
    run.add_argument("--scale", choices=("full", "smoke"), help="full with a CUDA GPU, else smoke")
    run.add_argument("--budget", type=_duration, metavar="TIME", help="start no case that would not fit: 9m, 90s, 1h")
    run.add_argument(
        "--resume",
        action="store_true",
        help="skip cases that have a fresh file already (a plan lists them all the same)",
    )
    run.add_argument("--plan", action="store_true", help="only print the cases and their estimated cost")
    run.add_argument("--machine", help="a stable name for this machine; else its GPU's, or its processor's")
    run.add_argument("--output", type=Path, default=Path("runs"), help="folder of the case files (default: runs)")
    run.set_defaults(command=_run)

    keep = commands.add_parser("keep", help="copy full-scale, clean case files from runs/ into results/")
    keep.add_argument("--from", dest="source", type=Path, default=Path("runs"), metavar="FOLDER")
    keep.set_defaults(command=_keep)

    verdicts = commands.add_parser("verdicts", help="judge what is measured: a table, or --json")
    verdicts.add_argument("--json", action="store_true", help="a list of objects")
    verdicts.set_defaults(command=_verdicts)

    compare = commands.add_parser("compare", help="hold one lane against another, case by case: a table, or --json")
    compare.add_argument("baseline", help="the lane to compare with")
    compare.add_argument("candidate", help="the lane that may be better or worse")
    compare.add_argument("--machine", help="only files of this machine; else of each that has both lanes")
    compare.add_argument("--json", action="store_true", help="a list of objects")
    compare.set_defaults(command=_compare)

    check = commands.add_parser("check", help="read every case file and every text, and name what is damaged")
    check.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help="somebody else's whole tree: name what it adds to results/, and refuse anything but whole case files",
    )
    check.set_defaults(command=_check)

    export = commands.add_parser("export", help="write verdicts, samples and case files for other programs")
    export.add_argument("folder", type=Path, help="where to; it must be new or empty")
    export.set_defaults(command=_export)

    report = commands.add_parser("report", help="build the site, both languages, into site/")
    report.set_defaults(command=_report)

    serve = commands.add_parser("serve", help="serve the site here, and build it again whenever something changes")
    serve.add_argument("--port", type=int, default=8000, help="of this machine alone (default: 8000)")
    serve.set_defaults(command=_serve)

    info = commands.add_parser("build-info", help="write build-info.json, for a tree sent to a machine without git")
    info.set_defaults(command=_build_info)
    return parser


def _duration(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text)
    if not match:
        message = f"{text!r} is no time; write 90s, 9m or 1h"
        raise argparse.ArgumentTypeError(message)
    return float(match[1]) * {"s": 1, "": 1, "m": 60, "h": 3600}[match[2]]


def _project() -> Path:
    """Return the project's root, which is where this must be run.

    Raises:
        PlanError: this folder is none.
    """
    project = Path.cwd()
    if not (project / "experiments" / "__init__.py").is_file():
        message = f"no experiments/ in {project}; run this in the project's root folder"
        raise PlanError(message)
    return project


def _run(options: argparse.Namespace) -> int:
    from reportkit import lanes

    project = _project()
    lanes.named(options.lane, project)
    try:
        from reportkit.bench import runner
    except ModuleNotFoundError as error:
        message = (
            f"this environment can't measure, it has no {error.name}; "
            f"`{lanes.measuring(options.lane)}` makes one that can, and runs in it"
        )
        raise PlanError(message) from error

    wish = runner.Wish(
        project=project,
        names=tuple(options.names),
        lane=options.lane,
        scale=options.scale,
        budget=options.budget,
        resume=options.resume,
        plan=options.plan,
        machine=options.machine,
        output=project / options.output,
        command=runner.command_line(),
    )
    try:
        return runner.run(wish)
    except runner.RunError as error:
        sys.stderr.write(f"reportkit: {error}\n")
        return error.code


def _keep(options: argparse.Namespace) -> int:
    from reportkit import records

    project = _project()
    source = project / options.source
    if not source.is_dir():
        message = f"nothing to keep: there is no folder {options.source}"
        raise PlanError(message)
    kept, left = records.keep(source, project / "results")
    for path, why in left:
        sys.stdout.write(f"left: {path}: {why}\n")
    sys.stdout.write(f"kept {kept} case files in results/\n")
    return 0


def _loaded(project: Path) -> tuple[Article, list[Stored], list[Damaged]]:
    """Return the article and its case files, those that contradict it among the damaged."""
    from reportkit import lanes, records
    from reportkit.plan import load_article, sift

    article = load_article(project)
    known = [lane.id for lane in lanes.lanes(project)]
    return article, *sift(article, known, records.load(project))


def _tell(damaged: list[Damaged]) -> int:
    for damage in damaged:
        sys.stderr.write(f"damaged: {damage.path}: {damage.problem}\n")
    return EXIT_FAILED if damaged else 0


def _verdicts(options: argparse.Namespace) -> int:
    from reportkit import judge, lanes
    from reportkit.digest import digests

    project = _project()
    article, stored, damaged = _loaded(project)
    verdicts = judge.judge(article, stored, [lane.id for lane in lanes.lanes(project)], digests(article))
    if options.json:
        sys.stdout.write(json.dumps(judge.as_objects(verdicts), indent=1) + "\n")
    else:
        sys.stdout.write(judge.as_table(verdicts) + "\n")
    return _tell(damaged)


def _compare(options: argparse.Namespace) -> int:
    from reportkit import compare, lanes
    from reportkit.digest import digests
    from reportkit.plan import unknown

    project = _project()
    names = [lanes.named(name, project).id for name in (options.baseline, options.candidate)]
    article, stored, damaged = _loaded(project)
    comparisons = compare.compare(article, stored, digests(article), names[0], names[1])
    machines = {one.file.machine for one in stored}
    if options.machine is not None:
        if machines and options.machine not in machines:
            raise PlanError(unknown("machine", options.machine, sorted(machines)))
        comparisons = tuple(one for one in comparisons if one.machine == options.machine)
    if not any(one.rows for one in comparisons):
        raise PlanError(_nothing_in_common(names, options.machine, stored))
    if options.json:
        sys.stdout.write(json.dumps(compare.as_objects(comparisons), indent=1) + "\n")
    else:
        sys.stdout.write("\n\n".join(compare.as_text(one) for one in comparisons) + "\n")
    return _tell(damaged)


def _nothing_in_common(names: list[str], machine: str | None, stored: list[Stored]) -> str:
    """Return the message for lanes that share no case: where each was measured, and what to do."""
    from reportkit import lanes

    places = {
        name: sorted(
            {one.file.machine for one in stored if one.file.lane == name and machine in {None, one.file.machine}}
        )
        for name in names
    }
    told = "; ".join(f"{name} has files of {', '.join(found) or 'no machine'}" for name, found in places.items())
    missing = [name for name, found in places.items() if not found] or names[1:]
    where = f" on {machine}" if machine else ""
    return (
        f"nothing to compare: no timed case has a file that counts in both {names[0]} and {names[1]}{where} ({told}). "
        f"`{lanes.measuring(*missing)}` measures {'both' if len(missing) > 1 else 'one'}"
    )


def _check(options: argparse.Namespace) -> int:
    if options.folder is not None:
        return _check_proposed(options.folder)
    from reportkit.site.build import BuildError, check_twins
    from reportkit.site.texts import load_texts

    project = _project()
    article, stored, damaged = _loaded(project)
    sys.stdout.write(f"{len(stored)} case files are whole, {len(damaged)} damaged\n")
    code = _tell(damaged)
    load_texts(project, article)
    try:
        check_twins(project)
    except BuildError as error:
        raise PlanError(str(error)) from error
    sys.stdout.write("every claim has its words, and every page its twin\n")
    return code


def _check_proposed(folder: Path) -> int:
    """Hold somebody else's tree against this one, as data."""
    from reportkit import lanes, proposal
    from reportkit.plan import load_article

    project = _project()
    if not folder.is_dir() or folder.resolve() == project:
        message = f"{folder}: no folder, or this one; name the whole tree to check against this one"
        raise PlanError(message)
    article = load_article(project)
    added, refused = proposal.review(project, folder, article, [lane.id for lane in lanes.lanes(project)])
    for stored in added:
        machine = stored.file.machine
        counts = "is on the article's list, its files count in the tally: who measured there?"
        note = f"{machine} {counts}" if machine in article.machines else f"{machine} is shown as contributed"
        sys.stdout.write(f"new: {stored.path}: whole; {note}\n")
    for one in refused:
        sys.stderr.write(f"refused: {one.path}: {one.problem}\n")
    sys.stdout.write(f"{len(added)} new case files are whole, {len(refused)} things refused\n")
    return EXIT_FAILED if refused else 0


def _export(options: argparse.Namespace) -> int:
    from reportkit.site import exports
    from reportkit.site.edition import load_edition

    folder: Path = options.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder} is there already, and not empty; name a new folder, so that nothing is mixed with it"
        raise PlanError(message)
    edition = load_edition(_project())
    for path in exports.write(edition, folder):
        sys.stdout.write(f"{path}: {path.stat().st_size / 1e3:.0f} kB\n")
    sys.stdout.write(f"{len(edition.stored)} case files lie below {folder}, as they are here\n")
    return _tell(list(edition.damaged))


def _report(_options: argparse.Namespace) -> int:
    try:
        from reportkit.site.build import build
    except ModuleNotFoundError as error:
        message = f"this environment can't build the site, it has no {error.name}; `nox -s report` makes one that can"
        raise PlanError(message) from error

    return build(_project())


def _serve(options: argparse.Namespace) -> int:
    from reportkit.site.serve import serve

    return serve(_project(), options.port)


def _build_info(_options: argparse.Namespace) -> int:
    from reportkit.bench.environment import write_build_info

    path = write_build_info(_project())
    sys.stdout.write(f"wrote {path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
