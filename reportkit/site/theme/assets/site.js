/* The ledger: sort by any column, filter by what the rows say, keep the filter in the address. */
"use strict";

(() => {
  const whole = document.querySelector(".rk-ledger-whole");
  if (!whole) return;
  const words = JSON.parse(whole.querySelector("script[type='application/json']").textContent);
  const table = whole.querySelector("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const state = new URLSearchParams(location.search);
  const arrived = location.hash.slice(1);
  if (rows.some((row) => row.dataset.outcome === arrived)) state.set("outcome", arrived);

  const bar = document.createElement("form");
  bar.className = "rk-filters";
  bar.addEventListener("submit", (event) => event.preventDefault());
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = words.search;
  search.setAttribute("aria-label", words.search);
  search.value = state.get("q") || "";
  bar.append(search);
  const selects = [["outcome", "verdict"], ["lane", "lane"], ["machine", "machine"], ["section", "section"]].map(([key, word]) => {
    const select = document.createElement("select");
    select.setAttribute("aria-label", words[word]);
    select.append(new Option(`${words[word]}: ${words.all}`, ""));
    const seen = new Map(rows.map((row) => [row.dataset[key], key === "outcome" ? row.dataset.verdict : row.dataset[key]]));
    for (const [value, shown] of seen) if (value) select.append(new Option(shown, value));
    select.value = state.get(key) || "";
    if (select.selectedIndex < 0) select.value = "";
    bar.append(select);
    return [key, select];
  });
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  bar.append(count);
  whole.prepend(bar);

  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(wanted)
        && selects.every(([key, select]) => !select.value || row.dataset[key] === select.value);
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = words.count.replace("{shown}", shown).replace("{all}", rows.length);
    const address = new URLSearchParams();
    if (search.value) address.set("q", search.value);
    for (const [key, select] of selects) if (select.value) address.set(key, select.value);
    const query = address.toString();
    history.replaceState(null, "", location.pathname + (query ? `?${query}` : "") + (arrived === "damaged" ? "#damaged" : ""));
  };
  bar.addEventListener("input", filter);
  filter();

  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.setAttribute("aria-sort", "none");
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = [...rows].sort((one, other) => {
        const [a, b] = [key(one, column), key(other, column)];
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = isNaN(a) || isNaN(b) ? a.localeCompare(b, document.documentElement.lang) : a - b;
        return down ? -order : order;
      });
      body.append(...sorted);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
    });
  });
})();

/* A table of prose is wrapped by the theme so that it scrolls inside itself; a keyboard must reach it to scroll it. */
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) wrap.tabIndex = 0;
});
