/** Examines the way from this browser to its server: what holds streams back, cuts quiet connections, or lets no WebSocket through. */
import { browser } from "../../transport/environment.js";
import { at } from "../site.js";

/** A beginning that is not there after this time is held back: the server sends it at once. `anemone doctor` has a flag for it. */
const BEGIN_MS_MAX = 8000;
/** The index: every server has it, and its readers get a beginning at once. */
const INDEX = "topics/$topics?after=latest";
/** The path of the multiplexed WebSocket. */
const MULTIPLEXED = "ws";
const SUBPROTOCOL = "anemone.v1";
/** A subprotocol of a topic's WebSocket. */
const EVENTS = "anemone.events";
/** The end of the type of a problem: a handshake that is not that of RFC 6455. */
const BAD_HANDSHAKE = "bad-handshake";
/** The statuses of a refusal that passes, as of a limit of requests (RFC 6585 section 4, RFC 9110 section 15.6.4). */
const BUSY = [429, 503];

/** @typedef {"good" | "fault" | "note" | "unknown"} State */
/** @typedef {{ id: string, state: State, words: string, fault?: string }} Finding `id` is that of the examination, `fault` the key of the fault's rule */
/** @typedef {{ program: string, setting: string }} Remedy */
/**
 * What both doctors have, this one and `anemone doctor`: the same file says it.
 * @typedef {object} Rules
 * @property {Limits} limits
 * @property {Record<string, string>} examinations the words for each
 * @property {readonly { name: string, mark: string }[]} programs
 * @property {Record<string, string>} unknowns why something could not be told
 * @property {Record<string, { words: string, settings: Remedy[] }>} faults
 */
/**
 * @typedef {object} Limits
 * @property {number} answer_ms_max
 * @property {number} held_ms_min a stream that is cut after this time, and some round trips, without a byte was held back; one that is cut sooner was refused
 * @property {number} held_round_trips
 * @property {number} streams at once, more than browsers open to a server over HTTP/1.1
 * @property {number} browser_connections
 * @property {number} poll_pairs the most pairs of polls, of which the second may come from a cache
 * @property {number} early_pairs in so many the second poll has to come too early: once, the first may just have been late
 * @property {number} waited_ms_min a poll that takes less has not waited
 * @property {number} polls_max a server that answers more polls in a time has not waited
 * @property {number} unasked_max what brings so many messages on a WebSocket that was asked for nothing is not the server
 * @property {number} heartbeat_ms_max a stream is not silent for longer: the server sends a heartbeat each 15 s, or as often as it is set to
 */

/** @type {(id: string, words: string) => Finding} */
const good = (id, words) => ({ id, state: "good", words });
/** @type {(id: string, words: string) => Finding} */
const unknown = (id, words) => ({ id, state: "unknown", words });

/** The rules, as the server has them. @returns {Promise<Rules>} */
export async function readRules() {
  return await (await browser.fetch(at("page/lab/rules.json"))).json();
}

/**
 * Makes all examinations, and tells each finding as soon as it is there.
 * @param {{ rules: Rules, waitMs: number, signal: AbortSignal, onFinding: (finding: Finding) => void }} settings
 */
export async function examine({ rules, waitMs, signal, onFinding }) {
  const way = new Way(rules, signal);
  await way.measure();
  const exams = [keepAlive, cache, (/** @type {Way} */ way) => stream(way, "sse", "text/event-stream"), (/** @type {Way} */ way) => stream(way, "ndjson", "application/x-ndjson"), webSocket, origin, connections, (/** @type {Way} */ way) => silence(way, waitMs)];
  for (const exam of exams) {
    if (signal.aborted) return;
    onFinding(await exam(way));
  }
}

/** The way to the server, with the rules by which it is examined. */
class Way {
  /** Its round trip, once it is measured. */
  roundTripMs = 0;
  #rules;

  /** @param {Rules} rules @param {AbortSignal} signal */
  constructor(rules, signal) {
    this.#rules = rules;
    this.signal = signal;
  }

  get limits() {
    return this.#rules.limits;
  }

  /** Measures the round trip. */
  async measure() {
    const begun = browser.now();
    await (await this.ask("health").catch(() => null))?.arrayBuffer().catch(() => null);
    this.roundTripMs = browser.now() - begun;
  }

