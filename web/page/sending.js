/** The parts of a box whose text is sent to the server. */

import { withoutMark } from "./mark.js";

/** Makes a key under which the same thing may be sent again, and is carried out once. */
export { newKey } from "../anemone-client/key.js";

/** A page that sends something says how that went within this time. */
const ANSWER_MS_MAX = 10_000;
/** No try begins later than this after the first. */
const TRIES_MS_MAX = 5000;

/** The options of a call that somebody waits for: it fails soon, with the last answer or without one, and may be made again. */
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
 * Returns true if a text begins like JSON that is more than a word or a number. If it is none, its end is missing or it has a slip: the
 * server refuses it (`Data::typed`), and so does `anemone pub`.
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
