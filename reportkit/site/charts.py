"""Charts: one theme, one colour pair, drawn twice without scripts and upgraded where scripts run.

A chart is a Vega-Lite specification made by Altair. The page holds it drawn for a wide and for a
narrow screen, as SVG whose colours are the theme's own variables, then the specification itself,
which `charts.js` turns into an interactive one; and its data as a table.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt
import vl_convert

from reportkit.site.markup import NOTHING, Html, element, escape, plain, prose

WIDE, NARROW = 720, 330
"""Widths that the static drawings are laid out for, in CSS pixels."""

EAGER, COMPILED = "var(--rk-eager)", "var(--rk-compiled)"
TEXT, SOFT, GRID = "var(--rk-text)", "var(--rk-soft)", "var(--rk-line)"
MOST_POINTS = 60
"""Samples of one strip that are drawn, evenly thinned; all of them are in the raw file."""

_WORDS = {"labelColor": TEXT, "titleColor": SOFT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}

THEME: Mapping[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "autosize": {"type": "fit-x", "contains": "padding"},
    "view": {"stroke": None},
    "axis": {
        **_WORDS,
        "gridColor": GRID,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "titlePadding": 8,
        "labelLimit": 150,
    },
    "axisY": {"grid": False, "labelPadding": 8},
    "legend": _WORDS,
}
"""The look of every chart, in Vega-Lite's words."""

_SHAPES = ("circle", "square", "triangle-up", "diamond")

Row = Mapping[str, str | float]


_PLACES = re.compile(r'\s(?:d|transform|x[12]?|y[12]?|width|height)="[^"]*"')
"""Attributes of a drawing that are places and lengths in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart and everything that stands around it."""

    id: str
    title: str
    description: str
    """What it shows, in words, for those who don't see it."""
    spec: dict[str, Any]
    table: Html
    note: str = ""
    narrow: dict[str, Any] | None = None
    """What a phone gets, where that is more than the same at less width."""


DATA, SAVE, POINTS = "chart.data", "chart.save", "chart.points"
WORDS = (DATA, SAVE, POINTS)
"""Labels that every chart has: on the fold-out with its table, on the buttons that save it, and for the keyboard."""


def figure(chart: Chart, texts: Callable[[str], str], *, folded: bool = True) -> Html:
    """Return the chart as HTML, with `texts` for the words around it; its table under it, `folded` away or not."""
    label = plain(f"{chart.title}. {chart.description}")
    described = {"description": label}
    return element(
        "figure",
        element("figcaption", prose(chart.title)),
        _plot(chart, label),
        element(
            "script", script_json({"wide": chart.spec | described, "narrow": chart.narrow}), type="application/json"
        ),
        element("p", prose(chart.note), class_="rk-note") if chart.note else NOTHING,
        element(
            "div",
            element(
                "details",
                element("summary", prose(texts(DATA))),
                chart.table,
                class_="rk-more",
                data_search_exclude=True,
            )
            if folded
            else chart.table,
            element(
                "p",
                *(
                    element("button", prose(f"{texts(SAVE)} {kind.upper()}"), type="button", data_kind=kind)
                    for kind in ("png", "svg")
                ),
                class_="rk-save",
                hidden=True,  # Until scripts run.
                data_search_exclude=True,
            ),
            class_="rk-under",
        ),
        class_="rk-chart",
        id=f"chart-{chart.id}",
        data_points=texts(POINTS),
    )


def script_json(value: object) -> Html:
    """Return a value as JSON that can't end the script element it stands in, nor be read as a template."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(text)


def bundle() -> str:
    """Return the one script with Vega, Vega-Lite and vega-embed, in a scope of its own."""
    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # Its stub asks for what it can do without.
    return f"(()=>{{{script}}})();\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A speedup in a chart of speedups: one lane of one row."""

    row: str
    """What the row is called; rows of two groups may have one name."""
    group: str
    """The heading that the row stands under; nothing where there are no headings."""
    lane: str
    low: float
    centre: float
    high: float
    shown: str
    eager: str
    """Eager's time a call, in words."""
    chosen: bool = True
    """Whether it is of the lane that the chart is about; others stand beside it, hollow."""
    told: str = ""
    """What it is called in the table, where several of one row and lane have to be told apart."""


