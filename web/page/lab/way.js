/** The way to the server, which is examined by the same rules as in `anemone doctor`. */
import { browser } from "../../transport/environment.js";
import { at } from "../site.js";

/** The index: every server has it, and its readers get a beginning at once. */
export const INDEX = "topics/$topics?after=latest";
/** The path of the multiplexed WebSocket. */
export const MULTIPLEXED = "ws";
export const SUBPROTOCOL = "anemone.v1";

/** @typedef {"good" | "fault" | "note" | "unknown"} State */
/** @typedef {{ id: string, state: State, words: string, fault?: string, isSilent?: boolean, isGone?: boolean }} Finding `id` is that of the examination, `fault` the key of the fault's rule; silent if nothing came before the time was over; gone if the server has */
/** @typedef {{ program: string, setting: string }} Remedy */
/**
 * The rules of both doctors, this one and `anemone doctor`: the same file has them.
 * @typedef {object} Rules
 * @property {Limits} limits
 * @property {Record<string, string>} examinations the words for each
 * @property {readonly { name: string, mark: string }[]} programs
 * @property {{ busy: readonly number[], "gave-up": readonly number[] }} statuses of a refusal that passes, as of a limit of requests (RFC 6585 section 4, RFC 9110 section 15.6.4), and of a proxy that waits no longer
 * @property {Record<EarlyEnd, string>} ends the words for each reason to leave the rest out
 * @property {Record<string, string>} unknowns why something could not be told
 * @property {Record<string, { words: string, settings: Remedy[] }>} faults
 */
/** @typedef {"silent" | "gone" | "late"} EarlyEnd a reason to leave the rest out: two examinations got no answer, the server has gone, or the examinations took too long */
/**
 * @typedef {object} Limits
 * @property {number} answer_ms_max
 * @property {number} late_answers the waits for an answer in the time limit of all examinations but that of silence
 * @property {number} late_begins the waits for the beginning of a stream in the time limit of all examinations but that of silence
 * @property {number} begin_ms_max a stream that has not begun after this time, and some round trips, is held back: the server sends its beginning at once
 * @property {number} held_ms_min a stream that is cut after this time, and some round trips, before its first item was held back; one that is cut sooner was refused
 * @property {number} held_round_trips
 * @property {number} delayed_ms_min a stream that begins so much later than another answer is delayed: Linux keeps for 200 ms what a program says it will add to
 * @property {number} delayed_ms_max a stream that is delayed for so long is held back
 * @property {number} delayed_looks in so many in a row it has to be found: a busy machine is late in some
 * @property {number} delays_ms_enough delays of so long together, of two looks or more, are enough, too
 * @property {number} item_bytes_max a first item that is longer counts as whole
 * @property {number} streams at once, more than browsers open to a server over HTTP/1.1
 * @property {number} browser_connections
 * @property {number} poll_pairs the most pairs of polls, of which the second may come from a cache
 * @property {number} early_pairs in so many the second poll has to come too early: once, the first may just have been late
 * @property {number} waited_ms_min a poll that takes less has not waited
 * @property {number} polls_max a server that answers more polls in a time has not waited
 * @property {number} unasked_max what brings so many messages on a WebSocket that was asked for nothing is not the server
 * @property {number} heartbeat_ms_max a stream is not silent for longer: the server sends a heartbeat each 15 s, or more often
 */

/** @typedef {{ roundTripMs: number, program?: string, isHasty?: boolean }} Known `program` is the one that answers, by the name that it gives itself; in haste, no answer is waited for longer than a stream */

/** @type {(id: string, words: string) => Finding} */
export const good = (id, words) => ({ id, state: "good", words });
/** @type {(id: string, words: string) => Finding} */
export const unknown = (id, words) => ({ id, state: "unknown", words });

/** The way to the server, with the rules by which it is examined. */
export class Way {
  #rules;
  #roundTripMs;

  /** @param {Rules} rules @param {Known} known @param {AbortSignal} [signal] */
  constructor(rules, { roundTripMs, isHasty = false }, signal = new AbortController().signal) {
    this.#rules = rules;
    this.#roundTripMs = roundTripMs;
    this.isHasty = isHasty;
    this.signal = signal;
  }

