"""No figure is typed into prose by hand: what was measured comes in by name, from a run.

The rule, for everything a person writes for the site: a number in prose is part of a name, counts or numbers the text
itself, is what the article or a claim's own plan says, or the ratio that changes nothing. Anything else fails, most of
all a number with a unit or a decimal point. Code, placeholders and addresses are left out: they are not prose.
Decision records are left out as well: each is a dated record of what was seen then, and says of what.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit import lanes
from reportkit.claims import SomeBelow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reportkit.claims import Claim

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("en", "zh")

NOT_PROSE = {
    r"\A---\n.*?\n---\n": "front matter",
    r"^```.*?^```": "a block of code",
    r"`[^`\n]*`": "code",
    r"\{\{.*?\}\}": "a placeholder of a page, filled from the edition",
    r"\{[^{}\n]*\}": "a placeholder of a label, or a heading's id",
    r"\]\([^)\s]*\)": "where a link leads",
    r"<[^<>\n]*>": "a tag",
    r"https?://\S+": "an address",
}
LANE = "|".join(re.escape(lane.id) for lane in lanes.lanes() if lane.kind == "stable")
NAMES = {
    r"[Ss]izes 0 and 1|\u5927\u5c0f\u4e3a 0 \u548c 1": "what PyTorch compiles for separately",
    r"(?<![A-Za-z0-9.])[A-Za-z]+(?:[-/]?[A-Za-z]*)*[-/]?\d+[A-Za-z0-9]*(?:/\d+)?(?!\d|\.\d)": "a name: GPT-2",
    r"Stable Diffusion 1\.5": "a name",
    r"1\.5 billion parameters|15 \u4ebf\u53c2\u6570": "what the article calls its GPT-2 by",
    rf"(?<![\d.])(?:{LANE})(?![\d%x]|\.\d)": "a lane",
    r"PyTorch 3\.0": "a version that does not exist yet",
    r"(?m)^\s*\d+\. ": "the number of a list's item",
    r"(?m)^(#+) \d+\. ": "the number of a heading",
    r"\b[Ss]ections?\s\d\b|\u7b2c \d \u8282": "a section",
    r"\bquestion \d\b|\u95ee\u9898 \d": "a question",
    r"(?<![\d.])1(?:\.0)?(?![\d%x]|\.\d)(?! (?:ms|s|MiB|GiB|J|W)\b)": "the ratio of no change",
}
"""What a number in prose may be part of, and why."""

PLAN = {
    r"p / 1\.15[^\u3002.]*?p \* 1\.15": "how a printed point is read, in every row of the table",
    r"by 5 percent at each end|\u4e24\u7aef\u5404\u653e\u5bbd 5%": "how a printed range is read",
    r"windows of 2 s or more|\u6bcf\u4e2a\u7a97\u53e3\u81f3\u5c11 2 s": "how long energy is counted for",
    r"(?<![\d.])\d+ ?x ?\d+(?!\d|\.\d)": "the size of a picture, a matrix or a kernel",
    r"(?<![\d.])\d+(?!\d|\.\d|%| ?(?:x|ms|s|percent|%|MiB|GiB|J|W|\u500d|\u79d2)(?![A-Za-z]))": (
        "a whole number without a unit: sizes, lengths, steps and counts, of the plan"
    ),
}
"""What a claim's reading may say beside: how the case was made. Never how long it took, or how much faster it was."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def prose(text: str) -> str:
    """Return a text without what is no prose."""
    for pattern in NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    return text


def numbers(text: str, *allowed: Mapping[str, str]) -> set[str]:
    """Return the numbers of a text that nothing allows."""
    text = prose(text)
    for patterns in allowed:
        for pattern in patterns:
            text = re.sub(pattern, " ", text)
    return set(NUMBER.findall(text))


