"""Pages that no one writes: the ledger, and a page for every claim.

Each is Markdown whose blocks are HTML made by `reportkit.site.markup`; it never passes through Jinja.
"""

from __future__ import annotations

import json
import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportkit.claims import Fact, FirstCall, Metric, Side, Speedup, Spread, Untestable, Works, leaves
from reportkit.judge import Interval, does_not_work, resolved
from reportkit.lanes import measuring
from reportkit.plan import RULER
from reportkit.quantity import format_quantity, format_seconds, format_share
from reportkit.records import Finding
from reportkit.site import cases, charts, claimreview, lines, naming, tables
from reportkit.site.claimreview import RAW
from reportkit.site.figures import FIRST_CALL, LOADING, Figures
from reportkit.site.markup import NOTHING, Html, element, escape, join, link, plain, prose, python, relative, scroll

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reportkit.claims import Claim
    from reportkit.digest import Code
    from reportkit.judge import Verdict
    from reportkit.plan import Section
    from reportkit.records import CaseFile, Scalar, Stored, Unit
    from reportkit.site.edition import Edition
    from reportkit.site.texts import Texts

_SHORT = 200
_COMMIT = 10
_UNSOUGHT = {"data_search_exclude": True}
_MOST_RUNS = 40
"""Rows of other runs; all of them are in the claim's JSON."""
_FEW_FILES = 2
_FILE_FIGURES = ("claim.eager", "claim.compiled", "claim.speedup", "claim.first", "claim.loading")
_PASSES = ("claim.launches", "claim.busy", "claim.allocated", "claim.reserved", "claim.energy")
"""What few files have: a column is there only where one does."""
_METRIC = "metric."
"""Begins the key of a column for a metric that a claim is about and that has none yet."""
_LEDGER = ("verdict", "claim", "lane", "machine", "drawing", "value", "bound", "section")
_FIGURES = ("ledger.value", "ledger.bound", *_FILE_FIGURES, *_PASSES)
_IN_A_COLUMN = re.compile(r"(eager|compiled)_(gpu|wall|busy|energy)|first_call|inductor_import|(launches|memory)\..*")
_BREAKS = "graph-breaks"
"""The finding of a compiled case that says why its graphs broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as MkDocs takes it: its path below the language's root, and its Markdown."""

    path: str
    text: str


def generated(edition: Edition, texts: Texts, above: str, site: str) -> list[Page]:
    """Return every generated page of a language; `above` leads from its root to the site's, which is called `site`."""
    return [
        Page(path="ledger.md", text=_ledger(edition, texts)),
        *(
            Page(path=f"claims/{claim.id}.md", text=_ClaimPage(edition, texts, section, claim, above, site).text())
            for section in edition.article.sections
            for claim in section.claims
        ),
    ]


def objects(edition: Edition) -> list[Page]:
    """Return the JSON beside each claim's page, the same for all languages, with paths below the site's root."""
    return [
        Page(path=claimreview.path(claim), text=_json(claimreview.as_object(edition, section, claim)))
        for section in edition.article.sections
        for claim in section.claims
    ]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def head(title: str, heading: Html, hide: tuple[str, ...]) -> str:
    """Return the front matter and the first heading; both hold our own text only."""
    return f"---\ntitle: {json.dumps(plain(title), ensure_ascii=False)}\nhide: {json.dumps(hide)}\n---\n\n{heading}\n"


# -- the ledger


def _ledger(edition: Edition, texts: Texts) -> str:
    # What the article says first, what is said about the measuring after it.
    rows = [
        verdict_row(edition, texts, "ledger.md", section, verdict, minor=verdict != edition.headline(claim.id))
        for section in in_order(edition)
        for claim in section.claims
        for verdict in edition.shown(claim.id)
    ]
    anchors = [element("span", id=outcome) for outcome in lines.SIGNS]
    return "\n".join(
        [
            head(texts("ledger.title"), element("h1", prose(texts("ledger.title"))), ("toc", "navigation")),
            element(
                "div",
                element("p", prose(texts("ledger.lead"))),
                element("p", lines.legend(texts, edition.article.claims), class_="rk-small"),
                *anchors,
            ),
            "",
            tables.table(
                texts,
                verdict_columns(texts),
                rows,
                verdict_filters(edition, texts),
                file="ledger",
                more=texts.labels["ledger.more"],
                class_="rk-ledger",
            ),
            "",
            _damaged(edition, texts),
        ]
    )


_KEYS = {"drawing": "", "value": "measured", "bound": "claimed"}
"""What a column is called in the address, where that is not its name; a drawing is no data."""


def verdict_columns(texts: Texts, shown: Sequence[str] = _LEDGER) -> list[tables.Column]:
    """Return columns of a table of verdicts, by name."""
    return [
        tables.Column(title=texts(f"ledger.{name}"), key=_KEYS.get(name, name), figures=name in {"value", "bound"})
        for name in shown
    ]


