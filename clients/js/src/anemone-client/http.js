/** Calls over HTTP. A page with a WebSocket loads this file only for a call that needs it. */
import { decode, json } from "./body.js";
import { ask, bytesOf, pieces, until } from "./request.js";
import { ANSWER_MS_MAX, OPEN_MS_MAX } from "./time.js";
export { read } from "./streams.js";

/**
 * Makes a call.
 * @param {import("./link.js").Link} link
 * @param {import("./types.js").Request} request
 * @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").Reply>}
 */
export async function call(link, request, signal) {
  const reply = await ask(link, request, signal);
  const data = decode([await bytesOf(reply, signal, request.method)], typeOf(reply));
  return { status: reply.status, data, fields: Object.fromEntries(reply.headers) };
}

/**
 * Makes a call whose reply is a stream, and returns the items as they come. A slow caller slows the service down.
 * @param {import("./link.js").Link} link
 * @param {import("./types.js").Request} request
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<any, void, void>}
 */
export async function* items(link, request, signal) {
  const fields = { accept: "application/x-ndjson, application/json;q=0.9", ...request.fields };
  const reply = await until(ask(link, { ...request, fields }, signal), AbortSignal.timeout(ANSWER_MS_MAX));
  if (!typeOf(reply).includes("ndjson")) return void (yield decode([await bytesOf(reply, signal)], typeOf(reply)));
  for await (const { lines } of pieces(reply, "", signal)) for (const line of lines) if (line.trim()) yield json(line);
}

/**
 * Returns what the server answers, and fails if it does not.
 * @param {import("./link.js").Link} link
 */
export function answers({ base, options: { fetch } }) {
  return fetch(new URL("clock", base), { cache: "no-store", signal: AbortSignal.timeout(OPEN_MS_MAX) });
}

/** @param {Response} reply */
const typeOf = (reply) => reply.headers.get("content-type") ?? "";
