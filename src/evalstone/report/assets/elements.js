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

/* The same blocks as blocks.html lays out. `placed` collects the elements that claims are marked in. */
function blockOf(block, placed) {
  const element = make(block.folded ? "details" : "div", { class: `block ${block.kind}` });
  const labels = (block.labels || []).map(labelOf);
  if (block.title || labels.length) {
    const title = block.title ? make("strong", {}, block.title) : null;
    element.append(make(block.folded ? "summary" : "div", { class: "head" }, title, ...labels));
  }
  if (block.text) {
    const text = textOf(block.text);
    element.append(text);
    if (block.kind === "answer") placed.answer = text;
    if (block.kind === "passage") placed.passages.push({ element, text });
  }
  if (block.why) element.append(textOf(block.why, "why text"));
  if (block.pairs) {
    const pairs = block.pairs.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", { class: "text", dir: "auto" }, value)),
    );
    element.append(make("dl", { class: "pairs" }, ...pairs));
  }
  for (const item of block.items || []) element.append(blockOf(item, placed));
  if (block.kind === "claim") placed.claims.push({ element, claim: block });
  return element;
}

function panelOf(blocks) {
  const placed = { answer: null, passages: [], claims: [] };
  const panel = make("div", { class: "panel" }, ...blocks.map((block) => blockOf(block, placed)));
  markClaims(placed);
  return panel;
}

/* Underlines sentences of the answer whose claims no passage supports. A claim that is clicked is marked instead. */
function markClaims({ answer, passages, claims }) {
  const texts = new Map(
    [answer, ...passages.map((passage) => passage.text)].filter(Boolean).map((e) => [e, e.textContent]),
  );
  const mark = (element, sentences, kind) => {
    if (!element) return;
    const parts = sentences.length ? sentencesOf(texts.get(element)) : [texts.get(element)];
    element.replaceChildren(
      ...parts.map((part) => (sentences.includes(part) ? make("mark", { class: kind }, part) : part)),
    );
  };
  const found = (claim, element) => {
    const sentence = element && nearestSentence(claim.text, texts.get(element));
    return sentence ? [sentence] : [];
  };
  const unsupported = claims
    .filter(({ claim }) => (claim.labels || []).some(([, tone]) => tone !== "good"))
    .flatMap(({ claim }) => found(claim, answer));
  const show = (chosen) => {
    mark(answer, chosen ? found(chosen, answer) : unsupported, chosen ? "near" : "unsupported");
    passages.forEach((passage, place) => {
      const cited = Boolean(chosen && (chosen.cites || []).includes(place + 1));
      passage.element.classList.toggle("cited", cited);
      mark(passage.text, cited ? found(chosen, passage.text) : [], "near");
    });
  };
  for (const { element, claim } of claims) {
    const button = make("button", { type: "button", class: "locate", "aria-pressed": "false" }, "Find in the texts");
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") !== "true";
      for (const other of claims) other.button.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(pressed));
      show(pressed ? claim : null);
    });
    claims.find((other) => other.element === element).button = button;
    element.append(button);
  }
  show(null);
}
