/**
 * The figures of one transport: messages, latency, bytes, and losses.
 *
 * Latency is t4 - t0: t0 when the server had read the sensor's last byte (server's clock), t4 when
 * the browser had the message (this clock), brought together by the estimated offset.
 *
 * @typedef {object} Snapshot
 * @property {number} messages
 * @property {number} caughtUp events that happened before the connection stood; not in the latency
 * @property {{ count: number, mean: number, deviation: number, min: number, max: number } | null} latency ms
 * @property {readonly number[]} recent the last latencies, oldest first
 * @property {number | null} bytes null when the browser does not tell
 * @property {number} requests
 * @property {number} reconnects
 * @property {number} gaps
 * @property {number} missed events that gaps are known to have cost
 * @property {boolean} missedUnknown at least one gap of unknown size
 * @property {number} unannounced gaps that nobody told us of: a fault
 * @property {number} repeats events that came twice: a fault
 */
import { Statistics } from "../measure/statistics.js";

export const RECENT = 120;
/** Latencies kept until the clock is known; a block of probes takes seconds at most. */
const PENDING_MAX = 1000;

export class Figures {
  #messages = 0;
  #caughtUp = 0;
  #latency = new Statistics();
  /** @type {number[]} */
  #recent = [];
  /** @type {{ t0: number, t4: number, since: number }[]} */
  #pending = [];
  #bytes = 0;
  #requests = 0;
  #reconnects = 0;
  #gaps = 0;
  #missed = 0;
  #missedUnknown = false;
  #unannounced = 0;
  #repeats = 0;
  #bytesTold;

  /** @param {{ bytesTold: boolean }} options whether bytes will be told at all */
  constructor({ bytesTold }) {
    this.#bytesTold = bytesTold;
  }

  /**
   * @param {number} t0 server's clock
   * @param {number} t4 this clock
   * @param {number} connectedSince this clock; what happened earlier was caught up with
   * @param {number | null} offset server - this; null while unknown
   */
  message(t0, t4, connectedSince, offset) {
    this.#messages += 1;
    if (offset === null) {
      if (this.#pending.length < PENDING_MAX) this.#pending.push({ t0, t4, since: connectedSince });
    } else {
      this.#sample(t0 - offset, t4, connectedSince);
    }
  }

  /**
   * Sets the clock offset, once it is known.
   * @param {number} offset
   */
  clockKnown(offset) {
    for (const { t0, t4, since } of this.#pending.splice(0)) this.#sample(t0 - offset, t4, since);
  }

  /** @param {number} bytes */
  received(bytes) {
    this.#bytes += bytes;
  }

  request() {
    this.#requests += 1;
  }

  reconnect() {
    this.#reconnects += 1;
  }

  repeat() {
    this.#repeats += 1;
  }

  /** @param {import("../transport/types.js").Gap} gap */
  gap({ reason, missed }) {
    this.#gaps += 1;
    this.#missed += missed ?? 0;
    if (missed === null) this.#missedUnknown = true;
    if (reason === "unannounced") this.#unannounced += 1;
  }

  /** @returns {Snapshot} */
  snapshot() {
    const { count, mean, deviation, min, max } = this.#latency;
    return {
      messages: this.#messages,
      caughtUp: this.#caughtUp,
      latency: count === 0 ? null : { count, mean, deviation, min, max },
      recent: this.#recent,
      bytes: this.#bytesTold ? this.#bytes : null,
      requests: this.#requests,
      reconnects: this.#reconnects,
      gaps: this.#gaps,
      missed: this.#missed,
      missedUnknown: this.#missedUnknown,
      unannounced: this.#unannounced,
      repeats: this.#repeats,
    };
  }

  /**
   * @param {number} t0 this clock
   * @param {number} t4
   * @param {number} since
   */
  #sample(t0, t4, since) {
    if (t0 < since) {
      // Its delay is that of the disconnection, not of the transport.
      this.#caughtUp += 1;
      return;
    }
    this.#latency.add(t4 - t0);
    this.#recent.push(t4 - t0);
    if (this.#recent.length > RECENT) this.#recent.shift();
  }
}
