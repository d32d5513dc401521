/** The byte order mark. Many programs write it before a text, but it is not part of the text. Pure. */

const MARK = "\ufeff";

/** @param {string} text */
export function withoutMark(text) {
  return text.startsWith(MARK) ? text.slice(MARK.length) : text;
}