  /** Returns this way with a shorter wait for answers, for requests after a silence. */
  hasty() {
    return new Way(this.#rules, { roundTripMs: this.#roundTripMs, isHasty: true }, this.signal);
  }

  get limits() {
    return this.#rules.limits;
  }

  get statuses() {
    return this.#rules.statuses;
  }

  /** Some round trips, which are added to limits of time. */
  get #roundTripsMs() {
    return this.limits.held_round_trips * this.#roundTripMs;
  }

  /** The longest wait for the beginning of a stream. */
  get beginMs() {
    return this.limits.begin_ms_max + this.#roundTripsMs;
  }

  /** The time after which a stream without an item counts as held back. An item that comes later is not its beginning. */
  get heldMsMin() {
    return this.limits.held_ms_min + this.#roundTripsMs;
  }

  /** The longest wait for an answer. */
  get answerMs() {
    return this.isHasty ? Math.min(this.limits.answer_ms_max, this.beginMs) : this.limits.answer_ms_max;
  }

  /**
   * Makes a request, and reads the whole answer.
   * @param {string} path
   * @param {RequestInit} [init]
   */
  async ask(path, init) {
    const begun = browser.now();
    const signal = AbortSignal.any([this.signal, AbortSignal.timeout(this.answerMs)]);
    const reply = await browser.fetch(at(path), { cache: "no-store", signal, ...init });
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, text, ms: browser.now() - begun };
  }

  /**
   * Returns the finding with the reason why the examinations ended early.
   * @param {EarlyEnd} end
   * @param {Record<string, string | number>} [values]
   * @returns {Finding}
   */
  endedBy(end, values = {}) {
    return { id: "reach", state: "fault", words: filled(this.#rules.ends[end], values), isGone: end === "gone" };
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
 * Opens a stream, and waits for its beginning. The caller aborts it.
 * @param {Way} way
 * @param {string} type
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ ms: number, isHeld?: boolean, status?: number, foreign?: string, reader?: ReadableStreamDefaultReader<Uint8Array> }>} the time until its beginning, or until it was given up; `isHeld` if its first item did not come for so long
 */
export async function begin(way, type, signal = way.signal) {
  const begun = browser.now();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), way.beginMs);
  const ended = () => ({ ms: browser.now() - begun, isHeld: browser.now() - begun >= way.heldMsMin });
  try {
    const reply = await browser.fetch(at(INDEX), { cache: "no-store", headers: { Accept: type }, signal: AbortSignal.any([signal, late.signal]) });
    const ms = browser.now() - begun;
    if (!reply.ok || !reply.body) return { ms, status: reply.status };
    const found = reply.headers.get("content-type") ?? "";
    if (!found.startsWith(type)) return { ms, foreign: found };
    const reader = reply.body.getReader();
    return (await hasItem(reader, type, way.limits)) ? { ms: browser.now() - begun, reader } : ended();
  } catch {
    return ended();
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits until the first item of a stream is complete. A proxy may let its first bytes through, and hold back its end.
 * @param {ReadableStreamDefaultReader<Uint8Array>} reader
 * @param {string} type
 * @param {Pick<Limits, "item_bytes_max">} limits
 * @returns {Promise<boolean>} false if the stream ends before
 */
async function hasItem(reader, type, { item_bytes_max }) {
  const [lineFeed, carriageReturn] = [10, 13];
  // An event of SSE has a blank line after it.
  const lineEnds = type === "text/event-stream" ? 2 : 1;
  let [newest, bytes] = [0, 0];
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    for (const byte of read.value) {
      if (byte === lineFeed) newest += 1;
      else if (byte !== carriageReturn) newest = 0;
      if (newest === lineEnds) return true;
    }
    bytes += read.value.length;
    if (bytes > item_bytes_max) return true;
  }
  return false;
}

/**
 * @param {Way} way
 * @param {string} [path]
 * @param {string[]} [subprotocols]
 * @returns {Promise<WebSocket | "closed" | "silent">} closed if it was refused or did not come as far, silent if nothing came in time
 */
export async function openSocket(way, path = MULTIPLEXED, subprotocols = [SUBPROTOCOL]) {
  const socket = new browser.WebSocket(at(path).replace(/^http/, "ws"), subprotocols);
  /** @type {Promise<WebSocket | "closed" | "silent">} */
  const opened = new Promise((resolve) => {
    socket.onopen = () => resolve(socket);
    socket.onerror = () => resolve("closed");
    AbortSignal.timeout(way.answerMs).addEventListener("abort", () => resolve("silent"));
  });
  const found = await opened;
  if (found !== socket) socket.close();
  return found;
}
