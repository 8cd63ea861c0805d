"""What a prose page may ask for by name: every number in prose, and every chart, comes from here.

A page in docs/ writes `{{ answer() }}` or `{{ claims("benchmarks") }}`; it can name nothing else. A
name or an id that does not exist fails the build. Where nothing is measured yet, a fragment says so.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reportkit import judge, lanes
from reportkit.judge import REASONS
from reportkit.plan import RULER, PlanError, unknown
from reportkit.records import PROTOCOL
from reportkit.site import lines
from reportkit.site.data import DataPage
from reportkit.site.figures import Figures
from reportkit.site.home import MOST, HomePage, marks
from reportkit.site.markup import Html, element, escape, join, link, prose, relative, scroll
from reportkit.site.ruler import RulerPage
from reportkit.site.texts import LANGUAGES, Texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reportkit.claims import Claim
    from reportkit.site.edition import Edition

_OWN = (
    "bound",
    "claims",
    "criteria",
    "damaged_figures",
    "decisions",
    "drawing_legend",
    "lane_table",
    "most",
    "outcomes",
    "protocol",
    "reasons",
    "sections",
    "statement",
    "verdict",
)


@dataclass(frozen=True)
class Fragments:
    """The fragments of one page in one language."""

    edition: Edition
    texts: Texts
    at: str
    """The page, below the language's root: `article/benchmarks.md`."""

    def names(self) -> Mapping[str, Callable[..., str]]:
        """Return everything that prose can ask for, by name."""
        found: dict[str, Callable[..., str]] = {}
        for source, names in (
            (self, _OWN),
            (HomePage(self.edition, self.texts, self.at), ("answer", "damage", "machines", "measured", "tally")),
            (
                Figures(self.edition, self.texts, self.at),
                ("captured", "compared", "curve", "earned_back", "first_calls", "times"),
            ),
            (
                DataPage(self.edition, self.texts, self.at),
                ("citation", "export", "export_name", "exports", "licence"),
            ),
            (
                RulerPage(self.edition, self.texts, self.at),
                ("anchors", "calibration", "goals", "overhead", "timers", "traps"),
            ),
        ):
            found |= {name: getattr(source, name) for name in names}
        return found

    # -- the article

    def sections(self) -> Html:
        """Return the article's sections as a list: number, title, how many verdicts of each kind, and their marks."""
        items = []
        for section in self.edition.article.sections:
            if section.number == RULER:
                continue
            verdicts = [self.edition.headline(claim.id) for claim in section.claims]
            counted = Counter(verdict.outcome for verdict in verdicts)
            items.append(
                element(
                    "li",
                    element(
                        "div",
                        escape(f"{self.texts('article.section', number=section.number)} "),
                        link(prose(self.texts.sections[section.id]), self.at, lines.page_of(section)),
                        class_="rk-line-head",
                    ),
                    element(
                        "div",
                        join(
                            [
                                lines.mark(f"{counted[outcome]} {self.texts(f'outcome.{outcome}')}", outcome)
                                for outcome in lines.SIGNS
                                if counted[outcome]
                            ],
                            " ",
                        ),
                        escape(" "),
                        marks(self.texts, verdicts),
                    ),
                    class_="rk-section",
                )
            )
        return element("ul", *items, class_="rk-sections")

    def claims(self, section: str) -> Html:
        """Return a section's claims, a line each."""
        found = [one for one in self.edition.article.sections if one.id == section]
        if not found:
            raise PlanError(unknown("section", section, [one.id for one in self.edition.article.sections]))
        line = lines.Line(self.edition, self.texts, self.at)
        return element("ul", *(line(claim) for claim in found[0].claims), class_="rk-lines")

    def statement(self, claim: str) -> Html:
        """Return a claim's statement, a link to its page."""
        self._claim(claim)
        return link(prose(self.texts.claims[claim].statement), self.at, f"claims/{claim}.md")

    def verdict(self, claim: str) -> Html:
        """Return a claim's headline verdict in words, a link to its page."""
        found = self._claim(claim)
        return link(
            lines.sentence(self.texts, found, self.edition.headline(claim)),
            self.at,
            f"claims/{claim}.md",
        )

    def bound(self, claim: str) -> Html:
        """Return a claim's bound in words."""
        return prose(lines.bound(self.texts, self._claim(claim)))

    def damaged_figures(self) -> Html:
        """Return the figures that the copy of the article has damaged, and what each is read as."""
        rows = [
            (link(prose(text.source), self.at, f"claims/{claim}.md"), text.printed, text.taken)
            for claim, text in self.texts.claims.items()
            if text.printed and text.taken
        ]
        return scroll(
            element(
                "table",
                element(
                    "thead",
                    element(
                        "tr",
                        *(
                            element("th", prose(self.texts(f"article.{key}")), scope="col", class_=align)
                            for key, align in (("row", None), ("printed", "rk-number"), ("taken", "rk-number"))
                        ),
                    ),
                ),
                element(
                    "tbody",
                    *(
                        element(
                            "tr",
                            element("th", row, scope="row"),
                            element("td", element("del", escape(printed)), class_="rk-number"),
                            element("td", escape(taken), class_="rk-number"),
                        )
                        for row, printed, taken in rows
                    ),
                ),
                class_="rk-table",
            )
        )

    # -- method

    def criteria(self) -> Html:
        """Return every threshold of the judge as it is in force, with what it is."""
        fields = [field.name for field in dataclasses.fields(self.edition.criteria)]
        if self.texts.language == LANGUAGES[0]:
            meanings = docstrings(judge.Criteria)
        else:
            meanings = {name: self.texts(f"criteria.{name}") for name in fields}
        return self._table(
            ("threshold", "value", "means"),
            [
                (
                    element("code", escape(name)),
                    escape(_criterion(getattr(self.edition.criteria, name))),
                    prose(meanings.get(name, "")),
                )
                for name in fields
            ],
        )

    def most(self) -> Html:
        """Return how many lines a column of the home page has at most."""
        return escape(MOST)

    def protocol(self) -> Html:
        """Return the number of the timing protocol in force."""
        return escape(PROTOCOL)

    def reasons(self) -> Html:
        """Return every reason code with its sentence."""
        return self._table(
            ("code", "sentence"),
            [
                (
                    element("code", escape(code)),
                    prose(re.sub(r"\{(\w+)\}", r"[\1]", self.texts.labels[f"reason.{code}"])),
                )
                for code in REASONS
            ],
        )

    def outcomes(self) -> Html:
        """Return every outcome as it looks on a page, with its meaning."""
        return element(
            "dl",
            *(
                join(
                    [
                        element("dt", lines.chip(self.texts, outcome)),
                        element("dd", prose(self.texts(f"outcome-means.{outcome}"))),
                    ]
                )
                for outcome in lines.SIGNS
            ),
            class_="rk-outcomes",
        )

    def drawing_legend(self, section: str | None = None) -> Html:
        """Return the sentences that explain what is drawn for a section's claims, or all that is ever drawn."""
        every = self.edition.article.sections
        found = [one for one in every if section in {None, one.id}]
        if not found:
            raise PlanError(unknown("section", str(section), [one.id for one in every]))
        return lines.legend(self.texts, [claim for one in found for claim in one.claims])

    def lane_table(self) -> Html:
        """Return every lane with the PyTorch it pins and how it is measured."""
        return self._table(
            ("lane", "torch", "repeat"),
            [
                (
                    element("strong", escape(lane.id)),
                    escape(lane.torch or self.texts("method.newest")),
                    element("code", escape(lanes.measuring(lane.id))),
                )
                for lane in lanes.lanes(self.edition.project)
            ],
            keys={"lane": "ledger.lane", "torch": "home.torch", "repeat": "method.measure"},
        )

    def decisions(self) -> Html:
        """Return the decisions as a list, from the pages that lie beside this one."""
        folder = self.edition.project / "docs" / self.texts.language / Path(self.at).parent
        pages = sorted(page for page in folder.glob("[0-9]*.md"))
        return element(
            "ol",
            *(
                element(
                    "li",
                    element("a", prose(title(page)), href=relative(self.at, f"{Path(self.at).parent}/{page.name}")),
                )
                for page in pages
            ),
            class_="rk-decisions",
        )

    # -- shared

    def _claim(self, claim: str) -> Claim:
        if claim not in self.edition.claims:
            raise PlanError(unknown("claim", claim, self.edition.claims))
        return self.edition.claims[claim]

    def _table(
        self, head: tuple[str, ...], rows: list[tuple[Html, ...]], keys: Mapping[str, str] | None = None
    ) -> Html:
        keys = keys or {}
        return scroll(
            element(
                "table",
                element(
                    "thead",
                    element(
                        "tr",
                        *(
                            element("th", prose(self.texts(keys.get(key, f"method.{key}"))), scope="col")
                            for key in head
                        ),
                    ),
                ),
                element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows)),
                class_="rk-table",
            )
        )


def title(page: Path) -> str:
    """Return a prose page's first heading."""
    found = re.search(r"^# +(.+?)(?: *\{#.*\})?$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def docstrings(kind: type) -> dict[str, str]:
    """Return what stands below each field of a class: its docstring, as one line."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    found: dict[str, str] = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for field, below in itertools.pairwise(statements):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def _criterion(value: object) -> str:
    if isinstance(value, tuple):
        return " \u2013 ".join(str(one) for one in value)
    return str(value)
