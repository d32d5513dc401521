/** Bodies of calls and their replies: JavaScript values, text and bytes. */
import { foreign, parse } from "./error.js";

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
 * Returns a body as it is sent, and its type: bytes as they are, any other value as JSON. With a type of the caller's
 * own, text is sent as it is, too.
 * @param {unknown} body
 * @param {string | undefined} type
 * @returns {{ payload?: string | Uint8Array, type?: string }}
 */
export function encode(body, type) {
  if (body === undefined) return {};
  if (body instanceof ArrayBuffer) body = new Uint8Array(body);
  if (body instanceof Uint8Array) return { payload: body, type: type ?? "application/octet-stream" };
  if (type && typeof body === "string") return { payload: body, type };
  return { payload: JSON.stringify(body), type: type ?? "application/json" };
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
