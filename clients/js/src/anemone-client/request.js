/** Requests over HTTP. */
import { concat, text } from "./body.js";
import { REPLY_MAX, tooLong } from "./bound.js";
import { AnemoneError, foreign, misuse, refusal, words } from "./error.js";
import { now } from "./time.js";

/** The most bytes of a refusal's body that are read. No problem is longer. */
const REFUSAL_BYTES_MAX = 2 ** 16;
const TOKEN_MS_MAX = 60_000;

/**
 * Sends a request; a refusal is an error.
 * @param {import("./link.js").Link} link
 * @param {Omit<import("./types.js").Request, "method"> & { method?: string }} request
 * @param {AbortSignal} signal
 */
export async function ask(link, { method, target, fields, payload }, signal) {
  const { fetch, token } = link.options;
  /** @type {typeof link.token} */
  let stale;
  for (;;) {
    if (typeof token !== "function") link.token = token;
    // Whoever needs a new one at the same time waits for the same.
    else if (link.token === undefined || link.token === stale) {
      link.token = fresh(link, token);
      link.token.catch(() => (link.token = undefined));
    }
    const held = link.token;
    const value = await until(held, signal);
    const bearer = words(value).trim();
    if (value && !/^[ -~]+$/.test(bearer)) {
      link.token = undefined;
      const why = "the token is no text that a header may have";
      throw typeof token === "function" ? new AnemoneError("token-failed", why) : misuse(why);
    }
    const headers = value ? { ...fields, authorization: `Bearer ${bearer}` } : fields;
    const body = /** @type {BodyInit} */ (payload);
    const url = new URL(target, link.base);
    if (!url.href.startsWith(link.base.href)) throw misuse(`${target} is not a path of the server`); // which alone gets the token
    const reply = await fetch(url, { cache: "no-store", method, headers, body, signal });
    if (reply.ok || reply.status === 304) return reply;
    if (reply.status !== 401 || typeof token !== "function" || stale) {
      const { status, headers } = reply;
      const after = headers.get("retry-after") ?? ""; // seconds or a date (RFC 9110 section 10.2.3)
      const error = refusal(status, text(await bodyOf(reply, REFUSAL_BYTES_MAX, signal)), Number(after) || (Date.parse(after) - Date.now()) / 1000);
      // Of a problem, the answer to HEAD has nothing but the type.
      if (method === "HEAD" && /problem/.test(headers.get("content-type") ?? "")) [error.code, error.message] = ["refused", `HEAD is refused: ${status}`];
      throw error;
    }
    stale = held;
    await reply.body?.cancel();
  }
}

/**
 * @param {import("./link.js").Link} link
 * @param {() => string | Promise<string>} token
 */
async function fresh(link, token) {
  link.heldUntil = Infinity;
  try {
    return await until(token(), AbortSignal.timeout(TOKEN_MS_MAX)); // one that never comes is asked for again
  } catch (cause) {
    throw new AnemoneError("token-failed", `there is no token: ${cause}`, { cause });
  } finally {
    link.heldUntil = Date.now();
  }
}

/**
 * Waits for a value no longer than until the signal aborts.
 * @template Value
 * @param {Value | Promise<Value>} value
 * @param {AbortSignal} signal
 * @returns {Promise<Value>}
 */
export async function until(value, signal) {
  const end = new AbortController();
  const aborted = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { signal: end.signal }));
  return await Promise.race([value, aborted]).finally(() => end.abort());
}

/**
 * Reads a body until it ends, or is longer than allowed. A body without an end would fill the memory.
 * @param {Response} reply
 * @param {number} bytesMax
 * @param {AbortSignal} signal
 */
async function bodyOf({ body }, bytesMax, signal) {
  const parts = [];
  let length = 0;
  const reader = body && readerOf(body, signal);
  for (let part; length <= bytesMax && (part = (await reader?.read())?.value); length += part.length) parts.push(part);
  reader?.cancel().catch(() => {});
  return concat(parts);
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {AbortSignal} signal
 */
function readerOf(body, signal) {
  const reader = body.getReader();
  // In Node 20, an abort just before the end of a reply leaves the reader waiting for ever.
  signal.addEventListener("abort", () => reader.cancel().catch(() => {}));
  return reader;
}

/**
 * Returns the body of a reply. Throws if it was cut off: Chromium passes on such a reply, even if it was cut amid the headers.
 * @param {Response} reply
 * @param {AbortSignal} signal
 * @param {string} [method] whose reply it is
 */
export async function bytesOf(reply, signal, method) {
  const { status, headers } = reply;
  const bytes = await bodyOf(reply, REPLY_MAX, signal);
  if (bytes.length > REPLY_MAX) throw tooLong();
  const isWhole = method === "HEAD" || bytes.length >= Number(headers.get("content-length") ?? 1);
  if (isWhole || status === 204 || status === 304 || headers.has("content-encoding") || headers.has("transfer-encoding")) return bytes;
  throw cutOff();
}

/** @param {unknown} [cause] */
const cutOff = (cause) => new AnemoneError("lost", "the reply was cut", { cause });

/**
 * Returns the pieces of a stream: the lines that are complete, and the time at which they came. Fails if the reply is of another type.
 * Without a type, the last line needs no line feed.
 * @param {Response} reply
 * @param {string} type
 * @param {AbortSignal} signal
 */
export async function* pieces(reply, type, signal) {
  const found = reply.headers.get("content-type");
  if (!found) throw cutOff();
  if (!found.startsWith(type)) throw foreign("a reply that is no stream");
  const reader = readerOf(/** @type {ReadableStream<Uint8Array>} */ (reply.body), signal);
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((cause) => Promise.reject(cutOff(cause)));
    const received = now();
    if (done) {
      if (rest && !type) yield { lines: [rest], received };
      return;
    }
    const lines = decoder.decode(value, { stream: true }).split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    if (rest.length > REPLY_MAX) throw tooLong();
    yield { lines, received };
  }
}
