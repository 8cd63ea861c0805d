/* Make each static chart interactive: the same specification, laid out for the width there is. Colours
   are the theme's variables in SVG, so that light and dark need no redrawing. */
"use strict";

(() => {
  const NARROW = 560;

  /* A drawing that stands alone: its title in it, colours instead of variables, a ground. */
  const whole = async (spec, title, width) => {
    const titled = { ...spec, width, title: { text: title, anchor: "start", fontSize: 13, color: "var(--rk-text)", offset: 12, limit: width } };
    const result = await vegaEmbed(document.createElement("div"), titled, { actions: false, renderer: "svg" });
    const holder = document.createElement("div");
    const style = getComputedStyle(document.body);
    const colour = (_, name) => style.getPropertyValue(name).trim();
    holder.innerHTML = (await result.view.toSVG()).replace(/var\((--rk-[a-z-]+)\)/g, colour);
    result.finalize();
    const svg = holder.querySelector("svg");
    const ground = document.createElementNS(svg.namespaceURI, "rect");
    ground.setAttribute("width", "100%");
    ground.setAttribute("height", "100%");
    ground.setAttribute("fill", style.getPropertyValue("--rk-ground").trim());
    svg.prepend(ground);
    return svg;
  };

  const picture = (svg) => new Promise((resolve, reject) => {
    const image = new Image();
    const [width, height] = ["width", "height"].map((side) => Number(svg.getAttribute(side)));
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(resolve, "image/png");
    };
    image.onerror = () => reject(new Error("the drawing could not be read back"));
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg.outerHTML)}`;
  });

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  /* Vega describes axes and legends in English sentences: what stands on them says it in the page's language. */
  const described = (live) => live.querySelectorAll("[aria-roledescription=axis], [aria-roledescription=legend]").forEach((part) => {
    const texts = (role) => [...part.querySelectorAll(`.role-${role} text`)].map((one) => one.textContent);
    const kind = part.getAttribute("aria-roledescription");
    const words = [...texts(`${kind}-title`), ...texts(`${kind}-label`)];
    part.setAttribute("aria-label", words.filter(Boolean).join(", "));
  });

  /* Arrow keys go from point to point; what each says is read out and shown below the plot. */
  const steppable = (figure, live) => {
    const said = document.createElement("p");
    said.className = "rk-said";
    said.setAttribute("role", "status");
    live.tabIndex = 0;
    live.setAttribute("role", "group");
    live.setAttribute("aria-label", `${figure.querySelector("figcaption").textContent} ${figure.dataset.points}`);
    let at = -1;
    const clear = () => live.querySelectorAll("[data-at]").forEach((one) => one.removeAttribute("data-at"));
    live.addEventListener("focus", () => { if (at < 0) said.textContent = figure.dataset.points; });
    live.addEventListener("blur", () => { clear(); at = -1; said.textContent = ""; });
    live.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const points = [...live.querySelectorAll(".mark-symbol [aria-label]")];
      if (!step || !points.length) return;
      event.preventDefault();
      clear();
      at = (at + step + points.length + (at < 0 && step < 0 ? 1 : 0)) % points.length;
      points[at].setAttribute("data-at", "");
      said.textContent = points[at].getAttribute("aria-label");
    });
    return said;
  };

  const draw = (figure) => {
    const plot = figure.querySelector(".rk-plot");
    const specs = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const live = document.createElement("div");
    live.className = "rk-live";
    const spec = (width) => (width < NARROW && specs.narrow ? { ...specs.narrow, description: specs.wide.description } : specs.wide);
    let view = null;
    let drawn = 0;
    let said = null;
    const redraw = async () => {
      // A panel that is not seen has no width; its chart is laid out for the page's, to be there at once.
      const width = Math.min(960, plot.clientWidth || figure.closest(".md-content__inner").clientWidth - 32);
      if (width <= 0 || width === drawn) return;
      drawn = width;
      const target = document.createElement("div");
      const options = { actions: false, renderer: "svg", tooltip: { theme: "custom", disableDefaultStyle: true } };
      const result = await vegaEmbed(target, { ...spec(width), width }, options);
      if (view) view.finalize();
      view = result;
      described(target);
      live.replaceChildren(target);
      plot.querySelectorAll(".rk-wide, .rk-narrow").forEach((still) => still.classList.add("rk-still"));
      plot.append(live);
      if (!said) {
        said = steppable(figure, live);
        plot.after(said);
      }
    };
    const buttons = figure.querySelector(".rk-save");
    buttons.addEventListener("click", async (event) => {
      const kind = event.target.dataset.kind;
      if (!kind) return;
      try {
        const svg = await whole(spec(drawn), figure.querySelector("figcaption").textContent, drawn);
        const blob = kind === "png" ? await picture(svg) : new Blob([svg.outerHTML], { type: "image/svg+xml" });
        save(blob, `${figure.id}.${kind}`);
      } catch (error) {
        console.warn("chart not saved:", error);
      }
    });
    const first = redraw().then(() => { buttons.hidden = false; });
    new ResizeObserver(() => redraw().catch(() => {})).observe(figure);
    return first.catch((error) => console.warn("chart stays static:", error));
  };

  const figures = [...document.querySelectorAll("figure.rk-chart")];
  const seen = (figure) => figure.offsetParent !== null;
  // Those in sight first, the others after, one by one: nobody waits for what is not seen.
  Promise.all(figures.filter(seen).map(draw)).then(async () => {
    for (const figure of figures.filter((one) => !one.querySelector(".rk-live"))) await draw(figure);
  });
})();
