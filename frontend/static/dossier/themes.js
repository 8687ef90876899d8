// Light, dark, or as the system: by the button in the bar, or by name.
const THEMES = ["auto", "light", "dark"];
const themeButton = document.querySelector("[data-theme-toggle]");
function theme() { return document.documentElement.dataset.theme || "auto"; }
function nameTheme() {
  if (!themeButton) return;
  themeButton.querySelector(".words").textContent = `Theme: ${theme()}`;
  themeButton.title = `Theme: ${theme()}. Press to change.`;
  themeButton.querySelector("use").setAttribute("href", `#theme-${theme()}`);
}
export function setTheme(next) {
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try { localStorage.setItem("theme", next); } catch { /* only for this page then */ }
  nameTheme();
  document.dispatchEvent(new Event("themechange"));
}
themeButton?.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));
nameTheme();
