"""What a verdict looks like wherever it stands: chip, figures, drawing, sentence, and the line of all four.

Home, sections, ledger and claim pages are made of these, so that a verdict reads the same everywhere.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from reportkit.claims import SETTING_AXIS, TRUTHS, Each, Fact, Untestable, leaves
from reportkit.judge import unit_of
from reportkit.plan import RULER
from reportkit.quantity import format_bound, format_interval, format_quantity, format_share
from reportkit.site.drawing import Domain, domain, draw
from reportkit.site.markup import LONGEST, NOTHING, Html, element, escape, fill, join, link, prose, put
from reportkit.site.naming import counted, listed, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reportkit.claims import Claim, Metric, Quantity
    from reportkit.judge import Interval, Outcome, Part, Reason, Verdict
    from reportkit.plan import Section
    from reportkit.records import CaseFile, Unit
    from reportkit.site.edition import Edition, Measured
    from reportkit.site.texts import Texts

SIGNS: Mapping[Outcome, str] = {
    "supported": "\u2713",
    "refuted": "\u2715",
    "inconclusive": "\u2248",
    "not-measured": "\u25cb",
    "not-testable": "\u2013",
    "shown": "\u00b7",
}
"""A shape for each outcome: colour never stands alone."""

RECORDED = "en"
"""The language of what case files say."""

_OUTCOME = "OUTCOME"
_ERROR = re.compile(r"\w*(Error|Exception|Warning)\b")
_GLANCE = 80
"""Characters of an observation in a line; the claim's page has more."""
_LETTER = 9
"""Pixels that a letter beside a square takes at most."""
_TIMES = ("_call", "_compile", "_gpu", "_wall", "_busy")
_NARROW = 330
"""Pixels that a phone leaves for a drawing."""
_SHARES = ("noise", "ceiling", "dropped", "by", "allowed")


def chip(texts: Texts, outcome: Outcome, *, large: bool = False) -> Html:
    """Return the outcome as a word with its sign, in its colour."""
    return mark(texts(f"outcome.{outcome}"), outcome, large=large)


def mark(word: str, outcome: Outcome, *, large: bool = False) -> Html:
    """Return a word of our own with the sign and the colour of an outcome."""
    return element(
        "span",
        element("span", escape(SIGNS[outcome]), aria_hidden="true"),
        prose(word),
        class_=f"rk-chip rk-{outcome}{' rk-chip-large' if large else ''}",
    )


def flags(texts: Texts, verdict: Verdict) -> Html:
    """Return what a reader must know before believing a verdict: smoke, local, contributed, stale, dirty, failed."""
    measured = verdict.outcome != "not-measured" or bool(verdict.files) or any(part.files for part in verdict.parts)
    measured &= verdict.outcome != "not-testable"  # It rests on no file; some are shown beside it.
    found = [
        name
        for name, holds in (
            ("smoke", measured and verdict.scale == "smoke"),
            ("local", measured and verdict.local),
            ("contributed", measured and verdict.contributed and verdict.scale == "full"),
            ("stale", verdict.reason.code == "stale"),
            ("dirty", verdict.reason.code == "dirty"),
            ("failed", verdict.reason.code == "failed"),
        )
        if holds
    ]
    return join([flag(texts, name) for name in found], " ")


def flag(texts: Texts, name: str) -> Html:
    """Return one such mark, with its meaning as a title."""
    return element("span", prose(texts(f"flag.{name}")), class_="rk-flag", title=texts(f"flag.{name}-means"))


def tally(texts: Texts, at: str, counted: Mapping[Outcome, tuple[int, bool]], label: str, **where: str) -> Html:
    """Return verdicts as one bar: each outcome as wide as it counts, a link to its rows on the ledger, of `where`."""
    return element(
        "ul",
        *(
            element(
                "li",
                link(
                    join(
                        [
                            element("span", escape(sign), aria_hidden="true"),
                            element("strong", escape(counted[outcome][0])),
                            prose(texts(f"outcome.{outcome}")),
                            *([flag(texts, "local")] if counted[outcome][1] else []),
                        ],
                        " ",
                    ),
                    at,
                    f"ledger.md?{urlencode({'verdict': outcome, **where})}",
                ),
                class_=f"rk-{outcome}",
                style=f"flex-grow:{counted[outcome][0]}",
            )
            for outcome, sign in SIGNS.items()
            if outcome in counted
        ),
        class_="rk-tally",
        aria_label=label,
    )


