/**
 * Every way to read a topic, by programs of a few lines each: what a client of any kind would do, over plain HTTP or TLS, by
 * way of whatever listens there.
 */
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { connect as connectPlainly } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectSecurely } from "node:tls";
import WebSocket from "ws";
import { lines } from "./programs.js";

const POLL_PAUSE_MS = 50;

/**
 * Where to read.
 * @typedef {object} Target
 * @property {number} port of this machine's
 * @property {boolean} isSecure
 * @property {string} host as a browser names it, with its port
 * @property {string} [socket] a Unix socket, instead of the port
 * @property {string} [below] what each path begins with there
 * @property {number} [tcp] the port of the multiplexed protocol over TCP
 * @property {string} [from] an address of this machine's to come from
 * @property {Record<string, string>} [fields] of every request
 */
/**
 * What a reader tells. `position` alone is where it stands.
 * @typedef {(position: string, n?: number) => void} Tell
 */
/**
 * Reads `path` after `after` until the connection ends or `signal` aborts.
 * @typedef {(target: Target, path: string, after: string, tell: Tell, signal: AbortSignal) => Promise<void>} Read
 */

/** @param {Target} target */
const own = ({ port, isSecure, host, socket, from, fields }) => ({
  ...(socket === undefined ? { host: "127.0.0.1", port } : { socketPath: socket }),
  headers: { Host: host, ...fields },
  rejectUnauthorized: false,
  servername: host.split(":")[0],
  agent: /** @type {const} */ (false),
  ...(from === undefined ? {} : { localAddress: from }),
  isSecure,
});

/**
 * The head of a reply, and its body to read.
 * @param {Target} target
 * @param {string} path
 * @param {{ method?: string, headers?: Record<string, string>, body?: string, signal?: AbortSignal }} [more]
 * @returns {Promise<http.IncomingMessage>}
 */
export async function request(target, path, { method = "GET", headers = {}, body, signal } = {}) {
  const { isSecure, ...options } = own(target);
  const more = { path: (target.below ?? "") + path, method, headers: { ...options.headers, ...headers }, ...(signal ? { signal } : {}) };
  const sent = (isSecure ? https : http).request({ ...options, ...more });
  sent.end(body);
  const [reply] = await once(sent, "response");
  // One that ends amid its body has ended.
  return reply.on("error", () => {});
}

/**
 * A whole reply.
 * @param {Target} target
 * @param {string} path
 * @param {Parameters<typeof request>[2]} [more]
 */
export async function ask(target, path, more) {
  const reply = await request(target, path, more);
  let text = "";
  for await (const chunk of reply.setEncoding("utf8")) text += chunk;
  return { status: reply.statusCode, headers: reply.headers, text };
}

/**
 * @param {Target} target
 * @param {string} url
 * @param {Tell} tell
 * @param {AbortSignal} signal
 */
async function page(target, url, tell, signal) {
  const { status, text } = await ask(target, url, { signal });
  if (status !== 200) throw new Error(`${status} ${text}`);
  const { epoch, next, events } = JSON.parse(text);
  for (const { offset, data } of events) tell(`${epoch}-${offset}`, data.n);
  tell(next);
  return next;
}

/** @type {Read} */
async function poll(target, path, after, tell, signal) {
  while (!signal.aborted) {
    after = await page(target, `${path}?after=${after}`, tell, signal);
    await sleep(POLL_PAUSE_MS);
  }
}

/** @type {Read} */
async function longPoll(target, path, after, tell, signal) {
  // The first one tells where reading stands.
  after = await page(target, `${path}?after=${after}`, tell, signal);
  while (!signal.aborted) after = await page(target, `${path}?after=${after}&wait=120`, tell, signal);
}

/**
 * @param {string} accept
 * @param {string} query
 * @param {(line: string) => { position: string, n?: number }[]} parse
 * @param {Record<string, string>} [fields]
 * @returns {Read}
 */
function stream(accept, query, parse, fields = {}) {
  return async (target, path, after, tell, signal) => {
    const headers = { Accept: accept, ...fields };
    const reply = await request(target, `${path}?after=${after}${query}`, { headers, signal });
    if (reply.statusCode !== 200) throw new Error(`${reply.statusCode}`);
    const read = lines(parse);
    for await (const chunk of reply) for (const { position, n } of read(chunk)) tell(position, n);
  };
}

/** @param {{ position?: string, data?: { n: number } }} told */
const toldOf = ({ position, data }) => (position === undefined ? [] : [{ position, ...(data && { n: data.n }) }]);

/** @param {string} line */
const ndjson = (line) => toldOf(JSON.parse(line));

