/**
 * The numbers in events, with a series for each field that has some. The fields are found in the data. Pure.
 */
import { CAPACITY_MAX, Series } from "../../chart/series.js";
import { unitOf, unitsIn } from "./units.js";

export const FIELDS_MAX = 32;
/** The number of fields with a series of full size. The others have a small one, so that a page stays below 30 MB. */
const LARGE_FIELDS = 6;
const CAPACITY_SMALL = 2 ** 15;
const DEPTH_MAX = 4;
const SHOWN_FIRST = 3;
/** The events, and the time from the first to the last, after which the best fields are chosen. */
const EVENTS_LOOKED_AT = 10;
const LOOK_MS = 10_000;
/** The sum of the shares of a whole in percent; below, its tolerance, since each share is rounded. */
const WHOLE = 100;
const ROUNDING = 2;

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string | null} unit null until one is known; empty if there are several
 * @property {Series} series
 * @property {number} addedAt the index in it of the first value that is not of earlier ones
 * @property {number} low
 * @property {number} high
 * @property {boolean} falls
 *
 * @typedef {readonly [path: string, value: number | null, unit?: string]} FieldValue null is a field that has no value this time
 */

export class Fields {
  #capacityMax;
  /** @type {Map<string, Field>} */
  #fields = new Map();
  /** The first events. @type {{ time: number, values: Map<Field, number> }[]} */
  #first = [];
  /** The time of the last event. */
  #last = 0;
  /** The fields that are shares of a whole, once they are known. @type {Field[] | null} */
  #shares = null;
  /** The fields that are shown, once they are chosen. @type {Field[] | null} */
  #choice = null;
  /** The least number of fields beyond the limit. */
  more = 0;

  /** @param {number} [capacityMax] the values that are kept of each field: a power of two */
  constructor(capacityMax = CAPACITY_MAX) {
    this.#capacityMax = capacityMax;
  }

