// Runs before the first paint, so that a chosen theme or density never flashes. "auto" follows the system.
(() => {
  let chosen = null, density = null, zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  try {
    chosen = localStorage.getItem("theme");
    density = localStorage.getItem("density");
    if (localStorage.getItem("clock") === "utc") zone = "UTC";
  } catch { /* storage is switched off: follow the system */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  if (density === "compact") document.documentElement.dataset.density = density;
  document.documentElement.classList.add("js");
  // The server writes times by the reader's clock, which only the browser knows (frontend/times.py).
  // A page that was written before it knew is asked for once more, once a zone: where that does not help, it is UTC.
  document.cookie = `zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
  if (document.documentElement.dataset.zone !== zone && document.cookie.includes(`zone=${zone}`)) {
    try {
      if (sessionStorage.getItem("zone") !== zone) {
        sessionStorage.setItem("zone", zone);
        location.replace(location.href);
      }
    } catch { /* storage is switched off: the next page has it */ }
  }
})();