/** @param {string} line */
const call = (line) => {
  const json = /^<script>parent\.f\((.*)\)<\/script>$/.exec(line)?.[1];
  return json === undefined ? [] : ndjson(json);
};

/** @type {Read} */
async function events(target, path, after, tell, signal) {
  let position = "";
  const parse = (/** @type {string} */ line) => {
    const [, name, value] = /^(id|data): (.*)$/.exec(line) ?? [];
    if (name === "id") position = String(value);
    if (name === "id") return [{ position }];
    return name === "data" ? [{ position, n: JSON.parse(String(value)).n }] : [];
  };
  await stream("text/event-stream", "", parse)(target, path, after, tell, signal);
}

/**
 * The messages of a WebSocket, until it ends.
 * @param {Target} target
 * @param {string} path
 * @param {string[]} subprotocols
 * @param {(socket: WebSocket) => void} opened
 * @param {(message: string) => void} receive
 * @param {AbortSignal} signal
 */
async function webSocket(target, path, subprotocols, opened, receive, signal) {
  const { isSecure, agent: _, ...options } = own(target);
  const url = `${isSecure ? "wss" : "ws"}://${target.host}${target.below ?? ""}${path}`;
  // The address is this machine's, whatever the name.
  const createConnection = () =>
    isSecure ? connectSecurely(options) : connectPlainly(/** @type {import("node:net").NetConnectOpts} */ (options));
  const origin = `${isSecure ? "https" : "http"}://${target.host}`;
  const socket = new WebSocket(url, subprotocols, { origin, headers: target.fields ?? {}, createConnection });
  const end = () => socket.terminate();
  signal.addEventListener("abort", end);
  socket.on("open", () => opened(socket));
  socket.on("message", (data) => receive(String(data)));
  /** @type {Error | undefined} */
  let failed;
  socket.on("error", (error) => (failed = error));
  await once(socket, "close");
  signal.removeEventListener("abort", end);
  if (failed && !signal.aborted) throw failed;
}

/** @type {Read} */
async function plain(target, path, after, tell, signal) {
  // Without positions one counts from where one began.
  const [epoch, offset] = after.split("-");
  let count = Number(offset);
  const opened = () => tell(after);
  await webSocket(target, `${path}?after=${after}`, [], opened, (text) => tell(`${epoch}-${++count}`, JSON.parse(text).n), signal);
}

/** @type {Read} */
async function positions(target, path, after, tell, signal) {
  const receive = (/** @type {string} */ text) => toldOf(JSON.parse(text)).forEach(({ position, n }) => tell(position, n));
  await webSocket(target, `${path}?after=${after}`, ["anemone.events"], () => {}, receive, signal);
}

/**
 * @param {string} message of a reader
 * @param {Tell} tell
 */
function multiplexedReply(message, tell) {
  const [line = "", data] = message.split("\n");
  const [status, , position = ""] = line.split(" ");
  if (status === "206") tell(position, JSON.parse(String(data)).n);
  else if (status === "100") tell(position);
  else throw new Error(message);
}

/** @type {Read} */
async function multiplexed(target, path, after, tell, signal) {
  const opened = (/** @type {WebSocket} */ socket) => socket.send(`GET r ${path}?after=${after}`);
  await webSocket(target, "/ws", ["anemone.v1"], opened, (text) => multiplexedReply(text, tell), signal);
}

/** @type {Read} */
async function tcp(target, path, after, tell, signal) {
  const options = { ...own(target), host: "127.0.0.1", port: Number(target.tcp) };
  const socket = target.isSecure ? connectSecurely(options) : connectPlainly(options);
  const end = () => socket.destroy();
  signal.addEventListener("abort", end);
  const message = Buffer.from(`GET r ${path}?after=${after}`);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.length);
  socket.write(Buffer.concat([length, message]));
  try {
    let rest = Buffer.alloc(0);
    for await (const chunk of socket) {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE()) {
        const end = 4 + rest.readUInt32BE();
        multiplexedReply(rest.subarray(4, end).toString("utf8"), tell);
        rest = rest.subarray(end);
      }
    }
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

// Those by which a browser says that this is a frame of the page's own.
export const FRAME = { "Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin", "Accept-Encoding": "identity" };

/** @satisfies {Record<string, Read>} */
export const TRANSPORTS = {
  poll,
  "long poll": longPoll,
  SSE: events,
  NDJSON: stream("application/x-ndjson", "", ndjson),
  "forever-frame": stream("text/html", "&frame=f", call, FRAME),
  "plain WebSocket": plain,
  "anemone.events": positions,
  "multiplexed WebSocket": multiplexed,
  TCP: tcp,
};
