// The grid: fetches the cells once, then time, pointer and keyboard only look at them.
import { clock, offset } from "./zone.js";
import { Cells, figure, percent, short, worst } from "./grid_cells.js";
import { Drawing } from "./grid_drawing.js";

const PACE = 700; // ms a step of playback stands
const TABLE = 10;
const EDGES = 10;
const AGAIN = 30_000; // ms: telemetry comes without a message, so whoever looks at now has it asked for

const grid = document.querySelector("#grid");
const cursor = document.querySelector("#grid-cell");
const row = grid.querySelector("[role=row]");
const slider = document.querySelector("#step");
const play = document.querySelector("[data-play]");
// An address without `end` means now, and goes on meaning it while its last step is looked at.
const following = !new URLSearchParams(location.search).has("end");
let told, cells, drawing, shown;
let place = { row: 0, column: 0 };
let playing = null;

const step = () => Number(slider.value);
const marksOf = (name) => told.marks[step()].filter((mark) => mark.component === name);

function element(tag, text = "", of = {}) {
  const made = Object.assign(document.createElement(tag), of);
  made.textContent = text;
  return made;
}

const componentAt = (name) => grid.dataset.component + name.split("/").map(encodeURIComponent).join("/");

/** The address of the grid of what lies beneath a row or a column; null where nothing does. */
function beneath(name, side) {
  const axis = side === "c" ? "columns" : "rows";
  if (!told[axis].finer) return null;
  const asked = new URLSearchParams(location.search);
  asked.set("rows", told.rows.kind);
  asked.set("columns", told.columns.kind);
  asked.set(axis, told[axis].finer);
  asked.append("within", name);
  asked.set("side", (grid.dataset.side || "").padEnd(told.within.length, "r") + side);
  return `${grid.dataset.page}?${asked}`;
}

function go(address) { if (address) location.href = address; }

function inspect({ row: at, column }) {
  const now = cells.step(step());
  const panel = document.querySelector("[data-inspect]");
  const names = [at < 0 ? "" : cells.rows[at], column < 0 ? "" : cells.columns[column]];
  if (!names[0] && !names[1]) return;
  const both = at >= 0 && column >= 0;
  const cell = at * cells.columns.length + column;
  const sum = both ? { failed: now.failed[cell], carried: now.carried[cell] } : at >= 0 ? now.rows[at] : now.columns[column];
  const shown = [element("p", names.filter(Boolean).join(" × "), { className: "pair" })];
  shown.push(element("strong", sum.carried || sum.failed ? percent(sum.failed, sum.carried) : "nothing there", { className: "share" }));
  shown.push(element("p", `${figure(sum.failed)} of ${figure(sum.carried)} failed`, { className: "muted" }));
  if (both) for (const [name, edge] of [[names[0], now.rows[at]], [names[1], now.columns[column]]]) shown.push(element("p", `${short(name)} in all: ${percent(edge.failed, edge.carried)}`, { className: "small" }));
  for (const name of names) for (const mark of name ? marksOf(name) : []) {
    const line = element("p", `${short(name)} is suspected by `, { className: "small" });
    line.append(element("a", mark.number ? `#${mark.number} ${mark.title}` : mark.title, { href: mark.number ? `/incidents/${mark.number}` : `/runs/${mark.run}` }));
    shown.push(line);
  }
  const todo = element("p", "", { className: "do" });
  names.forEach((name, side) => {
    if (!name) return;
    const into = beneath(name, "rc"[side]);
    if (into) todo.append(element("a", `${told[side ? "columns" : "rows"].finer} of ${short(name)} ›`, { href: into }));
    todo.append(element("a", `About ${name}`, { href: componentAt(name) }));
  });
  panel.replaceChildren(...shown, todo);
}

function point(to, { scroll = false } = {}) {
  place = { row: Math.min(Math.max(to.row, 0), cells.rows.length - 1), column: Math.min(Math.max(to.column, 0), cells.columns.length - 1) };
  const now = cells.step(step());
  const cell = place.row * cells.columns.length + place.column;
  const [x, y, width, height] = drawing.box(place.row, place.column);
  const room = Math.max(6 - width, 0) / 2; // a cell of three pixels still has a cursor that can be seen
  Object.assign(cursor.style, { left: `${x - 2 - room}px`, top: `${y - 2 - room}px`, width: `${width + 4 + 2 * room}px`, height: `${height + 4 + 2 * room}px` });
  cursor.classList.add("there");
  row.setAttribute("aria-rowindex", place.row + 1);
  cursor.setAttribute("aria-colindex", place.column + 1);
  const blamed = [cells.rows[place.row], cells.columns[place.column]].filter((name) => marksOf(name).length);
  cursor.setAttribute("aria-label", `${cells.rows[place.row]}, ${cells.columns[place.column]}: ${now.carried[cell] || now.failed[cell] ? `${percent(now.failed[cell], now.carried[cell])}, ${now.failed[cell]} of ${now.carried[cell]} failed` : "nothing there"}${blamed.length ? `, ${blamed.join(" and ")} blamed` : ""}`);
  grid.setAttribute("aria-activedescendant", "grid-cell");
  if (scroll) cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  inspect(place);
}

