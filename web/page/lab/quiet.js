/** Quiet connections, which something on the way may cut after a time. */
import { browser } from "../../transport/environment.js";
import { at } from "../site.js";
import { INDEX, begin, good, openSocket } from "./way.js";

/** The words for a proxy that closes a WebSocket as soon as it is open. */
const NO_WEBSOCKET = "what came is no WebSocket";

/** @typedef {import("./way.js").Way} Way */
/** @typedef {import("./way.js").Limits} Limits */
/** @typedef {import("./way.js").Finding} Finding */

/**
 * Keeps quiet connections, and tells which of them is cut.
 * @param {Way} way
 * @param {number} waitMs
 * @returns {Promise<Finding>}
 */
export async function silence(way, waitMs) {
  const id = "idle";
  const { signal } = way;
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), waitMs);
  signal.addEventListener("abort", () => ending.abort());
  const quiet = { "a stream (SSE)": quietStream(way, ending.signal), "a long poll": quietPoll(way, waitMs, ending.signal), "a WebSocket": quietSocket(way, ending.signal) };
  const results = await Promise.all(Object.entries(quiet).map(async ([what, cut]) => ({ what, cut: await cut })));
  clearTimeout(timer);
  const words = results.flatMap(({ what, cut }) => {
    if (typeof cut === "number") return [way.words("idle", { what, how: `after ${seconds(cut)} s of silence` })];
    if (typeof cut !== "object" || "unasked" in cut) return [];
    if (cut.heardMs === undefined) return [way.words("buffered", { what: `no heartbeat of ${what}`, seconds: seconds(cut.silentMs), when: "at least every 15 s" })];
    return [way.words("idle", { what, how: `without a word: it was last heard after ${seconds(cut.heardMs)} s, and then silent for ${seconds(cut.silentMs)} s` })];
  });
  const isCut = results.some(({ cut }) => typeof cut === "number" || (typeof cut === "object" && "heardMs" in cut));
  if (words.length > 0) return { id, state: "fault", words: words.join(", "), fault: isCut ? "idle" : "buffered" };
  const loud = results.flatMap(({ what, cut }) => (typeof cut === "object" && "unasked" in cut ? [{ what, found: cut.unasked }] : []));
  if (loud[0]) return way.fault(id, "unasked", loud[0]);
  const closed = results.find(({ cut }) => cut === "at once");
  if (closed) return way.unknown(id, "at-once", { what: closed.what });
  const held = results.filter(({ cut }) => cut === "held").map(({ what }) => what);
  if (signal.aborted || held.length === 0) return way.unknown(id, "none-held", {});
  const heartbeats = waitMs > way.limits.heartbeat_ms_max && held.includes("a stream (SSE)") ? ", with the server's heartbeats" : "";
  return good(id, `open for ${waitMs / 1000} s${heartbeats}: ${held.join(", ")}`);
}

/** @param {number} ms */
const seconds = (ms) => (ms / 1000).toFixed(1);

/** @typedef {"held" | "unknown" | "at once" | { unasked: string } | { silentMs: number, heardMs?: number } | number} Quiet a number: the time in ms after which it was cut; at once: it was not open for so long that it was silent; `unasked`: this came, for which nobody asked; `silentMs`: it stands, but not even heartbeats came for so long; `heardMs`: they came until so long after its beginning, so it was dropped without a word */

/**
 * Judges a stream that is still open. `heardMs` is the time from its beginning to its last byte, `silentMs` the time since then.
 * @param {number} heardMs
 * @param {number} silentMs
 * @param {Pick<Way, "heldMsMin"> & { limits: Pick<Limits, "heartbeat_ms_max"> }} way
 * @returns {Quiet}
 */
export function ofSilence(heardMs, silentMs, { heldMsMin, limits }) {
  if (silentMs <= limits.heartbeat_ms_max) return "held";
  // What comes sooner is the rest of the beginning, and no heartbeat.
  return heardMs > heldMsMin ? { silentMs, heardMs } : { silentMs };
}

/**
 * @param {Way} way
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
async function quietStream(way, signal) {
  const { reader } = await begin(way, "text/event-stream", signal);
  if (!reader) return "unknown";
  signal.addEventListener("abort", () => void reader.cancel().catch(() => {}));
  const begun = browser.now();
  let newest = begun;
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) newest = browser.now();
  } catch {
    // Cut, or the time is over.
  }
  const silentMs = browser.now() - newest;
  return signal.aborted ? ofSilence(newest - begun, silentMs, way) : silentMs;
}

/**
 * @param {Way} way
 * @param {number} waitMs
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
async function quietPoll(way, waitMs, signal) {
  const begun = browser.now();
  let asked = begun;
  try {
    for (let answers = 0; answers < way.limits.polls_max; answers += 1) {
      asked = browser.now();
      const left = waitMs - (asked - begun);
      if (left <= 0) return "held";
      const { status } = await browser.fetch(at(INDEX), { cache: "no-store", redirect: "manual", headers: { Prefer: `wait=${Math.ceil(left / 1000)}` }, signal });
      // The server has waited as long as it does, or a topic is new: the next poll goes on.
      if (status === 200) continue;
      // What a proxy says when it gives up.
      return way.statuses["gave-up"].includes(status) ? browser.now() - asked : "unknown";
    }
    return "unknown";
  } catch {
    return signal.aborted ? "held" : browser.now() - asked;
  }
}

/**
 * @param {Way} way
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
async function quietSocket(way, signal) {
  const socket = await openSocket(way);
  if (typeof socket === "string") return "unknown";
  const quiet = await quietOf(socket, way.limits, signal);
  socket.close();
  return quiet;
}

/**
 * Waits until an open WebSocket is closed, until so much comes that nobody asked for, or until `signal`.
 * @param {Pick<WebSocket, "onclose" | "onerror" | "onmessage">} socket
 * @param {Pick<Limits, "unasked_max" | "held_ms_min">} limits
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
export function quietOf(socket, { unasked_max, held_ms_min }, signal) {
  const begun = browser.now();
  let [messages, isFailed] = [0, false];
  return new Promise((resolve) => {
    // Browsers report an error for most of what is no frame. Some do for a connection that is cut, too, but that is later.
    socket.onerror = () => (isFailed = true);
    socket.onclose = () => {
      const ms = browser.now() - begun;
      resolve(ms >= held_ms_min ? ms : isFailed ? { unasked: NO_WEBSOCKET } : "at once");
    };
    socket.onmessage = () => {
      messages += 1;
      if (messages === unasked_max) resolve({ unasked: `${messages} messages came` });
    };
    if (signal.aborted) resolve("held");
    signal.addEventListener("abort", () => resolve("held"));
  });
}
