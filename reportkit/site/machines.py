"""The page of machines: what each is, whether it speaks for this edition, and what was measured on it, run by run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportkit.lanes import measuring
from reportkit.site import cases, lines
from reportkit.site.lanes import MACHINES, days, machine_anchor, page_of
from reportkit.site.markup import NOTHING, Html, commanded, element, escape, fill, join, link, prose, scroll
from reportkit.site.pages import Page, head
from reportkit.site.ruler import RulerPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reportkit.records import Stored
    from reportkit.site.edition import Edition, Measured
    from reportkit.site.texts import Texts

_MOST_RUNS = 60
"""Runs of one machine that are listed, the newest; the raw files have all."""
_MOST_VALUES = 6
"""Values of one fact that are listed."""
_FACTS = ("gpu", "gpu_id", "driver", "cpu", "cores", "kernel", "compiler")
_RUNS = ("run", "lane", "date", "files", "torch", "commit")


def generated(edition: Edition, texts: Texts, above: str) -> list[Page]:  # noqa: ARG001 -- as every page's maker
    """Return the page of machines."""
    return [Page(path=MACHINES, text=_Machines(edition, texts).text())]


@dataclass(frozen=True)
class _Machines:
    edition: Edition
    texts: Texts

    def text(self) -> str:
        """Return the page's Markdown."""
        title = self.texts("machines.title")
        measured = list(dict.fromkeys(place.machine for place in self.edition.measured))
        own = [machine for machine in self.edition.article.machines if machine not in measured]
        machines = sorted([*measured, *own], key=self._order)
        written = [
            head(title, element("h1", prose(title)), ("toc", "navigation")),
            element("p", prose(self.texts("machines.lead"))),
            *([self._list(machines)] if len(machines) > 1 else []),
            f"## {self.texts('machines.why')} {{#apart}}",
            *(element("p", prose(self.texts(f"machines.apart-{number}"))) for number in (1, 2, 3)),
        ]
        for machine in machines:
            written += self._machine(machine)
        return "\n\n".join(written) + "\n"

    def _order(self, machine: str) -> tuple[int, str]:
        known = self.edition.article.machines
        return (known.index(machine) if machine in known else len(known), machine)

    def _list(self, machines: Sequence[str]) -> Html:
        items = [
            element(
                "li",
                element("a", escape(machine), href=f"#{machine_anchor(machine)}"),
                escape(" "),
                prose(self.texts(self._standing(machine))),
            )
            for machine in machines
        ]
        return element("ul", *items)

    def _standing(self, machine: str) -> str:
        return "machines.counts" if machine in self.edition.article.machines else "machines.contributed"

    def _places(self, machine: str) -> list[Measured]:
        return [place for place in self.edition.measured if place.machine == machine]

    def _machine(self, machine: str) -> list[str]:
        """Return what there is to say of one machine."""
        places = self._places(machine)
        found: list[str] = [element("h2", escape(machine), id=machine_anchor(machine))]
        found.append(element("p", prose(self.texts(f"{self._standing(machine)}-means"))))
        if not places:
            lane = self.edition.article.lane
            return [
                *found,
                element("p", prose(self.texts("home.not-yet")), class_="rk-none"),
                commanded(measuring(lane, rest="report")),
            ]
        files = sorted(
            (stored for place in places for stored in place.files), key=lambda one: one.file.provenance.started
        )
        found += [self._facts(files), self._measured(places)]
        found += [element("h3", prose(self.texts("machines.runs"))), *self._runs(files)]
        anchors = RulerPage(self.edition, self.texts, MACHINES).anchors(machine)
        good_for = link(prose(self.texts("machines.good-for")), MACHINES, "ruler.md#anchors")
        return [
            *found,
            element("h3", prose(self.texts("machines.anchors"))),
            element("p", good_for, class_="rk-small"),
            anchors,
        ]

    def _facts(self, files: Sequence[Stored]) -> Html:
        """Return what the machine is, as its files tell; where they differ, all that they tell, the newest first."""
        told = [one.file.environment for one in reversed(files) if one.file.environment]
        rows = []
        for name in _FACTS:
            seen = list(dict.fromkeys(str(fact) for one in told if (fact := getattr(one, name)) is not None))
            if name == "gpu_id" and len(seen) > 1:
                seen = [self.texts("machines.several", count=len(seen))]
            if seen:
                shown = self._several(seen)
                rows.append(self._fact(prose(self.texts(f"environment.{name}")), shown))
        notes = list(dict.fromkeys(note for one in told for note in one.notes))
        if notes:
            rows.append(self._fact(prose(self.texts("environment.notes")), self._several(notes)))
        table = element("table", element("tbody", *rows), class_="rk-table rk-environment rk-stack")
        return scroll(table)

    def _several(self, seen: Sequence[str]) -> Html:
        """Return the first few of the values that a fact had."""
        shown = [escape(one, 300) for one in seen[:_MOST_VALUES]]
        more = len(seen) - len(shown)
        return join([*shown, *([prose(self.texts("machines.more", count=more))] if more else [])], "<br/>")

    def _fact(self, title: Html, shown: Html) -> Html:
        return element("tr", element("th", title, scope="row"), element("td", shown))

    def _measured(self, places: Sequence[Measured]) -> Html:
        """Return a line for each lane and scale: when, in how many runs, how many cases, with a link to its page."""
        items = []
        for place in places:
            runs = len({one.file.run for one in place.files})
            complete = len({one.file.case for one in place.files if one.file.status == "complete"})
            name = (
                link(prose(self.texts("lanes.one", lane=place.lane)), MACHINES, page_of(place.lane))
                if place.lane in self.edition.lanes
                else escape(place.lane)
            )
            items.append(
                element(
                    "li",
                    name,
                    escape(" "),
                    lines.place_marks(self.texts, place),
                    escape(" "),
                    fill(self.texts.labels["machines.place"], when=days(self.texts, place), runs=runs, cases=complete),
                )
            )
        return element("ul", *items)

    def _runs(self, files: Sequence[Stored]) -> list[Html]:
        """Return every run of the machine, the newest first: lane, day, files, torch, commit."""
        runs: dict[tuple[str, str, str], list[Stored]] = {}
        for stored in reversed(files):
            runs.setdefault((stored.file.run, stored.file.lane, stored.file.scale), []).append(stored)
        shown = list(runs.values())[:_MOST_RUNS]
        titles = [
            element(
                "th",
                prose(self.texts(f"machines.{key}")),
                scope="col",
                class_="rk-number" if key == "files" else None,
            )
            for key in _RUNS
        ]
        table = scroll(
            element(
                "table",
                element("thead", element("tr", *titles)),
                element("tbody", *(self._run(run) for run in shown)),
                class_="rk-table rk-runs",
            )
        )
        left = len(runs) - len(shown)
        more = element("p", prose(self.texts("machines.more-runs", count=left)), class_="rk-small") if left else NOTHING
        return [table, *([more] if more else [])]

    def _run(self, run: Sequence[Stored]) -> Html:
        file = run[0].file
        complete = sum(one.file.status == "complete" for one in run)
        marks = [
            lines.flag(self.texts, name)
            for name, holds in (
                ("smoke", file.scale == "smoke"),
                ("local", any(one.local for one in run)),
                ("dirty", any(one.file.provenance.dirty for one in run)),
            )
            if holds
        ]
        torch = file.environment.torch if file.environment else None
        begun = min(one.file.provenance.started for one in run)[:16].replace("T", " ")
        return element(
            "tr",
            element("th", element("code", escape(file.run)), escape(" "), join(marks, " "), scope="row"),
            element("td", escape(file.lane)),
            element("td", escape(begun), class_="rk-nowrap"),
            element("td", escape(f"{complete} / {len(run)}"), class_="rk-number"),
            element("td", escape(torch or cases.NONE, 60)),
            element("td", element("code", escape((file.provenance.commit or cases.NONE)[:12]))),
        )
