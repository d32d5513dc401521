/** Those who read a topic in each way and go on from where they were, whatever ends, and who publishes to it. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "./support.js";
import { ask } from "./transports.js";

const RETRY_MS = 50;

/**
 * Publishes `{"n":N}`, again and again until it is acknowledged.
 * @param {import("./transports.js").Target} target
 * @param {string} topic
 * @param {number} n
 */
export async function publish(target, topic, n) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": `event-${topic}-${n}` };
  /** @type {string} */
  let position = "";
  await until(`event ${n} to be published`, async () => {
    const body = JSON.stringify({ n });
    const reply = await ask(target, `/topics/${topic}`, { method: "POST", headers, body }).catch(() => undefined);
    // A proxy that has no connection to the server, or none any more, says so.
    if (!reply || Number(reply.status) >= 502) return false;
    assert.ok(reply.status === 201 || reply.status === 200, `${reply.status} ${reply.text}`);
    ({ position } = JSON.parse(reply.text));
    return true;
  });
  return position;
}

/** One who reads on after each end, from where they were. */
export class Reader {
  /** @type {Set<Reader>} */ static #reading = new Set();
  /** @type {number[]} */ numbers = [];
  /** @type {string[]} */ problems = [];
  ends = 0;
  hasBegun = false;
  #controller = new AbortController();
  /** @type {Promise<void>} */ #done;

  /**
   * @param {string} transport
   * @param {import("./transports.js").Read} read
   * @param {import("./transports.js").Target} target
   * @param {string} path
   * @param {string} position
   */
  constructor(transport, read, target, path, position) {
    this.transport = transport;
    Reader.#reading.add(this);
    this.#done = this.#read(read, target, path, position);
  }

  /**
   * @param {import("./transports.js").Read} read
   * @param {import("./transports.js").Target} target
   * @param {string} path
   * @param {string} position
   */
  async #read(read, target, path, position) {
    const { signal } = this.#controller;
    while (!signal.aborted) {
      /** @type {import("./transports.js").Tell} */
      const tell = (told, n) => {
        [position, this.hasBegun] = [told, true];
        if (n !== undefined) this.numbers.push(n);
      };
      await read(target, path, position, tell, signal).catch((error) => this.problems.push(String(error)));
      this.ends += 1;
      await sleep(RETRY_MS);
    }
  }

  async stop() {
    this.#controller.abort();
    await this.#done;
    Reader.#reading.delete(this);
  }

  /** Stops those that a test that failed has left, which would read on for ever. */
  static async stopAll() {
    await Promise.all([...Reader.#reading].map((reader) => reader.stop()));
  }
}

/**
 * @param {import("./proxies.js").Proxy} proxy
 * @param {Reader[]} all
 */
export async function begun(proxy, all) {
  for (const reader of all) {
    await until(`${reader.transport} to begin`, () => reader.hasBegun).catch((error) => {
      throw new Error(`${proxy.name}: ${error.message}: ${reader.problems.at(-1)}\n${proxy.output.join("").slice(-2000)}`);
    });
  }
  return all;
}

/**
 * @param {import("./proxies.js").Proxy} proxy
 * @param {Reader[]} all
 * @param {number} last
 */
export async function haveRead(proxy, all, last) {
  for (const { transport, numbers, problems } of all) {
    await until(`event ${last}`, () => numbers.at(-1) === last).catch((error) => {
      throw new Error(`${proxy.name}, ${transport}: ${error.message}: has ${numbers}; ${problems.at(-1)}`);
    });
  }
}
