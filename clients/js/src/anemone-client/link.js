/**
 * The parts that all readings and calls of a client share: the server's address, the choice of a transport, and the multiplexed connection.
 * Adapts them when the network changes or the page sleeps.
 */
import { AnemoneError, fill, misuse, typed } from "./error.js";
import { Multiplexed } from "./mux.js";
import { load } from "./parts.js";
import { sleep, TIMER_MS_MAX } from "./time.js";

/** The most tries that are remembered. */
const TRIES_MAX = 100;
/** The longest pause before a part is loaded again. It allows five tries. */
const LOAD_PAUSE_MS_MAX = 4000;
/** @type {import("./types.js").TransportName[]} the best first */
const LADDER = ["tabs", "mux", "sse", "long-poll", "poll", "ndjson"];
/** The longest wait of a long poll that the protocol allows. */
const WAIT_SECONDS_MAX = 120;
const SIGNS = "online offline visibilitychange pageshow pagehide freeze resume";

export class Link {
  /** @type {Set<import("./topic.js").Topic>} */
  topics = new Set();
  /** What else ends with the client: calls, and topics that have ended while nobody has taken all of their events. @type {Set<{ close(): void }>} */
  others = new Set();
  /** @type {import("./types.js").Try[]} */
  tries = [];
  isClosed = false;
  /** @type {BroadcastChannel | undefined} between the clients of all tabs */
  share;
  /** @type {string | Promise<string> | undefined} the token in use */
  token;
  /** The time until which connections waited for a token. */
  heldUntil = 0;
  /** Loads a part that not every page needs. */
  load = load;
  /** Aborts once the client is closed. */
  end = new AbortController();

  #client;
  /** @type {import("./types.js").TransportName[]} */
  #ladder;
  /** @type {import("./types.js").TransportName[]} those of the ladder that this client may try now */
  #transports;
  #index = 0;
  /** @type {Multiplexed | undefined} */
  #socket;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** The number of times that no better transport worked. */
  #disappointments = 0;
  /** @type {(() => void) | undefined} ends what this client shares with other tabs */
  #leave;
  /** @type {((next: Promise<void> | void) => void) | undefined} set while the page sleeps */
  #wake;

