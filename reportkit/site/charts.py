"""Charts: one theme, one colour pair, drawn twice without scripts and upgraded where scripts run.

A chart is a Vega-Lite specification made by Altair. The page holds it drawn for a wide and for a
narrow screen, as SVG whose colours are the theme's own variables, then the specification itself,
which `charts.js` turns into an interactive one; and its data as a table.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def figure(chart: Chart, data: str) -> Html:
    """Return the chart as HTML; `data` is the word on the fold-out with its table."""
    return element(
        "figure",
        element("figcaption", prose(chart.title)),
        _plot(chart),
        element("script", script_json(chart.spec), type="application/json"),
        element("p", prose(chart.note), class_="rk-note") if chart.note else NOTHING,
        element("details", element("summary", prose(data)), chart.table, class_="rk-more"),
        class_="rk-chart",
        id=f"chart-{chart.id}",
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


def speedups(rows: Sequence[Row], lanes: Sequence[str], words: Mapping[str, str]) -> dict[str, Any]:
    """Return dots with their intervals: a row a workload, a mark a lane, 1.0 marked, eager time at the end.

    Each row has `row`, `lane`, `low`, `centre`, `high`, `eager` (a text) and `shown` (a text).
    """
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    many = len(lanes) > 1
    y = _rows(order, words["rows"])
    offset = alt.YOffset("lane:N", sort=list(lanes)) if many else alt.Undefined
    base = alt.Chart(_data(rows)).encode(y=y)
    if many:
        base = base.encode(yOffset=offset)
    x = alt.X(
        "low:Q",
        scale=alt.Scale(zero=False, nice=True, padding=12, domainMin=_least(rows)),
        title=words["x"],
        axis=_axis(words["x"], format=".1f", tickCount=6),
    )
    shape = alt.Shape(
        "lane:N",
        scale=alt.Scale(domain=list(lanes), range=list(_SHAPES[: len(lanes)])),
        legend=_legend(words["lane"], symbolFillColor=COMPILED, symbolStrokeColor=COMPILED) if many else None,
    )
    tooltip = [
        alt.Tooltip("row:N", title=words["rows"]),
        alt.Tooltip("lane:N", title=words["lane"]),
        alt.Tooltip("shown:N", title=words["x"]),
        alt.Tooltip("eager:N", title=words["eager"]),
    ]
    marks = [
        alt.Chart(_data([{"one": 1.0}])).mark_rule(color=TEXT, strokeDash=[2, 2]).encode(x="one:Q"),
        base.mark_rule(color=COMPILED, strokeWidth=12, opacity=0.4).encode(x=x, x2="high:Q", tooltip=tooltip),
        base.mark_point(color=COMPILED, filled=True, size=36, opacity=1).encode(
            x="centre:Q", shape=shape, tooltip=tooltip
        ),
        alt.Chart(_data(_one_a_row(rows)))
        .mark_text(align="left", dx=10, color=SOFT, fontSize=12)
        .encode(y=y, x=alt.value("width"), text="eager:N"),
    ]
    return _spec(alt.layer(*marks), height=max(36, 12 + 14 * len(lanes)) * len(order), right=64)


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
    x = alt.X("time:Q", scale=alt.Scale(zero=True, nice=True), title=title, axis=_axis(title, tickCount=6))
    marks = [
        alt.Chart(_data(rows)).mark_rule(color=GRID, strokeWidth=3).encode(y=y, x="eager:Q", x2="compiled:Q"),
        alt.Chart(_data(points))
        .mark_point(filled=True, size=80, opacity=0.9)
        .encode(
            y=y,
            x=x,
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
        alt.Chart(_data(points))
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
        alt.Chart(_data(points))
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


def timers(rows: Sequence[Row], words: Mapping[str, str]) -> dict[str, Any]:
    """Return seconds on a logarithmic axis: a row a timer, a shape a workload, hollow where it is off the truth.

    Each row has `row`, `workload`, `time` in seconds, `near` (one of two words) and `shown`.
    """
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    workloads = list(dict.fromkeys(str(row["workload"]) for row in rows))
    states = [words["near"], words["far"]]
    shapes = [_SHAPES[place % len(_SHAPES)] for place in range(len(workloads))]
    fill = alt.Scale(domain=states, range=[TEXT, "transparent"])
    chart = (
        alt.Chart(_data(rows))
        .mark_point(size=60, strokeWidth=1.5, stroke=TEXT, opacity=1)
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
            fill=alt.Fill("near:N", scale=fill, legend=None),
            tooltip=[
                alt.Tooltip("row:N", title=words["rows"]),
                alt.Tooltip("workload:N", title=words["workload"]),
                alt.Tooltip("shown:N", title=words["x"]),
                alt.Tooltip("near:N", title=" "),
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


def _legend(title: str | None = None, **options: Any) -> alt.Legend:
    return alt.Legend(orient="top", title=title, symbolOpacity=1, **options)


def _axis(description: str, **options: Any) -> alt.Axis:
    """Return an axis with its description in the page's language, for screen readers."""
    return alt.Axis(description=plain(description), **options)


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


def _least(rows: Sequence[Row]) -> float:
    """Return the left end of a speedup axis: 1.0 is always on it."""
    return min([0.98, *(float(row["low"]) for row in rows)])


def _one_a_row(rows: Sequence[Row]) -> list[Row]:
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(str(row["row"]), row)
    return list(first.values())


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
        return {"text/html": _plot(chart), "text/plain": described}

    alt.renderers.register("reportkit", draw)
    alt.renderers.enable("reportkit")


def _plot(chart: Chart) -> Html:
    """Return the static drawings for both screens."""
    label = plain(chart.description)
    return element(
        "div",
        element("div", _svg(chart, WIDE), class_="rk-wide", role="img", aria_label=label),
        element("div", _svg(chart, NARROW), class_="rk-narrow", role="img", aria_label=label),
        class_="rk-plot",
        data_search_exclude=True,  # Ticks and legends are no words to find.
    )


def _svg(chart: Chart, width: int) -> Html:
    """Return the chart drawn at a width, its ids made its own: a page holds several drawings."""
    svg: str = vl_convert.vegalite_to_svg({**chart.spec, "width": width})
    own = f"{chart.id}-{width}"
    svg = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{own}-", svg)
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
