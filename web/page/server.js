/** The page's client for this server, the server's clock, and failures in words. */
import { AnemoneError, connect, now } from "../client.js";
import { refusalStatus } from "../transport/refusal.js";
import { at } from "./site.js";

export const client = connect(at(""));

let offsetMs = 0;

/** The time by the server's clock, ms since the Unix epoch. */
export function serverNow() {
  return now() + offsetMs;
}

/** Asks for the time of the server's clock. */
export async function learnClock() {
  const asked = now();
  const { data } = await client.call("GET", "clock");
  offsetMs = data.time - (asked + now()) / 2;
}

/**
 * Returns true if an error only says that the server cannot be reached.
 * @param {unknown} error
 */
export function isGone(error) {
  return !(error instanceof AnemoneError) || refusalStatus(error) === null;
}

/**
 * Returns true if the server answers. The answer of a proxy that cannot reach the server does not count.
 * @param {AbortSignal} signal ends the wait
 */
export async function isThere(signal) {
  try {
    const reply = await fetch(at("health"), { cache: "no-store", signal });
    await reply.arrayBuffer();
    // A server that is not well says so in JSON.
    return reply.status < 500 || reply.headers.get("content-type")?.startsWith("application/json") === true;
  } catch {
    return false;
  }
}

/**
 * Returns the reason of a failure as a sentence.
 * @param {unknown} error
 */
export function failureInWords(error) {
  if (error instanceof AnemoneError && error.code !== "unreachable") return sentence(error.message);
  return "The server does not answer.";
}

/** @param {string} words */
export function sentence(words) {
  const text = words.trim();
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
