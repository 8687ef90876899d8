// Ctrl+K or ⌘K: go anywhere, or act on the incident at hand, by typing. Actions are those that the page itself shows.
import { openPanel, send } from "./actions.js";
import { combobox, fetched } from "./combobox.js";

const dialog = document.querySelector("dialog#palette");
const field = document.querySelector("#palette-text");
const place = document.querySelector("#palette-found");

const wordsOf = (element) => [...element.childNodes].filter((one) => one.nodeName !== "KBD").map((one) => one.textContent).join("").replace(/\s+/g, " ").trim();

/** What can be done here: the panels, buttons and folded forms of the incident, by their words. */
function actions() {
  const scope = document.querySelector("main .actions:not(.bulk .actions)");
  if (!scope) return [];
  const panels = [...scope.querySelectorAll("details[data-panel] > summary")].map((one) => [wordsOf(one), () => openPanel(one.parentElement.dataset.panel)]);
  const buttons = [...scope.querySelectorAll(":scope > form[data-act] button")].map((one) => [wordsOf(one), () => send(one.form, one)]);
  const forms = [...document.querySelectorAll("main details[data-form] > summary")].map((one) => [wordsOf(one), () => openForm(one.parentElement.id)]);
  return [...buttons, ...panels, ...forms];
}

/** A form that stands folded beside what it is about; found anew, for a live update may have replaced it meanwhile. */
function openForm(id) {
  const fold = document.getElementById(id);
  if (!fold) return;
  fold.open = true;
  fold.scrollIntoView({ block: "nearest" });
  fold.querySelector("select, input:not([type=hidden]), textarea")?.focus();
}

function withActions(list, text) {
  const fitting = actions().filter(([words]) => words.toLowerCase().includes(text.toLowerCase()));
  if (!fitting.length) return list;
  const group = Object.assign(document.createElement("div"), { role: "group", ariaLabel: "On this incident" });
  group.append(Object.assign(document.createElement("div"), { className: "group", textContent: "On this incident" }));
  group.firstChild.setAttribute("aria-hidden", "true");
  for (const [words, act] of fitting) {
    const option = document.createElement("div");
    option.setAttribute("role", "option");
    option.append(Object.assign(document.createElement("span"), { className: "words", textContent: words }));
    option.act = act;
    group.append(option);
  }
  list.prepend(group);
  return list;
}

if (dialog) {
  const found = combobox(field, place, {
    first: true,
    find: async (text, signal) => {
      const list = await fetched(`${field.dataset.find}?${new URLSearchParams({ q: text })}`, signal);
      return list && withActions(list, text.trim());
    },
    take: (option, event) => {
      dialog.close();
      if (option.act) option.act();
      else if (event.ctrlKey || event.metaKey) window.open(option.dataset.href);
      else location.href = option.dataset.href;
    },
  });
  const open = () => {
    if (dialog.open) { dialog.close(); return; }
    if (document.querySelector("dialog[open]")) return;
    field.value = "";
    dialog.showModal();
    found.look();
  };
  dialog.addEventListener("close", () => found.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-palette]")) open(); });
}
