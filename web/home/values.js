/**
 * The newest events of the topics in view. On the multiplexed connection, each topic has a reader, which skips to the newest event if it is
 * behind. Without a WebSocket, one request now and then asks for all of them, since a browser has only six connections.
 */
import { parsePosition } from "../client.js";

const ASK_EVERY_MS = 2000;
/** The most topics that the server takes in one request. */
const ASKED_MAX = 64;
/** The most readers of the page. No screen has more rows. */
const READERS_MAX = 100;

/** @typedef {{ position: string, time: number, data: unknown }} Newest */

export class Values {
  #client;
  #onValue;
  /** @type {Set<string>} */
  #wanted = new Set();
  /** @type {Map<string, ReturnType<import("../client.js").Client["topic"]>>} */
  #readers = new Map();
  #isMultiplexed = true;

  /**
   * @param {import("../client.js").Client} client
   * @param {(name: string, newest: Newest) => void} onValue
   */
  constructor(client, onValue) {
    this.#client = client;
    this.#onValue = onValue;
    setInterval(() => void this.#ask(), ASK_EVERY_MS);
  }

  /** Returns true if this page is one of the readers of a topic. @param {string} name */
  reads(name) {
    return this.#readers.has(name);
  }

  /**
   * Returns the last events of a topic; none without a WebSocket, since that would take a connection.
   * @param {string} name
   * @param {number} count at most so many
   * @param {number} end the offset of the last one
   */
  async past(name, count, end) {
    /** @type {Newest[]} */
    const events = [];
    if (!this.#isMultiplexed) return events;
    try {
      for await (const { position, time, data } of this.#client.topic(name, { after: `-${count}` })) {
        events.push({ position, time, data });
        if (events.length >= count || (parsePosition(position)?.offset ?? end) >= end) break;
      }
    } catch {
      // The index says whether the topic comes again.
    }
    return events;
  }

  /** @param {string} transport over which the client reads now */
  over(transport) {
    const isMultiplexed = transport === "mux";
    if (isMultiplexed === this.#isMultiplexed) return;
    this.#isMultiplexed = isMultiplexed;
    this.#follow();
    void this.#ask();
  }

  /** @param {Iterable<string>} names of the topics in view */
  show(names) {
    this.#wanted = new Set([...names].slice(0, READERS_MAX));
    this.#follow();
  }

  #follow() {
    for (const [name, reader] of this.#readers) if (!this.#isMultiplexed || !this.#wanted.has(name)) reader.close();
    if (!this.#isMultiplexed) return;
    for (const name of this.#wanted) if (!this.#readers.has(name)) this.#read(name);
  }

  /** @param {string} name */
  #read(name) {
    const reader = this.#client.topic(name, { after: "-1", mode: "latest" });
    this.#readers.set(name, reader);
    reader.onmessage = ({ position, time, data }) => this.#onValue(name, { position, time, data });
    // Refused, or deleted: the index says whether it comes again.
    reader.onclose = () => this.#readers.delete(name);
  }

  async #ask() {
    if (this.#isMultiplexed || this.#wanted.size === 0) return;
    const topics = [...this.#wanted].slice(0, ASKED_MAX).map((name) => `topic=${name}`);
    try {
      const { data } = await this.#client.call("GET", `topics?mode=latest&${topics.join("&")}`);
      for (const { topic, position, time, data: value } of data.events) this.#onValue(topic, { position, time, data: value });
    } catch {
      // The index says whether the server is there.
    }
  }
}
