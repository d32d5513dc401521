/** A TCP relay that does to connections what networks and proxies do: cuts, delays, half-closes, blocks, buffers. */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @typedef {object} Weather what the relay does; can be changed at any time, and counts for new connections
 * @property {() => number} [cutAfter] the bytes towards the client after which a connection is cut
 * @property {() => number} [delayMs] before each piece of bytes towards the client
 * @property {"refuse" | "swallow"} [upgrades] what becomes of a WebSocket handshake
 * @property {{ requests: RegExp, by: "reset" | "silence" }} [blocked] requests that do not reach the server
 * @property {boolean} [holds] keeps what the server sends on one connection until the server ends that
 * @property {boolean} [isGone] each new connection is cut at once
 * @property {boolean} [isDead] bytes go nowhere, and nothing is closed
 */

export class Relay {
  cuts = 0;
  connections = 0;
  /** @type {Weather} */
  weather = {};
  /** @type {Set<import("node:net").Socket>} */
  #sockets = new Set();
  /** @type {WeakSet<import("node:net").Socket>} */
  #dead = new WeakSet();
  #server;
  #target;
  #random;

  /**
   * @param {string} target the origin of the server
   * @param {() => number} random
   */
  constructor(target, random) {
    this.#target = new URL(target);
    this.#random = random;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#relay(client));
  }

  /**
   * @param {string} target
   * @param {() => number} [random]
   */
  static async start(target, random = Math.random) {
    const relay = new Relay(target, random);
    relay.#server.listen(0, "127.0.0.1");
    await once(relay.#server, "listening");
    return relay;
  }

  get origin() {
    const address = this.#server.address();
    if (!address || typeof address === "string") throw new Error("the relay does not listen");
    return `http://127.0.0.1:${address.port}`;
  }

  /** The number of connections that are open. */
  get open() {
    return this.#sockets.size;
  }

  /** Nothing passes any more on the connections that are open, and none of them is closed, as if a machine had slept. */
  die() {
    for (const socket of this.#sockets) this.#dead.add(socket);
  }

  /** Cuts all connections. */
  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop() {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }

  /** @param {import("node:net").Socket} client */
  #relay(client) {
    this.connections += 1;
    if (this.weather.isGone) return void client.resetAndDestroy();
    this.#sockets.add(client);
    const server = connect({ port: Number(this.#target.port), host: this.#target.hostname, allowHalfOpen: true });
    const end = () => {
      this.#sockets.delete(client);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on("error", end);
    }
    client.on("close", end);
    client.on("data", (bytes) => this.#toServer(bytes, client, server));
    client.on("end", () => server.end());
    void this.#toClient(client, server).then(end, end);
  }

  /**
   * @param {Buffer} bytes
   * @param {import("node:net").Socket} client
   * @param {import("node:net").Socket} server
   */
  #toServer(bytes, client, server) {
    const { upgrades, blocked, isDead } = this.weather;
    if (isDead || this.#dead.has(client)) return;
    if (upgrades && /\r\nupgrade: websocket\r\n/i.test(bytes.toString("latin1"))) {
      if (upgrades === "refuse") client.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    if (!blocked?.requests.test(bytes.toString("latin1"))) return void server.write(bytes);
    if (blocked.by === "reset") client.resetAndDestroy();
  }

  /**
   * @param {import("node:net").Socket} client
   * @param {import("node:net").Socket} server
   */
  async #toClient(client, server) {
    const { cutAfter, delayMs, holds } = this.weather;
    let left = cutAfter?.() ?? Infinity;
    /** @type {Buffer[]} */
    const held = [];
    for await (const bytes of server) {
      if (this.weather.isDead || this.#dead.has(client)) continue;
      if (delayMs) await sleep(delayMs());
      if (holds && isStream(Buffer.concat([...held, bytes]))) {
        held.push(bytes);
        continue;
      }
      if (bytes.length > left) return await this.#cut(client, server, bytes.subarray(0, left));
      left -= bytes.length;
      client.write(bytes);
    }
    client.end(Buffer.concat(held));
    await once(client, "close");
  }

  /**
   * @param {import("node:net").Socket} client
   * @param {import("node:net").Socket} server
   * @param {Buffer} rest
   */
  async #cut(client, server, rest) {
    if (rest.length > 0) client.write(rest);
    this.cuts += 1;
    const chance = this.#random();
    if (chance < 0.3) return void client.resetAndDestroy();
    if (chance < 0.6) return void client.destroySoon();
    // Half-closed: each side hears that the other one has ended, and may still send.
    client.end();
    server.end();
    server.resume();
    if (!client.closed) await Promise.race([once(client, "close"), sleep(200)]);
  }
}

/**
 * Returns true for the reply to a request for a stream, which a proxy that buffers never sees the end of.
 * @param {Buffer} bytes
 */
function isStream(bytes) {
  return /content-type: (text\/event-stream|application\/x-ndjson)/i.test(bytes.toString("latin1").slice(0, 2000));
}

/** The requests that a server holds or answers without an end. */
const HELD = /^GET \S*[?&]wait=(?!0 |0&)|\r\naccept: (text\/event-stream|application\/x-ndjson)\r\n/i;
/** Also the first one of a long poll, which a server answers at once. */
const HELD_OR_FIRST = /^GET \S*[?&]wait=|\r\naccept: text\/event-stream\r\n/i;

/** Nothing passes but what is answered at once: all that is better than a poll breaks. @type {Weather} */
export const ONLY_POLLS = { upgrades: "refuse", blocked: { requests: HELD, by: "reset" } };
/** The same, and nobody says so. @type {Weather} */
export const ONLY_POLLS_IN_SILENCE = { upgrades: "swallow", blocked: { requests: HELD_OR_FIRST, by: "silence" } };

/**
 * Random numbers from a seed (mulberry32), so that a failure can be repeated.
 * @param {number} seed
 */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
