/* Tables that a reader can search, filter, sort, share by address and take along.

   The contract; reportkit/site/tables.py writes it, and without scripts it is a plain table with every row:

   <div class="rk-sheet">
     <script type="application/json">{
       "name": "",            begins this table's keys in the address, "NAME.KEY"; one table of a page may have none
       "file": "ledger",      what a download is called, before .csv or .md
       "filters": [{"key": "lane", "title": "lane", "words": [["2.4", "2.4"]], "reveals": true}],
       "words": {"find": "", "all": "", "count": "{shown} {all}", "more": "{count}", "clear": "", "none": "",
                 "download": "", "csv": "", "markdown": ""}
     }</script>
     <table>
       <thead><tr><th data-key="speedup" data-numbers="low|centre|high">...
       <tbody><tr data-minor data-lane="2.5"><td data-sort="3" data-text="three" data-numbers="1.2 1.3 1.4">...

   - A filter is a select over the values that rows have in the attribute of its key, in the order of its words;
     a value without a word comes after them, as it is. With one value only there is nothing to choose.
   - A row with data-minor is hidden until the switch "more" is on, or until a filter that reveals is chosen.
   - A column with data-key can be sorted: ascending, descending, as it was. It sorts by data-sort, else by the
     middle one of data-numbers, else by the text; what is empty comes last. A column without is no data: it is
     not in a download either.
   - A column with data-numbers is in a CSV as that many columns of plain numbers; in Markdown as it is shown.
   - In the address: find=TEXT, sort=KEY or sort=-KEY, more=1, and KEY=VALUE for a filter. What others put there
     stays. (Not q: the theme's search takes that.) An anchor that is a value of a filter chooses it. */
"use strict";

