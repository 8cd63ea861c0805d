"""What the page on the ruler shows: goals, traps, other timers, calibration, overhead, anchors.

A case is known by its experiment's kind and by what it measured, so that this knows no article.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from reportkit import ruler
from reportkit.claims import Each, Fact, Speedup
from reportkit.judge import Interval
from reportkit.lanes import measuring
from reportkit.plan import REFUSED
from reportkit.quantity import format_number, format_ratio, format_seconds, format_share
from reportkit.site import cases, charts, lines, naming
from reportkit.site.markup import NOTHING, Html, commanded, element, escape, fill, join, prose, put, scroll
from reportkit.statistics import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reportkit.judge import Observation, Outcome
    from reportkit.records import CaseFile, Stored
    from reportkit.ruler import Goal, Share, Timer
    from reportkit.site.edition import Edition, Measured
    from reportkit.site.texts import Texts

COPIED = {"full": 256 << 20, "smoke": 16 << 20}
"""Bytes that the anchor `copy` reads, and writes again, by scale."""

_CONFIDENCE = format_share(CONFIDENCE)
NAIVE = ("naive_eager", "naive_compiled")
BREAKS = "naive_graph_breaks"
_MET: dict[bool | None, Outcome] = {True: "supported", False: "refuted", None: "not-measured"}
_GOALS = ("coverage-aa", "coverage-known", "false-differences", "timers", "overhead")
"""What the page must have measured; `timers` stands for every goal about them."""


@dataclass(frozen=True)
class RulerPage:
    """The fragments of the page on the ruler in one language."""

    edition: Edition
    texts: Texts
    at: str

    # -- goals

    def goals(self) -> Html:
        """Return in one computed sentence which goals are missed, and which are not measured yet."""
        speaking = [one for one in self._places if not (one.contributed and one.scale == "full")]
        found = [(place, goal) for place in speaking for goal in self._goals(place)]
        missed = [self._missed(place, goal) for place, goal in found if goal.met is False]
        known = {_group(goal) for _, goal in found if goal.met is not None}
        unknown = [self.texts(f"goal.{name}") for name in _GOALS if name not in known]
        unknown += self._untried(self._places)  # Noise can be made on a CPU alone, whoever has one.
        fell = [
            self.texts.name("trap", one.stored.file.axes.get("trap", one.case))
            for place in speaking
            for one in self._seen(place)
            if self._fell(one)
        ]
        # Whoever measured them: other noise than the machine's own can be made on a CPU alone.
        full = [place for place in self._places if place.scale == "full" or place in speaking]
        odd = [named for place in full for named in self._odd_kinds(place)] if known & set(_GOALS[:2]) else []
        if not known:
            said = [prose(self.texts("goals.none"))]
        elif not missed and not unknown and not fell:
            said = [prose(self.texts("goals.all-met")), *self._odd(odd)]
        else:
            parts = (("goals.missed", missed), ("goals.fell", list(dict.fromkeys(fell))), ("goals.open", unknown))
            told = [
                (key, fill(self.texts.labels[key], goals=naming.listed(self.texts, names, "semicolon")))
                for key, names in parts
                if names
            ]
            # What is missed is said first, and what the pooled shares hide is missed too.
            said = [sentence for key, sentence in told if key == "goals.missed"]
            said += [*self._odd(odd), *(sentence for key, sentence in told if key != "goals.missed")]
        return element(
            "p", join(said, self.texts.between), class_=f"rk-goals{' rk-damage' if missed or odd else ''}", role="note"
        )

    def _odd(self, kinds: list[str]) -> list[Html]:
        """Return the sentence on kinds of noise that the pooled shares hide, where there are any."""
        if not kinds:
            return []
        low, high = (format_number(100 * end) for end in (ruler.AIMS.least_coverage, ruler.AIMS.most_coverage))
        wanted = self.texts("bound.between", low=low, high=high, unit=" %")
        return [
            fill(self.texts.labels["goals.odd"], wanted=wanted, kinds=naming.listed(self.texts, kinds, "semicolon"))
        ]

    def _odd_kinds(self, place: Measured) -> Iterable[str]:
        """Return each kind of noise whose own share is outside the goal, with its interval and what that tells."""
        for one in self._seen(place):
            file = one.stored.file
            if one.problem or file.status != "complete" or not ruler.is_calibration(file.measurements):
                continue
            known = ruler.odd_coverage(file.measurements)
            if known is None:
                continue
            share = ruler.coverage(file.measurements)
            yield self.texts(
                "goals.one-odd",
                truth=_ratio(ruler.truth_of(file.measurements)),
                noise=self.texts.name("noise", file.axes.get("noise", file.case)),
                share=f"{100 * share.value:.1f} %",
                ends=_ends(share),
                trials=str(share.of),
                known=self.texts("goals.odd-known" if known else "goals.odd-unknown"),
                place=self._where(place),
            )

    def _untried(self, places: Iterable[Measured]) -> list[str]:
        """Return what the benches were never tried on, by the axis that they vary, where they were tried at all."""
        benches = {e.id: e for e in self.edition.article.experiments if e.kind == "bench"}
        done = {one.case for place in places for one in self._seen(place) if one.stored.file.status == "complete"}
        untried = []
        for bench in benches.values():
            lost = [case for case in bench.cases if case.name not in done]
            if len(lost) < len(bench.cases):
                axis = list(bench.cases[0].axes)[-1]
                names = list(dict.fromkeys(self.texts.name(axis, case.axes[axis]) for case in lost))
                details = {"axis": self.texts(f"ruler.{axis}-axis"), "names": naming.listed(self.texts, names)}
                untried += [self.texts("goals.untried", **details)] if names else []
        return untried

    def _goals(self, place: Measured) -> list[Goal]:
        """Return every goal of a place that has anything to say about it."""
        benches = [one.stored.file for one in self._seen(place) if one.problem is None]
        overhead = ruler.overhead_goal(stored.file for stored in place.files)
        found = [*ruler.goals(benches), overhead]
        return [goal for goal in found if goal.value is not None or goal.met is not None]

    def _missed(self, place: Measured, goal: Goal) -> str:
        details = {"goal": self._goal_name(goal), "value": _goal_value(goal), "wanted": self._wanted(goal)}
        return self.texts("goals.one-missed", place=self._where(place), **details)

    def _where(self, place: Measured) -> str:
        marks = [self.texts(f"flag.{flag}") for flag in place.flags if flag != "local"]
        return naming.listed(self.texts, [place.lane, place.machine, *marks])

    def _goal_name(self, goal: Goal) -> str:
        kind, _, which = goal.id.partition("-")
        if kind == "fastest":
            return self.texts("goal.fastest", workload=self.texts.name("workload", which))
        if kind == "rival":
            workload = self.texts.name("workload", ruler.AIMS.launch_bound)
            return self.texts("goal.rival", timer=self._timer(which), workload=workload)
        return self.texts(f"goal.{goal.id}")

    def _wanted(self, goal: Goal) -> str:
        factor, unit = (1, "x") if _group(goal) == "timers" else (100, " %")
        low, high = ("" if end is None else format_number(end * factor) for end in (goal.least, goal.most))
        if low and high:
            return self.texts("bound.between", low=low, high=high, unit=unit)
        if low:
            return self.texts("bound.at-least", low=low, unit=unit)
        return self.texts("bound.at-most", high=high, unit=unit)

    def _goal_table(self, goals: Iterable[Goal]) -> Html:
        """Return goals with what was found, what was wanted, and whether that is met, in a word."""
        rows = [
            element(
                "tr",
                element("th", escape(self._goal_name(goal)), scope="row"),
                element("td", escape(_goal_value(goal)), class_="rk-number"),
                element("td", escape(self._wanted(goal)), class_="rk-number"),
                element("td", self._met(goal)),
            )
            for goal in goals
        ]
        return self._table(("goal", "goal-value", "goal-wanted", "goal-met"), rows) if rows else NOTHING

    def _met(self, goal: Goal) -> Html:
        word = {True: "goals.met", False: "goals.not-met", None: "goals.too-little"}[goal.met]
        return lines.mark(self.texts(word), _MET[goal.met])

    # -- traps

    def traps(self) -> Html:
        """Return each trap: what a naive timer says of it, what is true, and what ours says."""
        traps = {e.id for e in self.edition.article.experiments if e.kind == "trap"}
        head = ("trap", "naive", "truth", "ours", "raw")
        tables = []
        for place in self._places:
            seen = [one for one in self._seen(place) if one.stored.file.experiment in traps]
            rows = [self._trap(one) for one in seen]
            notes = [
                element("p", prose(self.texts(f"ruler.{note}")), class_="rk-small")
                for note, holds in (
                    ("stale-means", any(one.stale for one in seen)),
                    ("fell", any(self._fell(one) for one in seen)),
                )
                if holds
            ]
            if rows:
                tables.append((place, join([self._table(head, rows), self._misses(seen), *notes])))
        return self._folded(tables) or self._none("controls")

    def _fell(self, one: Observation) -> bool:
        """Whether a stale file has a difference where there is none: what it says is not hidden by not counting."""
        truth = self._bound(one.stored.file)
        if not one.stale or truth is None or one.speedup is None:
            return False
        return one.speedup.high < truth[0] or one.speedup.low > truth[1]

    def _trap(self, one: Observation) -> Html:
        file = one.stored.file
        value = file.axes.get("trap", file.case)
        return element(
            "tr",
            element("th", escape(self.texts.name("trap", value)), scope="row", class_="rk-name"),
            element("td", self._naive(file), class_="rk-number"),
            element("td", self._truth(file), class_="rk-number rk-truth"),
            element("td", self._ours(one), class_="rk-ours"),
            element("td", self._raw(one.stored)),
        )

    def _naive(self, file: CaseFile) -> Html:
        """Return what the naive timer says: its count of breaks where that is the trap, else its ratio."""
        if BREAKS in file.measurements:
            return prose(self.texts("ruler.breaks", count=f"{file.measurements[BREAKS].samples[0]:.0f}"))
        if not all(name in file.measurements for name in NAIVE):
            return escape("\u2013")
        eager, compiled = (median(file.measurements[name].samples) for name in NAIVE)
        return escape(_ratio(eager / compiled)) if compiled > 0 else escape("\u2013")

    def _truth(self, file: CaseFile) -> Html:
        """Return what is true by construction, as the claims have it: a ratio, or that there is nothing to compare."""
        bound = self._bound(file)
        if bound is None:
            return escape("\u2013")
        low, high = bound
        return escape(_ratio((low + high) / 2)) if low and high else prose(self.texts("ruler.not-comparable"))

    def _bound(self, file: CaseFile) -> tuple[float, float] | None:
        """Return the ends that a claim holds a case's speedup to, or zeros where it asks for a refusal instead."""
        for claim in self.edition.article.claims:
            parts = claim.quantity.parts.values() if isinstance(claim.quantity, Each) else (claim.quantity,)
            for part in parts:
                if not isinstance(part, Fact | Speedup) or part.where.experiment != file.experiment:
                    continue
                if any(file.axes.get(axis) != value for axis, value in part.where.axes.items()):
                    continue
                low, high = claim.bound.low, claim.bound.high
                if isinstance(part, Speedup) and low is not None and high is not None:
                    return low, high
                return 0.0, 0.0
        return None

    def _ours(self, one: Observation) -> Html:
        """Return what ours says: a refusal with its reason, an interval, or why there is neither."""
        file = one.stored.file
        finding = file.findings.get(REFUSED)
        marks = self._marks_of(one)
        if file.status != "complete":
            status = self.texts(f"status.{file.status}")
            shown = fill(self.texts.labels["verdict.named"], name=status, value=file.reason or "")
        elif finding and finding.holds:
            reason = str(finding.evidence.get("reason") or "").removeprefix("Refused: ").removeprefix("Recompiled: ")
            shown = put(self.texts.labels["ruler.refused"], reason=self._refusal(reason))
        elif one.speedup is not None:
            shown = lines.number(one.speedup)
        else:
            shown = lines.reason(self.texts, one.problem) if one.problem else escape("\u2013")
        return join([shown, marks], " ") if marks else shown

    def _refusal(self, reason: str) -> Html:
        """Return a known reason for a refusal in the page's language; another one as it is, which is English."""
        for key, pattern in _REFUSALS.items():
            if found := re.fullmatch(pattern, reason):
                known = {name: escape(text) for name, text in found.groupdict().items()}
                if "detail" in known:
                    known["detail"] = self._refusal(found["detail"])
                return put(self.texts.labels[f"refusal.{key}"], **known)
        return lines.recorded(self.texts, reason)

    def _misses(self, seen: Iterable[Observation]) -> Html:
        """Return how many intervals of equal work miss the true ratio, and how many of those are in the bound."""
        held = missed = inside = 0
        for one in seen:
            bound = self._bound(one.stored.file)
            if bound is None or not all(bound) or one.speedup is None:
                continue
            held += 1
            if not one.speedup.low <= sum(bound) / 2 <= one.speedup.high:
                missed += 1
                inside += bound[0] <= one.speedup.low and one.speedup.high <= bound[1]
        if not held:
            return NOTHING
        numbers = {"number": str(held), "missed": str(missed), "inside": str(inside)}
        return element("p", prose(self.texts("ruler.misses", **numbers)), class_="rk-small")

    # -- other timers

    def timers(self) -> Html:
        """Return, for each workload, what every timer reports and what it costs, and a chart of the cost."""
        tables = []
        chart = NOTHING
        for place in self._places:
            compared = [one for one in self._seen(place) if ruler.is_comparison(one.stored.file.measurements)]
            blocks = [self._comparison(one) for one in compared]
            if not blocks:
                continue
            races = [g for g in self._goals(place) if _group(g) == "timers"]
            chart = chart or self._timer_chart(place, compared)
            tables.append(
                (
                    place,
                    join(
                        [
                            self._goal_table(races),
                            self._readings(compared),
                            *blocks,
                            self._failed(self._seen(place), "workload"),
                        ]
                    ),
                )
            )
        return join([chart, self._folded(tables)]) if tables else self._none(None)

    def _comparison(self, one: Observation) -> Html:
        measurements = one.stored.file.measurements
        head = ("timer", "reported", "reading", "to-precision", "cost", "off-by", "own-error")
        rows = [
            element(
                "tr",
                element("th", escape(self._timer(timer.name)), scope="row"),
                element("td", self._reported(timer), class_="rk-number"),
                element("td", escape(_half(timer.half_width)), class_="rk-number"),
                element(
                    "td",
                    escape(_seconds(timer.seconds) if math.isfinite(timer.seconds) else "\u2013"),
                    class_="rk-number",
                ),
                element("td", escape(_seconds(timer.cost)), class_="rk-number"),
                element("td", escape(_signed(timer.bias)), class_="rk-number"),
                element("td", self._own_error(timer.error), class_="rk-number"),
            )
            for timer in ruler.timers(measurements)
        ]
        name = self.texts.name("workload", one.stored.file.axes.get("workload", one.case))
        truth = _ratio(ruler.truth_of(measurements))
        lead = fill(self.texts.labels["ruler.workload"], workload=name, truth=truth)
        return join(
            [
                element("p", lead, escape(" "), self._marks_of(one), escape(" "), self._raw(one.stored)),
                self._table(head, rows),
            ]
        )

    def _readings(self, compared: Iterable[Observation]) -> Html:
        """Return what the columns mean, and from how many readings they are made."""
        numbers = {t.repeats for one in compared for t in ruler.timers(one.stored.file.measurements)}
        least, most = min(numbers), max(numbers)
        number = str(least) if least == most else f"{least}\u2013{most}"
        return element(
            "p",
            prose(
                self.texts("ruler.readings", number=number, deviations=f"{ruler.NORMAL:.2f}", confidence=_CONFIDENCE)
            ),
            class_="rk-small",
        )

    def _reported(self, timer: Timer) -> Html:
        """Return the typical reading with its interval, and where it stands unless that is near the truth."""
        shown = lines.number(timer.ratio) if math.isfinite(timer.ratio.high) else escape(_ratio(timer.ratio.centre))
        if timer.standing == "near":
            return shown
        return join([shown, element("span", prose(self.texts(f"ruler.{timer.standing}")), class_="rk-of")], " ")

    def _own_error(self, error: float | None) -> Html:
        """Return a timer's own error bar; one of no width is none: the blocks of that reading were all alike."""
        if error is None:
            return escape("\u2013")
        return prose(self.texts("ruler.no-error")) if error <= 0 else escape(_half(error))

    def _timer_chart(self, place: Measured, compared: Sequence[Observation]) -> Html:
        rows: list[charts.Row] = [
            {
                "row": self._timer(timer.name),
                "workload": self.texts.name("workload", one.stored.file.axes.get("workload", one.case)),
                "time": float(f"{timer.seconds:.3g}"),
                "standing": self.texts(f"ruler.{timer.standing}"),
                "shown": _seconds(timer.seconds),
            }
            for one in compared
            for timer in ruler.timers(one.stored.file.measurements)
            if math.isfinite(timer.seconds)  # One reading does not say how long.
        ]
        words = {
            "rows": self.texts("ruler.timer"),
            "workload": self.texts("chart.workload"),
            "x": self.texts("ruler.chart-x", precision=format_share(ruler.AIMS.precision)),
            **{standing: self.texts(f"ruler.{standing}") for standing in ("near", "unknown", "off")},
        }
        chart = charts.Chart(
            id="timers",
            title=self.texts("ruler.chart-title", lane=place.lane, machine=place.machine),
            description=self.texts("ruler.chart-description"),
            spec=charts.timers(rows, words),
            table=charts.table(
                [tuple(str(row[key]) for key in ("row", "workload", "shown", "standing")) for row in rows],
                [words["rows"], words["workload"], words["x"], self.texts("ruler.truth")],
            ),
            note=self.texts("ruler.hollow", bias=format_share(ruler.AIMS.bias), confidence=_CONFIDENCE)
            + self._chart_marks(place),
        )
        return charts.figure(chart, self.texts)

    def _chart_marks(self, place: Measured) -> str:
        """Return the marks of a place and what they mean, as the end of a chart's note."""
        named = [
            self.texts("verdict.named", name=self.texts(f"flag.{flag}"), value=self.texts(f"flag.{flag}-means"))
            for flag in place.flags
        ]
        return f" {naming.listed(self.texts, named, 'semicolon')}" if named else ""

    def _timer(self, name: str) -> str:
        """Return what a timer is called; one that nobody knows by its own name."""
        return self.texts.labels.get(f"timer.{name}", name)

    # -- calibration

    def calibration(self) -> Html:
        """Return how often intervals hold the truth, by truth and noise, and whether that is enough."""
        head = (
            "true-ratio",
            "noise",
            "trials",
            "coverage",
            "off-by",
            "half-width",
            "false",
            "pairs",
            "trial-time",
            "raw",
        )
        tables = []
        for place in self._places:
            seen = self._seen(place)
            rows = [self._trials(one) for one in seen if ruler.is_calibration(one.stored.file.measurements)]
            if rows:
                goals = [goal for goal in self._goals(place) if _group(goal) in _GOALS[:3]]
                tables.append(
                    (place, join([self._goal_table(goals), self._table(head, rows), self._failed(seen, "noise")]))
                )
        return self._folded(tables) or self._none(None)

    def _trials(self, one: Observation) -> Html:
        file = one.stored.file
        measurements = file.measurements
        held, false = ruler.coverage(measurements), ruler.false_differences(measurements)
        noise = self.texts.name("noise", file.axes.get("noise", file.case))
        pairs, seconds = (measurements.get(name) for name in ("pairs", "seconds"))
        marks = self._marks_of(one)
        return element(
            "tr",
            element("th", escape(_ratio(ruler.truth_of(measurements))), escape(" "), marks, scope="row"),
            element("td", escape(noise)),
            element("td", escape(held.of), class_="rk-number"),
            element("td", _share(held), class_="rk-number"),
            element("td", escape(_signed(ruler.bias(measurements))), class_="rk-number"),
            element("td", escape(f"\u00b1{ruler.half_width(measurements):.2%}".replace("%", " %")), class_="rk-number"),
            element("td", _share(false) if false.of else escape("\u2013"), class_="rk-number"),
            element("td", escape(f"{median(pairs.samples):.0f}" if pairs else "\u2013"), class_="rk-number"),
            element("td", escape(_seconds(median(seconds.samples)) if seconds else "\u2013"), class_="rk-number"),
            element("td", self._raw(one.stored)),
        )

    # -- overhead

    def overhead(self) -> Html:
        """Return what share of the newest run's time was not spent on measuring, by machine and lane."""
        head = ("lane", "machine", "run-date", "cases", "overhead", "goal-wanted", "goal-met")
        rows = []
        behind = []
        for place in self._places:
            files = ruler.newest_run(stored.file for stored in place.files)
            goal = ruler.overhead_goal(files)
            if goal.value is not None:
                rows.append(
                    element(
                        "tr",
                        *self._place_cells(place),
                        element("td", escape(files[0].provenance.started[:10]), class_="rk-nowrap"),
                        element("td", escape(len(files)), class_="rk-number"),
                        element("td", element("strong", escape(_goal_value(goal))), class_="rk-number"),
                        element("td", escape(self._wanted(goal)), class_="rk-number"),
                        element("td", self._met(goal)),
                    )
                )
                behind.append(self._files(place, files))
        return join([self._table(head, rows), *behind]) if rows else self._none("controls")

    def _files(self, place: Measured, files: Sequence[CaseFile]) -> Html:
        """Return links to the files of a run, folded away: each has the seconds of its phases."""
        lane, machine = place.lane, place.machine
        names = {file.case for file in files}
        behind = [one for one in place.files if one.file.run == files[0].run and one.file.case in names]
        title = self.texts("ruler.run-files", lane=lane, machine=machine, number=str(len(behind)))
        links = [cases.raw(self.at, self.texts.above, one, one.file.case) for one in behind]
        listed = element("p", join(links, " "), class_="rk-small")
        return element("details", element("summary", prose(title)), listed, class_="rk-more", data_search_exclude=True)

    # -- anchors

    def anchors(self, machine: str | None = None) -> Html:
        """Return what every run measures besides, by machine and lane, and what it is good for.

        Of one machine only where its name is given, and then without what it is good for.
        """
        said = prose(self.texts("ruler.anchors-rule", share=format_share(self.edition.criteria.anchor_agreement)))
        rule = NOTHING if machine else element("p", said)
        found = [
            (place, one)
            for place in self._places
            if machine in {None, place.machine}
            for one in sorted(self.edition.stored, key=lambda one: one.file.provenance.started, reverse=True)
            if (one.file.lane, one.file.machine, one.file.scale) == (place.lane, place.machine, place.scale)
            and one.file.experiment == self.edition.article.anchors
            and one.file.status == "complete"
        ]
        if not found:
            return join([rule, self._none("controls")])
        known = [key.removeprefix("anchor.") for key in self.texts.labels if key.startswith("anchor.")]
        measured = {name for _, one in found for name in one.file.measurements}
        names = [*(name for name in known if name in measured), *sorted(measured - set(known))]
        rows = [
            element(
                "tr",
                *self._place_cells(place),
                *(element("td", escape(_anchor(one.file, name)), class_="rk-number") for name in names),
                element("td", escape(one.file.provenance.started[:16].replace("T", " ")), class_="rk-nowrap"),
                element("td", self._raw(one)),
            )
            for place, one in found
        ]
        titles = [self.texts.labels.get(f"anchor.{name}", name) for name in names]
        return join([rule, self._table(("lane", "machine", *titles, "run-date", "raw"), rows, set(titles))])

    # -- shared

    def _raw(self, stored: Stored) -> Html:
        return cases.raw(self.at, self.texts.above, stored)

    @functools.cached_property
    def _places(self) -> tuple[Measured, ...]:
        """Every lane, machine and scale, the article's own machine and lane first."""
        article, order = self.edition.article, self.edition.lanes
        return tuple(
            sorted(
                self.edition.measured,
                key=lambda one: (
                    one.contributed,
                    one.scale != "full",
                    one.lane != article.lane,
                    one.machine,
                    order.index(one.lane) if one.lane in order else len(order),
                ),
            )
        )

    def _seen(self, place: Measured) -> list[Observation]:
        """Return the current file of every case that is there, in plan order."""
        here = (place.lane, place.machine, place.scale)
        return [
            one
            for one in self.edition.observations
            if (one.stored.file.lane, one.stored.file.machine, one.stored.file.scale) == here
        ]

    def _failed(self, seen: Iterable[Observation], axis: str) -> Html:
        """Return a line for every bench with that axis that could not be measured, with its reason."""
        benches = {e.id for e in self.edition.article.experiments if e.kind == "bench"}
        lost = [one for one in seen if one.stored.file.experiment in benches and axis in one.stored.file.axes]
        return join(
            [
                element("p", lines.reason(self.texts, one.problem), class_="rk-small")
                for one in lost
                if one.problem and one.stored.file.status != "complete"
            ]
        )

    def _marks_of(self, one: Observation) -> Html:
        """Return what keeps a file from counting, where that is its age or its tree."""
        code = one.problem.code if one.problem else ""
        return lines.flag(self.texts, code) if code in {"stale", "dirty"} else NOTHING

    def _place_marks(self, place: Measured) -> Html:
        return lines.place_marks(self.texts, place)

    def _place_cells(self, place: Measured, one: Observation | None = None) -> list[Html]:
        marks = [self._place_marks(place), self._marks_of(one) if one else NOTHING]
        machine = element("span", escape(place.machine), class_="rk-nowrap")
        return [
            element("th", escape(place.lane), scope="row"),
            element("td", join([part for part in (machine, *marks) if part], " ")),
        ]

    def _folded(self, tables: list[tuple[Measured, Html]]) -> Html:
        """Return what each place has to show, folded away but for the first one's."""
        return join(
            [
                element(
                    "details",
                    element(
                        "summary",
                        prose(self.texts("claim.environment-of", lane=place.lane, machine=place.machine)),
                        escape(" "),
                        self._place_marks(place),
                    ),
                    shown,
                    class_="rk-more",
                    open=not number,
                )
                for number, (place, shown) in enumerate(tables)
            ]
        )

    def _none(self, names: str | None) -> Html:
        """Return honest words for nothing, and the command that fills it: a bench, or cases of a lane."""
        lane = self.edition.article.lane
        command = measuring(lane, rest=f"report -- {names}") if names else "nox -s bench report"
        return join([element("p", prose(self.texts("home.not-yet")), class_="rk-none"), commanded(command)])

    def _table(self, head: Sequence[str], rows: list[Html], named: Iterable[str] = ()) -> Html:
        """Return a table; a head is a label's key, or one of `named`, which stand as they are and are figures."""
        cells = []
        for key in head:
            own = key in named
            filled = {
                "to-precision": {"precision": format_share(ruler.AIMS.precision)},
                "reported": {"confidence": _CONFIDENCE},
            }
            text = escape(key) if own else prose(self.texts(f"ruler.{key}", **filled.get(key, {})))
            figures = "rk-number rk-truth" if key == "truth" else "rk-number" if own or key in _FIGURES else None
            cells.append(element("th", text, scope="col", class_=figures))
        return scroll(
            element(
                "table", element("thead", element("tr", *cells)), element("tbody", *rows), class_="rk-table rk-ruler"
            )
        )