ROW, HEADING = 24, "#"


def speedups(marks: Sequence[Mark], lanes: Sequence[str], words: Mapping[str, str], *, narrow: bool) -> dict[str, Any]:
    """Return dots with their intervals: a row a workload, a mark a lane, 1.0 marked, eager time at the end.

    Marks come in the order of their rows. Narrow, a row's name stands above its dots, not beside them.
    """
    rows: list[Row] = []
    for mark in marks:
        ends = {key: float(f"{getattr(mark, key):.4g}") for key in ("low", "centre", "high")}  # A page's weight.
        row = {**asdict(mark), **ends, "row": f"{mark.group}|{mark.row}", "name": mark.row}
        del row["group"]
        if mark.group and f"{HEADING}{mark.group}" not in {row["row"] for row in rows}:
            rows.append({"row": f"{HEADING}{mark.group}", "name": mark.group, "kind": "heading"})
        seen = any(other["row"] == row["row"] and other["kind"] == "first" for other in rows)
        chosen = row.pop("chosen")
        rows.append(row | {"kind": "beside" if not chosen else "more" if seen else "first"})
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    headed = any(row["kind"] == "heading" for row in rows)
    tooltip = [
        alt.Tooltip("name:N", title=words["rows"]),
        alt.Tooltip("lane:N", title=words["lane"]),
        alt.Tooltip("shown:N", title=words["x"]),
        alt.Tooltip("eager:N", title=words["eager"]),
    ]
    shape = _shapes(lanes, words)
    least = _least(mark.low for mark in marks)

    # Each layer has the whole axis: merged with another one's default it would lose its description.
    def x(field: str) -> alt.X:
        scale = alt.Scale(zero=False, nice=True, padding=12, domainMin=least)
        return alt.X(f"{field}:Q", scale=scale, title=words["x"], axis=_axis(words["x"], format=".1f", tickCount=6))

    def of(*kinds: str) -> alt.Chart:
        wanted: alt.Chart = alt.Chart().transform_filter(alt.FieldOneOfPredicate(field="kind", oneOf=list(kinds)))
        return wanted

    def y(band: float) -> alt.Y:
        axis = None if narrow else _headed(words["rows"])
        scale = alt.Scale(paddingInner=0, paddingOuter=0)
        return alt.Y("row:N", sort=order, title=None, axis=axis, scale=scale, bandPosition=band)

    def dots(*kinds: str, filled: bool) -> list[alt.Chart]:
        base = of(*kinds).encode(y=y(middle))
        bar, size = (10, 40) if filled else (2, 26)
        return [
            base.mark_rule(color=COMPILED, strokeWidth=bar, opacity=0.4, aria=False).encode(x=x("low"), x2="high:Q"),
            _said(
                base.mark_point(
                    color=COMPILED, filled=filled, size=size, opacity=1 if filled else 0.75, strokeWidth=1.2
                ).encode(x=x("centre"), shape=shape, tooltip=tooltip),
                "datum.name",
                "datum.lane",
                "datum.shown",
                "datum.eager",
            ),
        ]

    def names(kind: str, field: str, band: float, place: str | int, **options: Any) -> alt.Chart:
        text = of(kind).mark_text(baseline="middle", fontSize=12, aria=False, **options)
        found: alt.Chart = text.encode(y=y(band), x=alt.value(place), text=f"{field}:N")
        return found

    middle = 0.74 if narrow else 0.5
    layers = [
        _one().encode(x=x("one")),
        *dots("beside", filled=False),
        *dots("first", "more", filled=True),
    ]
    if narrow:
        layers.append(names("first", "name", 0.3, 0, align="left", color=TEXT))
        layers.append(names("first", "eager", 0.3, "width", align="right", color=SOFT))
        layers += [names("heading", "name", 0.6, 0, align="left", color=TEXT, fontWeight="bold")] if headed else []
    else:
        layers.append(names("first", "eager", 0.5, "width", align="left", dx=10, color=SOFT))
        # A heading has a row of its own, and no mark: this makes it part of the axis.
        layers += [names("heading", "name", 0.5, 0, opacity=0)] if headed else []
    return _spec(
        alt.layer(*layers, data=_data(rows)),
        height=(38 if narrow else ROW) * len(order),
        right=8 if narrow else 64,
    )