  /** @returns {Field[]} */
  get all() {
    return [...this.#fields.values()];
  }

  /**
   * @param {number} time
   * @param {readonly FieldValue[]} numbers
   */
  add(time, numbers) {
    let more = 0;
    /** @type {Map<Field, number>} */
    const values = new Map();
    for (const [name, value, unit = ""] of numbers) {
      const field = this.#fields.get(name) ?? this.#create(name, value);
      if (!field) {
        if (value !== null) more += 1;
      } else if (value === null) {
        field.series.interrupt(time);
      } else {
        const { series } = field;
        if (series.length > 0 && value < series.value(series.end - 1)) field.falls = true;
        field.low = Math.min(field.low, value);
        field.high = Math.max(field.high, value);
        if (unit !== "") field.unit = (field.unit ?? unit) === unit ? unit : "";
        series.add(time, value);
        values.set(field, value);
      }
    }
    this.more = Math.max(this.more, more);
    if (values.size === 0) return;
    if (this.#first.length < EVENTS_LOOKED_AT) this.#first.push({ time, values });
    this.#last = time;
  }

  /**
   * Renames fields, unless another field has the new name already.
   * @param {readonly (readonly [string, string])[]} names from and to
   */
  rename(names) {
    const to = new Map(names.filter(([, name]) => !this.#fields.has(name)));
    this.#fields = new Map(
      this.all.map((field) => {
        field.name = to.get(field.name) ?? field.name;
        return [field.name, field];
      }),
    );
  }

  /**
   * Puts earlier values before those that were added here. They replace the values of an earlier call.
   * @param {Fields} earlier
   */
  prepend(earlier) {
    for (const field of earlier.all) {
      const { series } = field;
      if (series.length === 0) continue;
      const own = this.#fields.get(field.name);
      if (!own) {
        if (this.#fields.size < FIELDS_MAX) this.#fields.set(field.name, Object.assign(field, { addedAt: series.end }));
        continue;
      }
      const from = Math.max(own.addedAt, own.series.first);
      const addedAt = series.end;
      for (let index = from; index < own.series.end; index += 1) series.add(own.series.time(index), own.series.value(index));
      Object.assign(own, { series, addedAt, unit: own.unit ?? field.unit, low: Math.min(own.low, field.low), high: Math.max(own.high, field.high), falls: own.falls || field.falls });
    }
  }

  /**
   * Chooses the fields that are shown unless the user chooses others: at first those that came first, after enough events the best ones.
   * Those stay.
   * @returns {{ names: string[], isDecided: boolean }}
   */
  choose() {
    const [first] = this.#first;
    if (first && this.#first.length === EVENTS_LOOKED_AT && this.#last - first.time >= LOOK_MS) this.#choice ??= this.#ranked;
    const fields = (this.#choice ?? this.values).slice(0, SHOWN_FIRST);
    return { names: fields.map(({ name }) => name), isDecided: this.#choice !== null };
  }

  /** The fields without times, the best first: those that rise and fall, then those that change. In each group, shares of a whole come first. */
  get #ranked() {
    const shares = this.#first.length < EVENTS_LOOKED_AT ? [] : (this.#shares ??= sharesIn(this.all, this.#first.map(({ values }) => values)));
    /** @param {Field} field */
    const worth = (field) => (field.high === field.low ? 0 : (field.falls ? 2 : 1) + (shares.includes(field) ? 2 : 0));
    return this.values.sort((a, b) => worth(b) - worth(a));
  }

  /** The fields that are no times, in the order of the data. */
  get values() {
    return this.all.filter(({ low, high }) => !isTime(low) || !isTime(high));
  }

  /**
   * @param {string} name
   * @param {number | null} value
   */
  #create(name, value) {
    const count = this.#fields.size;
    if (count >= FIELDS_MAX || value === null) return null;
    const series = new Series(Math.min(this.#capacityMax, count < LARGE_FIELDS ? CAPACITY_MAX : CAPACITY_SMALL));
    /** @type {Field} */
    const field = { name, unit: null, series, addedAt: 0, low: Infinity, high: -Infinity, falls: false };
    this.#fields.set(name, field);
    return field;
  }
}

/**
 * Returns the fields that are shares of a whole: the most neighbours whose sum is 100 in each event. Many programs write the times of a
 * processor so.
 * @param {readonly Field[]} fields
 * @param {readonly Map<Field, number>[]} events
 */
function sharesIn(fields, events) {
  for (let count = fields.length; count > 1; count -= 1) {
    for (let from = 0; from + count <= fields.length; from += 1) {
      const row = fields.slice(from, from + count);
      const isWhole = (/** @type {Map<Field, number>} */ event) => Math.abs(row.reduce((sum, field) => sum + Math.max(0, event.get(field) ?? NaN), 0) - WHOLE) <= ROUNDING;
      if (events.every(isWhole)) return row;
    }
  }
  return [];
}

/**
 * Returns true if a number looks like a time in milliseconds, of the years 2001 to 2286.
 * @param {number} value
 */
function isTime(value) {
  return value >= 1e12 && value < 1e13;
}

/**
 * Returns the numbers in an event with their paths: `speed`, `memory.total_bytes`, `cores[0]`; `value` if the event is one. A number has
 * its unit if the event has one.
 * @param {unknown} data
 * @returns {FieldValue[]}
 */
export function numbersOf(data) {
  /** @type {FieldValue[]} */
  const found = [];
  collect(data, { path: "", unit: "", depth: 0 }, found);
  return found;
}

/**
 * @param {unknown} data
 * @param {{ path: string, unit: string, depth: number }} place
 * @param {FieldValue[]} found
 */
function collect(data, { path, unit, depth }, found) {
  if (found.length >= 2 * FIELDS_MAX) return;
  // 1e999 is JSON, but too great for a number.
  if ((typeof data === "number" && Number.isFinite(data)) || data === null) {
    const hasUnit = unit !== "" && data !== null && !isTime(data);
    if (path !== "" || data !== null) found.push(hasUnit ? [path, data, unit] : [path || "value", data]);
  } else if (typeof data === "object" && depth < DEPTH_MAX) {
    const isList = Array.isArray(data);
    const units = isList ? null : unitsIn(data);
    for (const [key, value] of Object.entries(data)) {
      const inner = isList ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
      collect(value, { path: inner, unit: isList ? unit : unitOf(key, units), depth: depth + 1 }, found);
    }
  }
}
