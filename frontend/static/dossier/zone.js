// Times as the page writes them: by the clock of the zone that the server wrote it in (templatetags/dossier.py).
export const zone = document.documentElement.dataset.zone || "UTC";

const PIECES = new Intl.DateTimeFormat("en-GB", {
  timeZone: zone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const OFFSET = new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeZoneName: "shortOffset" });

const pieces = (format, value) => Object.fromEntries(format.formatToParts(new Date(value)).map((one) => [one.type, one.value]));

/** `UTC`, `UTC+1`, `UTC-3:30`. */
export function offset(value) {
  return pieces(OFFSET, value).timeZoneName.replace("GMT", "UTC").replace("\u2212", "-").replace(/\+0$/, "");
}

/** `2026-11-21 04:15:20 UTC+1`; without the seconds where there are none and `brief` is asked for. */
export function exact(value, brief = false) {
  const at = pieces(PIECES, value);
  const seconds = brief && at.second === "00" ? "" : `:${at.second}`;
  return `${at.year}-${at.month}-${at.day} ${at.hour}:${at.minute}${seconds} ${offset(value)}`;
}

/** `21 Nov 04:15`. */
export function clock(value) {
  const at = pieces(CLOCK, value);
  return `${at.day} ${at.month} ${at.hour}:${at.minute}`;
}

/** `04:15`. */
export const hour = (value) => clock(value).slice(-5);

/** Whether the page's zone is the browser's, whose clock charts can draw by; else they are drawn in UTC or in their own. */
export const own = zone === Intl.DateTimeFormat().resolvedOptions().timeZone;
