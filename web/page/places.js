/** The places that only some servers have, and whether a topic exists. */
import { browser } from "../transport/environment.js";
import { fadeEdges } from "./edges.js";
import { at } from "./site.js";

const ANSWER_MS_MAX = 10_000;

/** Shows the places in the header that this server has. */
export async function showPlaces() {
  const line = document.querySelector(".places");
  if (line instanceof HTMLElement) fadeEdges(line);
  await lookForPlaces();
}

/** Shows the hidden places of the page whose topics, resources and services exist. */
export async function lookForPlaces() {
  showHere();
  const described = askJson("openapi.json");
  /** @type {Map<string, ReturnType<typeof hasTopic>>} */
  const topics = new Map();
  const isTopic = (/** @type {string} */ name) => {
    if (!topics.has(name)) topics.set(name, hasTopic(name));
    return topics.get(name);
  };
  const hasService = async (/** @type {string} */ name) => (await described)?.paths?.[`/${name}`]?.post !== undefined;
  const look = async (/** @type {HTMLElement} */ place) => {
    const { topic, resource, service = resource } = place.dataset;
    // A resource is a service with a topic of its name.
    const needed = topic ?? resource;
    const found = await Promise.all([!needed || isTopic(needed), !service || hasService(service)]);
    place.hidden = !found.every(Boolean);
  };
  const places = document.querySelectorAll(":is([data-topic], [data-resource], [data-service])[hidden]");
  await Promise.all([...places].map((place) => place instanceof HTMLElement && look(place)));
  showHere();
}

/** Scrolls to the link of this page: in a narrow window, the line of links is not seen completely. */
function showHere() {
  const here = document.querySelector(".places [aria-current]");
  const line = here?.parentElement;
  if (here instanceof HTMLElement && line) line.scrollLeft = here.offsetLeft - line.offsetLeft - (line.clientWidth - here.offsetWidth) / 2;
}

/**
 * Returns true if the list has a topic. A request for the topic itself could fail, which browsers report as an error.
 * @param {string} name
 * @returns {Promise<boolean | null>} null when the server does not say
 */
export async function hasTopic(name) {
  const list = await listTopics(`?prefix=${name}&limit=1`); // the list begins with the name itself
  return list && list.topics[0]?.name === name;
}

/**
 * Returns the entry of a topic in the list.
 * @param {string} name
 * @returns {Promise<ListedTopic | null>} null without such a topic, and when the server does not say
 */
export async function listedTopic(name) {
  // The list begins with the name itself.
  const topic = (await listTopics(`?prefix=${name}&limit=1`))?.topics[0];
  return topic?.name === name ? topic : null;
}

/**
 * The entry of a topic in the list.
 *
 * @typedef {object} ListedTopic
 * @property {string} name
 * @property {string} next the position of the newest event
 * @property {number} first the offset of the oldest one
 * @property {number} events
 * @property {number} bytes
 * @property {number | null} oldest the time of the oldest event, the server's clock
 * @property {number | null} time that of the newest one
 * @property {number} readers
 * @property {string} keeps
 * @property {string} storage
 * @property {Record<string, string>} [units] those of fields whose events say none
 * @property {string} [status_of] the topic whose source has its status in this one
 */

/**
 * @param {string} [query]
 * @returns {Promise<{ topics: ListedTopic[], next?: string } | null>} null when the server does not say
 */
export async function listTopics(query = "") {
  const list = await askJson(`topics${query}`);
  return Array.isArray(list?.topics) ? list : null;
}

/**
 * @param {string} path
 * @returns {Promise<any>} null when the server does not say
 */
async function askJson(path) {
  try {
    const reply = await browser.fetch(at(path), { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    return reply.ok ? await reply.json() : null;
  } catch {
    return null;
  }
}
