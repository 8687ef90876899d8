// Live updates: server-sent events from their own small process; without them the page polls, and says so. Where
// nothing answers at all, the page keeps what it shows and says since when.
import { refresh } from "./parts.js";
import { hour, offset } from "./zone.js";

const POLL = 10_000; // ms
const RETRY = 30_000; // ms until live updates are tried again
const GATHER = 150; // ms in which several changes become one refresh
const HIDDEN = 60_000; // ms after which a page that comes back to the front looks for itself
const body = document.body;
const sign = document.querySelector(".live");
const notice = document.querySelector(".offline");
let source = null;
let timer = null;
let poll = null;
let retry = null;
let took = 0; // ms of the last refresh
let ended = 0;
let heard = Date.now(); // when what the page shows was last known to be current
let hidden = 0;

function state(name, words) {
  if (sign && sign.dataset.state !== name) {
    sign.dataset.state = name;
    sign.querySelector(".words").textContent = words;
  }
  if (!notice) return;
  notice.hidden = name !== "offline";
}

function offline() {
  const clock = `${hour(heard)} ${offset(heard)}`;
  if (notice?.hidden) notice.querySelector(".since").textContent = clock;
  state("offline", `Offline, as of ${clock}`);
}

async function update() {
  const began = performance.now();
  try {
    const asked = {}; // a screen that draws by itself also reads by itself
    document.dispatchEvent(new CustomEvent("pageupdate", { detail: asked }));
    await (asked.by ?? refresh());
    ended = performance.now();
    took = Math.min(ended - began, POLL);
    heard = Date.now();
    if (poll) state("polling", "Polling every 10 s");
  } catch {
    offline();
    startPolling();
  }
}

function soon() {
  const pause = Math.max(GATHER, took - (performance.now() - ended)); // a busy server has as long a rest
  timer ??= setTimeout(() => { timer = null; update(); }, pause);
}

function concerns(message) {
  const wanted = body.dataset.watch.split(" "); // of "incidents" and "runs", or the id of one incident or run
  const change = JSON.parse(message.data);
  return wanted.includes(change.about) || wanted.includes(change.id);
}

// Which incident it was is for whoever shows more than what a fresh copy of the page has; without an id, any of them.
const tell = (id) => document.dispatchEvent(new CustomEvent("incidentchanged", { detail: id }));

function startPolling() {
  if (!poll) poll = setInterval(() => { tell(null); update(); }, POLL);
  clearTimeout(retry);
  retry = setTimeout(connect, RETRY);
}

async function connect() {
  source?.close();
  source = null;
  let answer;
  try {
    const response = await fetch("/live", { credentials: "same-origin", headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(String(response.status));
    answer = await response.json();
  } catch { stopped(); return; }
  const address = new URL(answer.url);
  address.searchParams.set("token", answer.token);
  address.searchParams.set("after", body.dataset.position);
  const opened = new EventSource(address);
  source = opened;
  source.addEventListener("open", () => {
    clearInterval(poll);
    clearTimeout(retry);
    poll = null;
    heard = Date.now();
    state("live", "Live");
  });
  source.addEventListener("change", (event) => {
    heard = Date.now();
    if (concerns(event)) { tell(JSON.parse(event.data).id); soon(); }
    else if (event.lastEventId) body.dataset.position = event.lastEventId;
  });
  source.addEventListener("reset", () => { tell(null); soon(); });
  source.addEventListener("bye", () => { heard = Date.now(); connect(); }); // the server asks for a new token
  source.addEventListener("error", () => { if (source === opened) stopped(); });
}

/** Without the stream: does the rest answer? Then the page polls. */
function stopped() {
  if (source) heard = Date.now();
  source?.close();
  source = null;
  startPolling();
  tell(null);
  if (navigator.onLine) { if (!notice || notice.hidden) state("polling", "Polling every 10 s"); update(); } else offline();
}

export function startLive() {
  if (!body.dataset.watch) return;
  connect();
  addEventListener("offline", () => { if (source) heard = Date.now(); source?.close(); source = null; offline(); startPolling(); });
  addEventListener("online", () => { tell(null); update(); connect(); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { hidden = Date.now(); return; }
    const away = Date.now() - hidden > HIDDEN;
    if (away) tell(null);
    if (poll || away) update();
    if (away && source?.readyState !== EventSource.OPEN) connect();
  });
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) { tell(null); connect(); } });
}
