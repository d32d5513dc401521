/** The other runs of computations that this server has. */
import { find, part } from "../element.js";
import { client } from "../server.js";
import { isOver, percent } from "../runs/words.js";
import { SERVICE } from "./watching.js";

const LISTED_MAX = 200;
const SHOWN_MAX = 20;

/** @typedef {import("../runs/words.js").RunState} RunState */

/**
 * Shows the other runs, if this client may see them.
 * @param {HTMLDetailsElement} parent
 * @param {string} own the key of the run that the page shows
 */
export async function showOthers(parent, own) {
  /** @type {RunState[]} */
  let runs = [];
  try {
    ({ runs } = (await client.call("GET", `runs?limit=${LISTED_MAX}`)).data);
  } catch {
    // Only clients on the server's own machine see the list.
  }
  const others = runs.filter(({ service, key }) => service === SERVICE && key !== own).slice(0, SHOWN_MAX);
  parent.hidden = others.length === 0;
  find(parent, "ul", HTMLUListElement).replaceChildren(...others.map(item));
}

/** @param {RunState} run */
function item(run) {
  const link = part("a", "", run.key.slice(0, 6));
  link.href = `#run=${run.key}`;
  const element = part("li", "badge", "");
  element.dataset.run = run.state;
  const progress = run.progress === null || isOver(run) ? "" : `, ${percent(run.progress)}`;
  element.append(link, ` ${run.state}${progress}`);
  return element;
}
