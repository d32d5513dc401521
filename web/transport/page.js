/** Pages of events over plain HTTP. */
import { connect } from "../client.js";

/** @typedef {import("../anemone-client/types.js").Page} Page */

/**
 * Splits the URL of a topic: returns that of its server, and the path there.
 * @param {string} url
 */
export function split(url) {
  const [, base = "", path = ""] = /^(.*\/)(topics\/.*)$/.exec(url) ?? [];
  return { base, path };
}

/**
 * Requests one page. `received` is t4: the time at which the whole body had arrived.
 * @param {string} url
 * @param {{ signal: AbortSignal, timeoutMs: number, environment: import("./environment.js").Environment }} options
 */
export async function requestPage(url, { signal, timeoutMs, environment }) {
  const { base, path } = split(url);
  const client = connect(base, { transports: ["poll"], fetch: environment.fetch });
  try {
    const ends = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const { data } = await client.call("GET", path, undefined, { signal: ends });
    const received = environment.now();
    if (isPage(data)) return { page: data, received };
  } finally {
    client.close();
  }
  throw new SyntaxError("the reply is not a page of events");
}

/**
 * @param {unknown} value
 * @returns {value is Page}
 */
function isPage(value) {
  if (typeof value !== "object" || value === null) return false;
  const page = /** @type {Record<string, unknown>} */ (value);
  return typeof page.epoch === "string" && typeof page.next === "string" && Array.isArray(page.events);
}
