// What every page of the console starts with.
import "./actions.js";
import { countPicked } from "./keys.js";
import { onPart } from "./parts.js";
import { tick } from "./times.js";
import { openPanel } from "./actions.js";
import { startCharts } from "./charts.js";
import { startLive } from "./live.js";

const THEMES = ["auto", "light", "dark"];
const themeButton = document.querySelector("[data-theme-toggle]");
function theme() { return document.documentElement.dataset.theme || "auto"; }
function nameTheme() {
  if (!themeButton) return;
  themeButton.querySelector(".words").textContent = `Theme: ${theme()}`;
  themeButton.title = `Theme: ${theme()}. Press to change.`;
  themeButton.querySelector("use").setAttribute("href", `#theme-${theme()}`);
}
themeButton?.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try { localStorage.setItem("theme", next); } catch { /* only for this page then */ }
  nameTheme();
  document.dispatchEvent(new Event("themechange"));
});
nameTheme();

// Tickets that were not there before are lit for a moment, and announced.
const known = new Set([...document.querySelectorAll("tr[data-id]")].map((row) => row.dataset.id));
onPart((part, before) => {
  if (part.dataset.part !== "rows") return;
  countPicked();
  const fresh = [...part.querySelectorAll("tr[data-id]")].filter((row) => !known.has(row.dataset.id));
  fresh.forEach((row) => { known.add(row.dataset.id); if (before) row.classList.add("arrived"); });
  if (before && fresh.length) document.querySelector("#announce").textContent = `${fresh.length} new: ${fresh[0].querySelector("a.title").textContent}`;
});
onPart(tick);
// What htmx fetched beside the page is treated as the page is.
document.addEventListener("htmx:afterSwap", (event) => tick(event.detail.target));

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("form textarea")) event.target.form.requestSubmit();
});
if (location.hash === "#resolve" && openPanel("resolve")) history.replaceState(null, "", location.pathname + location.search);

startCharts();
startLive();
