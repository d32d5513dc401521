/** The client that a page has for this server, the server's clock, and what its failures are in words. */
import { AnemoneError, connect, now } from "../client.js";
import { at } from "./site.js";

export const client = connect(at(""));

let offsetMs = 0;

/** The time by the server's clock, ms since the Unix epoch. */
export function serverNow() {
  return now() + offsetMs;
}

/** Learns the server's clock. */
export async function learnClock() {
  const asked = now();
  const { data } = await client.call("GET", "clock");
  offsetMs = data.time - (asked + now()) / 2;
}

/**
 * Returns true if an error says nothing about what was asked, only that no answer came.
 * @param {unknown} error
 */
export function isUnreached(error) {
  return !(error instanceof AnemoneError) || error.status === undefined || error.status >= 500;
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
