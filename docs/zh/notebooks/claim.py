# %% [markdown]
# # 一条论断：从样本到判定
#
# 文章给出了 ResNet-50 加速比的范围。这个笔记本读取[数据页](../data.html)提供的样本，一步步算出区间，与文章的范围相比，并核对判定程序得出的是不是同样的结果。它在生成本站时运行；只要有一步与判定程序不符，网站就不会生成。
#
# 想自己运行，把[这个文件](claim.py)放到项目的根目录，用 `python -m reportkit export data` 把数据写到那里，再用 Jupyter 和 Jupytext 打开。

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
# ## 用哪些样本
#
# 每个判定都注明它所依据的用例文件。这里只取作数的判定：完整规模，在本版指定的机器上。如果还没有，下面的单元格无事可做，什么也不输出。

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
        f"{CLAIM}，版本线 {LANE}，机器 {verdict['machine']}，精度 {part['setting']}：{len(part['files'])} 个进程"
    )
else:
    print(f"还没有可以重算的：在版本线 {LANE} 上，{CLAIM} 尚无完整规模下有区间的判定。")
    get_ipython().input_transformers_cleanup.append(lambda lines: [])

# %% [markdown]
# 每个进程成对取样：一块 eager 调用，紧挨着一块编译后的调用。一个样本是一次调用的秒数，即它那一块的平均。

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
alt.Chart(long, height=240, description="每个样本对里一次调用的毫秒数，按先后排列，eager 与编译后。").mark_point(
    filled=True, size=14, opacity=0.7
).encode(
    x=alt.X("place:Q", title="样本对"),
    y=alt.Y("ms:Q", title="每次调用，毫秒", scale=alt.Scale(zero=False)),
    color=alt.Color(
        "side:N", scale=alt.Scale(domain=["eager", "compiled"], range=[charts.EAGER, charts.COMPILED]), title=None
    ),
    shape=alt.Shape("side:N", scale=alt.Scale(domain=["eager", "compiled"]), title=None),
)

# %% [markdown]
# ## 中心
#
# 在一个进程里，加速比是各样本对的中位数：两侧共有的漂移相除之后抵消，一个离群值也只算一次。几个进程之间，取这些中位数的几何平均。

# %%
medians = pairs.groupby("process")["speedup"].median()
centre = float(np.exp(np.log(medians).mean()))
assert np.isclose(centre, part["interval"]["centre"], rtol=1e-9)
print(f"{centre:.3f}x，与判定程序一致")

# %% [markdown]
# ## 区间
#
# 误差有两种。进程*之内*：反复抽取由相邻样本对组成的块，彼此相似的邻居始终在一起。进程*之间*：各进程的中位数不同，只有几个进程时，由 Student t 分布得出它们可能偏离多少。取两者中较宽的一个。随机抽取从固定的种子开始，所以同样的样本得出同样的区间。

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
# ## 判定
#
# 区间全部在范围之内，*成立*；全部在外，*不成立*；跨在边界上，*无法定论*。在此之前要过几道关：有一道没过，判定程序会给出原因，区间就不起作用。

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
    print(f"{mine_says}：[{low:.3f}, {high:.3f}]，范围是 {bound['low']} 到 {bound['high']}，与判定程序一致")
else:
    print(
        f"单看区间是 {mine_says}；判定程序说 {part['verdict']}，因为有一道关没过：{part['reason']['code']}"
    )

# %%
ends = pd.DataFrame([{"low": low, "high": high, "centre": centre, "bottom": bound["low"], "top": bound["high"]}])
band = alt.Chart(ends).mark_rect(color="var(--rk-band)").encode(x="bottom:Q", x2="top:Q")
strip = (
    alt.Chart(pairs)
    .mark_tick(thickness=1, opacity=0.5, color=charts.COMPILED)
    .encode(
        x=alt.X("speedup:Q", title="加速比，eager 除以编译后", scale=alt.Scale(zero=False)),
        y=alt.Y("process:N", title=None),
    )
)
rule = alt.Chart(ends).mark_rule(size=3, color="var(--rk-text)").encode(x="low:Q", x2="high:Q")
dot = alt.Chart(ends).mark_point(filled=True, size=70, color="var(--rk-text)", opacity=1).encode(x="centre:Q")
(band + strip + rule + dot).properties(
    height=160,
    description="每个样本对的加速比，每个进程一行；横条是区间；色带是文章的范围。",
)

# %% [markdown]
# 对哪一步有疑问，可以在这里改动，看看结果怎样变。每一步为什么这样做，见[方法](../method.html)；各版本线、各机器上的结果，见[这条论断的页面](../claims/table-resnet50.html)。
