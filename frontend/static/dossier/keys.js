// The keyboard: one letter each, never while typing, never with a modifier.
import { openPanel, send } from "./actions.js";

const rows = () => [...document.querySelectorAll("[data-part=rows] tr[data-id]")];
const current = () => document.activeElement.closest?.("tr[data-id]");
let prefix = "";

function move(step) {
  const all = rows();
  if (!all.length) return;
  const place = all.indexOf(current());
  const next = place < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(place + step, 0), all.length - 1);
  const link = all[next].querySelector("a.title");
  link.focus({ preventScroll: true, focusVisible: true });
  all[next].scrollIntoView({ block: "nearest" });
}

/** In the inbox the focus goes on to the row below, so that `e e e` works through a list. */
async function acknowledge() {
  const row = current();
  const form = row ? row.querySelector("form[data-key=e]") : document.querySelector(".actions form[data-key=e]");
  if (!form) return;
  const below = row && (rows()[rows().indexOf(row) + 1] || rows()[rows().indexOf(row) - 1])?.dataset.id;
  await send(form, form.querySelector("button"));
  if (below) document.querySelector(`tr[data-id="${CSS.escape(below)}"] a.title`)?.focus({ preventScroll: true, focusVisible: true });
}

function accept() {
  const form = document.querySelector(".actions form[data-key=y]");
  if (form) send(form, form.querySelector("button"));
}

function resolve() {
  const row = current();
  if (row) location.href = `${row.querySelector("a.title").getAttribute("href")}#resolve`;
  else openPanel("resolve");
}

function pick() {
  const box = current()?.querySelector("input[type=checkbox]");
  if (box) box.click();
}

const help = document.querySelector("dialog#keys");
const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  o: () => current()?.querySelector("a.title").click(),
  e: acknowledge,
  r: resolve,
  x: pick,
  c: () => document.querySelector(".comment textarea")?.focus(),
  a: () => openPanel("assign"),
  h: () => openPanel("hand_over"),
  b: () => openPanel("bounce"),
  y: accept,
  m: () => openPanel("more"),
  z: () => openPanel("snooze"),
  s: () => openPanel("set_severity"),
  "/": () => { const field = document.querySelector("input[type=search]"); field?.focus(); field?.select(); },
  "?": () => help.showModal(),
};
const GO = { i: "/", c: "/components", o: "/on-call", r: "/runs", a: "/analyzers", s: "/schedules", p: "/reports", t: "/teams", d: "/docs" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const field = event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea");
  if (field) {
    if (event.key === "Escape") field.blur();
    return;
  }
  if (prefix === "g") {
    prefix = "";
    if (GO[event.key]) location.href = GO[event.key];
    return;
  }
  if (event.key === "g") {
    prefix = "g";
    setTimeout(() => { prefix = ""; }, 1500);
  } else if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-help]")) help.showModal();
  if (event.target.closest("[data-close-help]")) help.close();
});
document.addEventListener("change", (event) => {
  if (event.target.matches(".filters select")) event.target.form.requestSubmit();
  if (event.target.matches("input[data-all]")) {
    document.querySelectorAll("td.pick input").forEach((box) => { box.checked = event.target.checked; });
  }
  if (event.target.matches("td.pick input, input[data-all]")) countPicked();
});
export function countPicked() {
  const bulk = document.querySelector(".bulk button");
  if (!bulk) return;
  const count = document.querySelectorAll("td.pick input:checked").length;
  bulk.disabled = count === 0;
  bulk.textContent = count ? `Acknowledge ${count}` : "Acknowledge selected";
}
