/** The frequency of wind by direction and speed: counts by direction and class of speed. Pure. */

export const SECTORS = 16;
export const CLASSES = 5;

/**
 * @typedef {object} Rose
 * @property {number[][]} counts of each sector from north clockwise, the slowest class first
 * @property {number} calm measurements without a direction
 * @property {number} total
 * @property {number} step the width of a class
 */

/**
 * @param {Iterable<readonly [speed: number, direction: number]>} winds NaN is a direction that is not known
 * @param {number} highest speed among them
 * @returns {Rose}
 */
export function roseOf(winds, highest) {
  const step = stepFor(highest);
  const counts = Array.from({ length: SECTORS }, () => Array.from({ length: CLASSES }, () => 0));
  let [calm, total] = [0, 0];
  for (const [speed, direction] of winds) {
    if (Number.isNaN(speed)) continue;
    total += 1;
    if (Number.isNaN(direction)) {
      calm += 1;
      continue;
    }
    const sector = counts[Math.round(direction / (360 / SECTORS)) % SECTORS] ?? [];
    const speedClass = Math.min(CLASSES - 1, Math.floor(speed / step));
    sector[speedClass] = (sector[speedClass] ?? 0) + 1;
  }
  return { counts, calm, total, step };
}

/**
 * Returns a round width, with which the highest speed is in the last class or below.
 * @param {number} highest
 */
function stepFor(highest) {
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 0.1) / CLASSES));
  return ([1, 2, 5, 10].find((factor) => factor * power * CLASSES >= highest) ?? 10) * power;
}

/** @param {readonly number[]} sector */
export function sum(sector) {
  return sector.reduce((all, count) => all + count, 0);
}

/**
 * The classes in words: "0 to 2", "2 to 4", … "8 and more".
 * @param {number} step
 */
export function classesInWords(step) {
  const round = (/** @type {number} */ value) => String(Number(value.toPrecision(6)));
  return Array.from({ length: CLASSES }, (_, index) => (index < CLASSES - 1 ? `${round(index * step)} to ${round((index + 1) * step)}` : `${round(index * step)} and more`));
}
