/** The places in the header that not every server has, and whether a topic exists. */
import { browser } from "../transport/environment.js";
import { at } from "./site.js";

const ANSWER_MS_MAX = 10_000;
const NAMES_BETWEEN = 100;

/** Shows the links in the header whose topics exist. */
export async function showPlaces() {
  for (const link of document.querySelectorAll(".places [data-topic]")) {
    if (link instanceof HTMLElement && (await hasTopic(String(link.dataset.topic)))) link.hidden = false;
  }
}

/**
 * Asks the list of topics, since a request for a topic that does not exist fails, and browsers report it as an error.
 * @param {string} name
 * @returns {Promise<boolean | null>} null when the server does not say
 */
export async function hasTopic(name) {
  // The list is in order and begins after a name: one that comes shortly before this one.
  const before = `${name.slice(0, -1)}${String.fromCharCode(name.charCodeAt(name.length - 1) - 1)}zzzz`;
  const list = await listTopics(`?after=${before}&limit=${NAMES_BETWEEN}`);
  return list && list.topics.some((topic) => topic.name === name);
}

/**
 * @typedef {{ name: string, next: string, first: number, bytes: number }} ListedTopic
 * @param {string} [query]
 * @returns {Promise<{ topics: ListedTopic[], next?: string } | null>} null when the server does not say
 */
export async function listTopics(query = "") {
  try {
    const reply = await browser.fetch(at(`topics${query}`), { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    const list = reply.ok ? await reply.json() : null;
    return Array.isArray(list?.topics) ? list : null;
  } catch {
    return null;
  }
}
