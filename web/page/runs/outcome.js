/** The outcome of a run that is over: its result, its problem, and the output of its program to standard error. */
import { pretty } from "../events/log.js";
import { part } from "../element.js";
import { sentence } from "../server.js";
import { formatCount } from "../words.js";
import { reasonOf } from "./words.js";

/** The most characters of a result that are shown. It may have 16 MiB. */
const SHOWN_CHARS_MAX = 100_000;

/**
 * @param {HTMLElement} parent whose content is replaced
 * @param {import("./words.js").RunState} run
 */
export function showOutcome(parent, { state, result, problem, stderr }) {
  const parts = [];
  if (problem) parts.push(part("p", "failure", sentence(reasonOf(problem))));
  if (state === "cancelled") parts.push(part("p", "lead", "It was cancelled."));
  if (state === "done" && (result === null || result === undefined)) parts.push(part("p", "lead", "It is done, and has no result beside its partial results."));
  else if (state === "done") parts.push(...text("Result", pretty(result)));
  if (stderr) parts.push(...text("Standard error", stderr));
  parent.replaceChildren(...parts);
}

/**
 * @param {string} title
 * @param {string} words
 */
function text(title, words) {
  const block = part("pre", "", words.slice(0, SHOWN_CHARS_MAX));
  block.tabIndex = 0;
  block.setAttribute("role", "group"); // a list has many of the same name
  block.setAttribute("aria-label", title);
  const more = words.length - SHOWN_CHARS_MAX;
  const rest = more > 0 ? [part("p", "small", `and ${formatCount(more)} more characters: ask for ?state to have all of it`)] : [];
  return [part("h3", "small", title), block, ...rest];
}