def curve(rows: Sequence[Row], lanes: Sequence[str], words: Mapping[str, str]) -> dict[str, Any]:
    """Return speedup over sizes, a line a lane: that of the chosen lane full, the others thin and hollow.

    Each row has `size` (a text, in order), `lane`, `low`, `centre`, `high`, `shown` and `chosen`.
    """
    order = list(dict.fromkeys(str(row["size"]) for row in rows))
    least = _least(float(row["low"]) for row in rows)

    def y(field: str) -> alt.Y:
        scale = alt.Scale(zero=False, nice=True, domainMin=least)
        return alt.Y(f"{field}:Q", scale=scale, title=words["y"], axis=_axis(words["y"], format=".1f", tickCount=5))

    axis = _axis(words["x"], labelAngle=0, grid=False)
    x = alt.X("size:N", sort=order, title=words["x"], axis=axis, scale=alt.Scale(type="point", padding=0.3))
    shape = _shapes(lanes, words)
    tooltip = [
        alt.Tooltip("size:N", title=words["x"]),
        alt.Tooltip("lane:N", title=words["lane"]),
        alt.Tooltip("shown:N", title=words["y"]),
    ]
    layers = [_one().encode(y=y("one"))]
    for wanted in (False, True):
        some = [row for row in rows if row["chosen"] == wanted]
        if some:
            base = alt.Chart(_data(some)).encode(x=x)
            look: dict[str, Any] = (
                {"strokeWidth": 2.5} if wanted else {"strokeWidth": 1, "strokeDash": [4, 3], "opacity": 0.6}
            )
            layers += [
                base.mark_line(color=COMPILED, aria=False, **look).encode(y=y("centre"), detail="lane:N"),
                base.mark_rule(color=COMPILED, strokeWidth=8 if wanted else 2, opacity=0.4, aria=False).encode(
                    y=y("low"), y2="high:Q"
                ),
                _said(
                    base.mark_point(
                        color=COMPILED, filled=wanted, size=60 if wanted else 30, opacity=1 if wanted else 0.75
                    ).encode(y=y("centre"), shape=shape, tooltip=tooltip),
                    json.dumps(f"{words['x']} ") + " + datum.size",
                    "datum.lane",
                    "datum.shown",
                ),
            ]
    return _spec(alt.layer(*layers), height=240)


MOST_CALLS, TALLEST = 6, 3.0
"""Powers of ten that the axis of calls reaches to at least, and the largest share of eager's time that is drawn."""


