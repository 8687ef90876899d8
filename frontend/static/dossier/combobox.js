// A field with a list of offers below it: arrows go through them, Enter takes one, Escape closes the list.
// The focus stays in the field; what is at hand is told by aria-activedescendant.
const WAIT = 120; // ms after the last letter

/**
 * `find(text, signal)` answers a promise of a `[role=listbox]` element or null; `take(option, event)` is called with
 * what was chosen. `first(text)`: whether the first offer is at hand at once, so that Enter takes it.
 */
export function combobox(input, place, { find, take, first = () => false }) {
  let timer = null, asking = null, number = 0;
  const options = () => [...place.querySelectorAll("[role=option]")];
  const atHand = () => place.querySelector("[role=option][aria-selected=true]");
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-expanded", "false");

  function mark(option) {
    options().forEach((one) => one.setAttribute("aria-selected", String(one === option)));
    if (!option) { input.removeAttribute("aria-activedescendant"); return; }
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }
  function close() {
    clearTimeout(timer);
    asking?.abort();
    place.hidden = true;
    place.replaceChildren();
    input.setAttribute("aria-expanded", "false");
    ["aria-activedescendant", "aria-controls"].forEach((name) => input.removeAttribute(name));
  }
  async function look() {
    asking?.abort();
    asking = new AbortController();
    const signal = asking.signal;
    try {
      const list = await find(input.value, signal);
      if (signal.aborted) return;
      const offers = list ? [...list.querySelectorAll("[role=option]")] : [];
      if (!offers.length && !list?.dataset.keep) { close(); return; }
      offers.forEach((option) => { option.id = `${place.id}-${number++}`; });
      list.id = `${place.id}-offers`;
      input.setAttribute("aria-controls", list.id);
      place.replaceChildren(list);
      place.hidden = false;
      input.setAttribute("aria-expanded", "true");
      mark(first(input.value) ? offers[0] : null);
    } catch { /* away or overtaken: the field works without offers */ }
  }
  function choose(option, event) { if (option) take(option, event); }

  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, WAIT); });
  input.addEventListener("keydown", (event) => {
    const all = options(), here = all.indexOf(atHand());
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (place.hidden) { look(); return; }
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark(all[(here + step + all.length) % all.length] ?? all[0]);
    } else if (event.key === "Enter" && atHand()) {
      event.preventDefault();
      choose(atHand(), event);
    } else if (event.key === "Tab" && atHand() && !first(input.value)) {
      event.preventDefault();
      choose(atHand(), event);
    } else if (event.key === "Escape" && !place.hidden && !first(input.value)) {
      event.stopPropagation();
      event.preventDefault();
      close();
    }
  });
  // Before the field loses the focus, so that a click is a choice.
  place.addEventListener("mousedown", (event) => event.preventDefault());
  place.addEventListener("click", (event) => choose(event.target.closest("[role=option]"), event));
  return { look, close };
}

/** A listbox out of an address that answers one. */
export async function fetched(address, signal) {
  const response = await fetch(address, { credentials: "same-origin", signal });
  if (!response.ok) return null;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return document.importNode(page.querySelector("[role=listbox]"), true);
}
