"""What the home page counts: the article's claims, and not those about the measuring."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from experiments import ARTICLE
from reportkit import judge, records
from reportkit.claims import Untestable
from reportkit.records import Stored
from reportkit.site import texts
from reportkit.site.edition import Edition
from reportkit.site.home import HomePage
from tests.casefiles import DIGESTS, run_files
from tests.site.conftest import ROOT

if TYPE_CHECKING:
    from reportkit.plan import Article, Section

QUICK = judge.Criteria(draws=200)


def edition(article: Article) -> Edition:
    stored = [Stored(f"results/{records.relative_path(file).as_posix()}", file) for file in run_files()]
    return Edition(
        project=ROOT,
        article=article,
        lanes=("2.5",),
        stored=tuple(stored),
        damaged=(),
        verdicts=judge.judge(article, stored, ("2.5",), DIGESTS, QUICK),
        observations=judge.observe(article, stored, DIGESTS, QUICK),
        criteria=QUICK,
        texts=texts.load_texts(ROOT, article),
    )


@pytest.mark.parametrize("section", ARTICLE.sections, ids=lambda section: section.id)
def test_claims_of_section_0_are_on_no_list_of_what_the_article_claims(section: Section) -> None:
    sections = tuple(replace(one, number=0) if one is section else one for one in ARTICLE.sections)
    article = replace(ARTICLE, sections=sections)
    measuring = {claim.id for one in sections if one.number == 0 for claim in one.claims}
    made = edition(article)

    tally = HomePage(made, made.texts["en"], "index.md").tally()

    counted = sum(int(number) for number in re.findall(r"<strong>(\d+)</strong>", tally))
    assert measuring
    controls = {c.id for c in article.checked if c.bound.kind == "shown" and not isinstance(c.quantity, Untestable)}
    assert counted == len(ARTICLE.claims) - len(measuring) - len(controls)
    assert not {one.claim for one in made.timed} & measuring
