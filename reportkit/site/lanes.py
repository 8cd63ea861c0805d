"""The pages of lanes: one that lists them and every pair of them, and one for each.

A lane's page says what is in it, how to measure it, what its verdicts are, and what each of its cases took.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportkit import lanes
from reportkit.site import cases, lines, naming, tables
from reportkit.site.markup import NOTHING, Html, commanded, element, escape, fill, join, link, prose, put, scroll
from reportkit.site.pages import (
    Page,
    head,
    in_order,
    section_words,
    verdict_columns,
    verdict_filters,
    verdict_row,
)
from reportkit.site.tables import Cell, Column, Filter, Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reportkit.judge import Observation, Outcome, Verdict
    from reportkit.lanes import Lane
    from reportkit.plan import Case, Section
    from reportkit.records import Environment
    from reportkit.site.edition import Edition, Measured
    from reportkit.site.texts import Texts

INDEX = "lanes/index.md"
MACHINES = "machines/index.md"
_VERDICT = ("verdict", "claim", "machine", "drawing", "value", "bound")
"""What the table of a lane's verdicts shows: what the ledger does, but for the lane and the section."""
_MOST_PLACES = 4
"""Columns of the table of a lane's stack that say what was found where it was measured."""
_OF_THE_LOCK = {
    "cuda": re.compile(r"nvidia-cuda-runtime(-cu\d+)?"),
    "cudnn": re.compile(r"nvidia-cudnn-cu\d+"),
    "triton": re.compile(r"triton"),
}
"""What moves with torch, by the package that has it."""


def page_of(lane: str) -> str:
    """Return the page of a lane."""
    return f"lanes/{lane}.md"


def pair_page(baseline: str, candidate: str) -> str:
    """Return the page that holds two lanes against each other."""
    return f"compare/{baseline}-to-{candidate}.md"


def machine_anchor(machine: str) -> str:
    """Return where a machine stands on the page of machines."""
    return f"machine-{machine}"


def generated(edition: Edition, texts: Texts, above: str) -> list[Page]:
    """Return the page of all lanes and the page of each; `above` leads from the language's root to the site's."""
    known = lanes.lanes(edition.project)
    return [
        Page(path=INDEX, text=_Index(edition, texts, known).text()),
        *(Page(path=page_of(lane.id), text=_LanePage(edition, texts, lane, above).text()) for lane in known),
    ]


def places(edition: Edition, lane: str) -> list[Measured]:
    """Return where a lane was measured: the article's own machines at full scale first."""
    return [one for one in edition.measured if one.lane == lane]


def days(texts: Texts, place: Measured) -> str:
    """Return the day, or the first and the last one, on which a place was measured."""
    return place.first if place.first == place.last else texts("lanes.range", low=place.first, high=place.last)


def tally_of(edition: Edition, lane: str) -> dict[Outcome, tuple[int, bool]]:
    """Return how many of the article's claims have each outcome in a lane, and whether any rests on local files.

    A claim that speaks of another lane is left out.
    """
    here = [edition.of(claim.id, lane)[0] for claim in edition.judged]
    return edition.tally(verdict for verdict in here if verdict.reason.code != "see-lane")


def apart(texts: Texts, at: str) -> Html:
    """Return in a sentence why figures of two machines are not to be held against each other, with a link to why."""
    more = link(prose(texts("machines.why")), at, f"{MACHINES}#apart")
    return put(texts.labels["machines.apart-short"], more=more)


# -- all of them


