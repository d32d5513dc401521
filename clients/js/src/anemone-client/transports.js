/**
 * The ways to read over HTTP. Each reads until the signal aborts, and passes on the items that the server sends. It fails with an
 * AnemoneError, and returns when the topic has ended.
 */
import { JSON_TYPE, text } from "./body.js";
import { REPLY_MAX, tooLong } from "./bound.js";
import { AnemoneError, foreign, parse, words } from "./error.js";
import { formatPosition, parsePosition } from "./position.js";
import { ask, bytesOf, pieces } from "./request.js";
import { now, sleep } from "./time.js";

/** The shortest time of a long poll. One without news takes longer. */
const BRIEF_MS = 500;

/** @typedef {import("./types.js").StreamRequest} StreamRequest */

/** @type {Record<string, (request: StreamRequest) => Promise<void>>} */
export const TRANSPORTS = {
  sse: async (request) => {
    let [id, time, name, data, retry] = ["", "", "", "", ""];
    for await (const { line, received } of lines(request, "text/event-stream")) {
      const [, field, value = ""] = /^([^:]*):? ?(.*)/s.exec(line) ?? [];
      if (line !== "") {
        if (field === "id") id = value;
        else if (field === "time") time = value;
        else if (field === "event") name = value;
        else if (field === "data") data += value;
        if (data.length > REPLY_MAX) throw tooLong();
        else if (field === "retry") retry = value;
        continue;
      }
      if (name || (data && request.isOfMany)) request.take(object(data), received);
      else if (data) request.take({ position: id, time: Number(time), data: parse(data) }, received);
      else if (id) request.take({ position: id }, received);
      // After its event: before there is a position, nothing is open.
      if (/^\d+$/.test(retry)) request.take({ retry: Number(retry) }, received);
      [id, time, name, data, retry] = ["", "", "", "", ""];
    }
  },

  ndjson: async (request) => {
    for await (const { line, received } of lines(request, "application/x-ndjson")) request.take(object(line), received);
  },

  "long-poll": async (request) => {
    // The first request does not wait, so that a success is known at once.
    const { waitSeconds, pollMs } = request.link.options;
    let wait = 0;
    for (let pages = 0; ; pages += 1) {
      const asked = now();
      const places = request.target({});
      const events = await page(request, pages, { wait });
      if (!events) return;
      const isNews = events[0] && request.target({}) !== places;
      // What does not wait, such as a proxy that drops the parameter, is polled.
      if (!isNews && (waitSeconds === 0 || now() - asked < Math.min(BRIEF_MS, wait * 500))) await sleep(pollMs, request.signal);
      wait = waitSeconds;
    }
  },

  poll: async (request) => {
    for (let pages = 0; await page(request, pages, {}); pages += 1) await sleep(request.link.options.pollMs, request.signal);
  },
};

/**
 * @param {string} line
 * @returns {import("./types.js").Item}
 */
function object(line) {
  const item = parse(line);
  if (typeof item === "object" && item) return item;
  // An event whose data is not JSON has its place in front.
  const [, topic, position] = /^\{(?:"topic":"([^"]+)",)?"position":"([^"]+)",/.exec(line) ?? [];
  if (!position) throw foreign("a line that is not JSON");
  return { topic, position, time: 0 };
}

/**
 * @param {StreamRequest} request
 * @param {string} accept
 */
async function* lines({ link, target, signal, take }, accept) {
  const reply = await ask(link, { target: target({}), fields: { accept } }, signal);
  let isBegun = false;
  for await (const { lines, received } of pieces(reply, accept, signal)) {
    for (const line of lines) {
      yield { line, received };
      isBegun ||= line === "" || line[0] === "{"; // the first event of SSE, or the first line of NDJSON, has a position
    }
    if (isBegun) take({}, received); // also a heartbeat is a sign of life, to every topic of the stream
  }
  throw new AnemoneError("lost", "the reply has ended");
}

/**
 * Requests one page; returns its events, or nothing at the end of the topic.
 * @param {StreamRequest} request
 * @param {number} pages that came before
 * @param {object} parameters
 */
export async function page({ link, target, signal, take, isOfMany, losses }, pages, parameters) {
  // Where connections break, a page has to be small to come through; streams do not mind. Each that comes makes the next one larger.
  const small = Math.min(5, losses()) - pages;
  const limit = small > 0 && { limit: Math.max(1, 1000 >> (2 * small)) };
  const reply = await ask(link, { target: target({ ...parameters, ...limit }), fields: { accept: JSON_TYPE } }, signal);
  const body = await bytesOf(reply, signal);
  const received = now();
  const found = parse(text(body));
  try {
    const { next, end, events } = found;
    if (!words(next)) throw foreign("");
    for (const item of isOfMany ? itemsOfMany(found) : itemsOf(found)) take(item, received);
    take({ position: next, end }, received);
    return !signal.aborted && !end && events;
  } catch {
    throw foreign("a reply that is no page");
  }
}

/** @param {import("./types.js").PageOfMany} page */
function itemsOfMany({ notices = [], events }) {
  if (!events.every(({ topic, position }) => topic && parsePosition(position ?? ""))) throw foreign("");
  return [...notices, ...events];
}

/**
 * @param {import("./types.js").Page} page
 * @returns {import("./types.js").Item[]}
 */
function itemsOf({ epoch, gap, skipped, events }) {
  const items = events.map(({ offset, time, data }) => ({ position: formatPosition({ epoch, offset }), time, data }));
  return [{ gap, skipped }, ...items];
}
