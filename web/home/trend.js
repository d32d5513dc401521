/** The number of a topic that is worth a look, over the last minute. Pure. */
import { Columns, cellsOf, numberOf } from "../page/events/columns.js";
import { Fields, numbersOf } from "../page/events/fields.js";
import { captionOf, isDirection } from "../page/events/units.js";

/** A minute at four values a second. A power of two. */
const CAPACITY = 256;
const SPAN_MS_MIN = 10_000;
const SPAN_MS = 60_000;
/** A topic with fewer values in a minute shows the time of so many. */
const VALUES_MIN = 20;

export class Trend {
  #fields = new Fields(CAPACITY);
  #columns = new Columns((names) => this.#fields.rename(names));
  /** @type {import("../page/events/fields.js").Field | null} */
  #chosen = null;

  /**
   * @param {number} time
   * @param {unknown} data of an event
   */
  add(time, data) {
    const cells = typeof data === "string" ? this.#columns.row(data) : null;
    if (cells === null) this.#fields.add(time, numbersOf(data));
    else if (this.#columns.isTable) this.#fields.add(time, this.#columns.numbers(cells));
  }

  /** The curve up to the newest value; null for a topic with fewer than three. */
  get curve() {
    const field = this.#choose();
    if (!field || field.series.length < 3) return null;
    const { name, unit, series } = field;
    const since = (/** @type {number} */ index) => series.time(Math.max(series.first, index));
    const to = since(series.end - 1);
    const from = Math.min(to - SPAN_MS_MIN, since(series.end - VALUES_MIN), Math.max(to - SPAN_MS, since(0)));
    return { caption: captionOf(name, unit ?? ""), series, from, to };
  }

  /** A field that moves is kept: another one may begin to move later. A direction jumps whenever it passes north. */
  #choose() {
    if (this.#chosen?.falls) return this.#chosen;
    const { all, best } = this.#fields;
    const found = best.flatMap((wanted) => all.find(({ name }) => name === wanted) ?? []);
    this.#chosen = found.find(({ name, unit }) => !isDirection(name, unit ?? "")) ?? found[0] ?? null;
    return this.#chosen;
  }
}

/**
 * Returns true if an event may have numbers: as JSON, or as the row of a table.
 * @param {unknown} data
 */
export function hasNumbers(data) {
  if (typeof data !== "string") return numbersOf(data).some(([, value]) => value !== null);
  const cells = cellsOf(data);
  return cells.length > 1 && cells.some((cell) => numberOf(cell) !== null);
}
