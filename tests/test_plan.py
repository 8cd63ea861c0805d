"""Plans that make sense, and wishes about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import ARTICLE
from reportkit import plan
from reportkit.claims import TRUE, Claim, Fact, Where
from reportkit.plan import Article, Case, Experiment, PlanError, Section

PROJECT = Path(__file__).parent.parent


def case(name: str = "a", **fields: Any) -> Case:
    given: dict[str, Any] = {
        "experiment": "e",
        "axes": {"workload": name},
        "workload": "w",
        "cost": {"full": 1, "smoke": 1},
    }
    return Case(**(given | fields))


def experiment(*cases: Case, name: str = "e") -> Experiment:
    return Experiment(id=name, kind="fact", cases=cases, prepare=lambda _case, _here: dict)


def section(*claims: Claim, name: str = "s", experiments: tuple[Experiment, ...] = ()) -> Section:
    return Section(id=name, number=1, claims=claims, experiments=experiments)


def claim(name: str = "c", workload: str = "a", settings: tuple[str, ...] = ()) -> Claim:
    where = Where("e", {"workload": workload})
    return Claim(id=name, quantity=Fact(where, "f"), bound=TRUE, on="any", settings=settings)


def article(*sections: Section) -> Article:
    return Article(id="x", lane="2.5", machines=(), sections=sections)


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ((case("A"),), "no valid name"),
        ((case("a/b"),), "no valid name"),
        ((case("a" * 70),), "no valid name"),
        ((case(), case()), "two cases of one name"),
        ((case(experiment="other"),), "says experiment 'other'"),
        ((case(cache="warm"),), "a warm case follows"),
        ((case(follows="e.b"), case("b", cache="cold")), "a warm case follows"),
        ((case(cache="warm", follows="e.nowhere"),), "a warm case follows"),
        ((case(cache="warm", follows="e.a"),), "a warm case follows a cold one"),
        ((case(cache="warm", follows="e.b"), case("b")), "a warm case follows a cold one"),
        ((case(scales=()),), "measured at scales"),
        ((case(cache="warm", follows="e.b"), case("b", cache="cold", scales=("full",))), "not at all of them"),
        ((case(cache="warm", follows="e.b", scales=("smoke",)), case("b", cache="cold", scales=("full",))), "follows"),
        ((case(cost={"full": 1}),), "cost"),
        ((case(cost={"full": 1, "smoke": 0}),), "cost"),
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused(cases: tuple[Case, ...], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        experiment(*cases)


def test_a_warm_case_follows_a_cold_one() -> None:
    assert experiment(case(cache="warm", follows="e.b"), case("b", cache="cold")).cases
    assert experiment(case(cache="warm", follows="e.b", scales=("full",)), case("b", cache="cold")).cases


def test_an_article_without_doubles_and_without_claims_that_rest_on_nothing() -> None:
    whole = section(claim(), experiments=(experiment(case()),))
    assert article(whole).claims
    with pytest.raises(PlanError, match="two of one section id: s"):
        article(whole, section())
    with pytest.raises(PlanError, match="two of one claim id: c"):
        article(whole, section(claim(), name="t"))
    with pytest.raises(PlanError, match="two of one experiment id: e"):
        article(whole, section(name="t", experiments=(experiment(case()),)))
    with pytest.raises(PlanError, match=r"claim 'c' rests on .*, and no case lies there"):
        article(section(claim(workload="nowhere"), experiments=(experiment(case()),)))
    with pytest.raises(PlanError, match="claim 'c' rests on experiment 'e', and there is none"):
        article(section(claim()))


def test_every_setting_of_a_claim_has_cases() -> None:
    cases = (case(axes={"workload": "a", "precision": "d"}),)
    assert article(section(claim(settings=("d",)), experiments=(experiment(*cases),))).claims
    with pytest.raises(PlanError, match="no case lies there"):
        article(section(claim(settings=("d", "t")), experiments=(experiment(*cases),)))


def test_names_stand_for_their_cases_in_plan_order() -> None:
    everything = ARTICLE.select(())
    assert everything == tuple(case for e in ARTICLE.experiments if e.kind != "bench" for case in e.cases)
    names = [case.name for case in ARTICLE.select(["table.bert-d-warm-2", "default-backend"])]
    assert names == ["anchors.all", "default-backend.gelu", "table.bert-d-cold-1", "table.bert-d-warm-2"]
    assert [case.name for case in ARTICLE.select(["resnet50-stable"])] == [
        "anchors.all",
        *(f"table.resnet50-d-cold-{number}" for number in range(1, 6)),
    ]
    # A section stands for what its claims rest on, wherever that lives; and every run begins with the anchors.
    own = {
        experiment.id for section in ARTICLE.sections if section.id == "ecosystem" for experiment in section.experiments
    }
    assert {case.experiment for case in ARTICLE.select(["ecosystem"])} == {"anchors", "table", *own}


def test_what_is_measured_in_one_lane_runs_in_another_only_where_it_is_named() -> None:
    here, there, bench = (experiment(case(experiment=name), name=name) for name in ("here", "there", "bench"))
    there, bench = replace(there, lane="2.5"), replace(bench, kind="bench")
    one = article(section(experiments=(here, there, bench)))

    def chosen(*names: str, lane: str | None = None) -> list[str]:
        return [case.experiment for case in one.select(names, lane)]

    assert chosen(lane="2.5") == chosen() == ["here", "there"]
    assert chosen(lane="2.4") == chosen("s", lane="2.4") == ["here"]
    assert chosen("there", lane="2.4") == ["there"]
    assert chosen("bench", lane="2.4") == ["bench"]


def test_what_a_budget_cuts_last_is_measured_first() -> None:
    one, two, three = (experiment(case(experiment=name), name=name) for name in ("one", "two", "three"))
    of_two = experiment(*(case(experiment="of-two", axes={"n": n}) for n in (1, 2)), name="of-two")
    plain = article(section(experiments=(one, two, of_two, three)))

    def queued(of: plan.Article) -> list[str]:
        return [case.name for case in of.queue(of.select(()))]

    assert queued(plain) == ["one.a", "two.a", "of-two.1", "of-two.2", "three.a"]
    ordered = replace(plain, first=("three", "s"), last=("of-two.1", "one"), anchors="two")
    assert queued(ordered) == ["two.a", "three.a", "of-two.2", "of-two.1", "one.a"]
    # A part of the cases keeps the order.
    assert [case.name for case in ordered.queue(ordered.find("of-two", {}))] == ["of-two.2", "of-two.1"]
    with pytest.raises(PlanError, match="'four' is to be measured first or last, and is no section, experiment or"):
        replace(plain, first=("four",))


def test_no_case_is_measured_before_the_one_it_follows() -> None:
    cold = case(axes={"process": "cold"}, cache="cold")
    warm = case(axes={"process": "warm"}, cache="warm", follows="e.cold")
    one = article(section(experiments=(experiment(cold, warm),)))
    assert replace(one, first=("e",)).queue((warm, cold)) == [cold, warm]
    with pytest.raises(PlanError, match=r"'e.warm' would be measured before 'e.cold', which it follows"):
        replace(one, last=("e.cold",))


def test_what_the_article_says_least_without_is_measured_last() -> None:
    queue = [case.name for case in ARTICLE.queue(ARTICLE.select((), "2.4"))]
    sections = [ARTICLE.section_of(name.split(".")[0]).id for name in queue]
    assert queue[0] == "anchors.all"
    assert sections[1] == "benchmarks"
    assert queue.index("same.resnet50") < queue.index("mlp.mlp-d")
    assert queue[-1] == "modes.max-autotune-resnet50-h-cold-3"


def test_anchors_are_an_experiment_of_the_article() -> None:
    with pytest.raises(PlanError, match="the anchors are experiment 'nothing', and there is none"):
        replace(ARTICLE, anchors="nothing")


def test_an_unknown_name_comes_with_the_nearest() -> None:
    with pytest.raises(PlanError, match=r"'table-resnet5'; did you mean table-resnet50"):
        ARTICLE.select(["table-resnet5"])
    assert plan.unknown("lane", "2.6", ["2.4", "2.5"]) == "unknown lane '2.6'; did you mean 2.5, 2.4?"
    assert plan.unknown("lane", "xyz", ["2.4", "2.5"]) == "unknown lane 'xyz'; known: 2.4, 2.5"


def test_axes_match_values_or_any_of_several() -> None:
    one = case(axes={"workload": "a", "batch": 8})
    assert one.name == "e.a-8"
    assert one.matches({})
    assert one.matches({"workload": "a", "batch": (1, 8)})
    assert not one.matches({"batch": 1})
    assert not one.matches({"elsewhere": 1})


def test_what_a_claim_needs_is_the_cases_of_all_its_settings() -> None:
    needed = ARTICLE.needs(next(claim for claim in ARTICLE.claims if claim.id == "table-bert"))
    assert [case.name for case in needed] == [
        *(f"table.bert-d-{process}" for process in ("cold-1", "warm-2", "warm-3")),
        "table.bert-t-cold-1",
    ]


def test_every_case_of_the_article_says_what_it_costs_at_each_scale() -> None:
    for one in ARTICLE.select(()):
        assert set(one.cost) == {"full", "smoke"}


def test_an_article_is_loaded_from_its_project_or_missed_by_name(tmp_path: Path) -> None:
    assert plan.load_article(PROJECT) is ARTICLE
    with pytest.raises(PlanError, match="run this in the project's root folder"):
        plan.load_article(tmp_path)


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        ARTICLE.lane = "2.4"  # type: ignore[misc]
    assert replace(ARTICLE, lane="2.4").lane == "2.4"
