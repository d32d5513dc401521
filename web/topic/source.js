/** The way in which this page reads. No other file of the page knows the transports. */
import { browser } from "../transport/environment.js";
import { requestPage } from "../transport/page.js";
import { reader } from "../transport/reader.js";
import { Reading } from "../transport/reading.js";

const ANSWER_MS_MAX = 10_000;

/**
 * Follows a topic; it begins paused.
 * @param {string} url
 * @param {Omit<import("../transport/types.js").ReadOptions, "signal">} options
 */
export function follow(url, options) {
  return new Reading(reader(), url, options);
}

/**
 * Asks for one page of events.
 * @param {string} url
 * @param {{ name: string, value: string }} place
 * @param {number} limit
 */
export async function pageAt(url, { name, value }, limit) {
  const query = new URLSearchParams({ [name]: value, limit: String(limit) });
  const signal = new AbortController().signal;
  return await requestPage(`${url}?${query}`, { signal, timeoutMs: ANSWER_MS_MAX, environment: browser });
}

export const now = browser.now;
