// The field of the inbox offers how a word may go on; Enter without an offer at hand searches.
import { combobox, fetched } from "./combobox.js";

const field = document.querySelector("input#search");
const place = document.querySelector("#suggestions");
if (field && place) {
  const offers = combobox(field, place, {
    find: (text, signal) => fetched(`${field.dataset.suggest}?${new URLSearchParams({ search: text })}`, signal),
    take: (option) => {
      field.value = option.dataset.value;
      field.setSelectionRange(field.value.length, field.value.length);
      offers.look();
    },
  });
  field.addEventListener("focus", () => { if (field.value === "") offers.look(); });
  field.addEventListener("blur", () => offers.close());
}
