/** The byte order mark, which many programs write before a text and which is no part of it. Pure. */

const MARK = "\ufeff";

/** @param {string} text */
export function withoutMark(text) {
  return text.startsWith(MARK) ? text.slice(MARK.length) : text;
}
