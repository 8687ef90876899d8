// How charts write times and figures: as the pages do (templatetags/dossier.py).
import { exact } from "./zone.js";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)$/;

/** `2026-11-21 03:15:20 UTC`. */
const moment = (value) => exact(value, true);

/** Four significant digits, thousands apart: the filter `figure` in JavaScript. */
export function figure(value) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e7) return value.toExponential(1).replace("e+", "e");
  if (size < 1e4 && !Number.isInteger(value)) return String(Number(value.toPrecision(4)));
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function written(value, temporal) {
  if (value === null || value === undefined) return "–";
  if (value instanceof Date || (temporal && Number.isFinite(value))) return moment(value);
  if (typeof value === "string" && ISO.test(value)) return moment(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return figure(value);
  return Array.isArray(value) ? value.map((one) => written(one, temporal)).join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The fields that a specification reads as times, and those that only say where a stacked mark lies. */
export function fieldsOf(spec) {
  const times = new Set(), places = new Set();
  (function walk(part) {
    if (Array.isArray(part)) return part.forEach(walk);
    if (!part || typeof part !== "object") return;
    for (const one of Object.values(part.encoding || {})) if (one?.type === "temporal" && one.field) times.add(one.field);
    for (const [low, high] of [["x", "x2"], ["y", "y2"]]) {
      const [first, second] = [part.encoding?.[low], part.encoding?.[high]];
      if (first?.field && second?.field && first.type === "temporal") times.add(second.field);
      if (first?.field && second?.field && first.type === "quantitative" && (part.mark?.type ?? part.mark) === "rect") places.add(first.field).add(second.field);
    }
    for (const [name, inner] of Object.entries(part)) if (name !== "data" && name !== "datasets") walk(inner);
  })(spec);
  return { times, places };
}

/** The tooltip of a mark as HTML; `escape` makes text safe. */
export function tooltip({ times, places }) {
  return (value, escape) => {
    if (typeof value !== "object" || value === null) return escape(written(value, false));
    const stacked = (name) => /_(start|end)$/.test(name) && name.replace(/_(start|end)$/, "") in value;
    const rows = Object.entries(value)
      .filter(([name]) => !/^_|^[xy]_.*_sort_index$/.test(name) && !places.has(name) && !stacked(name))
      .map(([name, one]) => `<tr><td class="key">${escape(name.replaceAll("_", " "))}</td><td class="value">${escape(written(one, times.has(name)))}</td></tr>`);
    return `<table>${rows.join("")}</table>`;
  };
}