def place_marks(texts: Texts, place: Measured) -> Html:
    """Return the marks of a lane on a machine."""
    return join([flag(texts, name) for name in place.flags], " ")


def recorded(texts: Texts, text: object, most: int = LONGEST) -> Html:
    """Return what a case file says in words, marked as English where the page is in another language."""
    shown = escape(text, most)
    return shown if texts.language == RECORDED else element("span", shown, lang=RECORDED)


def wrong(file: CaseFile) -> bool:
    """Whether a file shows that compiled gave a wrong result: one that nobody checked is not shown to be wrong."""
    return file.correctness is not None and not file.correctness.right


def value(texts: Texts, thing: Verdict | Part, claim: Claim | None = None) -> Html:
    """Return what was measured: centre and interval, and of which part; or what was found.

    Where settings disagree, each has its own outcome. `claim` names a quantity that is no speedup.
    """
    apart = disagreeing(thing)
    if apart:
        return join([_setting(texts, part) for part in apart], " ")
    seen = intervals(thing)
    if seen:
        called = short(texts, _asked(claim, thing)) if claim else ""
        of = decider(texts, thing)
        return join(
            [
                element("span", escape(f"{called} "), class_="rk-of") if called else NOTHING,
                number(seen[0]),
                element("span", escape(texts("list.aside", first="", second=of)), class_="rk-of") if of else NOTHING,
            ]
        )
    held, every = facts(thing)
    if not every:
        return NOTHING
    every = max(every, len(getattr(thing, "parts", ())))  # Those nobody could look at are not as claimed either.
    if every == 1:
        return prose(texts("verdict.fact-held" if held else "verdict.fact-failed"))
    return prose(texts("verdict.facts", held=held, all=every))


def _setting(texts: Texts, part: Part) -> Html:
    """Return one setting of several that disagree: its name, outcome and figures."""
    return element(
        "span",
        escape(listed(texts, names(texts, part))),
        escape(" "),
        chip(texts, part.outcome),
        escape(" "),
        number(part.interval) if part.interval else NOTHING,
        class_="rk-setting",
    )


def disagreeing(thing: Verdict | Part) -> tuple[Part, ...]:
    """Return the parts of a verdict whose settings do not all say the same, else none."""
    parts: tuple[Part, ...] = getattr(thing, "parts", ())
    settings = {part.setting for part in parts}
    measured = {part.outcome for part in parts}
    return parts if len(settings) > 1 and len(measured) > 1 else ()


def intervals(thing: Verdict | Part) -> tuple[Interval, ...]:
    """Return what is to be drawn: the interval that decided, or those of all parts where settings disagree."""
    apart = disagreeing(thing)
    if apart:
        return tuple(part.interval for part in apart if part.interval)
    return (thing.interval,) if thing.interval else ()


def decider(texts: Texts, thing: Verdict | Part) -> str:
    """Return what the part is called whose interval stands for a verdict of several parts, else nothing."""
    found = _deciding(thing)
    return listed(texts, names(texts, found)) if found else ""


def _deciding(thing: Verdict | Part) -> Part | None:
    parts: tuple[Part, ...] = getattr(thing, "parts", ())
    if len(parts) < 2 or thing.interval is None:  # noqa: PLR2004 -- one part is the whole
        return None
    return next((part for part in parts if part.interval == thing.interval), None)


def _asked(claim: Claim, thing: Verdict | Part) -> Quantity:
    """Return the quantity whose figure stands for a verdict or a part of it."""
    if not isinstance(claim.quantity, Each):
        return claim.quantity
    label = getattr(thing, "label", None) or getattr(_deciding(thing), "label", None)
    return claim.quantity.parts.get(label or "", next(iter(claim.quantity.parts.values())))


def names(texts: Texts, part: Part) -> list[str]:
    """Return what distinguishes a part: its workload or lane, its precision, both or neither."""
    label = [texts.called(part.label)] if part.label else []
    return [*label, *([texts.name(SETTING_AXIS, part.setting)] if part.setting else [])]


def number(interval: Interval) -> Html:
    """Return a centre with its interval in brackets; what is exact has none."""
    return element(
        "span",
        element("strong", escape(format_quantity(interval))),
        *(
            []
            if interval.low == interval.high
            else [escape(" "), element("span", escape(format_interval(interval)), class_="rk-ends")]
        ),
        class_="rk-figure",
    )


