// Vega-Lite charts out of the page's own JSON. Expressions are interpreted, not compiled, so that no `eval` is needed;
// vega-embed's own style sheet and menu stay off, ours are in console.css.
import { fieldsOf, tooltip } from "./chart_words.js";
import { onPart } from "./parts.js";
import { own } from "./zone.js";

const bundle = document.body.dataset.charts;
const drawn = new Set();
let library = null;

function load() {
  library ??= import(bundle).then(() => window.vegaEmbed);
  return library;
}

function colours(element) {
  const css = getComputedStyle(element);
  return { ink: css.columnRuleColor, muted: css.color, line: css.borderTopColor, paper: css.backgroundColor, accent: css.caretColor };
}

const printing = matchMedia("print");
const darkness = matchMedia("(prefers-color-scheme: dark)");

// Names in a row that are wider than the chart stand in columns below one another: a legend does not wrap by itself.
function legendColumns(spec, width) {
  const names = [spec, ...(spec.layer ?? [])].map((one) => one.encoding?.color?.scale?.domain).find(Array.isArray) ?? [];
  const widths = names.map((name) => 6.5 * String(name).length + 34);
  const all = widths.reduce((sum, one) => sum + one, 0);
  return all > width ? { columns: Math.max(1, Math.floor(width / Math.max(...widths))) } : {};
}

function config(c, spec, width) {
  const narrow = width < 500;
  const theme = printing.matches ? "light" : document.documentElement.dataset.theme || (darkness.matches ? "dark" : "light");
  const ramp = theme === "dark" ? ["#20262c", "#2b4468", "#4a78c8", "#9cc2ff", "#eaf2ff"] : ["#f3f5f8", "#c9d9f2", "#86aae3", "#3f6cc7", "#173a86"];
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: "transparent", font,
    view: { stroke: c.line }, title: { color: c.ink, subtitleColor: c.muted, fontSize: 13 },
    axis: { labelColor: c.muted, titleColor: c.muted, gridColor: c.line, domainColor: c.line, tickColor: c.line, titleFontWeight: 500, labelFontSize: 11, titleFontSize: 11, labelSeparation: 6 },
    // What stands below a narrow plot may begin below its names, too.
    axisX: narrow ? { titleAnchor: "end", titleLimit: width - 16 } : {},
    axisY: { labelLimit: narrow ? 120 : 260 },
    legend: { labelColor: c.muted, titleColor: c.muted, titleFontWeight: 500, ...legendColumns(spec, width) },
    header: { labelColor: c.muted, titleColor: c.muted },
    mark: { color: c.accent }, bar: { color: c.accent }, line: { color: c.accent }, rect: {}, text: { color: c.ink }, rule: { color: c.muted },
    range: { category: theme === "dark" ? ["#93b2ff", "#ffad72", "#83d3a1", "#e6c25f", "#ff9389", "#c3a5f5"] : ["#2c55c4", "#c2620f", "#2a7d4d", "#8a6a00", "#b3261e", "#6d4bb0"], ramp, heatmap: ramp },
  };
}

// Vega draws time in UTC or by the browser's clock: as the page, which is in UTC where that was chosen.
const SCALE = own ? "time" : "utc";
const CLOCK = { year: "%Y", quarter: "%b %Y", month: "%b %Y", week: "%-d %b", date: "%-d %b", hours: "%H:%M", minutes: "%H:%M", seconds: "%H:%M:%S", milliseconds: "%H:%M:%S.%L" };
function onTheClock(value) {
  if (Array.isArray(value)) value.forEach(onTheClock);
  else if (value && typeof value === "object") {
    for (const [channel, one] of Object.entries(value.encoding || {})) {
      if (one?.type !== "temporal" || one.timeUnit || one.scale === null) continue;
      if (["x", "y", "x2", "y2"].includes(channel)) one.scale = { ...one.scale, type: SCALE };
      if (own && typeof one.title === "string") one.title = one.title.replace(" (UTC)", "");
      if (["x", "y"].includes(channel) && one.axis !== null) one.axis = { format: CLOCK, ...one.axis };
    }
    for (const [name, inner] of Object.entries(value)) if (name !== "data" && name !== "datasets") onTheClock(inner);
  }
}

function dataOf(spec) {
  return spec.data?.values ?? spec.datasets?.[spec.data?.name] ?? [];
}

// A chart as wide as its place with a height "per row" makes Vega-Lite warn of a height that it would not fit anyway;
// the rows are known, so the height is.
function countRows(spec) {
  const y = spec.encoding?.y ?? spec.layer?.map((one) => one.encoding?.y).find((one) => one?.field);
  if (!spec.height?.step || !y?.field) return;
  const rows = new Set(dataOf(spec).map((row) => row[y.field])).size;
  if (rows) spec.height = spec.height.step * rows;
}

