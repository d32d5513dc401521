/** The reports that browsers have published on this server: events of a topic, each with one report. */
import { part, setText } from "../element.js";
import { hasTopic } from "../places.js";
import { client } from "../server.js";
import { doubtOf } from "./report.js";

const TOPIC = "scratch-lab";
const SHOWN_MAX = 20;

/**
 * Publishes reports, each once. The server decides who may, and how long one may be.
 * @param {readonly import("./report.js").Report[]} reports
 */
export async function publish(reports) {
  for (const report of reports) {
    const key = `lab-${report.environment.seed}-${report.environment.time}`;
    await client.publish(TOPIC, report, { key });
  }
}

/**
 * Shows the newest reports, if there are any.
 * @param {HTMLElement} section
 */
export async function listPublished(section) {
  if (!(await hasTopic(TOPIC))) return;
  const { data } = await client.call("GET", `topics/${TOPIC}?after=-${SHOWN_MAX}`);
  const items = data.events.toReversed().flatMap((/** @type {any} */ event) => itemOf(event));
  section.querySelector("ul")?.replaceChildren(...items);
  section.hidden = items.length === 0;
}

/**
 * Makes the item of an event. Its data may be anything, since anybody may have written it.
 * @param {{ time: number, data: any }} event
 */
function itemOf({ time, data }) {
  if (typeof data?.experiment !== "string" || typeof data.answer !== "string") return [];
  const item = document.createElement("li");
  const when = new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
  const isComparison = (/** @type {any} */ one) => typeof one?.pairs === "number" && one.pairs > 0;
  const doubt = Array.isArray(data.comparisons) && data.is_interrupted !== true ? doubtOf(data.comparisons.filter(isComparison)) : "";
  const program = data.environment?.program;
  const by = typeof program === "string" ? `, ${program}` : "";
  item.append(part("strong", "", data.experiment), part("span", "", ""));
  setText(/** @type {Element} */ (item.lastElementChild), ` ${when}${by}: ${data.answer} ${doubt}`);
  return [item];
}
