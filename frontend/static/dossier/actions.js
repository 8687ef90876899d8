// Forms with data-act are sent without leaving the page; the answer is the page as it stands afterwards.
import { readPage, showPage } from "./parts.js";

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
    showPage(page, { force: true });
    if (!response.ok) document.querySelector(".problem")?.scrollIntoView({ block: "nearest" });
  } catch (error) {
    say(`Failed: ${error.message}. Try again.`);
  } finally {
    buttons.forEach((one) => { one.disabled = false; });
    if (here && document.activeElement === document.body) backTo(panel);
  }
}

// A button that was disabled, or a panel that was closed, has lost the focus: who goes on by keyboard goes on from there.
function backTo(panel) {
  const place = (panel && document.querySelector(`details.act[data-panel="${panel}"] > summary`)) || document.querySelector("main");
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

// Ctrl+Z, where nothing is being typed: the newest message that has an undo.
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select")) return;
  const undo = [...document.querySelectorAll(".toasts .toast button:not([data-dismiss])")].pop();
  if (!undo) return;
  event.preventDefault();
  undo.click();
});

export function openPanel(name) {
  const panel = document.querySelector(`details.act[data-panel="${name}"]`);
  if (!panel) return false;
  panel.open = true;
  panel.scrollIntoView({ block: "nearest" });
  focusFirst(panel); // at once: the event comes later than the next key of a fast hand
  return true;
}
