/** Examines the way from this browser to its server: finds a proxy that holds streams back, cuts quiet connections, or lets no WebSocket through. */
import { browser } from "../../transport/environment.js";
import { at } from "../site.js";
import { silence } from "./quiet.js";
import { INDEX, MULTIPLEXED, SUBPROTOCOL, Way, begin, good, openSocket, unknown } from "./way.js";

/** A subprotocol of a topic's WebSocket. */
const EVENTS = "anemone.events";
/** The end of the type of the problem for a handshake that is not that of RFC 6455. */
const BAD_HANDSHAKE = "bad-handshake";
const RULES_MS_MAX = 20_000;

/** @typedef {import("./way.js").Rules} Rules */
/** @typedef {import("./way.js").Limits} Limits */
/** @typedef {import("./way.js").Known} Known */
/** @typedef {import("./way.js").Finding} Finding */

/** The rules, as the server has them. @returns {Promise<Rules>} */
export async function readRules() {
  return await (await browser.fetch(at("page/lab/rules.json"), { signal: AbortSignal.timeout(RULES_MS_MAX) })).json();
}

/** @type {readonly [string, (way: Way) => Promise<Finding>][]} */
const EXAMINATIONS = [
  ["keep-alive", keepAlive],
  ["cache", cache],
  ["sse", (way) => stream(way, "sse", "text/event-stream")],
  ["ndjson", (way) => stream(way, "ndjson", "application/x-ndjson")],
  ["upgrade", webSocket],
  ["origin", origin],
  ["connections", connections],
];

/**
 * Makes all examinations, and reports each finding as soon as it is there. Stops when two had no answer, so that the server seems to stall,
 * or when the server has gone. Findings of silence before that are dropped, since they then say nothing about the way.
 * @param {{ rules: Rules, known: Known, waitMs: number, signal: AbortSignal, onFinding: (finding: Finding) => void }} settings
 */
export async function examine({ rules, known, waitMs, signal, onFinding }) {
  let way = new Way(rules, known, signal);
  const msMax = rules.limits.late_answers * way.answerMs + rules.limits.late_begins * way.beginMs;
  /** @type {Promise<"late">} */
  const late = new Promise((resolve) => AbortSignal.timeout(msMax).addEventListener("abort", () => resolve("late")));
  /** @type {Finding[]} */
  const silent = [];
  for (const [id, examination] of EXAMINATIONS) {
    if (signal.aborted) return;
    const found = await Promise.race([judged(way, examination(way).catch((error) => noAnswer(id, isTimeout(error)))), late]);
    if (typeof found === "string") return onFinding(way.endedBy(found, { seconds: (msMax / 1000).toFixed(0) }));
    silent.push(found);
    if (found.isSilent) {
      // Streams that are held back are as silent, and say nothing about the others.
      if (found.fault !== "buffered") way = way.hasty();
    } else {
      silent.splice(0).forEach(onFinding);
    }
  }
  silent.forEach(onFinding);
  if (signal.aborted) return;
  const last = await judged(way, silence(way, waitMs));
  onFinding(typeof last === "string" ? way.endedBy(last) : last);
}

/**
 * Returns the finding of an examination, or the reason to stop: if the server has gone or stalls, the finding says nothing about the way.
 * @param {Way} way
 * @param {Promise<Finding>} examination
 * @returns {Promise<Finding | "gone" | "silent">}
 */
async function judged(way, examination) {
  let finding = await examination;
  const isDoubtful = !finding.isSilent && (finding.state === "fault" || finding.state === "unknown");
  const presence = isDoubtful ? await presenceOf(way) : "there";
  if (presence === "gone") return "gone";
  if (presence === "silent") finding = noAnswer(finding.id, true);
  return finding.isSilent && way.isHasty ? "silent" : finding;
}

/**
 * Checks whether the server, which has answered before, is still there. It has gone if it cannot be connected to, or if a proxy says so.
 * @param {Way} way
 * @returns {Promise<"there" | "gone" | "silent">}
 */