def earned_back(rows: Sequence[Row], words: Mapping[str, str]) -> dict[str, Any]:
    """Return time over all calls so far against eager's, a line a row: where it falls below 1.0, it is earned back.

    Each row has `row`, `first` (seconds that come before the first call), `eager` and `compiled` (seconds a call).
    """
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    points = [
        {
            "row": row["row"],
            "calls": calls,
            "share": round((float(row["first"]) + calls * float(row["compiled"])) / (calls * float(row["eager"])), 4),
        }
        for row in rows
        for calls in (round(10 ** (step / 16), 3) for step in range(16 * _powers(rows) + 1))
    ]
    # It begins where the first line comes into sight.
    within = [float(point["calls"]) for point in points if float(point["share"]) <= TALLEST]
    begin = math.floor(math.log10(min(within, default=1)))
    points = [point for point in points if float(point["calls"]) >= 10**begin]
    dashes = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [1, 4]]
    x = alt.X(
        "calls:Q",
        scale=alt.Scale(type="log", domain=[10**begin, 10 ** _powers(rows)], nice=False),
        title=words["x"],
        axis=_axis(words["x"], format="~s", values=[10**power for power in range(begin, _powers(rows) + 1)]),
    )

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=[0, TALLEST])
        return alt.Y(f"{field}:Q", scale=scale, title=words["y"], axis=_axis(words["y"], format=".1f", tickCount=6))

    dash = alt.StrokeDash(
        "row:N",
        sort=order,
        scale=alt.Scale(domain=order, range=[dashes[place % len(dashes)] for place in range(len(order))]),
        legend=_legend(columns=1, symbolStrokeColor=COMPILED, symbolSize=300, labelLimit=300) if order[1:] else None,
    )
    tooltip = [
        alt.Tooltip("row:N", title=words["rows"]),
        alt.Tooltip("calls:Q", title=words["x"], format=",.0f"),
        alt.Tooltip("share:Q", title=words["y"], format=".2f"),
    ]
    base = alt.Chart(_data(points))
    # A line is hard to point at; its points, unseen, answer for it.
    layers = [
        _one().encode(y=y("one")),
        base.mark_line(color=COMPILED, strokeWidth=2, clip=True, aria=False).encode(x=x, y=y("share"), strokeDash=dash),
        _said(
            base.transform_filter(f"datum.share <= {TALLEST}")
            .mark_point(filled=True, color=COMPILED, size=90, opacity=0, clip=True)
            .encode(x=x, y=y("share"), tooltip=tooltip),
            "datum.row",
            f"format(datum.calls, ',.0f') + {json.dumps(' ' + words['x'])}",
            "format(datum.share, '.2f')",
        ),
    ]
    return _spec(alt.layer(*layers), height=240)


def pairs(rows: Sequence[Row], words: Mapping[str, str], unit: str) -> dict[str, Any]:
    """Return both absolute times of each row, joined by a line, on an axis that starts at zero.

    Each row has `row`, `eager` and `compiled` in `unit`, and `shown`.
    """
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    points = [
        {"row": row["row"], "side": words[side], "time": row[side], "shown": row["shown"]}
        for row in rows
        for side in ("eager", "compiled")
    ]
    y = _rows(order, words["rows"])
    title = f"{words['x']} ({unit})"

    def x(field: str) -> alt.X:
        scale = alt.Scale(zero=True, nice=True)
        return alt.X(f"{field}:Q", scale=scale, title=title, axis=_axis(title, tickCount=6))

    line = alt.Chart(_data(rows)).mark_rule(color=GRID, strokeWidth=3, aria=False)
    marks = [
        line.encode(y=y, x=x("eager"), x2="compiled:Q"),
        _said(alt.Chart(_data(points)), "datum.row", "datum.side", "datum.shown")
        .mark_point(filled=True, size=80, opacity=0.9)
        .encode(
            y=y,
            x=x("time"),
            color=_sides(words),
            shape=alt.Shape(
                "side:N",
                scale=alt.Scale(domain=[words["eager"], words["compiled"]], range=["square", "circle"]),
                legend=_legend(),
            ),
            tooltip=[
                alt.Tooltip("row:N", title=words["rows"]),
                alt.Tooltip("side:N", title=words["side"]),
                alt.Tooltip("shown:N", title=words["x"]),
            ],
        ),
    ]
    return _spec(alt.layer(*marks), height=38 * len(order))


