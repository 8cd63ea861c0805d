"""The charts of pages in one language, with the rows and words that belong to them; and what they are counted from.

A chart is of one lane on one machine: the article's own where it was measured, else the first that was. Files that
do not count, such as stale ones, are in no chart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportkit.compare import captured
from reportkit.judge import Interval
from reportkit.lanes import measuring
from reportkit.plan import PlanError, unknown
from reportkit.quantity import format_seconds
from reportkit.site import charts, lines, naming
from reportkit.site.markup import Html, element, escape, join, link, prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reportkit.judge import Observation
    from reportkit.records import Stored
    from reportkit.site.edition import Edition, Measured, Timed
    from reportkit.site.texts import Texts

FIRST_CALL = "first_call"
"""The metric of a first compiled call in a case file."""
LOADING = "inductor_import"
"""The metric of the import of Inductor, which a process pays before its first compiled call."""


@dataclass(frozen=True)
class Figures:
    """The charts that a page in one language may ask for."""

    edition: Edition
    texts: Texts
    at: str = "index.md"
    """The page that they stand on."""

    # -- speedups

    def speedups(self, lane: str) -> Html:
        """Return the chart of a lane's speedups: a row a workload and precision, other lanes beside it, hollow."""
        chosen = self.edition.speedups(lane)
        machine = chosen[0].verdict.machine
        places = [*self.edition.article.families, *(self.family(one) for one in chosen)]
        rows = {
            _place(one): one
            for one in sorted(chosen, key=lambda one: (places.index(self.family(one)), -one.centre))
            if one.part.interval
        }
        beside = {
            (_place(one), other): one
            for other in self.edition.lanes
            for one in self.edition.speedups(other)
            if one.verdict.machine == machine
        }
        marks = [
            charts.Mark(
                row=self.timed_name(row, "comma"),
                group=self.texts.sentence(self.family_name(self.family(row))),
                lane=other,
                low=one.part.interval.low,
                centre=one.part.interval.centre,
                high=one.part.interval.high,
                shown=lines.figured(one.part.interval),
                eager=format_seconds(one.eager) if one.eager else "",
                chosen=other == lane,
            )
            for place, row in rows.items()
            for other in self.edition.lanes
            for one in [beside.get((place, other))]
            if one and one.part.interval
        ]
        return self._speedups(
            marks,
            f"speedups-{lane}",
            self.texts("home.chart-title", lane=lane, machine=machine),
            self.texts("home.chart-description"),
            local=any(one.verdict.local for one in rows.values()),
        )

    def compared(self, experiment: str) -> Html:
        """Return the chart of one experiment's speedups, a row a case, a mark a lane."""
        self._known(experiment)
        place = next((p for p in self._places() if self._steady(p, experiment)), None)
        if place is None:
            return self._none("chart.speedups-none", experiment)
        here = self._steady(place, experiment)
        rows = {one.case: self.whole_name(one.stored.file.axes) for one in here}
        told = dict(zip(rows, self._told_apart([(rows[one.case], one) for one in here]), strict=True))
        marks = [
            charts.Mark(
                row=name,
                group="",
                lane=other.lane,
                low=one.speedup.low,
                centre=one.speedup.centre,
                high=one.speedup.high,
                shown=lines.figured(one.speedup),
                eager=format_seconds(one.eager) if one.eager else "",
                chosen=other.lane == place.lane,
                told=told[case],
            )
            for case, name in rows.items()
            for other in self._lanes_of(place)
            for one in self._steady(other, experiment)
            if one.case == case and one.speedup
        ]
        return self._speedups(
            marks,
            f"compared-{experiment}",
            self.texts("chart.compared-title", lane=place.lane, machine=place.machine),
            self.texts("home.chart-description"),
            local=place.local,
        )

    def _speedups(self, marks: Sequence[charts.Mark], id_: str, title: str, description: str, *, local: bool) -> Html:
        used = [lane for lane in self.edition.lanes if any(mark.lane == lane for mark in marks)]
        words = self._words(rows="workload", x="speedup")
        chart = charts.Chart(
            id=id_,
            title=title,
            description=description,
            spec=charts.speedups(marks, used, words, narrow=False),
            narrow=charts.speedups(marks, used, words, narrow=True),
            table=charts.table(
                [
                    (
                        self.texts("list.aside", first=one.row, second=one.group) if one.group else one.told or one.row,
                        one.lane,
                        one.shown,
                        one.eager,
                    )
                    for one in marks
                ],
                [self.texts(f"chart.{key}") for key in ("workload", "lane", "speedup", "eager")],
            ),
            note=self._local_note() if local else "",
        )
        return charts.figure(chart, self.texts)

    def curve(self, name: str, sizes: Mapping[object, str]) -> Html:
        """Return the chart of speedup over sizes: `sizes` maps each to the case that has it, in the order to show.

        `name` is the axis in words, a label `chart.NAME`.

        Raises:
            PlanError: a case is unknown.
        """
        known = [case.name for experiment in self.edition.article.experiments for case in experiment.cases]
        for case in sizes.values():
            if case not in known:
                raise PlanError(unknown("case", case, known))
        chosen = next((place for place in self._places() if self._sizes(place, sizes)), None)
        if chosen is None:
            experiments = dict.fromkeys(case.partition(".")[0] for case in sizes.values())
            return self._none("chart.speedups-none", *experiments)
        found = {place.lane: {one.case: one for one in self._here(place)} for place in self._lanes_of(chosen)}
        rows: list[charts.Row] = [
            {
                "size": str(size),
                "lane": lane,
                "low": one.speedup.low,
                "centre": one.speedup.centre,
                "high": one.speedup.high,
                "shown": lines.figured(one.speedup),
                "eager": format_seconds(one.eager) if one.eager else "",
                "chosen": lane == chosen.lane,
            }
            for size, case in sizes.items()
            for lane in self.edition.lanes
            if (one := found.get(lane, {}).get(case)) and one.speedup
        ]
        used = [lane for lane in self.edition.lanes if any(row["lane"] == lane for row in rows)]
        return self._chart(
            f"curve-{name}",
            "chart.curve-title",
            "chart.curve-description",
            charts.curve(rows, used, self._words(x=name, y="speedup")),
            charts.table(
                [tuple(str(row[key]) for key in ("size", "lane", "shown", "eager")) for row in rows],
                [self.texts(f"chart.{key}") for key in (name, "lane", "speedup", "eager")],
            ),
            local=chosen.local,
            lane=chosen.lane,
            machine=chosen.machine,
            size=self.texts(f"chart.{name}"),
        )

    # -- times

    def times(self, experiment: str) -> Html:
        """Return the chart of both absolute times of an experiment's cases."""
        self._known(experiment)
        place = next((p for p in self._places() if self._steady(p, experiment)), None)
        if place is None:
            return self._none("chart.times-none", experiment)
        found = [
            (one, one.eager, one.compiled) for one in self._steady(place, experiment) if one.eager and one.compiled
        ]
        found.sort(key=lambda each: -each[1].centre)
        factor, unit = _unit(found[0][1].centre)
        rows: list[charts.Row] = [
            {
                "row": self.case_name(one.stored.file.axes),
                "eager": eager.centre / factor,
                "compiled": compiled.centre / factor,
                "shown": f"{format_seconds(eager)} / {format_seconds(compiled)}",
            }
            for one, eager, compiled in found
        ]
        named = self._told_apart([(str(row["row"]), one) for row, (one, _, _) in zip(rows, found, strict=True)])
        return self._chart(
            "times",
            "chart.times-title",
            "chart.times-description",
            charts.pairs(rows, self._words(rows="workload", x="time"), unit),
            charts.table(
                [(name, *str(row["shown"]).split(" / ")) for name, row in zip(named, rows, strict=True)],
                [self.texts(f"chart.{key}") for key in ("workload", "eager", "compiled")],
            ),
            local=any(one.stored.local for one, _, _ in found),
            lane=place.lane,
            machine=place.machine,
        )

    def first_calls(self, experiment: str) -> Html:
        """Return the chart of an experiment's first calls, cold against warm."""
        self._known(experiment)
        place = next((p for p in self._places() if self._first_call_files(p, experiment)), None)
        if place is None:
            return self._none("chart.first-none", experiment)
        files = self._first_call_files(place, experiment)
        return self.first_call_chart(
            files, "chart.first-title", "chart.first-description", lane=place.lane, machine=place.machine
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
                        self.case_name(stored.file.axes),
                        *([self.texts.name("experiment", stored.file.experiment)] if several else []),
                        *([self.texts("flag.wrong")] if lines.wrong(stored.file) else []),
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
            charts.first_calls(rows, self._words(rows="workload", x="first-call", side="caches")),
            charts.table(
                [
                    (
                        str(row["row"]),
                        self.texts(f"chart.{row['cache']}"),
                        self.texts.name("process", row["process"]),
                        f"{float(row['time']):.3g} s",
                    )
                    for row in rows
                ],
                [self.texts(f"chart.{key}") for key in ("workload", "caches", "process")]
                + [self.texts("earned.first-call")],
            ),
            local=any(stored.local for stored, _ in files),
            **details,
        )

    # -- what was captured

    def captured(self, experiment: str) -> Html:
        """Return how many graphs each case of an experiment captured and how many breaks it met, as a table."""
        self._known(experiment)
        for place in self._places():
            here = [one for one in self._here(place) if one.stored.file.experiment == experiment]
            counted = [(one, captured(one.stored.file)) for one in here]
            if any(graphs is not None for _, (graphs, _) in counted):
                named = self._told_apart([(self.whole_name(one.stored.file.axes), one) for one, _ in counted])
                rows = [
                    (name, *("\u2013" if one is None else str(one) for one in counts))
                    for name, (_, counts) in zip(named, counted, strict=True)
                ]
                head = [self.texts(key) for key in ("chart.workload", "cases.graphs", "cases.breaks")]
                about = self.texts("claim.environment-of", lane=place.lane, machine=place.machine)
                return join([element("p", prose(about), class_="rk-small"), charts.table(rows, head)])
        return self._none("chart.captured-none", experiment)

    # -- what a first call costs, and when it is earned back

    def earned_back(self, experiment: str, instead: str | None = None) -> Html:
        """Return after how many calls each case of an experiment has earned its first call on empty caches back.

        It is earned by being faster than eager, and the import of Inductor counts in; or than the compiled side of
        the case `instead`, whose own first call is saved. The chart is against eager in either case.
        """
        self._known(experiment)
        caches = self._caches
        if instead is not None and instead not in caches:
            raise PlanError(unknown("case", instead, caches))
        for place in self._places():
            timed = [one for one in self._here(place) if FIRST_CALL in one.stored.file.measurements and one.compiled]
            other = next((one for one in timed if one.case == instead), None)
            found = [
                one for one in timed if one.stored.file.experiment == experiment and caches.get(one.case) != "warm"
            ]
            if found and (other or not instead):
                return self._earned_back(place, experiment, found, other)
        return self._none("earned.none", experiment)

    def _earned_back(
        self, place: Measured, experiment: str, timed: Sequence[Observation], other: Observation | None
    ) -> Html:
        rows: dict[str, tuple[str, ...]] = {}
        drawn: dict[str, charts.Row] = {}
        for one in [*([other] if other else []), *timed]:
            usual = other.compiled if other else one.eager
            if not (usual and one.eager and one.compiled):
                continue
            name = self.texts("earned.instead") if one is other else self.whole_name(one.stored.file.axes)
            first, saved = self.first(one), self.first(other) if other else (0.0, 0.0)
            drawn.setdefault(
                name,
                {"row": name, "first": sum(first), "eager": one.eager.centre, "compiled": one.compiled.centre},
            )
            if one is other:
                continue
            gain = usual.centre - one.compiled.centre
            calls = rounded(max(first[0] - saved[0] + (0 if other else first[1]), 0) / gain) if gain > 0 else None
            rows.setdefault(
                name,
                (
                    format_seconds(usual),
                    format_seconds(one.compiled),
                    seconds(first[0]),
                    calls or self.texts("earned.never"),
                ),
            )
        head = ("chart.workload", "earned.instead" if other else "chart.eager", "chart.compiled")
        table = charts.table(
            [(name, *figures) for name, figures in rows.items()],
            [self.texts(key) for key in (*head, "earned.first-call", "earned.calls")],
        )
        chart = charts.Chart(
            id=f"earned-{experiment}",
            title=self.texts("earned.title", lane=place.lane, machine=place.machine),
            description=self.texts("earned.description"),
            spec=charts.earned_back(list(drawn.values()), self._words(rows="workload", x="calls", y="share")),
            table=table,
            note=self._local_note() if any(one.stored.local for one in timed) else "",
        )
        return charts.figure(chart, self.texts, folded=False)

    def calls_until_earned(self, one: Timed) -> float | None:
        """Return after how many calls a speedup has earned its own cold process's first call back; infinity for never.

        The import of Inductor counts in. None where no process that the speedup rests on started on empty caches.
        """
        first = self.first_call(one)
        if first is None or one.eager is None or one.compiled is None:
            return None
        gain = one.eager.centre - one.compiled.centre
        return sum(first) / gain if gain > 0 else float("inf")

    def first_call(self, one: Timed) -> tuple[float, float] | None:
        """Return the first call on empty caches, and the import of Inductor, of a process that the speedup rests on."""
        for process in one.processes:
            if self._caches.get(process.case) == "cold" and FIRST_CALL in process.stored.file.measurements:
                return self.first(process)
        return None

    def first(self, one: Observation) -> tuple[float, float]:
        """Return the first call and the import of Inductor of a process, in seconds."""
        measured = one.stored.file.measurements
        return measured[FIRST_CALL].samples[0], measured[LOADING].samples[0] if LOADING in measured else 0.0

    # -- names

    def family(self, one: Timed) -> str:
        """Return the kind of work that a speedup is of."""
        return self.edition.article.family(one.experiment)

    def family_name(self, family: str) -> str:
        """Return what a kind of work is called; one that is a single experiment by that one's name."""
        return self.texts.names.get("family", {}).get(family) or self.texts.name("experiment", family)

    def timed_name(self, one: Timed, between: str, words: Sequence[str] = ()) -> str:
        """Return workload and precision, and the experiment where these do not tell a speedup from one of its kind.

        `words` come before the precision; `between` is the label that joins them all to the workload.
        """
        named = self.texts.name("workload", one.workload)
        alike = {
            other.experiment
            for other in self.edition.timed
            if (self.family(other), other.workload, other.setting) == (self.family(one), one.workload, one.setting)
        }
        words = [*words, *([self.texts.name("precision", one.setting)] if one.setting else [])]
        words += [self.texts.name("experiment", one.experiment)] if len(alike) > 1 else []
        return self.texts(f"list.{between}", first=named, second=naming.listed(self.texts, words)) if words else named

    def case_name(self, axes: Mapping[str, object]) -> str:
        """Return what a case is called by its workload and precision."""
        return naming.listed(
            self.texts, [self.texts.name(axis, axes[axis]) for axis in ("workload", "precision") if axis in axes]
        )

    def whole_name(self, axes: Mapping[str, object]) -> str:
        """Return what a case is called by all its axes but the process."""
        name = self.case_name(axes)
        for axis, value in axes.items():
            if axis not in {"workload", "precision", "process"}:
                name = self.texts("list.comma", first=name, second=self.texts.name(axis, value))
        return name

    def _told_apart(self, named: Sequence[tuple[str, Observation]]) -> list[str]:
        """Return the names of rows, each with its process where several have one name."""
        counted = Counter(name for name, _ in named)
        return [
            self.texts("list.aside", first=name, second=self.texts.name("process", process))
            if counted[name] > 1 and (process := one.stored.file.axes.get("process"))
            else name
            for name, one in named
        ]

    # -- where

    def _known(self, experiment: str) -> None:
        experiments = [e.id for e in self.edition.article.experiments]
        if experiment not in experiments:
            raise PlanError(unknown("experiment", experiment, experiments))

    @property
    def _caches(self) -> dict[str, str]:
        return {case.name: case.cache for e in self.edition.article.experiments for case in e.cases}

    def _places(self) -> Iterator[Measured]:
        """Yield where anything was measured at full scale: the article's own lane first, then the others in order."""
        own = self.edition.article.lane
        yield from sorted(
            (one for one in self.edition.measured if one.scale == "full"),
            key=lambda one: (one.contributed, one.lane != own),
        )

    def _lanes_of(self, place: Measured) -> list[Measured]:
        """Return every lane of a place's machine."""
        return [one for one in self.edition.measured if (one.machine, one.scale) == (place.machine, place.scale)]

    def _here(self, place: Measured) -> list[Observation]:
        """Return a place's observations that count."""
        here = (place.lane, place.machine, place.scale)
        return [
            one
            for one in self.edition.observations
            if (one.stored.file.lane, one.stored.file.machine, one.stored.file.scale) == here and one.problem is None
        ]

    def _steady(self, place: Measured, experiment: str) -> list[Observation]:
        return [
            one
            for one in self._here(place)
            if one.stored.file.experiment == experiment and one.eager and one.compiled and one.speedup
        ]

    def _sizes(self, place: Measured, sizes: Mapping[object, str]) -> bool:
        """Return whether two of the sizes or more are measured here: one makes no curve."""
        return sum(one.case in sizes.values() and one.speedup is not None for one in self._here(place)) > 1

    def _first_call_files(self, place: Measured, experiment: str) -> list[tuple[Stored, str]]:
        """Return the files of a place with a first call, and on which caches each was made."""
        return [
            (one.stored, self._caches[one.case])
            for one in self._here(place)
            if one.stored.file.experiment == experiment
            and FIRST_CALL in one.stored.file.measurements
            and self._caches.get(one.case) in {"cold", "warm"}
        ]

    # -- shared

    def _none(self, key: str, *experiments: str) -> Html:
        """Return what stands where nothing that counts was measured: what is to come, and how to measure it."""
        command = measuring(self.edition.article.lane, rest=f"-- {' '.join(experiments)}")
        words = [
            prose(self.texts(key)),
            prose(self.texts("chart.fill")),
            element("code", escape(command)),
            link(prose(self.texts("chart.fill-how")), self.at, "method.md#timing"),
        ]
        return element("p", join(words, " "), class_="rk-none")

    def _words(self, **roles: str) -> dict[str, str]:
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
        return charts.figure(chart, self.texts)

    def _local_note(self) -> str:
        return self.texts("verdict.named", name=self.texts("flag.local"), value=self.texts("flag.local-means"))


def seconds(time: float) -> str:
    """Return one value in seconds with the unit that suits it."""
    return format_seconds(Interval(low=time, centre=time, high=time, unit="s"))


def rounded(count: float) -> str:
    """Return a count to two figures, with its thousands parted: `12,000`."""
    return f"{int(float(f'{count:.1e}')):,}"


def _place(one: Timed) -> tuple[str, str, str | None]:
    """Return what a speedup has in common with that of another lane."""
    return one.claim, one.part.label, one.part.setting


def _unit(longest: float) -> tuple[float, str]:
    return (1.0, "s") if longest >= 1 else (1e-3, "ms") if longest >= 1e-3 else (1e-6, "\u00b5s")  # noqa: PLR2004 -- SI