def flat(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Return every text of a TOML file by its dotted key."""
    for key, value in data.items():
        if isinstance(value, dict):
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", str(value)


def texts(path: str) -> dict[str, str]:
    """Return every text of a TOML file of the project by its dotted key."""
    return dict(flat(tomllib.loads((ROOT / path).read_text(encoding="utf-8"))))


def claims(language: str) -> dict[str, dict[str, str]]:
    """Return each claim's texts."""
    data = tomllib.loads((ROOT / f"experiments/claims.{language}.toml").read_text(encoding="utf-8"))
    return dict(data["claims"])


def said(language: str) -> set[str]:
    """Return the numbers that the article says: those of the claims' statements."""
    return {n for one in claims(language).values() for n in numbers(one["statement"], NAMES)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_have_no_figure_typed_by_hand(language: str) -> None:
    pages = sorted((ROOT / "docs" / language).rglob("*.md"))
    assert len(pages) > 10
    typed = {
        page.relative_to(ROOT).as_posix(): found
        for page in pages
        if page.parent.name != "decisions"
        if (found := numbers(page.read_text(encoding="utf-8"), NAMES) - said(language))
    }
    assert typed == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_have_no_figure_typed_by_hand(language: str) -> None:
    labels = texts(f"reportkit/site/labels.{language}.toml")
    assert {key: found for key, text in labels.items() if (found := numbers(text, NAMES))} == {}


def own(claim: Claim) -> set[float]:
    """Return the numbers of a claim: its bound's ends, those of the same cases, and all as percent above one."""
    bounds = [
        one.bound for one in ARTICLE.claims if one.id == claim.id or one.quantity.cases() == claim.quantity.cases()
    ]
    ends = {end for bound in bounds for end in (bound.low, bound.high) if end is not None}
    if isinstance(claim.quantity, SomeBelow):
        ends.add(claim.quantity.high)
    return ends | {round(100 * (end - 1), 6) for end in ends if end > 1}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_claim_is_held_to_is_what_its_text_says(language: str) -> None:
    wrong: dict[str, set[str]] = {}
    for claim in ARTICLE.claims:
        text = claims(language)[claim.id]
        quoted = {float(n) for field in ("statement", "printed", "taken") for n in NUMBER.findall(text.get(field, ""))}
        # A percentage that is claimed is a ratio that is judged.
        quoted |= {float(n) for n in said(language)}
        known = quoted | {round(1 + n / 100, 6) for n in quoted} | own(claim)
        for field in ("reading", "source"):
            found = {n for n in numbers(text[field], NAMES, PLAN) if float(n) not in known}
            if found:
                wrong.setdefault(f"{claim.id}.{field}", set()).update(found)
    assert wrong == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_and_names_say_what_the_article_says(language: str) -> None:
    # A statement repeats the article, so its figures are the article's; both languages have the same ones.
    english, other = claims("en"), claims(language)
    for claim, text in other.items():
        mine, first = numbers(text["statement"], NAMES), numbers(english[claim]["statement"], NAMES)
        assert mine == first, claim
    called = {key: text for key, text in texts(f"experiments/claims.{language}.toml").items() if key[:7] != "claims."}
    assert {key: found for key, text in called.items() if (found := numbers(text, NAMES, PLAN))} == {}


@pytest.mark.parametrize(
    "typed",
    [
        "ResNet-50 is 1.36x as fast",
        "ResNet-50 \u5feb 1.36 \u500d",
        "a call takes 24 ms",
        "after 1 s",
        "after 900 calls",
        "a gain of 31 percent",
        "30 to 61 %",
        "2.5x as fast",
        "1.50 on H200",
        "uses 1 GiB",
    ],
)
def test_a_figure_typed_by_hand_is_seen(typed: str) -> None:
    assert numbers(typed, NAMES)


@pytest.mark.parametrize(
    "typed", ["runs 1.36 times as fast", "takes 24 ms", "\u5feb 1.36 \u500d", "gains 31 percent", "\u7528 3 s"]
)
def test_a_figure_in_a_reading_is_seen(typed: str) -> None:
    assert numbers(typed, NAMES, PLAN)
