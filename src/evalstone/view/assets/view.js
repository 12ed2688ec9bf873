/* Keys, those that a page gives its own buttons among them, and forms that leave out what is empty. Everything works without it, by links and forms. */

const rows = () => [...document.querySelectorAll("[data-row]")];
const linkOf = (row) => row.querySelector("a[href]");

function show(row) {
  linkOf(row).focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement?.closest("[data-row]"));
  show(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))]);
}

/* In a comparison, to the next or previous sample that changed, and behind the last one to the next page. */
function walk(by, relation) {
  const all = rows();
  const at = all.indexOf(document.activeElement?.closest("[data-row]"));
  const rest = by > 0 ? all.slice(at + 1) : all.slice(0, Math.max(0, at)).reverse();
  const row = rest.find((one) => "changed" in one.dataset);
  if (row) show(row);
  else follow(relation);
}

function follow(relation) {
  const links = document.querySelectorAll(`a[rel="${relation}"]`);
  if (links.length > 0) links[links.length - 1].click();
}

/* Opens what is folded, or closes it if all of it is open. */
function toggle(blocks) {
  const open = blocks.some((block) => !block.open);
  for (const block of blocks) block.open = open;
  return open;
}

/* Judge calls that are open stay open on the next sample, and in the address that is sent to someone. */
const CALLS = "#calls";
const callBlocks = () => [...document.querySelectorAll("main details.calls, main .calls details")];

function keepCalls(open) {
  history.replaceState(history.state, "", open ? CALLS : location.pathname + location.search);
  for (const link of document.querySelectorAll('a[rel="next"], a[rel="prev"], .chips a')) link.hash = open ? CALLS : "";
}

/* Adds the ticked rows to a dataset; if none is ticked, the one that has the focus. */
function collect() {
  const form = document.querySelector("form#collect");
  const button = form?.querySelector('button[formaction="/collect"]') ?? form?.querySelector("button");
  if (!button) return;
  const boxes = [...document.querySelectorAll('input[type="checkbox"][form="collect"]')];
  if (boxes.every((box) => !box.checked)) {
    const box = document.activeElement?.closest("[data-row]")?.querySelector('input[form="collect"]');
    if (!box) return;
    box.checked = true;
  }
  button.click();
}

const KEYS = {
  c: () => {
    const blocks = callBlocks();
    if (blocks.length === 0) return;
    keepCalls(toggle(blocks));
    blocks[0].scrollIntoView({ block: "nearest" });
  },
  e: () => toggle([...document.querySelectorAll("main .panel details:not(.calls)")].filter((one) => !one.closest(".calls"))),
  j: () => step(1),
  k: () => step(-1),
  n: () => walk(1, "next"),
  p: () => walk(-1, "prev"),
  u: () => follow("up"),
  b: () => (document.activeElement?.closest("[data-row]") ?? document).querySelector("form.pin button")?.click(),
  x: () => document.activeElement?.closest("[data-row]")?.querySelector('input[type="checkbox"]')?.click(),
  d: collect,
  "/": () => document.querySelector('input[type="search"]')?.focus(),
  "?": () => {
    const keys = document.querySelector(".keys");
    keys.open = !keys.open;
  },
  Escape: () => {
    for (const open of document.querySelectorAll(".keys[open], .columns-choice[open]")) open.open = false;
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.closest('input:not([type="checkbox"]), select, textarea');
  if (field && event.key !== "Escape") return;
  const own = field ? null : document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  const act = own ? () => (own.matches("textarea, input") ? own.focus() : own.click()) : KEYS[event.key];
  if (!act) return;
  if (field) field.blur();
  event.preventDefault();
  act();
});

/* An address without empty parameters is shorter to read and to send. */
for (const form of document.querySelectorAll('form[method="get"]')) {
  form.addEventListener("submit", () => {
    const usual = ["input", "answer", "scores"];
    const boxes = [...form.querySelectorAll('input[name="column"]')];
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    if (String(chosen) === String(usual)) for (const box of boxes) box.disabled = true;
    for (const field of form.querySelectorAll("input:not([type=checkbox]), select")) {
      const empty = field.value === "" || (field.name === "field" && field.value.endsWith("="));
      const usualValue = (field.name === "show" && field.value === "all") || (field.name === "sort" && ["goodness", "change", "-started"].includes(field.value));
      if (empty || usualValue) field.disabled = true;
    }
  });
}
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form [disabled]")) field.disabled = false;
});
if (location.hash === CALLS && callBlocks().length > 0) keepCalls(toggle(callBlocks()));
