/**
 * Older events, read back from a topic: all of them page by page, or evenly spaced parts if there are too many for a chart.
 */
import { formatPosition } from "../../anemone-client/position.js";
import { parsePosition } from "../../client.js";
import { browser } from "../../transport/environment.js";
import { requestPage } from "../../transport/page.js";
import { since } from "./spans.js";

const PAGE_EVENTS = 1000;
/** The most events that are read: the smallest series of a chart keeps no more. */
const EVENTS_MAX = 30_000;
/** The most bytes that are read for a chart, by the mean size of the topic's events. */
const BYTES_MAX = 16_000_000;
/** The number of events of a part, if only parts are read. */
const PART_EVENTS = 100;
/** The most parts that are requested at once: a browser has six connections to a server, and streams hold some of them. */
const PARTS_AT_ONCE = 3;
const ANSWER_MS_MAX = 10_000;

/**
 * @typedef {object} Progress
 * @property {number} done 0 to 1
 * @property {number} read events so far
 * @property {number} all events in this time
 * @property {number} apartMs the time between two parts; 0 if everything is read
 *
 * @typedef {import("../../transport/types.js").TopicEvent} TopicEvent
 */

/**
 * @param {string} topic its URL
 * @param {string} query
 * @param {AbortSignal} signal
 */
async function ask(topic, query, signal) {
  const { page, received } = await requestPage(`${topic}?${query}`, { signal, timeoutMs: ANSWER_MS_MAX, environment: browser });
  const events = page.events.map(({ offset, time, data }) => ({ position: formatPosition({ epoch: page.epoch, offset }), time, data, received }));
  return { events, epoch: page.epoch, next: page.next };
}

/**
 * Reads the events of a topic from a place on, or parts of them.
 * @param {string} topic its URL
 * @param {string} place the parameter of a request, such as `since=1h`
 * @param {{ signal: AbortSignal, bytesEach: number, onEvent: (event: TopicEvent) => void, onProgress: (progress: Progress) => void }} options
 * `bytesEach` is the mean of the topic's events
 * @returns {Promise<Progress | null>} null if there is nothing
 */
export async function readBack(topic, place, { signal, bytesEach, onEvent, onProgress }) {
  const [begin, newest] = [await ask(topic, `${place}&limit=1`, signal), await ask(topic, "after=-1", signal)];
  const [first, last] = [parsePosition(begin.events[0]?.position ?? ""), newest.events.at(-1)];
  const head = parsePosition(newest.next);
  if (!first || !last || !head || first.epoch !== head.epoch) return null;
  const all = head.offset - first.offset + 1;
  const most = Math.min(EVENTS_MAX, Math.max(PART_EVENTS, Math.floor(BYTES_MAX / Math.max(1, bytesEach))));
  const isWhole = all <= most;
  const limit = isWhole ? PAGE_EVENTS : PART_EVENTS;
  const stride = isWhole ? PAGE_EVENTS : Math.ceil((all * PART_EVENTS) / most);
  const apartMs = isWhole ? 0 : ((last.time - Number(begin.events[0]?.time)) * stride) / all;
  const offsetOf = (/** @type {string} */ position) => parsePosition(position)?.offset ?? head.offset;
  let [read, readTo, next] = [0, first.offset - 1, first.offset - 1];
  /** @type {Progress} */
  let progress = { done: 0, read, all, apartMs };
  /** @type {ReturnType<typeof ask>[]} */
  const asked = [];
  while (asked.length > 0 || next < head.offset) {
    for (; next < head.offset && asked.length < (isWhole ? 1 : PARTS_AT_ONCE); next += stride) {
      const part = ask(topic, `after=${formatPosition({ epoch: head.epoch, offset: next })}&limit=${limit}`, signal);
      part.catch(() => {}); // told when its turn comes
      asked.push(part);
    }
    const page = await asked.shift();
    if (page?.epoch !== head.epoch) break;
    // Where the topic no longer keeps a part, there are later events in its place.
    const events = page.events.filter(({ position }) => offsetOf(position) > readTo);
    for (const event of events) onEvent(event);
    read += events.length;
    readTo = Math.max(readTo, offsetOf(page.next));
    if (isWhole) next = events.length > 0 ? readTo : head.offset; // a page may end early
    progress = { done: Math.min(1, (readTo - first.offset + 1) / all), read, all, apartMs };
    onProgress(progress);
  }
  return { ...progress, done: 1 };
}

/**
 * Reads all events between two times; if there are too many, the first of them.
 * @param {string} topic its URL
 * @param {{ from: number, to: number }} times
 * @param {{ eventsMax: number, bytesMax: number, signal: AbortSignal, onProgress: (done: number) => void }} options
 * `bytesMax` is of their data, each character a byte; `done` is 0 to 1
 */
export async function readBetween(topic, { from, to }, { eventsMax, bytesMax, signal, onProgress }) {
  /** @type {TopicEvent[]} */
  const events = [];
  let bytes = 0;
  for (let place = since(from); ; ) {
    const page = await ask(topic, place, signal);
    for (const event of page.events.filter(({ time }) => time >= from && time <= to)) {
      bytes += bytesOf(event.data);
      if (events.length === eventsMax || bytes > bytesMax) return { events, hasMore: true };
      events.push(event);
    }
    const last = page.events.at(-1);
    if (!last || page.events.every(({ time }) => time > to)) return { events, hasMore: false };
    const begin = Math.max(from, events[0]?.time ?? from);
    onProgress(Math.min(1, (last.time - begin) / Math.max(1, to - begin)));
    place = `after=${page.next}`;
  }
}

/** @param {unknown} data of an event */
function bytesOf(data) {
  return typeof data === "string" ? data.length : JSON.stringify(data).length;
}
