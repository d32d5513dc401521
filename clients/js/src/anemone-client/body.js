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
 * A body as the caller gave it, since it may be sent later, and again: text, bytes, or JSON. If there is no `json`, `cause` has the reason.
 * @typedef {string | Uint8Array | { body?: unknown, json?: string, cause?: unknown } | undefined} Kept
 */

/**
 * @param {any} body
 * @returns {Kept}
 */
export function kept(body) {
  if (typeof body === "string" || body === undefined) return body;
  try {
    if (body instanceof ArrayBuffer) body = new Uint8Array(body);
    if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
    return { body, json: JSON.stringify(body) };
  } catch (cause) {
    return { cause };
  }
}

/**
 * Returns the form of a body that is sent, and adds its type. Bytes stay as they are; any other value becomes JSON. Text stays as it is if
 * the caller has set a type.
 * @param {Kept} given
 * @param {Headers} headers
 * @returns {string | Uint8Array | undefined}
 */
export function encode(given, headers) {
  if (given === undefined) return;
  const isTyped = headers.has("content-type");
  const isBytes = given instanceof Uint8Array;
  if (!isTyped) headers.set("content-type", isBytes ? "application/octet-stream" : JSON_TYPE);
  if (isBytes) return given;
  if (typeof given === "string") return isTyped ? given : JSON.stringify(given);
  const { body, json, cause } = given;
  if (json === undefined || (json.includes("{}") && isHollow(body))) throw misuse(/** @type {any} */ (cause)?.message ?? "the body has no JSON");
  return json;
}

/**
 * Returns true if JSON makes an empty object of a part of a body that is not empty, such as a promise, a Map or a Blob.
 * @param {unknown} body
 */
function isHollow(body) {
  let isFound = false;
  JSON.stringify(body, (_, value) => {
    isFound ||= typeof value === "object" && !/ (Object|\w*Array|String|Number|Boolean|Null)]/.test({}.toString.call(value)) && !Object.keys(value).length;
    return value;
  });
  return isFound;
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
