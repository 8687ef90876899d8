// Live updates: server-sent events from their own small process; without them the page polls, and says so.
import { refresh } from "./parts.js";

const POLL = 10_000; // ms
const RETRY = 30_000; // ms until live updates are tried again
const GATHER = 150; // ms in which several changes become one refresh
const body = document.body;
const sign = document.querySelector(".live");
let source = null;
let timer = null;
let poll = null;

function state(name, words) {
  if (!sign) return;
  sign.dataset.state = name;
  sign.querySelector(".words").textContent = words;
}

async function update() {
  try {
    await refresh();
    if (poll) state("polling", "Polling every 10 s");
  } catch {
    state("offline", "Offline, trying again");
  }
}

function soon() {
  timer ??= setTimeout(() => { timer = null; update(); }, GATHER);
}

function concerns(message) {
  const wanted = body.dataset.watch; // "incidents", "runs" or the id of one incident
  const change = JSON.parse(message.data);
  return wanted === change.about || wanted === change.id;
}

function startPolling() {
  if (poll) return;
  state("polling", "Polling every 10 s");
  poll = setInterval(update, POLL);
  setTimeout(connect, RETRY);
}

async function connect() {
  source?.close();
  let answer;
  try {
    const response = await fetch("/live", { credentials: "same-origin", headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(String(response.status));
    answer = await response.json();
  } catch { stopped(); return; }
  const address = new URL(answer.url);
  address.searchParams.set("token", answer.token);
  address.searchParams.set("after", body.dataset.position);
  source = new EventSource(address);
  source.addEventListener("open", () => {
    clearInterval(poll);
    poll = null;
    state("live", "Live");
  });
  source.addEventListener("change", (event) => {
    if (concerns(event)) soon();
    else if (event.lastEventId) body.dataset.position = event.lastEventId;
  });
  source.addEventListener("reset", soon);
  source.addEventListener("bye", () => { connect(); }); // the server asks for a new token
  source.addEventListener("error", stopped);
}

function stopped() {
  source?.close();
  source = null;
  startPolling();
}

export function startLive() {
  if (!body.dataset.watch) return;
  connect();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && poll) update(); });
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
}
