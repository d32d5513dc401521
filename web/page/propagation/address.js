/** The address of the page has the keys of the runs that its maps show: `#run=KEY`, or `#run=KEY&with=KEY` of two maps. Pure. */

const KEY = /^[0-9a-f]{32}$/;

/** @typedef {readonly [first: string, second: string | null]} Keys */

/**
 * Returns the keys of an address; null if it has none.
 * @param {string} hash
 * @returns {Keys | null}
 */
export function keysIn(hash) {
  const names = new URLSearchParams(hash.slice(1));
  const [first, second] = ["run", "with"].map((name) => KEY.exec(names.get(name) ?? "")?.[0] ?? null);
  return first ? [first, second ?? null] : null;
}

/** @param {Keys} keys */
export function hashOf([first, second]) {
  return `#run=${first}${second === null ? "" : `&with=${second}`}`;
}