  /**
   * @param {string} path
   * @param {RequestInit} [init]
   */
  async ask(path, init) {
    return await browser.fetch(at(path), { cache: "no-store", signal: AbortSignal.timeout(this.limits.answer_ms_max), ...init });
  }

  /**
   * The words of a fault.
   * @param {string} fault
   * @param {Record<string, string | number>} [values] what the names in its sentence stand for
   */
  words(fault, values = {}) {
    return filled(this.#rules.faults[fault]?.words ?? fault, values);
  }

  /**
   * @param {string} id
   * @param {string} reason
   * @param {Record<string, string | number>} values
   */
  unknown(id, reason, values) {
    return unknown(id, filled(this.#rules.unknowns[reason] ?? reason, values));
  }

  /**
   * @param {string} id
   * @param {string} fault
   * @param {Record<string, string | number>} [values]
   * @returns {Finding}
   */
  fault(id, fault, values) {
    return { id, state: "fault", words: this.words(fault, values), fault };
  }
}

/** @param {string} words @param {Record<string, string | number>} values what the names in it stand for */
function filled(words, values) {
  return Object.entries(values).reduce((words, [name, value]) => words.replaceAll(`{${name}}`, () => String(value)), words);
}

/**
 * The program that answers, by the name that it gives itself.
 * @param {Rules} rules
 */
export async function programOf({ programs, limits }) {
  const reply = await browser.fetch(at("health"), { cache: "no-store", signal: AbortSignal.timeout(limits.answer_ms_max) }).catch(() => null);
  const fields = `${reply?.headers.get("server") ?? ""} ${reply?.headers.get("via") ?? ""}`.toLowerCase();
  return programs.find(({ mark }) => mark !== "" && fields.includes(mark))?.name;
}

/** What the browser noted of its last request for a path. @param {string} path */
function timingOf(path) {
  const entries = performance.getEntriesByName(at(path), "resource");
  return /** @type {PerformanceResourceTiming | undefined} */ (entries.at(-1));
}

/** @param {Way} way */
async function keepAlive(way) {
  const id = "keep-alive";
  const paths = [1, 2, 3].map((count) => `health?doctor=${count}-${Date.now()}`);
  for (const path of paths) await (await way.ask(path).catch(() => null))?.arrayBuffer();
  const timings = paths.slice(1).map(timingOf);
  if (timings.some((timing) => timing === undefined || timing.nextHopProtocol === "")) return unknown(id, "this browser does not tell");
  const isOpened = timings.every((timing) => timing && timing.connectEnd > timing.connectStart);
  const protocol = timings[0]?.nextHopProtocol;
  return isOpened ? way.fault(id, "keep-alive") : good(id, `requests share a connection (${protocol})`);
}

/**
 * Opens a stream, and waits for its beginning. The caller aborts it.
 * @param {Way} way
 * @param {string} type
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ ms: number, isHeld?: boolean, status?: number, foreign?: string, reader?: ReadableStreamDefaultReader<Uint8Array> }>} the time until its beginning, or until it was given up
 */
async function begin(way, type, signal = way.signal) {
  const begun = browser.now();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), BEGIN_MS_MAX);
  const heldMsMin = way.limits.held_ms_min + way.limits.held_round_trips * way.roundTripMs;
  const ended = () => ({ ms: browser.now() - begun, isHeld: browser.now() - begun >= heldMsMin });
  try {
    const reply = await browser.fetch(at(INDEX), { cache: "no-store", headers: { Accept: type }, signal: AbortSignal.any([signal, late.signal]) });
    const ms = browser.now() - begun;
    if (!reply.ok || !reply.body) return { ms, status: reply.status };
    const found = reply.headers.get("content-type") ?? "";
    if (!found.startsWith(type)) return { ms, foreign: found };
    const reader = reply.body.getReader();
    const { done } = await reader.read();
    return done ? ended() : { ms: browser.now() - begun, reader };
  } catch {
    return ended();
  } finally {
    clearTimeout(timer);
  }
}

/**
 * @param {Way} way
 * @param {string} id
 * @param {string} type
 * @returns {Promise<Finding>}
 */
async function stream(way, id, type) {
  const { ms, isHeld, status, foreign, reader } = await begin(way, type);
  await reader?.cancel().catch(() => {});
  if (foreign !== undefined) return way.fault(id, "foreign", { found: foreign, wanted: type });
  if (status !== undefined) return unknown(id, `the index of topics is refused with status ${status}`);
  if (isHeld) return way.fault(id, "buffered", { seconds: (ms / 1000).toFixed(1) });
  if (!reader) return unknown(id, "the connection was closed before a stream began");
  return good(id, `a stream begins after ${Math.round(ms)} ms`);
}

/**
 * @param {Way} way
 * @param {string} [path]
 * @param {string[]} [subprotocols]
 * @returns {Promise<WebSocket | null>}
 */
async function openSocket(way, path = MULTIPLEXED, subprotocols = [SUBPROTOCOL]) {
  const socket = new browser.WebSocket(at(path).replace(/^http/, "ws"), subprotocols);
  const opened = new Promise((resolve) => {
    socket.onopen = () => resolve(true);
    socket.onerror = () => resolve(false);
    AbortSignal.timeout(way.limits.answer_ms_max).addEventListener("abort", () => resolve(false));
  });
  if (await opened) return socket;
  socket.close();
  return null;
}

/** True if a WebSocket opens, with a subprotocol if one is offered. @type {(way: Way, path?: string, subprotocols?: string[]) => Promise<boolean>} */
async function opens(way, path, subprotocols = [SUBPROTOCOL]) {
  const socket = await openSocket(way, path, subprotocols);
  socket?.close();
  return socket !== null && (subprotocols.length === 0 || subprotocols.includes(socket.protocol));
}

/** @param {Way} way */
async function webSocket(way) {
  const id = "upgrade";
  const begun = browser.now();
  if (await opens(way)) return good(id, `a WebSocket opens after ${Math.round(browser.now() - begun)} ms`);
  // A topic has one that needs no subprotocol, and the server says without an upgrade that it knows the path of the other.
  const why = "this browser does not say why";
  const isTopicOpen = await opens(way, INDEX, []);
  const reply = await way.ask(MULTIPLEXED).catch(() => null);
  if (reply && BUSY.includes(reply.status)) return way.unknown(id, "refused", { status: reply.status });
  if (!isTopicOpen) return way.fault(id, "upgrade", { why });
  if (!reply) return unknown(id, "no answer came");
  const problem = await reply.json().catch(() => null);
  if (!String(problem?.type).endsWith(BAD_HANDSHAKE)) return way.fault(id, "unforwarded");
  if (await opens(way, INDEX, [EVENTS])) return way.fault(id, "upgrade", { why: `one of a topic opens, but at /ws ${why}` });
  return way.fault(id, "subprotocol");
}

/** @typedef {{ body: string, ms: number, age: number }} Polled */
/** @typedef {"anew" | "changed" | "early" | "at once"} Pair what two polls for the same say */

/**
 * Makes polls that wait for a second, each twice: what comes much sooner than the first time, and is the same, comes from a cache.
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
    const second = typeof first === "string" ? first : await poll(way, path);
    if (typeof first === "string" || typeof second === "string") return unknown(id, String(second));
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
 * @returns {Promise<Polled | string>} a string says why there is no answer
 */
async function poll(way, path) {
  const begun = browser.now();
  const reply = await way.ask(path).catch(() => null);
  const body = await reply?.text().catch(() => undefined);
  const ms = browser.now() - begun;
  if (!reply || body === undefined) return "no answer came";
  const type = reply.headers.get("content-type") ?? "";
  if (!reply.ok || !type.startsWith("application/json")) return `a poll is answered with status ${reply.status}, "${type}"`;
  return { body, ms, age: Number(reply.headers.get("age")) || 0 };
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
 * A page's own origin is judged for everything that changes something: the server answers a wrong method, or refuses the origin.
 * @param {Way} way
 */
async function origin(way) {
  const id = "origin";
  const reply = await way.ask("topics/$topics", { method: "POST", headers: { "Content-Type": "application/json" }, body: "null" }).catch(() => null);
  const problem = await reply?.json().catch(() => null);
  if (!reply) return unknown(id, "no answer came");
  if (BUSY.includes(reply.status)) return way.unknown(id, "refused", { status: reply.status });
  const isRefused = String(problem?.type).endsWith("origin-refused");
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

/**
 * Keeps quiet connections, and tells which of them is cut.
 * @param {Way} way
 * @param {number} waitMs
 * @returns {Promise<Finding>}
 */
async function silence(way, waitMs) {
  const id = "idle";
  const { signal } = way;
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), waitMs);
  signal.addEventListener("abort", () => ending.abort());
  const quiet = { "a stream (SSE)": quietStream(way, ending.signal), "a long poll": quietPoll(way, waitMs, ending.signal), "a WebSocket": quietSocket(way, ending.signal) };
  const results = await Promise.all(Object.entries(quiet).map(async ([what, cut]) => ({ what, cut: await cut })));
  clearTimeout(timer);
  const cuts = results.flatMap(({ what, cut }) => (typeof cut === "number" ? [way.words("idle", { what, seconds: (cut / 1000).toFixed(1) })] : []));
  if (cuts.length > 0) return { id, state: "fault", words: cuts.join(", "), fault: "idle" };
  const loud = results.find(({ cut }) => cut === "unasked");
  if (loud) return way.fault(id, "unasked", { what: loud.what, found: `${way.limits.unasked_max} messages came` });
  const silent = results.flatMap(({ what, cut }) => (typeof cut === "object" ? [{ what, seconds: (cut.silentMs / 1000).toFixed(1) }] : []));
  if (silent[0]) return way.unknown(id, "no-heartbeat", silent[0]);
  const held = results.filter(({ cut }) => cut === "held").map(({ what }) => what);
  if (signal.aborted || held.length === 0) return unknown(id, "nothing can be held open");
  const heartbeats = waitMs > way.limits.heartbeat_ms_max && held.includes("a stream (SSE)") ? ", with the server's heartbeats" : "";
  return good(id, `open for ${waitMs / 1000} s${heartbeats}: ${held.join(", ")}`);
}

/** @typedef {"held" | "unknown" | "unasked" | { silentMs: number } | number} Quiet a number: the time in ms after which it was cut; an object: it was silent for so long, which may be as the server is set */

/** The heartbeats of a stream that brings nothing else. All times are since its beginning, in ms. */
export class Heartbeats {
  #newest = 0;
  #newestHeartbeat = 0;
  /** The longest time until one came. @type {number | undefined} */
  #longest;

