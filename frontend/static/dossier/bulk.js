// What is done to several incidents: in batches, with how far it is, what was refused and why, and the way back.
import { actOnSeveral } from "./keys.js";
import { refresh } from "./parts.js";
import { rowOf, touched } from "./rows.js";

const BATCH = 20; // incidents in one request
const bar = document.querySelector(".bulk");
const form = document.querySelector("#bulk-form");
let all = null; // numbers of all that match, once they were asked for
let aimed = null; // the row that a key selected for its panel alone
let stopped = false;

const boxes = () => [...document.querySelectorAll("td.pick input[name=number]")];
const picked = () => all ?? boxes().filter((box) => box.checked).map((box) => Number(box.value));
const counted = (count) => `${count.toLocaleString("en")} incident${count === 1 ? "" : "s"}`;

function count() {
  if (!bar) return;
  const numbers = picked(), total = Number(form.dataset.total), most = Number(form.dataset.most);
  bar.classList.toggle("on", numbers.length > 0);
  bar.querySelector("[data-count]").textContent = numbers.length ? `${numbers.length.toLocaleString("en")} selected` : "";
  const whole = bar.querySelector("[data-pick-all]"), shown = boxes();
  whole.hidden = all !== null || shown.length === 0 || shown.some((box) => !box.checked) || total <= shown.length;
  whole.textContent = total > most ? `Select the first ${most.toLocaleString("en")} matching` : `Select all ${total.toLocaleString("en")} matching`;
  const head = document.querySelector("input[data-all]");
  if (head) {
    head.checked = shown.length > 0 && shown.every((box) => box.checked);
    head.indeterminate = !head.checked && numbers.length > 0;
  }
}

function clear() {
  all = null;
  aimed = null;
  boxes().forEach((box) => { box.checked = false; });
  count();
}

document.addEventListener("change", (event) => {
  if (event.target.matches("input[data-all]")) boxes().forEach((box) => { box.checked = event.target.checked; });
  if (event.target.matches("td.pick input[name=number], input[data-all]")) { all = null; aimed = null; count(); }
});
document.addEventListener("picked", count);

/** Shift and a click selects all from the last box to this one. */
let last = null;
document.addEventListener("click", (event) => {
  if (!event.target.matches("td.pick input[name=number]")) return;
  const every = boxes(), here = every.indexOf(event.target), there = every.indexOf(last);
  if (event.shiftKey && there >= 0) {
    every.slice(Math.min(here, there), Math.max(here, there) + 1).forEach((box) => { box.checked = event.target.checked; });
    count();
  }
  last = event.target;
});

/** Something is selected, or else the row at hand is from now on, for one panel. */
function aim(row) {
  if (picked().length) return true;
  const box = row?.querySelector("td.pick input[name=number]");
  if (!box) return false;
  box.checked = true;
  aimed = row;
  count();
  return true;
}
const anyPicked = () => aimed === null && picked().length > 0;

bar?.addEventListener("toggle", (event) => {
  if (event.target.open || !aimed || bar.querySelector("details[open]")) return;
  const row = aimed;
  if (bar.classList.contains("busy")) return;
  clear();
  row.querySelector("a.title")?.focus({ preventScroll: true, focusVisible: true });
}, true);

bar?.querySelector("[data-pick-none]").addEventListener("click", clear);
bar?.querySelector("[data-stop]").addEventListener("click", () => { stopped = true; });
bar?.querySelector("[data-pick-all]").addEventListener("click", async () => {
  const answer = await fetch(form.dataset.matching, { headers: { Accept: "application/json" } });
  if (answer.ok) all = (await answer.json()).numbers;
  count();
});

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new FormData(form);
  fields.delete("number");
  fields.delete("next");
  run(event.submitter.value, fields, picked(), event.submitter.dataset.done, event.submitter.closest(".panel"));
});

// Enter in a field, Ctrl and Enter in a longer text, sends the panel that it stands in, not the first button of the form.
bar?.addEventListener("keydown", (event) => {
  const sends = event.target.matches("input") || (event.target.matches("textarea") && (event.ctrlKey || event.metaKey));
  if (event.key !== "Enter" || event.defaultPrevented || !sends) return;
  const button = event.target.closest(".panel")?.querySelector("button[name=verb]");
  if (!button) return;
  event.preventDefault();
  form.requestSubmit(button);
});

