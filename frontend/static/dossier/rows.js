// The list of the inbox: a row stays where it is until the reader asks for the list anew. What changes is marked in
// its place, what arrives is announced in a bar, further rows are fetched as one comes to the end.
import { onKey } from "./keys.js";
import { mergePart, newsFrom, onPart, readPage, showPage } from "./parts.js";

const MOST = 100; // rows read again in one request
const bar = document.querySelector(".arrivals");
const announce = document.querySelector("#announce");
const changed = new Set(); // ids that were said to have changed since the last look
let everything = false; // nobody said which
let arrived = new Map(); // id -> title of what the list has and the page does not show

const rowsOf = (root) => [...root.querySelectorAll("tr[data-id]")];
const within = () => document.querySelector("[data-part=rows]");

export const rowOf = (number) => within()?.querySelector(`tr[data-number="${CSS.escape(number)}"]`);

/** A live message named this incident; without one, any may have changed. */
export function touched(id) {
  if (id) changed.add(id);
  else everything = true;
}

function address(table, ids) {
  const found = new URL(table.dataset.rows, location.href);
  found.search = location.search;
  ids.forEach((id) => found.searchParams.append("row", id));
  return found;
}

/** A few incidents that changed are asked for alone; nothing to show them in, or nobody said which: the whole page. */
newsFrom(() => {
  const table = within()?.querySelector("table.inbox");
  if (!table || everything || !changed.size || changed.size > MOST) return null;
  const asked = [...changed];
  changed.clear();
  return address(table, asked);
});

function renew(mine, row) {
  if (mine.dataset.position === row.dataset.position && mine.classList.contains("gone") === row.classList.contains("gone")) return;
  const before = mine.querySelector(".pill")?.textContent;
  const picked = mine.querySelector("td.pick input")?.checked;
  const held = mine.contains(document.activeElement);
  mine.className = row.className;
  mine.dataset.position = row.dataset.position;
  const address = mine.querySelector("a.title").href; // says where in the list it stands here
  mine.replaceChildren(...[...row.children].map((cell) => document.importNode(cell, true)));
  mine.querySelector("a.title").href = address;
  const box = mine.querySelector("td.pick input");
  if (box) box.checked = picked;
  if (held) mine.querySelector("a.title").focus({ preventScroll: true, focusVisible: true });
  void mine.offsetWidth; // so that the mark begins anew
  mine.classList.add("changed");
  const after = mine.querySelector(".pill")?.textContent;
  if (before !== after) announce.textContent = `#${mine.dataset.number} is ${after.toLowerCase()} now`;
}

async function readAgain(table, missing) {
  for (let from = 0; from < missing.length; from += MOST) {
    const { page } = await readPage(address(table, missing.slice(from, from + MOST)));
    for (const row of rowsOf(page)) {
      const mine = document.querySelector(`tr[data-id="${CSS.escape(row.dataset.id)}"]`);
      if (mine) renew(mine, row);
    }
  }
}

// A banner that begins or ends would push the list; until the reader asks, a storm that begins is told with the news.
let storm = false;
mergePart("storm", (part, newer) => {
  const [before, after] = [part, newer].map((one) => one.textContent.trim() !== "");
  storm = after && !before;
  return before !== after;
});

mergePart("rows", (part, newer) => {
  const table = part.querySelector("table.inbox");
  const whole = !newer.querySelector("table.news");
  if (!table) return !whole; // nothing that could move
  const shown = new Map(rowsOf(part).map((row) => [row.dataset.id, row]));
  const fresh = rowsOf(newer);
  if (whole) arrived = new Map();
  const first = !new URLSearchParams(location.search).has("cursor");
  for (const row of fresh) {
    const mine = shown.get(row.dataset.id);
    const came = first && !row.matches(".gone, [data-beyond]") && row.dataset.position > table.dataset.since;
    if (mine) renew(mine, row);
    else if (came) arrived.set(row.dataset.id, row.querySelector("a.title").textContent);
    else arrived.delete(row.dataset.id);
  }
  sayArrivals();
  if (!whole) return true;
  const there = new Set(fresh.map((row) => row.dataset.id));
  const missing = [...shown.keys()].filter((id) => !there.has(id) && (everything || changed.has(id)));
  changed.clear();
  everything = false;
  readAgain(table, missing).catch(() => { everything = true; });
  return true;
});

