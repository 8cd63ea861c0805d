"""A page for every pair of lanes, the older one first: what changed, by how much, and whether that can be believed.

Release ratios come from `reportkit.compare`; nothing is worked out here but how it reads.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportkit.claims import Bound
from reportkit.compare import TIMED
from reportkit.judge import Reason, exact
from reportkit.lanes import measuring
from reportkit.quantity import format_ratio, format_share
from reportkit.site import cases, lines, tables
from reportkit.site.drawing import Domain, domain, draw
from reportkit.site.lanes import INDEX, apart, page_of, pair_page, places
from reportkit.site.markup import Html, commanded, element, escape, fill, join, link, prose, scroll
from reportkit.site.naming import listed
from reportkit.site.pages import Page, head, section_words
from reportkit.site.tables import Cell, Column, Filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reportkit.compare import Comparison, ReleaseRatio, Row, Side, Uncompared
    from reportkit.plan import Case
    from reportkit.site.edition import Edition
    from reportkit.site.texts import Texts

_TOLD = 3
"""Workloads that the summary names at most."""
_OF_HOSTS = ("anchors-differ", "no-anchors", "different-environments")
"""Reasons that are about where both lanes ran: measured again on one host, they go away."""
_PROCESS = "process"
"""The axis that tells replicates apart."""
_READING: tuple[Side, ...] = ("eager", "compiled")


def generated(edition: Edition, texts: Texts, above: str) -> list[Page]:
    """Return the page of every pair of lanes; `above` leads from the language's root to the site's."""
    return [
        Page(path=pair_page(*pair), text=_PairPage(edition, texts, *pair, above).text()) for pair in edition.comparisons
    ]


@dataclass(frozen=True)
class _PairPage:
    edition: Edition
    texts: Texts
    baseline: str
    candidate: str
    above: str

    @property
    def at(self) -> str:
        return pair_page(self.baseline, self.candidate)

    @functools.cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        return self.edition.comparisons[self.baseline, self.candidate]

    @functools.cached_property
    def _plan(self) -> dict[str, Case]:
        return {case.name: case for experiment in self.edition.article.experiments for case in experiment.cases}

    def text(self) -> str:
        """Return the page's Markdown: a summary in words a machine, then its table."""
        lanes = {"one": self.baseline, "other": self.candidate}
        title = self.texts("compare.title", **lanes)
        compared = [one for one in self.comparisons if one.rows]
        above = element("p", link(prose(self.texts("lanes.title")), self.at, INDEX), class_="rk-above")
        written: list[str] = [
            head(title, join([above, element("h1", prose(title))]), ("toc", "navigation")),
            *([self._summary(compared[0], large=True)] if compared else []),
        ]
        if not compared:
            written += self._nothing()
        else:
            change = format_share(self.edition.criteria.relevant_change)
            written += [
                element("p", prose(self.texts("compare.reading", **lanes)), class_="rk-small"),
                element("p", prose(self.texts("compare.drawn", change=change)), class_="rk-small"),
            ]
        if len(compared) > 1:
            written.append(element("p", apart(self.texts, self.at), class_="rk-small"))
        for number, one in enumerate(self.comparisons):
            # A comparison without a row has no figures; what keeps it from having any still stands here.
            marks = place_marks_of(self.edition, self.texts, one)
            written.append(element("h2", escape(one.machine), escape(" "), marks, id=f"on-{number}"))
            written += [self._summary(one, large=False)] if one in compared[1:] else []
            written += [*self._hosts(one), *([self._table(one, number)] if one.rows else [])]
            written += [*self._reasons(one), *self._uncompared(one)]
        written += [*self._alone(), self._ways()]
        return "\n\n".join(written) + "\n"

    # -- in words

    def _summary(self, one: Comparison, *, large: bool) -> Html:
        """Return what changed on a machine: in how many cases, and the largest changes by name."""
        all_ = {side: sum(row.of(TIMED[side]) is not None for row in one.rows) for side in _READING}
        counted = [
            self._of(
                side,
                "compare.counted-one" if all_[side] == 1 else "compare.counted",
                better=sum(ratio.centre > 1 for ratio in changed),
                worse=sum(ratio.centre < 1 for ratio in changed),
                all=all_[side],
            )
            for side, changed in ((side, list(_changed(one.rows, side))) for side in _READING)
            if all_[side]
        ]
        details = {"one": one.baseline, "other": one.candidate, "machine": one.machine}
        changes = self._changes(one)
        said = self.texts.labels["compare.summary" if changes else "compare.summary-same"]
        sentence = fill(said, **details, each=listed(self.texts, counted, "semicolon"))
        marks = place_marks_of(self.edition, self.texts, one)
        return join(
            [
                element("p", sentence, escape(" "), marks, class_="rk-answer" if large else None),
                *([element("ul", *(element("li", escape(change)) for change in changes))] if changes else []),
            ]
        )

    def _changes(self, one: Comparison) -> list[str]:
        """Return the largest changes that are significant and relevant, a workload once, both sides of it together."""
        told: dict[str, str] = {}
        for row in one.rows:
            known = {side: ratio for side in _READING if (ratio := row.of(TIMED[side])) and _counts(ratio)}
            if len(told) == _TOLD:
                break
            if known and (name := self._workload(row)) not in told:
                sides = [self._change(side, ratio) for side, ratio in known.items()]
                told[name] = self.texts("verdict.named", name=name, value=listed(self.texts, sides))
        return list(told.values())

    def _change(self, side: Side, ratio: ReleaseRatio) -> str:
        more = ratio.centre if ratio.centre > 1 else 1 / ratio.centre
        key = "compare.faster" if ratio.centre > 1 else "compare.slower"
        return self._of(side, key, ratio=format_ratio(exact(more)))

    def _of(self, side: Side, key: str, **details: object) -> str:
        """Return what a label says, of a side."""
        return self.texts(f"what.{side}", what=self.texts(key, **details))

    def _workload(self, row: Row) -> str:
        """Return what a case is of: its axes but for its process, and its experiment where those do not tell it."""
        case = self._plan[row.case]
        words = self._but_process(case)
        alike = {other.experiment for other in self._plan.values() if self._but_process(other) == words}
        if len(alike) > 1:
            words = self.texts("list.aside", first=words, second=self.texts.name("experiment", case.experiment))
        return words

    def _but_process(self, case: Case) -> str:
        return cases.words(self.texts, {axis: value for axis, value in case.axes.items() if axis != _PROCESS})

    # -- what stands in the way

    def _nothing(self) -> list[Html]:
        """Return that the lanes have nothing in common, where each was measured, and what to do."""
        measured = {
            lane: dict.fromkeys(place.machine for place in places(self.edition, lane))
            for lane in (self.baseline, self.candidate)
        }
        told = [
            self.texts(
                "compare.has" if found else "compare.has-none", lane=lane, machines=listed(self.texts, list(found))
            )
            for lane, found in measured.items()
        ]
        if self.comparisons:
            told = [self.texts("compare.none-counts")]
        missing = [lane for lane, found in measured.items() if not found] or list(measured)
        said = self.texts.between.join([self.texts("compare.nothing"), *told])
        return [
            element("p", prose(said), class_="rk-none", role="note"),
            element("p", prose(self.texts("compare.to-fill"))),
            commanded(measuring(*missing, rest="report")),
        ]

    def _hosts(self, one: Comparison) -> list[Html]:
        """Return how many release ratios fail because the hosts are not known to be alike, and what mends that."""
        timed = [ratio for row in one.rows for ratio in row.timed]
        failed = [ratio.reason for ratio in timed if ratio.reason is not None and ratio.reason.code in _OF_HOSTS]
        if not failed:
            return []
        said = self.texts("compare.hosts-all" if len(failed) == len(timed) else "compare.hosts", count=len(failed))
        return [
            element(
                "p",
                prose(said),
                escape(self.texts.between),
                cases.why(self.texts, _worst(failed)),
                escape(self.texts.between),
                prose(self.texts("compare.hosts-fix")),
                class_="rk-damage",
                role="note",
            ),
            commanded(measuring(self.baseline, self.candidate, rest="report")),
        ]

    # -- the table

    def _table(self, one: Comparison, number: int) -> Html:
        lanes = (one.baseline, one.candidate)
        pair = self.texts("compare.over", one=one.baseline, other=one.candidate)
        word = {key: self.texts(f"cases.{key}") for key in ("case", "first", "caches", "captured")}
        columns = [Column(title=word["case"], key="case")]
        for side in _READING:
            title = self.texts(f"chart.{side}")
            columns += [cases.time(self.texts, f"{title} {lane}", f"{side}-{lane}") for lane in lanes]
            ratio = self._of(side, "compare.ratio", pair=pair)
            columns += [
                Column(title=ratio, key=f"{side}-ratio", figures=True, numbers=tables.ends(self.texts, ratio)),
                Column(title=self._of(side, "compare.significant"), key=f"{side}-significant"),
                Column(title=self._of(side, "compare.relevant"), key=f"{side}-relevant"),
            ]
        for lane in lanes:
            title = f"{self.texts('claim.speedup')} {lane}"
            columns.append(
                Column(title=title, key=f"speedup-{lane}", figures=True, numbers=tables.ends(self.texts, title))
            )
        columns.append(Column(title=word["caches"], key="caches"))
        for lane in lanes:
            title = f"{word['first']} {lane}"
            numbers = (self.texts("cases.in-s", title=title),)
            columns.append(Column(title=title, key=f"first-{lane}", figures=True, numbers=numbers))
        columns += [cases.memory_column(self.texts, f" {lane}", f"memory-{lane}") for lane in lanes]
        columns += [cases.graphs_column(self.texts, f"{word['captured']} {lane}", f"graphs-{lane}") for lane in lanes]
        columns.append(Column(title=self.texts("claim.raw")))
        scales = {side: _scale(one.rows, side, self._nothing_changed) for side in _READING}
        table = tables.table(
            self.texts,
            columns,
            [self._row(one, row, scales) for row in one.rows],
            self._filters(),
            file=f"{one.baseline}-to-{one.candidate}-{one.machine}",
            name=one.machine if number else "",
            more=self.texts.labels["compare.more"],
            class_="rk-compare",
        )
        return cases.unsearched(table)

    def _filters(self) -> list[Filter]:
        yes = [(answer, self.texts(f"compare.{answer}")) for answer in ("yes", "no")]
        filters = [
            Filter(key="section", title=self.texts("ledger.section"), words=section_words(self.edition, self.texts)),
            Filter(key="significant", title=self.texts("compare.any-significant"), words=yes),
        ]
        ways = [(way, self.texts(f"compare.{way}")) for way in ("better", "worse", "same")]
        for side in _READING:
            title = self._of(side, "compare.now", lane=self.candidate)
            filters.append(Filter(key=side, title=title, words=ways, reveals=True))
        caches = [(caches, self.texts(f"cases.{caches}")) for caches in ("cold", "warm", "shared")]
        filters.append(Filter(key="caches", title=self.texts("cases.caches"), words=caches))
        return filters

    def _row(self, one: Comparison, row: Row, scales: dict[Side, Domain]) -> tables.Row:
        sides = (row.baseline, row.candidate)
        marks = join(
            [
                *([lines.flag(self.texts, "local")] if row.local else []),
                *(
                    join([lines.flag(self.texts, "wrong"), escape(lane), cases.how_wrong(self.texts, file)], " ")
                    for lane, file in zip((one.baseline, one.candidate), row.files, strict=True)
                    if lines.wrong(file)
                ),
            ],
            " ",
        )
        cells = [cases.name(self.texts, row.case, self._plan[row.case].axes, marks)]
        for side in _READING:
            times = [observed.eager if side == "eager" else observed.compiled for observed in sides]
            cells += [tables.figure(time) for time in times]
            cells += self._ratio(one, side, row.of(TIMED[side]), scales[side])
        cells += [tables.figure(observed.speedup) for observed in sides]
        first = next((observed.first_call for observed in sides if observed.first_call is not None), None)
        cells.append(cases.caches(self.texts, row.caches, first))
        cells += [cases.first_call(observed.first_call) for observed in sides]
        cells += [cases.memory(file) for file in row.files]
        cells += [cases.graphs(file) for file in row.files]
        raw = [
            cases.raw(self.at, self.above, observed.stored, lane)
            for observed, lane in zip(sides, (one.baseline, one.candidate), strict=True)
        ]
        cells.append(Cell(shown=join(raw, " "), class_="rk-nowrap"))
        section = self.edition.article.section_of(self._plan[row.case].experiment)
        return tables.Row(
            cells=tuple(cells),
            filed={
                "section": str(section.number),
                "significant": "yes" if row.significant else "no",
                "caches": row.caches if first is not None else "",
                **{side: _way(row.of(TIMED[side])) for side in _READING},
            },
            minor=not row.relevant,
        )

    def _ratio(self, one: Comparison, side: Side, ratio: ReleaseRatio | None, scale: Domain) -> list[Cell]:
        """Return a release ratio with its interval drawn, whether it is significant, and whether it is relevant."""
        if ratio is None or ratio.interval is None:
            return [Cell(shown=escape(cases.NONE), text="", sort="") for _ in range(3)]
        figures = lines.figured(ratio.interval)
        alternative = self.texts(
            "compare.alternative",
            side=self.texts(f"chart.{side}"),
            one=one.baseline,
            other=one.candidate,
            value=figures,
        )
        drawing = draw([ratio.interval], self._nothing_changed, side, scale, size="small", alternative=alternative)
        dimmed = None if ratio.significant else "rk-dim"
        answers = [
            escape(self.texts("compare.yes")) if ratio.reason is None else self._why_not(ratio),
            prose(self.texts("compare.yes" if ratio.relevant else "compare.no")),
        ]
        return [
            Cell(
                shown=join([lines.number(ratio.interval), drawing]),
                numbers=(ratio.interval.low, ratio.centre, ratio.interval.high),
                class_=f"rk-ratio {dimmed or ''}".strip(),
            ),
            *(Cell(shown=shown, class_=dimmed) for shown in answers),
        ]

    def _why_not(self, ratio: ReleaseRatio) -> Html:
        """Return that a release ratio is not significant, and in two words why."""
        reason = ratio.reason or Reason(code="within-noise")
        short = self.texts.labels.get(f"why-not.{reason.code}", reason.code)
        said = self.texts("compare.blamed", why=short, lane=ratio.blamed) if ratio.blamed else short
        return join([prose(self.texts("compare.no")), element("span", prose(said), class_="rk-words")], " ")

    @functools.cached_property
    def _nothing_changed(self) -> Bound:
        """The release ratios that are too near to 1 to be relevant."""
        most = 1 + self.edition.criteria.relevant_change
        return Bound(kind="range", low=1 / most, high=most)

    # -- what lies beneath

    def _reasons(self, one: Comparison) -> list[Html]:
        """Return in sentences why release ratios are not significant, the most frequent first, folded away."""
        found = Counter(
            cases.why(self.texts, ratio.reason) for row in one.rows for ratio in row.timed if ratio.reason is not None
        )
        if not found:
            return []
        items = [
            element("li", escape(self.texts("compare.times", count=count)), escape(" "), sentence)
            for sentence, count in found.most_common()
        ]
        return [_fold(self.texts("compare.reasons", count=found.total()), element("ul", *items))]

    def _uncompared(self, one: Comparison) -> list[Html]:
        """Return the cases with a file in either lane but not one that counts in both, with the reasons."""
        if not one.uncompared:
            return []
        titles = [self.texts("cases.case"), one.baseline, one.candidate]
        table = element(
            "table",
            element("thead", element("tr", *(element("th", prose(title), scope="col") for title in titles))),
            element("tbody", *(self._left(left) for left in one.uncompared)),
            class_="rk-table rk-uncompared",
        )
        summary = self.texts("compare.uncompared", count=len(one.uncompared), machine=one.machine)
        return [_fold(summary, scroll(table), open_=not one.rows)]

    def _left(self, left: Uncompared) -> Html:
        name = cases.name(self.texts, left.case, self._plan[left.case].axes, Html(""))
        cells = [
            prose(self.texts("cases.counts")) if why is None else cases.why(self.texts, why)
            for why in (left.baseline, left.candidate)
        ]
        return element("tr", element("th", name.shown, scope="row"), *(element("td", cell) for cell in cells))

    def _alone(self) -> list[Html]:
        """Return the machines that have only one of the two lanes, with what each lacks."""
        measured = {
            lane: {place.machine for place in places(self.edition, lane)} for lane in (self.baseline, self.candidate)
        }
        shared = {one.machine for one in self.comparisons}
        found = [
            (machine, lane, next(other for other in measured if other != lane))
            for lane, machines in measured.items()
            for machine in sorted(machines - shared)
            if len(measured[self.baseline]) and len(measured[self.candidate])
        ]
        if not found:
            return []
        items = [
            element("li", fill(self.texts.labels["compare.alone"], machine=machine, lane=lane, other=other))
            for machine, lane, other in found
        ]
        return [element("ul", *items, class_="rk-alone")]

    def _ways(self) -> Html:
        """Return links to both lanes, and the command that prints the same."""
        links = [
            link(prose(self.texts("lanes.one", lane=lane)), self.at, page_of(lane))
            for lane in (self.baseline, self.candidate)
        ]
        shell = element("code", escape(f"python -m reportkit compare {self.baseline} {self.candidate}"))
        return element("p", join([*links, shell], " \u00b7 "), class_="rk-small rk-ways")


