/** Calls to services. A call is made again only where that is safe. */
import { concat, decode, encode } from "./body.js";
import { AnemoneError, foreign, typed } from "./error.js";
import { newKey } from "./link.js";
import { isFinal, Multiplexed } from "./mux.js";
import { load } from "./parts.js";
import { Backoff, sleep } from "./time.js";

const ANSWER_MS_MAX = 45_000;
const TRIES_MAX = 5;
/** Those of an event, and of the start of a run: for a minute, about. */
const TRIES_WITH_KEY_MAX = 16;
/** No try begins later than this after the first. */
const TRIES_MS_MAX = 60_000;
/** The statuses of refusals that pass. */
const BRIEF = [408, 425, 429, 502, 503, 504];
const JSON_TYPE = "application/json";
/** The fields that a multiplexed request may have. */
const MUX_FIELDS = /^(accept(-language)?|content-type|idempotency-key|if-(none-)?match|last-event-id|prefer)$/;
/** Characters or bytes of a body, far below what a server takes in a message. */
const MUX_LENGTH_MAX = 2 ** 16;

/**
 * @param {import("./link.js").Link} link
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {import("./types.js").CallOptions} [options]
 * @param {number} [triesMax]
 * @returns {Promise<import("./types.js").Reply>}
 */
export async function call(link, method, path, body, options = {}, triesMax = TRIES_MAX) {
  method = method.toUpperCase();
  const { signal, key = method === "DELETE" } = options; // without one, a second try finds nothing
  const request = requestOf(link, method, path, body, { ...options, key });
  const { target, fields, payload } = request;
  const isUnsafe = !/^(GET|HEAD|OPTIONS|PUT|DELETE)$/.test(method);
  // A call with If-Match that was carried out has changed the tag, so its second try would be refused.
  const isSafe = !("if-match" in fields) && (!isUnsafe || "idempotency-key" in fields || /[?&]key=/.test(path));
  // A multiplexed request to a topic has no fields, and JSON is what it has without.
  const isOfTopic = /^topics\b/.test(target);
  const isPlain = Object.entries(fields).every(([name, value]) => name === "content-type" && value === JSON_TYPE);
  // Others, and long messages, are for HTTP: a message that is too long would end the connection of all.
  const isForMux = Object.keys(fields).every((name) => MUX_FIELDS.test(name)) && (payload?.length ?? 0) <= MUX_LENGTH_MAX;
  // Multiplexed, this would start a reader instead of asking for a page.
  const isOfPage = method === "GET" && /^(topics|runs)\//.test(target);
  const backoff = new Backoff(link.options.random);
  const first = Date.now();
  let mayBeDone = false;
  for (let tries = 1; ; tries += 1) {
    await link.ready;
    link.check();
    const begun = Date.now();
    const via = link.transport;
    const isMux = via === "mux" && isForMux && !isOfPage && (isPlain || !isOfTopic);
    const limit = AbortSignal.timeout(ANSWER_MS_MAX);
    const end = endedWith(link, signal);
    const ends = AbortSignal.any([limit, end.signal]);
    let isSent = false;
    try {
      const caller = isMux ? await link.socket() : await load("http");
      ends.throwIfAborted();
      isSent = true;
      if (caller instanceof Multiplexed) return await byMux(caller, isOfTopic ? { ...request, fields: {} } : request, ends);
      return await caller.call(link, request, ends);
    } catch (cause) {
      signal?.throwIfAborted();
      link.check();
      const error = limit.aborted ? new AnemoneError("timeout", "no answer in time", { cause }) : typed(cause);
      if (!isSent) link.tried(via, begun, error);
      if (!isSent && isMux && (await link.fall(via, error))) continue;
      const isRefused = error.status !== undefined;
      mayBeDone ||= isSent && !isRefused && (isUnsafe || !isSafe);
      const isBrief = isRefused ? BRIEF.includes(Number(error.status)) : error.code !== "closed" && error.code !== "protocol";
      if (!isBrief || tries >= triesMax || Date.now() + error.retryMs - first > TRIES_MS_MAX || (isSent && !isSafe)) {
        throw mayBeDone && !isRefused ? new AnemoneError("uncertain", "no answer: the call may be done", { cause }) : error;
      }
      await sleep(Math.max(backoff.next(), error.retryMs), end.signal); // the server's time may be longer than that of a try
    } finally {
      end.abort();
    }
  }
}

/**
 * Makes a controller that aborts when the client is closed, or with the caller's signal. Abort it at the end of the call, or both remember
 * each call for ever.
 * @param {import("./link.js").Link} link
 * @param {AbortSignal | undefined} signal
 */
