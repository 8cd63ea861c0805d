# %% [markdown]
# # One claim, from samples to a verdict
#
# The article gives a range for the speedup of ResNet-50. This notebook takes the samples that the
# [data page](../data.html) offers, works out an interval step by step, holds it to the article's range, and checks
# that the judge said the same. It ran when this site was built; a step that disagrees with the judge stops the build.
#
# To run it yourself, take [this file](claim.py) into the project's root folder, write the data there with
# `python -m reportkit export data`, and open it with Jupyter and Jupytext.

# %% tags=["remove_input"]
from reportkit.site import charts

charts.draw_in_notebooks()

# %%
import json
import os
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
from IPython import get_ipython

from reportkit import statistics

CLAIM, LANE = "table-resnet50", "2.5"
DATA = Path(os.environ.get("REPORTKIT_EXPORTS", "data"))

index = json.loads((DATA / "index.json").read_text())
names = {file["kind"]: file["name"] for file in index["files"]}
verdicts = json.loads((DATA / names["verdicts"]).read_text(encoding="utf-8"))

# %% [markdown]
# ## Which samples
#
# A verdict names the case files that it rests on. Only verdicts that count are taken: full scale, on one of the
# edition's own machines. Where there is none yet, the cells below have nothing to work on and do nothing.

# %%
counted = [
    (verdict, part)
    for verdict in verdicts["verdicts"]
    for part in verdict["parts"]
    if verdict["id"] == CLAIM and verdict["lane"] == LANE and verdict["counted"] and part["interval"]
]
if counted:
    verdict, part = counted[0]
    print(
        f"{CLAIM} in lane {LANE} on {verdict['machine']}, precision {part['setting']}: {len(part['files'])} processes"
    )
else:
    print(f"Nothing to redo yet: no verdict on {CLAIM} in lane {LANE} rests on an interval at full scale.")
    get_ipython().input_transformers_cleanup.append(lambda lines: [])

# %% [markdown]
# Each process took its samples in pairs, one block of eager calls and one of compiled calls side by side. A sample is
# the seconds of one call, the mean over its block.

# %%
mine = pd.read_parquet(DATA / names["samples-parquet"], filters=[("file", "in", part["files"])])
clock = "gpu" if "eager_gpu" in set(mine["metric"]) else "wall"
sides = {f"{side}_{clock}": side for side in ("eager", "compiled")}
pairs = (
    mine[mine["metric"].isin(list(sides))]
    .astype({"case": str, "metric": str})
    .pivot(index=["case", "place"], columns="metric", values="value")
    .rename(columns=sides)
    .reset_index()
)
pairs["process"] = pairs["case"].str.extract(r"(\w+-\d+)$", expand=False).fillna(pairs["case"])
pairs["speedup"] = pairs["eager"] / pairs["compiled"]
pairs.groupby("process")[["eager", "compiled", "speedup"]].median().map("{:.4g}".format)

# %%
long = pairs.melt(id_vars=["case", "place"], value_vars=["eager", "compiled"], var_name="side", value_name="seconds")
long["ms"] = long["seconds"] * 1000
alt.Chart(long, height=240, description="Milliseconds a call of every pair, in order, eager and compiled.").mark_point(
    filled=True, size=14, opacity=0.7
).encode(
    x=alt.X("place:Q", title="pair"),
    y=alt.Y("ms:Q", title="ms a call", scale=alt.Scale(zero=False)),
    color=alt.Color(
        "side:N", scale=alt.Scale(domain=["eager", "compiled"], range=[charts.EAGER, charts.COMPILED]), title=None
    ),
    shape=alt.Shape("side:N", scale=alt.Scale(domain=["eager", "compiled"]), title=None),
)

# %% [markdown]
# ## The centre
#
# Within a process the speedup is the median over pairs: a drift that both sides share divides out, and an outlier
# counts once. Over processes it is the geometric mean of those medians.

# %%
medians = pairs.groupby("process")["speedup"].median()
centre = float(np.exp(np.log(medians).mean()))
assert np.isclose(centre, part["interval"]["centre"], rtol=1e-9)
print(f"{centre:.3f}x, as the judge has it")

# %% [markdown]
# ## The interval
#
# Two errors count. *Within* a process: blocks of pairs are drawn again and again, so that neighbours that resemble each
# other stay together. *Between* processes: their medians differ, and Student's t says how far a few of them can be
# from the rest. The wider of the two is taken. Random draws start from a seed, so the same samples give the same interval.

# %%
rules = verdicts["criteria"]
replicates = [
    statistics.speedup_draws(
        its["eager"].to_numpy(),
        its["compiled"].to_numpy(),
        rules["draws"],
        statistics.seed_of(rules["seed"], verdict["machine"], LANE, case, "speedup"),
    )
    for case, its in pairs.groupby("case")
]
found = {
    "within": statistics.geometric_mean(replicates),
    "judged": statistics.hierarchical(replicates, rules["draws"], 1),
}
intervals = pd.DataFrame(
    {name: draws.interval(rules["confidence"]) for name, draws in found.items()}, index=["low", "centre", "high"]
).T
assert np.allclose(intervals.loc["judged"], [part["interval"][end] for end in ("low", "centre", "high")], rtol=1e-9)
intervals.map("{:.3f}x".format)

# %% [markdown]
# ## The verdict
#
# The interval inside the range is *supported*, apart from it *refuted*, across an end *inconclusive*. Gates come first:
# where one failed, the judge gives its reason, and the interval decides nothing.

# %%
low, high = intervals.loc["judged", ["low", "high"]]
bound = verdict["bound"]
bottom, top = (end if end is not None else other for end, other in ((bound["low"], -np.inf), (bound["high"], np.inf)))
if bottom <= low and high <= top:
    mine_says = "supported"
elif high < bottom or low > top:
    mine_says = "refuted"
else:
    mine_says = "inconclusive"
if part["reason"]["code"] in {"inside", "outside", "straddles"}:
    assert mine_says == part["verdict"]
    print(f"{mine_says}: [{low:.3f}, {high:.3f}] against {bound['low']} to {bound['high']}, as the judge says")
else:
    print(
        f"the interval alone would say {mine_says}; the judge says {part['verdict']}, because of a gate: {part['reason']['code']}"
    )

# %%
ends = pd.DataFrame([{"low": low, "high": high, "centre": centre, "bottom": bound["low"], "top": bound["high"]}])
band = alt.Chart(ends).mark_rect(color="var(--rk-band)").encode(x="bottom:Q", x2="top:Q")
strip = (
    alt.Chart(pairs)
    .mark_tick(thickness=1, opacity=0.5, color=charts.COMPILED)
    .encode(
        x=alt.X("speedup:Q", title="speedup, eager over compiled", scale=alt.Scale(zero=False)),
        y=alt.Y("process:N", title=None),
    )
)
rule = alt.Chart(ends).mark_rule(size=3, color="var(--rk-text)").encode(x="low:Q", x2="high:Q")
dot = alt.Chart(ends).mark_point(filled=True, size=70, color="var(--rk-text)", opacity=1).encode(x="centre:Q")
(band + strip + rule + dot).properties(
    height=160,
    description="Speedup of every pair, a row a process; the interval as a bar; the article's range as a band.",
)

# %% [markdown]
# A reader who doubts a step can change it here and see what moves. [The method](../method.html) says why each step is as
# it is, and [the claim's page](../claims/table-resnet50.html) shows it for every lane and machine.
