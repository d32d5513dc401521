/** Calls to services. A call is made again only where that is safe. */
import { bytesOf, decode, encode } from "./body.js";
import { AnemoneError, typed } from "./error.js";
import { isFinal } from "./mux.js";
import { Backoff, sleep } from "./time.js";

const ANSWER_MS_MAX = 45_000;
const TRIES_MAX = 5;
/** The statuses of refusals that pass. */
const BRIEF = [408, 425, 429, 502, 503, 504];
const JSON_TYPE = "application/json";

/**
 * @param {import("./link.js").Link} link
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {import("./types.js").CallOptions} [options]
 * @returns {Promise<import("./types.js").Reply>}
 */
export async function call(link, method, path, body, { key, headers = {}, signal } = {}) {
  const target = path.replace(/^\//, "");
  const { payload, type } = encode(body, headers["content-type"]);
  /** @type {Record<string, string>} */
  const fields = { ...headers, ...(type && { "content-type": type }) };
  // It would be sent as the word "undefined".
  for (const name in fields) if (fields[name] == null) throw new AnemoneError("bad-argument", `header ${name} has no value`);
  if (key) fields["idempotency-key"] = key === true ? newKey() : key;
  const isSafe = Boolean(key) || /[?&]key=/.test(path) || !/^(POST|PATCH)$/.test(method);
  // A multiplexed request to a topic has no fields, and JSON is what it has without.
  const isOfTopic = /^topics\b/.test(target);
  const isPlain = Object.entries(fields).every(([name, value]) => name === "content-type" && value === JSON_TYPE);
  // Multiplexed, this would start a reader instead of asking for a page.
  const isOfPage = method === "GET" && /^(topics|runs)\//.test(target);
  const request = { method, target, fields, payload };
  const backoff = new Backoff(link.random);
  for (let tries = 1; ; tries += 1) {
    await link.ready;
    link.check();
    const begun = Date.now();
    const via = link.transport;
    const isMux = via === "mux" && !isOfPage && (isPlain || !isOfTopic);
    const limit = AbortSignal.timeout(ANSWER_MS_MAX);
    const ends = signal ? AbortSignal.any([signal, limit]) : limit;
    let isSent = false;
    try {
      if (isMux) {
        const socket = await link.socket(ends);
        isSent = true;
        return await byMux(socket, isOfTopic ? { ...request, fields: {} } : request, ends);
      }
      isSent = true;
      return await byHttp(link, request, ends);
    } catch (cause) {
      signal?.throwIfAborted();
      const error = limit.aborted ? new AnemoneError("timeout", "the answer takes too long", { cause }) : typed(cause);
      if (!isSent) link.tried(via, begun, error);
      if (!isSent && link.fall(via, error)) continue;
      const isRefused = error.status !== undefined;
      if (isSent && !isSafe && !isRefused) {
        throw new AnemoneError("uncertain", "no answer: the call may have been carried out", { cause });
      }
      const isBrief = isRefused ? BRIEF.includes(Number(error.status)) : error.code !== "closed" && error.code !== "protocol";
      if (!isBrief || tries >= TRIES_MAX || (isSent && !isSafe)) throw error;
      await sleep(Math.max(backoff.next(), error.retryMs), ends);
    }
  }
}

/** @typedef {{ method: string, target: string, fields: Record<string, string>, payload?: string | Uint8Array }} Request */

/**
 * @param {import("./mux.js").Multiplexed} socket
 * @param {Request} request
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
    const cancel = socket.send(method, `/${target}${words.join("")}`, payload, (reply) => {
      if (reply instanceof Error || isFinal(reply.status)) signal.removeEventListener("abort", end);
      if (reply instanceof Error) return reject(reply);
      if (reply.payload?.length) parts.push(reply.payload);
      Object.assign(found, reply.fields);
      if (!isFinal(reply.status)) return void (isStream ||= !found["content-type"]);
      const type = found["content-type"] ?? JSON_TYPE;
      const data = isStream ? parts.map((part) => decode([part], JSON_TYPE)) : decode(parts, type);
      resolve({ status: reply.status, data, fields: found });
    });
  });
}

/**
 * @param {import("./link.js").Link} link
 * @param {Request} request
 * @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").Reply>}
 */
async function byHttp(link, { method, target, fields, payload }, signal) {
  const reply = await link.ask(method, target, { headers: fields, body: /** @type {BodyInit} */ (payload), signal });
  const data = decode([await bytesOf(reply)], reply.headers.get("content-type") ?? "");
  return { status: reply.status, data, fields: Object.fromEntries(reply.headers) };
}

/** A key under which a call may be made again. */
export const newKey = () => Array.from({ length: 4 }, () => Math.random().toString(36).slice(2, 8)).join("");