// What a silence of the selected incidents would match is shown before it is made.
bar?.addEventListener("toggle", async (event) => {
  const place = event.target.open && event.target.querySelector("[data-silence-preview]");
  if (!place) return;
  const asked = new URLSearchParams(picked().slice(0, 20).map((number) => ["number", number]));
  place.replaceChildren();
  const response = await fetch(`${place.dataset.silencePreview}?${asked}`, { credentials: "same-origin" }).catch(() => null);
  if (!response?.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  place.replaceChildren(document.importNode(page.querySelector("[data-preview]"), true));
}, true);

async function post(verb, fields, numbers) {
  const body = new URLSearchParams(fields);
  body.set("verb", verb);
  numbers.forEach((number) => body.append("number", number));
  const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
  if (response.status !== 400 && !response.ok) throw new Error(`the server responded ${response.status}`);
  return { ok: response.ok, answer: await response.json() };
}

function progress(done, total, words) {
  const going = bar.querySelector(".going");
  going.hidden = total <= BATCH || done >= total;
  going.querySelector("progress").max = total;
  going.querySelector("progress").value = done;
  going.querySelector(".words").textContent = `${words} ${done.toLocaleString("en")} of ${total.toLocaleString("en")}`;
}

/** In batches, one after the other; stops at the first one that does not go through. */
async function inBatches(verb, fieldsOf, numbers, words) {
  const done = [], refused = [];
  let trouble = "", wrong = null, from = 0;
  stopped = false;
  bar.classList.add("busy");
  try {
    for (; from < numbers.length && !stopped; from += BATCH) {
      const batch = numbers.slice(from, from + BATCH);
      batch.forEach((number) => rowOf(String(number))?.classList.add("pending"));
      const { ok, answer } = await post(verb, fieldsOf, batch);
      if (!ok) { wrong = answer; break; }
      done.push(...answer.done);
      refused.push(...answer.refused);
      progress(from + batch.length, numbers.length, words);
    }
  } catch (error) { trouble = error.message; }
  bar.classList.remove("busy");
  bar.querySelector(".going").hidden = true;
  document.querySelectorAll("tr.pending").forEach((row) => row.classList.remove("pending"));
  touched();
  refresh().catch(() => {});
  return { done, refused, wrong, trouble, left: Math.max(0, numbers.length - done.length - refused.length) };
}

async function run(verb, fields, numbers, words, panel) {
  if (!numbers.length) return;
  panel?.querySelector(".problem")?.remove();
  const target = verb === "merge" ? String(fields.get("merge-into") || Math.min(...numbers)).replace("#", "") : "";
  if (target) fields.set("merge-into", target); // one target for all batches
  const result = await inBatches(verb, fields, numbers.filter((number) => String(number) !== target), words);
  if (result.wrong && panel) { say(panel, result.wrong); return; }
  const row = aimed;
  if (panel?.contains(document.activeElement)) document.activeElement.blur(); // closed, its field would still take Ctrl+Z
  panel?.closest("details").removeAttribute("open");
  clear();
  row?.querySelector("a.title")?.focus({ preventScroll: true, focusVisible: true });
  tell(words, result);
}

if (bar) actOnSeveral({ aim, anyPicked, acknowledge: () => form.requestSubmit(bar.querySelector("button[value=acknowledge]")) });

function say(panel, { field, reason }) {
  const problem = document.createElement("p");
  problem.className = "problem";
  problem.setAttribute("role", "alert");
  problem.textContent = `${field.slice(0, 1).toUpperCase()}${field.slice(1)} ${reason}.`;
  panel.prepend(problem);
}

/** What went, with its undo; what did not, with why. What was refused stays until it is dismissed. */
function tell(words, { done, refused, wrong, trouble, left }) {
  const toast = document.createElement("div");
  toast.className = "toast bulk-result";
  const text = document.createElement("div");
  const say = (line) => text.append(Object.assign(document.createElement("div"), { textContent: line }));
  if (done.length) say(`${words} ${counted(done.length)}`);
  if (trouble) say(`${trouble}; ${counted(left)} not processed`);
  else if (wrong) say(`Not done: ${wrong.field} ${wrong.reason}`);
  else if (left) say(`Stopped; ${counted(left)} not processed`);
  if (refused.length) {
    const why = document.createElement("details"), list = document.createElement("ul");
    why.append(Object.assign(document.createElement("summary"), { textContent: `Not done for ${counted(refused.length)}` }), list);
    refused.slice(0, 50).forEach((one) => list.append(Object.assign(document.createElement("li"), { textContent: `#${one.number}: ${one.reason}` })));
    why.open = refused.length <= 3;
    text.append(why);
  }
  toast.append(text);
  const back = done.filter((one) => one.undo);
  if (back.length) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Undo" });
    button.addEventListener("click", () => { toast.remove(); undo(back); });
    toast.append(button);
  }
  const away = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
  away.dataset.dismiss = "";
  away.setAttribute("aria-label", "Dismiss");
  toast.append(away);
  toast.dataset.timed = "";
  document.querySelector(".toasts").append(toast);
  if (!refused.length && !trouble && !left) setTimeout(() => toast.remove(), 15_000);
}

/** Those whose way back is the same go together. */
async function undo(done) {
  const groups = new Map();
  for (const { number, undo: step } of done) {
    const key = JSON.stringify(step);
    groups.set(key, [...(groups.get(key) ?? []), number]);
  }
  const sum = { done: [], refused: [], trouble: "", left: 0 };
  for (const [key, numbers] of groups) {
    const { verb, fields } = JSON.parse(key);
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    Object.entries(fields).forEach(([name, value]) => body.set(`${verb}-${name}`, value));
    const result = await inBatches(verb, body, numbers, "Undone");
    sum.done.push(...result.done.map(({ number }) => ({ number })));
    sum.refused.push(...result.refused);
    sum.trouble ||= result.trouble;
    sum.wrong ??= result.wrong;
    sum.left += result.left;
  }
  tell("Undone for", sum);
}

count();