async function presenceOf(way) {
  try {
    const { status } = await way.hasty().ask("health");
    return way.statuses["gave-up"].includes(status) ? "gone" : "there";
  } catch (error) {
    if (way.signal.aborted) return "there";
    return isTimeout(error) ? "silent" : "gone";
  }
}

/** @param {unknown} error */
function isTimeout(error) {
  return error instanceof Error && error.name === "TimeoutError";
}

/**
 * @param {string} id
 * @param {boolean} isSilent
 * @returns {Finding}
 */
function noAnswer(id, isSilent) {
  return { ...unknown(id, "no answer came"), isSilent };
}

/**
 * Requests the health of the server. The examinations need the round trip, and the program that answered.
 * @param {Rules} rules
 * @returns {Promise<Known>}
 */
export async function reach(rules) {
  try {
    const { ms, headers } = await new Way(rules, { roundTripMs: 0 }).ask("health");
    const fields = `${headers.get("server") ?? ""} ${headers.get("via") ?? ""}`.toLowerCase();
    const program = rules.programs.find(({ mark }) => mark !== "" && fields.includes(mark))?.name;
    return { roundTripMs: ms, program };
  } catch {
    return { roundTripMs: 0 };
  }
}

/** Returns the browser's times of its last request for a path. @param {string} path */
function timingOf(path) {
  const entries = performance.getEntriesByName(at(path), "resource");
  return /** @type {PerformanceResourceTiming | undefined} */ (entries.at(-1));
}

/** @param {Way} way */
async function keepAlive(way) {
  const id = "keep-alive";
  const paths = [1, 2, 3].map((count) => `health?doctor=${count}-${Date.now()}`);
  for (const path of paths) await way.ask(path);
  const timings = paths.slice(1).map(timingOf);
  if (timings.some((timing) => timing === undefined || timing.nextHopProtocol === "")) return unknown(id, "this browser does not tell");
  const isOpened = timings.every((timing) => timing && timing.connectEnd > timing.connectStart);
  const protocol = timings[0]?.nextHopProtocol;
  return isOpened ? way.fault(id, "keep-alive") : good(id, `requests share a connection (${protocol})`);
}

/**
 * @param {Way} way
 * @param {string} id
 * @param {string} type
 * @returns {Promise<Finding>}
 */
export async function stream(way, id, type) {
  const { ms, isHeld, status, foreign, reader } = await begin(way, type);
  await reader?.cancel().catch(() => {});
  if (foreign !== undefined) return way.fault(id, "foreign", { found: foreign, wanted: type });
  if (status !== undefined) return unknown(id, `the index of topics is refused with status ${status}`);
  if (isHeld) return { ...buffered(way, id, ms), isSilent: true };
  if (!reader) return way.unknown(id, "unbegun", {});
  const delayMs = await delay(way, type, ms);
  return delayMs === null ? good(id, `a stream begins after ${Math.round(ms)} ms`) : delayed(way, id, delayMs);
}

/** @param {Way} way @param {string} id @param {number} ms */
function buffered(way, id, ms) {
  return way.fault(id, "buffered", { what: "no whole item of a stream", seconds: (ms / 1000).toFixed(1), when: "at once" });
}

/**
 * Judges a stream that is delayed. A short delay is only a note; after a long one, the stream is held back.
 * @param {Way} way
 * @param {string} id
 * @param {number} delayMs
 * @returns {Finding}
 */
export function delayed(way, id, delayMs) {
  if (delayMs >= way.limits.delayed_ms_max) return buffered(way, id, delayMs);
  return { ...way.fault(id, "delayed", { ms: Math.round(delayMs), looks: way.limits.delayed_looks }), state: "note" };
}

/** @typedef {{ answerMs: number, beginningMs: number }} Look one answer and one beginning of a stream, each with its time */

/**
 * Looks again at a stream that began late, and returns its delay if all streams have it.
 * @param {Way} way
 * @param {string} type
 * @param {number} firstMs
 * @returns {Promise<number | null>}
 */
