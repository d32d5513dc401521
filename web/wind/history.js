/**
 * Older measurements, read back from the topic: page after page, or, where there are too many for a chart, evenly spaced parts of them.
 */
import { formatPosition } from "../anemone-client/position.js";
import { parsePosition } from "../client.js";
import { browser } from "../transport/environment.js";
import { requestPage } from "../transport/page.js";
import { windOf } from "./wind.js";

const PAGE_EVENTS = 1000;
/** A series keeps twice as many. */
const EVENTS_MAX = 60_000;
/** The measurements of a part, when only parts are read. */
const PART_EVENTS = 100;
const ANSWER_MS_MAX = 10_000;

/**
 * @typedef {object} Progress
 * @property {number} done 0 to 1
 * @property {number} read measurements so far
 * @property {number} all measurements in this time
 * @property {number} apartMs the time between two parts; 0 if everything is read
 */

/**
 * Returns the time of the oldest event that the topic keeps.
 * @param {string} topic its URL
 * @returns {Promise<number | null>} null if it keeps none, or the server does not say
 */
export async function keptFrom(topic) {
  try {
    const { page } = await requestPage(`${topic}?after=earliest&limit=1`, { signal: new AbortController().signal, timeoutMs: ANSWER_MS_MAX, environment: browser });
    return page.events[0]?.time ?? null;
  } catch {
    return null;
  }
}

/**
 * Reads what the topic has from a place on.
 * @param {string} topic its URL
 * @param {string} place the parameter of a request, such as `since=1h`
 * @param {{ signal: AbortSignal, onWind: (wind: import("./wind.js").Wind) => void, onProgress: (progress: Progress) => void }} options
 * @returns {Promise<Progress | null>} null if there is nothing
 */
export async function readBack(topic, place, { signal, onWind, onProgress }) {
  const ask = async (/** @type {string} */ query) => (await requestPage(`${topic}?${query}`, { signal, timeoutMs: ANSWER_MS_MAX, environment: browser })).page;
  const [begin, newest] = [await ask(`${place}&limit=1`), await ask("after=-1")];
  const [first, head] = [begin.events[0], parsePosition(newest.next)];
  if (!first || !head || begin.epoch !== head.epoch) return null;
  const all = head.offset - first.offset + 1;
  const isWhole = all <= EVENTS_MAX;
  const limit = isWhole ? PAGE_EVENTS : PART_EVENTS;
  const stride = isWhole ? PAGE_EVENTS : Math.ceil((all * PART_EVENTS) / EVENTS_MAX);
  const last = newest.events.at(-1);
  const apartMs = isWhole || !last ? 0 : ((last.time - first.time) * stride) / all;
  let read = 0;
  /** @type {Progress} */
  let progress = { done: 0, read, all, apartMs };
  for (let offset = first.offset - 1; offset < head.offset; ) {
    const page = await ask(`after=${formatPosition({ epoch: head.epoch, offset })}&limit=${limit}`);
    for (const { offset, time, data } of page.events) {
      const wind = windOf({ position: formatPosition({ epoch: page.epoch, offset }), time, data, received: time });
      if (wind) onWind(wind);
    }
    read += page.events.length;
    const reached = parsePosition(page.next)?.offset ?? head.offset;
    if (page.epoch !== head.epoch || reached <= offset) break;
    offset = isWhole ? reached : Math.max(reached, offset + stride);
    progress = { done: Math.min(1, (offset - first.offset + 1) / all), read, all, apartMs };
    onProgress(progress);
  }
  return { ...progress, done: 1 };
}
