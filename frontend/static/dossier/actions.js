// Forms with data-act are sent without leaving the page; the answer is the page as it stands afterwards.
import { firstAction, readPage, showPage } from "./parts.js";

export async function send(form, button) {
  const buttons = form.querySelectorAll("button");
  const body = new URLSearchParams(new FormData(form, button));
  const here = form.contains(document.activeElement);
  const panel = form.closest("details.act[data-panel]")?.dataset.panel;
  buttons.forEach((one) => { one.disabled = true; });
  try {
    const { response, page } = await readPage(form.action, { method: "POST", body });
    if (response.ok) form.closest("details.act, details[data-form]")?.removeAttribute("open");
    if (response.ok && form.dataset.act === "comment") form.reset();
    if (response.ok) replaceUndo(form);
    showPage(page, { force: true, done: response.ok });
    if (!response.ok) document.querySelector(".problem")?.scrollIntoView({ block: "nearest" });
  } catch (error) {
    say(`Failed: ${error.message}. Try again.`);
  } finally {
    buttons.forEach((one) => { one.disabled = false; });
    if (here && document.activeElement === document.body) backTo(panel);
  }
}

// A message whose undo was pressed, or whose incident has been acted on since, goes: only the newest action is undone.
function replaceUndo(form) {
  const incident = new URL(form.action).pathname.match(/^.*\/incidents\/\d+\//)?.[0];
  document.querySelectorAll(".toasts .toast").forEach((toast) => {
    const undo = toast.querySelector("form[data-act=undo]");
    if (toast.contains(form) || (incident && undo && new URL(undo.action).pathname.startsWith(incident))) toast.remove();
  });
}

// A button that was disabled, or a panel that was closed, has lost the focus: who goes on by keyboard goes on from
// there, or from the first action that is left.
function backTo(panel) {
  const place = (panel && document.querySelector(`details.act[data-panel="${panel}"] > summary`))
    || firstAction() || document.querySelector("main");
  place?.focus({ preventScroll: true });
}

export function say(text) {
  const toast = document.createElement("div");
  toast.className = "toast error";
  toast.textContent = text;
  document.querySelector(".toasts").append(toast);
  setTimeout(() => toast.remove(), 8000);
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-act]")) return;
  event.preventDefault();
  send(event.target, event.submitter);
});

// Panels close on Escape and on a click elsewhere, one is open at a time, and the first field has the focus.
function closePanels(except) {
  document.querySelectorAll("details.act[open]").forEach((one) => { if (one !== except) one.open = false; });
}
// A panel hangs from the left edge of its button; one that would leave the screen is drawn to the left.
function keepOnScreen(panel) {
  panel.style.marginLeft = "";
  const beyond = panel.getBoundingClientRect().right + 8 - document.documentElement.clientWidth;
  if (beyond > 0) panel.style.marginLeft = `-${beyond}px`;
}
function focusFirst(panel) {
  (panel.querySelector("[data-first]") ?? panel.querySelector("input:checked, input:not([type=hidden]), select, textarea"))?.focus();
}
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.("details.act") || !event.target.open) return;
  closePanels(event.target);
  keepOnScreen(event.target.querySelector(".panel"));
  if (!event.target.contains(document.activeElement) || document.activeElement.matches("summary")) focusFirst(event.target);
}, true);
// Choices that were fetched meanwhile take the place of the one that had the focus.
document.addEventListener("htmx:afterSwap", (event) => {
  const panel = event.detail.target.closest("details.act[open]");
  if (panel && document.activeElement === document.body) focusFirst(panel);
});
// What is typed beside a choice chooses it.
document.addEventListener("input", (event) => {
  if (!event.target.value || !event.target.matches("details.act .choices input:not([type=radio])")) return;
  const own = event.target.closest(".choices").querySelector("input[value=other], input[value=time]");
  if (own) own.checked = true;
});
document.addEventListener("click", (event) => {
  if (event.target.matches("[data-close]")) event.target.closest("details").open = false;
  closePanels(event.target.closest("details.act"));
  if (event.target.closest(".toast button[data-dismiss]")) event.target.closest(".toast").remove();
});
document.addEventListener("keydown", (event) => {
  const open = document.querySelector("details.act[open]");
  if (event.key !== "Escape" || !open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

// Letters choose among the radio buttons of a panel by their words, as they do in a select.
const PAUSE = 1000; // ms after which a letter begins another word, as it does in another panel
let typed = "", last = 0, group = "";
document.addEventListener("keydown", (event) => {
  const radio = event.target;
  if (event.ctrlKey || event.altKey || event.metaKey || event.key.length !== 1 || event.key === " ") return;
  if (!radio.matches?.("details.act .panel input[type=radio]")) return;
  event.preventDefault();
  const among = `${radio.form.action} ${radio.name}`;
  typed = (event.timeStamp - last > PAUSE || group !== among ? "" : typed) + event.key.toLowerCase();
  last = event.timeStamp;
  group = among;
  const all = [...radio.form.querySelectorAll(`input[type=radio][name="${radio.name}"]`)], here = all.indexOf(radio);
  const from = typed.length === 1 ? here + 1 : here; // the same letter again goes on to the next one
  const next = [...all.slice(from), ...all.slice(0, from)].find((one) => one.closest("label").textContent.trim().toLowerCase().startsWith(typed));
  if (!next) return;
  next.focus();
  next.click();
});

// Ctrl+Z, where nothing is being typed: the newest message that has an undo.
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select")) return;
  const undo = [...document.querySelectorAll(".toasts .toast button:not([data-dismiss])")].pop();
  if (!undo) return;
  event.preventDefault();
  undo.click();
});

// A page that was reached by keyboard begins at its content, not at the bar that was just passed by.
const BY_KEY = "went-by-key";
export function goTo(address) {
  try { sessionStorage.setItem(BY_KEY, "1"); } catch { /* then it begins at the bar */ }
  location.href = address;
}
try {
  if (sessionStorage.getItem(BY_KEY) && !location.hash) document.querySelector("main")?.focus({ preventScroll: true });
  sessionStorage.removeItem(BY_KEY);
} catch { /* it begins at the bar */ }

export function openPanel(name) {
  const panel = document.querySelector(`details.act[data-panel="${name}"]`);
  if (!panel) return false;
  panel.open = true;
  panel.querySelector(".panel").scrollIntoView({ block: "nearest" });
  focusFirst(panel); // at once: the event comes later than the next key of a fast hand
  return true;
}