@dataclass(frozen=True)
class _Index:
    edition: Edition
    texts: Texts
    known: Sequence[Lane]

    def text(self) -> str:
        """Return the page's Markdown: what each lane is, and every pair."""
        title = self.texts("lanes.title")
        written = [
            head(title, element("h1", prose(title)), ("toc", "navigation")),
            element("p", prose(self.texts("lanes.lead"))),
            self._table(),
            f"## {self.texts('lanes.pairs')} {{#pairs}}",
            element("p", prose(self.texts("lanes.pairs-lead"))),
            self._pairs(),
            element("p", self._machines(), class_="rk-small"),
        ]
        return "\n\n".join(written) + "\n"

    def _table(self) -> Html:
        heads = ("lane", "torch", "cuda", "python", "measured", "verdicts")
        rows = [
            element(
                "tr",
                element("th", link(escape(lane.id), INDEX, page_of(lane.id)), scope="row"),
                element("td", escape(lane.torch or self.texts("method.newest"))),
                element("td", escape(_pins(lane, self.edition).get("cuda", cases.NONE))),
                element("td", escape(_python(self.texts, lane)), class_="rk-nowrap"),
                element("td", self._measured(lane)),
                element("td", self._verdicts(lane)),
            )
            for lane in self.known
        ]
        titles = [element("th", prose(self.texts(f"lanes.{key}")), scope="col") for key in heads]
        return scroll(
            element(
                "table",
                element("thead", element("tr", *titles)),
                element("tbody", *rows),
                class_="rk-table rk-stack",
            )
        )

    def _measured(self, lane: Lane) -> Html:
        found = places(self.edition, lane.id)
        if not found:
            command = element("code", escape(lanes.measuring(lane.id, rest="report")), class_="rk-nowrap")
            return join([prose(self.texts("home.not-yet")), command], " ")
        each = [
            element(
                "li",
                element("span", escape(naming.listed(self.texts, [place.machine, place.last])), class_="rk-nowrap"),
                escape(" "),
                lines.place_marks(self.texts, place),
            )
            for place in found
        ]
        return element("ul", *each)

    def _verdicts(self, lane: Lane) -> Html:
        counted = tally_of(self.edition, lane.id)
        return join(
            [
                element("span", lines.mark(f"{count} {self.texts(f'outcome.{outcome}')}", outcome), class_="rk-nowrap")
                for outcome in lines.SIGNS
                if (count := counted.get(outcome, (0, False))[0])
            ],
            " ",
        )

    def _pairs(self) -> Html:
        """Return a table with a link for every pair: the older lane at the row, the newer one at the column."""
        ids = self.edition.lanes
        heads = [element("th", prose(self.texts("lanes.from-to")), scope="col")]
        heads += [element("th", escape(lane), scope="col") for lane in ids[1:]]
        rows = [
            element(
                "tr",
                element("th", escape(one), scope="row"),
                *(
                    element("td", self._pair(one, other) if place >= number else NOTHING)
                    for place, other in enumerate(ids[1:])
                ),
            )
            for number, one in enumerate(ids[:-1])
        ]
        return scroll(
            element(
                "table",
                element("thead", element("tr", *heads)),
                element("tbody", *rows),
                class_="rk-table rk-pairs",
            )
        )

    def _pair(self, one: str, other: str) -> Html:
        compared = self.edition.comparisons[one, other]
        found = [(each.machine, len(each.rows)) for each in compared if each.rows]
        said = [self.texts("lanes.compared", machine=machine, count=count) for machine, count in found]
        return join(
            [
                link(prose(self.texts("lanes.pair", one=one, other=other)), INDEX, pair_page(one, other)),
                *(element("span", escape(line), class_="rk-words") for line in said or [self.texts("lanes.no-pair")]),
            ]
        )

    def _machines(self) -> Html:
        return put(
            self.texts.labels["lanes.machines"],
            machines=link(prose(self.texts("machines.title")), INDEX, MACHINES),
        )


# -- one of them


def _python(texts: Texts, lane: Lane) -> str:
    return texts("lanes.range", low=lane.python[0], high=lane.python[1])


def _pins(lane: Lane, edition: Edition) -> dict[str, str]:
    """Return what a lane pins, by the name that pages have for it: `cuda`, `cudnn`, `triton`, and its packages."""
    pinned = lanes.pinned(lane, edition.project)
    found = {
        key: version
        for key, pattern in _OF_THE_LOCK.items()
        for package, version in pinned.items()
        if pattern.fullmatch(package)
    }
    return {**{name: pinned[name] for name in lanes.asked(lane.id, edition.project) if name in pinned}, **found}


