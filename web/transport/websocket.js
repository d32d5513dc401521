/**
 * WebSocket: one connection, on which the server sends each event as it comes.
 *
 * Uses the subprotocol `anemone.events`, whose messages contain the event's position, so that a new connection continues
 * exactly where the last one ended.
 */
import { Backoff } from "./backoff.js";
import { browser } from "./environment.js";
import { pageUrl, requestPage, trouble } from "./page.js";
import { deliver, parsePosition, Sequence } from "./sequence.js";

export const SUBPROTOCOL = "anemone.events";
const OPEN_MS_MAX = 10_000;
/** Browsers do not show the server's pings to a page, so silence is the only sign of a dead connection. */
const QUIET_MS = 45_000;

/** The reason for a retry if the WebSocket does not open although plain HTTP works. */
export const BLOCKED =
  "HTTP works but the WebSocket does not open; something on the way may block it, as a proxy that is not told to pass it on";

/** @typedef {{ kind: "closed", code: number, reason: string } | { kind: "quiet" } | { kind: "not opened" } | { kind: "aborted" }} End */

/** @type {import("./types.js").Read} */
export async function read(topicUrl, options) {
  const { signal, environment = browser } = options;
  const sequence = new Sequence(options.after);
  const backoff = new Backoff(environment.random);
  while (!signal.aborted) {
    options.onState({ kind: "connecting" });
    const end = await readConnection(topicUrl, sequence, backoff, options);
    if (end.kind === "aborted") break;
    if (end.kind === "quiet") continue; // nothing failed: open anew from our position, which loses nothing
    const { reason, status, waitMs } =
      end.kind === "closed"
        ? { reason: closeInWords(end.code, end.reason), status: null, waitMs: backoff.next() }
        : await explain(topicUrl, backoff, signal, environment);
    if (signal.aborted) break;
    options.onState({ kind: "waiting", until: environment.now() + waitMs, reason, status });
    await environment.sleep(waitMs, signal);
  }
  return sequence.position;
}

/**
 * Runs one connection, from opening to its end.
 * @param {string} topicUrl
 * @param {Sequence} sequence
 * @param {Backoff} backoff
 * @param {import("./types.js").ReadOptions} options
 * @returns {Promise<End>}
 */
function readConnection(topicUrl, sequence, backoff, options) {
  const { signal, quietMs = QUIET_MS, environment = browser } = options;
  options.onRequest?.();
  const socket = environment.openSocket(socketUrl(pageUrl(topicUrl, sequence.position)), SUBPROTOCOL);
  let opened = false;
  return new Promise((resolve) => {
    /** @type {ReturnType<typeof setTimeout>} */
    let timer;
    /** @param {End} end */
    const finish = (end) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
      resolve(end);
    };
    const abort = () => finish({ kind: "aborted" });
    /** @param {number} ms */
    const expectWithin = (ms) => {
      clearTimeout(timer);
      timer = setTimeout(() => finish(opened ? { kind: "quiet" } : { kind: "not opened" }), ms);
    };
    signal.addEventListener("abort", abort);
    expectWithin(OPEN_MS_MAX);

    socket.onopen = () => {
      opened = true;
      options.onState({ kind: "connected", since: environment.now() });
      expectWithin(quietMs);
    };
    socket.onmessage = (message) => {
      const received = environment.now();
      expectWithin(quietMs);
      backoff.reset();
      if (typeof message.data !== "string") return; // unknown messages are ignored
      options.onPayload?.(utf8Length(message.data));
      receive(message.data, received, sequence, options);
    };
    socket.onclose = ({ code, reason }) => finish(opened ? { kind: "closed", code, reason } : { kind: "not opened" });
  });
}

/**
 * Handles a message: the beginning, a gap, or an event.
 * @param {string} text
 * @param {number} received
 * @param {Sequence} sequence
 * @param {import("./types.js").ReadOptions} options
 */
function receive(text, received, sequence, options) {
  const { position, gap, time, data } = parseMessage(text);
  if (gap && typeof gap.resume === "string") {
    sequence.skip(gap);
    options.onGap(gap);
  } else if (typeof position !== "string") {
    // Unknown messages are ignored.
  } else if (typeof time === "number") {
    deliver(sequence, { position, time, data, received }, options);
  } else if (sequence.position === undefined || parsePosition(sequence.position) === null) {
    // The beginning. A reader with a position keeps it: a gap, if any, is announced or found next.
    sequence.settle(position);
  }
}

/**
 * @param {string} text
 * @returns {{ position?: unknown, gap?: import("./types.js").Gap, time?: unknown, data?: unknown }}
 */
function parseMessage(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/**
 * Finds out why a WebSocket did not open, which browsers do not report, from the same URL over plain HTTP.
 * @param {string} topicUrl
 * @param {Backoff} backoff
 * @param {AbortSignal} signal
 * @param {import("./environment.js").Environment} environment
 */
async function explain(topicUrl, backoff, signal, environment) {
  try {
    await requestPage(pageUrl(topicUrl, "latest"), { signal, timeoutMs: OPEN_MS_MAX, environment });
    return { reason: BLOCKED, status: null, waitMs: backoff.next() };
  } catch (error) {
    return trouble(error, backoff);
  }
}

/**
 * @param {number} code
 * @param {string} reason
 */
export function closeInWords(code, reason) {
  /** @type {Record<number, string>} */
  const words = {
    1000: "the server closed the connection",
    1001: "the server is going away",
    1006: "the connection broke",
    1008: "the server refused by policy",
    1011: "the server had an internal error",
    1012: "the server is restarting",
    1013: "the server is busy",
  };
  const what = words[code] ?? `the connection was closed with code ${code}`;
  return reason === "" ? what : `${what}: ${reason}`;
}

/** @param {string} url */
function socketUrl(url) {
  const absolute = new URL(url, globalThis.location?.href);
  absolute.protocol = absolute.protocol === "https:" ? "wss:" : "ws:";
  return absolute.href;
}

const encoder = new TextEncoder();

/** @param {string} text */
function utf8Length(text) {
  return encoder.encode(text).length;
}
