"""The page on the ruler, part by part, over made-up files: golden in both languages, honest where there is little."""

from __future__ import annotations

import functools
import inspect
import json
import re
from html import unescape
from typing import TYPE_CHECKING

import pytest

from experiments import ARTICLE, controls
from reportkit import judge, records
from reportkit.records import Finding, Measurement, Stored
from reportkit.site import charts, ruler, texts
from reportkit.site.edition import Edition
from tests.casefiles import DIGESTS, changed, moments, run_files
from tests.site.conftest import HOSTILE, ROOT, golden

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reportkit.records import CaseFile

LANGUAGES = texts.load_texts(ROOT, ARTICLE)
LANES = ("2.4", "2.5", "2.15")
QUICK = judge.Criteria(draws=200)
PARTS = ("goals", "traps", "timers", "calibration", "overhead", "anchors")
BENCHES = tuple(e.id for e in ARTICLE.experiments if e.kind == "bench")
RULER = ("anchors", "traps", *BENCHES)


def edition(files: Iterable[CaseFile], folder: str = "results") -> Edition:
    stored = tuple(Stored(f"{folder}/{records.relative_path(file).as_posix()}", file) for file in files)
    return Edition(
        project=ROOT,
        article=ARTICLE,
        lanes=LANES,
        stored=stored,
        damaged=(),
        verdicts=(),
        observations=judge.observe(ARTICLE, stored, DIGESTS, QUICK),
        criteria=QUICK,
        texts=LANGUAGES,
    )


def page(files: Iterable[CaseFile], language: str = "en", folder: str = "results") -> ruler.RulerPage:
    return ruler.RulerPage(edition(files, folder), LANGUAGES[language], "ruler.md")


def those(*experiments: str, **wishes: object) -> list[CaseFile]:
    """Return made-up files of some experiments, or of those that the page shows."""
    wanted = experiments or RULER
    found = [file for file in run_files(**wishes) if file.experiment in wanted]  # type: ignore[arg-type]
    return [changed(file, provenance=moments(place)) for place, file in enumerate(found)]


@functools.cache
def example() -> Edition:
    """Return the article's machine at full scale, and a CPU with small shapes."""
    return edition([*those(), *those(gpu=False, scale="smoke")])


