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