function line(parts, numbers) {
  const made = document.createElement("tr");
  for (const part of parts) {
    const cell = document.createElement("td");
    cell.append(part);
    made.append(cell);
  }
  for (const number of numbers) made.append(element("td", number, { className: "number" }));
  return made;
}

function fill(body, list, columns) {
  body.replaceChildren(...(list.length ? list : [line([element("span", "no failures", { className: "muted" })], [])]));
  if (!list.length) body.querySelector("td").colSpan = columns;
}

/** The tables and facts beside the drawing, for the step that is shown. */
function tell() {
  const now = cells.step(step());
  const numbers = (sum) => [figure(sum.failed), figure(sum.carried), percent(sum.failed, sum.carried)];
  const edge = (name, side) => element("a", short(name), { href: beneath(name, side) || componentAt(name) });
  const edges = (names, sums, side) => worst(sums.map((sum, at) => ({ ...sum, name: names[at] })), EDGES).map((sum) => line([edge(sum.name, side)], numbers(sum)));
  fill(document.querySelector("[data-rows]"), edges(cells.rows, now.rows, "r"), 4);
  fill(document.querySelector("[data-columns]"), edges(cells.columns, now.columns, "c"), 4);
  const failing = now.failing.map((cell) => ({ cell, failed: now.failed[cell], carried: now.carried[cell] }));
  const wide = cells.columns.length;
  fill(document.querySelector("[data-worst]"), worst(failing, TABLE).map((one) => line([short(cells.rows[Math.floor(one.cell / wide)]), short(cells.columns[one.cell % wide])], numbers(one))), 5);
  const total = document.querySelector("[data-total]");
  total.replaceChildren(element("strong", figure(now.all.failed)), ` of ${figure(now.all.carried)}, ${percent(now.all.failed, now.all.carried)}`);
  const blamed = document.querySelector("[data-blamed]");
  const by = new Map();
  for (const mark of told.marks[step()]) by.set(mark.component, [...(by.get(mark.component) || []), mark]);
  blamed.replaceChildren(...[...by].map(([name, marks]) => {
    const made = element("div", "", { className: "blamed" });
    made.append(element("a", name, { className: "chip", href: componentAt(name) }), " ");
    for (const mark of marks) made.append(element("a", mark.number ? `#${mark.number}` : `${mark.title}${mark.score === null ? "" : ` ${percent(mark.score, 1)}`}`, { href: mark.number ? `/incidents/${mark.number}` : `/runs/${mark.run}` }), " ");
    return made;
  }));
  if (!by.size) blamed.append(element("span", "none in view", { className: "muted" }));
}

function show() {
  const { start, end } = told.steps[step()];
  const day = clock(start).slice(0, -6) === clock(end).slice(0, -6);
  const when = `${clock(start)} to ${day ? clock(end).slice(-5) : clock(end)} ${offset(end)}`;
  document.querySelector("[data-when]").textContent = when;
  slider.setAttribute("aria-valuetext", when);
  drawing.draw(step(), new Set(told.marks[step()].map((mark) => mark.component)));
  tell();
  if (cursor.classList.contains("there")) point(place);
}

/** The address says what is seen, so that it can be shared. */
function note() {
  const asked = new URLSearchParams(location.search);
  if (following && step() === Number(slider.max)) ["end", "at"].forEach((name) => asked.delete(name));
  else {
    asked.set("end", told.steps.at(-1).end);
    asked.set("at", told.steps[step()].end);
  }
  history.replaceState(null, "", `?${asked}`);
}

function move(to) {
  slider.value = Math.min(Math.max(to, 0), Number(slider.max));
  show();
  note();
}

function stop() {
  clearInterval(playing);
  playing = null;
  play.textContent = "Play";
  play.setAttribute("aria-pressed", "false");
}

function start() {
  if (step() === Number(slider.max)) move(0);
  play.textContent = "Pause";
  play.setAttribute("aria-pressed", "true");
  playing = setInterval(() => {
    if (step() < Number(slider.max)) move(step() + 1);
    if (step() === Number(slider.max)) stop();
  }, PACE);
}

