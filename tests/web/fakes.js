/** A network, a clock and a socket that do what a test says. Time passes only where code sleeps. */
import { setImmediate } from "node:timers/promises";

/** @typedef {import("../../web/transport/types.js").TopicEvent} TopicEvent */
/** @typedef {import("../../web/transport/types.js").Gap} Gap */
/** @typedef {import("../../web/transport/types.js").State} State */
/** @typedef {{ status?: number, body: unknown, headers?: Record<string, string> } | Error} Reply */

export class FakeSocket {
  /** @type {FakeSocket[]} */
  static opened = [];
  /** @type {(() => void) | null} */ onopen = null;
  /** @type {((message: { data: unknown }) => void) | null} */ onmessage = null;
  /** @type {((event: { code: number, reason: string }) => void) | null} */ onclose = null;
  closed = false;

  /**
   * @param {string} url
   * @param {string} protocol
   */
  constructor(url, protocol) {
    this.url = url;
    this.protocol = protocol;
    FakeSocket.opened.push(this);
  }

  close() {
    this.closed = true;
  }

  /** @param {unknown} message */
  say(message) {
    this.onmessage?.({ data: JSON.stringify(message) });
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
      return new Response(text, { status: reply.status ?? 200, headers: reply.headers ?? {} });
    },
    openSocket: (url, protocol) => /** @type {WebSocket} */ (/** @type {unknown} */ (new FakeSocket(url, protocol))),
    now: () => now,
    sleep: async (ms) => {
      slept.push(ms);
      now += ms;
      await setImmediate();
    },
    random: () => 1,
  };
  return { environment, controller, requested, slept };
}

/** Records what a transport reports. */
export function recorder() {
  /** @type {TopicEvent[]} */ const events = [];
  /** @type {Gap[]} */ const gaps = [];
  /** @type {State[]} */ const states = [];
  let repeats = 0;
  return {
    events,
    gaps,
    states,
    positions: () => events.map(({ position }) => position),
    repeats: () => repeats,
    options: {
      onEvent: (/** @type {TopicEvent} */ event) => void events.push(event),
      onGap: (/** @type {Gap} */ gap) => void gaps.push(gap),
      onState: (/** @type {State} */ state) => void states.push(state),
      onRepeat: () => void (repeats += 1),
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

/** Lets everything that is ready run. */
export async function settle() {
  for (let turn = 0; turn < 5; turn += 1) await setImmediate();
}