(() => {
  /* What a cell says: no drawing, and no sign that stands beside its word. */
  const said = (cell) => {
    if (cell.dataset.text !== undefined) return cell.dataset.text;
    const copy = cell.cloneNode(true);
    for (const extra of copy.querySelectorAll("svg, [aria-hidden=true]")) extra.remove();
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const numbers = (cell) => (cell.dataset.numbers || "").split(" ").filter(Boolean);
  const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

  /* A cell of a spreadsheet that begins like a formula is one. */
  const csv = (text) => {
    if (number.test(text)) return text;
    return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  const markdown = (text) => text.replace(/[\\`*_[\]<>|~&#!]/g, "\\$&");

  const make = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  let ids = 0;
  const labelled = (word, control) => {
    control.id = `rk-${(ids += 1)}`;
    return make("div", {}, make("label", { textContent: word, htmlFor: control.id }), control);
  };

  const sheet = (whole) => {
    const { name, file, filters, words } = JSON.parse(whole.querySelector("script[type='application/json']").textContent);
    const table = whole.querySelector("table");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const minor = rows.filter((row) => "minor" in row.dataset).length;
    const texts = new Map(rows.map((row) => [row, [...row.cells].map(said).join(" ").toLowerCase()]));
    const own = (key) => (name ? `${name}.${key}` : key);
    const arrived = new URLSearchParams(location.search);
    let anchor = location.hash.slice(1);
    let order = { column: -1, down: false };

    const find = make("input", { type: "search", value: arrived.get(own("find")) || "" });
    const bar = make("form", { className: "rk-filters" }, labelled(words.find, find));
    bar.addEventListener("submit", (event) => event.preventDefault());
    const selects = filters.flatMap((filter) => {
      const present = new Set(rows.map((row) => row.dataset[filter.key]).filter(Boolean));
      if (present.size < 2 && !arrived.has(own(filter.key))) return [];
      const known = filter.words.filter(([value]) => present.has(value));
      for (const [value] of known) present.delete(value);
      const choices = [...known, ...[...present].map((value) => [value, value])];
      const select = make("select", {}, new Option(words.all, ""));
      for (const [value, word] of choices) select.append(new Option(word, value));
      const chosen = choices.some(([value]) => value === anchor) ? anchor : arrived.get(own(filter.key));
      if (chosen === anchor) anchor = "";
      select.value = chosen || "";
      if (select.selectedIndex < 0) select.value = "";
      bar.append(labelled(filter.title, select));
      return [{ ...filter, select }];
    });
    const more = make("input", { type: "checkbox", checked: arrived.has(own("more")) });
    if (minor) {
      bar.append(make("label", { className: "rk-switch" }, more, words.more.replace("{count}", minor)));
    }
    const count = make("span");
    count.setAttribute("role", "status");
    const clear = make("button", { type: "button", textContent: words.clear });
    const foot = make("div", { className: "rk-count" }, count, clear);
    whole.prepend(bar, foot);

    const address = () => {
      const kept = new URLSearchParams(location.search);
      const set = (key, value) => (value ? kept.set(own(key), value) : kept.delete(own(key)));
      set("find", find.value.trim());
      for (const { key, select } of selects) set(key, select.value);
      set("more", more.checked ? "1" : "");
      set("sort", order.column < 0 ? "" : (order.down ? "-" : "") + heads[order.column].dataset.key);
      const query = kept.toString();
      const hash = anchor ? `#${anchor}` : "";
      history.replaceState(null, "", location.pathname + (query ? `?${query}` : "") + hash);
    };

    const show = () => {
      const wanted = find.value.trim().toLowerCase();
      const revealed = more.checked || selects.some(({ reveals, select }) => reveals && select.value);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !((revealed || !("minor" in row.dataset))
          && texts.get(row).includes(wanted)
          && selects.every(({ key, select }) => !select.value || row.dataset[key] === select.value));
        shown += !row.hidden;
      }
      const all = revealed ? rows.length : rows.length - minor;
      count.textContent = shown || !rows.length
        ? words.count.replace("{shown}", shown).replace("{all}", all)
        : words.none;
      clear.hidden = !(wanted || order.column >= 0 || more.checked || selects.some(({ select }) => select.value));
      for (const button of downloads) button.disabled = !shown;
    };

    const value = (row, column) => {
      const cell = row.cells[column];
      const found = numbers(cell);
      return cell.dataset.sort ?? found[Math.floor(found.length / 2)] ?? said(cell);
    };
    const arrange = () => {
      const { column, down } = order;
      heads.forEach((head, place) => {
        if (head.dataset.key) head.setAttribute("aria-sort", place !== column ? "none" : down ? "descending" : "ascending");
      });
      const keys = new Map(column < 0 ? [] : rows.map((row) => [row, value(row, column)]));
      body.append(...(column < 0 ? rows : [...rows].sort((one, other) => {
        const [a, b] = [keys.get(one), keys.get(other)];
        if (a === "" || b === "") return (a === "") - (b === "");
        const ascending = isNaN(a) || isNaN(b) ? a.localeCompare(b, document.documentElement.lang) : a - b;
        return down ? -ascending : ascending;
      })));
    };

    heads.forEach((head, column) => {
      if (!head.dataset.key) return;
      const button = make("button", { type: "button", className: "rk-sort" }, ...head.childNodes);
      button.addEventListener("click", () => {
        if (order.column !== column) order = { column, down: false };
        else order = order.down ? { column: -1, down: false } : { column, down: true };
        arrange();
        show();
        address();
      });
      head.append(button);
    });

    /* What is shown, in the order shown: as a download made here, so that it works from disk. */
    const shown = () => [...body.rows].filter((row) => !row.hidden);
    const columns = heads.flatMap((head, place) => (head.dataset.key ? [place] : []));
    const title = (place) => said(heads[place]);
    const wide = (place) => (heads[place].dataset.numbers || "").split("|").filter(Boolean);
    const asCsv = () => {
      const lines = [columns.flatMap((place) => (wide(place).length ? wide(place) : [title(place)]))];
      for (const row of shown()) {
        lines.push(columns.flatMap((place) => {
          const found = numbers(row.cells[place]);
          return wide(place).length ? wide(place).map((_, each) => found[each] ?? "") : [said(row.cells[place])];
        }));
      }
      // The mark in front tells a spreadsheet that this is UTF-8.
      return `\ufeff${lines.map((line) => line.map(csv).join(",")).join("\r\n")}\r\n`;
    };
    const asMarkdown = () => {
      const line = (cells) => `| ${cells.join(" | ")} |`;
      const right = (place) => heads[place].classList.contains("rk-number");
      return [
        line(columns.map((place) => markdown(title(place)))),
        line(columns.map((place) => (right(place) ? "--:" : "---"))),
        ...shown().map((row) => line(columns.map((place) => markdown(said(row.cells[place]))))),
      ].join("\n") + "\n";
    };
    const download = (word, ending, type, text) => {
      const button = make("button", { type: "button", textContent: word });
      button.setAttribute("aria-label", `${words.download}: ${word}`);
      button.addEventListener("click", () => {
        const href = URL.createObjectURL(new Blob([text()], { type: `${type};charset=utf-8` }));
        make("a", { href, download: `${file}.${ending}` }).click();
        setTimeout(() => URL.revokeObjectURL(href), 60000);
      });
      return button;
    };
    const downloads = [
      download(words.csv, "csv", "text/csv", asCsv),
      download(words.markdown, "md", "text/markdown", asMarkdown),
    ];
    foot.append(make("span", { className: "rk-take" }, words.download, ...downloads));

    clear.addEventListener("click", () => {
      find.value = "";
      more.checked = false;
      for (const { select } of selects) select.value = "";
      order = { column: -1, down: false };
      arrange();
      show();
      address();
      find.focus();
    });
    bar.addEventListener("input", () => {
      show();
      address();
    });

    const sorted = arrived.get(own("sort")) || "";
    order = { column: heads.findIndex((head) => head.dataset.key && head.dataset.key === sorted.replace(/^-/, "")), down: sorted.startsWith("-") };
    arrange();
    show();
    address();
  };

  for (const whole of document.querySelectorAll(".rk-sheet")) sheet(whole);
})();

/* A table of prose is wrapped by the theme so that it scrolls inside itself; a keyboard must reach it to scroll it. */
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) wrap.tabIndex = 0;
});
