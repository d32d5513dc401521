/** Bodies of calls and their replies: JavaScript values, text and bytes. */
import { foreign, misuse, parse } from "./error.js";

export const JSON_TYPE = "application/json";
const decoder = new TextDecoder();

/** @param {string | Uint8Array | undefined} part */
export function text(part = "") {
  return typeof part === "string" ? part : decoder.decode(part);
}

/** @param {(string | Uint8Array)[]} parts */
export function concat(parts) {
  const all = parts.map((part) => (typeof part === "string" ? new TextEncoder().encode(part) : part));
  const bytes = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const part of all) {
    bytes.set(part, end);
    end += part.length;
  }
  return bytes;
}

/**
 * A body as it was when it was given: it may be sent later, and again. `json` is undefined if there is none.
 * @typedef {Uint8Array | { body: unknown, json: string | undefined }} Kept
 */

/**
 * @param {any} body
 * @returns {Kept}
 */
export function kept(body) {
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return new Uint8Array(/** @type {any} */ (body).buffer ?? body, /** @type {any} */ (body).byteOffset, body.byteLength).slice();
  let json;
  try {
    json = JSON.stringify(body, whole);
  } catch {}
  return { body, json };
}

/**
 * Fails for what has nothing but its insides, such as a promise, a Map or a Blob: it would be an empty object.
 * @param {string} _
 * @param {any} value
 */
function whole(_, value) {
  if (typeof value === "object" && !/ (Object|Array|Null)/.test({}.toString.call(value)) && !Object.keys(value).length) throw value;
  return value;
}

/**
 * Returns a body as it is sent, and adds its type: bytes as they are, any other value as JSON. With a type of the caller's
 * own, text is sent as it is, too.
 * @param {Kept} given
 * @param {Headers} headers
 * @returns {string | Uint8Array | undefined}
 */
export function encode(given, headers) {
  const isBytes = given instanceof Uint8Array;
  if (!isBytes && given.body === undefined) return;
  const isTyped = headers.has("content-type");
  if (!isTyped) headers.set("content-type", isBytes ? "application/octet-stream" : JSON_TYPE);
  if (isBytes) return given;
  if (isTyped && typeof given.body === "string") return given.body;
  if (given.json === undefined) throw misuse("the body has no JSON");
  return given.json;
}

/**
 * Returns the value of a reply.
 * @param {(string | Uint8Array)[]} parts
 * @param {string} type NDJSON becomes an array, JSON a value, other text a string, and everything else bytes
 */
export function decode(parts, type) {
  const bytes = concat(parts);
  if (bytes.length === 0) return undefined;
  if (/ndjson/.test(type)) return text(bytes).split("\n").filter((line) => line.trim()).map(json);
  if (/json/.test(type)) return json(text(bytes));
  return /^text/.test(type) ? text(bytes) : bytes;
}

/** @param {string} line */
export function json(line) {
  const value = parse(line);
  if (value === undefined) throw foreign("the reply, which is not JSON,");
  return value;
}
