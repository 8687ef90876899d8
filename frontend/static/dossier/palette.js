// Ctrl+K or ⌘K: go anywhere, or act on the incident at hand or on any other, by typing. Actions on the incident at hand
// are those that the page itself shows.
import { goTo, openPanel, send } from "./actions.js";
import { combobox, fetched } from "./combobox.js";
import { setTheme } from "./themes.js";

const dialog = document.querySelector("dialog#palette");
const field = document.querySelector("#palette-text");
const place = document.querySelector("#palette-found");

const wordsOf = (element) => [...element.childNodes].filter((one) => one.nodeName !== "KBD").map((one) => one.textContent).join("").replace(/\s+/g, " ").trim();

/** What can be done here: the panels, buttons and folded forms of the incident, by their words. */
function actions() {
  const scope = document.querySelector("main [data-part=actions] .actions");
  if (!scope) return [];
  const panels = [...scope.querySelectorAll("details[data-panel] > summary")].map((one) => [wordsOf(one), () => openPanel(one.parentElement.dataset.panel)]);
  const buttons = [...scope.querySelectorAll(":scope > form[data-act] button")].map((one) => [wordsOf(one), () => send(one.form, one)]);
  const links = [...scope.querySelectorAll(":scope > a.button")].map((one) => [wordsOf(one), () => one.click()]);
  const forms = [...document.querySelectorAll("main details[data-form] > summary")].map((one) => [wordsOf(one), () => openForm(one.parentElement.id)]);
  return [...buttons, ...panels, ...links, ...forms];
}

/** Letters in order, from the beginning of a word on: as the server finds its own commands. */
function fits(text, words) {
  const wanted = text.toLowerCase().replace(/\s+/g, ""), target = words.toLowerCase();
  if (!wanted || target.replace(/\s+/g, "").includes(wanted)) return true;
  if (wanted.length < 3) return false;
  return [...target.matchAll(/(?:^|[\s-])(\S)/g)].some((start) => {
    let at = start.index + start[0].length - 1;
    const begin = at;
    for (const letter of wanted) {
      at = target.indexOf(letter, at) + 1;
      if (!at) return false;
    }
    return target[begin] === wanted[0] && at - begin <= 2.5 * wanted.length;
  });
}

/** A form that stands folded beside what it is about; found anew, for a live update may have replaced it meanwhile. */
function openForm(id) {
  const fold = document.getElementById(id);
  if (!fold) return;
  fold.open = true;
  fold.scrollIntoView({ block: "nearest" });
  fold.querySelector("select, input:not([type=hidden]), textarea")?.focus();
}

function groupOf(name, options) {
  const group = Object.assign(document.createElement("div"), { role: "group", ariaLabel: name });
  group.append(Object.assign(document.createElement("div"), { className: "group", textContent: name }));
  group.firstChild.setAttribute("aria-hidden", "true");
  for (const { words, act, href } of options) {
    const option = document.createElement("div");
    option.setAttribute("role", "option");
    option.append(Object.assign(document.createElement("span"), { className: "words", textContent: words }));
    option.act = act;
    if (href) option.dataset.href = href;
    group.append(option);
  }
  return group;
}

// The latest places that were chosen, shown while nothing is typed.
const RECENT = "palette-recent";
function recent() { try { return JSON.parse(localStorage.getItem(RECENT)) ?? []; } catch { return []; } }
function remember(option) {
  const words = [...option.children].filter((one) => !one.matches(".beside")).map((one) => one.textContent).join(" ");
  const kept = [{ words, href: option.dataset.href }, ...recent().filter((one) => one.href !== option.dataset.href)];
  try { localStorage.setItem(RECENT, JSON.stringify(kept.slice(0, 5))); } catch { /* not remembered then */ }
}

function withOwn(list, text) {
  const here = actions().filter(([words]) => fits(text, words)).map(([words, act]) => ({ words, act }));
  if (!text && recent().length) list.prepend(groupOf("Recent", recent()));
  // What is written so comes first, what is only like it after commands that are.
  const close = here.some(({ words }) => words.toLowerCase().includes(text.toLowerCase()));
  if (here.length) list[close ? "prepend" : "append"](groupOf("On this incident", here));
  return list;
}

const DOES = {
  theme: (name) => setTheme(name),
  density: (value) => document.querySelector(`input[name=density][value=${value}]`)?.click(),
  help: () => document.querySelector("dialog#keys").showModal(),
  export: () => { location.href = document.querySelector("a[data-export-list]")?.href ?? "/inbox.csv"; },
  copy: () => navigator.clipboard?.writeText(location.href).then(() => { document.querySelector("#announce").textContent = "Link copied"; }),
};

/** An action on an incident that is elsewhere: this page stays, and says what was done, with its undo. */
function post(address) {
  const form = document.createElement("form"), token = document.querySelector("input[name=csrfmiddlewaretoken]");
  form.action = address;
  form.append(token.cloneNode(), Object.assign(document.createElement("input"), { name: "next", value: location.pathname + location.search }));
  return send(form, null);
}

if (dialog) {
  const found = combobox(field, place, {
    first: () => true,
    find: async (text, signal) => {
      const list = await fetched(`${field.dataset.find}?${new URLSearchParams({ q: text })}`, signal);
      return list && withOwn(list, text.trim());
    },
    take: (option, event) => {
      if (option.dataset.fill) {
        field.value = option.dataset.fill;
        found.look();
        return;
      }
      dialog.close();
      if (option.act) { option.act(); return; }
      const [name, value] = (option.dataset.do ?? "").split(":");
      if (name) { DOES[name](value); return; }
      if (option.dataset.post) { post(option.dataset.post); return; }
      remember(option);
      if (event.ctrlKey || event.metaKey) window.open(option.dataset.href);
      else goTo(option.dataset.href);
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
