/* Underlines sentences of the answer whose claims no passage supports. A claim that is clicked is marked instead, in the
   answer and in the passages that decide it. */
function markClaims(panel) {
  const own = (block) => block.querySelector(":scope > .text");
  const answer = panel.querySelector(".block.answer > .text");
  const passages = [...panel.querySelectorAll(".block.passage")].map((element) => ({ element, text: own(element) }));
  const shown = [...panel.querySelectorAll(".block.claim")].filter((block) => !block.closest(".calls"));
  const claims = shown.map((element) => ({
    element,
    text: own(element)?.textContent ?? "",
    cites: (element.dataset.cites ?? "").split(" ").filter(Boolean).map(Number),
    doubted: element.querySelector(":scope > .head > .label:not(.good)") !== null,
  }));
  const texts = new Map(
    [answer, ...passages.map((passage) => passage.text)].filter(Boolean).map((e) => [e, e.textContent]),
  );
  const mark = (element, sentences, kind) => {
    if (!element) return;
    const parts = sentences.length ? sentencesOf(texts.get(element)) : [texts.get(element)];
    element.replaceChildren(
      ...parts.map((part) => {
        if (!sentences.includes(part)) return part;
        const marked = document.createElement("mark");
        marked.className = kind;
        marked.append(part);
        return marked;
      }),
    );
  };
  const found = (claim, element) => {
    const sentence = element && nearestSentence(claim.text, texts.get(element));
    return sentence ? [sentence] : [];
  };
  const unsupported = claims.filter((claim) => claim.doubted).flatMap((claim) => found(claim, answer));
  const show = (chosen) => {
    mark(answer, chosen ? found(chosen, answer) : unsupported, chosen ? "near" : "unsupported");
    passages.forEach((passage, place) => {
      const cited = Boolean(chosen && chosen.cites.includes(place + 1));
      passage.element.classList.toggle("cited", cited);
      mark(passage.text, cited ? found(chosen, passage.text) : [], "near");
    });
  };
  for (const claim of claims) {
    claim.button = document.createElement("button");
    claim.button.type = "button";
    claim.button.className = "locate";
    claim.button.setAttribute("aria-pressed", "false");
    claim.button.append("Find in the texts");
    claim.button.addEventListener("click", () => {
      const pressed = claim.button.getAttribute("aria-pressed") !== "true";
      for (const other of claims) other.button.setAttribute("aria-pressed", "false");
      claim.button.setAttribute("aria-pressed", String(pressed));
      show(pressed ? claim : null);
    });
    claim.element.append(claim.button);
  }
  show(null);
}
