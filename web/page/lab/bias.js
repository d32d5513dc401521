/**
 * Finds out whether something delays requests over HTTP but no messages of a WebSocket, like the network emulation of some browsers. If so,
 * figures compare that, and not the transports.
 */
import { now } from "../../client.js";
import { median } from "../../measure/bootstrap.js";
import { at } from "../site.js";
import { formatMs } from "../words.js";
import { call, callWays } from "./calls.js";
import { valuesOf } from "./report.js";

/** The calls over each way. The fastest of them counts, since it was not delayed by chance. */
const CALLS = 12;
const MS_MAX = 20_000;
/** The least delay that counts. Browsers and busy machines delay a request less. */
const BIAS_MS_MIN = 10;

/** @typedef {{ roundTripMs: number, words: string | null }} Bias the shortest round trip over HTTP, 0 if unknown; `words` say what is delayed, if something is */

/**
 * @param {AbortSignal} signal
 * @returns {Promise<Bias>}
 */
export async function biasOf(signal) {
  const ways = callWays();
  const ends = AbortSignal.any([signal, AbortSignal.timeout(MS_MAX)]);
  try {
    /** @type {[number, number]} */
    const shortest = [Infinity, Infinity];
    let isKept = false;
    for (let count = 0; count < CALLS; count += 1) {
      for (const [index, way] of ways.entries()) {
        const sent = now();
        await call(way, ends);
        const ms = now() - sent;
        if (ms >= Number(shortest[index])) continue;
        shortest[index] = ms;
        if (way.name === "HTTP") isKept = wasKept();
      }
    }
    const [socketMs, httpMs] = shortest;
    return { roundTripMs: httpMs, words: isKept ? slowOverHttp(httpMs, socketMs) : null };
  } catch {
    return { roundTripMs: 0, words: null }; // a way that does not work has its fault in each report
  } finally {
    ways.forEach(({ client }) => client.close());
  }
}

/** Returns true if the newest call over HTTP used an open connection. To open one takes further round trips. */
function wasKept() {
  const entry = performance.getEntriesByName(at("clock"), "resource").at(-1);
  return entry instanceof PerformanceResourceTiming && entry.connectStart === entry.connectEnd;
}

/**
 * @param {number} httpMs
 * @param {number} socketMs
 */
export function slowOverHttp(httpMs, socketMs) {
  if (httpMs - socketMs < Math.max(socketMs, BIAS_MS_MIN)) return null;
  return `a call takes at least ${formatMs(httpMs)} ms over HTTP and ${formatMs(socketMs)} ms over a WebSocket, though both are one round trip: something delays HTTP alone, such as the network emulation of the browser's developer tools, or a proxy`;
}

/**
 * Returns a sentence if events come sooner over the WebSocket than over any other transport, by a round trip or more; null if not.
 * @param {readonly import("./report.js").Series[]} series
 * @param {number} roundTripMs
 */
export function tooSoon(series, roundTripMs) {
  const middle = (/** @type {import("./report.js").Series} */ one) => median(valuesOf(one)) ?? NaN;
  const socket = series.find(({ contender }) => contender === "WebSocket");
  const others = series.filter((one) => one !== socket && valuesOf(one).length > 0);
  if (!socket || others.length === 0) return null;
  const soonerMs = Math.min(...others.map(middle)) - middle(socket);
  if (!(soonerMs >= Math.max(roundTripMs, BIAS_MS_MIN))) return null;
  return `events come ${formatMs(soonerMs)} ms sooner over a WebSocket than over anything else, more than a round trip: something delays HTTP alone`;
}
