"""The home page: the question, its answer in each lane, the verdicts in one bar, what was measured.

Every lane has a panel of its own with its answer, chart and columns. Which one is seen is the address's to say
(`#lane-2.15`), without a script: the others are hidden by the style sheet, and the default lane's comes last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from reportkit.claims import Spread
from reportkit.lanes import measuring
from reportkit.site import lines, naming
from reportkit.site.edition import DECIDED, Worth
from reportkit.site.figures import Figures, rounded, seconds
from reportkit.site.markup import NOTHING, Html, commanded, element, escape, fill, join, link, prose, put, scroll

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reportkit.claims import Claim
    from reportkit.judge import Verdict
    from reportkit.site.edition import Edition, Measured, Timed, Workload
    from reportkit.site.texts import Texts

MOST = 6
"""Lines of a column; the rest is on the ledger."""

_COLUMNS: tuple[Worth, ...] = ("pays", "does-not", "depends")


@dataclass(frozen=True)
class HomePage:
    """The fragments of the home page in one language."""

    edition: Edition
    texts: Texts
    at: str

    # -- the answer, lane by lane

    def answer(self) -> Html:
        """Return a panel a lane: its answer in one computed sentence, chart and columns, or honest words for none."""
        answered = [lane for lane in self.edition.lanes if self.edition.speedups(lane)]
        own = self.edition.article.lane
        default = own if own in answered or not answered else answered[0]
        others = [lane for lane in self.edition.lanes if lane != default] if answered else []
        return join([self._panel(lane, answered, first=lane == default) for lane in (*others, default)])

    def _panel(self, lane: str, answered: Sequence[str], *, first: bool) -> Html:
        timed = self.edition.speedups(lane)
        sentence = element(
            "p", self._answer(lane), escape(" "), self._marks(one.verdict for one in timed), class_="rk-answer"
        )
        if timed:
            rest = [Figures(self.edition, self.texts).speedups(lane), self._columns(lane), self._on_ledger(timed[0])]
        else:
            rest = [self._fill(lane), *([self._meanwhile()] if first else [])]
        return element(
            "section",
            self._picker(lane, answered) if answered else NOTHING,
            sentence,
            *rest,
            id=f"lane-{lane}",
            class_=f"rk-lane{' rk-lane-first' if first else ''}",
            aria_label=f"PyTorch {lane}",
        )

    def _picker(self, lane: str, answered: Sequence[str]) -> Html:
        """Return the lanes as links to their panels, this one marked."""
        return element(
            "nav",
            element("span", escape("PyTorch")),
            *(
                element(
                    "a",
                    escape(one),
                    href=f"#lane-{one}",
                    aria_current="true" if one == lane else None,
                    class_=None if one in answered else "rk-unanswered",
                    title=None if one in answered else self.texts("home.unanswered"),
                )
                for one in self.edition.lanes
            ),
            class_="rk-pick",
            aria_label=self.texts("home.pick"),
        )

    def _answer(self, lane: str) -> Html:
        timed = self.edition.speedups(lane)
        if timed:
            return self._answered(lane, timed)
        here = [one for one in self.edition.measured if one.lane == lane]
        # On a CPU full scale is the ruler's calibration, which answers nothing.
        full = [one for one in here if one.scale == "full" and _gpu(one)]
        machines = naming.listed(self.texts, list(dict.fromkeys(one.machine for one in full or here)))
        if full:
            waiting = sum(
                verdict.reason.code == "stale"
                for verdict in self.edition.verdicts
                if verdict.lane == lane and verdict.machine in {one.machine for one in full}
            )
            key = "answer.stale" if waiting else "answer.undecided"
            return fill(self.texts.labels[key], machine=machines, lane=lane, count=waiting)
        if any(one.scale == "smoke" for one in here):
            return fill(self.texts.labels["answer.smoke"], machine=machines)
        return fill(self.texts.labels["answer.lane-nothing" if self.edition.measured else "answer.nothing"], lane=lane)

    def _answered(self, lane: str, timed: Sequence[Timed]) -> Html:
        best, worst = timed[0], timed[-1]
        threshold = self.edition.criteria.no_difference[1]
        gains = [one.part.interval is not None and one.part.interval.low > threshold for one in timed]
        details = {
            "machine": self._gpu_name(best),
            "lane": lane,
            "best_name": self._named(best, timed),
            "best": _figure(best),
            "worst_name": self._named(worst, timed),
            "worst": _figure(worst),
        }
        if len(timed) == 1:
            first = Figures(self.edition, self.texts).first_call(best)
            if first is not None:
                key = "answer.one-yes" if all(gains) else "answer.one-no"
                return fill(self.texts.labels[key], first=seconds(first[0]), **details)
        key = f"answer.{'yes' if all(gains) else 'mixed' if any(gains) else 'no'}"
        if len({one.workload for one in timed}) == 1 and all(gains):
            # One workload under several settings is one workload: no answer to what was asked in general.
            key, details = "answer.same-yes", details | {"workload": self.texts.name("workload", best.workload)}
        return fill(self.texts.labels[key], **details)

    def _named(self, one: Timed, among: Sequence[Timed]) -> str:
        """Return what a speedup is of: workload, kind of work where there are several, precision."""
        figures = Figures(self.edition, self.texts)
        families = {figures.family(other) for other in among}
        words = [figures.family_name(figures.family(one))] if len(families) > 1 else []
        return figures.timed_name(one, "aside", words)

    def _fill(self, lane: str) -> Html:
        return join([element("p", prose(self.texts("answer.fill"))), commanded(measuring(lane, rest="report"))])

    # -- columns

    def _columns(self, lane: str) -> Html:
        """Return what pays, what doesn't and what depends, each line with links to its evidence."""
        found: dict[Worth, list[Html]] = {kind: [] for kind in _COLUMNS}
        machine = self.edition.speedups(lane)[0].verdict.machine
        found["depends"] += [
            self._spread(claim, verdict)
            for claim in self.edition.article.checked
            if isinstance(claim.quantity, Spread)
            and claim.bound.low is not None
            and (verdict := self._verdict(claim, lane, machine))
            and verdict.outcome == "supported"
        ]
        for workload in self.edition.worth(lane):
            found[workload.worth].append(self._line(workload))
        return element(
            "div", *(self._column(kind, found[kind], lane, machine) for kind in _COLUMNS), class_="rk-columns"
        )

    def _column(self, kind: Worth, items: list[Html], lane: str, machine: str | None) -> Html:
        shown = MOST if len(items) > MOST + 1 else len(items)  # To hide a single one would take as much room.
        more = len(items) - shown
        heading = self.texts(f"home.{kind}")
        return element(
            "section",
            element(
                "h2",
                prose(heading),
                *([escape(" "), element("span", escape(len(items)), class_="rk-of")] if items else []),
                id=f"home-{kind}-{lane}",
            ),
            element("ul", *(element("li", item) for item in items[:shown]))
            if items
            else element("p", prose(self.texts(f"home.{kind}-none")), class_="rk-none"),
            element("p", self._ledger(self.texts("home.more", count=more), lane=lane, machine=machine))
            if more > 0
            else NOTHING,
        )

    def _line(self, workload: Workload) -> Html:
        """Return a workload as a line: its smallest and largest speedup, kind of work, when it is earned back."""
        figures = Figures(self.edition, self.texts)
        most, least = workload.timed[0], workload.timed[-1]
        name = self.texts.name("workload", workload.name)
        if most is least:
            setting = self.texts.name("precision", most.setting) if most.setting else ""
            value = join(
                [
                    self._evidence(most),
                    escape(" "),
                    element("span", escape(setting), class_="rk-of") if setting else NOTHING,
                ]
            )
        else:
            value = put(self.texts.labels["home.from-to"], low=self._at(least), high=self._at(most))
        small = [self.texts.sentence(figures.family_name(workload.family))]
        small += [earned] if (earned := self._earned_back(workload)) else []
        return join(
            [
                element("span", escape(name), class_="rk-what"),
                escape(" "),
                value,
                escape(" "),
                self._marks(one.verdict for one in workload.timed),
                element("span", prose(" \u00b7 ".join(small)), class_="rk-earned"),
            ]
        )

    def _at(self, one: Timed) -> Html:
        """Return a speedup with the precision that it is at."""
        setting = element("span", escape(self.texts.name("precision", one.setting or "")), class_="rk-of")
        return join([self._evidence(one, short=True), escape(" "), setting]) if one.setting else self._evidence(one)

    def _evidence(self, one: Timed, *, short: bool = False) -> Html:
        """Return a speedup as a link to the page of the claim that it is evidence for; `short` without its interval."""
        interval = one.part.interval
        if interval is None:
            return NOTHING
        figure = (
            element("strong", escape(lines.figured(interval).split("\u00a0")[0])) if short else lines.number(interval)
        )
        return link(figure, self.at, f"claims/{one.claim}.md", title=lines.figured(interval))

    def _earned_back(self, workload: Workload) -> str:
        figures = Figures(self.edition, self.texts)
        found = [(one, calls) for one in workload.timed if (calls := figures.calls_until_earned(one)) is not None]
        if not found:
            return ""
        firsts = sorted(first[0] for one, _ in found if (first := figures.first_call(one)))
        shown = self._range([seconds(time) for time in firsts])
        counts = sorted(calls for _, calls in found)
        if math.isinf(counts[0]):
            return self.texts("home.never-earned-back", first=shown)
        if math.isinf(counts[-1]):
            return self.texts("home.not-always-earned-back", first=shown, calls=rounded(counts[0]))
        return self.texts("home.earned-back", first=shown, calls=self._range([rounded(one) for one in counts]))

    def _range(self, values: Sequence[str]) -> str:
        """Return the first and the last of some sorted values, or the one that both are."""
        low, high = values[0], values[-1]
        return low if low == high else self.texts("home.range", low=low, high=high)

    def _spread(self, claim: Claim, verdict: Verdict) -> Html:
        """Return a claim of something that the gain depends on as a line."""
        statement = prose(self.texts.claims[claim.id].statement)
        return join(
            [
                link(statement, self.at, f"claims/{claim.id}.md"),
                escape(" "),
                self._marks([verdict]),
                element("span", lines.value(self.texts, verdict, claim), class_="rk-earned"),
            ]
        )

    def _verdict(self, claim: Claim, lane: str, machine: str | None) -> Verdict | None:
        return next((v for v in self.edition.of(claim.id, lane) if v.machine == machine and v.scale == "full"), None)

    def _on_ledger(self, one: Timed) -> Html:
        """Return the links from a lane's figures to all that is behind them, and to other machines' figures."""
        lane, machine = one.verdict.lane, one.verdict.machine
        links = [self._ledger(self.texts("home.all-verdicts", lane=lane, machine=machine), lane=lane, machine=machine)]
        links += [
            self._ledger(self.texts("home.other-machine", machine=other), lane=lane, machine=other)
            for other in dict.fromkeys(
                m.machine for m in self.edition.measured if m.lane == lane and m.scale == "full" and _gpu(m)
            )
            if other != machine
        ]
        links.append(link(prose(self.texts("home.rule")), self.at, "method.md#home"))
        return element("p", join(links, " \u00b7 "), class_="rk-small")

    def _ledger(self, text: str, **wanted: str | None) -> Html:
        """Return a link to the rows of the ledger that are wanted."""
        query = urlencode({key: value for key, value in wanted.items() if value})
        return link(prose(text), self.at, f"ledger.md?{query}")

    # -- while there is no answer

    def _meanwhile(self) -> Html:
        """Return what is known although no speedup counts yet: decided claims, and what needs no measuring."""
        decided = [
            claim
            for claim in self.edition.article.checked
            if self.edition.headline(claim.id).outcome in {"supported", "refuted"}
        ]
        # What contradicts the article first: that is what a reader can't guess.
        decided.sort(key=lambda claim: self.edition.headline(claim.id).outcome != "refuted")
        line = lines.Line(self.edition, self.texts, self.at)
        found = []
        if decided:
            found += [
                element("h2", prose(self.texts("home.decided")), id="home-decided"),
                element("ul", *(line(claim) for claim in decided[:MOST]), class_="rk-lines"),
            ]
        if len(decided) > MOST:
            more = self.texts("home.more", count=len(decided) - MOST)
            found.append(element("p", self._ledger(more, lane=self.edition.article.lane)))
        article = link(prose(self.texts("home.article")), self.at, "article/index.md")
        method = link(prose(self.texts("home.method")), self.at, "method.md")
        found.append(element("p", put(self.texts.labels["home.meanwhile"], article=article, method=method)))
        return join(found)

    # -- verdicts

    def tally(self) -> Html:
        """Return the verdicts on the article's own lane and machines as one bar, each part a link."""
        article = self.edition.article
        verdicts = [self.edition.headline(claim.id) for claim in self.edition.judged]
        measured = sum(self.edition.counts(v) and v.outcome in DECIDED for v in verdicts)
        elsewhere = [v for v in verdicts if not self.edition.counts(v) and v.outcome in DECIDED and v.scale == "smoke"]
        scope = [
            prose(
                self.texts(
                    "home.tally-scope",
                    lane=article.lane,
                    machines=naming.listed(self.texts, list(article.machines)),
                    count=len(verdicts),
                    measured=measured,
                )
            )
        ]
        if elsewhere:
            scope.append(
                prose(
                    self.texts(
                        "home.tally-elsewhere",
                        supported=sum(v.outcome == "supported" for v in elsewhere),
                        refuted=sum(v.outcome == "refuted" for v in elsewhere),
                    )
                )
            )
        by_section = link(prose(self.texts("home.by-section")), self.at, "article/index.md")
        return join(
            [
                lines.tally(self.texts, self.at, self.edition.tally(verdicts), self.texts("home.tally")),
                element("p", join([*scope, by_section], " "), class_="rk-small"),
            ]
        )

    # -- what was measured

    def machines(self) -> Html:
        """Return the GPUs that full-scale figures come from, by name, or words for none."""
        names = {one.machine: gpu for one in self.edition.measured if one.scale == "full" and (gpu := _gpu(one))}
        if not names:
            return prose(self.texts("home.no-gpu"))
        each = [self.texts("list.aside", first=gpu, second=name) for name, gpu in names.items()]
        return escape(naming.listed(self.texts, each))

    def measured(self) -> Html:
        """Return what was measured on what and when, a line a machine, and how each lane without anything is filled."""
        groups: dict[tuple[str, str], list[Measured]] = {}
        for one in self.edition.measured:
            groups.setdefault((one.machine, one.scale), []).append(one)
        seen = {one.lane for one in self.edition.measured}
        unmeasured = [lane for lane in self.edition.lanes if lane not in seen]
        rows = [self._machine_row(group) for group in groups.values()]
        head = ("machine", "on", "torch", "cases", "when")
        keys = {"machine": "ledger.machine"}
        table = element(
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
        return join(
            [
                scroll(table) if rows else NOTHING,
                *(
                    element(
                        "p",
                        element("strong", escape(lane)),
                        escape(" "),
                        prose(self.texts("home.not-yet")),
                        escape(" "),
                        element("code", escape(measuring(lane))),
                        class_="rk-small",
                    )
                    for lane in unmeasured
                ),
            ]
        )

    def _machine_row(self, group: Sequence[Measured]) -> Html:
        first = group[0]
        newest = first.files[-1].file.environment
        # All are of one machine and scale, and differ in whether they were kept.
        marked = max(group, key=lambda one: one.local)
        order = sorted(group, key=lambda one: self.edition.lanes.index(one.lane))
        return element(
            "tr",
            element(
                "th",
                element("span", escape(first.machine), class_="rk-nowrap"),
                escape(" "),
                lines.place_marks(self.texts, marked),
                scope="row",
            ),
            element("td", escape((newest.gpu or newest.cpu) if newest else "")),
            element("td", join([self._lane_of(one) for one in order], self.texts("list.comma", first="", second=""))),
            element(
                "td",
                escape(
                    f"{sum(stored.file.status == 'complete' for one in group for stored in one.files)}"
                    f" / {sum(len(one.files) for one in group)}"
                ),
                class_="rk-number",
            ),
            element("td", escape(_days(group)), class_="rk-nowrap"),
        )

    def _lane_of(self, one: Measured) -> Html:
        """Return a lane's link to its rows on the ledger, with the version that was measured."""
        query = urlencode({"lane": one.lane, "machine": one.machine})
        environment = one.files[-1].file.environment
        version = f" ({environment.torch})" if environment else ""
        return element(
            "span",
            link(escape(one.lane), self.at, f"ledger.md?{query}"),
            element("span", escape(version), class_="rk-of"),
            class_="rk-nowrap",
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

    # -- shared

    def _marks(self, verdicts: Iterable[Verdict]) -> Html:
        """Return the marks that figures resting on these verdicts must carry, each once."""
        return marks(self.texts, verdicts)

    def _gpu_name(self, one: Timed) -> str:
        """Return the GPU that a speedup was measured on, or the machine's name where the file has none."""
        environment = one.processes[0].stored.file.environment if one.processes else None
        return str((environment and environment.gpu) or one.verdict.machine)


def marks(texts: Texts, verdicts: Iterable[Verdict]) -> Html:
    """Return the marks that figures resting on these verdicts must carry, each once."""
    found = [lines.flags(texts, verdict) for verdict in verdicts]
    return join(list(dict.fromkeys(mark for mark in found if mark)), " ")


def _gpu(one: Measured) -> str | None:
    environment = one.files[-1].file.environment
    return environment.gpu if environment else None


def _days(group: Sequence[Measured]) -> str:
    first, last = min(one.first for one in group), max(one.last for one in group)
    return first if first == last else f"{first} \u2013 {last}"


def _figure(one: Timed) -> str:
    return lines.figured(one.part.interval) if one.part.interval else ""
