// The cells of a grid: numbers out of the compact answer, step by step. No page, no canvas.
const LIMITS = [0.005, 0.01, 0.03, 0.1]; // shares at which the colour changes; the legend says the same

export class Cells {
  constructor(told) {
    this.told = told;
    this.rows = told.rows.names;
    this.columns = told.columns.names;
    this.size = this.rows.length * this.columns.length;
    this.carriedIn = [Int32Array.from(told.carried[0])];
    this.seen = new Map();
  }

  /** What every cell carried in a step; a step in which nothing changed shares the array of the one before. */
  carried(step) {
    for (let at = this.carriedIn.length; at <= step; at += 1) {
      const { cells, values } = this.told.carried[at];
      const before = this.carriedIn[at - 1];
      if (!cells.length) { this.carriedIn.push(before); continue; }
      const now = before.slice();
      cells.forEach((cell, place) => { now[cell] = values[place]; });
      this.carriedIn.push(now);
    }
    return this.carriedIn[step];
  }

  /** One step: carried, failed and colour of each cell, and the sums of rows, columns and all. Kept once made. */
  step(at) {
    if (this.seen.has(at)) return this.seen.get(at);
    const carried = this.carried(at);
    const failed = new Int32Array(this.size);
    const { cells, values } = this.told.failed[at];
    cells.forEach((cell, place) => { failed[cell] = values[place]; });
    const wide = this.columns.length;
    const rows = this.rows.map(() => ({ carried: 0, failed: 0 }));
    const columns = this.columns.map(() => ({ carried: 0, failed: 0 }));
    const all = { carried: 0, failed: 0 };
    const heat = new Uint8Array(this.size);
    for (let cell = 0; cell < this.size; cell += 1) {
      heat[cell] = heatOf(carried[cell], failed[cell]);
      if (!carried[cell] && !failed[cell]) continue;
      for (const sum of [rows[Math.floor(cell / wide)], columns[cell % wide], all]) {
        sum.carried += carried[cell];
        sum.failed += failed[cell];
      }
    }
    const made = { carried, failed, heat, rows, columns, all, failing: cells };
    this.seen.set(at, made);
    return made;
  }
}

/** 0: nothing there, 1: none failed, 2 to 6: ever more. */
export function heatOf(carried, failed) {
  if (!carried && !failed) return 0;
  if (!failed) return 1;
  const share = carried ? failed / carried : 1;
  const place = LIMITS.findIndex((limit) => share < limit);
  return 2 + (place < 0 ? LIMITS.length : place);
}

/** As the server writes shares (templatetags): never a false 0 or 100. */
export function percent(failed, carried) {
  if (!carried) return "–";
  const value = (100 * failed) / carried;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value > 99 && value < 100) return "> 99 %";
  return `${value < 10 && value !== Math.floor(value) ? value.toFixed(1) : value.toFixed(0)} %`;
}

export const figure = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
export const short = (name) => name.slice(name.indexOf("/") + 1);

/** The worst of a list by share, little evidence last: as if one more had been carried and not failed. */
export function worst(list, most) {
  const share = (one) => one.failed / (one.carried + 1);
  return list.filter((one) => one.failed).sort((one, other) => share(other) - share(one)).slice(0, most);
}
