// A field that takes an incident by its number, or by words of its title: offers of the incidents that fit stand below it.
import { combobox, fetched } from "./combobox.js";
import { onPart } from "./parts.js";

const isNumber = (text) => /^\s*#?\d*\s*$/.test(text);
const known = new WeakSet();
const SETTLED = 200; // milliseconds from a touch to its click, at most

let pressed = false;
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = false; }, true);

export function startFinding(root) {
  root.querySelectorAll("input[data-find]:not([role])").forEach((field) => {
    const place = field.parentElement.querySelector(".found");
    if (!place || known.has(field)) return;
    known.add(field);
    place.id ||= `${field.id}-found`;
    const offers = combobox(field, place, {
      first: (text) => !isNumber(text),
      find: (text, signal) => text.trim() ? fetched(`${field.dataset.find}${field.dataset.find.includes("?") ? "&" : "?"}${new URLSearchParams({ q: text })}`, signal) : null,
      take: (option) => {
        field.value = option.dataset.value;
        field.title = option.textContent;
        offers.close();
      },
    });
    // Not at once: without the offers the panel is shorter, and the button that is being pressed would slip away.
    const close = () => setTimeout(() => {
      if (pressed) close();
      else if (document.activeElement !== field) offers.close();
    }, SETTLED);
    field.addEventListener("blur", () => { if (place.hidden) offers.close(); else close(); });
  });
}
onPart(startFinding);
startFinding(document);
