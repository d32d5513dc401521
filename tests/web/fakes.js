/** A network and a clock that do what a test says. Time passes only where code sleeps. */
import { setImmediate } from "node:timers/promises";

/** @typedef {import("../../web/transport/types.js").TopicEvent} TopicEvent */
/** @typedef {import("../../web/transport/types.js").Gap} Gap */
/** @typedef {import("../../web/transport/types.js").State} State */
/** @typedef {{ status?: number, body: unknown, headers?: Record<string, string> } | Error} Reply */

/** A WebSocket that opens, if `isOpening`, and then says what a test wants. */
export class FakeSocket extends EventTarget {
  static isOpening = true;
  /** @type {FakeSocket[]} */
  static opened = [];
  /** @type {(() => void) | null} */ onopen = null;
  /** @type {((message: { data: unknown }) => void) | null} */ onmessage = null;
  /** @type {((event: { code: number, reason: string }) => void) | null} */ onclose = null;
  /** @type {string[]} */ sent = [];

  /**
   * @param {string} url
   * @param {string} protocol
   */
  constructor(url, protocol) {
    super();
    this.url = url;
    this.protocol = protocol;
    FakeSocket.opened.push(this);
    queueMicrotask(() => (FakeSocket.isOpening ? this.onopen?.() : this.onclose?.({ code: 1006, reason: "" })));
  }

  /** @param {string} text */
  send(text) {
    this.sent.push(text);
  }

  close() {}

  /** @param {string} data */
  say(data) {
    this.dispatchEvent(new MessageEvent("message", { data }));
    this.onmessage?.({ data });
  }
}

/**
 * Answers requests in order; once there is nothing more to answer, aborts the reading.
 * @param {Reply[]} replies
 */
export function world(replies) {
  const controller = new AbortController();
  let now = 1000;
  /** @type {string[]} */ const requested = [];
  /** @type {number[]} */ const slept = [];
  FakeSocket.opened = [];
  FakeSocket.isOpening = true;
  /** @type {import("../../web/transport/environment.js").Environment} */
  const environment = {
    fetch: async (input) => {
      requested.push(String(input));
      const reply = replies.shift();
      if (!reply) {
        controller.abort();
        throw new DOMException("aborted", "AbortError");
      }
      if (reply instanceof Error) throw reply;
      const text = typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body);
      return new Response(text, { status: reply.status ?? 200, headers: { "content-type": "application/json", ...reply.headers } });
    },
    WebSocket: /** @type {typeof WebSocket} */ (/** @type {unknown} */ (FakeSocket)),
    now: () => now,
    sleep: async (ms) => {
      slept.push(ms);
      now += ms;
      await setImmediate();
    },
  };
  return { environment, controller, requested, slept };
}

/** Records what a transport reports. */
export function recorder() {
  /** @type {TopicEvent[]} */ const events = [];
  /** @type {Gap[]} */ const gaps = [];
  /** @type {State[]} */ const states = [];
  const counts = { repeats: 0, requests: 0, bytes: 0 };
  return {
    events,
    gaps,
    states,
    counts,
    positions: () => events.map(({ position }) => position),
    options: {
      onEvent: (/** @type {TopicEvent} */ event) => void events.push(event),
      onGap: (/** @type {Gap} */ gap) => void gaps.push(gap),
      onState: (/** @type {State} */ state) => void states.push(state),
      onRepeat: () => void (counts.repeats += 1),
      onRequest: () => void (counts.requests += 1),
      onPayload: (/** @type {number} */ bytes) => void (counts.bytes += bytes),
    },
  };
}

/**
 * @param {string} next
 * @param {number[]} offsets
 * @param {Gap} [gap]
 */
export function page(next, offsets, gap) {
  const epoch = next.slice(0, next.lastIndexOf("-"));
  const events = offsets.map((offset) => ({ offset, time: offset * 250, data: { speed: offset } }));
  return { body: { epoch, first: 1, next, events, ...(gap ? { gap } : {}) } };
}

/**
 * Lets everything that is ready run, or all that must until something is so: what the client loads comes from the disk.
 * @param {() => boolean} [isSo]
 */
export async function settle(isSo) {
  if (isSo) while (!isSo()) await setImmediate();
  else for (let turn = 0; turn < 20; turn += 1) await setImmediate();
}
