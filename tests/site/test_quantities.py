"""What a claim measures is called by its name, in both languages, on its line and on its page."""

from __future__ import annotations

import dataclasses
import functools
import html
import re
import tomllib
from pathlib import Path

import pytest

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.claims import (
    SHOWN,
    TRUE,
    Bound,
    Claim,
    Each,
    Fact,
    FirstCall,
    GeometricMean,
    Metric,
    Quantity,
    Ratio,
    Side,
    Smallest,
    SomeBelow,
    Speedup,
    Spread,
    Sum,
    Untestable,
    Where,
    Works,
    above,
    at_least,
    at_most,
    below,
    between,
)
from reportkit.site import lines, naming, pages, texts
from reportkit.site.edition import Edition
from reportkit.site.home import HomePage
from reportkit.site.texts import ClaimText, Texts
from tests.quantities import DIGESTS, PROCESSES, WORKLOADS, article, counted, files, timed
from tests.site.conftest import ROOT

NAMES = {
    "workload": {"a": "ResNet-50", "b": "BERT-base", "c": "SD UNet"},
    "experiment": {"large": "batch 256", "timed": "batch 64"},
    "dynamic": {"false": "dynamic=False"},
}
EAGER, COMPILED = Side(timed("a"), "eager"), Side(timed("a"), "compiled")
COLD = FirstCall(timed("a", *PROCESSES))
GRAPHS, FIXED = Metric(counted("default"), "graphs"), Metric(counted("false"), "graphs")


