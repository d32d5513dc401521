/**
 * The values of a list by their places in the order of a sort, so that a list that is sorted by digits looks sorted. Pure.
 */

/** The keys of the criteria that a picture of the values does not show, by the service's rules. @type {Record<string, (value: number) => number>} */
const KEYS = {
  "by-last-digit": (value) => value % 10,
  "by-digit-sum": (value) => [...String(value)].reduce((sum, digit) => sum + Number(digit), 0),
};
/** The orders that are kept: those of the branches of one tree. */
const KEPT_MAX = 16;
/** @type {Map<string, Uint32Array>} */
const kept = new Map();

/**
 * Returns the values as they are drawn: for a sort by digits, each becomes its place, 1 to the size, among all values by their keys, and
 * among those of the same key by value. In any other case, they are drawn as they are.
 * @param {Uint32Array} values from 1 to `size`
 * @param {Pick<import("./document.js").Action, "criterion" | "size"> | undefined} action
 */
export function drawnValues(values, action) {
  const key = KEYS[action?.criterion ?? ""];
  if (!action || !key) return values;
  const ranks = ranksOf(`${action.criterion} ${action.size}`, action.size, key);
  return values.map((value) => ranks[value] ?? value);
}

/** The words for the order in which a list is drawn; empty if by value. @param {Pick<import("./document.js").Action, "criterion">} action */
export function drawnInWords({ criterion = "" }) {
  return criterion in KEYS ? "drawn in that order" : "";
}

/**
 * @param {string} name
 * @param {number} size
 * @param {(value: number) => number} key
 */
function ranksOf(name, size, key) {
  const known = kept.get(name);
  if (known) return known;
  const ranks = new Uint32Array(size + 1);
  const order = Array.from({ length: size }, (_, at) => at + 1).sort((a, b) => key(a) - key(b) || a - b);
  for (const [at, value] of order.entries()) ranks[value] = at + 1;
  if (kept.size >= KEPT_MAX) kept.clear();
  kept.set(name, ranks);
  return ranks;
}
