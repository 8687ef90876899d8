// Draws the cells of a grid on a canvas: one pixel a cell in a small picture, which is stretched without smoothing.
// So a step costs the same whether it has 200 cells or 90,000.
import { heatOf, short } from "./grid_cells.js";

const GAP = 5;
const TEXT = 11; // px; the least height of a row that has its name beside it
const LEAST = 2.5;
const MOST = 26;
const WIDEST = 96;
const HEATS = ["empty", 0, 1, 2, 3, 4, 5];

export class Drawing {
  constructor(canvas, cells) {
    this.canvas = canvas;
    this.cells = cells;
    this.small = new OffscreenCanvas(Math.max(1, cells.columns.length), Math.max(1, cells.rows.length));
    this.pen = canvas.getContext("2d");
  }

  /** Colours as the style sheet has them in this theme, read off the legend. */
  readColours() {
    this.heat = HEATS.map((name) => colourOf(document.querySelector(`.swatch.heat-${name}`), "backgroundColor"));
    this.ink = getComputedStyle(this.canvas).color;
    this.line = getComputedStyle(document.querySelector(".drawing")).borderTopColor;
    this.font = `${TEXT}px ${getComputedStyle(this.canvas).fontFamily}`;
  }

  /** Sizes for the room there is: names beside rows and above columns where cells are large enough for them. */
  measure(room) {
    const { rows, columns } = this.cells;
    this.pen.font = `bold ${this.font}`;
    const wide = (names) => Math.min(Math.max(0, ...names.map((name) => this.pen.measureText(short(name)).width)), 150);
    const marginal = 12;
    this.left = Math.min(wide(rows) + 22, room * 0.35);
    this.width = clamp((room - this.left - GAP - marginal - 2) / columns.length, LEAST, WIDEST);
    this.height = clamp(Math.min(this.width, 640 / rows.length), LEAST, MOST);
    if (this.height < TEXT + 1 && rows.length * (TEXT + 2) <= 640) this.height = TEXT + 2;
    this.namesRows = this.height >= TEXT;
    this.namesColumns = this.width >= TEXT + 1;
    this.top = this.namesColumns ? Math.min(wide(columns) + 24, 124) : 18;
    this.marginal = marginal;
    const size = [this.left + this.width * columns.length + GAP + marginal + 2, this.top + this.height * rows.length + GAP + marginal + 2];
    const sharp = Math.min(window.devicePixelRatio || 1, 2);
    [this.canvas.width, this.canvas.height] = size.map((one) => Math.round(one * sharp));
    this.canvas.style.width = `${size[0]}px`;
    this.canvas.style.height = `${size[1]}px`;
    this.pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    this.size = size;
  }

  draw(step, blamed) {
    const { pen, cells, left, top, width, height } = this;
    const now = cells.step(step);
    pen.clearRect(0, 0, ...this.size);
    this.paint(now.heat);
    pen.imageSmoothingEnabled = false;
    const across = width * cells.columns.length;
    const down = height * cells.rows.length;
    pen.drawImage(this.small, left, top, across, down);
    if (width >= 7 && height >= 7) this.rule();
    pen.strokeStyle = this.line;
    pen.lineWidth = 1;
    pen.strokeRect(left - 0.5, top - 0.5, across + 1, down + 1);
    const edge = (sum) => rgb(this.heat[heatOf(sum.carried, sum.failed)]);
    now.rows.forEach((sum, row) => { pen.fillStyle = edge(sum); pen.fillRect(left + across + GAP, top + row * height, this.marginal, Math.max(1, height - (height >= 7 ? 1 : 0))); });
    now.columns.forEach((sum, column) => { pen.fillStyle = edge(sum); pen.fillRect(left + column * width, top + down + GAP, Math.max(1, width - (width >= 7 ? 1 : 0)), this.marginal); });
    this.names(blamed);
  }

