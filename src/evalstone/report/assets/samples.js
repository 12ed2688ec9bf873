/* The list of all samples: search, filter, order, pages, and samples that open. */

const PAGE_SIZE = 50;
const FILTERS = { imperfect: "not perfect", skipped: "with a skip", failed: "with a failure" };
const ORDERS = { goodness: "worst first", place: "order of the dataset", id: "ID" };

function readJson(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

function sampleList(root) {
  const { columns, per_block: perBlock, total, noun } = readJson("about");
  const index = readJson("index").map(([id, question, scores, goodness], place) => ({
    id,
    question,
    scores,
    goodness,
    place,
  }));
  const state = { order: [], shown: PAGE_SIZE, sort: "goodness", descending: false, search: "", filter: "all" };
  const panels = new Map();
  const searchable = new Map();

  const panelFor = (sample) => {
    const number = Math.floor(sample.place / perBlock);
    if (!panels.has(number)) panels.set(number, readJson(`panels${number}`));
    return panels.get(number)[sample.place % perBlock];
  };
  const wordsIn = (block) =>
    [block.title, block.text, block.why, ...(block.pairs || []).flat(), ...(block.items || []).map(wordsIn)]
      .filter(Boolean)
      .join("\n");
  const textFor = (sample) => {
    if (!searchable.has(sample)) {
      searchable.set(sample, [sample.id, ...panelFor(sample).map(wordsIn)].join("\n").toLowerCase());
    }
    return searchable.get(sample);
  };

  const matches = (sample) => {
    const { filter, search } = state;
    if (filter === "imperfect" && sample.goodness === 1) return false;
    if (filter === "skipped" || filter === "failed") {
      if (!sample.scores.some(([, text]) => text === filter)) return false;
    }
    return !search || textFor(sample).includes(search.toLowerCase());
  };
  const sortValue = (sample) => {
    if (state.sort === "goodness") return sample.goodness === null ? -1 : sample.goodness;
    if (typeof state.sort === "string") return sample[state.sort];
    const value = sample.scores[state.sort][0];
    return value === null ? -1 : value;
  };
  const compare = (a, b) => {
    const [x, y] = [sortValue(a), sortValue(b)];
    const direction = state.descending ? -1 : 1;
    return direction * (x < y ? -1 : x > y ? 1 : 0) || a.place - b.place;
  };

  const body = make("tbody", { role: "rowgroup" });
  const status = make("p", { class: "note", role: "status" });
  const more = make("button", { type: "button", class: "more" });
  const headers = [];

  const scoreCell = ([value, text, tone], column) => {
    const cell = make("td", { role: "cell", class: `number ${tone}`, "data-label": column.title }, text);
    if (value !== null) {
      // A bar grows from the worse end of the scale: from the right where lower is better.
      const fill = make("i", { class: tone });
      fill.style.width = `${(100 * value) / column.scale}%`;
      cell.append(make("span", { class: column.lower_is_better ? "bar lower" : "bar", "aria-hidden": "true" }, fill));
    }
    return cell;
  };
  const rowFor = (sample) => {
    const opener = make(
      "button",
      { class: "opener", type: "button", "aria-expanded": "false", dir: "auto" },
      sample.id,
    );
    const row = make(
      "tr",
      { class: "row", role: "row" },
      make("th", { class: "name", scope: "row", role: "rowheader" }, opener),
      make("td", { class: "question text", dir: "auto", role: "cell" }, sample.question),
      ...sample.scores.map((score, place) => scoreCell(score, columns[place])),
    );
    row.addEventListener("click", () => toggle(row, opener, sample));
    return row;
  };
  const toggle = (row, opener, sample) => {
    const open = row.classList.toggle("opened");
    opener.setAttribute("aria-expanded", String(open));
    if (!open) {
      row.nextElementSibling.remove();
      return;
    }
    const cell = make("td", { colspan: String(2 + columns.length), role: "cell" }, panelOf(panelFor(sample)));
    row.after(make("tr", { class: "detail", role: "row" }, cell));
  };

  const draw = () => {
    body.replaceChildren(...state.order.slice(0, state.shown).map(rowFor));
    describe();
    for (const [header, key] of headers) {
      if (key === state.sort) header.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    }
  };
  const describe = () => {
    const left = Math.max(0, state.order.length - state.shown);
    const order = state.sort === "goodness" && !state.descending ? ", worst first" : "";
    status.textContent = `${state.order.length.toLocaleString("en")} of ${total.toLocaleString("en")} ${noun}${order}`;
    more.hidden = left === 0;
    const all = left > PAGE_SIZE ? ` of ${left.toLocaleString("en")}` : "";
    more.textContent = `Show ${Math.min(left, PAGE_SIZE)} more${all}`;
  };
  const arrange = () => {
    state.order = index.filter(matches).sort(compare);
    state.shown = PAGE_SIZE;
    draw();
  };

  const headerFor = (title, key, kind) => {
    const button = make("button", { type: "button" }, title);
    button.addEventListener("click", () => {
      state.descending = state.sort === key && !state.descending;
      state.sort = key;
      arrange();
    });
    const header = make("th", { scope: "col", class: kind, role: "columnheader" }, button);
    headers.push([header, key]);
    return header;
  };
  const choice = (label, options, apply) => {
    const entries = Object.entries(options).map(([value, text]) => make("option", { value }, text));
    const select = make("select", {}, ...entries);
    select.addEventListener("change", () => {
      apply(select.value);
      arrange();
    });
    return make("label", {}, label, select);
  };
  const searchBox = () => {
    const input = make("input", { type: "search", placeholder: "ID, question, answer, passage, reason …" });
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        state.search = input.value;
        arrange();
      }, 150);
    });
    return make("label", { class: "grow" }, "Search", input);
  };

  const build = () => {
    const arrow = (column) => `${column.title} ${column.lower_is_better ? "↓" : "↑"}`;
    const head = make(
      "tr",
      { role: "row" },
      headerFor("sample", "id", ""),
      headerFor("question", "question", ""),
      ...columns.map((column, place) => headerFor(arrow(column), place, "number")),
    );
    const controls = make(
      "div",
      { class: "controls" },
      searchBox(),
      choice("Show", { all: `all ${noun}`, ...FILTERS }, (value) => {
        state.filter = value;
      }),
      choice("Order", ORDERS, (value) => {
        state.sort = value;
        state.descending = false;
      }),
    );
    const table = make(
      "table",
      { class: "samples", role: "table" },
      make("caption", {}, "↑ higher is better, ↓ lower is better. Click a row to open it."),
      make("thead", { role: "rowgroup" }, head),
      body,
    );
    root.append(controls, status, table, more);
    if (index.length < total) {
      const text = `This page holds the ${index.length.toLocaleString("en")} worst of ${total.toLocaleString("en")} ${noun}.`;
      root.prepend(make("p", { class: "note" }, text));
    }
    root.append(
      make(
        "p",
        { class: "note" },
        "Underlined in an answer: unsupported claims, found by matching words. The lines show where to look, not what the judge read.",
      ),
    );
    more.addEventListener("click", () => {
      const from = state.shown;
      state.shown += PAGE_SIZE;
      body.append(...state.order.slice(from, state.shown).map(rowFor));
      describe();
    });
    arrange();
  };

  /* report.html#ID opens a sample. */
  const openNamed = (id) => {
    const place = state.order.findIndex((sample) => sample.id === id);
    if (place < 0) return;
    state.shown = Math.max(PAGE_SIZE, place + 1);
    draw();
    body.children[place].click();
    body.children[place].scrollIntoView();
  };

  /* The worst samples, above the list, get the same marks and buttons as those in the list. */
  const enliven = () => {
    const known = new Map(index.map((sample) => [sample.id, sample]));
    for (const example of document.querySelectorAll(".examples > .sample")) {
      const sample = known.get(example.querySelector(".name").textContent);
      if (sample) example.querySelector(".panel").replaceWith(panelOf(panelFor(sample)));
    }
  };

  build();
  enliven();
  if (location.hash) openNamed(decodeURIComponent(location.hash.slice(1)));
}

sampleList(document.getElementById("list"));
