/**
 * The environment of a page: network and time. Tests pass their own.
 *
 * @typedef {object} Environment
 * @property {typeof fetch} fetch
 * @property {typeof WebSocket} WebSocket
 * @property {() => number} now ms since the Unix epoch, never set back
 * @property {(ms: number, signal: AbortSignal) => Promise<void>} sleep ends early, without an error, on abort
 */
import { now, sleep } from "../client.js";

/** @type {Environment} */
export const browser = { fetch: (input, init) => fetch(input, init), WebSocket: globalThis.WebSocket, now, sleep };