def verdict_filters(edition: Edition, texts: Texts) -> list[tables.Filter]:
    """Return the filters of a table of verdicts."""
    return [
        tables.Filter(
            key="verdict",
            title=texts("ledger.verdict"),
            words=[(outcome, texts(f"outcome.{outcome}")) for outcome in lines.SIGNS],
        ),
        tables.Filter(key="section", title=texts("ledger.section"), words=section_words(edition, texts)),
        # Who asks for a lane or a machine wants every verdict there, not only those that speak for a claim.
        tables.Filter(
            key="lane", title=texts("ledger.lane"), words=[(lane, lane) for lane in edition.lanes], reveals=True
        ),
        tables.Filter(key="machine", title=texts("ledger.machine"), reveals=True),
    ]


def in_order(edition: Edition) -> list[Section]:
    """Return the sections in reading order, that on the ruler last."""
    return sorted(edition.article.sections, key=lambda section: section.number == RULER)  # Stable.


def section_words(edition: Edition, texts: Texts) -> list[tuple[str, str]]:
    """Return sections by number with what they are called, for a filter."""
    return [(str(section.number), section_name(texts, section)) for section in in_order(edition)]


def section_name(texts: Texts, section: Section) -> str:
    """Return a section's number and title, the ruler's without a number, which the article does not give it."""
    title = texts.sections[section.id]
    return title if section.number == RULER else texts("claim.section", number=section.number, title=title)


def verdict_row(  # noqa: PLR0913 -- what a row is of, and how it stands in its table
    edition: Edition,
    texts: Texts,
    at: str,
    section: Section,
    verdict: Verdict,
    shown: Sequence[str] = _LEDGER,
    *,
    minor: bool,
) -> tables.Row:
    """Return a verdict as a row of a table on the page `at`, with the cells of the columns that are `shown`."""
    claim = edition.claims[verdict.claim]
    chip = join([lines.chip(texts, verdict.outcome), escape(" "), lines.flags(texts, verdict)])
    statement = link(prose(texts.claims[claim.id].statement), at, f"claims/{claim.id}.md")
    bound = claim.bound.low if claim.bound.low is not None else claim.bound.high
    cells = {
        "verdict": tables.Cell(shown=chip, sort=list(lines.SIGNS).index(verdict.outcome)),
        "claim": tables.Cell(shown=statement, head=True),
        "lane": tables.Cell(shown=escape(verdict.lane), sort=edition.lanes.index(verdict.lane)),
        "machine": tables.Cell(
            shown=escape(verdict.machine or cases.NONE), sort=verdict.machine or "", class_="rk-nowrap"
        ),
        "drawing": tables.Cell(
            shown=lines.drawing(texts, claim, verdict, lines.scale_of(edition, claim)), class_="rk-cell-drawing"
        ),
        "value": tables.Cell(
            shown=lines.value(texts, verdict, claim) or escape(cases.NONE),
            sort=verdict.interval.centre if verdict.interval else "",
        ),
        "bound": tables.Cell(shown=prose(lines.bound(texts, claim)), sort="" if bound is None else bound),
        "section": tables.Cell(
            shown=element("span", escape(section.number), title=texts.sections[section.id]), sort=section.number
        ),
    }
    return tables.Row(
        cells=tuple(cells[name] for name in shown),
        filed={
            "verdict": verdict.outcome,
            "section": str(section.number),
            "lane": verdict.lane,
            "machine": verdict.machine or "",
        },
        minor=minor,
        class_=f"rk-{verdict.outcome}",
    )


def _damaged(edition: Edition, texts: Texts) -> str:
    if not edition.damaged:
        return ""
    rows = [
        element("tr", element("td", element("code", escape(one.path))), element("td", escape(one.problem)))
        for one in edition.damaged
    ]
    return "\n".join(
        [
            f"## {texts('ledger.damaged')} {{#damaged}}",
            "",
            element("p", prose(texts("ledger.damaged-lead"))),
            "",
            scroll(
                element(
                    "table",
                    element(
                        "thead",
                        element(
                            "tr",
                            *(element("th", prose(texts(f"ledger.{key}")), scope="col") for key in ("path", "problem")),
                        ),
                    ),
                    element("tbody", *rows),
                    class_="rk-table rk-damaged",
                )
            ),
            "",
        ]
    )


# -- a claim