  paint(heat) {
    const picture = new ImageData(this.small.width, this.small.height);
    const words = new Uint32Array(picture.data.buffer);
    const colours = this.heat.map(([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red);
    for (let cell = 0; cell < heat.length; cell += 1) words[cell] = colours[heat[cell]];
    this.small.getContext("2d").putImageData(picture, 0, 0);
  }

  /** Hairlines between cells that are large enough for them. */
  rule() {
    const { pen, cells, left, top, width, height } = this;
    pen.fillStyle = rgb(colourOf(this.canvas.closest(".card"), "backgroundColor"));
    for (let column = 1; column < cells.columns.length; column += 1) pen.fillRect(left + column * width - 0.5, top, 1, height * cells.rows.length);
    for (let row = 1; row < cells.rows.length; row += 1) pen.fillRect(left, top + row * height - 0.5, width * cells.columns.length, 1);
  }

  /** Names where there is room; what is blamed has its name, a triangle and lines along it in any case. */
  names(blamed) {
    const { pen, cells, left, top, width, height } = this;
    const across = width * cells.columns.length;
    const down = height * cells.rows.length;
    pen.fillStyle = this.ink;
    pen.strokeStyle = this.ink;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    let last = -Infinity;
    cells.rows.forEach((name, row) => {
      const marked = blamed.has(name);
      const middle = top + (row + 0.5) * height;
      if (marked) {
        this.triangle(left - 9, middle, 0);
        pen.strokeRect(left - 1, top + row * height - 0.5, across + 2, height + 1);
      }
      if (!this.namesRows && !(marked && middle - last >= TEXT)) return;
      pen.font = marked ? `bold ${this.font}` : this.font;
      pen.fillText(this.fit(short(name), left - 18), left - 17, middle);
      if (marked) last = middle;
    });
    pen.textAlign = "left";
    last = -Infinity;
    cells.columns.forEach((name, column) => {
      const marked = blamed.has(name);
      const middle = left + (column + 0.5) * width;
      if (marked) {
        this.triangle(middle, top - 9, 90);
        pen.strokeRect(left + column * width - 0.5, top - 1, width + 1, down + 2);
      }
      if (!this.namesColumns) return;
      pen.save();
      pen.translate(middle, top - 17);
      pen.rotate(-Math.PI / 2);
      pen.font = marked ? `bold ${this.font}` : this.font;
      pen.fillText(this.fit(short(name), top - 19), 0, 0);
      pen.restore();
    });
  }

  fit(text, room) {
    if (this.pen.measureText(text).width <= room) return text;
    let shown = text;
    while (shown.length > 1 && this.pen.measureText(`…${shown}`).width > room) shown = shown.slice(1);
    return `…${shown}`; // the end tells names apart
  }

  triangle(x, y, degrees) {
    const { pen } = this;
    pen.save();
    pen.translate(x, y);
    pen.rotate((degrees * Math.PI) / 180);
    pen.beginPath();
    pen.moveTo(-4, -4.5);
    pen.lineTo(5, 0);
    pen.lineTo(-4, 4.5);
    pen.fill();
    pen.restore();
  }

  /** What lies at a point: a row, a column, both (a cell) or neither; -1 where there is none. */
  at(x, y) {
    const row = Math.floor((y - this.top) / this.height);
    const column = Math.floor((x - this.left) / this.width);
    return { row: row >= 0 && row < this.cells.rows.length ? row : -1, column: column >= 0 && column < this.cells.columns.length ? column : -1 };
  }

  box(row, column) {
    return [this.left + column * this.width, this.top + row * this.height, this.width, this.height];
  }
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const rgb = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;

/** Whatever form the browser gives a colour in, as three numbers. */
function colourOf(element, property) {
  const one = new OffscreenCanvas(1, 1).getContext("2d");
  one.fillStyle = getComputedStyle(element)[property];
  one.fillRect(0, 0, 1, 1);
  return [...one.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}
