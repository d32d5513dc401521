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
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= ms * 1.02) ?? ms;
}
