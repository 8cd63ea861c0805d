"""The page on data and citing, part by part: what the edition offers to programs, and how a number of it is cited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportkit.plan import PlanError, unknown
from reportkit.quantity import format_interval, format_quantity
from reportkit.site.exports import FOLDER, INDEX, LICENCE
from reportkit.site.markup import Html, element, escape, join, link, plain, prose, scroll

if TYPE_CHECKING:
    from reportkit.judge import Verdict
    from reportkit.site.edition import Edition
    from reportkit.site.texts import Texts

_COLUMNS = ("file", "holds", "rows", "size")
_FIGURES = ("rows", "size")


@dataclass(frozen=True)
class DataPage:
    """The parts of the page in one language."""

    edition: Edition
    texts: Texts
    at: str
    """The page, below the language's root."""

    def exports(self) -> Html:
        """Return every export as a row: a link, what it holds, and how much."""
        rows = [
            element(
                "tr",
                element("th", self._link(one.name), scope="row", class_="rk-nowrap", title=f"SHA-256 {one.sha256}"),
                element("td", prose(self.texts(f"data.{one.kind}"))),
                element("td", escape(f"{one.rows:,}" if one.rows is not None else "\u2013"), class_="rk-number"),
                element("td", escape(_size(one.size)), class_="rk-number"),
            )
            for one in self.edition.exports
            if one.kind != "index"
        ]
        head = [
            element(
                "th", prose(self.texts(f"data.{key}")), scope="col", class_="rk-number" if key in _FIGURES else None
            )
            for key in _COLUMNS
        ]
        table = element(
            "table", element("thead", element("tr", *head)), element("tbody", *rows), class_="rk-table rk-exports"
        )
        return join([scroll(table), element("p", self._index(), class_="rk-small")])

    def export(self, kind: str) -> Html:
        """Return a link to the export of that kind.

        Raises:
            PlanError: there is no such kind.
        """
        return self._link(self.export_name(kind))

    def export_name(self, kind: str) -> str:
        """Return the name of the export of that kind, to be set as code.

        Raises:
            PlanError: there is no such kind.
        """
        names: dict[str, str] = {one.kind: one.name for one in self.edition.exports}
        if kind not in names:
            raise PlanError(unknown("export", kind, sorted(names)))
        return names[kind]

    def licence(self) -> Html:
        """Return the licence of data and code, by its short name."""
        return escape(LICENCE)

    def citation(self) -> Html:
        """Return a verdict of this edition as it would be cited; words, where there is none to cite."""
        found = next((v for claim in self.edition.article.checked if (v := self._citable(claim.id)) is not None), None)
        if found is None or found.interval is None:
            return element("p", prose(self.texts("data.cite-none")), class_="rk-none")
        commits = [self.edition.by_path[path].file.provenance.commit or "?" for path in found.files]
        words = self.texts(
            "data.cite",
            statement=plain(self.texts.claims[found.claim].statement),
            claim=found.claim,
            lane=found.lane,
            machine=found.machine,
            outcome=self.texts(f"outcome.{found.outcome}"),
            value=f"{format_quantity(found.interval)} {format_interval(found.interval)}",
            file=self.export_name("verdicts"),
            commit=", ".join(dict.fromkeys(commit[:12] for commit in commits)),
        )
        return element("blockquote", element("p", escape(words)), class_="rk-cite")

    def _citable(self, claim: str) -> Verdict | None:
        verdict = self.edition.headline(claim)
        return verdict if self.edition.counts(verdict) and verdict.interval and verdict.files else None

    def _index(self) -> Html:
        return join([prose(self.texts("data.index")), escape(" "), self._link(INDEX)])

    def _link(self, name: str) -> Html:
        return link(escape(name), self.at, f"{self.texts.above}{FOLDER}/{name}")


def _size(size: int) -> str:
    """Return a size in bytes as a reader takes it in."""
    kilo, mega = 1e3, 1e6
    return (
        f"{size / mega:.1f} MB" if size >= mega else f"{max(size / kilo, 0.1):.0f} kB" if size >= kilo else f"{size} B"
    )