// Zooming is asked for: a chart that took the wheel by itself would stop a page that is being scrolled.
// Along time alone where time is what runs across, so that bars keep their feet.
const zoomed = (across) => [{ name: "dossier_zoom", select: { type: "interval", ...(across ? { encodings: ["x"] } : {}) }, bind: "scales" }];
function zoomable(spec) {
  const unit = spec.layer ? spec.layer.find((one) => !one.layer) : spec.mark ? spec : null;
  const kinds = [spec.encoding, unit?.encoding].flatMap((one) => [one?.x, one?.y]).filter(Boolean).map((one) => one.type);
  return unit && kinds.some((type) => type === "quantitative" || type === "temporal") && !unit.params ? unit : null;
}

async function draw(element) {
  const spec = JSON.parse(element.querySelector("script[type='application/json']").textContent);
  delete spec.$schema; // what is installed here draws it, whichever version the analyzer wrote down
  onTheClock(spec);
  const zoom = element.closest("figure")?.querySelector("[data-zoom]");
  const unit = zoomable(spec);
  if (zoom) zoom.hidden = !unit;
  if (unit && zoom?.getAttribute("aria-pressed") === "true") unit.params = zoomed((unit.encoding?.x ?? spec.encoding?.x)?.type === "temporal");
  const place = element.querySelector(".chart");
  const embed = await load();
  const single = !["hconcat", "vconcat", "concat", "facet", "repeat"].some((word) => word in spec) && !spec.encoding?.column && !spec.encoding?.facet;
  if (single && typeof spec.width !== "object") spec.width = "container";
  spec.config = { ...config(colours(place), spec, place.clientWidth), ...spec.config, background: "transparent" };
  if (spec.width === "container") {
    countRows(spec);
    spec.autosize ??= { type: "fit-x", contains: "padding" };
  }
  element._view?.finalize();
  const { view } = await embed(place, spec, {
    mode: "vega-lite", ast: true, actions: false, defaultStyle: false, renderer: "svg", loader: { load: refuse, sanitize: refuse },
    tooltip: { disableDefaultStyle: true, formatTooltip: tooltip(fieldsOf(spec)) }, logLevel: 1,
  });
  element._view = view;
}

// A chart carries its data; nothing is fetched on its behalf.
const refuse = () => Promise.reject(new Error("charts do not load anything"));

async function show(element) {
  drawn.add(element);
  try {
    await draw(element);
    element.classList.add("drawn");
  } catch (error) {
    element.querySelector(".chart").textContent = "This chart cannot be drawn; its data is below.";
    element.querySelector(".chart-data").open = true;
    console.warn("chart", error);
  }
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    seen.unobserve(entry.target);
    show(entry.target);
  }
}, { rootMargin: "400px" });

function redraw() {
  for (const element of drawn) element.isConnected ? draw(element).catch(() => {}) : drawn.delete(element);
}

function saveAs(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

// A picture as it is on the page, in its colours; PNG twice as large, so that it can be printed.
async function exported(element, kind, title) {
  if (!element._view) await show(element);
  const name = `${title.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 80)}.${kind}`;
  const view = element._view;
  const before = view.background();
  view.background(getComputedStyle(element.querySelector(".chart")).backgroundColor);
  try {
    saveAs(await view.toImageURL(kind, kind === "png" ? 2 : 1), name);
  } finally {
    view.background(before);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-export], [data-zoom]");
  const figure = button?.closest("figure");
  const element = figure?.querySelector("[data-chart]");
  if (!element) return;
  if (button.dataset.export) {
    exported(element, button.dataset.export, figure.querySelector("h3").textContent).catch((error) => console.warn("export", error));
    return;
  }
  button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  draw(element).catch(() => {});
});

const whenIdle = window.requestIdleCallback || ((callback) => setTimeout(callback, 200));

// Whoever prints an incident has not scrolled to all of it: once the page is at rest, what nobody has seen yet is drawn
// too, one by one. What is folded away has no width and waits until it is opened.
function drawTheRest() {
  const next = [...document.querySelectorAll("[data-chart]")].find((one) => !drawn.has(one) && one.offsetParent);
  if (next) {
    seen.unobserve(next);
    show(next).then(() => whenIdle(drawTheRest));
  }
}

export function startCharts() {
  // The first incident that is opened shall not wait for the library (nor the server's first visitor for its making).
  if (document.body.dataset.watch === "incidents") whenIdle(() => fetch(bundle, { priority: "low", cache: "force-cache" }).catch(() => {}));
  onPart((part, before) => {
    part.querySelectorAll("[data-chart]").forEach((element) => seen.observe(element));
    if (before) whenIdle(drawTheRest);
  });
  // What htmx fetched beside the page may have charts, too.
  document.addEventListener("htmx:afterSettle", () => {
    document.querySelectorAll("[data-chart]").forEach((element) => { if (!drawn.has(element)) seen.observe(element); });
    whenIdle(drawTheRest);
  });
  document.querySelectorAll("[data-chart]").forEach((element) => { if (!element.closest("[data-part]")) seen.observe(element); });
  document.addEventListener("themechange", redraw);
  darkness.addEventListener("change", redraw);
  printing.addEventListener("change", redraw);
  if (document.querySelector("[data-chart]")) addEventListener("load", () => setTimeout(() => whenIdle(drawTheRest), 500));
}
