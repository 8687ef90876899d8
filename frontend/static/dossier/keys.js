// The keyboard: one letter each, never while typing, never with a modifier.
import { goTo, openPanel, send } from "./actions.js";

// Rows that can be walked: incidents, and groups that are folded.
const rows = () => [...document.querySelectorAll("[data-part=rows] tbody:not(.folded) > tr[data-id], [data-part=rows] tbody.folded > tr.group")];
const current = () => document.activeElement.closest?.("tr[data-id], tr.group");
const handle = (row) => row?.querySelector("a.title, .fold-group");
const PREFIX = 1500; // ms in which the second letter of `g i` may come
let prefix = "";
let forgotten; // the timer that ends it

// A list whose rows can be selected says what is done to several (bulk.js); other pages have no such thing.
let list = null;
export function actOnSeveral(what) { list = what; }
/** A letter of one screen alone. */
export function onKey(letter, action) { KEYS[letter] = action; }

function move(step) {
  const all = rows();
  if (!all.length) { beside(step); return; }
  const place = all.indexOf(current());
  const next = place < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(place + step, 0), all.length - 1);
  handle(all[next]).focus({ preventScroll: true, focusVisible: true });
  all[next].scrollIntoView({ block: "nearest" });
}

/** From an incident to the one beside it in the list that it was opened from. */
function beside(step) {
  const list = document.querySelector(".among");
  const link = list?.querySelector(step > 0 ? "[rel=next]" : "[rel=prev]");
  if (link) link.click();
  else if (list) document.querySelector("#announce").textContent = step > 0 ? "This is the last of the list" : "First in the list";
}

/** In the inbox the focus goes on to the row below at once, so that `e e e` works through a list. */
async function acknowledge() {
  if (list?.anyPicked()) { list.acknowledge(); return; }
  const row = current();
  const form = row ? row.querySelector("form[data-key=e]") : document.querySelector(".actions form[data-key=e]");
  if (!form) return;
  if (!row) { await send(form, form.querySelector("button")); return; }
  row.classList.add("pending");
  const below = rows()[rows().indexOf(row) + 1];
  handle(below)?.focus({ preventScroll: true, focusVisible: true });
  below?.scrollIntoView({ block: "nearest" });
  await send(form, form.querySelector("button"));
  row.classList.remove("pending");
}

function accept() {
  const form = document.querySelector(".actions form[data-key=y]");
  if (form) send(form, form.querySelector("button"));
}

/** The panel of the incident; in a list that of the rows that are selected, or of the one at hand. */
function panel(name) {
  if (list && !list.aim(current())) return;
  openPanel(name);
}

function pick() {
  const box = current()?.querySelector("input[type=checkbox]");
  if (box) box.click();
}

const help = document.querySelector("dialog#keys");
const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  "]": () => beside(1),
  "[": () => beside(-1),
  u: () => document.querySelector(".among .back")?.click(),
  o: () => handle(current())?.click(),
  e: acknowledge,
  r: () => panel("resolve"),
  x: pick,
  c: () => document.querySelector(".comment textarea")?.focus(),
  a: () => panel("assign"),
  h: () => panel("hand_over"),
  b: () => openPanel("bounce"),
  y: accept,
  m: () => panel("more"),
  z: () => panel("snooze"),
  s: () => { if (!document.querySelector("details.act[data-panel=silence]")) document.querySelector(".actions a[data-key=s]")?.click(); else panel("silence"); },
  v: () => panel("set_severity"),
  w: () => { const why = document.querySelector("details#why"); if (why) { why.open = !why.open; why.firstElementChild.focus(); } },
  "/": () => { const field = document.querySelector("input[type=search]"); field?.focus(); field?.select(); },
  "?": () => help.showModal(),
};
const GO = { i: "/", g: "/grid", c: "/components", o: "/on-call", r: "/runs", a: "/analyzers", s: "/schedules", p: "/reports", t: "/teams", d: "/docs" };

document.addEventListener("keydown", (event) => {
  // On many keyboards brackets are typed with AltGr, which some systems report as Ctrl and Alt.
  const modified = (event.ctrlKey || event.altKey) && !event.getModifierState("AltGraph");
  if (modified || event.metaKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const field = event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea");
  if (field) {
    if (event.key === "Escape") field.blur();
    return;
  }
  if (event.target.closest("details.act[open] .panel")) return; // a letter is for the form that is being filled in
  if (prefix === "g") {
    prefix = "";
    if (GO[event.key]) goTo(GO[event.key]);
    return;
  }
  if (event.key === "g") {
    prefix = "g";
    clearTimeout(forgotten);
    forgotten = setTimeout(() => { prefix = ""; }, PREFIX);
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
});
