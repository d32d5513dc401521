/**
 * The offset of the server's clock from ours, and its largest error.
 *
 * A probe asks the server for its time. The answer was written somewhere between sending and
 * receiving, so the midpoint is wrong by at most half the round trip. In a block of probes the one
 * with the shortest round trip has the smallest bound; queues and scheduling only ever add delay.
 *
 * @typedef {{ sent: number, server: number, received: number }} Probe all in ms since the Unix epoch
 * @typedef {{ offset: number, bound: number, at: number }} Estimate offset = server - ours
 */

export const PROBES_IN_BLOCK = 32;

/**
 * @param {readonly Probe[]} probes
 * @returns {Estimate | null} null without a usable probe
 */
export function estimate(probes) {
  /** @type {Probe | null} */
  let best = null;
  for (const probe of probes) {
    if (probe.received < probe.sent) continue;
    if (best === null || probe.received - probe.sent < best.received - best.sent) best = probe;
  }
  if (best === null) return null;
  const middle = (best.sent + best.received) / 2;
  return { offset: best.server - middle, bound: (best.received - best.sent) / 2, at: middle };
}

/**
 * By so much, events may contradict an estimate: both clocks are told in milliseconds by some browsers, and drift apart while events are read.
 */
const COARSE_MS = 2;

/**
 * Narrows an estimate by events, of which none arrives before the server has sent it. Probes alone are wrong by half of what delays one of their
 * directions alone.
 * @param {Estimate} estimate
 * @param {number} leastMs the least of the latencies of all events, without the offset
 * @returns {Estimate | null} null if an event has arrived before it was sent, by more than the bound
 */
export function narrowed({ offset, bound, at }, leastMs) {
  const [low, high] = [Math.max(offset - bound, -leastMs), offset + bound];
  if (low > high + COARSE_MS) return null;
  return { offset: (low + Math.max(low, high)) / 2, bound: Math.max(0, high - low) / 2, at };
}

/**
 * Returns the drift of the two clocks in ms per minute.
 * @param {Estimate} earlier
 * @param {Estimate} later
 */
export function driftPerMinute(earlier, later) {
  return ((later.offset - earlier.offset) / (later.at - earlier.at)) * 60_000;
}

/**
 * Sends one block of probes, one after the other.
 * @param {string} url
 * @param {{ environment: import("../transport/environment.js").Environment, signal: AbortSignal, probes?: number }} options
 * @returns {Promise<Estimate | null>} null when the server did not answer every probe
 */
export async function probeBlock(url, { environment, signal, probes = PROBES_IN_BLOCK }) {
  /** @type {Probe[]} */
  const block = [];
  try {
    while (block.length < probes) {
      const sent = environment.now();
      const response = await environment.fetch(url, { cache: "no-store", signal });
      const received = environment.now();
      const { time } = await response.json();
      if (!response.ok || typeof time !== "number") return null;
      block.push({ sent, server: time, received });
    }
  } catch {
    return null;
  }
  return estimate(block);
}
