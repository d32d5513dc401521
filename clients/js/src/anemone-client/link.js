/**
 * What all readings and calls of a client share: the server's address, the token, the choice of a transport, and the
 * multiplexed connection.
 */
import { AnemoneError, refusal } from "./error.js";
import { Multiplexed } from "./mux.js";
import { TRANSPORTS } from "./transports.js";

const TRIES_MAX = 100;
/** @type {import("./types.js").TransportName[]} the best first */
const LADDER = ["tabs", "mux", "sse", "long-poll", "poll"];

export class Link {
  /** @type {Set<import("./topic.js").Topic>} */
  topics = new Set();
  /** @type {import("./types.js").Try[]} */
  tries = [];
  isClosed = false;
  /** @type {import("./tabs.js").Tabs | undefined} */
  tabs;
  /** Resolves when the transport is known. */
  ready = Promise.resolve();

  #client;
  #options;
  /** @type {import("./types.js").TransportName[]} */
  #transports;
  #index = 0;
  /** @type {Multiplexed | undefined} */
  #socket;
  /** @type {string | undefined} */
  #token;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** The number of times that no better transport worked. */
  #disappointments = 0;

  /**
   * @param {string | URL} base
   * @param {import("./types.js").Options} options
   * @param {import("./types.js").Callbacks} client
   */
  constructor(base, options, client) {
    this.base = address(base);
    this.#client = client;
    this.#options = { fetch: globalThis.fetch, WebSocket: globalThis.WebSocket, ...options };
    this.waitSeconds = options.waitSeconds ?? 25;
    this.pollMs = options.pollMs ?? 1000;
    this.quietMs = options.quietMs ?? 20_000;
    this.random = options.random ?? Math.random;
    // Node 20 has no WebSocket, and a browser sends no token with one.
    const isWithoutSocket = !this.#options.WebSocket || options.token;
    const canShare = !isWithoutSocket && globalThis.document && globalThis.navigator?.locks;
    this.#transports = options.transports ?? LADDER.slice(isWithoutSocket ? 2 : canShare ? 0 : 1);
    const unknown = this.#transports.find((name) => !(name in TRANSPORTS));
    if (unknown || this.#transports.length === 0) throw misuse(`there is no transport "${unknown}"`);
    for (const type of ["online", "pageshow", "visibilitychange"]) globalThis.addEventListener?.(type, this);
    if (this.#transports.includes("tabs")) this.ready = this.#share().catch(() => this.lead());
  }

  async #share() {
    const { Tabs } = await import("./tabs.js");
    if (this.isClosed) return;
    this.tabs = new Tabs(this);
    await this.tabs.begin();
  }

  /** Takes the transports that need no other tab. */
  lead() {
    const { transport } = this;
    this.#transports = this.#transports.filter((name) => name !== "tabs");
    this.#index = Math.max(0, this.#transports.indexOf(transport));
    if (transport === "tabs") for (const topic of this.topics) topic.wake(true);
  }

  /** Fails if the client is closed. */
  check() {
    if (this.isClosed) throw new AnemoneError("closed", "the client is closed");
  }

  /** The transport in use, or the next one to try. */
  get transport() {
    return /** @type {import("./types.js").TransportName} */ (this.#transports[this.#index]);
  }

  /** @param {Event} event after which a connection may be dead, or a better one possible */
  handleEvent({ type }) {
    if (type === "online") this.#index = 0;
    this.#socket?.probe();
    for (const topic of this.topics) topic.wake(type === "online");
  }

  /**
   * Notes the outcome of a try.
   * @param {string} transport
   * @param {number} at
   * @param {AnemoneError} [error]
   */
  tried(transport, at, error) {
    this.tries.push({ transport, at, ms: Date.now() - at, ...(error && { code: error.code, message: error.message }) });
    if (this.tries.length > TRIES_MAX) this.tries.shift();
  }

  /**
   * Leaves a transport that does not work; returns false if all have been tried.
   * @param {string} transport
   * @param {AnemoneError} error
   */
  fall(transport, { code }) {
    if (this.transport !== transport) return true; // another reading found out first
    // A request that finds no server speaks for all of them.
    const isLast = code === "unreachable" || this.#index === this.#transports.length - 1;
    this.#index = isLast ? 0 : this.#index + 1;
    this.#improveLater();
    return !isLast;
  }

  #improveLater() {
    if (this.#index === 0 || this.isClosed) return;
    const ms = (this.#options.betterMs ?? 30_000) * 2 ** Math.min(3, this.#disappointments);
    this.#timer ??= setTimeout(() => this.#improve(), ms);
  }

  /** Tries the transports that are better than the current one, and moves all topics to the first that works. */
  async #improve() {
    this.#timer = undefined;
    this.#disappointments += 1;
    for (const via of this.#transports.slice(0, this.#index)) {
      const [topic] = this.topics;
      const isBetter = topic ? await topic.works(via) : via === "mux" && (await this.socket().then(() => true, () => false));
      if (!isBetter) continue;
      this.#disappointments = 0;
      this.#index = this.#transports.indexOf(via);
      for (const topic of this.topics) topic.wake(true);
      break;
    }
    this.#improveLater();
  }

  /**
   * Returns the multiplexed connection, once it is open.
   * @param {AbortSignal} [signal]
   */
  async socket(signal) {
    if (!this.#socket || this.#socket.isClosed) {
      const url = new URL("ws", this.base);
      url.protocol = url.protocol.replace("http", "ws");
      this.#socket = new Multiplexed(url.href, this.#options.WebSocket);
    }
    const socket = this.#socket;
    const error = await socket.opened;
    if (error) throw error;
    signal?.throwIfAborted();
    return socket;
  }

  /**
   * Sends a request over HTTP; a refusal is an error.
   * @param {string} method
   * @param {string} path below the server's address
   * @param {RequestInit} init
   */
  async ask(method, path, init) {
    const { fetch, token } = this.#options;
    for (let isRenewed = false; ; isRenewed = true) {
      if (typeof token !== "function") this.#token = token;
      else if (isRenewed || this.#token === undefined) this.#token = await fresh(token);
      const headers = this.#token ? { ...init.headers, authorization: `Bearer ${this.#token}` } : init.headers;
      const reply = await fetch(new URL(path, this.base), { cache: "no-store", ...init, method, headers });
      if (reply.ok || reply.status === 304) return reply;
      if (reply.status === 401 && typeof token === "function" && !isRenewed) continue;
      throw refusal(reply.status, await reply.text(), reply.headers.get("retry-after"));
    }
  }

  /**
   * Calls the callbacks of a topic and of the client; returns true if there is one.
   * @param {import("./types.js").CallbackName} name
   * @param {any} value
   * @param {import("./topic.js").Topic} [topic]
   */
  tell(name, value, topic) {
    let isHeard = false;
    for (const target of topic?.isForOthers ? [topic] : [topic, this.#client]) {
      const callback = target?.[name];
      if (!callback) continue;
      isHeard = true;
      try {
        callback.call(target, value);
      } catch (cause) {
        const error = new AnemoneError("callback-failed", `${name} has thrown an error: ${cause}`, { cause });
        if (name === "onerror" || !this.tell("onerror", error, topic)) console.error(error);
      }
    }
    return isHeard;
  }

  close() {
    this.isClosed = true;
    this.tabs?.close();
    clearTimeout(this.#timer);
    for (const type of ["online", "pageshow", "visibilitychange"]) globalThis.removeEventListener?.(type, this);
    for (const topic of this.topics) topic.close();
    this.#socket?.close(new AnemoneError("closed", "the client is closed"));
  }
}

/** @param {() => string | Promise<string>} token */
async function fresh(token) {
  try {
    return await token();
  } catch (cause) {
    throw new AnemoneError("token-failed", `there is no token: ${cause}`, { cause });
  }
}

/** @param {string | URL} base */
function address(base) {
  try {
    const url = new URL(base, globalThis.location?.href);
    if (!/^https?:$/.test(url.protocol)) throw misuse(`${url} is not a URL of HTTP`);
    if (!url.pathname.endsWith("/")) url.pathname += "/";
    return url;
  } catch (cause) {
    throw cause instanceof AnemoneError ? cause : misuse(`${base} is not the URL of a server`);
  }
}

/** @param {string} message */
function misuse(message) {
  return new AnemoneError("bad-argument", message);
}