@pytest.fixture(autouse=True)
def no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages go without the code of cases: these are made up, and have none."""
    monkeypatch.setattr("reportkit.site.edition.codes", lambda _article, cases: dict.fromkeys(cases, ()))


def launches(workload: str) -> Ratio:
    return Ratio(Metric(timed(workload), "launches.eager"), Metric(timed(workload), "launches.compiled"))


ASKED: dict[str, tuple[Quantity, Bound]] = {
    "launches": (Each({one: launches(one) for one in ("a", "b")}), at_least(1.3)),
    "idle": (Ratio(Metric(timed("a"), "eager_busy"), Metric(timed("a"), "eager_wall")), at_most(0.8)),
    "energy": (Ratio(Metric(timed("a"), "compiled_energy"), Metric(timed("a"), "eager_energy")), below(0.98)),
    "memory": (Metric(timed("a"), "memory.compiled_allocated"), SHOWN),
    "graphs": (GRAPHS, at_most(2)),
    "graph-ratio": (Ratio(GRAPHS, FIXED), at_most(0.5)),
    "share": (FirstCall(timed("a", *PROCESSES), "entire_frame_compile", of="first_call"), at_least(0.8)),
    "first": (COLD, between(2, 100)),
    "spread": (Spread((timed("a"), Where("large", {}))), at_most(1.2)),
    "smallest": (Ratio(Smallest((Speedup(timed("a")), Speedup(timed("c")))), Speedup(timed("b"))), above(1.15)),
    "geometric": (GeometricMean(tuple(Speedup(timed(one)) for one in WORKLOADS)), between(1.24, 1.68)),
    "in-all": (Ratio(Sum(((1000, EAGER),)), Sum(((1, COLD), (1000, COMPILED)))), below(1)),
    "rates": (Ratio(Ratio(GRAPHS, EAGER), Ratio(FIXED, COMPILED)), at_least(0.1)),
    "sides": (Ratio(COMPILED, Side(Where("large", {"workload": "a"}), "compiled")), between(0.9, 1.21)),
    "side": (EAGER, SHOWN),
    "mixed": (Each({"a": Speedup(timed("a")), "b": Ratio(EAGER, COMPILED)}), above(1)),
    "lanes": (Ratio(GRAPHS, Metric(Where("counted", {"dynamic": "default"}, "2.4"), "graphs")), below(1)),
    "again": (Speedup(timed("a")), above(1)),
    "default": (Speedup(timed("b"), base="default"), above(1)),
    "large": (Speedup(Where("large", {"workload": "a"})), above(1)),
    "traced": (Speedup(Where("traced", {"workload": "a"})), above(1.02)),
    "works": (Each({one: Works(timed(one), unbroken=True) for one in WORKLOADS}), TRUE),
    "slow": (SomeBelow((timed(WORKLOADS, *PROCESSES),), 0.97, {}), TRUE),
    "seen": (Fact(counted("default"), "nothing-like-it"), SHOWN),
    "untestable": (Untestable(), SHOWN),
    "beside": (Untestable((counted("default"),)), SHOWN),
}
SAID = tomllib.loads((Path(__file__).parent / "quantities.toml").read_text(encoding="utf-8"))
CLAIMS = {name: Claim(id=name, quantity=asked, bound=bound, on="any") for name, (asked, bound) in ASKED.items()}


@functools.cache
def edition() -> Edition:
    whole = article(*CLAIMS.values())
    stored = tuple(
        records.Stored(f"results/{records.relative_path(file).as_posix()}", file) for file in files().values()
    )
    made = Edition(
        project=ROOT,
        article=whole,
        lanes=("2.4", "2.5"),
        stored=stored,
        damaged=(),
        verdicts=judge.judge(whole, stored, ("2.4", "2.5"), DIGESTS),
        observations=judge.observe(whole, stored, DIGESTS),
        criteria=judge.Criteria(),
        texts={language: named(language) for language in texts.LANGUAGES},
    )
    vars(made)["code"] = dict.fromkeys(CLAIMS, ())  # No code stands behind made-up cases.
    return made


@functools.cache
def named(language: str) -> Texts:
    found = texts.load_texts(ROOT, ARTICLE)[language]
    made = {name: ClaimText(statement=name, reading="read", source="there") for name in CLAIMS}
    return dataclasses.replace(found, claims=made, sections={"benchmarks": "B"}, names={**found.names, **NAMES})


def words(markup: str) -> str:
    """Return the text of markup, drawings and scripts left out."""
    bare = re.sub(r"<(svg|script)\b.*?</\1>", "", markup, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", bare)).replace("\u00a0", " ")


@functools.cache
def written(language: str) -> dict[str, str]:
    return {one.path: one.text for one in pages.generated(edition(), named(language), "../", "a site")}


def page(name: str, language: str = "en") -> str:
    return written(language)[f"claims/{name}.md"]


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("name", SAID)
def test_what_is_measured_is_said_in_words(name: str, language: str) -> None:
    assert naming.quantity(named(language), ASKED[name][0]) == SAID[name][language]


LAUNCHES = (
    "supported on 2.5, nvidia-h200: kernel launches a call, eager over compiled: 4.00x [3.80, 4.00] (ResNet-50), "
    "held to at least 1.3"
)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("launches", LAUNCHES),
        ("memory", "shown on 2.5, nvidia-h200: compiled peak memory 3.00 GiB"),
        ("graphs", "supported on 2.5, nvidia-h200: graphs 2, held to at most 2"),
        ("slow", "refuted on 2.5, nvidia-h200"),
        ("works", "supported on 2.5, nvidia-h200"),
        ("untestable", "not testable"),
    ],
)
def test_a_verdict_on_it_is_a_sentence(name: str, sentence: str) -> None:
    said = lines.sentence(named("en"), CLAIMS[name], edition().headline(name))
    assert html.unescape(said).replace("\u00a0", " ") == sentence


def line(name: str, language: str = "en") -> str:
    return lines.Line(edition(), named(language), "index.md")(CLAIMS[name])


def test_what_can_not_be_tested_has_a_chip_and_no_drawing_bound_or_place() -> None:
    for name in ("untestable", "beside"):
        made = line(name)
        assert 'class="rk-chip rk-not-testable"' in made
        assert "<svg" not in made
        assert not re.search("held to|2\\.5|nvidia", words(made))
    assert "\u4e0d\u53ef\u68c0\u9a8c" in words(line("untestable", "zh"))


def test_its_page_has_no_lanes_and_repeats_nothing_that_is_not_there() -> None:
    assert "{#lanes}" not in page("untestable")
    assert "{#repeat}" not in page("untestable")
    assert "nox" not in page("untestable")
    assert "{#repeat}" in page("beside")
    assert "counted.default" in words(page("beside"))


def test_it_is_in_the_tally_and_a_control_is_not() -> None:
    made = words(HomePage(edition(), named("en"), "index.md").tally())
    assert re.search(r"\b2 not testable", re.sub(r"\s+", " ", made))
    controls = sum(bound is SHOWN and not isinstance(asked, Untestable) for asked, bound in ASKED.values())
    assert f"of {len(ASKED) - controls} claims" in made


@pytest.mark.parametrize(
    ("name", "ratio"),
    [("memory", False), ("graphs", False), ("first", False), ("side", False), ("graph-ratio", True), ("in-all", True)],
)
def test_only_ratios_have_a_mark_at_one(name: str, *, ratio: bool) -> None:
    drawn = lines.scale_of(edition(), CLAIMS[name])
    assert drawn.one is ratio
    assert ("rk-one" in line(name)) <= ratio
    unmeasured = dataclasses.replace(edition(), verdicts=judge.judge(edition().article, (), ("2.4", "2.5"), DIGESTS))
    assert lines.scale_of(unmeasured, CLAIMS[name]).one is ratio


def test_facts_and_what_works_are_squares_whatever_they_are_held_to() -> None:
    assert line("works").count("rk-square-held") == 3
    assert line("slow").count("rk-cross") == 2
    assert "rk-square" in line("seen")
    assert "slowest case 1.200x" in re.sub(r"\s+", " ", words(line("slow")))


def test_a_page_shows_what_its_claim_rests_on() -> None:
    assert "runs compiled" in words(page("works"))
    assert "right by the fp64 rule: true" in re.sub(r"\s+:", ":", re.sub(r"\s+", " ", words(page("works"))))
    assert "\u7f16\u8bd1\u540e\u80fd\u7528" in words(page("works", "zh"))
    head = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', page("share"))
    assert "time spent compiling" in head
    assert "9.90 s" in words(page("share"))
    assert "graphs" in re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', page("graphs"))


def test_samples_of_several_workloads_have_a_chart_each() -> None:
    made = page("geometric")
    assert re.findall(r'id="(chart-samples[^"]*)"', made) == ["chart-samples", "chart-samples-1", "chart-samples-2"]
    assert "Every process, both sides, BERT-base" in html.unescape(made)
    assert re.findall(r'id="(chart-[^"]*)"', page("in-all")) == ["chart-samples", "chart-first-calls"]
    assert "chart-" not in page("energy")


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("name", ASKED)
def test_every_page_can_be_written(name: str, language: str) -> None:
    assert naming.quantity(named(language), ASKED[name][0]) in words(page(name, language))


def test_a_speedup_is_listed_once_and_only_if_it_is_by_compiling() -> None:
    listed = [one for one in edition().timed if one.verdict.lane == "2.5"]
    assert [(one.claim, one.experiment) for one in listed] == [("mixed", "timed"), ("large", "large")]
    made = HomePage(edition(), named("en"), "index.md").answer()
    here = re.sub(r"\s+", " ", words(made[made.index('id="lane-2.5"') :]))
    # Two experiments of no family in common are two lines, each by its name.
    assert re.findall(r"ResNet-50 [\d.]+x \[[^\]]*\] (Batch \d+)", here) == ["Batch 256", "Batch 64"]


def test_caches_tell_places_apart_only_where_nothing_else_does() -> None:
    cold, warm = (Where("timed", {"workload": "a", "process": name}) for name in ("cold-1", "warm-2"))
    other = Where("large", {"workload": "a", "process": "warm-2"})
    said = [naming.what(named("en"), Ratio(Speedup(cold), Speedup(under))) for under in (warm, other, cold)]
    assert said == [
        "speedup, empty caches over warm caches",
        "speedup, batch 64 over batch 256",
        "speedup over speedup",
    ]


def test_a_line_says_what_its_bound_counts_whether_measured_or_not() -> None:
    made = edition()
    unmeasured = dataclasses.replace(
        made.headline("graphs"), machine=None, outcome="not-measured", interval=None, parts=(), files=()
    )
    without = dataclasses.replace(made, verdicts=(unmeasured,))
    line_of = lines.Line(without, named("en"), "index.md")
    assert "graphs held to at most 2" in re.sub(r"\s+", " ", words(line_of(CLAIMS["graphs"])))
    assert "graphs 2" in re.sub(r"\s+", " ", words(line("graphs")))