def words(made: str) -> str:
    """Return what a fragment shows, as one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", made))).strip()


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("part", PARTS)
def test_part(part: str, language: str) -> None:
    made = getattr(ruler.RulerPage(example(), LANGUAGES[language], "ruler.md"), part)()
    golden(f"ruler-{part}-{language}.html", made)


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize(
    ("part", "command"),
    [
        ("traps", 'nox -s "experiments(2.5)" report -- controls'),
        ("timers", "nox -s bench report"),
        ("calibration", "nox -s bench report"),
        ("overhead", 'nox -s "experiments(2.5)" report -- controls'),
        ("anchors", 'nox -s "experiments(2.5)" report -- controls'),
    ],
)
def test_nothing_measured_is_said_with_the_command_that_fills_it(part: str, command: str, language: str) -> None:
    made = getattr(page([], language), part)()
    assert LANGUAGES[language]("home.not-yet") in words(made)
    assert command in words(made)
    assert "<table" not in made


def _with(files: list[CaseFile], **measurements: Measurement) -> list[CaseFile]:
    return [changed(file, measurements={**file.measurements, **measurements}) for file in files]


def _far(number: int, centre: float = 1.0) -> dict[str, Measurement]:
    """Return trials whose intervals all miss the truth and claim a difference."""
    ends = {"low": centre + 0.02, "centre": centre + 0.025, "high": centre + 0.03}
    return {name: Measurement(unit="1", samples=[end] * number) for name, end in ends.items()}


def test_nothing_measured_is_no_goal_met() -> None:
    assert words(page([]).goals()) == "Not measured yet."
    assert words(page(those("traps")[:3]).goals()) == "Not measured yet."


def test_all_goals_met_is_said_only_where_all_are_measured() -> None:
    assert words(page(those()).goals()) == "All goals met."
    said = words(page(those("traps", "calibration", "anchors")).goals())
    assert said == "Not measured yet: the cost of a ratio by other timers."


def test_a_missed_goal_is_said_first_with_figures_and_place() -> None:
    files = [file for file in those() if file.experiment != "calibration"]
    bad = _with([file for file in those("calibration") if file.axes["truth"] == "aa"], **_far(400))
    good = [file for file in those("calibration") if file.axes["truth"] == "known"]
    said = words(page([*files, *bad, *good]).goals())
    assert said == (
        "Missed: intervals that hold the truth, equal sides, 0 % where 93 to 98 % is wanted (2.5, nvidia-h200); "
        "differences claimed between equal sides, 100 % where at most 1 % is wanted (2.5, nvidia-h200). "
        "The goals of coverage pool all kinds of noise; by themselves, outside of 93 to 98 %: "
        + "; ".join(
            f"true ratio 1.00x, {noise}, 0.0 % [0.0, 1.0] of 400 trials, an interval that excludes the goal "
            "(2.5, nvidia-h200)"
            for noise in ("quiet", "drifting clock", "bursts", "two-humped")
        )
        + "."
    )
    assert "\u672a\u8fbe\u5230\uff1a" in words(page([*files, *bad, *good], "zh").goals())
    table = words(page([*files, *bad, *good]).calibration())
    assert "0 % 93 to 98 % \u2715 missed" in table
    assert "95 % 93 to 98 % \u2713 met" in table


def test_a_kind_of_noise_that_the_pooled_share_hides_is_named() -> None:
    def missing(file: CaseFile) -> dict[str, Measurement]:
        drift = file.axes["noise"] == "drift"
        return file.measurements | _far_in(file, 56 if drift else 8)

    rest = [file for file in those() if file.experiment != "calibration"]
    trials = [changed(file, measurements=missing(file)) for file in those("calibration") if file.axes["truth"] != "aa"]
    said = words(page([*rest, *trials]).goals())
    assert "The goals of coverage pool all kinds of noise; by themselves, outside of 93 to 98 %: " in said
    assert "true ratio 1.05x, drifting clock, 86.0 % [82.2, 89.1] of 400 trials, an interval that excludes the" in said
    assert "bursts, 98.0" not in said
    # A CPU's, whoever has it: noise can be made on no GPU.
    theirs = [changed(file, machine="other") for file in trials]
    said = words(page([*those(), *theirs]).goals())
    assert said.startswith("All goals met. The goals of coverage pool all kinds")
    assert "excludes the goal (2.5, other, contributed)" in said
    zh = words(page([*rest, *trials], "zh").goals())
    assert "86.0 % [82.2, 89.1]" in zh


def _far_in(file: CaseFile, missed: int) -> dict[str, Measurement]:
    """Return intervals of which so many miss the truth, by little."""
    number = len(file.measurements["low"].samples)
    truth = file.measurements["truth"].samples[0]
    lows = [truth + (0.001 if place < missed else -0.002) for place in range(number)]
    ends = {"low": lows, "centre": [low + 0.002 for low in lows], "high": [low + 0.004 for low in lows]}
    return {name: Measurement(unit="1", samples=samples) for name, samples in ends.items()}


def test_too_few_trials_say_nothing_yet() -> None:
    few = [file for file in those("calibration") if file.axes["noise"] == "quiet"]
    some = [changed(f, measurements={k: changed_samples(m, 100) for k, m in f.measurements.items()}) for f in few]
    shown = page(some)
    assert "too little measured" in words(shown.calibration())
    assert words(shown.goals()) == "Not measured yet."


def changed_samples(measurement: Measurement, number: int) -> Measurement:
    return Measurement(unit=measurement.unit, samples=measurement.samples[:number])


def test_a_stale_bench_is_shown_as_stale_and_meets_no_goal() -> None:
    shown = page([changed(file, protocol=records.PROTOCOL - 1) for file in those("calibration", "timers")])
    assert "stale" in words(shown.calibration())
    assert "stale" in words(shown.timers())
    assert "met" not in words(shown.calibration()).split()
    assert words(shown.goals()) == "Not measured yet."


def test_a_strangers_figures_do_not_speak_for_the_ruler() -> None:
    shown = page(those(machine="stranger"))
    assert words(shown.goals()) == "Not measured yet."
    assert "contributed" in words(shown.calibration())


def test_small_shapes_and_local_runs_are_marked_everywhere() -> None:
    shown = page(those(gpu=False, scale="smoke"), folder="runs")
    for part in PARTS[1:]:
        made = getattr(shown, part)()
        assert ">smoke<" in made, part
        assert ">local<" in made, part


def test_the_articles_own_machine_comes_first_and_is_open() -> None:
    made = ruler.RulerPage(example(), LANGUAGES["en"], "ruler.md").traps()
    assert re.findall(r"<details[^>]*?( open)?><summary>", made) == [" open", ""]
    assert made.index("nvidia") < made.index("dev&#45;cpu")


def _trap(name: str, **changes: object) -> str:
    """Return the row of one trap, as words."""
    files = [changed(file, **changes) for file in those("traps") if file.axes["trap"] == name]
    rows = re.findall(r"<tr>(.*?)</tr>", page(files).traps())
    return words(rows[-1])


def test_a_trap_says_what_the_naive_timer_says_and_what_is_true() -> None:
    assert _trap("zeros").startswith("Zeros against random data 1.60x 1.00x ")
    assert _trap("cached-result") == (
        "Result cached between calls 1.60x not comparable refused: cached-result was found out JSON"
    )
    assert _trap("zero-graphs").startswith("No breaks, and no graphs 0 breaks not comparable refused")
    assert _trap("zeros", measurements={}, status="unavailable", reason="needs `x`") == (
        "Zeros against random data \u2013 1.00x not available: needs `x` JSON"
    )


def test_a_trap_that_ours_falls_into_shows_its_figure() -> None:
    row = _trap("cached-result", findings={"refused": Finding(holds=False, evidence={"reason": ""})})
    assert re.search(r"not comparable (0\.99\d*|1\.00\d?)x \[", row)


def _refused(reason: str, language: str) -> str:
    files = [
        changed(file, findings={"refused": Finding(holds=True, evidence={"reason": reason})})
        for file in those("traps")
        if file.axes["trap"] == "cached-result"
    ]
    return page(files, language).traps()


def _said_by_the_measuring_side() -> list[str]:
    """Return what a refusal can say, by the code that says it, with its placeholders filled."""
    source = "".join(
        (ROOT / "reportkit" / "bench" / name).read_text() for name in ("case.py", "timing.py", "correctness.py")
    )
    said = re.findall(
        r'"(a profiler is on[^"\n]*|[^"\n]*graphs were compiled while[^"\n]*|the calls change[^"\n]*|'
        r'after timing[^"\n]*|after its inputs[^"\n]*|no graph was captured[^"\n]*|the compiled [^"\n]*)"',
        source,
    )
    return [re.sub(r"\{side\}", "eager", re.sub(r"\{(?!side)[^}]*\}", "3", one)) for one in said]


def test_refusals_are_said_in_the_pages_language() -> None:
    reasons = _said_by_the_measuring_side()
    assert len(reasons) >= len(ruler._REFUSALS)
    for reason in reasons:
        shown = _refused(reason, "zh")
        # The last part of a reason that has another one in it is made up here, and nobody's.
        assert words(shown).count(reason) == 0, reason
        assert reason in words(_refused(reason, "en"))
    inner = "the compiled result has other types than eager's"
    nested = f"after its inputs were changed in place, compiled did not follow eager: {inner}"
    assert "lang=" not in _refused(nested, "zh")
    assert '<span lang="en">nobody knows this one</span>' in _refused("nobody knows this one", "zh")


def test_intervals_that_miss_the_truth_inside_their_bound_are_counted() -> None:
    files = [file for file in those("traps") if file.axes["trap"] in {"zeros", "first-call"}]
    shown = words(page(files).traps())
    assert re.search(r"Where both sides do the same work, \d of 2 intervals do not hold the true ratio", shown), shown


@pytest.mark.parametrize("text", [HOSTILE, "x" * 5000])
def test_a_strangers_reason_is_text(text: str) -> None:
    files = [
        changed(file, findings={"refused": Finding(holds=True, evidence={"reason": text})})
        for file in those("traps")
        if file.axes["trap"] == "cached-result"
    ]
    made = page(files).traps()
    assert "<script" not in made
    assert "{{" not in made
    assert len(made) < 30_000


def test_a_strangers_timers_do_not_stop_the_build() -> None:
    broken = {
        f"{HOSTILE}.ratio": Measurement(unit="1", samples=[1.0]),
        f"{HOSTILE}.seconds": Measurement(unit="s", samples=[1.0]),
        "half.ratio": Measurement(unit="1", samples=[1.0]),
        "none.ratio": Measurement(unit="1", samples=[0.0]),
        "none.seconds": Measurement(unit="s", samples=[1.0]),
        "high": Measurement(unit="1", samples=[1.0, 2.0]),
    }
    zero = {
        "naive_compiled": Measurement(unit="s", samples=[1e-9]),
        "naive_eager": Measurement(unit="s", samples=[1e7]),
    }
    files = [*_with(those("timers", "calibration"), **broken), *_with(those("traps"), **zero)]
    shown = page(files)
    for part in PARTS:
        made = getattr(shown, part)()
        assert "<script>" not in made, part
        assert "onerror=" not in re.sub(r'"[^"]*"', "", made), part


def test_a_copy_is_shown_as_what_it_moves() -> None:
    shown = words(page(those("anchors")).anchors())
    assert "launch copy MobileNetV2 measured" in shown
    assert re.search(r"2\.\d+ \u00b5s 4\d\d0 GB/s 3\.\d+ ms 2026-11-30", shown), shown
    assert "agrees within 3 % between" in shown
    # What the anchor copies, by its own code.
    source = inspect.getsource(controls.prepare_anchors)
    mebi = re.search(r'\((\d+) if here\.scale == "full" else (\d+)\) << 20', source)
    assert mebi
    assert {"full": int(mebi[1]) << 20, "smoke": int(mebi[2]) << 20} == ruler.COPIED


@pytest.mark.parametrize(("language", "above"), [("en", ""), ("zh", "../")])
@pytest.mark.parametrize(
    ("part", "experiment"),
    [
        ("traps", "traps"),
        ("timers", "timers"),
        ("calibration", "calibration"),
        ("anchors", "anchors"),
        ("overhead", "traps"),
    ],
)
def test_every_figure_is_one_link_from_its_file(part: str, experiment: str, language: str, above: str) -> None:
    files = those()
    made = getattr(page(files, language), part)()
    wanted = {
        f"{above}data/results/{records.relative_path(file).as_posix()}"
        for file in files
        if file.experiment == experiment
    }
    assert wanted <= {unescape(address) for address in re.findall(r'href="([^"]*)"', made)}


def test_overhead_is_shown_for_the_newest_run_of_each_place_that_is_large_enough() -> None:
    old = those()
    new = [
        changed(
            file,
            run="20261201t120000z",
            provenance=changed_times(file, "2026-12-01"),
            phases={"import": 0.0, "steady-state": 2.0},
        )
        for file in old
    ]
    few = [changed(file, machine="small") for file in old[:9]]
    shown = words(page([*old, *new, *few]).overhead())
    assert "2026-12-01" in shown
    assert "2026-11-30" not in shown
    assert "small" not in shown
    assert "\u2715 missed" in shown
    assert "at most 15 %" in shown


def changed_times(file: CaseFile, day: str) -> records.Provenance:
    import msgspec

    source = file.provenance
    return msgspec.structs.replace(source, started=day + source.started[10:], finished=day + source.finished[10:])


def test_the_chart_of_timers_has_a_fill_for_each_standing() -> None:
    words_ = {"rows": "timer", "workload": "workload", "x": "seconds", "near": "n", "unknown": "u", "off": "o"}
    rows: list[charts.Row] = [{"row": "a", "workload": "w", "time": 1.0, "standing": "n", "shown": "1 s"}]
    # A point scale, which is a nominal opacity's own, spreads its first two values over all three.
    fill = charts.timers(rows, words_)
    assert '"range": [1, 0.35, 0], "type": "ordinal"' in json.dumps(fill, sort_keys=True)
