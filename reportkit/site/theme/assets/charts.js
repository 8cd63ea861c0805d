/* Make each static chart interactive: same specification, laid out for the width there is. Colours
   are the theme's variables in SVG, so that light and dark need no redrawing. */
"use strict";

(() => {
  const draw = (figure) => {
    const plot = figure.querySelector(".rk-plot");
    const spec = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const live = document.createElement("div");
    live.className = "rk-live";
    let view = null;
    let drawn = 0;
    const redraw = async () => {
      const width = Math.min(960, plot.clientWidth);
      if (!width || width === drawn) return;
      drawn = width;
      const target = document.createElement("div");
      const options = { actions: false, renderer: "svg", tooltip: { theme: "custom", disableDefaultStyle: true } };
      const result = await vegaEmbed(target, { ...spec, width }, options);
      if (view) view.finalize();
      view = result;
      live.replaceChildren(target);
      plot.querySelectorAll(".rk-wide, .rk-narrow").forEach((still) => still.classList.add("rk-still"));
      plot.append(live);
    };
    redraw().catch((error) => console.warn("chart stays static:", error));
    new ResizeObserver(() => redraw().catch(() => {})).observe(figure);
  };
  document.querySelectorAll("figure.rk-chart").forEach(draw);
})();
