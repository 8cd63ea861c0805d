"""A verdict reads the same everywhere, in both languages."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.judge import Criteria, Interval, Outcome, Part, Reason, Verdict
from reportkit.records import Stored
from reportkit.site import lines, naming, texts
from reportkit.site.edition import Edition
from tests.casefiles import DIGESTS, changed, run_files
from tests.site.conftest import HOSTILE, ROOT

LANGUAGES = texts.load_texts(ROOT, ARTICLE)
CLAIM = next(claim for claim in ARTICLE.claims if claim.id == "table-resnet50")
FACT = next(claim for claim in ARTICLE.claims if claim.id == "cache-hits")
REFUTED = Verdict(
    claim=CLAIM.id,
    section="benchmarks",
    lane="2.5",
    machine="nvidia-h200",
    scale="full",
    outcome="refuted",
    reason=Reason(code="outside"),
    interval=Interval(low=2.08, centre=2.1, high=2.12),
    bound=CLAIM.bound,
    parts=(),
    files=("results/x.json",),
    local=False,
    contributed=False,
)


def _part(setting: str, outcome: Outcome, code: str, centre: float) -> Part:
    return Part(
        label="",
        setting=setting,
        outcome=outcome,
        reason=Reason(code=code),
        interval=Interval(low=centre - 0.01, centre=centre, high=centre + 0.01),
        holds=None,
        files=(),
    )


DEPENDS = replace(
    REFUTED,
    outcome="inconclusive",
    reason=Reason(code="depends-on-setting", details={"supported": "t", "refuted": "d"}),
    interval=None,
    parts=(_part("d", "refuted", "outside", 1.3), _part("t", "supported", "inside", 1.6)),
)
UNMEASURED = replace(
    REFUTED,
    machine=None,
    scale=None,
    outcome="not-measured",
    reason=Reason(code="lane-never-measured", details={"lane": "2.5"}),
    interval=None,
    files=(),
)


def edition(*verdicts: Verdict) -> Edition:
    return Edition(
        project=ROOT,
        article=ARTICLE,
        lanes=("2.4", "2.5", "2.15", "nightly"),
        stored=(),
        damaged=(),
        verdicts=verdicts,
        observations=(),
        criteria=Criteria(),
        texts=LANGUAGES,
    )


@pytest.mark.parametrize(
    ("language", "verdict", "sentence"),
    [
        (
            "en",
            REFUTED,
            "refuted on 2.5, nvidia&#45;h200&#58; 2.10x\u00a0&#91;2.08,\u00a02.12&#93;, held to 1.42 to 1.87",
        ),
        (
            "zh",
            REFUTED,
            (
                "2.5\u3001nvidia&#45;h200 \u4e0a\u4e0d\u6210\u7acb\uff1a2.10x\u00a0&#91;2.08,\u00a02.12&#93;"
                "\uff0c\u5224\u636e\uff1a1.42 \u5230 1.87"
            ),
        ),
        ("en", UNMEASURED, "not measured on 2.5"),
        (
            "en",
            DEPENDS,
            (
                "inconclusive on 2.5, nvidia&#45;h200&#58; default precision&#58; refuted 1.30x\u00a0&#91;1.29,"
                "\u00a01.31&#93;&#59; TF32 matmuls&#58; supported 1.60x\u00a0&#91;1.59,\u00a01.61&#93;, "
                "held to 1.42 to 1.87"
            ),
        ),
    ],
)
def test_sentence(language: str, verdict: Verdict, sentence: str) -> None:
    assert lines.sentence(LANGUAGES[language], CLAIM, verdict) == sentence


def test_line_has_chip_link_drawing_and_figures() -> None:
    made = lines.Line(edition(REFUTED), LANGUAGES["en"], "article/benchmarks.md")(CLAIM)
    assert 'class="rk-chip rk-refuted"' in made
    assert '<a href="../claims/table-resnet50.html">' in made
    assert 'aria-label="Bound: 1.42 to 1.87. Measured: 2.10x\u00a0&#91;2.08,\u00a02.12&#93;. refuted."' in made
    assert "<strong>2.10x</strong> <span" in made


def test_what_disagrees_is_drawn_twice() -> None:
    made = lines.Line(edition(DEPENDS), LANGUAGES["en"], "index.md")(CLAIM)
    assert made.count("<circle") == 2
    assert lines.reason(LANGUAGES["en"], DEPENDS.reason) == (
        "It depends on the precision&#58; supported under TF32 matmuls, refuted under default precision."
    )


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"scale": "smoke"}, {"smoke"}),
        ({"scale": "smoke", "contributed": True, "local": True}, {"smoke", "local"}),
        ({"contributed": True}, {"contributed"}),
        ({"reason": Reason(code="stale", details={"case": "c", "differs": "digest"})}, {"stale"}),
        ({"outcome": "not-measured", "scale": "smoke", "files": ()}, set()),
        ({"outcome": "not-testable", "scale": "smoke", "local": True}, set()),
        ({"outcome": "not-measured", "scale": "smoke", "local": True}, {"smoke", "local"}),
        ({}, set()),
    ],
)
def test_flags(change: dict[str, object], shown: set[str]) -> None:
    made = lines.flags(LANGUAGES["en"], replace(REFUTED, **change))  # type: ignore[arg-type]
    assert {name for name in ("smoke", "local", "contributed", "stale", "dirty") if f">{name}<" in made} == shown


def test_squares_say_what_was_found() -> None:
    found = [
        Part(
            label=label,
            setting=None,
            outcome="supported" if holds else "refuted",
            reason=Reason(code="finding-holds" if holds else "finding-fails"),
            interval=None,
            holds=holds,
            files=(),
        )
        for label, holds in (("resnet50", True), ("bert", False))
    ]
    verdict = replace(REFUTED, claim=FACT.id, interval=None, bound=FACT.bound, parts=tuple(found))
    made = lines.drawing(LANGUAGES["en"], FACT, verdict, lines.scale_of(edition(verdict), FACT))
    assert made.count("rk-square-held") == 1
    assert made.count("rk-cross") == 2
    assert 'aria-label="Findings as claimed: 1 of 2. refuted."' in made
    assert lines.value(LANGUAGES["en"], verdict) == "1 of 2 as claimed"


def test_smoke_never_speaks_where_full_does() -> None:
    small = replace(REFUTED, machine="a-cpu", scale="smoke", outcome="supported")
    assert edition(small, REFUTED).headline(CLAIM.id) == REFUTED


def test_a_strangers_reason_stays_text() -> None:
    why = Reason(code="failed", details={"case": "c", "status": "crashed", "message": HOSTILE})
    shown = lines.reason(LANGUAGES["en"], why)
    assert not set("<>{}*[]`") & set(shown)
    assert HOSTILE.replace("\u202e", "\ufffd") in html.unescape(shown)  # Backticks too: a message is shown as it is.


def test_the_side_of_the_bound_is_told() -> None:
    assert lines.why(LANGUAGES["en"], CLAIM, REFUTED) == "The whole interval lies above the bound."
    slow = replace(REFUTED, interval=Interval(low=1.1, centre=1.2, high=1.3))
    assert lines.why(LANGUAGES["en"], CLAIM, slow) == "The whole interval lies below the bound."


def test_a_refuted_setting_is_not_hidden_by_an_undecided_one() -> None:
    undecided = replace(
        DEPENDS,
        reason=Reason(code="straddles"),
        interval=DEPENDS.parts[1].interval,
        parts=(DEPENDS.parts[0], _part("t", "inconclusive", "straddles", 1.42)),
    )
    shown = lines.value(LANGUAGES["en"], undecided, CLAIM)
    assert shown.count("rk-setting") == 2
    assert shown.index("default precision") < shown.index("refuted") < shown.index("1.30x") < shown.index("TF32")
    words = lines.why(LANGUAGES["en"], CLAIM, undecided)
    assert words.startswith("default precision&#58; The whole interval lies below the bound")


@pytest.mark.parametrize(
    ("claim", "called"),
    [
        ("resnet50-stable", "largest speedup over smallest"),
        ("bert-compile-costly", "first call, BERT-base over ResNet-50:"),
        ("cache-saves-time", "first call, warm caches over empty caches:"),
        ("table-bert", ""),
    ],
)
def test_a_figure_that_is_no_speedup_has_its_name(claim: str, called: str) -> None:
    asked = next(one for one in ARTICLE.claims if one.id == claim)
    assert naming.short(LANGUAGES["en"], asked.quantity) == called


def test_a_legend_explains_what_is_drawn_and_no_more() -> None:
    squares, bars = lines.legend(LANGUAGES["en"], [FACT]), lines.legend(LANGUAGES["en"], [CLAIM])
    assert "square" in squares
    assert "band" not in squares
    assert "square" not in bars
    assert "band" in bars


def test_large_squares_have_their_names_beside_them() -> None:
    made = lines.drawing(LANGUAGES["en"], FACT, UNMEASURED, lines.scale_of(edition(), FACT), "large")
    assert re.findall(r"<text[^>]*>([^<]*)</text>", made) == ["ResNet&#45;50", "BERT&#45;base"]
    assert made.count('y="2"') == 2  # Beside one another: a phone has room for two short names.
    traps = next(claim for claim in ARTICLE.claims if claim.id == "traps-refused")
    verdict = replace(UNMEASURED, claim=traps.id, bound=traps.bound)
    stacked = lines.drawing(LANGUAGES["en"], traps, verdict, lines.scale_of(edition(), traps), "large")
    places = re.findall(r'<rect x="1" y="(\d+)"', stacked)
    assert len(places) == len(set(places)) == 5
    assert "Result cached between calls</text>" in stacked


def test_a_square_alone_has_no_name() -> None:
    found = next(claim for claim in ARTICLE.claims if claim.id == "traps-refused-gpu")
    part = Part(
        label="",
        setting=None,
        outcome="refuted",
        reason=Reason(code="finding-fails"),
        interval=None,
        holds=False,
        files=(),
    )
    made = lines.drawing(LANGUAGES["en"], found, part, lines.scale_of(edition(), found), "large")
    assert "<text" not in made
    assert made.count("rk-cross") == 2
    assert 'aria-label="Findings as claimed: 0 of 1. refuted."' in made


def test_a_line_on_a_finding_says_what_was_found_or_why_it_does_not_count() -> None:
    files = run_files(findings={"flag-compiles": False})
    stored = tuple(Stored(f"results/{records.relative_path(file).as_posix()}", file) for file in files)
    made = replace(edition(REFUTED), stored=stored, verdicts=judge.judge(ARTICLE, stored, ("2.5",), DIGESTS))
    claim = made.claims["q3-from-pretrained"]
    shown = lines.Line(made, LANGUAGES["zh"], "article/questions.md")(claim)
    assert 'lang="en"' in shown
    assert "made up" in html.unescape(shown)
    assert "2.5\uff0cnvidia" in html.unescape(shown)
    old = tuple(Stored(one.path, changed(one.file, digest="0" * 16)) for one in stored)
    stale = replace(made, stored=old, verdicts=judge.judge(ARTICLE, old, ("2.5",), DIGESTS))
    assert "has to be measured again" in lines.Line(stale, LANGUAGES["en"], "article/questions.md")(claim)
