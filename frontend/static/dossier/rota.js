// Hours or days of a rota are chosen by dragging over them, or with arrows and Shift; they fill in the form below.
const grid = document.querySelector("table[data-rota]");
const form = document.querySelector("form[data-takes]");
const said = document.querySelector("#rota-choice");
const STEPS = {
  hours: { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -24, ArrowRight: 24 },
  days: { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 },
};

function start() {
  const cells = [...grid.querySelectorAll("td[data-at]")].sort((a, b) => (a.dataset.at < b.dataset.at ? -1 : 1));
  const steps = STEPS[grid.dataset.rota];
  const place = (element) => cells.indexOf(element.closest?.("td[data-at]"));
  let anchor = -1;
  let head = -1;
  let dragging = false;

  grid.setAttribute("role", "grid");
  grid.setAttribute("aria-multiselectable", "true");
  cells.forEach((cell) => { cell.tabIndex = -1; cell.setAttribute("aria-selected", "false"); });
  const now = grid.querySelector("td.now"), room = grid.closest(".scroll");
  if (now && room) room.scrollLeft = now.offsetLeft - (room.clientWidth - now.offsetWidth) / 2; // where the week is wider
  (now ?? grid.querySelector("td.today") ?? cells[0]).tabIndex = 0;

  function select(from, to) {
    [anchor, head] = [from, to];
    const [first, last] = from < to ? [from, to] : [to, from];
    cells.forEach((cell, n) => cell.setAttribute("aria-selected", String(first >= 0 && n >= first && n <= last)));
    const words = first < 0 ? "" : `${cells[first].dataset.from} – ${cells[last].dataset.to}`;
    said.querySelector("output").textContent = words;
    said.classList.toggle("chosen", first >= 0);
    form.elements.starts.value = first < 0 ? "" : cells[first].dataset.at;
    form.elements.ends.value = first < 0 ? "" : cells[last].dataset.until;
  }

  function goTo(next, extend) {
    const to = Math.min(Math.max(next, 0), cells.length - 1);
    cells.forEach((cell) => { cell.tabIndex = -1; });
    cells[to].tabIndex = 0;
    cells[to].focus({ preventScroll: true });
    cells[to].scrollIntoView({ block: "nearest" });
    if (extend) select(anchor < 0 ? place(document.activeElement) : anchor, to);
  }

  /** On to the form: what is left to say is why. */
  function goOn() {
    form.classList.add("filled");
    form.elements.reason.focus({ preventScroll: true });
    form.closest("section").scrollIntoView({ block: "nearest" });
  }

  grid.addEventListener("pointerdown", (event) => {
    const here = place(event.target);
    if (here < 0 || event.button || event.pointerType === "touch") return;
    event.preventDefault(); // no text is marked
    dragging = true;
    goTo(here, false);
    select(event.shiftKey && anchor >= 0 ? anchor : here, here);
  });
  grid.addEventListener("pointerover", (event) => {
    const here = place(event.target);
    if (dragging && here >= 0) select(anchor, here);
  });
  document.addEventListener("pointerup", () => {
    if (!dragging) return;
    dragging = false;
    goOn();
  });
  document.addEventListener("pointercancel", () => { dragging = false; });
  // A finger scrolls: the first tap begins, a later one ends.
  grid.addEventListener("click", (event) => {
    const here = place(event.target);
    if (here < 0 || event.pointerType !== "touch") return;
    const ends = anchor >= 0 && anchor === head && here > anchor;
    select(ends ? anchor : here, here);
  });
  grid.addEventListener("keydown", (event) => {
    const here = place(event.target);
    if (here < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = steps[event.key];
    if (step) {
      if (event.shiftKey && (anchor < 0 || head !== here)) select(here, here);
      goTo(here + step, event.shiftKey);
    } else if (event.key === "Enter" || event.key === " ") {
      if (anchor < 0 || cells[here].getAttribute("aria-selected") === "false") select(here, here);
      goOn();
    } else if (event.key === "Escape") select(-1, -1);
    else return;
    event.preventDefault();
  });
}

if (grid && form && said) start();
