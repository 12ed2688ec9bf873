/* Elements are made of text only: no judged text is ever read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

function textOf(text, kind = "text") {
  return make("div", { class: kind, dir: "auto" }, text);
}

function labelOf([text, tone]) {
  return make("span", { class: `label ${tone}` }, text);
}

/* The same blocks as blocks.html lays out. */
function blockOf(block) {
  const element = make(block.folded ? "details" : "div", { class: `block ${block.kind}` });
  if (block.cites) element.dataset.cites = block.cites.join(" ");
  const labels = (block.labels || []).map(labelOf);
  if (block.title || labels.length) {
    const title = block.title ? make("strong", {}, block.title) : null;
    element.append(make(block.folded ? "summary" : "div", { class: "head" }, title, ...labels));
  }
  if (block.text) element.append(textOf(block.text));
  if (block.why) element.append(textOf(block.why, "why text"));
  if (block.pairs) {
    const pairs = block.pairs.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", { class: "text", dir: "auto" }, value)),
    );
    element.append(make("dl", { class: "pairs" }, ...pairs));
  }
  element.append(...(block.items || []).map(blockOf));
  return element;
}

function panelOf(blocks) {
  const panel = make("div", { class: "panel" }, ...blocks.map(blockOf));
  markClaims(panel);
  return panel;
}