async function delay(way, type, firstMs) {
  /** @type {Look[]} */
  const looks = [];
  for (let newestMs = firstMs; newestMs >= way.limits.delayed_ms_min; ) {
    const answer = await way.ask("health").catch(() => null);
    if (!answer) return null;
    looks.push({ answerMs: answer.ms, beginningMs: newestMs });
    if (areEnough(looks, way.limits)) return delayOf(looks, way.limits);
    const { ms, isHeld, reader } = await begin(way, type);
    // What is held back begins no sooner.
    if (!reader && !isHeld) return null;
    await reader?.cancel().catch(() => {});
    newestMs = ms;
  }
  return null;
}

/**
 * Returns true if there are enough looks. With delays of seconds, few are enough, but at least two.
 * @param {readonly Look[]} looks
 * @param {Pick<Limits, "delayed_ms_min" | "delayed_looks" | "delays_ms_enough">} limits
 */
export function areEnough(looks, limits) {
  const delaysMs = (delayOf(looks, limits) ?? 0) * looks.length;
  return looks.length >= limits.delayed_looks || (looks.length > 1 && delaysMs >= limits.delays_ms_enough);
}

/**
 * Returns the delay of streams compared with other answers; null if there is none. The fastest of both count: a busy machine delays some,
 * but a proxy delays all.
 * @param {readonly Look[]} looks
 * @param {Pick<Limits, "delayed_ms_min">} limits
 */
export function delayOf(looks, { delayed_ms_min }) {
  const [answerMs, beginningMs] = [Math.min(...looks.map((look) => look.answerMs)), Math.min(...looks.map((look) => look.beginningMs))];
  return beginningMs - answerMs >= delayed_ms_min ? beginningMs - answerMs : null;
}

/** Returns "open" if a WebSocket opens, with a subprotocol if one is offered. @param {Way} way @param {string} [path] @param {string[]} [subprotocols] */
async function opens(way, path, subprotocols = [SUBPROTOCOL]) {
  const socket = await openSocket(way, path, subprotocols);
  if (typeof socket === "string") return socket;
  socket.close();
  return subprotocols.length === 0 || subprotocols.includes(socket.protocol) ? "open" : "closed";
}

/** @param {Way} way @returns {Promise<Finding>} */
async function webSocket(way) {
  const id = "upgrade";
  const begun = browser.now();
  const found = await opens(way);
  if (found === "open") return good(id, `a WebSocket opens after ${Math.round(browser.now() - begun)} ms`);
  const isSilent = found === "silent";
  return { ...(await whyClosed(isSilent ? way.hasty() : way, id)), isSilent };
}

/**
 * Finds out why no multiplexed WebSocket opens. Tries the WebSocket of a topic, which needs no subprotocol, and a request to the
 * multiplexed path without an upgrade.
 * @param {Way} way
 * @param {string} id
 * @returns {Promise<Finding>}
 */
async function whyClosed(way, id) {
  const why = "this browser does not say why";
  const ofTopic = await opens(way, INDEX, []);
  const reply = await way.ask(MULTIPLEXED).catch(() => null);
  if (reply && way.statuses.busy.includes(reply.status)) return way.unknown(id, "refused", { status: reply.status });
  if (ofTopic !== "open") return way.fault(id, "upgrade", { why });
  if (!reply) return unknown(id, "no answer came");
  if (!problemOf(reply).endsWith(BAD_HANDSHAKE)) return way.fault(id, "unforwarded");
  if ((await opens(way, INDEX, [EVENTS])) === "open") return way.fault(id, "upgrade", { why: `one of a topic opens, but at /ws ${why}` });
  return way.fault(id, "subprotocol");
}

/** The type of a problem (RFC 9457), if an answer is one. @param {{ text: string }} reply */
function problemOf({ text }) {
  try {
    return String(JSON.parse(text)?.type);
  } catch {
    return "";
  }
}

/** @typedef {{ body: string, ms: number, age: number }} Polled */
/** @typedef {"anew" | "changed" | "early" | "at once"} Pair what two polls for the same say */

