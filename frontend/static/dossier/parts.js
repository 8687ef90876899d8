// Parts: elements with data-part="name" that a newer copy of the page may replace, one by one.
// What a person is busy with (an open panel, a field being typed in) is left alone until they are done.
// Tokens change with every page, and `seen` with every comment: neither is news.
const CSRF = /name="(?:csrfmiddlewaretoken|seen)" value="[^"]*"/g;
const shown = new WeakMap(); // element -> the markup it came with, before scripts touched it
const swapped = []; // what other modules want to do to a new part
const merged = new Map(); // name -> what takes a newer copy into a part without replacing it
let news = () => null; // the address of what changed, where less than the whole page says it
const waiting = new Map(); // by kind: a newer page, or newer details, that was held back
const afterwards = []; // what is done once a page is shown

const parts = (root) => root.querySelectorAll("[data-part]");
const markup = (part) => part.dataset.version ?? part.innerHTML.replace(CSRF, "");

export function onPart(callback) {
  swapped.push(callback);
  parts(document).forEach((part) => callback(part, null));
}

export function afterPage(callback) {
  afterwards.push(callback);
}

/** `merge(part, newer)` takes what is new into the part where it stands and answers true, or false to have it replaced. */
export function mergePart(name, merge) {
  merged.set(name, merge);
}

/** `address()` is where this page's news are, or null where only the page itself will do. */
export function newsFrom(address) {
  news = address;
}

function busy(part) {
  if (part.querySelector("details.act[open]")) return true;
  const field = document.activeElement;
  if (part.contains(field) && field.closest("details[data-form][open]")) return true;
  return part.contains(field) && field.matches("textarea, input:not([type=checkbox], [type=radio])") && field.value !== "";
}

/** Where who acts by keyboard goes on when the button that was pressed is gone. */
export const firstAction = () => document.querySelector("[data-part=actions] .actions :is(button, summary, a.button)");

function keepFocus(part, acted) {
  const field = document.activeElement;
  if (!part.contains(field)) return () => {};
  const row = field.closest("[data-id]");
  // A panel that was sent is closed: what stood in it cannot be focused, its button can.
  const panel = field.closest("details.act[data-panel]")?.dataset.panel;
  const find = () => row ? document.querySelector(`[data-id="${CSS.escape(row.dataset.id)}"] a.title`)
    : panel ? document.querySelector(`details.act[data-panel="${panel}"] > summary`) : field.id && document.getElementById(field.id);
  return () => (find() || (acted && firstAction()) || document.querySelector("main"))?.focus({ preventScroll: true });
}

// The same words once more take the place of those before.
function say(part, toast) {
  [...part.children].filter((one) => one.textContent === toast.textContent).forEach((one) => one.remove());
  part.append(toast);
}

/** `whole` replaces also what is otherwise merged. `kind` other than "page" comes beside it, and may fill parts that the
 * page leaves open (data-later), which the page itself never empties again. `done`: the answer to an action that closed its
 * panel, so that one that is open was opened by the next key. */
export function showPage(page, { force = false, done = false, whole = false, kind = "page" } = {}) {
  waiting.delete(kind);
  document.title = page.title;
  document.body.dataset.position = page.body.dataset.position || document.body.dataset.position;
  for (const part of parts(document)) {
    const newer = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (newer && part.dataset.part === "toasts") {
      newer.querySelectorAll(".toast").forEach((toast) => say(part, document.importNode(toast, true)));
      continue;
    }
    if (newer?.hasAttribute("data-later") && !part.hasAttribute("data-later")) continue;
    if (newer && !whole && merged.get(part.dataset.part)?.(part, newer)) continue;
    if (!newer || markup(newer) === (shown.get(part) ?? markup(part))) continue;
    const next = done && part.querySelector("details.act[open]");
    const seen = next && newer.querySelector("input[name=seen]")?.value; // one's own action is no news to the next one
    if (seen) next.querySelectorAll("input[name=seen]").forEach((field) => { field.value = seen; });
    if (force ? next : busy(part)) { waiting.set(kind, page); continue; }
    const refocus = keepFocus(part, force);
    const fresh = document.importNode(newer, true);
    shown.set(fresh, markup(fresh));
    part.querySelectorAll("details[id][open]").forEach((one) => fresh.querySelector(`#${CSS.escape(one.id)}`)?.setAttribute("open", ""));
    part.replaceWith(fresh);
    window.htmx?.process(fresh);
    swapped.forEach((callback) => callback(fresh, part));
    refocus();
  }
  document.querySelectorAll(".toast:not(.error, [data-timed])").forEach((toast) => {
    toast.dataset.timed = "";
    setTimeout(() => toast.remove(), 12_000);
  });
  if (kind === "page") afterwards.forEach((callback) => callback());
}

const showWaiting = () => [...waiting].forEach(([kind, page]) => showPage(page, { kind }));

/** What stands in `root`, put into the page by another module, is treated as the page's own. */
export function adopt(root) {
  for (const part of parts(root)) {
    shown.set(part, markup(part));
    swapped.forEach((callback) => callback(part, null));
  }
  window.htmx?.process(root);
  afterwards.forEach((callback) => callback());
}

// Messages are for the answer to an action. An update that took them would also take one written while it was under way.
const UPDATE = { "Dossier-Update": "1" };

const BRIEF = 2; // s that a busy server asks for; one without its database asks for more
const PATIENCE = 5; // times that it is asked again

// Many consoles ask at the same moment, on the same change. One that is told to come back later is not offline.
async function read(request, options) {
  for (let turn = 0; ; turn += 1) {
    const response = await fetch(request, { credentials: "same-origin", headers: UPDATE, ...options });
    const pause = Number(response.headers.get("Retry-After"));
    if (response.status !== 503 || !pause || pause > BRIEF || turn === PATIENCE) return response;
    await new Promise((done) => setTimeout(done, pause * 1000 * (1 + Math.random())));
  }
}

export async function readPage(request, options) {
  const acts = options?.method === "POST";
  const response = await (acts ? fetch(request, { credentials: "same-origin", ...options }) : read(request, options));
  const kind = response.headers.get("Content-Type") || "";
  if (!kind.startsWith("text/html")) throw new Error(kind.startsWith("text/plain") ? (await response.text()).trim() : `answered ${response.status}`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!page.querySelector("[data-part]")) location.reload(); // signed out, or no such page any more
  return { response, page };
}

let running = false;
let again = false;
/** Fetch this page once more, or its news, and show what changed. Calls made meanwhile become one more fetch. */
export async function refresh() {
  if (running) { again = true; return; }
  running = true;
  try {
    do {
      again = false;
      showPage((await readPage(news() ?? location.href)).page);
    } while (again);
  } finally { running = false; }
}

// A block that is fetched beside the page is not replaced under somebody who has begun to fill in one of its forms.
const begun = (block) => [...block.querySelectorAll("input:not([type=hidden]), textarea")].some((one) => one.value !== one.defaultValue)
  || [...block.querySelectorAll("select")].some((one) => one.selectedIndex > 0);
document.addEventListener("htmx:oobBeforeSwap", (event) => { if (begun(event.detail.target)) event.detail.shouldSwap = false; });

document.addEventListener("toggle", (event) => { if (!event.target.open) showWaiting(); }, true);
document.addEventListener("focusout", () => setTimeout(showWaiting, 0));
parts(document).forEach((part) => shown.set(part, markup(part)));
