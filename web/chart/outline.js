/**
 * The part of a series that a screen can show: as many columns as the chart has pixels, whatever the number of values.
 * Pure.
 */

/** A column with more values than these is drawn by its first, least, greatest and last one. */
const WHOLE_MAX = 4;

/**
 * @typedef {object} Columns
 * @property {number[]} indexes the first value of each column, and the end of the last one
 * @property {number[]} lows the least value of each; above `highs` if there is none
 * @property {number[]} highs
 *
 * @typedef {object} Outline
 * @property {number[][]} stretches points without an interruption: time, value, time, value, …
 * @property {[number, number][]} holes times without values, from and to, exact to a column; infinite where nothing comes before or after
 * @property {number} low of what is in view; above `high` if there is nothing
 * @property {number} high
 */

/**
 * Divides the time from `start` on into columns of `step`.
 * @param {import("./series.js").Series} series
 * @param {number} start
 * @param {number} step
 * @param {number} count
 * @returns {Columns}
 */
export function columns(series, start, step, count) {
  const indexes = [series.indexAt(start)];
  const lows = [];
  const highs = [];
  for (let column = 0; column < count; column += 1) {
    const from = Number(indexes[column]);
    const to = series.indexAt(start + (column + 1) * step, from);
    const { low, high } = series.extent(from, to);
    indexes.push(to);
    lows.push(low);
    highs.push(high);
  }
  return { indexes, lows, highs };
}

/**
 * Returns what there is to draw between two times. The columns are the same wherever the view begins, so a line that
 * moves does not flicker.
 * @param {import("./series.js").Series} series
 * @param {number} from
 * @param {number} to
 * @param {{ step: number, holeMs: number }} options the time of a column, and the shortest time without values that
 *   interrupts a line
 * @returns {Outline}
 */
export function outline(series, from, to, { step, holeMs }) {
  const start = Math.floor(from / step) * step;
  const count = Math.max(1, Math.ceil((to - start) / step));
  const { indexes, lows, highs } = columns(series, start, step, count);
  const drawing = new Drawing(holeMs);
  const [begin, end] = [Number(indexes[0]), Number(indexes[count])];
  // The nearest values out of view, so that a line reaches the edges.
  if (begin > series.first) drawing.add(series.time(begin - 1), series.value(begin - 1));
  for (let column = 0; column < count; column += 1) {
    const [first, next] = [Number(indexes[column]), Number(indexes[column + 1])];
    if (next - first <= WHOLE_MAX) {
      for (let index = first; index < next; index += 1) drawing.add(series.time(index), series.value(index));
      continue;
    }
    drawing.add(series.time(first), series.value(first));
    const middle = (series.time(first) + series.time(next - 1)) / 2;
    const [low, high] = [Number(lows[column]), Number(highs[column])];
    if (low <= high) {
      drawing.add(middle, low);
      drawing.add(middle, high);
    }
    drawing.add(series.time(next - 1), series.value(next - 1));
  }
  if (end < series.end) drawing.add(series.time(end), series.value(end));
  else drawing.finish(to);
  // Not with Math.min(...lows): a million columns would not fit on the stack.
  const low = lows.reduce((least, each) => Math.min(least, each), Infinity);
  const high = highs.reduce((greatest, each) => Math.max(greatest, each), -Infinity);
  return { stretches: drawing.stretches, holes: drawing.holes, low, high };
}

/** Puts points together to stretches, and notes the holes between them. */
class Drawing {
  #holeMs;
  #last = -Infinity;
  #isInterrupted = true;
  /** @type {number[][]} */
  stretches = [];
  /** @type {[number, number][]} */
  holes = [];

  /** @param {number} holeMs */
  constructor(holeMs) {
    this.#holeMs = holeMs;
  }

  /**
   * @param {number} time
   * @param {number} value
   */
  add(time, value) {
    if (Number.isNaN(value)) {
      this.#isInterrupted = true;
      return;
    }
    if (this.#isInterrupted || time - this.#last > this.#holeMs) {
      this.holes.push([this.#last, time]);
      this.stretches.push([]);
    }
    this.stretches.at(-1)?.push(time, value);
    this.#last = time;
    this.#isInterrupted = false;
  }

  /**
   * Notes the hole after the last value, if there is one.
   * @param {number} now
   */
  finish(now) {
    if (this.#isInterrupted || now - this.#last > this.#holeMs) this.holes.push([this.#last, Infinity]);
  }
}

/**
 * Returns the times that are in a hole of every series.
 * @param {readonly (readonly [number, number][])[]} all the holes of each series, in order
 * @returns {[number, number][]}
 */
export function commonHoles(all) {
  return all.map((holes) => holes.map(([from, to]) => /** @type {[number, number]} */ ([from, to]))).reduce(
    (common, holes) =>
      common.flatMap(([from, to]) =>
        holes
          .map(([start, end]) => /** @type {[number, number]} */ ([Math.max(from, start), Math.min(to, end)]))
          .filter(([start, end]) => start < end),
      ),
    /** @type {[number, number][]} */ ([[-Infinity, Infinity]]),
  );
}
