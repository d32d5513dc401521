/** Round numbers for the ends of scales. Pure. */

/**
 * Returns a round top of the scale. It falls only when there is much room, so that it does not flicker.
 * @param {number} highest
 * @param {number} current
 */
export function niceScale(highest, current) {
  const tops = [2, 4, 8, 12, 20, 40, 60, 100, 200, 400, 800, 2000, 8000];
  const top = tops.find((candidate) => candidate >= highest * 1.05) ?? highest * 1.1;
  return top < current && highest > top * 0.8 ? current : top;
}

/**
 * Returns the next round number: 1, 2 or 5 times a power of ten.
 * @param {number} ms
 */
export function niceMs(ms) {
  if (!(ms > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(ms));
  return [1, 2, 5, 10, 20].map((step) => step * power).find((top) => top >= ms * 1.02) ?? ms;
}

/**
 * Returns round ends for values between two others, and the round values between them. `current` is kept while it fits,
 * so that the scale does not flicker.
 * @param {number} low
 * @param {number} high
 * @param {Range | null} current
 * @returns {Range}
 */
export function niceRange(low, high, current) {
  if (Math.max(-low, high) > GREAT) return greatRange(low, high);
  const spread = high - low || Math.abs(high) || 1;
  if (current && low >= current.low && high <= current.high && spread > (current.high - current.low) * 0.4) return current;
  const [from, to] = high === low ? [low - spread / 2, high + spread / 2] : [low, high];
  const step = roundStep((to - from) / 3);
  const [first, last] = [Math.floor(from / step), Math.ceil(to / step)];
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  return { low: first * step, high: last * step, ticks };
}

/** Of numbers beyond this, the difference and the next round one may be too great for a number. A power of ten. */
const GREAT = 1e300;

/**
 * @param {number} low
 * @param {number} high
 * @returns {Range}
 */
function greatRange(low, high) {
  const range = niceRange(low / GREAT, high / GREAT, null);
  const back = (/** @type {number} */ value) => finite(value * GREAT);
  return { low: back(range.low), high: back(range.high), ticks: [...new Set(range.ticks.map(back))] };
}

/** Returns the nearest number that is finite. @param {number} value */
export function finite(value) {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value));
}

/**
 * Returns where a value is between two others: 0 at the low one, 1 at the high one. The difference of great numbers may be too great for a
 * number; that of their halves is not.
 * @param {number} value
 * @param {{ low: number, high: number }} range
 */
export function partOf(value, { low, high }) {
  return (value / 2 - low / 2) / (high / 2 - low / 2);
}

/** @typedef {{ low: number, high: number, ticks: number[] }} Range */

/**
 * Returns the least of 1, 2, 2.5 and 5 times a power of ten that is at least this.
 * @param {number} least
 */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 2.5, 5].find((factor) => factor * power >= least * 0.999) ?? 10) * power;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100].map((days) => days * DAY),
];

/**
 * Returns the distance of the marks on an axis of time.
 * @param {number} spanMs
 * @param {number} marksMax
 */
export function timeStep(spanMs, marksMax) {
  return TIME_STEPS.find((step) => spanMs / step <= marksMax) ?? spanMs;
}

/** Made when they are needed: the first one of a page takes many milliseconds. @type {Map<number, Intl.NumberFormat>} */
const formats = new Map();

/**
 * @param {number} value
 * @param {number} digits at most so many that count
 */
function rounded(value, digits) {
  const format = formats.get(digits) ?? new Intl.NumberFormat("en", { maximumSignificantDigits: digits });
  formats.set(digits, format);
  return format.format(value);
}

/** Returns the number with so many digits that count. @param {number} value @param {number} digits */
export function roundedTo(value, digits) {
  return finite(Number(value.toPrecision(digits)));
}

/**
 * Formats a value with as many digits as help: "0.3", "1,013.25", "12.4M", "2.5e-7".
 * @param {number} value
 */
export function formatValue(value) {
  return Math.abs(value) >= 1e6 ? withPrefix(value) : withDigits(value, 1e-4);
}

/**
 * Formats the value of a level in few characters: "0.25", "5,000", "300k".
 * @param {number} value
 */
export function formatLevel(value) {
  return Math.abs(value) >= 1e4 ? withPrefix(value) : withDigits(value, 1e-3);
}

/**
 * @param {number} value
 * @param {number} least what is still written without an exponent
 */
function withDigits(value, least) {
  return value !== 0 && Math.abs(value) < least ? String(roundedTo(value, 4)) : rounded(value, 7);
}

/** @param {number} value */
function withPrefix(value) {
  const power = Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9);
  if (power > 5) return String(roundedTo(value, 4));
  return `${rounded(value / 1000 ** power, 4)}${["", "k", "M", "G", "T", "P"][power]}`;
}
