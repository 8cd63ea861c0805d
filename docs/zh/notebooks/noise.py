# %% [markdown]
# # 噪声是什么样子，一个版本与另一个版本怎么比
#
# 同一个程序跑两遍，用时从来不会相同。这个笔记本展示样本散布多大、成对测量消去了什么、样本对增加时区间怎样变窄，以及一个进程与下一个相差多少；然后拿 PyTorch 的一个版本与另一个版本相比。它在生成本站时运行，所用样本来自[数据页](../data.html)；[这个文件](noise.py)在你的机器上也能运行，做法与[第一个笔记本](claim.html)相同。

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
# 只取作数的文件：完整规模，在本版指定的机器上。
wanted = [
    ("experiment", "==", CASE.partition(".")[0]),
    ("scale", "==", "full"),
    ("counts", "==", True),
    ("contributed", "==", False),
]
samples = pd.read_parquet(DATA / names["samples-parquet"], filters=wanted)
samples = samples.astype({"case": str, "metric": str, "lane": str, "machine": str})

# %% [markdown]
# ## 按先后排列的样本
#
# ResNet-50 的一个进程：eager 块与编译块轮流。如果还没有这样的进程，下面的单元格无事可做，什么也不输出。

# %%
clock = "gpu" if "eager_gpu" in set(samples["metric"]) else "wall"
sides = {f"{side}_{clock}": side for side in ("eager", "compiled")}
timed = samples[samples["metric"].isin(list(sides))].replace({"metric": sides})
one = timed[(timed["case"] == CASE) & (timed["lane"] == LANE)]
one = one[one["machine"] == one["machine"].min()]
pairs = one.pivot(index="place", columns="metric", values="value")
if len(pairs):
    pairs["speedup"] = pairs["eager"] / pairs["compiled"]
    print(f"{CASE}，版本线 {LANE}，机器 {one['machine'].iloc[0]}：{len(pairs)} 个样本对，时钟 {clock}")
else:
    print(f"还没有可看的：在版本线 {LANE} 上，{CASE} 尚无完整规模下作数的文件。")
    get_ipython().input_transformers_cleanup.append(lambda lines: [])

# %%
shown = (pairs / pairs.median() - 1).reset_index().melt(id_vars="place", var_name="what", value_name="off")
alt.Chart(
    shown, height=240, description="每个样本偏离中位数多少：eager、编译后，以及两者的比值。"
).mark_line(point=alt.OverlayMarkDef(size=12), strokeWidth=1).encode(
    x=alt.X("place:Q", title="样本对"),
    y=alt.Y("off:Q", title="偏离中位数", axis=alt.Axis(format="+.1%")),
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
# ## 成对测量消去了什么
#
# 居中的一半样本，其跨度占中位数的比例如下。两侧一同漂移的地方，它们的比值比任何一侧都更集中。*继承*是指一个样本的偏离有多少传给了下一个：为零时样本彼此独立。

# %%
quartiles = pairs.quantile([0.25, 0.5, 0.75])
scatter = pd.DataFrame(
    {
        "居中一半": (quartiles.loc[0.75] - quartiles.loc[0.25]) / quartiles.loc[0.5],
        "继承": [statistics.persistence(pairs[column].to_numpy()) for column in pairs],
    }
)
scatter.apply(lambda column: column.map({"居中一半": "{:.2%}", "继承": "{:.2f}"}[column.name].format))

# %% [markdown]
# ## 区间怎样变窄
#
# 下图是样本对增加时，区间的一半除以中心。样本对增加到四倍，它减半；但再多的样本对，也补不上一个进程看不到的东西。

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
alt.Chart(narrowing, height=200, description="区间的一半除以中心，随样本对数的变化。").mark_line(
    point=True, color=charts.COMPILED
).encode(
    x=alt.X("pairs:Q", scale=alt.Scale(type="log"), title="样本对数"),
    y=alt.Y("noise:Q", axis=alt.Axis(format=".1%"), title="区间的一半", scale=alt.Scale(zero=True)),
)

# %% [markdown]
# ## 一个进程与下一个
#
# 同样的工作，换几个进程来做。如果它们的中位数彼此相距大于区间的宽度，误差就在进程之间，把其中一个测得再久也没有用。

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
    x=alt.X("low:Q", title="加速比", scale=alt.Scale(zero=False)), x2="high:Q"
)
dots = base.mark_point(filled=True, size=60, color=charts.COMPILED, opacity=1).encode(x="centre:Q")
(bars + dots).properties(
    height=34 * len(processes) + 20, description="每个进程的加速比及区间，每个一行。"
)

# %% [markdown]
# ## 一个版本与另一个版本
#
# 版本比是旧版本线的耗时除以新版本线的耗时，大于 1，新版更快；eager 有一个，编译后另有一个。它们不是同一天测的，样本无法配对，所以每一侧各取中位数，各自重抽样。要说*显著*，光看这个区间还不够：两台主机的锚点也必须一致，见[方法](../method.html#releases)。

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
                    "旧": older,
                    "新": newer,
                    "侧": side,
                    "旧版毫秒": f"{np.median(both[0]) * 1000:.3g}",
                    "新版毫秒": f"{np.median(both[1]) * 1000:.3g}",
                    "版本比": f"{centre:.3f}x [{low:.3f}, {high:.3f}]",
                }
            )
if ratios:
    table = pd.DataFrame(ratios).set_index(["旧", "新", "侧"])
else:
    table = f"作数的文件只有版本线 {LANE} 的，还没有可以与它相比的。"
table
