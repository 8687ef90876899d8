// Coming back to the list from an incident: the same rows in the same order, at the same height, the row at hand marked.
// What the list showed is kept for this tab when one leaves it; rows that the first page lacks are read by id.
import { readPage, refresh } from "./parts.js";

const KEY = "inbox"; // in sessionStorage
const MOST = 100; // rows read in one request
const LIMIT = 3000; // rows worth keeping: whoever went through more begins anew
const table = () => document.querySelector("table.inbox");
const rowsOf = (root) => [...root.querySelectorAll("tr[data-id]")];
const rowOf = (number) => table()?.querySelector(`tr[data-number="${CSS.escape(String(number))}"]`);

let here = null; // number of the row at hand
let rebuilding = false;
// The short first page shows its end for a moment; the rows beyond it are not to be asked for twice.
document.addEventListener("htmx:beforeRequest", (event) => { if (rebuilding && event.target.closest?.("#pager")) event.preventDefault(); });
function mark(number) {
  if (number === here) return;
  table()?.querySelector("tr.here")?.classList.remove("here");
  here = number;
}
document.addEventListener("focusin", (event) => {
  const row = event.target.closest("table.inbox tr[data-id]");
  if (row) mark(row.dataset.number);
});

function keep() {
  const list = table();
  if (!list || rowsOf(list).length > LIMIT) return;
  const next = document.querySelector("#pager [rel=next]")?.getAttribute("href") ?? null;
  const groups = [...list.tBodies].map((body) => [body.dataset.group, rowsOf(body).map((row) => [row.dataset.id, row.querySelector("a.title").getAttribute("href")])]);
  const picked = [...list.querySelectorAll("td.pick input:checked")].map((box) => box.value);
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ list: list.dataset.list, search: location.search, since: list.dataset.since, groups, next, picked, here, top: scrollY }));
  } catch { /* no storage, or a full one: the list begins at its first page then */ }
}

function kept() {
  try { return JSON.parse(sessionStorage.getItem(KEY)); } catch { return null; }
}

/** Rows by id, those that stand here already and those that have to be read. */
async function rowsById(list, ids) {
  const found = new Map(rowsOf(list).map((row) => [row.dataset.id, row]));
  const missing = ids.filter((id) => !found.has(id)), asked = [];
  for (let from = 0; from < missing.length; from += MOST) {
    const address = new URL(list.dataset.rows, location.href);
    address.search = list.dataset.list;
    missing.slice(from, from + MOST).forEach((id) => address.searchParams.append("row", id));
    asked.push(readPage(address));
  }
  for (const { page } of await Promise.all(asked)) rowsOf(page).forEach((row) => found.set(row.dataset.id, document.importNode(row, true)));
  return found;
}

function rebuild(list, before, found) {
  const heads = new Map([...list.tBodies].map((body) => [body.dataset.group, body.querySelector("tr.group")]));
  const bodies = before.groups.map(([group, rows]) => {
    const body = document.createElement("tbody");
    body.dataset.group = group;
    const head = heads.get(group) ?? (before.groups.length > 1 ? headOf(group) : null);
    if (head) body.append(head);
    for (const [id, address] of rows) {
      const row = found.get(id);
      if (!row) continue;
      row.querySelector("a.title").href = address;
      body.append(row);
    }
    return body;
  });
  [...list.tBodies].forEach((body) => body.remove());
  list.append(...bodies);
  list.dataset.since = before.since;
}

function headOf(group) {
  const row = document.createElement("tr"), head = document.createElement("th");
  row.className = "group";
  head.colSpan = 9;
  head.scope = "colgroup";
  head.textContent = group;
  row.append(head);
  return row;
}

function goOnFrom(next) {
  const pager = document.querySelector("#pager");
  pager.querySelector("[rel=next]")?.remove();
  if (!next?.startsWith("?")) return;
  const link = Object.assign(document.createElement("a"), { className: "button", rel: "next", href: next, textContent: "Next →" });
  const htmx = { get: `${location.pathname}${next}`, trigger: "revealed", target: "table.inbox", select: "table.inbox > tbody", "select-oob": "#pager", swap: "beforeend" };
  Object.entries(htmx).forEach(([name, value]) => link.setAttribute(`hx-${name}`, value));
  pager.append(link);
  window.htmx?.process(pager);
}

async function comeBack() {
  const list = table(), before = kept();
  const aimed = /^#t(\d+)$/.exec(location.hash)?.[1] ?? null;
  const gone = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (!list || !before || before.list !== list.dataset.list || !(gone ? before.search === location.search : aimed)) return;
  const ids = before.groups.flatMap(([, rows]) => rows.map(([id]) => id));
  if (!gone && !ids.length) return;
  // Beyond what was shown: the page as it came begins with the row.
  if (aimed && !before.groups.some(([, rows]) => rows.some(([, address]) => address.startsWith(`/incidents/${aimed}?`)))) return;
  history.scrollRestoration = "manual";
  rebuilding = true;
  const number = aimed ?? before.here;
  rebuild(list, before, await rowsById(list, ids));
  rebuilding = false;
  goOnFrom(before.next);
  before.picked.forEach((one) => { const box = rowOf(one)?.querySelector("td.pick input"); if (box) box.checked = true; });
  document.dispatchEvent(new Event("picked"));
  history.replaceState(null, "", `${location.pathname}${before.search}`);
  scrollTo({ top: before.top, behavior: "instant" });
  const row = number && rowOf(number);
  if (row) {
    row.querySelector("a.title").focus({ preventScroll: true, focusVisible: true });
    row.scrollIntoView({ block: "nearest", behavior: "instant" });
    mark(number);
    row.classList.add("here");
  }
  refresh().catch(() => {});
}

addEventListener("pagehide", keep);
comeBack().catch(() => {}).finally(() => { rebuilding = false; history.scrollRestoration = "auto"; });
