# %% [markdown]
# # What noise looks like, and one release against another
#
# Two runs of the same program never take the same time. This notebook shows how far samples scatter, what pairing them
# takes away, how an interval narrows as pairs are added, and how much one process differs from the next. Then
# it holds one release of PyTorch against another. It ran when this site was built, on the samples that the
# [data page](../data.html) offers; [this file](noise.py) runs on your machine as [the first notebook](claim.html) does.

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

CASE, LANE, SEED = "table.resnet50-d-cold-1", "2.5", 1
DATA = Path(os.environ.get("REPORTKIT_EXPORTS", "data"))

index = json.loads((DATA / "index.json").read_text())
names = {file["kind"]: file["name"] for file in index["files"]}
# Only files that count, at full scale, on one of the edition's own machines.
wanted = [
    ("experiment", "==", CASE.partition(".")[0]),
    ("scale", "==", "full"),
    ("counts", "==", True),
    ("contributed", "==", False),
]
samples = pd.read_parquet(DATA / names["samples-parquet"], filters=wanted)
samples = samples.astype({"case": str, "metric": str, "lane": str, "machine": str})

# %% [markdown]
# ## Samples in order
#
# One process of ResNet-50: eager and compiled blocks in turn. Where there is no such process yet, the cells below have
# nothing to work on and do nothing.

# %%
clock = "gpu" if "eager_gpu" in set(samples["metric"]) else "wall"
sides = {f"{side}_{clock}": side for side in ("eager", "compiled")}
timed = samples[samples["metric"].isin(list(sides))].replace({"metric": sides})
one = timed[(timed["case"] == CASE) & (timed["lane"] == LANE)]
one = one[one["machine"] == one["machine"].min()]
pairs = one.pivot(index="place", columns="metric", values="value")
if len(pairs):
    pairs["speedup"] = pairs["eager"] / pairs["compiled"]
    print(f"{CASE} in lane {LANE} on {one['machine'].iloc[0]}: {len(pairs)} pairs, by the {clock} clock")
else:
    print(f"Nothing to show yet: {CASE} has no file that counts in lane {LANE} at full scale.")
    get_ipython().input_transformers_cleanup.append(lambda lines: [])

# %%
shown = (pairs / pairs.median() - 1).reset_index().melt(id_vars="place", var_name="what", value_name="off")
alt.Chart(
    shown, height=240, description="How far each sample is from the median: eager, compiled, and their ratio."
).mark_line(point=alt.OverlayMarkDef(size=12), strokeWidth=1).encode(
    x=alt.X("place:Q", title="pair"),
    y=alt.Y("off:Q", title="off the median", axis=alt.Axis(format="+.1%")),
    color=alt.Color(
        "what:N",
        scale=alt.Scale(
            domain=["eager", "compiled", "speedup"], range=[charts.EAGER, charts.COMPILED, "var(--rk-inconclusive)"]
        ),
        title=None,
    ),
    shape=alt.Shape("what:N", scale=alt.Scale(domain=["eager", "compiled", "speedup"]), title=None),
)

# %% [markdown]
# ## What pairing takes away
#
# The middle half of the samples spans this share of their median. Where both sides drift together, their ratio scatters
# less than either. *Inherited* is how much of a sample's deviation the next one takes over: at zero samples are independent.

# %%
quartiles = pairs.quantile([0.25, 0.5, 0.75])
scatter = pd.DataFrame(
    {
        "middle half": (quartiles.loc[0.75] - quartiles.loc[0.25]) / quartiles.loc[0.5],
        "inherited": [statistics.persistence(pairs[column].to_numpy()) for column in pairs],
    }
)
scatter.apply(lambda column: column.map({"middle half": "{:.2%}", "inherited": "{:.2f}"}[column.name].format))

# %% [markdown]
# ## How an interval narrows
#
# Half the interval over its centre, as pairs are added. Four times the pairs halve it, and no number of pairs makes
# up for what one process does not see.

# %%
sizes = [size for size in (8, 15, 30, 60, 120, 240, 480) if size < len(pairs)] + [len(pairs)]
narrowing = pd.DataFrame(
    [
        {
            "pairs": size,
            "noise": statistics.speedup_draws(
                part["eager"].to_numpy(), part["compiled"].to_numpy(), 2000, SEED
            ).noise(),
        }
        for size in sizes
        for part in [pairs.head(size)]
    ]
)
alt.Chart(narrowing, height=200, description="Half the interval over its centre, by the number of pairs.").mark_line(
    point=True, color=charts.COMPILED
).encode(
    x=alt.X("pairs:Q", scale=alt.Scale(type="log"), title="pairs"),
    y=alt.Y("noise:Q", axis=alt.Axis(format=".1%"), title="half the interval", scale=alt.Scale(zero=True)),
)

# %% [markdown]
# ## One process and the next
#
# The same work in other processes. Where their medians lie further apart than an interval is wide, the error is between
# processes, and timing one of them for longer does not help.

# %%
alike = timed[timed["case"].str.startswith(CASE.rsplit("-", 2)[0]) & (timed["lane"] == LANE)]
alike = alike[alike["machine"] == one["machine"].iloc[0]]
every = alike.pivot(index=["case", "place"], columns="metric", values="value").dropna()
rows = []
for case, its in every.groupby(level="case"):
    draws = statistics.speedup_draws(its["eager"].to_numpy(), its["compiled"].to_numpy(), 2000, SEED)
    rows.append(dict(zip(("low", "centre", "high"), draws.interval(), strict=True), process="-".join(case.split("-")[-2:])))
processes = pd.DataFrame(rows)
base = alt.Chart(processes).encode(y=alt.Y("process:N", title=None))
bars = base.mark_rule(size=3, color=charts.COMPILED).encode(
    x=alt.X("low:Q", title="speedup", scale=alt.Scale(zero=False)), x2="high:Q"
)
dots = base.mark_point(filled=True, size=60, color=charts.COMPILED, opacity=1).encode(x="centre:Q")
(bars + dots).properties(
    height=34 * len(processes) + 20, description="Speedup and interval of each process, a row each."
)

# %% [markdown]
# ## One release against another
#
# A release ratio is the older lane's time over the newer one's, above 1 the newer is faster; eager has one, and compiled
# has another. They come from different days, so nothing pairs up: each side is a median with draws of its own. To be
# *significant* takes more than this interval: the anchors of both hosts must agree too, as
# [the method](../method.html#releases) says.

# %%
known = [lane for lane in ("2.4", "2.5", "2.15") if lane in set(timed.loc[timed["case"] == CASE, "lane"])]
ratios = []
for older, newer in zip(known, known[1:], strict=False):
    for side in ("eager", "compiled"):
        both = [
            timed[
                (timed["case"] == CASE)
                & (timed["lane"] == lane)
                & (timed["metric"] == side)
                & (timed["machine"] == one["machine"].iloc[0])
            ]["value"].to_numpy()
            for lane in (older, newer)
        ]
        if all(map(len, both)):
            first, second = (statistics.median_draws(times, 2000, SEED + place) for place, times in enumerate(both))
            low, centre, high = (first / second).interval()
            ratios.append(
                {
                    "from": older,
                    "to": newer,
                    "side": side,
                    "older ms": f"{np.median(both[0]) * 1000:.3g}",
                    "newer ms": f"{np.median(both[1]) * 1000:.3g}",
                    "release ratio": f"{centre:.3f}x [{low:.3f}, {high:.3f}]",
                }
            )
if ratios:
    table = pd.DataFrame(ratios).set_index(["from", "to", "side"])
else:
    table = f"Only lane {LANE} has files that count, so there is nothing to hold it against yet."
table
