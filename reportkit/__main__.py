"""The command line: `python -m reportkit`. Each command imports its own world and no other."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from reportkit import __version__
from reportkit.plan import PlanError
from reportkit.records import RecordError

EXIT_FAILED, EXIT_USAGE = 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (PlanError, RecordError) as error:
        sys.stderr.write(f"reportkit: {error}\n")
        return EXIT_USAGE


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
    run.add_argument("--resume", action="store_true", help="skip cases that have a fresh file already")
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

    check = commands.add_parser("check", help="read every case file and every text, and name what is damaged")
    check.set_defaults(command=_check)

    report = commands.add_parser("report", help="build the site, both languages, into site/")
    report.set_defaults(command=_report)

    info = commands.add_parser("build-info", help="write build-info.json, for a tree sent to a machine without git")
    info.set_defaults(command=_build_info)
    return parser


def _duration(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text)
    if not match:
        message = f"{text!r} is no time; write 90s, 9m or 1h"
        raise argparse.ArgumentTypeError(message)
    return float(match[1]) * {"s": 1, "": 1, "m": 60, "h": 3600}[match[2]]


def _run(options: argparse.Namespace) -> int:
    from reportkit.bench import runner

    project = Path.cwd()
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

    kept, refused = records.keep(Path.cwd() / options.source, Path.cwd() / "results")
    for path, why in refused:
        sys.stdout.write(f"left: {path}: {why}\n")
    sys.stdout.write(f"kept {kept} case files in results/\n")
    return 0


def _verdicts(options: argparse.Namespace) -> int:
    from reportkit import judge, lanes, records
    from reportkit.digest import digests
    from reportkit.plan import load_article

    project = Path.cwd()
    article = load_article(project)
    stored, damaged = records.load(project)
    verdicts = judge.judge(article, stored, [lane.id for lane in lanes.lanes(project)], digests(article))
    if options.json:
        sys.stdout.write(json.dumps(judge.as_objects(verdicts), indent=1) + "\n")
    else:
        sys.stdout.write(judge.as_table(verdicts) + "\n")
    for damage in damaged:
        sys.stderr.write(f"damaged: {damage.path}: {damage.problem}\n")
    return EXIT_FAILED if damaged else 0


def _check(_options: argparse.Namespace) -> int:
    from reportkit import records

    stored, damaged = records.load(Path.cwd())
    for damage in damaged:
        sys.stderr.write(f"damaged: {damage.path}: {damage.problem}\n")
    sys.stdout.write(f"{len(stored)} case files are whole, {len(damaged)} damaged\n")
    return EXIT_FAILED if damaged else 0


def _report(_options: argparse.Namespace) -> int:
    from reportkit.site.build import build

    return build(Path.cwd())


def _build_info(_options: argparse.Namespace) -> int:
    from reportkit.bench.environment import write_build_info

    path = write_build_info(Path.cwd())
    sys.stdout.write(f"wrote {path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
