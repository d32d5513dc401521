/**
 * Pages of events over plain HTTP: requests, parsing, and descriptions of errors. The transports decide when to ask
 * again.
 */
import { deliver, formatPosition } from "./sequence.js";

/**
 * @typedef {object} Page
 * @property {string} epoch
 * @property {string} next
 * @property {{ offset: number, time: number, data: unknown }[]} events
 * @property {import("./types.js").Gap} [gap]
 */

/** The server refused the request. */
export class Refused extends Error {
  /**
   * @param {string} message
   * @param {number} status
   * @param {number} retryAfterMs
   */
  constructor(message, status, retryAfterMs) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The delay after a request for a missing topic, since asking again sooner cannot help. */
const NOT_FOUND_RETRY_MS = 5000;

/**
 * @param {string} topicUrl
 * @param {string | undefined} after
 * @param {number} [waitSeconds]
 */
export function pageUrl(topicUrl, after, waitSeconds) {
  const query = [
    ...(after === undefined ? [] : [`after=${encodeURIComponent(after)}`]),
    ...(waitSeconds === undefined ? [] : [`wait=${waitSeconds}`]),
  ];
  return query.length === 0 ? topicUrl : `${topicUrl}?${query.join("&")}`;
}

/**
 * Requests one page. `received` is t4: the time at which the whole body had arrived, before it is parsed.
 * @param {string} url
 * @param {{ signal: AbortSignal, timeoutMs: number, environment: import("./environment.js").Environment }} options
 */
export async function requestPage(url, { signal, timeoutMs, environment }) {
  const response = await environment.fetch(url, {
    cache: "no-store",
    headers: { accept: "application/json" },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  const text = await response.text();
  const received = environment.now();
  if (!response.ok) throw refusal(response, text);
  return { page: parsePage(text), received };
}

/**
 * @param {Page} page
 * @param {number} received
 * @param {import("./sequence.js").Sequence} sequence
 * @param {import("./types.js").ReadOptions} options
 */
export function deliverPage(page, received, sequence, options) {
  if (page.gap) {
    sequence.skip(page.gap);
    options.onGap(page.gap);
  }
  for (const { offset, time, data } of page.events) {
    const position = formatPosition({ epoch: page.epoch, offset });
    deliver(sequence, { position, time, data, received }, options);
  }
  const gap = sequence.settle(page.next);
  if (gap) options.onGap(gap);
}

/**
 * Returns the description of a failure, and the time to wait.
 * @param {unknown} error
 * @param {import("./backoff.js").Backoff} backoff
 * @returns {{ reason: string, status: number | null, waitMs: number }}
 */
export function trouble(error, backoff) {
  const waitMs = backoff.next();
  if (error instanceof Refused) {
    return { reason: error.message, status: error.status, waitMs: Math.max(waitMs, error.retryAfterMs) };
  }
  const reason =
    error instanceof DOMException && error.name === "TimeoutError"
      ? "the server takes too long to answer"
      : error instanceof SyntaxError
        ? error.message
        : "the server does not answer";
  return { reason, status: null, waitMs };
}

/**
 * @param {Response} response
 * @param {string} text
 */
function refusal(response, text) {
  const retryAfterMs = Number(response.headers.get("retry-after") ?? 0) * 1000 || 0;
  return new Refused(
    problemInWords(text) ?? `the server answered ${response.status}`,
    response.status,
    response.status === 404 ? Math.max(NOT_FOUND_RETRY_MS, retryAfterMs) : retryAfterMs,
  );
}

/**
 * Returns the detail, or else the title, of a problem document (RFC 9457).
 * @param {string} text
 */
export function problemInWords(text) {
  try {
    const problem = JSON.parse(text);
    for (const words of [problem?.detail, problem?.title]) {
      if (typeof words === "string" && words !== "") return words;
    }
  } catch {
    // Not a problem document, perhaps a proxy's page: only the status is used.
  }
  return null;
}

/**
 * @param {string} text
 * @returns {Page}
 */
function parsePage(text) {
  /** @type {unknown} */
  let page;
  try {
    page = JSON.parse(text);
  } catch {
    page = null;
  }
  if (isPage(page)) return page;
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
