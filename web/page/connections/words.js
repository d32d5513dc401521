/** Connections in words, in order and as rates. Pure. */
import { countOf, formatBytes, formatCount, formatDuration } from "../words.js";

/**
 * A connection, as `GET /connections` lists it.
 * @typedef {object} Connection
 * @property {string} id
 * @property {number} thread
 * @property {string | null} client
 * @property {string} transport
 * @property {string} why
 * @property {string | null} protocol
 * @property {boolean} tls
 * @property {string | null} path
 * @property {string | null} subprotocol
 * @property {boolean} [compressed]
 * @property {boolean} [closing]
 * @property {number} age seconds
 * @property {number} requests
 * @property {number} readers
 * @property {string | null} position
 * @property {{ events: number, bytes: number } | null} lag
 * @property {readonly { path: string, position: string, lag: { events: number, bytes: number } }[]} reads
 * @property {number} received_bytes
 * @property {number} sent_bytes
 * @property {number} [queued_bytes]
 * @property {number | null} [round_trip_ms]
 * @property {number} [behind] the events that it was behind in both of the last two looks
 */

/**
 * A closed connection, as `GET /connections/closed` lists it.
 * @typedef {object} Closed
 * @property {number} time ms
 * @property {number | null} since ms
 * @property {string | null} client
 * @property {string} transport
 * @property {string | null} path
 * @property {"client" | "server" | "network"} by
 * @property {boolean} left true if the client has only left, as a page does that is closed
 * @property {number | null} code
 * @property {string} reason
 */

/**
 * A thread, as `GET /connections/threads` lists it.
 * @typedef {object} Thread
 * @property {number} thread
 * @property {boolean} [silent]
 * @property {number} connections
 * @property {number} http_connections
 * @property {number} waiting
 * @property {number} events
 * @property {number} received_bytes
 * @property {number} sent_bytes
 * @property {number} cpu_ms
 */

/** @type {Readonly<Record<string, string>>} */
const TRANSPORTS = {
  websocket: "WebSocket",
  multiplexed: "multiplexed WebSocket",
  sse: "SSE",
  ndjson: "NDJSON",
  "forever-frame": "forever-frame",
  "long-poll": "long poll",
  poll: "poll",
  tcp: "multiplexed TCP",
  "tcp-echo": "TCP echo",
  http: "HTTP",
  undecided: "nothing yet",
};

/** @param {string} transport */
export function transportInWords(transport) {
  return TRANSPORTS[transport] ?? transport;
}

/**
 * The reason for this transport, and the protocol below it: "Accept: text/event-stream, HTTP/1.1".
 * @param {Connection} connection
 */
export function whyInWords({ why, protocol, tls, subprotocol, compressed, closing }) {
  const below = protocol === null || protocol === "tcp" ? [] : [protocol.toUpperCase()];
  const words = [why, ...below];
  if (tls) words.push("TLS");
  if (subprotocol !== null && !why.includes(subprotocol)) words.push(subprotocol);
  if (compressed) words.push("compressed");
  if (closing) words.push("closing");
  return words.join(", ");
}

/**
 * The topics that a connection reads, or the path that it has requested: "/topics/wind", "/topics/wind and 2 more".
 * @param {Connection} connection
 */
export function subjectInWords({ path, reads, readers }) {
  const first = reads[0]?.path ?? path ?? "";
  return readers > 1 ? `${first} and ${formatCount(readers - 1)} more` : first;
}

/**
 * The position of a connection, or the number of its requests or readers.
 * @param {Connection} connection
 */
export function placeInWords({ position, requests, readers }) {
  if (position !== null) return `at ${position}`;
  if (requests > readers) return countOf(requests, "open request");
  return readers > 1 ? countOf(readers, "reader") : "";
}

/**
 * Returns true if a client only keeps a connection for its next request. Browsers keep several.
 * @param {Connection} connection
 */
export function isIdle({ transport, requests, readers }) {
  return transport === "http" && requests === 0 && readers === 0;
}

/**
 * "and 6 idle HTTP connections"
 * @param {number} count
 */
export function idleInWords(count) {
  return `and ${countOf(count, "idle HTTP connection")}`;
}

/** @param {Connection} connection */
export function lagInWords(connection) {
  if (connection.lag === null) return "";
  return behind(connection) === 0 ? "up to date" : countOf(connection.lag.events, "event");
}

/**
 * Returns the events that a connection is behind. An event that was only on its way during a look does not count.
 * @param {Connection} connection
 */
export function behind(connection) {
  return connection.behind ?? connection.lag?.events ?? 0;
}

/**
 * Returns the connections, each with the smaller lag of this look and the one before.
 * @param {readonly Connection[]} before
 * @param {readonly Connection[]} connections
 * @returns {Connection[]}
 */
export function withBehind(before, connections) {
  const events = new Map(before.map(({ id, lag }) => [id, lag?.events ?? 0]));
  return connections.map((one) => ({ ...one, behind: Math.min(events.get(one.id) ?? Infinity, one.lag?.events ?? 0) }));
}

/**
 * The orders of the table, such as the longest lag first. Equal connections keep the server's order.
 * @typedef {"lag" | "sent" | "queued" | "age" | "client" | "transport" | "path" | "thread"} Order
 * @type {Readonly<Record<Order, { label: string, of: (one: Connection) => string | number, isFalling: boolean }>>}
 */
export const ORDERS = {
  lag: { label: "how far behind", of: (one) => (one.lag === null ? -1 : behind(one)), isFalling: true },
  sent: { label: "bytes sent", of: ({ sent_bytes }) => sent_bytes, isFalling: true },
  queued: { label: "waiting output", of: ({ queued_bytes }) => queued_bytes ?? 0, isFalling: true },
  age: { label: "age", of: ({ age }) => age, isFalling: true },
  client: { label: "client", of: ({ client }) => client ?? "", isFalling: false },
  transport: { label: "transport", of: ({ transport }) => transportInWords(transport), isFalling: false },
  path: { label: "what it reads", of: (one) => subjectInWords(one), isFalling: false },
  thread: { label: "thread", of: ({ thread }) => thread, isFalling: false },
};

