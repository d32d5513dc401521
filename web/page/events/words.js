/** The incidents of a reader in plain words, and events in one line. Pure. */
import { formatCount } from "../words.js";

/** @param {number} count */
function events(count) {
  return count === 1 ? "1 event" : `${formatCount(count)} events`;
}

/**
 * @param {import("../../transport/types.js").Gap} gap
 */
export function gapInWords({ reason, missed }) {
  const many = missed === null ? "Events are missing here, nobody knows how many" : `${events(missed)} ${missed === 1 ? "is" : "are"} missing here`;
  switch (reason) {
    case "retention":
      return `${many}: the topic no longer keeps ${missed === 1 ? "it" : "them"}.`;
    case "damaged":
      return `${many}: the server's disk no longer has what was written.`;
    case "epoch":
      return "The topic began anew here: it was deleted, or the server lost its events. What came before is not known.";
    case "unannounced":
      return `${many}, and the server did not say so. That is a fault.`;
    default:
      return `${many} (${reason}).`;
  }
}

/** The most characters of the name of a field, which may be of any length. */
const NAME_CHARS_MAX = 60;

/** @param {string} name of a field */
export function shortName(name) {
  return name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX)}…` : name;
}

/**
 * An event's data in one line.
 * @param {unknown} data
 * @param {number} charsMax
 */
export function inOneLine(data, charsMax) {
  const text = typeof data === "string" ? data : (JSON.stringify(data) ?? "");
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}
