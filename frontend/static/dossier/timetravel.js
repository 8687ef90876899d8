// Going through an incident's past: the slider's steps are the events of its timeline, the page is drawn as of each, and
// the address follows, so that every moment can be shared. What stands between the slider's ends comes with the page.
import { adopt, onPart, readPage } from "./parts.js";
import { exact } from "./zone.js";

const WAIT = 120; // ms that the hand rests before the page is fetched
const bar = document.querySelector("[data-travel]");
const range = bar?.querySelector("input[type=range]");
const words = bar?.querySelector("output");
const [earlier, later] = bar?.querySelectorAll("[data-step]") ?? [];
let moments = [];
let timer = null;
let asking = null;

const now = () => Number(range.value) >= moments.length - 1;

function written(moment) {
  return `${exact(moment.at)}: ${moment.text}`;
}

function tell() {
  const place = Number(range.value);
  const moment = moments[Math.min(place, moments.length - 1)];
  words.textContent = now() ? `Now. Last: ${written(moment)}` : written(moment);
  words.title = words.textContent;
  range.setAttribute("aria-valuetext", words.textContent);
  earlier.disabled = place <= 0;
  later.disabled = now();
}

function address() {
  const to = new URL(location.href);
  if (now()) to.searchParams.delete("as_of");
  else to.searchParams.set("as_of", moments[Number(range.value)].position);
  to.hash = "";
  return to;
}

async function go() {
  asking?.abort();
  asking = new AbortController();
  const to = address();
  if (to.href === location.href.replace(/#.*/, "")) return;
  let page;
  try {
    ({ page } = await readPage(to, { signal: asking.signal }));
  } catch (error) {
    if (error.name !== "AbortError") words.textContent = `Cannot show that time: ${error.message}`;
    return;
  }
  // From now into the past is a step of the browser's history, from one past moment to another is not.
  history[new URL(location.href).searchParams.has("as_of") ? "replaceState" : "pushState"](null, "", to);
  for (const id of ["moment", "incident"]) {
    const fresh = document.importNode(page.getElementById(id), true);
    document.getElementById(id).replaceWith(fresh);
    adopt(fresh);
  }
  bar.closest(".travel").classList.toggle("past", !now());
  document.title = page.title;
  document.body.dataset.watch = page.body.dataset.watch;
}

function soon() {
  tell();
  clearTimeout(timer);
  timer = setTimeout(go, WAIT);
}

function step(by) {
  range.value = Number(range.value) + by;
  soon();
}

function read() {
  const before = moments.length;
  const atNow = before === 0 ? !new URL(location.href).searchParams.has("as_of") : now();
  moments = JSON.parse(document.getElementById("moments").textContent);
  range.max = moments.length - 1;
  if (atNow) range.value = moments.length - 1;
  else if (before === 0) range.value = bar.dataset.travel;
  bar.parentElement.hidden = moments.length < 2;
  tell();
}

if (bar) {
  range.addEventListener("input", soon);
  earlier.addEventListener("click", () => step(-1));
  later.addEventListener("click", () => step(1));
  addEventListener("popstate", () => location.reload());
  onPart((part) => { if (part.dataset.part === "moments") read(); });
}
