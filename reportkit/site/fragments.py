"""What a prose page may ask for by name: every number in prose, and every chart, comes from here.

A page in docs/ writes `{{ answer() }}` or `{{ claims("benchmarks") }}`; it can name nothing else. A
name or an id that does not exist fails the build. Where nothing is measured yet, a fragment says so.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reportkit import judge, lanes
from reportkit.claims import Untestable
from reportkit.judge import REASONS, Interval
from reportkit.plan import RULER, PlanError, unknown
from reportkit.quantity import format_seconds
from reportkit.records import PROTOCOL
from reportkit.site import charts, lines, naming
from reportkit.site.data import DataPage
from reportkit.site.edition import DECIDED, Edition, Measured, Timed
from reportkit.site.markup import NOTHING, Html, element, escape, fill, join, link, prose, relative, scroll
from reportkit.site.ruler import RulerPage
from reportkit.site.texts import LANGUAGES, Texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reportkit.claims import Claim
    from reportkit.judge import Observation, Outcome, Verdict
    from reportkit.records import Stored

FIRST_CALL = "first_call"
"""The metric of a first compiled call in a case file."""
LOADING = "inductor_import"
"""The metric of the import of Inductor, which a process pays before its first compiled call."""

_ON_ITS_MERITS = ("inside", "outside", "straddles", "depends-on-setting")


@dataclass(frozen=True)
class Fragments:
    """The fragments of one page in one language."""

    edition: Edition
    texts: Texts
    at: str
    """The page, below the language's root: `article/benchmarks.md`."""

    def names(self) -> Mapping[str, Callable[..., str]]:
        """Return everything that prose can ask for, by name."""
        return (
            {
                name: getattr(self, name)
                for name in (
                    "answer",
                    "bound",
                    "claims",
                    "columns",
                    "criteria",
                    "damage",
                    "damaged_figures",
                    "decisions",
                    "drawing_legend",
                    "earned_back",
                    "first_calls",
                    "lane_table",
                    "machines",
                    "measured",
                    "outcomes",
                    "protocol",
                    "reasons",
                    "sections",
                    "speedups",
                    "statement",
                    "tally",
                    "times",
                    "verdict",
                )
            }
            | {
                name: getattr(RulerPage(self.edition, self.texts, self.at), name)
                for name in ("anchors", "calibration", "goals", "overhead", "timers", "traps")
            }
            | {
                name: getattr(DataPage(self.edition, self.texts, self.at), name)
                for name in ("citation", "export", "export_name", "exports", "licence")
            }
        )

    # -- home

    def answer(self) -> Html:
        """Return the answer in one computed sentence, or honest words where there is none yet."""
        marks = self._marks(one.verdict for one in self._headline())
        return join([element("p", self._answer(), escape(" "), marks, class_="rk-answer"), self._fill()])

    def _answer(self) -> Html:
        timed = self._headline()
        if timed:
            best, worst = max(timed, key=_centre), min(timed, key=_centre)
            threshold = self.edition.criteria.no_difference[1]
            gains = [one.part.interval is not None and one.part.interval.low > threshold for one in timed]
            details = {
                "machine": self._gpu(best),
                "lane": best.verdict.lane,
                "best_name": self._timed_name(best),
                "best": _figure(best),
                "worst_name": self._timed_name(worst),
                "worst": _figure(worst),
            }
            if len(timed) == 1:
                first = self._first_call(best)
                if first is not None:
                    key = "answer.one-yes" if all(gains) else "answer.one-no"
                    return fill(self.texts.labels[key], first=_seconds(first[0]), **details)
            key = f"answer.{'yes' if all(gains) else 'mixed' if any(gains) else 'no'}"
            if len({one.workload for one in timed}) == 1 and all(gains):
                # One workload under several settings is one workload: no answer to what was asked in general.
                key, details = "answer.same-yes", details | {"workload": self.texts.name("workload", best.workload)}
            return fill(self.texts.labels[key], **details)
        lane = self.edition.article.lane
        measured = self.edition.measured
        full = [one for one in measured if one.scale == "full" and one.lane == lane]
        if full:
            return prose(self.texts("answer.undecided", machine=full[0].machine, lane=lane))
        if measured:
            return prose(self.texts("answer.smoke", machine=", ".join(dict.fromkeys(m.machine for m in measured))))
        return prose(self.texts("answer.nothing"))

    def _fill(self) -> Html:
        if self._headline():
            return NOTHING
        command = f'nox -s "experiments({self.edition.article.lane})" report'
        return join([element("p", prose(self.texts("answer.fill"))), _code(command)])

    def _headline(self) -> list[Timed]:
        """Return the speedups that the answer is made of: the article's lane, the machine that counts most, judged."""
        timed = [
            one
            for one in self.edition.timed
            if one.verdict.lane == self.edition.article.lane and one.part.reason.code in _ON_ITS_MERITS
        ]
        own = [one for one in timed if not one.verdict.contributed] or timed
        machine = own[0].verdict.machine if own else None
        return [one for one in own if one.verdict.machine == machine]

    def machines(self) -> Html:
        """Return the GPUs that full-scale figures come from, by name, or words for none."""
        names: dict[str, str] = {}
        for one in self.edition.measured:
            environment = one.files[-1].file.environment
            # On a CPU full scale is the ruler's calibration, of which no figure here is.
            if one.scale == "full" and environment and environment.gpu:
                names[one.machine] = environment.gpu
        if not names:
            return prose(self.texts("home.no-gpu"))
        return join([join([escape(gpu), escape(f" ({name})")]) for name, gpu in names.items()], ", ")

    def speedups(self) -> Html:
        """Return the chart of speedups: a row a workload, a mark a lane."""
        headline = self._headline()
        if not headline:
            return element("p", prose(self.texts("home.chart-none")), class_="rk-none")
        machine = headline[0].verdict.machine
        timed = [
            one
            for one in self.edition.timed
            if one.verdict.machine == machine and one.part.reason.code in _ON_ITS_MERITS
        ]
        order = [self._row_name(one) for one in sorted(headline, key=_centre, reverse=True)]
        rows: list[charts.Row] = []
        for one in sorted(timed, key=lambda one: self.edition.lanes.index(one.verdict.lane)):
            interval, eager = one.part.interval, one.eager
            if interval:
                rows.append(
                    {
                        "row": self._row_name(one),
                        "lane": one.verdict.lane,
                        "low": interval.low,
                        "centre": interval.centre,
                        "high": interval.high,
                        "shown": _figure(one),
                        "eager": format_seconds(eager) if eager else "",
                    }
                )
        rows.sort(key=lambda row: order.index(str(row["row"])) if row["row"] in order else len(order))
        used = [lane for lane in self.edition.lanes if any(row["lane"] == lane for row in rows)]
        words = self._chart_words(rows="workload", x="speedup")
        return self._chart(
            "speedups",
            "home.chart-title",
            "home.chart-description",
            charts.speedups(rows, used, words),
            charts.table(
                [(str(r["row"]), str(r["lane"]), str(r["shown"]), str(r["eager"])) for r in rows],
                [self.texts(f"chart.{key}") for key in ("workload", "lane", "speedup", "eager")],
            ),
            local=any(one.verdict.local for one in timed),
        )

    def columns(self) -> Html:
        """Return what pays, what doesn't and what depends, each line with a link to its evidence."""
        if not self._headline():
            return self._decided()
        low, high = self.edition.criteria.no_difference
        found: dict[str, list[Html]] = {"pays": [], "does-not": [], "depends": []}
        for one in sorted(self._headline(), key=_centre, reverse=True):
            interval = one.part.interval
            if interval is None:
                continue
            within = low <= interval.low and interval.high <= high
            kind = "pays" if interval.low > high else "does-not" if interval.high < 1 or within else "depends"
            figure = join([lines.number(interval), escape(" "), self._to_claim(one), escape(" ")])
            found[kind].append(join([figure, self._marks([one.verdict]), self._earned_back(one)]))
        return element(
            "div",
            *(
                element(
                    "section",
                    element("h2", prose(self.texts(f"home.{kind}")), id=f"home-{kind}"),
                    element("ul", *(element("li", item) for item in items))
                    if items
                    else element("p", prose(self.texts(f"home.{kind}-none")), class_="rk-none"),
                )
                for kind, items in found.items()
            ),
            class_="rk-columns",
        )

    def _decided(self) -> Html:
        """Return the claims that are decided although no speedup counts yet, a line each."""
        decided = [
            claim
            for claim in self.edition.article.checked
            if self.edition.headline(claim.id).outcome in {"supported", "refuted"}
        ]
        if not decided:
            return NOTHING
        line = lines.Line(self.edition, self.texts, self.at)
        return join(
            [
                element("h2", prose(self.texts("home.decided")), id="home-decided"),
                element("ul", *(line(claim) for claim in decided), class_="rk-lines"),
            ]
        )

    def _earned_back(self, one: Timed) -> Html:
        """Return after how many calls a speedup has earned its own cold process's first call back."""
        first = self._first_call(one)
        if first is None or one.eager is None or one.compiled is None:
            return NOTHING
        gain = one.eager.centre - one.compiled.centre
        details = {"first": _seconds(first[0]), "loading": _seconds(first[1])}
        text = (
            self.texts("home.earned-back", calls=_round(sum(first) / gain), **details)
            if gain > 0
            else self.texts("home.never-earned-back", **details)
        )
        return element("span", prose(text), class_="rk-earned")

    def _first_call(self, one: Timed) -> tuple[float, float] | None:
        """Return the first call on empty caches, and the import of Inductor, of a process that the speedup rests on."""
        caches = {case.name: case.cache for e in self.edition.article.experiments for case in e.cases}
        for process in one.processes:
            if caches.get(process.case) == "cold" and FIRST_CALL in process.stored.file.measurements:
                return self._first(process)
        return None

    def _first(self, one: Observation) -> tuple[float, float]:
        """Return the first call and the import of Inductor of a process, in seconds."""
        measured = one.stored.file.measurements
        return measured[FIRST_CALL].samples[0], measured[LOADING].samples[0] if LOADING in measured else 0.0

    def _marks(self, verdicts: Iterable[Verdict]) -> Html:
        """Return the marks that figures resting on these verdicts must carry, each once."""
        marks = [lines.flags(self.texts, verdict) for verdict in verdicts]
        return join(list(dict.fromkeys(mark for mark in marks if mark)), " ")

    def tally(self) -> Html:
        """Return the verdicts on the article's own lane and machines as one bar, each part a link."""
        article = self.edition.article
        # A control has no verdict; what can't be tested has one.
        claims = [c for c in article.checked if c.bound.kind != "shown" or isinstance(c.quantity, Untestable)]
        verdicts = [self.edition.headline(claim.id) for claim in claims]
        counted: dict[Outcome, int] = {}
        local = {verdict.outcome for verdict in verdicts if verdict.local and self.edition.counts(verdict)}
        measured = sum(self.edition.counts(v) and v.outcome in DECIDED for v in verdicts)
        for verdict in verdicts:
            outcome: Outcome = (
                verdict.outcome if self.edition.counts(verdict) or verdict.outcome == "not-testable" else "not-measured"
            )
            counted[outcome] = counted.get(outcome, 0) + 1
        parts = [(outcome, counted[outcome]) for outcome in lines.SIGNS if counted.get(outcome)]
        names = ", ".join(article.machines)
        elsewhere = [v for v in verdicts if not self.edition.counts(v) and v.outcome in DECIDED and v.scale == "smoke"]
        return join(
            [
                element(
                    "ul",
                    *(
                        element(
                            "li",
                            link(
                                join(
                                    [
                                        element("span", escape(lines.SIGNS[outcome]), aria_hidden="true"),
                                        element("strong", escape(count)),
                                        prose(self.texts(f"outcome.{outcome}")),
                                        *([lines.flag(self.texts, "local")] if outcome in local else []),
                                    ],
                                    " ",
                                ),
                                self.at,
                                f"ledger.md#{outcome}",
                            ),
                            class_=f"rk-{outcome}",
                            style=f"flex-grow:{count}",
                        )
                        for outcome, count in parts
                    ),
                    class_="rk-tally",
                    aria_label=self.texts("home.tally"),
                ),
                element(
                    "p",
                    prose(
                        self.texts(
                            "home.tally-scope",
                            lane=article.lane,
                            machines=names,
                            count=len(verdicts),
                            measured=measured,
                        )
                    ),
                    *(
                        [
                            escape(" "),
                            prose(
                                self.texts(
                                    "home.tally-elsewhere",
                                    supported=sum(v.outcome == "supported" for v in elsewhere),
                                    refuted=sum(v.outcome == "refuted" for v in elsewhere),
                                )
                            ),
                        ]
                        if elsewhere
                        else []
                    ),
                    class_="rk-small",
                ),
                element(
                    "ul",
                    *(self._claim_line(claim) for claim in article.checked),
                    class_="rk-claims",
                    aria_label=self.texts("home.claims"),
                ),
            ]
        )

    def _claim_line(self, claim: Claim) -> Html:
        """Return a claim as one short line: chip, statement with a link, marks."""
        verdict = self.edition.headline(claim.id)
        return element(
            "li",
            lines.chip(self.texts, verdict.outcome),
            escape(" "),
            self.statement(claim.id),
            escape(" "),
            lines.flags(self.texts, verdict),
        )

    def measured(self) -> Html:
        """Return what was measured on what and when, and how each lane without anything is filled."""
        head = ("lane", "machine", "on", "torch", "cases", "when")
        keys = {"lane": "ledger.lane", "machine": "ledger.machine"}
        seen = {one.lane for one in self.edition.measured}
        rows = [
            *(self._measured_row(one) for one in self.edition.measured),
            *(self._unmeasured_row(lane, len(head)) for lane in self.edition.lanes if lane not in seen),
        ]
        return scroll(
            element(
                "table",
                element(
                    "thead",
                    element(
                        "tr",
                        *(
                            element(
                                "th",
                                prose(self.texts(keys.get(name, f"home.{name}"))),
                                scope="col",
                                class_="rk-number" if name == "cases" else None,
                            )
                            for name in head
                        ),
                    ),
                ),
                element("tbody", *rows),
                class_="rk-table rk-measured",
            )
        )

    def _unmeasured_row(self, lane: str, columns: int) -> Html:
        command = element("code", escape(f'nox -s "experiments({lane})"'))
        return element(
            "tr",
            element("th", escape(lane), scope="row"),
            element("td", prose(self.texts("home.not-yet")), escape(" "), command, colspan=columns - 1),
            class_="rk-not-measured",
        )

    def _measured_row(self, one: Measured) -> Html:
        newest = one.files[-1].file.environment
        cases = sum(stored.file.status == "complete" for stored in one.files)
        marks = [
            lines.flag(self.texts, name)
            for name, holds in (
                ("smoke", one.scale == "smoke"),
                ("local", one.local),
                ("contributed", one.contributed and one.scale == "full"),
            )
            if holds
        ]
        when = one.first if one.first == one.last else f"{one.first} \u2013 {one.last}"
        return element(
            "tr",
            element("th", escape(one.lane), scope="row"),
            element("td", element("span", escape(one.machine), class_="rk-nowrap"), escape(" "), join(marks, " ")),
            element("td", escape((newest.gpu or newest.cpu) if newest else "")),
            element("td", escape(newest.torch if newest else "")),
            element("td", escape(f"{cases} / {len(one.files)}"), class_="rk-number"),
            element("td", escape(when), class_="rk-nowrap"),
        )

    def damage(self) -> Html:
        """Return a line on damaged case files with a link to the list, or nothing where there are none."""
        count = len(self.edition.damaged)
        if not count:
            return NOTHING
        return element(
            "p",
            prose(self.texts("home.damage" if count == 1 else "home.damage-many", count=count)),
            escape(" "),
            link(prose(self.texts("home.damage-link")), self.at, "ledger.md#damaged"),
            class_="rk-damage",
            role="note",
        )

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
                        self._marks(verdicts),
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
            lines.sentence(
                self.texts, found, self.edition.headline(claim), checked=found in self.edition.article.checked
            ),
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

    def times(self, experiment: str) -> Html:
        """Return the chart of both absolute times of an experiment's cases, on the article's lane."""
        place = self._best_place()
        rows: list[charts.Row] = []
        local = False
        for one in self.edition.observations:
            file = one.stored.file
            here = (file.lane, file.machine, file.scale) == place and file.experiment == experiment
            if here and one.eager and one.compiled:
                local = local or one.stored.local
                rows.append(
                    {
                        "row": self._case_name(file.axes),
                        "eager": one.eager.centre,
                        "compiled": one.compiled.centre,
                        "shown": f"{format_seconds(one.eager)} / {format_seconds(one.compiled)}",
                    }
                )
        if not place or not rows:
            return element("p", prose(self.texts("chart.times-none", lane=self.edition.article.lane)), class_="rk-none")
        factor, unit = _unit(max(float(row["eager"]) for row in rows))
        scaled = [{**row, **{side: float(row[side]) / factor for side in ("eager", "compiled")}} for row in rows]
        return self._chart(
            "times",
            "chart.times-title",
            "chart.times-description",
            charts.pairs(scaled, self._chart_words(rows="workload", x="time"), unit),
            charts.table(
                [(str(row["row"]), *str(row["shown"]).split(" / ")) for row in rows],
                [self.texts(f"chart.{key}") for key in ("workload", "eager", "compiled")],
            ),
            local=local,
            lane=place[0],
            machine=place[1],
        )

    def first_calls(self, experiment: str) -> Html:
        """Return the chart of first calls, cold against warm, of an experiment on the article's lane."""
        place = self._best_place()
        files = [
            (stored, cache)
            for stored, cache in (self._first_call_files(*place) if place else [])
            if stored.file.experiment == experiment
        ]
        if not place or not files:
            return element("p", prose(self.texts("chart.first-none", lane=self.edition.article.lane)), class_="rk-none")
        return self.first_call_chart(
            files, "chart.first-title", "chart.first-description", lane=place[0], machine=place[1]
        )

    def earned_back(self, experiment: str, instead: str | None = None) -> Html:
        """Return after how many calls each case of an experiment has earned its first call on empty caches back.

        It is earned by being faster than eager, and the import of Inductor counts in; or than the compiled side of
        the case `instead`, whose own first call is saved.
        """
        caches = {case.name: case.cache for e in self.edition.article.experiments for case in e.cases}
        experiments = [e.id for e in self.edition.article.experiments]
        if experiment not in experiments:
            raise PlanError(unknown("experiment", experiment, experiments))
        if instead is not None and instead not in caches:
            raise PlanError(unknown("case", instead, caches))
        place = self._best_place()
        timed = [
            one
            for one in self.edition.observations
            if (one.stored.file.lane, one.stored.file.machine, one.stored.file.scale) == place
            and FIRST_CALL in one.stored.file.measurements
            and one.compiled
        ]
        other = next((one for one in timed if one.case == instead), None)
        rows: dict[str, tuple[str, ...]] = {}
        for one in timed:
            usual = other.compiled if other else None if instead else one.eager
            if (
                one.stored.file.experiment != experiment
                or caches.get(one.case) == "warm"
                or not (usual and one.compiled)
            ):
                continue
            first, saved = self._first(one), self._first(other) if other else (0.0, 0.0)
            gain = usual.centre - one.compiled.centre
            calls = _round(max(first[0] - saved[0] + (0 if other else first[1]), 0) / gain) if gain > 0 else None
            rows.setdefault(
                self._whole_name(one.stored.file.axes),
                (
                    format_seconds(usual),
                    format_seconds(one.compiled),
                    _seconds(first[0]),
                    calls or self.texts("earned.never"),
                ),
            )
        if not rows:
            return element("p", prose(self.texts("earned.none", lane=self.edition.article.lane)), class_="rk-none")
        return self._table(
            ("workload", "usual", "compiled", "first-call", "calls"),
            [(escape(name), *(escape(figure) for figure in figures)) for name, figures in rows.items()],
            keys={
                "workload": "chart.workload",
                "usual": "earned.instead" if instead else "chart.eager",
                "compiled": "chart.compiled",
                "first-call": "earned.first-call",
                "calls": "earned.calls",
            },
        )

    def first_call_chart(
        self, files: Sequence[tuple[Stored, str]], title: str, description: str, **details: str
    ) -> Html:
        """Return a chart of the first calls in these files; of several experiments, each under its name."""
        several = len({stored.file.experiment for stored, _ in files}) > 1
        rows: list[charts.Row] = [
            {
                "row": naming.listed(
                    self.texts,
                    [
                        self._case_name(stored.file.axes),
                        *([self.texts.name("experiment", stored.file.experiment)] if several else []),
                    ],
                ),
                "cache": cache,
                "process": str(stored.file.axes.get("process", stored.file.case)),
                "time": sample,
            }
            for stored, cache in files
            for sample in stored.file.measurements[FIRST_CALL].samples
        ]
        return self._chart(
            "first-calls",
            title,
            description,
            charts.first_calls(rows, self._chart_words(rows="workload", x="first-call", side="caches")),
            charts.table(
                [
                    (
                        str(row["row"]),
                        self.texts(f"chart.{row['cache']}"),
                        str(row["process"]),
                        f"{float(row['time']):.3g} s",
                    )
                    for row in rows
                ],
                [self.texts(f"chart.{key}") for key in ("workload", "caches", "process", "first-call")],
            ),
            local=any(stored.local for stored, _ in files),
            **details,
        )

    def _first_call_files(self, lane: str, machine: str, scale: str) -> list[tuple[Stored, str]]:
        """Return the current files with a first call, and on which caches each was made."""
        caches = {case.name: case.cache for e in self.edition.article.experiments for case in e.cases}
        return [
            (one.stored, caches[one.case])
            for one in self.edition.observations
            if (one.stored.file.lane, one.stored.file.machine, one.stored.file.scale) == (lane, machine, scale)
            and FIRST_CALL in one.stored.file.measurements
            and caches.get(one.case) in {"cold", "warm"}
        ]

    def _best_place(self) -> tuple[str, str, str] | None:
        """Return lane, machine and scale of the article's headline, or None where it was not measured."""
        for one in self.edition.measured:
            if one.lane == self.edition.article.lane and one.scale == "full":
                return one.lane, one.machine, one.scale
        return None

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
                    element("code", escape(f'nox -s "experiments({lane.id})"')),
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

    def _to_claim(self, one: Timed) -> Html:
        return link(escape(self._timed_name(one)), self.at, f"claims/{one.claim}.md")

    def _timed_name(self, one: Timed, between: str = "aside") -> str:
        """Return workload and precision, and the experiment of a speedup that these do not tell from another's."""
        named = self.texts.name("workload", one.workload)
        alike = [
            other for other in self.edition.timed if (other.workload, other.setting) == (one.workload, one.setting)
        ]
        words = [self.texts.name("precision", one.setting)] if one.setting else []
        if len({other.experiment for other in alike}) > 1:
            words.append(self.texts.name("experiment", one.experiment))
        return self.texts(f"list.{between}", first=named, second=naming.listed(self.texts, words)) if words else named

    def _row_name(self, one: Timed) -> str:
        return self._timed_name(one, "comma")

    def _gpu(self, one: Timed) -> str:
        """Return the GPU that a speedup was measured on, or the machine's name where the file has none."""
        environment = one.processes[0].stored.file.environment if one.processes else None
        return str((environment and environment.gpu) or one.verdict.machine)

    def _case_name(self, axes: Mapping[str, object]) -> str:
        return naming.listed(
            self.texts, [self.texts.name(axis, axes[axis]) for axis in ("workload", "precision") if axis in axes]
        )

    def _whole_name(self, axes: Mapping[str, object]) -> str:
        """Return what a case is called by all its axes but the process."""
        name = self._case_name(axes)
        for axis, value in axes.items():
            if axis not in {"workload", "precision", "process"}:
                name = self.texts("list.comma", first=name, second=self.texts.name(axis, value))
        return name

    def _chart_words(self, **roles: str) -> dict[str, str]:
        words = {
            key: self.texts(f"chart.{key}") for key in ("eager", "compiled", "lane", "side", "cold", "warm", "process")
        }
        return words | {role: self.texts(f"chart.{key}") for role, key in roles.items()}

    def _chart(
        self,
        id_: str,
        title_: str,
        description: str,
        spec: dict[str, object],
        table: Html,
        *,
        local: bool = False,
        **details: str,
    ) -> Html:
        chart = charts.Chart(
            id=id_,
            title=self.texts(title_, **details),
            description=self.texts(description),
            spec=spec,
            table=table,
            note=self._local_note() if local else "",
        )
        return charts.figure(chart, self.texts("chart.data"))

    def _local_note(self) -> str:
        return self.texts("verdict.named", name=self.texts("flag.local"), value=self.texts("flag.local-means"))

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


def _centre(one: Timed) -> float:
    return one.part.interval.centre if one.part.interval else math.nan


def _figure(one: Timed) -> str:
    interval = one.part.interval
    return lines.figured(interval) if interval else ""


def _seconds(time: float) -> str:
    return format_seconds(Interval(low=time, centre=time, high=time, unit="s"))


def _round(count: float) -> str:
    """Return a count to two figures, with its thousands parted: `12,000`."""
    return f"{int(float(f'{count:.1e}')):,}"


def _unit(longest: float) -> tuple[float, str]:
    return (1.0, "s") if longest >= 1 else (1e-3, "ms") if longest >= 1e-3 else (1e-6, "\u00b5s")  # noqa: PLR2004 -- SI


def _code(command: str) -> Html:
    return element("pre", element("code", escape(command)), class_="rk-command")
