/** Calls of a service that answers at once, over the multiplexed WebSocket and over HTTP. */
import { connect, now } from "../../client.js";
import { median } from "../../measure/bootstrap.js";
import { at } from "../site.js";

const PATH = "clock";
const ANSWER_MS_MAX = 10_000;
/** The single calls of a sample. Their median counts. */
const SINGLE_CALLS = 5;
export const TIME = { quantity: "time", unit: "ms" };
export const RATE = { quantity: "calls in a second", unit: "calls/s", isMoreBetter: true };
const BYTES = { quantity: "a reply, as the browser tells", unit: "B" };

/** @typedef {{ name: string, client: import("../../client.js").Client }} Way */

/**
 * The ways to call. Each has a connection of its own that is kept.
 * @returns {Way[]}
 */
export function callWays() {
  return [
    { name: "WebSocket", client: connect(at(""), { transports: ["mux"] }) },
    { name: "HTTP", client: connect(at(""), { transports: ["poll"] }) },
  ];
}

/**
 * @param {Way} way
 * @param {AbortSignal} signal
 */
export async function call({ client }, signal) {
  const ends = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]);
  const { data } = await client.call("GET", PATH, undefined, { signal: ends });
  if (typeof data?.time !== "number") throw new SyntaxError("the reply has no time");
}

/**
 * Measures one call, and several at once.
 * @param {readonly Way[]} ways
 * @param {number} atOnce
 * @returns {import("./rounds.js").Cell[]}
 */
export function callCells(ways, atOnce) {
  return ways.flatMap((way) => [
    { case: "1 call", x: 1, contender: way.name, measure: (/** @type {AbortSignal} */ signal) => single(way, signal) },
    { case: `${atOnce} calls at once`, x: atOnce, contender: way.name, measure: (/** @type {AbortSignal} */ signal) => together(way, atOnce, signal) },
  ]);
}

/**
 * Measures calls one after the other, as many as fit into a time.
 * @param {readonly Way[]} ways
 * @param {number} ms
 * @returns {import("./rounds.js").Cell[]}
 */
export function sequentialCells(ways, ms) {
  return ways.map((way) => ({
    case: "one after the other",
    x: null,
    contender: way.name,
    measure: async (signal) => {
      const begun = now();
      let count = 0;
      do {
        await call(way, signal);
        count += 1;
      } while (now() - begun < ms);
      return { figures: [{ ...RATE, value: (count / (now() - begun)) * 1000 }], expected: count, received: count };
    },
  }));
}

/**
 * @param {Way} way
 * @param {AbortSignal} signal
 * @returns {Promise<import("./rounds.js").Sample>}
 */
async function single(way, signal) {
  performance.clearResourceTimings();
  const times = [];
  while (times.length < SINGLE_CALLS) {
    const sent = now();
    await call(way, signal);
    times.push(now() - sent);
  }
  const bytes = toldBytes();
  return {
    figures: [
      { ...TIME, value: median(times) ?? 0 },
      ...(bytes === null ? [] : [{ ...BYTES, value: bytes }]),
    ],
    expected: SINGLE_CALLS,
    received: SINGLE_CALLS,
  };
}

/** Returns the browser's byte count of the last reply; null for a WebSocket, of which it counts nothing. */
function toldBytes() {
  const entry = performance.getEntriesByName(at(PATH), "resource").at(-1);
  return entry instanceof PerformanceResourceTiming && entry.transferSize > 0 ? entry.transferSize : null;
}

/**
 * @param {Way} way
 * @param {number} count
 * @param {AbortSignal} signal
 * @returns {Promise<import("./rounds.js").Sample>}
 */
async function together(way, count, signal) {
  const begun = now();
  await Promise.all(Array.from({ length: count }, () => call(way, signal)));
  return { figures: [{ ...TIME, value: now() - begun }], expected: count, received: count };
}
