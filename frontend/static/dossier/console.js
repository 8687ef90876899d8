// What every page of the console starts with.
import "./actions.js";
import "./find.js";
import "./keys.js";
import "./palette.js";
import { onPart } from "./parts.js";
import { tick } from "./times.js";
import { openPanel } from "./actions.js";
import { startCharts } from "./charts.js";
import { startLive } from "./live.js";
import "./themes.js";

// Where the bar is wider than the screen, the part that this page belongs to is in sight.
const bar = document.querySelector(".bar nav");
const here = bar?.querySelector("[aria-current]");
if (here && bar.scrollWidth > bar.clientWidth) bar.scrollLeft = here.offsetLeft - bar.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;

const densities = document.querySelectorAll("input[name=density]");
densities.forEach((one) => {
  one.checked = one.value === (document.documentElement.dataset.density || "comfortable");
  one.addEventListener("change", () => {
    if (one.value === "compact") document.documentElement.dataset.density = "compact";
    else delete document.documentElement.dataset.density;
    try { localStorage.setItem("density", one.value); } catch { /* only for this page then */ }
  });
});

// Times by the browser's clock or in UTC; theme.js tells the server before the page is shown once more.
const clocks = document.querySelectorAll("input[name=clock]");
const browserZone = document.querySelector("[data-browser-zone]");
if (browserZone) browserZone.textContent = `${Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"} (browser)`;
clocks.forEach((one) => {
  let kept = "here";
  try { kept = localStorage.getItem("clock") || "here"; } catch { /* the browser's own then */ }
  one.checked = one.value === kept;
  one.addEventListener("change", () => {
    try { localStorage.setItem("clock", one.value); } catch { return; }
    location.reload();
  });
});

// What is to be pasted elsewhere stands beside its button; a button alone copies the address of the page.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button || button.dataset.copy) return;
  const text = button.closest(".paste")?.querySelector("pre");
  const named = button.innerHTML;
  button.dataset.copy = "said";
  try {
    await navigator.clipboard.writeText(text ? text.textContent : location.href);
    button.textContent = "Copied";
  } catch { // a page that did not come over TLS may not write there
    if (text) getSelection().selectAllChildren(text);
    button.textContent = text ? "Press Ctrl+C" : "Copy it from the address bar";
  }
  document.getElementById("announce").textContent = button.textContent;
  setTimeout(() => { button.innerHTML = named; button.dataset.copy = ""; }, 2500);
});

onPart(tick);
// What htmx fetched beside the page is treated as the page is.
document.addEventListener("htmx:afterSwap", (event) => tick(event.detail.target));
// It comes when it comes: what somebody has begun to fill in meanwhile stays.
document.addEventListener("htmx:beforeSwap", (event) => {
  const target = event.detail.target;
  if (target.querySelector("input:checked")) event.detail.shouldSwap = false;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
  if (!event.target.matches("form textarea, form[data-act] :is(input, select)")) return;
  event.preventDefault(); // some browsers send a form from its inputs by themselves
  event.target.form.requestSubmit();
});
const panel = location.hash.slice(1); // an action that a link or the palette names
if (/^[a-z_]+$/.test(panel) && openPanel(panel)) history.replaceState(null, "", location.pathname + location.search);

// The installed app shows its own page while it is offline.
if (navigator.serviceWorker && matchMedia("(display-mode: standalone)").matches) navigator.serviceWorker.register("/service-worker.js");

startCharts();
startLive();