function sayArrivals() {
  bar.hidden = !arrived.size && !storm;
  if (bar.hidden) return;
  const [latest] = arrived.values();
  const news = arrived.size === 1 ? `1 new incident: ${latest}` : arrived.size ? `${arrived.size} new incidents, first ${latest}` : "Show";
  const words = storm ? `Alert storm. ${news}` : news;
  if (bar.querySelector(".words").textContent !== words) bar.querySelector(".words").textContent = words;
}

/** The list as it is now, from its beginning. What is selected stays selected. */
async function showArrivals() {
  const fresh = new Set(arrived.keys());
  const address = new URL(location.href);
  address.searchParams.delete("cursor");
  const picked = new Set([...document.querySelectorAll("td.pick input:checked")].map((box) => box.value));
  const { page } = await readPage(address);
  if (address.href !== location.href) history.replaceState(null, "", address);
  showPage(page, { force: true, whole: true });
  arrived = new Map();
  storm = false;
  sayArrivals();
  document.querySelectorAll("td.pick input").forEach((box) => { box.checked = picked.has(box.value); });
  document.dispatchEvent(new Event("picked"));
  const lit = rowsOf(within()).filter((row) => fresh.has(row.dataset.id));
  lit.forEach((row) => row.classList.add("arrived"));
  scrollTo({ top: 0 });
  lit[0]?.querySelector("a.title").focus({ preventScroll: true });
}

bar?.querySelector("[data-show]").addEventListener("click", () => showArrivals().catch(() => {}));
onKey("n", () => { if (bar && !bar.hidden) showArrivals().catch(() => {}); });

// Further rows come in the groups of the page before them; a row that is there already moved meanwhile and is left out.
document.addEventListener("htmx:afterSwap", (event) => {
  if (!event.detail.target.matches?.("table.inbox")) return;
  const table = event.detail.target, seen = new Set(), groups = new Map();
  for (const body of [...table.tBodies]) {
    rowsOf(body).forEach((row) => { if (seen.has(row.dataset.id)) row.remove(); else seen.add(row.dataset.id); });
    const before = groups.get(body.dataset.group);
    if (!before) groups.set(body.dataset.group, body);
    else { before.append(...rowsOf(body)); body.remove(); }
  }
  if (!new URLSearchParams(location.search).has("cursor")) document.querySelector("#pager [rel=prev]")?.remove();
});

onPart((part) => { if (part.dataset.part === "rows") document.dispatchEvent(new Event("picked")); });
document.addEventListener("incidentchanged", (event) => touched(event.detail));

// Groups by team, component or cause fold; which are folded is remembered for this browser.
const FOLDED = "folded-groups";
const folded = () => { try { return new Set(JSON.parse(localStorage.getItem(FOLDED))); } catch { return new Set(); } };
function fold(body, closed) {
  const button = body.querySelector(".fold-group"), known = folded();
  body.classList.toggle("folded", closed);
  button.setAttribute("aria-expanded", String(!closed));
  known[closed ? "add" : "delete"](body.dataset.fold);
  try { localStorage.setItem(FOLDED, JSON.stringify([...known].slice(-200))); } catch { /* only for this page then */ }
}
onPart((part) => {
  if (part.dataset.part !== "rows") return;
  const closed = folded();
  part.querySelectorAll("tbody[data-fold]").forEach((body) => { if (closed.has(body.dataset.fold)) fold(body, true); });
});
document.addEventListener("click", (event) => {
  const button = event.target.closest(".fold-group");
  if (button) fold(button.closest("tbody"), button.getAttribute("aria-expanded") === "true");
});
/** The group at hand is folded or unfolded; where the focus is in a row that goes, it moves to the group. */
function foldHere(closed) {
  const body = document.activeElement.closest?.("tbody[data-fold]");
  if (!body) return;
  fold(body, closed);
  body.querySelector(closed ? ".fold-group" : "a.title")?.focus({ focusVisible: true });
}
if (document.querySelector("tbody[data-fold]")) {
  onKey("ArrowLeft", () => foldHere(true));
  onKey("ArrowRight", () => foldHere(false));
}
