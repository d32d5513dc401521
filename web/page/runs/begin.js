/** Starts a run: a new one from the box, or a finished one again. */
import { newKey, patience } from "../sending.js";
import { client, failureInWords, isGone } from "../server.js";
import { at } from "../site.js";
import { targetOf } from "./words.js";

/**
 * Starts a run, once for each key.
 * @param {import("./words.js").Start} input
 * @param {string} [key]
 * @returns {Promise<{ words: string, location: string | null, isKnown: boolean }>} `isKnown` is false if nobody knows whether it was started
 */
export async function begin(input, key = newKey()) {
  const headers = { prefer: "respond-async", ...(input.type !== null && { "content-type": input.type }) };
  try {
    const { fields } = await client.call("POST", targetOf(input), input.body ?? undefined, { key, headers, ...patience() });
    const location = new URL(String(fields.location), at(input.path.slice(1))).href;
    return { words: "Started: ", location, isKnown: true };
  } catch (error) {
    const words = isGone(error) ? `${failureInWords(error)} Start again: if the run has begun, there will not be two.` : failureInWords(error);
    return { words, location: null, isKnown: !isGone(error) };
  }
}