def strips(rows: Sequence[Row], words: Mapping[str, str], unit: str) -> dict[str, Any]:
    """Return every sample as a point, both sides of a case under one another.

    Each row has `row`, `side` (eager or compiled) and `time` in `unit`, in the order of measuring.
    """
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    points = [{**row, "side": words[str(row["side"])], "jitter": _jitter(place)} for place, row in enumerate(rows)]
    title = f"{words['x']} ({unit})"
    sides = [words["eager"], words["compiled"]]
    chart = (
        _said(
            alt.Chart(_data(points)),
            "datum.row",
            "datum.side",
            f"format(datum.time, '.4~g') + {json.dumps(' ' + unit)}",
        )
        .transform_calculate(place=f"(datum.side === {json.dumps(sides[0])} ? 0 : 1) + datum.jitter")
        .mark_point(filled=True, size=16, opacity=0.5)
        .encode(
            y=_rows(order, words["rows"]),
            yOffset=alt.YOffset("place:Q", scale=alt.Scale(domain=[-0.6, 1.6])),
            x=alt.X("time:Q", scale=alt.Scale(zero=False, nice=True), title=title, axis=_axis(title, tickCount=6)),
            color=_sides(words),
            tooltip=[
                alt.Tooltip("row:N", title=words["rows"]),
                alt.Tooltip("side:N", title=words["side"]),
                alt.Tooltip("time:Q", title=title, format=".4~g"),
            ],
        )
    )
    return _spec(chart, height=40 * len(order))


def first_calls(rows: Sequence[Row], words: Mapping[str, str]) -> dict[str, Any]:
    """Return a first call a point on a logarithmic axis: cold filled, warm hollow, both in the compiled blue.

    Each row has `row`, `cache` (cold or warm), `time` in seconds and `process`.
    """
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    points = [{**row, "cache": words[str(row["cache"])]} for row in rows]
    both = [words["cold"], words["warm"]]
    chart = (
        _said(alt.Chart(_data(points)), "datum.row", "datum.cache", "format(datum.time, '.3~g') + ' s'")
        .mark_point(size=70, strokeWidth=2, color=COMPILED, opacity=1)
        .encode(
            y=_rows(order, words["rows"]),
            yOffset=alt.YOffset("cache:N", sort=both),
            x=alt.X(
                "time:Q",
                scale=alt.Scale(type="log", nice=False, padding=14),
                title=words["x"],
                axis=_axis(words["x"], format="~g", tickCount=5),
            ),
            shape=alt.Shape("cache:N", scale=alt.Scale(domain=both, range=["circle", "diamond"]), legend=_legend()),
            stroke=alt.Stroke("cache:N", scale=alt.Scale(domain=both, range=[COMPILED, COMPILED]), legend=_legend()),
            fill=alt.Fill("cache:N", scale=alt.Scale(domain=both, range=[COMPILED, "transparent"]), legend=_legend()),
            tooltip=[
                alt.Tooltip("row:N", title=words["rows"]),
                alt.Tooltip("cache:N", title=words["side"]),
                alt.Tooltip("process:N", title=words["process"]),
                alt.Tooltip("time:Q", title=words["x"], format=".3~g"),
            ],
        )
    )
    return _spec(chart, height=52 * len(order))


def _powers(rows: Sequence[Row]) -> int:
    """Return how far the axis of calls must reach for each line to come into sight and level off."""
    longest = max(float(row["first"]) / float(row["compiled"]) for row in rows)
    return max(MOST_CALLS, math.ceil(math.log10(longest)) + 1)


