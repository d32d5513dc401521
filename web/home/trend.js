/** The first number of a topic, over the last minute. Pure. */
import { Columns, cellsOf, numberOf } from "../page/events/columns.js";
import { Fields, numbersOf } from "../page/events/fields.js";
import { captionOf, isDirection, shownUnit } from "../page/events/units.js";

/** The values of a minute at four a second. Must be a power of two. */
const CAPACITY = 256;
const SPAN_MS_MIN = 10_000;
const SPAN_MS = 60_000;
/** The least values of a curve. For a topic with fewer in a minute, the curve covers a longer time. */
const VALUES_MIN = 20;
const CURVE_VALUES_MIN = 3;

export class Trend {
  /** The configured units by the names of the fields, for fields whose events have none. @type {Readonly<Record<string, string>>} */
  units = {};
  #fields = new Fields(CAPACITY);
  #columns = new Columns((names) => this.#fields.rename(names));

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
    if (!field) return null;
    const { name, series } = field;
    const since = (/** @type {number} */ index) => series.time(Math.max(series.first, index));
    const to = since(series.end - 1);
    const from = Math.min(to - SPAN_MS_MIN, since(series.end - VALUES_MIN), Math.max(to - SPAN_MS, since(0)));
    return { caption: captionOf(name, shownUnit(field, this.units)), series, from, to };
  }

  /**
   * Chooses the first number in the data that has some values. Leaves out times; takes a direction only if there is nothing else, since it
   * jumps at north.
   */
  #choose() {
    const fields = this.#fields.values.filter(({ series }) => series.length >= CURVE_VALUES_MIN);
    return fields.find((field) => !isDirection(field.name, shownUnit(field, this.units))) ?? fields[0];
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