@dataclass(frozen=True)
class _LanePage:
    edition: Edition
    texts: Texts
    lane: Lane
    above: str

    @property
    def at(self) -> str:
        return page_of(self.lane.id)

    @functools.cached_property
    def places(self) -> list[Measured]:
        return places(self.edition, self.lane.id)

    def text(self) -> str:
        """Return the page's Markdown: what is known first, what it is and how it is measured after."""
        title = self.texts("lanes.one", lane=self.lane.id)
        blocks: dict[str, list[Html]] = {"verdicts": [], "cases": []}
        if self.places:
            blocks = {"verdicts": self._verdicts(), "cases": self._cases()}
        blocks |= {"stack": self._stack(), "measure": self._measure()}
        used = {key: found for key, found in blocks.items() if found}
        above = element("p", link(prose(self.texts("lanes.title")), self.at, INDEX), class_="rk-above")
        written: list[str] = [
            head(title, join([above, element("h1", prose(title))]), ("toc", "navigation")),
            *self._lead(list(used)),
        ]
        for key, found in used.items():
            written += [f"## {self.texts(f'lanes.{key}-of')} {{#{key}}}", *found]
        return "\n\n".join(written) + "\n"

    def _lead(self, sections: list[str]) -> list[Html]:
        torch = self.lane.torch or self.texts("method.newest")
        found = [element("p", prose(self.texts("lanes.is", torch=torch, python=_python(self.texts, self.lane))))]
        if self.places:
            found.append(element("ul", *(self._place(place) for place in self.places)))
            if len({place.machine for place in self.places}) > 1:
                found.append(element("p", apart(self.texts, self.at), class_="rk-small"))
        else:
            found += [
                element("p", prose(self.texts("lanes.unmeasured", lane=self.lane.id)), class_="rk-none"),
                commanded(lanes.measuring(self.lane.id, rest="report")),
            ]
        others = [other for other in self.edition.lanes if other != self.lane.id]
        order = self.edition.lanes.index
        pairs = [sorted((self.lane.id, other), key=order) for other in others]
        links = [
            link(prose(self.texts("lanes.pair", one=one, other=other)), self.at, pair_page(one, other))
            for one, other in pairs
        ]
        on_page = [element("a", prose(self.texts(f"lanes.{key}-of")), href=f"#{key}") for key in sections]
        ways = [
            join([prose(self.texts("lanes.on-page")), join(on_page, " \u00b7 ")], " "),
            join([prose(self.texts("lanes.compare")), join(links, " \u00b7 ")], " "),
        ]
        return [*found, element("p", join(ways, "<br/>"), class_="rk-ways")]

    def _place(self, place: Measured) -> Html:
        """Return one machine that the lane was measured on: when, how much, and on what."""
        planned = set(self._planned(place))
        complete = planned & {one.file.case for one in place.files if one.file.status == "complete"}
        said = fill(
            self.texts.labels["lanes.place"],
            when=days(self.texts, place),
            cases=len(complete),
            planned=len(planned),
        )
        return element(
            "li",
            link(escape(place.machine), self.at, f"{MACHINES}#{machine_anchor(place.machine)}"),
            escape(" "),
            lines.place_marks(self.texts, place),
            escape(" "),
            said,
        )

    def _planned(self, place: Measured) -> list[str]:
        """Return the cases that a run of this lane measures at that scale, whatever is named besides."""
        return [
            case.name
            for experiment in self.edition.article.experiments
            if experiment.kind != "bench" and experiment.lane in {None, self.lane.id}
            for case in experiment.cases
            if place.scale in case.scales
        ]

    # -- what is in it, and how it is measured

    def _stack(self) -> list[Html]:
        """Return what the lane pins, and what was found where it was measured."""
        pins = _pins(self.lane, self.edition)
        environments = self._environments()
        packages = [name for name in lanes.asked(self.lane.id, self.edition.project) if name != "torch"]
        rows = [self._component("torch", self.lane.torch or self.texts("method.newest"), environments)]
        rows += [self._component(key, pins.get(key), environments) for key in ("cuda", "cudnn", "triton")]
        rows.append(self._component("python", _python(self.texts, self.lane), environments))
        rows += [self._component(name, pins.get(name), environments) for name in packages]
        titles = [prose(self.texts("lanes.component")), prose(self.texts("lanes.pinned"))]
        titles += [prose(self.texts("lanes.found", machine=machine)) for machine in environments]
        return [
            element("p", prose(self.texts("lanes.stack-lead" if self.lane.torch else "lanes.stack-nightly"))),
            scroll(
                element(
                    "table",
                    element("thead", element("tr", *(element("th", title, scope="col") for title in titles))),
                    element("tbody", *rows),
                    class_="rk-table rk-stack",
                )
            ),
        ]

    def _environments(self) -> dict[str, Environment]:
        """Return the newest environment on each machine that the lane was measured on."""
        found: dict[str, Environment] = {}
        for place in self.places:
            files = sorted(place.files, key=lambda one: one.file.provenance.started, reverse=True)
            told = [one.file.environment for one in files if one.file.environment]
            if told and len(found) < _MOST_PLACES:
                found.setdefault(place.machine, told[0])
        return found

    def _component(self, name: str, pinned: str | None, environments: Mapping[str, Environment]) -> Html:
        known = f"environment.{name}" in self.texts.labels
        title = prose(self.texts(f"environment.{name}")) if known else element("code", escape(name))
        seen = [
            getattr(environment, name) if known else environment.packages.get(name)
            for environment in environments.values()
        ]
        return element(
            "tr",
            element("th", title, scope="row"),
            element("td", escape(pinned or self.texts("lanes.moves"))),
            *(element("td", escape(one or cases.NONE)) for one in seen),
        )

    def _measure(self) -> list[Html]:
        lane = self.lane
        found = [
            element("p", prose(self.texts("lanes.measure-lead", lane=lane.id))),
            commanded(lanes.measuring(lane.id, rest="report")),
            element(
                "p",
                prose(
                    self.texts(
                        "lanes.size",
                        download=f"{lane.download_gb:g} GB",
                        installed=f"{lane.installed_gb:g} GB",
                        minutes=lane.minutes,
                        speed=lanes.LINE,
                        lane=lane.id,
                    )
                ),
            ),
            element("p", prose(self.texts("lanes.plan", lane=lane.id))),
            commanded(lanes.measuring(lane.id, rest="-- --plan")),
        ]
        if lane.kind == "nightly":
            found += [
                element("p", prose(self.texts("lanes.pin-nightly"))),
                commanded(f"REPORTKIT_NIGHTLY=VERSION {lanes.measuring(lane.id, rest='report')}"),
            ]
        return found

    # -- verdicts

    def _verdicts(self) -> list[Html]:
        label = self.texts("lanes.tally", lane=self.lane.id)
        bar = lines.tally(self.texts, self.at, tally_of(self.edition, self.lane.id), label, lane=self.lane.id)
        machines = naming.listed(self.texts, list(self.edition.article.machines))
        scope = self.texts("lanes.tally-scope", lane=self.lane.id, machines=machines)
        rows = [
            self._verdict(section, verdict)
            for section in in_order(self.edition)
            for claim in section.claims
            for verdict in self.edition.shown(claim.id)
            if verdict.lane == self.lane.id and verdict.reason.code != "see-lane"
        ]
        columns = verdict_columns(self.texts, _VERDICT)
        filters = [one for one in verdict_filters(self.edition, self.texts) if one.key != "lane"]
        table = tables.table(
            self.texts,
            columns,
            rows,
            filters,
            file=f"verdicts-{self.lane.id}",
            name="verdicts",
            more=self.texts.labels["lanes.more-verdicts"],
            class_="rk-ledger rk-lane-verdicts",
        )
        return [bar, element("p", prose(scope), class_="rk-small"), cases.unsearched(table)]

    def _verdict(self, section: Section, verdict: Verdict) -> Row:
        claim = self.edition.claims[verdict.claim]
        minor = verdict != self.edition.of(claim.id, self.lane.id)[0]
        return verdict_row(self.edition, self.texts, self.at, section, verdict, _VERDICT, minor=minor)

    # -- cases

    def _cases(self) -> list[Html]:
        found: list[Html] = [element("p", prose(self.texts("lanes.cases-lead")), class_="rk-small")]
        for number, place in enumerate(self.places):
            seen = self._seen(place)
            title = [escape(place.machine), lines.place_marks(self.texts, place)]
            found.append(element("h3", join([one for one in title if one], " "), id=f"cases-{number}"))
            found.append(self._case_table(place, seen, "" if not number else place_key(place)))
            found += self._missing(place, seen)
        return found

    def _seen(self, place: Measured) -> list[Observation]:
        """Return the current file of every case that is there: sections in reading order, the ruler's last."""
        here = (place.lane, place.machine, place.scale)
        order = {section.id: number for number, section in enumerate(in_order(self.edition))}
        found = [
            one
            for one in self.edition.observations
            if (one.stored.file.lane, one.stored.file.machine, one.stored.file.scale) == here
        ]
        return sorted(found, key=lambda one: order[one.stored.file.section])

    def _case_table(self, place: Measured, seen: Sequence[Observation], name: str) -> Html:
        word = {key: self.texts(f"cases.{key}") for key in ("case", "status", "first", "caches", "captured")}
        columns = [
            Column(title=word["case"], key="case"),
            Column(title=word["status"], key="status"),
            *(cases.time(self.texts, self.texts(f"chart.{side}"), side) for side in ("eager", "compiled")),
            Column(
                title=self.texts("claim.speedup"),
                key="speedup",
                figures=True,
                numbers=tables.ends(self.texts, self.texts("claim.speedup")),
            ),
            Column(
                title=word["first"], key="first", figures=True, numbers=(self.texts("cases.in-s", title=word["first"]),)
            ),
            Column(title=word["caches"], key="caches"),
            cases.memory_column(self.texts, "", "memory"),
            cases.graphs_column(self.texts, word["captured"], "graphs"),
            Column(title=self.texts("claim.date"), key="date"),
            Column(title=self.texts("claim.raw")),
        ]
        caches = [(one, self.texts(f"cases.{one}")) for one in ("cold", "warm", "shared")]
        states = [(one, self.texts(f"cases.{one}")) for one in ("counts", "stale", "dirty", "failed", "problem")]
        filters = [
            Filter(key="section", title=self.texts("ledger.section"), words=section_words(self.edition, self.texts)),
            Filter(key="state", title=word["status"], words=states, reveals=True),
            Filter(key="caches", title=word["caches"], words=caches),
        ]
        table = tables.table(
            self.texts,
            columns,
            [self._case(one) for one in seen],
            filters,
            file=f"{self.lane.id}-{place_key(place)}",
            name=name,
            more=self.texts.labels["lanes.more-cases"],
            class_="rk-cases",
        )
        return cases.unsearched(table)

    def _case(self, one: Observation) -> Row:
        file = one.stored.file
        planned = self._plan[file.case]
        caches = planned.caches(file.scale)
        code = one.problem.code if one.problem else ""
        state = code if code in {"stale", "dirty", "failed"} else "problem" if code else "counts"
        timed = one.eager is not None or one.first_call is not None
        return Row(
            cells=(
                cases.name(self.texts, file.case, planned.axes, cases.marks(self.texts, one.stored, code)),
                self._status(one, state),
                tables.figure(one.eager),
                tables.figure(one.compiled),
                tables.figure(one.speedup),
                cases.first_call(one.first_call),
                cases.caches(self.texts, caches, one.first_call),
                cases.memory(file),
                cases.graphs(file),
                Cell(shown=escape(file.provenance.started[:10]), class_="rk-nowrap"),
                Cell(shown=cases.raw(self.at, self.above, one.stored)),
            ),
            filed={
                "section": str(self.edition.article.section_of(file.experiment).number),
                "state": state,
                "caches": caches if one.first_call is not None else "",
            },
            minor=not timed and state == "counts",
        )

    @functools.cached_property
    def _plan(self) -> Mapping[str, Case]:
        return {case.name: case for experiment in self.edition.article.experiments for case in experiment.cases}

    def _status(self, one: Observation, state: str) -> Cell:
        """Return whether a file counts; if not, why; and how many of its findings hold."""
        file = one.stored.file
        said = [prose(self.texts(f"cases.{state}"))]
        if one.problem is not None:
            said.append(element("span", cases.why(self.texts, one.problem), class_="rk-words"))
        said += [how] if (how := cases.how_wrong(self.texts, file)) else []
        if file.findings:
            held = sum(found.holds for found in file.findings.values())
            counted = self.texts("cases.findings", held=held, all=len(file.findings))
            said.append(element("span", prose(counted), class_="rk-words"))
        return Cell(shown=join(said, " "), class_="rk-status")

    def _missing(self, place: Measured, seen: Sequence[Observation]) -> list[Html]:
        """Return the cases of the plan that have no file there, folded away."""
        there = {one.case for one in seen}
        missing = [name for name in self._planned(place) if name not in there]
        if not missing:
            return []
        summary = self.texts("lanes.missing", count=len(missing), machine=place.machine)
        names = [element("li", element("code", escape(name))) for name in missing]
        return [
            element(
                "details",
                element("summary", prose(summary)),
                commanded(lanes.measuring(self.lane.id, rest="report -- --resume")),
                element("ul", *names, class_="rk-missing"),
                class_="rk-more",
                data_search_exclude=True,
            )
        ]


def place_key(place: Measured) -> str:
    """Return what a place is called in an address and a file's name."""
    return place.machine if place.scale == "full" else f"{place.machine}-{place.scale}"
