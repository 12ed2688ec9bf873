/* The list of all samples: search, filter and order. Without it, the samples are there in the order of the data. */
function sampleList(root) {
  const controls = root.querySelector(".controls");
  const status = root.querySelector("[role=status]");
  const samples = [...root.querySelectorAll(":scope > .sample")].map((element, place) => ({
    element,
    place,
    goodness: element.dataset.goodness === "" ? null : Number(element.dataset.goodness),
    outcomes: [...element.querySelectorAll(":scope > summary > .label")].map((label) => label.dataset.value),
    text: "",
  }));
  const [search, show, order] = ["search", "show", "order"].map((name) => controls.querySelector(`[name=${name}]`));
  const textOf = (sample) => (sample.text ||= sample.element.textContent.toLowerCase());
  const matches = (sample, words) => {
    if (show.value === "imperfect" && sample.goodness === 1) return false;
    if (show.value === "skipped" || show.value === "failed") {
      if (!sample.outcomes.includes(show.value)) return false;
    }
    return !words || textOf(sample).includes(words);
  };
  /* What has no score is last in every order. */
  const numbered = (text) => (text === undefined || Number.isNaN(Number(text)) ? null : Number(text));
  const valueOf = (sample) => {
    if (order.value === "order") return sample.place;
    return order.value === "goodness" ? sample.goodness : numbered(sample.outcomes[Number(order.value)]);
  };
  const arrange = () => {
    const words = search.value.trim().toLowerCase();
    const shown = samples.filter((sample) => matches(sample, words));
    const values = new Map(shown.map((sample) => [sample, valueOf(sample) ?? Infinity]));
    shown.sort((a, b) => values.get(a) - values.get(b) || a.place - b.place);
    const kept = new Set(shown);
    for (const sample of samples) sample.element.hidden = !kept.has(sample);
    root.append(...shown.map((sample) => sample.element));
    const how = order.value === "goodness" ? ", worst first" : "";
    status.textContent = `${shown.length.toLocaleString("en")} of ${samples.length.toLocaleString("en")} ${root.dataset.noun}${how}`;
  };
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(arrange, 150);
  });
  for (const choice of [show, order]) choice.addEventListener("change", arrange);
  controls.hidden = false;
  arrange();

  /* report.html#ID opens a sample. */
  const named = decodeURIComponent(location.hash.slice(1));
  const found = named && samples.find((sample) => sample.element.querySelector(".name").textContent === named);
  if (found) {
    found.element.open = true;
    found.element.scrollIntoView();
  }
}

/* A sample's claims are marked when it is opened. */
for (const sample of document.querySelectorAll("details.sample")) {
  const open = () => {
    if (!sample.open || sample.dataset.marked) return;
    sample.dataset.marked = "yes";
    markClaims(sample.querySelector(".panel"));
  };
  sample.addEventListener("toggle", open);
  open();
}
sampleList(document.getElementById("list"));