/**
 * Makes polls that wait for a second, each twice. A second reply that is the same and comes much sooner is from a cache.
 * @param {Way} way
 * @returns {Promise<Finding>}
 */
async function cache(way) {
  const id = "cache";
  const { poll_pairs, early_pairs } = way.limits;
  /** @type {Record<Pair, number>} */
  const counts = { anew: 0, changed: 0, early: 0, "at once": 0 };
  for (let count = 0; count < poll_pairs; count += 1) {
    // Parts of a millisecond, which make no difference to the server: no cache has an answer for it.
    const path = `${INDEX}&wait=1.000${String((Date.now() * 10 + count) % 1e6).padStart(6, "0")}`;
    const first = await poll(way, path);
    if (typeof first === "string") return unknown(id, first);
    const second = await poll(way, path);
    if (typeof second === "string") return unknown(id, second);
    const age = Math.max(first.age, second.age);
    if (age > 0) return way.fault(id, "cached", { how: `with Age: ${age}` });
    const pair = judgePair(first, second, way.limits);
    if (pair === "anew") return good(id, "each poll is answered anew");
    counts[pair] += 1;
    if (counts.early === early_pairs) return way.fault(id, "cached", { how: `after ${Math.round(second.ms)} ms with the answer of the one before, which took ${Math.round(first.ms)} ms` });
  }
  return unknown(id, counts["at once"] > 0 ? "the server answers polls at once, so a cache cannot be told from it" : "topics are created or deleted all the time");
}

/**
 * @param {Way} way
 * @param {string} path
 * @returns {Promise<Polled | string>} a string says why this is no answer
 */
async function poll(way, path) {
  const { status, headers, text: body, ms } = await way.ask(path);
  const type = headers.get("content-type") ?? "";
  if (status !== 200 || !type.startsWith("application/json")) return `a poll is answered with status ${status}, "${type}"`;
  return { body, ms, age: Number(headers.get("age")) || 0 };
}

/**
 * @param {Polled} first
 * @param {Polled} second
 * @param {Pick<Limits, "waited_ms_min">} limits
 * @returns {Pair}
 */
export function judgePair(first, second, { waited_ms_min }) {
  // A server may be set to wait for less than it is asked to.
  if (second.ms >= waited_ms_min && 2 * second.ms >= first.ms) return "anew";
  if (first.body !== second.body) return "changed";
  return first.ms >= waited_ms_min ? "early" : "at once";
}

/**
 * Checks whether the server accepts the page's own origin, with a wrong method: the server refuses the method, or the origin.
 * @param {Way} way
 */
async function origin(way) {
  const id = "origin";
  const reply = await way.ask("topics/$topics", { method: "POST", headers: { "Content-Type": "application/json" }, body: "null" });
  if (way.statuses.busy.includes(reply.status)) return way.unknown(id, "refused", { status: reply.status });
  const isRefused = problemOf(reply).endsWith("origin-refused");
  return isRefused ? way.fault(id, "origin", { origin: location.origin }) : good(id, `pages of ${location.origin} are the server's own`);
}

/**
 * @param {Way} way
 * @returns {Promise<Finding>}
 */
async function connections(way) {
  const id = "connections";
  const { streams, browser_connections } = way.limits;
  const all = await Promise.all(Array.from({ length: streams }, () => begin(way, "text/event-stream")));
  const count = all.filter(({ reader }) => reader).length;
  await Promise.all(all.map(async ({ reader }) => await reader?.cancel().catch(() => {})));
  if (count === streams) return good(id, `${streams} streams at once get through`);
  if (count === 0) return unknown(id, "no stream begins");
  if (count < browser_connections) return way.fault(id, "connections", { open: count, all: streams });
  return { id, state: "note", words: `${count} of ${streams} streams at once get through: this browser opens no more connections to a server over HTTP/1.1. HTTP/2, which needs TLS, has no such limit; the tabs of Anemone's own client share one connection` };
}