@dataclass(frozen=True, slots=True)
class _ClaimPage:
    edition: Edition
    texts: Texts
    section: Section
    claim: Claim
    above: str
    site: str

    @property
    def at(self) -> str:
        return f"claims/{self.claim.id}.md"

    def text(self) -> str:
        """Return the page's Markdown: the verdict first, then what it rests on."""
        statement = self.texts.claims[self.claim.id].statement
        verdict = self.edition.headline(self.claim.id)
        heading = join(
            [
                element(
                    "p",
                    link(
                        prose(section_name(self.texts, self.section)),
                        self.at,
                        lines.page_of(self.section),
                    ),
                    class_="rk-above",
                ),
                element("h1", prose(statement)),
            ]
        )
        blocks: list[tuple[str | None, list[Html]]] = [
            (None, [self._lead(verdict)]),
            ("lanes", [] if isinstance(self.claim.quantity, Untestable) else [self._lanes()]),
            ("reading", [self._reading()]),
            ("precision" if self.claim.settings else "parts", self._parts(verdict)),
            ("samples", self._samples(verdict)),
            ("evidence", self._evidence()),
            ("files", self._files()),
            ("code", self._code()),
            ("environment", self._environments()),
            ("repeat", [self._repeat()] if self.claim.quantity.cases() else []),
            ("history", self._history()),
            (None, [self._for_machines()]),
        ]
        written = [head(statement, heading, ("navigation",))]
        for key, found in blocks:
            if found:
                written += [f"## {self.texts(f'claim.{key}')} {{#{key}}}", ""] if key else []
                written += [line for block in found for line in (block, "")]
        return "\n".join(written)

    def _lead(self, verdict: Verdict) -> Html:
        """Return the headline: chip and figures large, the drawing, why in one sentence."""
        parts = [
            element(
                "div",
                lines.sentence(
                    self.texts,
                    self.claim,
                    verdict,
                    lines.chip(self.texts, verdict.outcome, large=True),
                ),
                escape(" "),
                lines.flags(self.texts, verdict),
                class_="rk-verdict",
            ),
            *self._drawings(verdict),
            element("p", lines.why(self.texts, self.claim, verdict), class_="rk-why"),
            self._seen(verdict),
        ]
        article = self.section.number != RULER
        if article and verdict.machine and self.claim.bound.kind in {"range", "outside"}:
            parts.append(
                element("p", prose(self.texts("claim.article-machine", machine=verdict.machine)), class_="rk-small")
            )
        return element("div", *parts, class_=f"rk-lead rk-{verdict.outcome}")

    def _drawings(self, verdict: Verdict) -> list[Html]:
        """Return the large drawing; where settings disagree one each, under its name."""
        scale = lines.scale_of(self.edition, self.claim)
        apart = lines.disagreeing(verdict)
        if not apart:
            return [lines.drawing(self.texts, self.claim, verdict, scale, "large")]
        return [
            join(
                [
                    element("p", escape(lines.part_name(self.texts, self.claim, part)), class_="rk-small"),
                    lines.drawing(self.texts, self.claim, part, scale, "large"),
                ]
            )
            for part in apart
        ]

    def _seen(self, verdict: Verdict) -> Html:
        """Return what a refuted finding shows for it in one line: the error it met, else its first observation."""
        found = lines.seen(self.edition, self.claim, verdict) if verdict.outcome == "refuted" else None
        if found is None:
            return NOTHING
        lead = prose(self.texts("claim.lead-evidence"))
        return element("p", lead, escape(" "), lines.observation(self.texts, found, _SHORT), class_="rk-seen")

    def _lanes(self) -> Html:
        """Return the verdict of every lane and machine, drawings on one scale under one another."""
        scale = lines.scale_of(self.edition, self.claim)
        rows = []
        for verdict in self.edition.shown(self.claim.id):
            elsewhere = verdict.reason.code in {"see-lane", "not-testable"}
            missing = verdict.lane if verdict.machine is None and not elsewhere else None
            if verdict.reason.code == "baseline-lane-missing":
                missing = str(verdict.reason.details["lane"])
            fill = element("code", escape(measuring(missing, rest=f"-- {self.claim.id}"))) if missing else NOTHING
            rows.append(
                element(
                    "tr",
                    element("th", escape(verdict.lane), scope="row"),
                    element(
                        "td",
                        element("span", escape(verdict.machine or "\u2013"), class_="rk-nowrap"),
                        escape(" "),
                        lines.flags(self.texts, verdict),
                    ),
                    element("td", lines.chip(self.texts, verdict.outcome)),
                    element("td", lines.drawing(self.texts, self.claim, verdict, scale), class_="rk-cell-drawing"),
                    element("td", lines.value(self.texts, verdict, self.claim) or escape("\u2013"), class_="rk-number"),
                    element("td", lines.why(self.texts, self.claim, verdict), escape(" "), fill, class_="rk-reason"),
                )
            )
        head = ("ledger.lane", "ledger.machine", "ledger.verdict", "ledger.drawing", "ledger.value", "claim.why")
        return self._table(head, rows, "rk-lanes")

    def _reading(self) -> Html:
        """Return how the claim was read, and exactly what it is held to."""
        text = self.texts.claims[self.claim.id]
        entries = [
            ("claim.reading-text", prose(text.reading)),
            ("claim.source", prose(text.source)),
            ("claim.quantity", prose(naming.quantity(self.texts, self.claim.quantity))),
            ("claim.bound", prose(lines.bound(self.texts, self.claim))),
        ]
        if not isinstance(self.claim.quantity, Untestable):
            entries.append(("claim.on", prose(self.texts(f"claim.on-{self.claim.on}"))))
        if self.claim.lane:
            entries.append(("claim.lane", prose(self.texts("claim.lane-only", lane=self.claim.lane))))
        return element(
            "dl",
            *(join([element("dt", prose(self.texts(key))), element("dd", shown)]) for key, shown in entries),
            class_="rk-reading",
        )

    def _parts(self, verdict: Verdict) -> list[Html]:
        """Return the parts of the headline under one another: each precision, each workload."""
        if len(verdict.parts) < 2:  # noqa: PLR2004 -- one part is the verdict itself
            return []
        scale = lines.scale_of(self.edition, self.claim)
        rows = [
            element(
                "tr",
                element("th", escape(lines.part_name(self.texts, self.claim, part)), scope="row"),
                element("td", lines.chip(self.texts, part.outcome)),
                element("td", lines.drawing(self.texts, self.claim, part, scale), class_="rk-cell-drawing"),
                element("td", lines.value(self.texts, part, self.claim) or escape("\u2013"), class_="rk-number"),
                element("td", lines.why(self.texts, self.claim, part), class_="rk-reason"),
            )
            for part in verdict.parts
        ]
        head = ("claim.part", "ledger.verdict", "ledger.drawing", "ledger.value", "claim.why")
        return [self._table(head, rows, "rk-parts")]

    def _samples(self, verdict: Verdict) -> list[Html]:
        """Return the samples behind the headline: both sides of each case, a chart a workload; and the first calls."""
        files = [self.edition.by_path[path] for path in verdict.files if path in self.edition.by_path]
        asked = leaves(self.claim.quantity)
        found: list[Html] = []
        if any(isinstance(leaf, Speedup | Spread | Side) or _steady(leaf) for leaf in asked):
            groups: dict[tuple[str, str], list[Stored]] = {}
            for stored in files:
                place = stored.file.experiment, str(stored.file.axes.get("workload", ""))
                groups.setdefault(place, []).append(stored)
            charted = {place: rows for place, group in groups.items() if (rows := self._strip_rows(group))}
            found += [
                self._strips(*rows, number, self._group(place, list(charted)))
                for number, (place, rows) in enumerate(charted.items())
            ]
        if any(isinstance(leaf, FirstCall) for leaf in asked):
            plan = {case.name: case for e in self.edition.article.experiments for case in e.cases}
            timed = [
                (stored, caches)
                for stored in files
                if FIRST_CALL in stored.file.measurements
                # Shared caches are those of the section, neither empty nor one's own.
                and (caches := plan[stored.file.case].caches(stored.file.scale)) != "shared"
            ]
            chart = Figures(self.edition, self.texts).first_call_chart
            found += [chart(timed, "claim.first-title", "claim.first-description")] if timed else []
        return found

    def _group(self, place: tuple[str, str], among: Sequence[tuple[str, str]]) -> str:
        """Return what a chart of several is of: the workload, and the experiment where that tells two apart."""
        experiment, workload = place
        alike = sum(other == workload for _, other in among)
        words = [self.texts.name("workload", workload)] if workload else []
        words += [self.texts.name("experiment", experiment)] if alike > 1 or not workload else []
        return naming.listed(self.texts, words) if len(among) > 1 else ""

    def _time(self, stored: Stored, side: str, samples: list[float]) -> str:
        """Return the median of all of a side's samples, written as in the table of case files."""
        seen = self.edition.observed.get(stored.path)
        interval = (seen.eager if side == "eager" else seen.compiled) if seen else None
        return format_seconds(interval) if interval else _median(samples)

    def _strip_rows(self, files: list[Stored]) -> tuple[list[charts.Row], dict[tuple[str, str], str]] | None:
        """Return the points of a chart of samples, and the medians by row and side; None where nothing was timed."""
        rows: list[charts.Row] = []
        medians: dict[tuple[str, str], str] = {}
        for stored in files:
            measurements = stored.file.measurements
            clock = "gpu" if "eager_gpu" in measurements else "wall"
            wrong = lines.wrong(stored.file)
            for side in ("eager", "compiled"):
                if f"{side}_{clock}" in measurements:
                    axes = stored.file.axes.items()
                    words = [naming.on_axis(self.texts, axis, value) for axis, value in axes if axis != "workload"]
                    name = naming.listed(self.texts, words) or self.texts.name(
                        "workload", stored.file.axes.get("workload", stored.file.case)
                    )
                    name = self.texts("list.aside", first=name, second=self.texts("flag.wrong")) if wrong else name
                    medians[name, side] = self._time(stored, side, measurements[f"{side}_{clock}"].samples)
                    rows += [
                        {"row": name, "side": side, "time": sample}
                        for sample in charts.thinned(measurements[f"{side}_{clock}"].samples)
                    ]
        return (rows, medians) if rows else None

    def _strips(self, rows: list[charts.Row], medians: dict[tuple[str, str], str], number: int, of: str) -> Html:
        """Return the chart of those; `of` is what it shows where there are several."""
        longest = max(float(row["time"]) for row in rows)
        factor, unit = (1.0, "s") if longest >= 1 else (1e-3, "ms")
        words = {key: self.texts(f"chart.{key}") for key in ("eager", "compiled", "side")}
        words |= {"x": self.texts("chart.time"), "rows": self.texts("chart.process")}
        chart = charts.Chart(
            id=f"samples-{number}" if number else "samples",
            title=naming.listed(self.texts, [self.texts("claim.samples-title"), *([of] if of else [])]),
            description=self.texts("claim.samples-description"),
            spec=charts.strips(
                [{**row, "time": float(f"{float(row['time']) / factor:.5g}")} for row in rows], words, unit
            ),
            table=charts.table(
                [
                    (
                        name,
                        *(medians.get((name, side), "\u2013") for side in ("eager", "compiled")),
                    )
                    for name in dict.fromkeys(str(row["row"]) for row in rows)
                ],
                [
                    self.texts("chart.process"),
                    *(
                        f"{self.texts(f'chart.{side}')} ({self.texts('chart.median')})"
                        for side in ("eager", "compiled")
                    ),
                ],
            ),
            note=self.texts("claim.samples-note", most=charts.MOST_POINTS),
        )
        return charts.figure(chart, self.texts)

    def _evidence(self) -> list[Html]:
        """Return what each finding rests on, observation by observation."""
        rows: list[tuple[CaseFile, Html]] = []
        works = self.texts("claim.works")  # Its observations are called by our own words.
        recorded = None if self.texts.language == lines.RECORDED else lines.RECORDED
        for stored in self._all_files():
            for name, found in self._findings(stored.file).items():
                shown = join(
                    [
                        element(
                            "li",
                            escape(key),
                            escape(": "),
                            element("code", escape(lines.scalar(observed))),
                            lang=None if name == works else recorded,
                        )
                        for key, observed in found.evidence.items()
                    ]
                )
                holds = self.texts("claim.held" if found.holds else "claim.not-held")
                row = element(
                    "tr",
                    element("th", element("code", escape(stored.file.case)), scope="row"),
                    element("td", element("code", escape(name)), escape(" "), prose(holds)),
                    element("td", element("ul", shown)),
                )
                rows.append((stored.file, row))
        tables = self._by_place(("claim.case", "claim.looked-at", "claim.found"), rows, "rk-evidence")
        return [element("p", prose(self.texts("claim.evidence-lead"))), *tables] if tables else []

    def _findings(self, file: CaseFile) -> dict[str, Finding]:
        """Return the findings of a file that the claim is about; of a case that must work, what that rests on.

        Beside a number that an experiment of facts made, and a claim that can't be tested, all of them are shown.
        """
        asked = leaves(self.claim.quantity)
        kind = self.edition.article.experiment(file.experiment).kind
        if any(isinstance(leaf, Untestable) or (isinstance(leaf, Metric) and kind == "fact") for leaf in asked):
            return file.findings
        wanted = {leaf.finding for leaf in asked if isinstance(leaf, Fact)}
        works = [leaf for leaf in asked if isinstance(leaf, Works)]
        found = {name: one for name, one in file.findings.items() if name in wanted or (works and name == _BREAKS)}
        if works and file.correctness is not None:
            seen: dict[str, Scalar | None] = {
                "graphs": file.counters.get("unique_graphs"),
                "breaks": file.counters.get("graph_breaks"),
                "right": file.correctness.right,
                "eager-error": file.correctness.eager_error,
                "compiled-error": file.correctness.compiled_error,
            }
            holds = all(does_not_work(file, leaf) is None for leaf in works)
            evidence = {self.texts(f"claim.{key}"): value for key, value in seen.items()}
            found = {self.texts("claim.works"): Finding(holds=holds, evidence=evidence), **found}
        return found

    def _files(self) -> list[Html]:
        """Return every case file behind any verdict on the claim, with its figures and a link to it raw."""
        files = self._all_files()
        if not files:
            return [element("p", prose(self.texts("claim.no-files")), class_="rk-none")]
        rows = [(stored, self._file_figures(stored)) for stored in files]
        asked = [f"{_METRIC}{name}" for name in _metrics(self.claim) if not _IN_A_COLUMN.fullmatch(name)]
        used = [key for key in (*_FILE_FIGURES, *asked, *_PASSES) if any(figures.get(key) for _, figures in rows)]
        tables = self._by_place(
            ("claim.case", "claim.date", *used, "claim.raw"),
            [
                (stored.file, self._file_row(stored, [figures.get(key, NOTHING) for key in used]))
                for stored, figures in rows
            ],
            "rk-files",
        )
        broken = [self._broken(stored) for stored in files if stored.file.status != "complete"]
        return [element("p", prose(self.texts("claim.files-lead"))), *tables, *broken]

    def _by_place(self, head: tuple[str, ...], rows: list[tuple[CaseFile, Html]], class_: str) -> list[Html]:
        """Return a table for each lane and machine, folded away but for the headline's."""
        places: dict[tuple[str, str], list[Html]] = {}
        for file, row in rows:
            places.setdefault((file.lane, file.machine), []).append(row)
        headline = self.edition.headline(self.claim.id)
        return [
            element(
                "details",
                element(
                    "summary",
                    prose(self.texts("claim.environment-of", lane=lane, machine=machine)),
                    escape(f" ({len(found)})"),
                ),
                self._table(head, found, class_),
                class_="rk-more",
                data_search_exclude=class_ == "rk-files",
                open=(lane, machine) == (headline.lane, headline.machine) or len(places) == 1,
            )
            for (lane, machine), found in places.items()
        ]

    def _file_figures(self, stored: Stored) -> dict[str, Html]:
        """Return what a file says in figures, by the column it belongs to; nothing where it says nothing."""
        seen = self.edition.observed.get(stored.path)
        calls = [stored.file.measurements.get(name) for name in (FIRST_CALL, LOADING)]
        intervals = (seen.eager, seen.compiled, seen.speedup) if seen else (None, None, None)
        figures = [lines.number(interval) if interval else NOTHING for interval in intervals]
        figures += [escape(_median(call.samples)) if call else NOTHING for call in calls]
        return dict(zip(_FILE_FIGURES, figures, strict=True)) | _passes(stored.file) | _asked(stored.file, self.claim)

    def _file_row(self, stored: Stored, figures: list[Html]) -> Html:
        file = stored.file
        seen = self.edition.observed.get(stored.path)
        marks = [
            lines.flag(self.texts, name)
            for name, holds in (
                ("smoke", file.scale == "smoke"),
                ("local", stored.local),
                ("stale", bool(seen and seen.stale)),
                ("dirty", file.provenance.dirty),
                ("failed", file.status != "complete"),
                ("wrong", lines.wrong(file)),
            )
            if holds
        ]
        said = join([*marks, *([how] if (how := cases.how_wrong(self.texts, file)) else [])], " ")
        return element(
            "tr",
            element("th", element("code", escape(file.case)), escape(" "), said, scope="row"),
            element("td", escape(file.provenance.started[:10]), class_="rk-nowrap"),
            *(element("td", figure or escape("\u2013"), class_="rk-number") for figure in figures),
            element("td", cases.raw(self.at, self.above, stored), class_="rk-nowrap"),
        )

    def _broken(self, stored: Stored) -> Html:
        """Return what is known of a case that did not complete."""
        return element(
            "details",
            element(
                "summary",
                prose(self.texts("claim.failed")),
                escape(": "),
                element("code", escape(stored.file.case)),
                escape(f" ({naming.listed(self.texts, [stored.file.lane, stored.file.machine])})"),
            ),
            element("p", escape(stored.file.reason or "")),
            element("pre", element("code", escape(stored.file.traceback or ""))) if stored.file.traceback else NOTHING,
            class_="rk-more",
        )

    def _environments(self) -> list[Html]:
        """Return a fold-out for each lane and machine: where its files were made, and in what they differ."""
        places: dict[tuple[str, str], list[CaseFile]] = {}
        for stored in self._all_files():
            if stored.file.environment:
                places.setdefault((stored.file.lane, stored.file.machine), []).append(stored.file)
        return [self._environment(files) for files in places.values()]

    def _environment(self, files: list[CaseFile]) -> Html:
        file = max(files, key=lambda one: one.provenance.started)
        environment = file.environment
        names = (
            "torch",
            "torch_git",
            "cuda",
            "cudnn",
            "triton",
            "driver",
            "gpu",
            "gpu_id",
            "cpu",
            "cores",
            "kernel",
            "python",
            "compiler",
        )
        facts = [
            (name, " / ".join(seen))
            for name in names
            if (seen := dict.fromkeys(str(v) for one in files if (v := getattr(one.environment, name)) is not None))
        ]
        same = {key: v for key, v in file.settings.items() if all(one.settings.get(key) == v for one in files)}
        apart = sorted({key for one in files for key in one.settings} - set(same))
        facts += [("settings", _mapping(same))] if same else []
        facts += [("settings-apart", "\n".join(self._apart(key, files) for key in apart))] if apart else []
        facts.append(("lock", " / ".join(dict.fromkeys(self._lock(one) for one in files))))
        if environment:
            facts += [("variables", _mapping(environment.variables))] if environment.variables else []
            facts += [("notes", "; ".join(environment.notes))] if environment.notes else []
            facts.append(("packages", self.texts("environment.packages-more", count=len(environment.packages))))
        facts += [
            ("commit", file.provenance.commit or self.texts("environment.no-commit")),
            ("command", file.provenance.command),
        ]
        rows = [
            element(
                "tr", element("th", prose(self.texts(f"environment.{name}")), scope="row"), element("td", escape(fact))
            )
            for name, fact in facts
        ]
        return element(
            "details",
            element("summary", prose(self.texts("claim.environment-of", lane=file.lane, machine=file.machine))),
            scroll(element("table", element("tbody", *rows), class_="rk-table rk-environment")),
            class_="rk-more",
            data_search_exclude=True,
        )

    def _apart(self, key: str, files: list[CaseFile]) -> str:
        """Return a setting that differs between files: each value, and the cases that ran with it."""
        by_value: dict[str, list[str]] = {}
        for file in files:
            found = by_value.setdefault(lines.scalar(file.settings.get(key)), [])
            found += [] if file.case in found else [file.case]
        each = [
            self.texts("environment.setting-in", value=value, cases=naming.listed(self.texts, found))
            for value, found in by_value.items()
        ]
        return self.texts("verdict.named", name=key, value="; ".join(each))

    def _lock(self, file: CaseFile) -> str:
        """Return how the packages that a file ran with compare with its lane's lock."""
        lock = file.environment.lock if file.environment else {}
        if "differs_from_lock" not in lock:
            return self.texts("environment.not-compared")
        return str(lock["differs_from_lock"] or self.texts("environment.as-locked"))

    def _code(self) -> list[Html]:
        """Return the source of what the claim's cases run: what they start from each, the rest in one fold-out."""
        found = self.edition.code[self.claim.id]
        if not found:
            return []
        roots, rest = ([one for one in found if one.root is wanted] for wanted in (True, False))
        # Code is no words to find. The search plugin ends an exclusion at the first end of the same tag, so it stands
        # on what holds no other `details`.
        folded = [
            element("details", element("summary", *_named(one)), python(one.text), class_="rk-more", **_UNSOUGHT)
            for one in roots
        ]
        if rest:
            shown = [join([element("p", *_named(one), class_="rk-small"), python(one.text)]) for one in rest]
            summary = element("summary", prose(self.texts("claim.code-rest", count=len(rest))))
            folded.append(element("details", summary, *shown, class_="rk-more", **_UNSOUGHT))
        lead = element("p", prose(self.texts("claim.code-lead")))
        return [lead, element("div", *folded)]

    def _repeat(self) -> Html:
        return join(
            [
                element("p", prose(self.texts("claim.repeat-lead"))),
                element(
                    "pre",
                    element("code", escape(claimreview.repeat(self.edition, self.claim))),
                    class_="rk-command",
                ),
            ]
        )

    def _history(self) -> list[Html]:
        """Return the other runs of the claim's cases, a row a run, and why they do not count here."""
        runs: dict[tuple[object, ...], list[Stored]] = {}
        for stored, why in self.edition.history(self.claim.id):
            file = stored.file
            runs.setdefault((file.run, file.lane, file.machine, file.scale, stored.local, why), []).append(stored)
        if not runs:
            return []
        rows = [self._run(files, str(key[-1])) for key, files in list(runs.items())[:_MOST_RUNS]]
        head = ("claim.date", "ledger.lane", "ledger.machine", "environment.commit", "claim.unused", "claim.raw")
        older = len(runs) - len(rows)
        return [
            element("p", prose(self.texts("claim.history-lead"))),
            element(
                "details",
                element("summary", prose(self.texts("claim.history-runs", count=len(runs)))),
                self._table(head, rows, "rk-history"),
                *([element("p", prose(self.texts("claim.history-older", count=older)))] if older else []),
                class_="rk-more",
                data_search_exclude=True,
            ),
        ]

    def _run(self, files: list[Stored], why: str) -> Html:
        """Return the row of some files of one run that have one reason not to be used."""
        one = files[0]
        marks = [
            lines.flag(self.texts, name)
            for name, holds in (("smoke", one.file.scale == "smoke"), ("local", one.local))
            if holds
        ]
        links = [
            element("a", element("code", escape(stored.file.case)), href=self._raw(stored))
            for stored in sorted(files, key=lambda stored: stored.file.case)
        ]
        listed = join(links, " ")
        if len(links) > _FEW_FILES:
            summary = element("summary", prose(self.texts("claim.history-files", count=len(links))))
            listed = element("details", summary, listed, class_="rk-more")
        return element(
            "tr",
            element("td", escape(min(stored.file.provenance.started for stored in files)[:10]), class_="rk-nowrap"),
            element("td", escape(one.file.lane)),
            element("td", escape(one.file.machine), escape(" "), join(marks, " ")),
            element("td", element("code", escape((one.file.provenance.commit or "\u2013")[:_COMMIT]))),
            element("td", prose(self.texts(f"unused.{why}"))),
            element("td", listed),
        )

    def _for_machines(self) -> Html:
        """Return the link to the claim as JSON, and its review for search engines."""
        own = relative(self.at, f"{self.above}{claimreview.path(self.claim)}")
        above = relative(self.at, self.above or ".") + "/"
        review = claimreview.as_review(self.edition, self.texts, self.claim, self.site, above)
        return element(
            "div",
            element(
                "p",
                prose(self.texts("claim.for-machines")),
                escape(" "),
                element("a", escape(f"{self.claim.id}.json"), href=own),
                class_="rk-small",
            ),
            element("script", charts.script_json(review), type="application/ld+json"),
        )

    def _raw(self, stored: Stored) -> str:
        """Return the address of a case file from this page."""
        return relative(self.at, f"{self.above}{RAW}/{stored.path}")

    def _all_files(self) -> tuple[Stored, ...]:
        """Return the files behind every verdict on the claim, in the order of verdicts."""
        return self.edition.behind(self.claim.id)

    def _table(self, head: tuple[str, ...], rows: list[Html], class_: str) -> Html:
        return scroll(
            element(
                "table",
                element("thead", element("tr", *(_column(self.texts, key) for key in head))),
                element("tbody", *rows),
                class_=f"rk-table {class_}",
            )
        )