/** Whoever goes by keys goes on by keys on the page that comes. */
function walk(address) {
  if (!address) return;
  try { sessionStorage.setItem("walking", new URL(address, location.href).href); } catch { /* the focus is lost then */ }
  go(address);
}

const KEYS = {
  ArrowUp: () => point({ ...place, row: place.row - 1 }, { scroll: true }),
  ArrowDown: () => point({ ...place, row: place.row + 1 }, { scroll: true }),
  ArrowLeft: () => point({ ...place, column: place.column - 1 }, { scroll: true }),
  ArrowRight: () => point({ ...place, column: place.column + 1 }, { scroll: true }),
  PageUp: () => point({ ...place, row: place.row - 10 }, { scroll: true }),
  PageDown: () => point({ ...place, row: place.row + 10 }, { scroll: true }),
  Home: () => point({ ...place, column: 0 }, { scroll: true }),
  End: () => point({ ...place, column: Infinity }, { scroll: true }),
  Enter: (event) => walk(event.shiftKey ? beneath(cells.columns[place.column], "c") : beneath(cells.rows[place.row], "r")),
  Backspace: () => walk([...document.querySelectorAll(".crumbs a")].at(-1)?.href),
};

grid.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key](event);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  if (event.key === "," || event.key === ".") { stop(); move(step() + (event.key === "." ? 1 : -1)); }
});
const under = (event) => drawing.at(event.offsetX, event.offsetY);
grid.addEventListener("pointermove", (event) => {
  const at = under(event);
  grid.classList.toggle("on-name", at.row < 0 !== at.column < 0);
  if (document.activeElement !== grid) inspect(at);
});
grid.addEventListener("focus", () => { if (grid.matches(":focus-visible")) point(place); });
grid.addEventListener("click", (event) => {
  const { row: at, column } = under(event);
  if (at >= 0 && column >= 0) point({ row: at, column });
  else if (at >= 0) go(beneath(cells.rows[at], "r") || componentAt(cells.rows[at]));
  else if (column >= 0) go(beneath(cells.columns[column], "c") || componentAt(cells.columns[column]));
});
grid.addEventListener("dblclick", (event) => {
  const { row: at, column } = under(event);
  if (at >= 0 && column >= 0) go(beneath(cells.rows[at], "r"));
});
slider.addEventListener("input", () => { stop(); show(); });
slider.addEventListener("change", note);
play.addEventListener("click", () => (playing ? stop() : start()));

function fit() {
  drawing.readColours();
  drawing.measure(grid.parentElement.clientWidth);
  show();
}

function take(text) {
  const names = cells && [cells.rows[place.row], cells.columns[place.column]];
  [shown, told] = [text, JSON.parse(text)];
  cells = new Cells(told);
  drawing = new Drawing(grid.querySelector("canvas"), cells);
  grid.setAttribute("aria-rowcount", cells.rows.length);
  grid.setAttribute("aria-colcount", cells.columns.length);
  // The cursor stays on its cell, wherever that stands now.
  if (names) place = { row: Math.max(cells.rows.indexOf(names[0]), 0), column: Math.max(cells.columns.indexOf(names[1]), 0) };
}

/** What came since: newer telemetry moves the steps on, a run or an incident marks what it blames. */
async function renew() {
  if (!told || !following || playing || step() !== Number(slider.max)) return;
  const address = new URL(grid.dataset.cells, location.href);
  ["end", "at"].forEach((name) => address.searchParams.delete(name));
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(String(answer.status));
  const text = await answer.text();
  if (text === shown || playing || step() !== Number(slider.max)) return;
  if (!JSON.parse(text).rows) return;
  take(text);
  fit();
}

async function begin() {
  const answer = await fetch(grid.dataset.cells, { headers: { Accept: "application/json" } });
  if (!answer.ok) {
    const why = await answer.json().catch(() => ({}));
    document.querySelector("[data-inspect]").replaceChildren(element("p", why.detail || `Failed to load the cells (${answer.status}).`, { className: "problem" }));
    return;
  }
  take(await answer.text());
  fit();
  try {
    if (sessionStorage.getItem("walking") === location.href) grid.focus({ preventScroll: true });
    sessionStorage.removeItem("walking");
  } catch { /* as if nobody walked */ }
  new ResizeObserver(() => { if (Math.abs(grid.parentElement.clientWidth - (fit.room ?? 0)) > 1) { fit.room = grid.parentElement.clientWidth; fit(); } }).observe(grid.parentElement);
  document.addEventListener("themechange", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fit);
  grid.dataset.ready = "";
  if (!following) return;
  document.addEventListener("pageupdate", (event) => { event.detail.by = renew(); });
  setInterval(() => { if (!document.hidden) renew().catch(() => {}); }, AGAIN);
}
begin();