  /** @param {number} at @param {string} text */
  receive(at, text) {
    this.#newest = at;
    // A heartbeat is a comment, and nothing else on a stream is.
    if (!/^:/m.test(text)) return;
    this.#longest = Math.max(this.#longest ?? 0, at - this.#newestHeartbeat);
    this.#newestHeartbeat = at;
  }

  /** The silence until `end`. @param {number} end */
  silence(end) {
    return end - this.#newest;
  }

  /**
   * Judges the silence until the end of the time.
   * @param {number} end
   * @param {Pick<Limits, "heartbeat_ms_max">} limits
   * @returns {Quiet}
   */
  judge(end, { heartbeat_ms_max }) {
    const silentMs = this.silence(end);
    if (silentMs <= heartbeat_ms_max) return "held";
    if (this.#longest === undefined) return { silentMs };
    // A connection that was dropped without a word brings no heartbeat either.
    return silentMs > (this.#longest * 4) / 3 ? silentMs : "held";
  }
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
  const [begun, heartbeats, decoder] = [browser.now(), new Heartbeats(), new TextDecoder()];
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) heartbeats.receive(browser.now() - begun, decoder.decode(read.value));
  } catch {
    // Cut, or the time is over.
  }
  const end = browser.now() - begun;
  return signal.aborted ? heartbeats.judge(end, way.limits) : heartbeats.silence(end);
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
      return [408, 502, 504].includes(status) ? browser.now() - asked : "unknown";
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
  if (!socket) return "unknown";
  const quiet = await quietOf(socket, way.limits, signal);
  socket.close();
  return quiet;
}

/**
 * Waits until an open WebSocket is closed, until so much comes that nobody asked for, or until `signal`.
 * @param {Pick<WebSocket, "onclose" | "onmessage">} socket
 * @param {Pick<Limits, "unasked_max">} limits
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
export function quietOf(socket, { unasked_max }, signal) {
  const begun = browser.now();
  let messages = 0;
  return new Promise((resolve) => {
    socket.onclose = () => resolve(browser.now() - begun);
    socket.onmessage = () => {
      messages += 1;
      if (messages === unasked_max) resolve("unasked");
    };
    if (signal.aborted) resolve("held");
    signal.addEventListener("abort", () => resolve("held"));
  });
}