function endedWith(link, signal) {
  signal?.throwIfAborted();
  const end = new AbortController();
  for (const other of [link.end.signal, signal]) other?.addEventListener("abort", () => end.abort(other.reason), { signal: end.signal });
  return end;
}

/**
 * Makes a call once, and returns the items of its reply as they come.
 * @param {import("./link.js").Link} link
 * @param {string} method
 * @param {string} path
 * @param {unknown} body
 * @param {import("./types.js").CallOptions} [options]
 */
export async function* items(link, method, path, body, options = {}) {
  const request = requestOf(link, method, path, body, options);
  const { signal } = options;
  await link.ready;
  link.check();
  const end = endedWith(link, signal);
  try {
    yield* (await load("http")).items(link, request, end.signal);
  } catch (cause) {
    signal?.throwIfAborted();
    link.check();
    throw typed(cause);
  } finally {
    end.abort();
  }
}

/**
 * @param {import("./link.js").Link} link
 * @param {string} method
 * @param {string} path
 * @param {unknown} body
 * @param {import("./types.js").CallOptions} options
 * @returns {import("./types.js").Request}
 */
function requestOf({ base }, method, path, body, { key, headers = {} }) {
  /** @type {Record<string, string>} */
  const fields = {};
  for (const name in headers) {
    // It would be sent as the word "undefined".
    if (headers[name] == null) throw new AnemoneError("bad-argument", `header ${name} has no value`);
    fields[name.toLowerCase()] = headers[name];
  }
  const { payload, type } = encode(body, fields["content-type"]);
  if (type) fields["content-type"] = type;
  if (key) fields["idempotency-key"] = key === true ? newKey() : key;
  // As a URL writes it, over each transport.
  const { href } = new URL(path.replace(/^\//, ""), base);
  if (!href.startsWith(base.href)) throw new AnemoneError("bad-argument", `${path} is not a path of the server`);
  return { method, target: href.slice(base.href.length), fields, payload };
}

/**
 * @param {import("./mux.js").Multiplexed} socket
 * @param {import("./types.js").Request} request
 * @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").Reply>}
 */
function byMux(socket, { method, target, fields, payload }, signal) {
  const words = Object.entries(fields).map(([name, value]) => ` ${name}=${encodeURIComponent(value)}`);
  return new Promise((resolve, reject) => {
    /** @type {(string | Uint8Array)[]} */
    const parts = [];
    /** @type {Record<string, string>} */
    const found = {};
    let isStream = false;
    const end = () => {
      cancel();
      socket.probe();
      reject(signal.reason);
    };
    signal.addEventListener("abort", end);
    /** @type {import("./types.js").TakeReply} */
    const take = (reply) => {
      if (reply instanceof Error || isFinal(reply.status)) signal.removeEventListener("abort", end);
      if (reply instanceof Error) return reject(reply);
      if (reply.payload?.length) parts.push(reply.payload);
      Object.assign(found, reply.fields);
      if (!isFinal(reply.status)) return void (isStream ||= !found["content-type"]);
      const type = found["content-type"] ?? JSON_TYPE;
      try {
        const data = isStream ? parts.map((part) => decode([part], JSON_TYPE)) : decode(parts, type);
        resolve({ status: reply.status, data, fields: found });
      } catch (error) {
        reject(error);
      }
    };
    const cancel = socket.send(method, target + words.join(""), take, (head) => {
      if (payload === undefined) return head;
      return typeof payload === "string" ? `${head}\n${payload}` : concat([`${head}\n`, payload]);
    });
  });
}

/**
 * Publishes an event, once, with as many tries as necessary within a minute or so.
 * @param {import("./link.js").Link} link
 * @param {string} name
 * @param {unknown} data
 * @param {{ key?: string, signal?: AbortSignal }} [options]
 */
export async function publish(link, name, data, { key = newKey(), signal } = {}) {
  const path = `topics/${encodeURIComponent(name)}?key=${encodeURIComponent(key)}`;
  const { data: found } = await call(link, "POST", path, data, { signal }, TRIES_WITH_KEY_MAX);
  // A page that asks for a login answers 200, too.
  if (typeof (/** @type {any} */ (found)?.position) !== "string") throw foreign("the reply to an event, which has no position,");
  return found;
}

/**
 * Starts a run, and returns its key.
 * @param {import("./link.js").Link} link
 * @param {string} path
 * @param {unknown} body
 * @param {import("./types.js").CallOptions} options
 */
export async function start(link, path, body, { key = true, headers, signal }) {
  const { status, data } = await call(link, "POST", path, body, { key, signal, headers: { ...headers, prefer: "respond-async" } }, TRIES_WITH_KEY_MAX);
  if (status !== 202) throw foreign(`the status ${status}, and no run,`);
  return String(/** @type {any} */ (data).key);
}