def figured(interval: Interval) -> str:
    """Return a centre and its interval as text that no line break parts."""
    ends = "" if interval.low == interval.high else f" {format_interval(interval)}"
    return f"{format_quantity(interval)}{ends}".replace(" ", "\u00a0")


def facts(thing: Verdict | Part) -> tuple[int, int]:
    """Return how many findings are as claimed, and how many there are; of those that were looked for."""
    parts = getattr(thing, "parts", None) or ((thing,) if hasattr(thing, "holds") else ())
    judged = [part for part in parts if part.holds is not None]
    return sum(part.outcome == "supported" for part in judged), len(judged)


def bound(texts: Texts, claim: Claim) -> str:
    """Return a claim's bound in words."""
    if isinstance(claim.quantity, Untestable):
        return texts("bound.untestable")
    words = {key.removeprefix("bound."): text for key, text in texts.labels.items() if key.startswith("bound.")}
    return format_bound(claim.bound, unit(claim.quantity), words)


def unit(quantity: Quantity) -> Unit | Literal["x"]:
    """Return the unit of a quantity: seconds for a level of time, else a ratio; a metric's by its name."""
    if isinstance(quantity, Each):
        return unit(next(iter(quantity.parts.values())))
    return "x" if isinstance(quantity, (*TRUTHS, Untestable)) else unit_of(quantity, _usual_unit)


def _usual_unit(metric: Metric) -> Unit:
    """Return the unit that a metric of that name has, for what is said of it before any file tells."""
    if metric.name.startswith("memory."):
        return "B"
    endings: tuple[tuple[str, Unit], ...] = (("_energy", "J"), *((end, "s") for end in _TIMES))
    return next((its for ending, its in endings if metric.name.endswith(ending)), "1")


def truth(claim: Claim) -> bool:
    """Whether a claim is of something that holds or does not, and is drawn as squares."""
    return isinstance(leaves(claim.quantity)[0], TRUTHS)


def why(texts: Texts, claim: Claim, thing: Verdict | Part) -> Html:
    """Return the sentence for a verdict's reason; where the interval lies on one side of the bound, on which."""
    low, high = claim.bound.low, claim.bound.high
    apart = disagreeing(thing)
    if apart and thing.reason.code != "depends-on-setting":
        named = texts.labels["verdict.named"]
        each = [
            put(named, name=escape(listed(texts, names(texts, part))), value=why(texts, claim, part)) for part in apart
        ]
        return join(each, " ")
    if thing.reason.code == "outside" and thing.interval and claim.bound.kind == "range":
        if high is not None and thing.interval.low >= high:
            return prose(texts("side.above"))
        if low is not None and thing.interval.high <= low:
            return prose(texts("side.below"))
    return reason(texts, thing.reason)


def reason(texts: Texts, why: Reason) -> Html:
    """Return the sentence for a reason code, filled with its details as they are."""
    details = {
        key: format_share(float(detail)) if key in _SHARES else str(detail) for key, detail in why.details.items()
    }
    for key in ("supported", "refuted"):
        if key in details:
            details[key] = listed(texts, [texts.name(SETTING_AXIS, one.strip()) for one in details[key].split(",")])
    for key in ("differs", "status"):
        if key in details:
            details[key] = texts(f"{key}.{details[key]}")
    if f"environment.{details.get('field')}" in texts.labels:
        details["field"] = texts(f"environment.{details['field']}")
    return fill(texts.labels[f"reason.{why.code}"], **details)


def sentence(texts: Texts, claim: Claim, verdict: Verdict, mark: Html | None = None) -> Html:
    """Return a verdict in one line of words: outcome (or its `mark`), lane, machine, figure, what it is held to.

    The bound is the project's own, never a figure of the article: the claim's statement has that.
    """
    written = _sentence(texts, claim, verdict)
    return Html(written.replace(_OUTCOME, mark or prose(texts(f"outcome.{verdict.outcome}"))))


def _sentence(texts: Texts, claim: Claim, verdict: Verdict) -> Html:
    details = {
        "outcome": _OUTCOME,
        "lane": verdict.lane,
        "machine": verdict.machine or "",
        "bound": bound(texts, claim),
    }
    if verdict.outcome == "not-testable":
        return prose(texts("verdict.untestable", **details))
    if verdict.machine is None:
        return prose(texts("verdict.unmeasured", **details))
    seen = intervals(verdict)
    apart = disagreeing(verdict)
    if not seen or truth(claim):
        return prose(texts("verdict.on-fact" if facts(verdict)[1] else "verdict.undecided", **details))
    if apart:
        figure = listed(texts, [_setting_words(texts, part) for part in apart], "semicolon")
    else:
        called, of = short(texts, _asked(claim, verdict)), decider(texts, verdict)
        figure = (f"{called} " if called else "") + figured(seen[0])
        figure = texts("list.aside", first=figure, second=of) if of else figure
    key = "verdict.on-control" if claim.bound.kind == "shown" else "verdict.on-number"
    return prose(texts(key, value=figure, **details))


