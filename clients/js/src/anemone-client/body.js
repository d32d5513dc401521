/** Bodies of calls and their replies: JavaScript values, text and bytes. */
import { foreign, misuse, parse } from "./error.js";

export const JSON_TYPE = "application/json";
const misfit = () => {
  throw misuse("the body has no JSON");
};
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
 * Returns a body as it is sent, and adds its type: bytes as they are, any other value as JSON. With a type of the caller's
 * own, text is sent as it is, too.
 * @param {any} body
 * @param {Headers} headers
 * @returns {string | Uint8Array | undefined}
 */
export function encode(body, headers) {
  if (body === undefined) return;
  const isTyped = headers.has("content-type");
  if (body instanceof ArrayBuffer) body = new Uint8Array(body);
  const isBytes = ArrayBuffer.isView(body);
  if (isBytes) body = new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (!isTyped) headers.set("content-type", isBytes ? "application/octet-stream" : JSON_TYPE);
  if (isBytes || (isTyped && typeof body === "string")) return body;
  // What has nothing but its insides, such as a promise, a Map or a Blob, would be an empty object.
  const isEmpty = (/** @type {any} */ value) => typeof value === "object" && !/ (Object|Array|Null)]/.test({}.toString.call(value)) && !Object.keys(value).length;
  const text = JSON.stringify(body, (_, value) => (isEmpty(value) ? misfit() : value));
  return text ?? misfit();
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