def timers(rows: Sequence[Row], words: Mapping[str, str]) -> dict[str, Any]:
    """Return seconds on a logarithmic axis: a row a timer, a shape a workload, hollow where it is off the truth.

    Each row has `row`, `workload`, `time` in seconds, `standing` (a word) and `shown`. Marks are full
    near the truth, hollow off it, and pale between.
    """
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    workloads = list(dict.fromkeys(str(row["workload"]) for row in rows))
    standings = [words["near"], words["unknown"], words["off"]]
    shapes = [_SHAPES[place % len(_SHAPES)] for place in range(len(workloads))]
    full = alt.Scale(type="ordinal", domain=standings, range=[1, 0.35, 0])
    chart = (
        _said(alt.Chart(_data(rows)), "datum.row", "datum.workload", "datum.shown", "datum.standing")
        .mark_point(size=60, strokeWidth=1.5, stroke=TEXT, fill=TEXT, opacity=1)
        .encode(
            y=_rows(order, words["rows"]),
            yOffset=alt.YOffset("workload:N", sort=workloads),
            x=alt.X(
                "time:Q",
                scale=alt.Scale(type="log", nice=False, padding=14),
                title=words["x"],
                axis=_axis(words["x"], format="~g", tickCount=5),
            ),
            shape=alt.Shape(
                "workload:N",
                scale=alt.Scale(domain=workloads, range=shapes),
                legend=_legend(columns=2, symbolFillColor=TEXT, symbolStrokeColor=TEXT),
            ),
            fillOpacity=alt.FillOpacity("standing:O", scale=full, sort=None, legend=None),
            tooltip=[
                alt.Tooltip("row:N", title=words["rows"]),
                alt.Tooltip("workload:N", title=words["workload"]),
                alt.Tooltip("shown:N", title=words["x"]),
                alt.Tooltip("standing:N", title=" "),
            ],
        )
    )
    return _spec(chart, height=44 * len(order))


