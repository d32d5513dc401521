/** The parts that need requests over HTTP. A page that has a WebSocket loads it only for a call that needs it. */
import { decode, json } from "./body.js";
import { ask, bytesOf, pieces } from "./request.js";
export { read } from "./streams.js";

/**
 * Makes a call.
 * @param {import("./link.js").Link} link
 * @param {import("./types.js").Request} request
 * @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").Reply>}
 */
export async function call(link, { method, target, fields, payload }, signal) {
  const reply = await ask(link, method, target, { headers: fields, body: /** @type {BodyInit} */ (payload), signal });
  const data = decode([await bytesOf(reply, method)], typeOf(reply));
  return { status: reply.status, data, fields: Object.fromEntries(reply.headers) };
}

/**
 * Makes a call whose reply is a stream, and returns its items as they come. Who takes them slowly holds back the service.
 * @param {import("./link.js").Link} link
 * @param {import("./types.js").Request} request
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<any, void, void>}
 */
export async function* items(link, { method, target, fields, payload }, signal) {
  const headers = { accept: "application/x-ndjson, application/json;q=0.9", ...fields };
  const reply = await ask(link, method, target, { headers, body: /** @type {BodyInit} */ (payload), signal });
  if (!typeOf(reply).includes("ndjson")) return void (yield decode([await bytesOf(reply)], typeOf(reply)));
  for await (const { lines } of pieces(reply, "", signal)) for (const line of lines) if (line.trim()) yield json(line);
}

/** @param {Response} reply */
const typeOf = (reply) => reply.headers.get("content-type") ?? "";