_REFUSALS = {
    "profiler": "a profiler is on; it slows what is timed, and each side differently",
    "recompiled": r"(?P<number>\d+) graphs were compiled while steady state was timed",
    "switches": "the calls change torch's switches while they are timed: (?P<names>.*)",
    "not-followed": "after its inputs were changed in place, compiled did not follow eager: (?P<detail>.*)",
    "not-the-same": (
        "after timing, (?P<side>eager|compiled) returns something else than before it, "
        "so that its calls were not the same work"
    ),
    "no-graph": "no graph was captured, so that nothing was compiled",
    "not-close": "the compiled result is not close to eager's, and there is no fp64 copy to ask",
    "error": "the compiled error against fp64 is larger than eager's allows",
    "not-finite": "the compiled result has a NaN or an infinity, and eager's has none",
    "shapes": "the compiled result has other shapes than eager's",
    "types": "the compiled result has other types than eager's",
}
"""What the measuring side says when it refuses, as patterns, by label."""

_FIGURES = (
    "naive",
    "truth",
    "reported",
    "reading",
    "own-error",
    "cost",
    "to-precision",
    "trials",
    "coverage",
    "off-by",
    "half-width",
    "false",
    "pairs",
    "trial-time",
    "cases",
    "overhead",
    "goal-value",
    "goal-wanted",
)


