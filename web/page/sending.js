/** The parts of a box whose text is sent to the server. */

import { withoutMark } from "./mark.js";

/** Makes a key. If the same request is sent again with this key, it is carried out only once. */
export { newKey } from "../anemone-client/key.js";

/** The longest time until a page shows the outcome of a request. */
const ANSWER_MS_MAX = 10_000;
/** The longest time from the first try to the last. */
const TRIES_MS_MAX = 5000;

/** Returns the options of a call for which a person waits. It fails soon, with the last answer or without one, and may be made again. */
export function patience() {
  return { triesMs: TRIES_MS_MAX, signal: AbortSignal.timeout(ANSWER_MS_MAX) };
}

/** @param {string} text */
export function isJson(text) {
  try {
    JSON.parse(withoutMark(text));
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns true if a text begins like JSON that is more than a word or a number. If it is not JSON after all, it has a typing error or no
 * end. The server refuses it (`Data::typed`), and so does `anemone pub`.
 * @param {string} text
 */
export function looksLikeJson(text) {
  return /^\s*(?:["{]|\[\s*(?:$|["[\]{\d-]))/.test(text);
}

/**
 * Calls `send` on Ctrl+Enter, or Command+Enter.
 * @param {HTMLElement} box
 * @param {() => unknown} send
 */
export function sendOnEnter(box, send) {
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send();
  });
}
