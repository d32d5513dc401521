/**
 * The events of a topic or a run, over as many connections as necessary. Decides when to connect, when to change the transport, and what to
 * report. Owns the queue of events that nobody has taken yet.
 */
import { AnemoneError, fill, foreign, misuse, typed, words } from "./error.js";
import { parsePosition, Sequence } from "./position.js";
import { Backoff, OPEN_MS_MAX, sleep, TIMER_MS_MAX } from "./time.js";

/** The most events in the queue. If the reader is that far behind, nothing is read until it has caught up. */
const QUEUE_MAX = 1000;
/** The number of connections in a row that break without news before another transport is tried. */
const LOSSES_MAX = 3;
/** The most gaps of an event. If there are more, the oldest are forgotten. */
const GAPS_MAX = 100;
/** The time after which a connection counts as good, even without news. */
const STABLE_MS = 60_000;
/** The most waits in a row for a topic that was never there, or whose server violates the protocol. After them, the topic is given up. */
const WAITS_MAX = 5;

/** The reasons to end a connection that did not fail: there is a better one, or the reader has to catch up first. They are not reported. */
export const MOVE = new AnemoneError("moved");
const PAUSE = new AnemoneError("paused");

export class Topic {
  /** @type {import("./types.js").Callbacks["onopen"]} */ onopen;
  /** @type {import("./types.js").Callbacks["onerror"]} */ onerror;
  /** @type {import("./types.js").Callbacks["onclose"]} */ onclose;
  /** @type {import("./types.js").Callbacks["ongap"]} */ ongap;
  /** The number of events that came twice, and were dropped. */
  repeats = 0;
  /** True once the server has said that there is no more. */
  isEnded = false;

  /** @type {import("./types.js").Callbacks["onmessage"]} */ #onmessage;
  #link;
  #options;
  #sequence;
  #backoff;
  /** @type {import("./types.js").TopicEvent[]} */
  #queue = [];
  /** @type {import("./types.js").Gap[]} */
  #gaps = [];
  /** The `for await` loops over this topic. They share its events. */
  #loops = 0;
  #isClosed = false;
  /** @type {boolean | undefined} */
  #isToldEnd;
  #wasThere = false;
  /** The connections in a row that broke without news. */
  #losses = 0;
  /** The waits in a row that count before the topic is given up. */
  #waits = 0;
  /** @type {AnemoneError | undefined} */
  #error;
  /** @type {(() => void)[]} those who wait for a change of the queue */
  #waiting = [];
  /** The current connection, and the current wait. */
  #connection = new AbortController();
  #nap = new AbortController();
  /** Ends the current connection if it has been silent for too long. */
  #watch = () => {};

