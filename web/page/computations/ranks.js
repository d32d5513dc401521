/**
 * The ranks of values in the order of a sort. With them, a list that is sorted by digits looks sorted. Pure.
 */

/** The sort keys of the criteria that do not sort by value, by the service's rules. @type {Record<string, (value: number) => number>} */
const KEYS = {
  "by-last-digit": (value) => value % 10,
  "by-digit-sum": (value) => [...String(value)].reduce((sum, digit) => sum + Number(digit), 0),
};
/** The most orders that are kept. The branches of a tree need no more. */
const KEPT_MAX = 16;
/** @type {Map<string, Uint32Array>} */
const kept = new Map();

/**
 * Returns the values as they are drawn. For a sort by digits, each becomes its rank, from 1, by its key and then by its value. Any others
 * stay as they are.
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
