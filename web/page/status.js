/** The status of a source, as its topic of that says it, in the words of a person. */
import { fieldsOf, setText } from "./element.js";
import { at } from "./site.js";

/** The states of a source as people say them. @type {Record<string, string>} */
const STATES = { opening: "opening", live: "live", silent: "silent", lost: "trying again", waiting: "waiting for the disk", ended: "ended" };

/**
 * Returns the status of a source in two words, and in a sentence; null if the event has none.
 * @param {any} data
 */
export function statusInWords(data) {
  const words = typeof data?.state === "string" && Object.hasOwn(STATES, data.state) ? STATES[data.state] : undefined;
  if (words === undefined) return null;
  return { state: String(data.state), words, detail: typeof data.detail === "string" ? cut(data.detail) : "" };
}

/**
 * Shows a status as a dot with words, which lead to all that the source said.
 * @param {HTMLAnchorElement} link with the fields state and detail
 * @param {string} name of the topic with the status
 * @param {unknown} data of its newest event
 */
export function showStatus(link, name, data) {
  const status = statusInWords(data);
  link.hidden = status === null;
  if (status === null) return;
  link.href = at(`topics/${name}`);
  link.dataset.source = status.state;
  link.title = status.detail;
  const field = fieldsOf(link);
  setText(field("state"), status.words);
  setText(field("detail"), status.detail && `: ${status.detail}`);
}

const TEXT_CHARS_MAX = 300;

/** @param {string} text of an event, which may be of any length */
export function cut(text) {
  return text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text;
}