def thinned(samples: Sequence[float], most: int = MOST_POINTS) -> list[float]:
    """Return at most `most` of the samples, evenly spaced over the order they were taken in."""
    if len(samples) <= most:
        return list(samples)
    return [samples[place * len(samples) // most] for place in range(most)]


def _sides(words: Mapping[str, str]) -> alt.Color:
    scale = alt.Scale(domain=[words["eager"], words["compiled"]], range=[EAGER, COMPILED])
    return alt.Color("side:N", scale=scale, legend=_legend())


def _shapes(lanes: Sequence[str], words: Mapping[str, str]) -> alt.Shape:
    """Return a shape for each lane, with a legend where there are several."""
    legend = _legend(words["lane"], symbolFillColor="transparent", symbolStrokeColor=COMPILED)
    scale = alt.Scale(domain=list(lanes), range=list(_SHAPES[: len(lanes)]))
    return alt.Shape("lane:N", scale=scale, legend=legend if len(lanes) > 1 else None)


def _legend(title: str | None = None, **options: Any) -> alt.Legend:
    return alt.Legend(orient="top", title=title, symbolOpacity=1, **options)


def _said(chart: alt.Chart, *parts: str) -> alt.Chart:
    """Return marks that say these expressions to a screen reader; by itself Vega reads out the names of fields."""
    said: alt.Chart = chart.transform_calculate(said=f"join([{', '.join(parts)}], ', ')").encode(
        description=alt.Description("said:N")
    )
    return said


def _one() -> alt.Chart:
    """Return the line at 1.0, no difference, on whichever axis the field `one` is put."""
    line: alt.Chart = alt.Chart(_data([{"one": 1.0}])).mark_rule(color=TEXT, strokeDash=[2, 2], aria=False)
    return line


def _axis(description: str, **options: Any) -> alt.Axis:
    """Return an axis with its description in the page's language, for screen readers."""
    return alt.Axis(description=plain(description), **options)


def _headed(description: str) -> alt.Axis:
    """Return the axis of rows under headings: `group|name` in plain type, `#group` in bold."""
    return _axis(
        description,
        ticks=False,
        domain=False,
        labelLimit=300,
        labelExpr=f"slice(datum.value, 0, 1) === '{HEADING}' ? slice(datum.value, 1) : split(datum.value, '|')[1]",
        labelFontWeight=alt.condition(
            f"slice(datum.value, 0, 1) === '{HEADING}'", alt.value("bold"), alt.value("normal")
        ),
    )


def _rows(names: Sequence[str], description: str) -> alt.Y:
    """Return the axis of row names, each broken at its commas: two short lines leave the plot its width."""
    lines = max((name.count(", ") + name.count("\uff0c") + 1 for name in names), default=1)
    axis = _axis(
        description,
        ticks=False,
        domain=False,
        labelExpr="split(replace(datum.label, '\uff0c', ', '), ', ')",
        labelLineHeight=14,
        labelOffset=-7 * (lines - 1),  # Vega centres the first line only.
    )
    return alt.Y("row:N", sort=list(names), title=None, axis=axis, scale=alt.Scale(paddingInner=0.25))


def _least(lows: Iterable[float]) -> float:
    """Return the low end of a speedup axis: 1.0 is always on it."""
    return min([0.98, *lows])


def _jitter(place: int) -> float:
    """Return an even, repeatable scatter from -0.4 to 0.4: the van der Corput sequence."""
    share, step, number = 0.0, 0.5, place + 1
    while number:
        share += step * (number % 2)
        number //= 2
        step /= 2
    return round(0.8 * share - 0.4, 3)


def _data(rows: Sequence[Row]) -> alt.Data:
    return alt.Data(values=[dict(row) for row in rows])  # type: ignore[no-untyped-call]


def _spec(chart: alt.Chart | alt.LayerChart | alt.FacetChart, height: int, right: int = 8) -> dict[str, Any]:
    """Return the chart's specification under the one theme, without a width: that is the page's to set."""
    spec: dict[str, Any] = json.loads(chart.properties(height=height).to_json(validate=True))
    spec["config"] = THEME
    spec["padding"] = {"left": 4, "right": right, "top": 4, "bottom": 4}
    return spec


def draw_in_notebooks() -> None:
    """Draw Altair's charts in this notebook as the site draws its own: static, for a wide and a narrow screen."""
    drawn = itertools.count(1)

    def draw(spec: dict[str, Any], **_settings: object) -> dict[str, str]:
        inner = {key: its for key, its in spec.items() if key not in {"width", "config"}}
        described = str(spec.get("description", ""))
        chart = Chart(
            id=f"notebook-{next(drawn)}",
            title="",
            description=described,
            spec={**inner, "config": THEME, "padding": 4},
            table=NOTHING,
        )
        return {"text/html": _plot(chart, plain(described)), "text/plain": described}

    alt.renderers.register("reportkit", draw)
    alt.renderers.enable("reportkit")


def _plot(chart: Chart, label: str) -> Html:
    """Return the static drawings for both screens, each an image with that name."""
    # Ticks and legends are no words to find. The search plugin ends an exclusion at the first end of the
    # same tag, so it stands on what holds no other `div`.
    drawings = (("rk-wide", chart.spec, WIDE), ("rk-narrow", chart.narrow or chart.spec, NARROW))
    return element(
        "div",
        *(
            element(
                "div",
                _svg(chart.id, spec, width),
                class_=name,
                role="img",
                aria_label=label,
                data_search_exclude=True,
            )
            for name, spec, width in drawings
        ),
        class_="rk-plot",
    )


def _svg(name: str, spec: Mapping[str, Any], width: int) -> Html:
    """Return a chart drawn at a width, its ids made its own: a page holds several drawings."""
    svg: str = vl_convert.vegalite_to_svg({**spec, "width": width})
    own = f"{name}-{width}"
    # The drawing is one image with a name; what its parts are called is the interactive one's and the table's to say.
    svg = re.sub(r' (aria-label|aria-roledescription|aria-hidden|role)="[^"]*"', "", svg)
    svg = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{own}-", svg)
    # A tenth of a pixel is enough to see, and half the weight of all digits that floating point has.
    svg = _PLACES.sub(lambda place: re.sub(r"-?\d+\.\d{2,}", lambda n: f"{float(n[0]):.1f}", place[0]), svg)
    return Html(re.sub(r"\s*\n\s*", "", svg))


def table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> Html:
    """Return a chart's data as a plain table: the first column names a row, the others are figures."""
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *(element("th", prose(title), scope="col") for title in head))),
            element(
                "tbody",
                *(
                    element(
                        "tr",
                        element("th", escape(row[0]), scope="row"),
                        *(element("td", escape(cell), class_="rk-number") for cell in row[1:]),
                    )
                    for row in rows
                ),
            ),
            class_="rk-table",
        ),
        class_="rk-scroll",
        tabindex="0",
    )
