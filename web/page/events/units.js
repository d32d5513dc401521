/**
 * The units in events. `"units":"m/s"` is the unit of all numbers beside it, `"units":{"speed":"m/s"}` has one for each, and
 * `{"value":3,"unit":"m/s"}` is a value with its own unit. Pure.
 */

const UNIT_CHARS_MAX = 16;
/** The names of numbers that have no unit, even if those beside them have one. */
const BARE = /^(id|n|no|number|seq|sequence|count|index|code|status|version)$/i;
const DIRECTION = /(direction|heading|bearing|azimuth)(_?deg(rees)?)?$/i;
const DEGREES = ["°", "deg", "degree", "degrees"];

/**
 * Returns the units of the numbers in an object; null if it has none.
 * @param {object} data
 */
export function unitsIn(data) {
  return Reflect.get(data, "units") ?? (Object.hasOwn(data, "value") ? { value: Reflect.get(data, "unit") } : null);
}

/**
 * Returns the unit of a number; an empty text if it is not known.
 * @param {string} key
 * @param {unknown} units those of the object that has the key
 */
export function unitOf(key, units) {
  const own = typeof units === "object" && units !== null && Object.hasOwn(units, key) ? Reflect.get(units, key) : null;
  const unit = typeof own === "string" ? own : typeof units === "string" && !BARE.test(key) ? (DIRECTION.test(key) ? "°" : units) : "";
  return unit.length > UNIT_CHARS_MAX ? "" : unit.trim();
}

/**
 * Returns the unit with which a field is shown: that of its events, or the configured one if they have none. If its events have several
 * units, there is none.
 * @param {{ name: string, unit: string | null }} field
 * @param {Readonly<Record<string, string>>} configured by the names of the fields
 */
export function shownUnit({ name, unit }, configured) {
  return unit ?? (Object.hasOwn(configured, name) ? String(configured[name]) : "");
}

/**
 * Returns true if a field is a direction, so that 359° and 1° are neighbours.
 * @param {string} name
 * @param {string} unit
 */
export function isDirection(name, unit) {
  return DEGREES.includes(unit) || DIRECTION.test(name);
}

/**
 * @param {string} words a value
 * @param {string} unit
 */
export function withUnit(words, unit) {
  return unit === "" || unit === "°" ? words + unit : `${words} ${unit}`;
}

/**
 * @param {string} name
 * @param {string} unit
 */
export function captionOf(name, unit) {
  return unit === "" ? name : `${name}, ${unit}`;
}