def place_marks_of(edition: Edition, texts: Texts, one: Comparison) -> Html:
    """Return what a reader must know of the machine of a comparison."""
    places_ = [p for p in edition.measured if (p.machine, p.scale) == (one.machine, one.scale)]
    return lines.place_marks(texts, places_[0]) if places_ else Html("")


def _fold(summary: str, shown: Html, *, open_: bool = False) -> Html:
    return element(
        "details", element("summary", prose(summary)), shown, class_="rk-more", open=open_, data_search_exclude=True
    )


def _counts(ratio: ReleaseRatio) -> bool:
    return bool(ratio.significant) and ratio.relevant


def _changed(rows: Iterable[Row], side: Side) -> Iterable[ReleaseRatio]:
    """Return the release ratios of a side's time that are both significant and relevant."""
    return (ratio for row in rows if (ratio := row.of(TIMED[side])) is not None and _counts(ratio))


def _way(ratio: ReleaseRatio | None) -> str:
    if ratio is None:
        return ""
    return "same" if not _counts(ratio) else "better" if ratio.centre > 1 else "worse"


def _worst(reasons: Sequence[Reason]) -> Reason:
    """Return the reason that says most: the anchor that is furthest off, else the most frequent."""
    apart_ = [reason for reason in reasons if reason.code == "anchors-differ"]
    if apart_:
        return max(apart_, key=lambda reason: float(reason.details["by"]))
    codes = Counter(reason.code for reason in reasons)
    return next(reason for reason in reasons if reason.code == codes.most_common(1)[0][0])


def _scale(rows: Iterable[Row], side: Side, bound: Bound) -> Domain:
    """Return the domain that all drawings of a column share."""
    found = [ratio.interval for row in rows if (ratio := row.of(TIMED[side])) and ratio.interval]
    return domain(bound, found, one=True)