def _setting_words(texts: Texts, part: Part) -> str:
    """Return one setting of several that disagree, in words."""
    figures = f" {figured(part.interval)}" if part.interval else ""
    said = texts(f"outcome.{part.outcome}") + figures
    return texts("verdict.named", name=listed(texts, names(texts, part)), value=said)


def scale_of(edition: Edition, claim: Claim) -> Domain:
    """Return the domain that all drawings of a claim share, so that they can be read under one another."""
    seen = [
        interval
        for verdict in edition.of(claim.id)
        for interval in (verdict.interval, *(part.interval for part in verdict.parts))
        if interval
    ]
    one = all(interval.unit == "x" for interval in seen) if seen else unit(claim.quantity) == "x"
    return domain(claim.bound, seen, one=one)


def drawing(
    texts: Texts, claim: Claim, thing: Verdict | Part, scale: Domain, size: Literal["small", "large"] = "small"
) -> Html:
    """Return the drawing of a verdict or one part of it: for findings a square for each, for the untestable nothing."""
    outcome = texts(f"outcome.{thing.outcome}")
    if isinstance(claim.quantity, Untestable):
        return NOTHING
    if not truth(claim):
        shown = intervals(thing)
        figure = " / ".join(figured(one) for one in shown)
        words = "drawing.measured" if shown else "drawing.unmeasured"
        alternative = texts(
            words, bound=bound(texts, claim), **({"value": figure, "outcome": outcome} if shown else {})
        )
        return draw(shown, claim.bound, thing.outcome, scale, size=size, alternative=alternative)
    held, every = facts(thing)
    named = [] if hasattr(thing, "holds") else [texts.called(one) for one in labels(claim.quantity)]
    wanted = len(named) or 1
    alternative = (
        texts("drawing.facts", held=held, all=every, outcome=outcome)
        if every
        else texts("drawing.facts-unmeasured", all=wanted)
    )
    return _squares(thing, named or [""], size, alternative)


def _squares(thing: Verdict | Part, named: list[str], size: Literal["small", "large"], alternative: str) -> Html:
    """Return a square a finding: filled as claimed, crossed where not, hollow where nobody looked; named."""
    parts = getattr(thing, "parts", None) or ((thing,) if hasattr(thing, "holds") else ())
    states = [None if part.holds is None else part.outcome == "supported" for part in parts]
    states += [None] * (len(named) - len(states))
    named = named + [""] * (len(states) - len(named))
    side, gap = (18, 8) if size == "large" else (12, 6)
    # A name each, and more of them than a phone is wide: under one another.
    stacked = size == "large" and sum(side + 2 * gap + _LETTER * len(name) for name in named) > _NARROW
    marks, x, y, widest = [], 1.0, 2.0, 0.0
    for name, state in zip(named, states, strict=True):
        mark = [element("title", escape(name))] if name else []
        mark.append(
            element("rect", x=x, y=y, width=side, height=side, class_="rk-square-held" if state else "rk-square")
        )
        if state is False:
            near, far = y + side * 0.25, y + side * 0.75
            mark += [
                element("line", x1=x + side * 0.25, x2=x + side * 0.75, y1=one, y2=other, class_="rk-cross")
                for one, other in ((near, far), (far, near))
            ]
        x += side + gap
        if name and size == "large":
            mark.append(element("text", escape(name), x=x, y=y + side * 0.75))
            x += _LETTER * len(name) + gap
        marks.append(element("g", *mark))
        widest = max(widest, x)
        if stacked:
            x, y = 1.0, y + side + gap
    return element(
        "svg",
        *marks,
        class_=f"rk-draw rk-squares rk-{thing.outcome}",
        role="img",
        aria_label=alternative,
        width=min(widest + 1, _NARROW) if stacked else widest + 1,
        height=y - gap + 2 if stacked else side + 4,
    )


