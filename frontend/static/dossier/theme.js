// Runs before the first paint, so that a chosen theme or density never flashes. "auto" follows the system.
(() => {
  let chosen = null, density = null;
  try {
    chosen = localStorage.getItem("theme");
    density = localStorage.getItem("density");
  } catch { /* storage is switched off: follow the system */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  if (density === "compact") document.documentElement.dataset.density = density;
  document.documentElement.classList.add("js");
})();
