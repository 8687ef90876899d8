// "5 min ago" goes on counting. Numbers as the server writes them (templatetags).
const UNITS = [[60, "s"], [3600, "min"], [86400, "h"], [Infinity, "d"]];

function span(past) {
  const [[, unit], before] = [UNITS.find(([limit]) => past < limit), { s: 1, min: 60, h: 3600, d: 86400 }];
  return `${Math.floor(past / before[unit])} ${unit}`;
}

function tick() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const past = Math.abs(now - Date.parse(time.dateTime)) / 1000;
    const text = time.dataset.ago === "age" ? span(past) : past < 5 ? "now" : `${span(past)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}

tick();
setInterval(tick, 5000);
export { tick };