def page_of(section: Section) -> str:
    """Return the page of a section: that on the ruler, or one of the article's."""
    return "ruler.md" if section.number == RULER else f"article/{section.id}.md"


def labels(quantity: Quantity) -> tuple[str, ...]:
    """Return the labels of an Each, else none."""
    return tuple(quantity.parts) if isinstance(quantity, Each) else ()


def part_name(texts: Texts, claim: Claim, part: Part) -> str:
    """Return what a part is called: its workload or lane, its precision, or both."""
    named = names(texts, part)
    if not named:
        named = [
            texts.name("workload", where.axes["workload"])
            for where in claim.quantity.cases()[:1]
            if "workload" in where.axes
        ]
    return listed(texts, named)


def legend(texts: Texts, claims: Iterable[Claim]) -> Html:
    """Return the sentences that explain what is drawn for these claims: intervals, squares or both."""
    kinds = {truth(claim) for claim in claims if not isinstance(claim.quantity, Untestable)}
    keys = [key for key, squares in (("drawing.legend", False), ("drawing.legend-squares", True)) if squares in kinds]
    return prose(" ".join(texts(key) for key in keys))


def seen(edition: Edition, claim: Claim, verdict: Verdict) -> tuple[str, str] | None:
    """Return what a verdict on a finding rests on, by its name: the error that was met, else what was observed first.

    Of what refutes, where anything does. None where no file says.
    """
    wanted = {leaf.finding for leaf in leaves(claim.quantity) if isinstance(leaf, Fact)}
    refuted = [path for part in verdict.parts if part.outcome == "refuted" for path in part.files]
    paths = dict.fromkeys(refuted or verdict.files)
    found = [
        (key, scalar(observed))
        for path in paths
        if path in edition.by_path
        for name, finding in edition.by_path[path].file.findings.items()
        if name in wanted
        for key, observed in finding.evidence.items()
    ]
    return next((one for one in found if _ERROR.match(one[1])), found[0]) if found else None


def observation(texts: Texts, one: tuple[str, str], most: int) -> Html:
    """Return what was observed, as its file has it, cut after `most` characters."""
    return element(
        "span",
        *(join([element("code", escape(text, most)), escape(" ")]) for text in one),
        lang=None if texts.language == RECORDED else RECORDED,
        class_="rk-found",
    )


def scalar(value: object) -> str:
    """Return a value of a case file as JSON has it, text without its quotes."""
    return json.dumps(value) if isinstance(value, bool) or value is None else str(value)


@dataclass(frozen=True, slots=True)
class Line:
    """A claim as one line: chip, statement with a link to its page, drawing, figures."""

    edition: Edition
    texts: Texts
    at: str
    """The page that the line stands on."""

    def __call__(self, claim: Claim) -> Html:
        """Return the line of the claim's headline verdict."""
        verdict = self.edition.headline(claim.id)
        text = self.texts.claims[claim.id]
        figures = [value(self.texts, verdict, claim)]
        evidence = seen(self.edition, claim, verdict) if truth(claim) and figures[0] else None
        if claim.bound.kind not in {"true", "shown"}:
            figures.append(self._held_to(claim, named=bool(figures[0])))
        if evidence:
            figures.append(observation(self.texts, evidence, _GLANCE))
        if not figures[0] and verdict.outcome == "inconclusive":
            figures.append(reason(self.texts, verdict.reason))
        if not isinstance(claim.quantity, Untestable):
            figures.append(escape(listed(self.texts, [verdict.lane, *([verdict.machine] if verdict.machine else [])])))
        return element(
            "li",
            element(
                "div",
                chip(self.texts, verdict.outcome),
                link(prose(text.statement), self.at, f"claims/{claim.id}.md"),
                class_="rk-line-head",
            ),
            element(
                "div", drawing(self.texts, claim, verdict, scale_of(self.edition, claim)), class_="rk-line-drawing"
            ),
            element(
                "div",
                join([figure for figure in figures if figure], " \u00b7 "),
                escape(" "),
                flags(self.texts, verdict),
                class_="rk-line-figures",
            ),
            class_=f"rk-line rk-{verdict.outcome}",
        )

    def _held_to(self, claim: Claim, *, named: bool) -> Html:
        """Return what a claim is held to, with what that is a number of, unless the figure in front names it."""
        words = prose(self.texts("verdict.held-to", bound=bound(self.texts, claim)))
        of = "" if named else counted(self.texts, claim.quantity)
        return join([element("span", escape(of), class_="rk-of"), words], " ") if of else words
