/** The one-way latency of the wind, four events a second, over each transport at once: paired by event, so that the clock cancels. */
import { median } from "../../measure/bootstrap.js";
import { reader } from "../../transport/reader.js";
import { windOf } from "../wind/wind.js";
import { sleep } from "../../client.js";
import { at } from "../site.js";
import { seriesOf, WARM_UP } from "./rounds.js";

export const LATENCY = { quantity: "one-way latency", unit: "ms" };
const CASE = "4 events a second";
/** The number of events of a round that each transport must have. */
const EVENTS = 8;
const POLL_PAUSE_MS = 150;
/** The longest time of a round. A good one takes two seconds. */
const ROUND_MS_MAX = 15_000;
/** The number of later events after which a missing event of a transport counts as lost. */
const LATE_EVENTS = 8;

/** @type {[string, import("../../transport/types.js").Read][]} */
const WAYS = [
  ["WebSocket", reader("mux")],
  ["SSE", reader("sse")],
  ["NDJSON", reader("ndjson")],
  ["long poll", reader("long-poll")],
  ["poll", (url, options) => reader("poll")(url, { ...options, pauseMs: POLL_PAUSE_MS })],
];

/**
 * @param {{ rounds: number, random: import("../../measure/bootstrap.js").Random, signal: AbortSignal, onStep: () => void, onFailure: () => Promise<void> }} options `onFailure` may abort `signal`
 * @returns {Promise<Map<string, Arrivals>[]>} of each round, the arrivals over each transport
 */
export async function latencies({ rounds, random, signal, onStep, onFailure }) {
  const all = [];
  for (let round = 0; round < WARM_UP + rounds && !signal.aborted; round += 1) {
    const arrivals = await readRound(random, signal);
    if (!signal.aborted && [...arrivals.values()].every(({ size }) => size === 0)) await onFailure();
    if (signal.aborted) break;
    if (round >= WARM_UP) all.push(arrivals);
    onStep();
  }
  return all;
}

/**
 * Returns the least latency of all events, without the offset; infinite without one.
 * @param {readonly Map<string, Arrivals>[]} rounds
 */
export function leastOf(rounds) {
  return Math.min(...rounds.flatMap((arrivals) => [...arrivals.values()].flatMap((own) => [...own.values()])));
}

/**
 * @param {readonly Map<string, Arrivals>[]} rounds
 * @param {number} offset the server's clock less ours, in ms
 */
export function seriesOfRounds(rounds, offset) {
  return WAYS.flatMap(([contender]) => {
    const samples = rounds.map((arrivals) => sampleOf(arrivals.get(contender) ?? new Map(), arrivals, offset));
    return seriesOf({ case: CASE, x: null, contender }, samples, LATENCY);
  });
}

/** The latency of each event by its position, on the server's clock less ours. @typedef {Map<string, number>} Arrivals */

/**
 * Reads until each transport has the events of a round, or the time is up.
 * @param {import("../../measure/bootstrap.js").Random} random
 * @param {AbortSignal} signal
 * @returns {Promise<Map<string, Arrivals>>}
 */
async function readRound(random, signal) {
  const over = new AbortController();
  const ends = AbortSignal.any([signal, over.signal, AbortSignal.timeout(ROUND_MS_MAX)]);
  /** @type {Map<string, Arrivals>} */
  const all = new Map(WAYS.map(([name]) => [name, new Map()]));
  const take = (/** @type {Arrivals} */ own, /** @type {import("../../transport/types.js").TopicEvent} */ event) => {
    own.set(event.position, event.received - (windOf(event)?.t0 ?? event.time));
    const isLate = Math.max(...[...all.values()].map((one) => one.size)) >= EVENTS + LATE_EVENTS;
    if (isLate || shared(all).length >= EVENTS) over.abort();
  };
  const readings = random.shuffled(WAYS).map(async ([name, read]) => {
    const own = /** @type {Arrivals} */ (all.get(name));
    // Each begins in another phase of the events, which otherwise decides what a poll finds.
    await sleep(random.next() * POLL_PAUSE_MS, ends);
    await read(at("topics/wind"), { after: "latest", signal: ends, onEvent: (event) => take(own, event), onGap: () => {}, onState: () => {} });
  });
  await Promise.all(readings);
  return all;
}

/**
 * The positions of the events that every transport has. Ignores a transport without any event.
 * @param {Map<string, Arrivals>} all
 */
function shared(all) {
  const [first, ...others] = [...all.values()].filter((one) => one.size > 0);
  return [...(first?.keys() ?? [])].filter((position) => others.every((other) => other.has(position)));
}

/**
 * @param {Arrivals} own
 * @param {Map<string, Arrivals>} all
 * @param {number} offset
 * @returns {import("./rounds.js").Sample}
 */
export function sampleOf(own, all, offset) {
  const positions = shared(all).filter((position) => own.has(position));
  const value = median(positions.map((position) => Number(own.get(position)) + offset));
  const [expected, received] = [EVENTS, Math.min(positions.length, EVENTS)];
  return {
    figures: value === null ? [] : [{ ...LATENCY, value }],
    expected,
    received,
    ...(received < expected && { faults: { stalled: expected - received } }),
  };
}
