/** Remembers which document a run computes, so that the page shows it after a reload and in another window of this browser. */

const NAME = "anemone propagation";
const REMEMBERED_MAX = 8;
const CHARS_MAX = 400_000;

/** @typedef {{ key: string, text: string }} Entry */

/** @type {Entry | null} */
let waiting = null;

/**
 * Remembers a document, a little later: while a transmitter is dragged, runs come and go.
 * @param {string} key of the run
 * @param {unknown} document
 */
export function remember(key, document) {
  if (waiting === null) setTimeout(flush, 400);
  waiting = { key, text: JSON.stringify(document) };
}

function flush() {
  if (waiting === null || waiting.text.length > CHARS_MAX) return;
  const added = waiting;
  waiting = null;
  try {
    const entries = [added, ...read().filter(({ key }) => key !== added.key)].slice(0, REMEMBERED_MAX);
    localStorage.setItem(NAME, JSON.stringify(entries));
  } catch {
    // The browser stores nothing, or not so much: the run goes on all the same.
  }
}

/**
 * Returns the document of a run; null if it is not known here.
 * @param {string} key
 * @returns {unknown}
 */
export function recall(key) {
  try {
    const text = read().find((entry) => entry.key === key)?.text;
    return text === undefined ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** @returns {Entry[]} */
function read() {
  const entries = JSON.parse(localStorage.getItem(NAME) ?? "[]");
  return Array.isArray(entries) ? entries : [];
}

globalThis.addEventListener?.("pagehide", flush);
