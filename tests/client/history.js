/** What the tests of cuts share: numbers that are published while every connection breaks. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** Each is at another place in what the server says: `make soak` finds what few places show. */
export const CUTS = process.env.TEST_SOAK ? 200 : 50;
export const TRANSPORTS = /** @type {const} */ (["mux", "sse", "ndjson", "long-poll", "poll"]);
/** Set it to repeat a failure. */
export const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/**
 * Cuts all connections, and each later one after a random number of bytes, while numbers are published to each topic;
 * then lets connections live. Returns the last number.
 * @param {import("./relay.js").Relay} relay
 * @param {string[]} topics their URLs, past the relay
 * @param {() => number} random
 * @param {import("./relay.js").Weather} [weather] besides, and afterwards
 */
export async function publishThroughCuts(relay, topics, random, weather = {}) {
  relay.weather = { ...weather, cutAfter: () => someBytes(random), delayMs: () => (random() < 0.1 ? 5 * random() : 0) };
  relay.cut();
  let last = 0;
  while (relay.cuts < CUTS) {
    const body = Array.from({ length: 5 }, () => `{"n":${(last += 1)},"more":"${"more ".repeat(20)}"}`).join("\n");
    for (const topic of topics) {
      const reply = await fetch(topic, { method: "POST", headers: { "content-type": "application/x-ndjson" }, body });
      assert.equal(reply.status, 201, await reply.text());
    }
    await sleep(1);
  }
  relay.weather = weather;
  return last;
}

/**
 * A number of bytes from 100 to 20,000, as often below 1,400 as above.
 * @param {() => number} random
 */
export function someBytes(random) {
  return Math.floor(100 * 200 ** random());
}