def _named(one: Code) -> tuple[Html, ...]:
    """Return what some code is called, and where it stands."""
    return (element("code", escape(one.name)), escape(f" {one.path}:{one.line}"))


def _column(texts: Texts, key: str) -> Html:
    """Return the head of a column, aligned as its figures are."""
    figures = key in _FIGURES or key.startswith(_METRIC)
    title = naming.metric(texts, key.removeprefix(_METRIC)) if key.startswith(_METRIC) else texts(key)
    return element("th", prose(title), scope="col", class_="rk-number" if figures else None)


def _steady(leaf: object) -> bool:
    """Whether a metric is of samples in steady state."""
    return isinstance(leaf, Metric) and leaf.name.endswith(("_gpu", "_wall"))


def _metrics(claim: Claim) -> list[str]:
    """Return the metrics that a claim asks for by name, each once."""
    asked = [leaf for leaf in leaves(claim.quantity) if isinstance(leaf, Metric | FirstCall)]
    names = [(leaf.name, None) if isinstance(leaf, Metric) else (leaf.metric, leaf.of) for leaf in asked]
    return list(dict.fromkeys(name for both in names for name in both if name))


def _asked(file: CaseFile, claim: Claim) -> dict[str, Html]:
    """Return the middle of each metric that a claim asks for by name, by its column, as far as the file has it."""
    found = {name: resolved(file, name) for name in _metrics(claim)}
    return {
        f"{_METRIC}{name}": escape(_amount(statistics.median(one.samples), one.unit))
        for name, one in found.items()
        if one is not None
    }