/** @param {string} text @returns {text is Order} */
export function isOrder(text) {
  return Object.hasOwn(ORDERS, text);
}

const collator = new Intl.Collator("en", { numeric: true });

/**
 * @param {readonly Connection[]} connections
 * @param {Order} order
 * @param {boolean} isReversed
 */
export function sorted(connections, order, isReversed) {
  const { of, isFalling } = ORDERS[order];
  const sign = isFalling === isReversed ? 1 : -1;
  const compare = (/** @type {string | number} */ a, /** @type {string | number} */ b) =>
    typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
  return [...connections].sort((a, b) => sign * compare(of(a), of(b)));
}

/**
 * Returns true if a connection has all words that are searched for.
 * @param {Connection} connection
 * @param {string} wanted
 */
export function hasText(connection, wanted) {
  const { client, path, reads, subprotocol, transport, thread } = connection;
  const texts = [client, path, subprotocol, transport, transportInWords(transport), whyInWords(connection), `thread ${thread}`, ...reads.map((read) => read.path)];
  const all = texts.join("\n").toLowerCase();
  return wanted.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/**
 * "12 connections, 9 readers, 2 behind, 3.1 kB of output wait"
 * @param {readonly Connection[]} connections
 */
export function summaryInWords(connections) {
  const readers = connections.reduce((sum, one) => sum + one.readers, 0);
  const late = connections.filter((one) => behind(one) > 0).length;
  const queued = connections.reduce((sum, one) => sum + (one.queued_bytes ?? 0), 0);
  const words = [countOf(connections.length, "connection"), countOf(readers, "reader")];
  words.push(late === 0 ? "none behind" : `${formatCount(late)} behind`);
  if (queued > 0) words.push(`${formatBytes(queued)} of output wait`);
  return words.join(", ");
}

/** The names of RFC 6455 section 7.4.1 and its registry. @type {Readonly<Record<number, string>>} */
const CODES = {
  1000: "normal closure",
  1001: "going away",
  1002: "protocol error",
  1003: "unsupported data",
  1005: "no code",
  1007: "invalid data",
  1008: "policy violation",
  1009: "message too big",
  1010: "extension missing",
  1011: "internal error",
  1012: "service restart",
  1013: "try again later",
};

/** @param {number | null} code */
export function codeInWords(code) {
  if (code === null) return "";
  const name = CODES[code];
  return name === undefined ? `close code ${code}` : `close code ${code}, ${name}`;
}

/** The messages of the libraries and the system about the end of a connection, and their meanings. @type {readonly [RegExp, string][]} */
const REASONS = [
  [/^Broken pipe \(os error \d+\)$/, "the client had already closed the connection"],
  [/^Connection reset by peer \(os error \d+\)$/, "the client has cut the connection"],
  [/^Connection timed out \(os error \d+\)$/, "the client was silent for too long"],
  [/^connection error$/, "the connection failed"],
  [/^connection closed before message completed$/, "the client left in the middle of a request"],
  [/^error writing a body to connection$/, "the client left before it had the whole reply"],
  [/^error reading a body from connection$/, "the client left before it had sent the whole request"],
  [/^error shutting down connection$/, "the client was gone before the connection was closed"],
  [/^peer closed connection without sending TLS close_notify/, "the client left without closing TLS"],
  [/^invalid HTTP method parsed$/, "what came was not HTTP"],
  [/^invalid HTTP version parsed/, "the HTTP version of the request is not known here"],
  [/^invalid HTTP header parsed$/, "a header field of the request is not valid"],
  [/^invalid URI$/, "the path of the request is not valid"],
  [/^URI too long$/, "the path of the request is too long"],
  [/^message head is too large$/, "the header of the request is too long"],
  [/^read header from client timeout$/, "the header of a request did not come in time"],
];

/**
 * The one who ended a connection. A client that has only left is marked, since that is no fault.
 * @param {Pick<Closed, "by" | "left">} closed
 */
export function endedByInWords({ by, left }) {
  return left ? "client, who left" : by;
}

/**
 * The reason of an end in plain words; the server's own words, if it is not a known one.
 * @param {string} reason
 */
export function reasonInWords(reason) {
  return REASONS.find(([told]) => told.test(reason))?.[1] ?? reason;
}

/**
 * The time for which a connection was open; empty if the server does not know it.
 * @param {Pick<Closed, "time" | "since">} closed
 */
export function lastedInWords({ time, since }) {
  return since === null ? "" : formatDuration(time - since);
}

/**
 * The share of the time between two looks in which a thread was busy, from 0 to 1; null if it is not known.
 * @param {{ time: number, thread: Thread } | undefined} before
 * @param {{ time: number, thread: Thread }} after
 */
export function busyShare(before, after) {
  if (before === undefined || after.time <= before.time) return null;
  const share = (after.thread.cpu_ms - before.thread.cpu_ms) / (after.time - before.time);
  return Math.min(1, Math.max(0, share));
}

/**
 * The growth of a counter in a second; null if it is not known.
 * @param {{ time: number, thread: Thread } | undefined} before
 * @param {{ time: number, thread: Thread }} after
 * @param {"events" | "received_bytes" | "sent_bytes"} counter
 */
export function perSecond(before, after, counter) {
  if (before === undefined || after.time <= before.time) return null;
  return Math.max(0, ((after.thread[counter] - before.thread[counter]) * 1000) / (after.time - before.time));
}