  /**
   * @param {string | URL} base
   * @param {import("./types.js").Options | undefined} options
   * @param {import("./types.js").Callbacks} client
   */
  constructor(base, options, client) {
    this.base = address(base);
    this.#client = client;
    const { fetch, WebSocket } = globalThis;
    const defaults = { waitSeconds: 25, pollMs: 1000, quietMs: 20_000, betterMs: 30_000, random: Math.random, token: undefined, transports: undefined, fetch, WebSocket };
    const all = (this.options = fill(/** @type {import("./types.js").AllOptions} */ (defaults), options));
    all.waitSeconds = Math.min(WAIT_SECONDS_MAX, all.waitSeconds);
    // Node 20 has no WebSocket, and a browser sends no token with one.
    const hasSocket = all.WebSocket;
    const wanted = all.transports ?? LADDER.slice(hasSocket && !all.token ? 0 : 2, -1);
    const unknown = wanted.find((name) => !LADDER.includes(name));
    const canShare = globalThis.document && navigator.locks;
    this.#ladder = this.#transports = wanted.filter((name) => (name === "tabs" ? canShare : name !== "mux" || hasSocket));
    if (unknown || !this.#ladder[0]) throw misuse(`there is no transport ${unknown ?? "here: pass a WebSocket"}`);
    const { signal } = this.end;
    for (const type of SIGNS.split(" ")) globalThis.addEventListener?.(type, this, { capture: true, signal });
    /** Resolves once the transport is known and the page is awake. */
    this.ready = this.#begin();
  }

  /** Shares a connection with other tabs, if this client may do so. The client with the lock leads: it reads for all others. */
  async #begin() {
    this.#transports = this.#ladder;
    if (!this.#ladder.includes("tabs")) return;
    const name = `anemone ${this.base}`;
    const channel = (this.share = new BroadcastChannel(name));
    const end = new AbortController();
    const { signal } = end;
    this.#leave = () => {
      end.abort();
      channel.close();
    };
    let isLeader = false;
    channel.onmessage = ({ data }) => {
      if (data?.isLed) this.#wakeAll(this.transport === "tabs");
      else if (isLeader) load("tabs").then((tabs) => tabs.serve(this, data)).catch(() => {}); // the other tab takes another way
    };
    const lead = () => {
      if (signal.aborted) return;
      isLeader = true;
      this.#lead();
      channel.postMessage({ isLed: true });
      return new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    const isFollower = await new Promise((resolve) => {
      const leading = navigator.locks.request(name, { ifAvailable: true }, (lock) => {
        resolve(!lock);
        return lock && lead();
      });
      leading.catch(() => resolve(this.#lead())); // a page that gets no locks is on its own
    });
    if (isFollower) navigator.locks.request(name, { signal }, lead).catch(() => {});
  }

  /** Takes the transports that need no other tab. */
  #lead() {
    const { transport } = this;
    this.#transports = this.#ladder.filter((name) => name !== "tabs");
    this.#index = Math.max(0, this.#transports.indexOf(transport));
    if (transport === "tabs") this.#wakeAll(true);
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
    if (/freeze|pagehide/.test(type)) return this.#sleep();
    if (this.#wake && !/pageshow|resume/.test(type)) return;
    this.#wake?.(this.#begin());
    this.#wake = undefined;
    const isMoving = type === "online" && this.transport !== "mux";
    if (isMoving) this.#index = 0;
    this.#socket?.probe();
    this.#wakeAll(isMoving);
  }

  /** @param {boolean} isMoving to another transport */
  #wakeAll(isMoving) {
    for (const topic of this.topics) topic.wake(isMoving);
  }

  /** Closes the connections to the server and to other tabs until the page is awake. A frozen page could not answer. */
  #sleep() {
    if (this.#wake) return;
    this.ready = new Promise((resolve) => (this.#wake = resolve));
    this.#leave?.();
    for (const topic of this.topics) topic.isForOthers ? topic.close() : topic.wake(true);
    this.#socket?.close(new AnemoneError("lost", "the client sleeps"));
  }

  /**
   * Notes the outcome of a try.
   * @param {string} transport
   * @param {number} at
   * @param {AnemoneError} [error]
   */
  tried(transport, at, error) {
    const told = { transport, at, ms: Date.now() - at, ...(error && { code: error.code, message: error.message }) };
    this.tries = [...this.tries, told].slice(-TRIES_MAX);
  }

  /**
   * Takes the next transport, since this one does not work. Returns false if all have been tried.
   * @param {string} transport
   * @param {AnemoneError} error
   */
  async fall(transport, { code }) {
    // What finds no server speaks for all of them, unless a plain request does find it.
    const isLast = transport === this.#transports.at(-1) || code === "token-failed" || (code === "unreachable" && !(await load("http").then((http) => http.answers(this)).catch(() => false)));
    const from = this.#transports.indexOf(/** @type {any} */ (transport));
    if (this.#index !== from) return this.#index > from; // another reading found out first, perhaps that none works
    this.#index = isLast ? 0 : from + 1;
    this.#improveLater();
    return !isLast;
  }

  #improveLater() {
    if (this.#index && !this.isClosed) this.#timer ??= setTimeout(() => this.#improve(), Math.min(TIMER_MS_MAX, this.options.betterMs * 2 ** Math.min(3, this.#disappointments)));
  }

  /** Tries the transports that are better than the current one, and moves all topics to the first that works. */
  async #improve() {
    this.#timer = undefined;
    this.#disappointments += 1;
    for (const via of this.#transports.slice(0, this.#index)) {
      const [topic] = this.topics;
      const isBetter = topic ? await topic.works(via) : via === "mux" && !this.isClosed && (await this.socket().catch(() => false));
      if (!isBetter) continue;
      this.#disappointments = 0;
      this.#index = this.#transports.indexOf(via);
      this.#wakeAll(true);
      break;
    }
    this.#improveLater();
  }

  /** Returns the multiplexed connection, once it is open. */
  socket() {
    if (!this.#socket || this.#socket.isClosed) {
      const url = new URL("ws", this.base).href.replace("http", "ws");
      this.#socket = new Multiplexed(url, this.options.WebSocket);
    }
    return this.#socket.opened;
  }

  /**
   * Calls a function of a part, such as `publish` of `call`. Loads the part first, with as many tries as necessary.
   * @param {"call" | "outcome"} name
   * @param {string} verb
   * @param {...unknown} args
   * @returns {Promise<any>}
   */
  async use(name, verb, ...args) {
    /** @type {any} */
    let part;
    for (let pauseMs = 500; !part; pauseMs *= 2) {
      await this.ready;
      this.check();
      part = await load(name).catch(async (cause) => {
        if (pauseMs > LOAD_PAUSE_MS_MAX) throw typed(cause, this);
        await sleep(pauseMs * this.options.random());
      });
    }
    return part[verb](this, ...args);
  }

  /**
   * Reads over a transport until its signal aborts or the topic ends. The topic decides when to try again.
   * @param {import("./types.js").TransportName} via
   * @param {import("./types.js").Reading} reading
   */
  async read(via, reading) {
    const reader = await (via === "mux" ? this.socket() : load(via === "tabs" ? via : "http"));
    reading.signal.throwIfAborted();
    await reader.read(reading, via);
  }

  /**
   * Calls the callbacks of a topic and of the client; returns true if there is one.
   * @param {import("./types.js").CallbackName} name
   * @param {any} value
   * @param {import("./topic.js").Topic} [topic]
   */
  tell(name, value, topic) {
    let isHeard;
    const fail = (/** @type {unknown} */ cause) => {
      const error = new AnemoneError("callback-failed", `${name}: ${cause}`, { cause });
      if (name === "onerror" || !this.tell("onerror", error, topic)) console.error(error);
    };
    for (const target of topic?.isForOthers ? [topic] : [topic, this.#client]) {
      try {
        if (!target?.[name]) continue;
        isHeard = true;
        /** @type {any} */ (target[name](value))?.catch?.(fail);
      } catch (cause) {
        fail(cause);
      }
    }
    return isHeard;
  }

  close() {
    this.isClosed = true;
    this.#wake?.();
    clearTimeout(this.#timer);
    this.end.abort();
    for (const topic of [...this.topics, ...this.others]) topic.close();
    this.#leave?.();
    this.#socket?.close(new AnemoneError("closed", "the client is closed"));
  }
}

/**
 * @param {string | URL} base
 * @returns {URL}
 */
function address(base) {
  /** @type {any} */
  let url;
  try {
    url = new URL(base, globalThis.location?.href);
  } catch {}
  if (!/^https?:$/.test(url?.protocol)) throw misuse(`${base} is not a URL such as http://localhost`);
  return new URL(url.href.replace(/\/?([?#].*)?$/, "/"));
}