def _group(goal: Goal) -> str:
    return "timers" if goal.id.startswith(("fastest-", "rival-")) else goal.id


def _goal_value(goal: Goal) -> str:
    if goal.value is None:
        return "\u2013"
    return _ratio(goal.value) if _group(goal) == "timers" else format_share(goal.value)


def _ratio(value: float) -> str:
    return format_ratio(Interval(low=value, centre=value, high=value))


def _seconds(value: float) -> str:
    return format_seconds(Interval(low=value, centre=value, high=value, unit="s"))


def _half(width: float) -> str:
    return f"\u00b1{format_share(width)}" if math.isfinite(width) else "\u2013"


def _share(share: Share) -> Html:
    """Return a share in percent with the interval of the true one."""
    figures = element("strong", escape(f"{100 * share.value:.1f} %"))
    return element(
        "span", figures, escape(" "), element("span", escape(_ends(share)), class_="rk-ends"), class_="rk-figure"
    )


def _ends(share: Share) -> str:
    """Return the ends of the interval of the true share in percent, rounded outwards."""
    low, high = share.interval
    return f"[{math.floor(1000 * low + 1e-6) / 10:.1f}, {math.ceil(1000 * high - 1e-6) / 10:.1f}]"


def _anchor(file: CaseFile, name: str) -> str:
    """Return the median of an anchor: a copy as what it moves, anything else as its time."""
    if name not in file.measurements:
        return "\u2013"
    seconds = median(file.measurements[name].samples)
    if name == "copy" and seconds > 0:
        return f"{format_number(float(f'{2 * COPIED[file.scale] / seconds / 1e9:.3g}'))} GB/s"
    return _seconds(seconds)


def _signed(share: float) -> str:
    """Return a share with its sign, to a hundredth of a percent: what is printed as nothing has none."""
    text = f"{abs(share):.2%}".replace("%", " %")
    sign = "" if text.startswith("0.00") else "\u2212" if share < 0 else "+"
    return sign + text