  /**
   * @param {import("./link.js").Link} link
   * @param {string} path
   * @param {import("./types.js").ReadOptions} options
   */
  constructor(link, path, options) {
    this.#link = link;
    // What is the same over each transport. No name begins with a dot, and a URL would drop it.
    if (!/^(topics|runs)\/(?!\.|%2e)[^\s/?#\\]+$/i.test(path)) throw misuse(`${path} is no path to read`);
    this.path = path;
    this.#options = fill(/** @type {import("./types.js").ReadOptions} */ ({ after: undefined, since: undefined, mode: undefined, isForOthers: false }), options);
    /** True if this reads for another tab, so that this client gets nothing. */
    this.isForOthers = options.isForOthers;
    this.#sequence = new Sequence(options.after);
    this.#backoff = new Backoff(link.options.random);
    link.check();
    link.topics.add(this);
    queueMicrotask(() => this.#read()); // until then, callbacks can be set
  }

  get onmessage() {
    return this.#onmessage;
  }

  /** Sets the callback for events. It gets every event that nobody has taken yet, even if it is set late. After that, `onclose` gets the end. */
  set onmessage(take) {
    this.#onmessage = take;
    queueMicrotask(() => this.#deliver());
  }

  /** The last event received, or the beginning; undefined until the server has sent it. */
  get position() {
    return this.#sequence.position;
  }

  /** @returns {AsyncGenerator<import("./types.js").TopicEvent, void, void>} */
  async *[Symbol.asyncIterator]() {
    this.#loops += 1;
    try {
      for (;;) {
        const event = this.#queue.shift();
        if (event) {
          if (!this.#queue[0]) this.#changed();
          yield event;
        } else if (this.#isClosed) {
          if (this.#error) throw this.#error;
          return;
        } else {
          await this.#change();
        }
      }
    } finally {
      this.#loops -= 1;
      if (!this.#loops) this.close();
    }
  }

  /** Ends the reading. A loop still gets the events that have come. */
  close() {
    if (!this.#loops) this.#queue = [];
    this.#finish();
    this.#deliver();
  }

  /**
   * Ends a wait for the next try. Opens another connection if the current one may be dead, or if there is a better one.
   * @param {boolean} isMoving
   */
  wake(isMoving) {
    this.#nap.abort();
    this.#watch(); // timers may have slept with the machine
    if (isMoving) this.#connection.abort(MOVE);
  }

  /**
   * Finds out whether a transport works.
   * @param {import("./types.js").TransportName} via
   */
  async works(via) {
    const connection = new AbortController();
    return (await this.#connect(via, connection, () => {}, () => connection.abort(MOVE))) === MOVE;
  }

  async #read() {
    const link = this.#link;
    for (;;) {
      await link.ready;
      if (this.#isClosed) return;
      const via = link.transport;
      const begun = Date.now();
      let isOpen = false;
      let isPlaced = false;
      this.#sequence.skipped = 0;
      this.#connection = new AbortController();
      const onWait = (/** @type {AnemoneError} */ error) => {
        isOpen = false;
        this.#tell("onerror", error);
      };
      const error = await this.#connect(via, this.#connection, onWait, (item, received) => {
        if (!isOpen) this.#tell("onopen", { transport: via, topic: this, at: Date.now() });
        isOpen = this.#wasThere = true;
        this.#take(item, received, !isPlaced);
        isPlaced ||= item.position !== undefined;
        if (this.#queue.length >= QUEUE_MAX) this.#connection.abort(PAUSE);
      });
      if (this.#isClosed) return;
      if (error === PAUSE) {
        while (this.#queue[0] && !this.#isClosed) await this.#change();
      } else if (error !== MOVE) {
        if (isOpen && Date.now() - begun >= STABLE_MS) this.#losses = this.#waits = 0;
        this.#losses += 1;
        await this.#recover(via, error, isOpen);
      }
    }
  }

  /**
   * Handles a failure: gives up, takes another transport, or waits.
   * @param {import("./types.js").TransportName} via
   * @param {AnemoneError} error
   * @param {boolean} wasOpen true if the server had answered
   */
  async #recover(via, error, wasOpen) {
    if (isRefusal(error)) return this.#finish(error);
    let waitMs = 0;
    if ((wasOpen && this.#losses < LOSSES_MAX) || !(await this.#link.fall(via, error))) {
      // What was there once is waited for, also while a network that asks for a login answers in its place.
      const counts = !this.#wasThere || (wasOpen && error.code === "protocol");
      this.#waits = counts ? this.#waits + 1 : 0;
      if (this.#waits > WAITS_MAX) return this.#finish(error);
      waitMs = Math.max(this.#backoff.next(), error.retryMs);
    } else {
      this.#losses = 0;
    }
    // Topics that fail together return together, so that they share a request again.
    error.retryAt ??= Date.now() + Math.min(TIMER_MS_MAX, waitMs);
    this.#tell("onerror", error);
    this.#nap = new AbortController();
    if (!this.#isClosed) await sleep(error.retryAt - Date.now(), this.#nap.signal);
  }

  /**
   * Reads over one connection until it ends, and returns why.
   * @param {import("./types.js").TransportName} via
   * @param {AbortController} connection
   * @param {(error: AnemoneError) => void} onWait
   * @param {import("./types.js").Reading["take"]} onItem
   * @returns {Promise<AnemoneError>}
   */
  async #connect(via, connection, onWait, onItem) {
    const { signal } = connection;
    const link = this.#link;
    const begun = Date.now();
    let isOpen = false;
    let heard = begun;
    let limit = OPEN_MS_MAX;
    const watch = () => {
      clearTimeout(timer);
      if (signal.aborted) return;
      const left = Math.min(limit, Math.max(heard, link.heldUntil) + limit - Date.now());
      if (left > 0) timer = setTimeout(watch, Math.min(TIMER_MS_MAX, left));
      else connection.abort(new AnemoneError(isOpen ? "silent" : "timeout", `nothing came by ${via} for ${limit / 1000} s`));
    };
    let timer = setTimeout(watch, limit);
    const hear = () => {
      heard = Date.now();
      if (isOpen) return;
      isOpen = true;
      const { waitSeconds, pollMs, quietMs } = link.options;
      limit = via === "long-poll" ? waitSeconds * 1000 + 10_000 : quietMs;
      if (/poll/.test(via)) limit += pollMs;
      watch(); // this limit may be shorter than that of the opening
      link.tried(via, begun);
    };
    if (connection === this.#connection) this.#watch = watch;
    link
      .read(via, {
        link,
        path: this.path,
        signal,
        options: () => this.#place(),
        losses: () => this.#losses,
        take: (item, received) => {
          if (signal.aborted) return;
          hear();
          onItem(item, received);
        },
        wait: (error) => {
          hear();
          if (error) onWait(error);
        },
      })
      .then(() => new AnemoneError("lost", "the reply has ended"), (cause) => typed(cause, link))
      .then((error) => connection.abort(error));
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    clearTimeout(timer);
    if (!isOpen && signal.reason !== MOVE) link.tried(via, begun, signal.reason);
    return signal.reason;
  }

  /** Returns the parameters for a reading that continues after the current position. */
  #place() {
    const { mode, since } = this.#options;
    const after = this.position;
    return { ...(after ? { after } : since && { since }), ...(mode && { mode }) };
  }

  /**
   * @param {import("./types.js").Item} item
   * @param {number} received
   * @param {boolean} isFirst
   */
  #take(item, received, isFirst) {
    if (!isItem(item)) return this.#connection.abort(foreign("a message"));
    const { position, time, data, gap, skipped, end, retry } = item;
    const sequence = this.#sequence;
    if (retry) this.#backoff.wishMs = retry;
    if (gap) {
      sequence.position = gap.resume;
      this.#gap(gap);
    }
    if (skipped) sequence.skipped = skipped;
    if (position !== undefined) {
      if (time !== undefined) {
        this.#event(position, time, data, received);
      } else if (!isFirst || !parsePosition(this.position)) {
        // The beginning is no news for a reader that has a position: if something is missing, a gap comes next.
        const verdict = sequence.accept(position, 0);
        if (typeof verdict === "object") this.#gap(verdict);
      }
    }
    if (!end) return;
    const { reason } = end;
    if (end.gap) this.#gap(end.gap);
    this.isEnded = reason === "ended";
    this.#finish(this.isEnded ? undefined : new AnemoneError(reason === "deleted" ? "topic-deleted" : reason, `the topic has ended: ${reason}`));
  }

  /**
   * @param {string} position
   * @param {number} time
   * @param {unknown} data undefined if it is not JSON
   * @param {number} received
   */
  #event(position, time, data, received) {
    let { skipped } = this.#sequence;
    const after = /** @type {string} */ (this.position);
    const verdict = this.#sequence.accept(position);
    if (verdict === "repeated") return void (this.repeats += 1);
    this.#losses = this.#waits = 0;
    this.#backoff.failures = 0;
    if (verdict !== "next") this.#gap(verdict);
    if (data === undefined) {
      this.#tell("onerror", new AnemoneError("bad-json", `the event ${position} is not JSON`));
      return this.#gap({ reason: "unreadable", after, missed: 1 + skipped, resume: position });
    }
    // A loop that is slow has not taken it, and is to have the newest one. A reader for another tab leaves that to the other tab.
    const old = this.#options.mode === "latest" && !this.isForOthers && this.#queue.shift();
    if (old) {
      skipped += 1 + (old.skipped ?? 0);
      this.#gaps = (old.gaps ?? []).concat(this.#gaps).slice(-GAPS_MAX);
    }
    /** @type {import("./types.js").TopicEvent} */
    const event = Object.defineProperty(/** @type {any} */ ({ position, time, data, received }), "topic", { value: this }); // which `console.log` leaves out
    if (this.#gaps[0]) event.gaps = this.#gaps.splice(0);
    if (skipped) event.skipped = skipped;
    if (this.#loops) this.#tell("onmessage", event);
    this.#queue.push(event);
    this.#deliver();
  }

  /** Passes events on to the callbacks, unless they wait for a loop. After the events, passes on the end. */
  #deliver() {
    let event;
    while (!this.#loops && (event = this.#queue.shift())) {
      if (this.#tell("onmessage", event)) continue;
      this.#queue.unshift(event);
      break;
    }
    if (this.#isClosed && !this.#queue[0] && !this.#loops) {
      this.#link.others.delete(this);
      this.#isToldEnd ||= this.#tell("onclose", this.#error);
    }
    this.#changed();
  }

  /** @param {import("./types.js").Gap} gap */
  #gap(gap) {
    if (this.#gaps.push(gap) > GAPS_MAX) this.#gaps.shift();
    this.#tell("ongap", gap);
  }

  /** @param {AnemoneError} [error] */
  #finish(error) {
    if (this.#isClosed) return;
    error &&= new AnemoneError(error.code, error.message, error); // other topics may try again after the same one
    this.#isClosed = true;
    this.#error = error;
    this.#link.topics.delete(this);
    this.#link.others.add(this);
    this.#connection.abort(error ?? MOVE);
    this.#nap.abort();
    if (error) this.#tell("onerror", error);
    this.#deliver();
  }

  /** @returns {Promise<void>} */
  #change() {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #changed() {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /**
   * @param {import("./types.js").CallbackName} name
   * @param {any} value
   */
  #tell(name, value) {
    return this.#link.tell(name, value, this);
  }
}

/**
 * Returns true if the members of an item have the types of the protocol. Only the data of an event may have any type.
 * @param {import("./types.js").Item} item
 */
function isItem({ position, time = 0, gap, skipped = 0, end, retry = 0 }) {
  return (!gap || parsePosition(gap.resume)) && [time, skipped, retry].every(Number.isFinite) && (position === undefined || parsePosition(position)) && (!end || words(end.reason));
}

/**
 * Returns true for a refusal that would be the same on a new try.
 * @param {AnemoneError} error
 */
export function isRefusal({ code, status }) {
  return code !== "foreign" && /^(4(?!08|25|29)|bad-arg)/.test(`${status ?? code}`);
}
