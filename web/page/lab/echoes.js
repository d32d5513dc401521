/** Echoes of 1 B to 1 MB, or 10 MB where that is wished for: a message of a WebSocket of its own, and the body of a POST. */
import { now } from "../../client.js";
import { median } from "../../measure/bootstrap.js";
import { at } from "../site.js";

const ANSWER_MS_MAX = 60_000;
/** The longest echo. A size that takes longer is left out: all rounds would take minutes, and perhaps cost the user money. */
const ECHO_MS_MAX = 10_000;
/** The reasons for which a size is left out. */
const TOO_LONG = "since the server, by message_bytes_max in its [limits.echo], or a proxy takes nothing as long";
const TOO_SLOW = `since an echo takes more than ${ECHO_MS_MAX / 1000} s`;
const [LATE, TOO_BIG] = [408, 413];
export const ROUND_TRIP = { quantity: "round trip", unit: "ms" };
/** The sizes, each with the echoes of a sample. Their median counts. */
const SIZES = /** @type {const} */ ([
  [1, "1 B", 10],
  [100, "100 B", 10],
  [10_000, "10 kB", 5],
  [1_000_000, "1 MB", 1],
  [10_000_000, "10 MB", 1],
]);

/**
 * @typedef {object} EchoWay
 * @property {string} name
 * @property {(signal: AbortSignal) => Promise<unknown>} open opens what is kept, so that no echo pays for it
 * @property {(bytes: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>} echo
 * @property {() => void} close
 */

/** The error for an echo that is longer than the server's limit. */
class TooBig extends Error {
  status = TOO_BIG;
}

class ClosedError extends Error {
  name = "ClosedError";
}

/** @type {EchoWay} */
const http = {
  name: "HTTP",
  open: async () => {},
  echo: async (bytes, signal) => {
    const reply = await fetch(at("echo"), { method: "POST", body: /** @type {Uint8Array<ArrayBuffer>} */ (bytes), cache: "no-store", signal });
    if (reply.status === TOO_BIG) throw new TooBig();
    if (!reply.ok) throw Object.assign(new Error(`status ${reply.status}`), { status: reply.status });
    return new Uint8Array(await reply.arrayBuffer());
  },
  close: () => {},
};

/** @returns {EchoWay} */
function overWebSocket() {
  const TOO_BIG_CODE = 1009;
  /** @type {WebSocket | null} */
  let socket = null;
  const open = async (/** @type {AbortSignal} */ signal) => (socket ??= await opened(signal));
  return {
    name: "WebSocket",
    echo: async (bytes, signal) => {
      const kept = await open(signal);
      const echoed = new AbortController();
      try {
        return await new Promise((resolve, reject) => {
          const end = (/** @type {unknown} */ reason) => {
            socket = null;
            kept.close();
            reject(reason);
          };
          // An echo that has come leaves no timer behind, which would close the socket of the next ones.
          signal.addEventListener("abort", () => end(signal.reason), { signal: echoed.signal });
          kept.onclose = ({ code }) => end(code === TOO_BIG_CODE ? new TooBig() : new ClosedError(`closed with ${code}`));
          kept.onmessage = ({ data }) => resolve(new Uint8Array(data));
          kept.send(bytes);
        });
      } finally {
        echoed.abort();
      }
    },
    open,
    close: () => socket?.close(),
  };
}

/**
 * Opens a WebSocket for echoes.
 * @param {AbortSignal} signal
 * @returns {Promise<WebSocket>}
 */
async function opened(signal) {
  const socket = new WebSocket(at("echo").replace(/^http/, "ws"));
  socket.binaryType = "arraybuffer";
  const isOpen = new AbortController();
  try {
    return await new Promise((resolve, reject) => {
      socket.onopen = () => resolve(socket);
      socket.onclose = () => reject(new Error("the WebSocket does not open"));
      signal.addEventListener("abort", () => reject(signal.reason), { signal: isOpen.signal });
    });
  } catch (error) {
    socket.close();
    throw error;
  } finally {
    isOpen.abort();
  }
}

/**
 * Returns the bytes that all echoes send and receive, including the first try of each size.
 * @param {number} rounds with those that are dropped
 * @param {number} longest in bytes
 */
export function echoedBytes(rounds, longest) {
  const [ways, directions] = [2, 2];
  const sizes = SIZES.filter(([size]) => size <= longest);
  return sizes.reduce((sum, [size, , count]) => sum + directions * size * (ways * count * rounds + 1), 0);
}

/**
 * Tries each size first. Returns the cells that measure the sizes that the server echoes.
 * @param {number} longest in bytes
 * @param {import("../../measure/bootstrap.js").Random} random
 * @param {AbortSignal} signal
 * @returns {Promise<{ cells: import("./rounds.js").Cell[], left: string[], close: () => void }>} `left` are the sizes that are left out, each with the reason
 */
export async function echoCells(longest, random, signal) {
  const ways = [overWebSocket(), http];
  const cells = [];
  const left = [];
  for (const [size, name, count] of SIZES.filter(([size]) => size <= longest)) {
    const bytes = new Uint8Array(size);
    for (let at = 0; at < size; at += 1) bytes[at] = random.below(256);
    const reason = await whyLeft(bytes, signal);
    if (reason !== null) {
      left.push(`${name}, ${reason}`);
      continue;
    }
    for (const way of ways) {
      cells.push({ case: name, x: size, contender: way.name, measure: (/** @type {AbortSignal} */ signal) => sample(way, bytes, count, signal) });
    }
  }
  return { cells, left, close: () => ways.forEach((way) => way.close()) };
}

/**
 * Returns the reason to leave a size out; null if it is measured. A size that fails in another way is measured too, and has its fault.
 * @param {Uint8Array} bytes
 * @param {AbortSignal} signal
 */
async function whyLeft(bytes, signal) {
  const sent = now();
  try {
    await http.echo(bytes, ends(signal));
    return now() - sent > ECHO_MS_MAX ? TOO_SLOW : null;
  } catch (error) {
    if (error instanceof TooBig) return TOO_LONG;
    if (bytes.length <= 100_000 || !(error instanceof Error)) return null;
    // A server may end the connection before the browser has read why.
    if (error instanceof TypeError) return TOO_LONG;
    return error.name === "TimeoutError" || Reflect.get(error, "status") === LATE ? TOO_SLOW : null;
  }
}

/** @param {AbortSignal} signal */
function ends(signal) {
  return AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]);
}

/**
 * @param {EchoWay} way
 * @param {Uint8Array} bytes
 * @param {number} count
 * @param {AbortSignal} signal
 * @returns {Promise<import("./rounds.js").Sample>}
 */
async function sample(way, bytes, count, signal) {
  const times = [];
  await way.open(ends(signal));
  while (times.length < count) {
    const sent = now();
    const echoed = await way.echo(bytes, ends(signal));
    times.push(now() - sent);
    if (!isEqual(echoed, bytes)) throw new SyntaxError("another echo came");
  }
  return { figures: [{ ...ROUND_TRIP, value: median(times) ?? 0 }], expected: count, received: count };
}

/**
 * @param {Uint8Array} one
 * @param {Uint8Array} other
 */
function isEqual(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return one.length === other.length && at === one.length;
}
