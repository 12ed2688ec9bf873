"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const about = read("about");
  const index = read("index");
  const chunks = new Map();
  const PAGE = 50;
  // What turns the direction of a line, hides in it, or cannot be seen; line breaks and tabs stay.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;
  const seen = (text) => String(text).replace(UNSEEN, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

  const detailOf = (place) => {
    const number = Math.floor(place / about.chunk);
    if (!chunks.has(number)) chunks.set(number, read("chunk" + number));
    return chunks.get(number)[place % about.chunk];
  };

  /* Elements are made of text only: no judged text is ever read as HTML. */
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    for (const child of children) if (child !== null) element.append(child);
    return element;
  };
  const text = (words, tag = "div") => make(tag, { class: "text", dir: "auto" }, seen(words));
  const number = (value, scale) => (value === null ? "–" : value.toFixed(scale <= 1 ? 3 : 2).replace(/\.?0+$/, "") || "0");
  const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));

  /* ---- Sentences: where in a text a claim is to be looked for ---- */
  const words = (line) => new Set((line.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []).filter((w) => w.length > 2 || /\p{N}/u.test(w)));
  const sentences = (whole) => {
    if (typeof Intl !== "undefined" && Intl.Segmenter) {
      return [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(whole)].map((s) => s.segment);
    }
    return whole.match(/[^.!?\n]+[.!?\n]*\s*|[.!?\n]+\s*/g) || [whole];
  };
  const share = (claim, line) => {
    if (!claim.size) return 0;
    const there = words(line);
    let common = 0;
    for (const word of claim) if (there.has(word)) common += 1;
    return common / claim.size;
  };
  const LEAST_SHARE = 0.3;
  const nearest = (claim, whole) => {
    const sought = words(claim);
    let best = null;
    for (const line of sentences(whole)) {
      const found = share(sought, line);
      if (found >= LEAST_SHARE && (best === null || found > best.found)) best = { line, found };
    }
    return best;
  };
  const marked = (element, whole, lines, kind = "near") => {
    element.replaceChildren();
    const parts = lines.length ? sentences(whole) : [whole];
    for (const part of parts) element.append(lines.includes(part) ? make("mark", { class: kind }, seen(part)) : seen(part));
  };

  /* ---- One sample, opened ---- */
  const VERDICTS = {
    supported: ["✓ supported", "good"], contradicted: ["✕ contradicted", "bad"], not_mentioned: ["? not mentioned", "open"],
  };
  const badge = (words, kind) => make("span", { class: "verdict " + kind }, seen(words));
  const isClaim = (item) => item && typeof item === "object" && typeof item.claim === "string" && typeof item.verdict === "string";
  const isPassage = (item) => item && typeof item === "object" && Number.isInteger(item.passage);

  const section = (name, body) => make("section", {}, make("h3", {}, name), body);
  const passagesOf = (texts, notes) => {
    const boxes = texts.map((words, place) => {
      const body = text(words);
      const tags = (notes.get(place + 1) || []).map(([said, kind]) => badge(said, kind));
      const box = make("div", { class: "passage" }, make("div", { class: "head" }, make("span", {}, "Passage " + (place + 1)), ...tags), body);
      return { box, body, words };
    });
    return boxes;
  };
  const passageNotes = (detail) => {
    const notes = new Map();
    const add = (item, scorer) => {
      const said = [];
      if (typeof item.level === "string") said.push([(item.level === "none" ? "no" : item.level) + " relevance", item.level === "none" ? "plain" : "good"]);
      if (item.used === true) said.push(["used", "good"]);
      if (item.used === false) said.push(["not used", "plain"]);
      if (item.useful === true) said.push(["useful", "good"]);
      if (item.useful === false) said.push(["not useful", "plain"]);
      const held = notes.get(item.passage) || [];
      for (const tag of said) if (!held.some((t) => t[0] === tag[0])) held.push(tag);
      notes.set(item.passage, held);
    };
    for (const outcome of detail.outcomes) {
      const evidence = outcome.evidence && outcome.evidence.passages ? outcome.evidence.passages : outcome.evidence;
      if (Array.isArray(evidence)) evidence.filter(isPassage).forEach((item) => add(item));
    }
    return notes;
  };

  const messageLine = ([role, content, calls]) => {
    const body = make("div", { class: "passage" }, make("div", { class: "head" }, seen(role)), text(content));
    for (const [name, given, result, error] of calls) {
      body.append(make("div", { class: "mono text", dir: "auto" }, seen(name + "(" + JSON.stringify(given) + ") → " + (error === null ? pretty(result) : "error: " + error))));
    }
    return body;
  };

  /* The sentences of the answer nearest to claims that no passage supports. */
  const fallenLines = (detail, answer) => {
    const lines = [];
    for (const outcome of detail.outcomes) {
      for (const item of Array.isArray(outcome.evidence) ? outcome.evidence.filter(isClaim) : []) {
        const found = ["contradicted", "not_mentioned"].includes(item.verdict) ? nearest(item.claim, answer) : null;
        if (found) lines.push(found.line);
      }
    }
    return lines;
  };

  const panelOf = (detail) => {
    const sample = detail.sample || {};
    const panel = make("div", { class: "panel" });
    const left = make("div"), right = make("div");
    const answer = sample.answer === undefined ? null : text(sample.answer);
    if (!detail.sample) panel.append(make("p", { class: "note" }, "The texts of this sample are not at hand; what the judge said of it is."));
    if (sample.question !== undefined) left.append(section("Question", text(sample.question)));
    if (answer) left.append(section("Answer", answer));
    for (const name of ["reference", "instructions"]) {
      if (sample[name] !== undefined) left.append(section(name[0].toUpperCase() + name.slice(1), text(sample[name])));
    }
    const boxes = sample.passages ? passagesOf(sample.passages, passageNotes(detail)) : [];
    if (boxes.length) right.append(section("Passages", make("div", {}, ...boxes.map((b) => b.box))));
    if (sample.messages) right.append(section("Conversation", make("div", {}, ...sample.messages.map(messageLine))));
    for (const name of ["metadata", "trajectory", "expected trajectory"]) {
      if (sample[name]) left.append(make("details", {}, make("summary", {}, name), make("pre", { class: "mono text" }, seen(pretty(sample[name])))));
    }
    panel.append(make("div", { class: "columns" }, left, right));
    const fallen = fallenLines(detail, sample.answer || "");
    const show = (claim, pressed) => {
      if (answer && pressed) {
        const found = nearest(claim.claim, sample.answer);
        marked(answer, sample.answer, found ? [found.line] : []);
      } else if (answer) marked(answer, sample.answer, fallen, "fallen");
      boxes.forEach((box, place) => {
        const cited = pressed && (claim.passages || []).includes(place + 1);
        const found = cited ? nearest(claim.claim, box.words) : null;
        box.box.classList.toggle("cited", Boolean(cited));
        marked(box.body, box.words, found ? [found.line] : []);
      });
    };
    show(null, false);
    const claims = [];
    for (const outcome of detail.outcomes) panel.append(outcomeOf(outcome, show, claims));
    return panel;
  };

  const outcomeOf = (outcome, show, claims) => {
    const scorer = about.scorers[outcome.scorer];
    const head = make("div", { class: "head" }, make("strong", {}, seen(scorer.title)));
    if (outcome.outcome === "score") head.append(make("span", { class: "value" }, number(outcome.value, scorer.scale) + (scorer.scale === 1 ? "" : " of " + scorer.scale)));
    else head.append(badge(outcome.outcome, outcome.outcome === "failed" ? "bad" : "plain"));
    const evidence = outcome.evidence;
    const listed = Array.isArray(evidence) && evidence.length > 0 && evidence.every(isClaim);
    const body = make("div", { class: "scorer" }, head, text(listed ? outcome.reason.split(/[;:]/)[0] : outcome.reason));
    if (listed) body.append(claimList(evidence, show, claims));
    else if (evidence !== undefined && !(Array.isArray(evidence) && !evidence.length)) {
      body.append(make("details", {}, make("summary", {}, "evidence"), make("pre", { class: "mono text" }, seen(pretty(evidence)))));
    }
    if (outcome.reply) body.append(make("details", {}, make("summary", {}, "the judge's raw reply"), make("pre", { class: "mono text" }, seen(outcome.reply))));
    if (outcome.steps.length) body.append(make("div", { class: "steps" }, ...outcome.steps.map((step) => make("div", {}, stepTold(step)))));
    return body;
  };

  const stepTold = ([question, judge, answered, cached, seconds, cost, confidence]) => {
    const said = [question + (answered ? ", answered by " : ", not answered by ") + judge];
    said.push(cached ? "cached" : seconds.toFixed(2) + " s" + (cost ? ", $" + cost.toFixed(4) : ""));
    if (confidence !== null) said.push("confidence " + confidence.toFixed(2));
    return seen(said.join(", "));
  };

  const claimList = (evidence, show, claims) => {
    const list = make("ul", { class: "claims" });
    for (const item of evidence) {
      const [said, kind] = VERDICTS[item.verdict] || [item.verdict.replaceAll("_", " "), "plain"];
      const cited = (item.passages || []).length ? " · passage " + item.passages.join(", ") : "";
      const button = make(
        "button", { class: "claim", type: "button", "aria-pressed": "false" },
        make("span", {}, badge(said, kind)),
        make("span", { class: "text", dir: "auto" }, seen(item.claim)),
        make("span", { class: "why text", dir: "auto" }, seen((item.reason || "") + cited)),
      );
      button.addEventListener("click", () => {
        const pressed = button.getAttribute("aria-pressed") !== "true";
        claims.forEach((other) => other.setAttribute("aria-pressed", "false"));
        button.setAttribute("aria-pressed", String(pressed));
        show(item, pressed);
      });
      claims.push(button);
      list.append(make("li", {}, button));
    }
    return list;
  };

  /* ---- The table ---- */
  const state = { order: [], shown: PAGE, sort: "goodness", down: false, search: "", only: "all" };
  const value = (place, key) => {
    const [id, question, cells, goodness] = index[place];
    if (key === "goodness") return goodness === null ? -1 : goodness;
    if (key === "place") return place;
    if (key === "id") return id;
    if (key === "question") return question;
    const cell = cells[key];
    return typeof cell === "number" ? cell : -1;
  };
  const found = (place) => {
    const sought = state.search.toLowerCase();
    if (!sought) return true;
    const [id, question] = index[place];
    if (id.toLowerCase().includes(sought) || question.toLowerCase().includes(sought)) return true;
    const detail = detailOf(place);
    if (detail.outcomes.some((o) => o.reason.toLowerCase().includes(sought))) return true;
    return Boolean(detail.sample) && JSON.stringify(detail.sample).toLowerCase().includes(JSON.stringify(sought).slice(1, -1));
  };
  const kept = (place) => {
    const cells = index[place][2];
    if (state.only === "all") return true;
    if (state.only === "imperfect") return index[place][3] === null || index[place][3] < 1;
    return cells.includes(state.only);
  };
  const arrange = () => {
    state.order = index.map((_, place) => place).filter((place) => kept(place) && found(place));
    const sign = state.down ? -1 : 1;
    state.order.sort((a, b) => {
      const x = value(a, state.sort), y = value(b, state.sort);
      return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
    });
    state.shown = PAGE;
    draw();
  };

  const list = document.getElementById("list");
  const body = make("tbody");
  const count = make("p", { class: "note", role: "status" });
  const more = make("button", { type: "button", class: "more" });
  const headers = [];

  const cellOf = (cell, scorer) => {
    if (typeof cell !== "number") return make("td", { class: "number cell" }, cell === null ? "" : badge(cell, cell === "failed" ? "bad" : "plain"));
    const bar = make("i");
    bar.style.width = (100 * cell) / scorer.scale + "%";
    return make("td", { class: "number cell" }, number(cell, scorer.scale), make("span", { class: "bar", "aria-hidden": "true" }, bar));
  };
  const rowOf = (place) => {
    const [id, question, cells] = index[place];
    const opener = make("button", { class: "opener mono", type: "button", "aria-expanded": "false", dir: "auto" }, seen(id));
    const row = make("tr", { class: "row" }, make("td", { class: "name" }, opener), make("td", { class: "question text", dir: "auto" }, seen(question)), ...cells.map((cell, n) => cellOf(cell, about.scorers[n])));
    row.addEventListener("click", () => toggle(row, opener, place));
    return row;
  };
  const toggle = (row, opener, place) => {
    const open = row.classList.toggle("opened");
    opener.setAttribute("aria-expanded", String(open));
    if (!open) row.nextElementSibling.remove();
    else row.after(make("tr", { class: "detail" }, make("td", { colspan: String(2 + about.scorers.length) }, panelOf(detailOf(place)))));
  };
  const draw = () => {
    body.replaceChildren(...state.order.slice(0, state.shown).map(rowOf));
    ending();
    for (const [header, key] of headers) {
      if (key === state.sort) header.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    }
  };
  const ending = () => {
    const left = state.order.length - state.shown;
    count.textContent = `${state.order.length.toLocaleString("en")} of ${index.length.toLocaleString("en")} samples` + (state.sort === "goodness" && !state.down ? ", the least good first" : "");
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(left, PAGE)} more of ${left.toLocaleString("en")}`;
  };
  more.addEventListener("click", () => {
    const from = state.shown;
    state.shown += PAGE;
    body.append(...state.order.slice(from, state.shown).map(rowOf));
    ending();
  });

  const sortBy = (key) => {
    state.down = state.sort === key ? !state.down : false;
    state.sort = key;
    arrange();
  };
  const headerOf = (title, key, numeric) => {
    const button = make("button", { type: "button" }, seen(title));
    button.addEventListener("click", () => sortBy(key));
    const header = make("th", { scope: "col", class: numeric ? "number" : "" }, button);
    headers.push([header, key]);
    return header;
  };
  const build = () => {
    const search = make("input", { type: "search", placeholder: "id, question, answer, passage, reason …" });
    let timer = 0;
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => { state.search = search.value; arrange(); }, 150);
    });
    const only = make("select", {}, ...[["all", "all samples"], ["imperfect", "not perfect"], ["skipped", "with a skip"], ["failed", "with a failure"]].map(([v, t]) => make("option", { value: v }, t)));
    only.addEventListener("change", () => { state.only = only.value; arrange(); });
    const sort = make("select", {}, ...[["goodness", "least good first"], ["place", "order of the data"], ["id", "id"]].map(([v, t]) => make("option", { value: v }, t)));
    sort.addEventListener("change", () => { state.sort = sort.value; state.down = false; arrange(); });
    const head = make("tr", {}, headerOf("sample", "id", false), headerOf("question", "question", false), ...about.scorers.map((s, n) => headerOf(s.title + (s.lower ? " ↓" : ""), n, true)));
    list.append(
      make("div", { class: "controls" }, make("label", { class: "grow" }, "Search", search), make("label", {}, "Show", only), make("label", {}, "Order", sort)),
      count,
      make("div", { class: "scroll" }, make("table", { class: "samples" }, make("thead", {}, head), body)),
      more,
    );
    if (about.judged < about.all) list.prepend(make("p", { class: "note" }, `The ${about.judged.toLocaleString("en")} least good of ${about.all.toLocaleString("en")} judged samples are in this page.`));
    const lower = about.scorers.some((s) => s.lower) ? "↓ lower is better. " : "";
    list.append(make("p", { class: "note" }, lower + "Underlined in an answer: where claims stand that no passage supports. A claim that is clicked is marked in the answer and in the passages that decide it. Found by common words: where to look, not what the judge read."));
    arrange();
  };
  build();
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (wanted) {
    const place = state.order.findIndex((p) => index[p][0] === wanted);
    if (place >= 0) {
      state.shown = Math.max(PAGE, place + 1);
      draw();
      body.children[place].click();
      body.children[place].scrollIntoView();
    }
  }
})();