def _passes(file: CaseFile) -> dict[str, Html]:
    """Return launches, busy share, peak memory and energy of a call, eager then compiled, as far as they are there."""
    sides = ("eager", "compiled")
    launches, memory = file.launches or {}, file.memory or {}
    found = {
        "claim.launches": [_amount(launches.get(side), "1") for side in sides],
        "claim.busy": [_busy(file, side) for side in sides],
        "claim.allocated": [_amount(memory.get(f"{side}_allocated"), "B") for side in sides],
        "claim.reserved": [_amount(memory.get(f"{side}_reserved"), "B") for side in sides],
        "claim.energy": [_amount(_middle(file, f"{side}_energy"), "J") for side in sides],
    }
    return {
        key: escape(" / ".join(one or "\u2013" for one in both)) if any(both) else NOTHING
        for key, both in found.items()
    }


def _amount(value: float | None, unit: Unit) -> str:
    return "" if value is None else format_quantity(Interval(low=value, centre=value, high=value, unit=unit))


def _busy(file: CaseFile, side: str) -> str:
    """Return the share of a call's wall time in which the GPU was busy; kernels side by side fill it once."""
    busy, wall = _middle(file, f"{side}_busy"), _middle(file, f"{side}_wall")
    return format_share(min(1.0, busy / wall)) if busy is not None and wall else ""


def _middle(file: CaseFile, name: str) -> float | None:
    found = file.measurements.get(name)
    return statistics.median(found.samples) if found else None


def _median(times: list[float]) -> str:
    middle = statistics.median(times)
    return format_seconds(Interval(low=middle, centre=middle, high=middle, unit="s"))


def _mapping(values: Mapping[str, object]) -> str:
    return "; ".join(f"{key}: {lines.scalar(value)}" for key, value in values.items())
