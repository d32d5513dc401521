/**
 * One connection for all tabs of a browser. The client that holds the lock leads: it reads for all others, which ask it
 * over a `BroadcastChannel`. To them it is a transport like the others: when it goes, they continue from their
 * positions with the next leader, or by themselves.
 */
import { AnemoneError } from "./error.js";
import { parsePosition } from "./position.js";
import { now } from "./time.js";
import { Topic } from "./topic.js";

/** A hidden tab's timers may run only once a minute. */
const GONE_MS = 180_000;
const PING_MS = 5000;

export class Tabs {
  /** @type {(() => void) | undefined} */
  #release;
  /** @type {Set<() => void>} ends what this client reads for others */
  #served = new Set();
  #waiting = new AbortController();
  #link;
  #name;
  #channel;

  /** @param {import("./link.js").Link} link */
  constructor(link) {
    this.#link = link;
    this.#name = `anemone ${link.base}`;
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = ({ data }) => this.#hear(data);
  }

  /** Finds out who leads. Resolves at once; if another client does, this one waits in line. */
  async begin() {
    const isLeader = await new Promise((resolve) => {
      void navigator.locks.request(this.#name, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock && this.#lead();
      });
    });
    if (isLeader) return;
    const { signal } = this.#waiting;
    void navigator.locks.request(this.#name, { signal }, () => this.#lead()).catch(() => {});
  }

  /** Leads until the client is closed. */
  #lead() {
    if (this.#waiting.signal.aborted) return; // closed meanwhile
    this.#link.lead();
    this.#channel.postMessage({ leader: true });
    return new Promise((/** @type {(nothing: void) => void} */ resolve) => (this.#release = resolve));
  }

  close() {
    this.#waiting.abort();
    for (const end of this.#served) end();
    this.#channel.close();
    this.#release?.();
  }

  /**
   * Reads over the leader.
   * @param {import("./types.js").Reading} reading
   */
  async read({ path, options, signal, take }) {
    const id = `${this.#name} ${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
    const channel = new BroadcastChannel(id);
    const pings = setInterval(() => channel.postMessage({}), PING_MS);
    this.#channel.postMessage({ id, path, options: options() });
    try {
      await new Promise((_, reject) => {
        channel.onmessage = ({ data: { item, error } }) => {
          if (item) take(item, now());
          else if (error) reject(new AnemoneError(error.code, error.message, error));
          else reject(new AnemoneError("lost", "the tab that has read for this one is gone"));
        };
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    } finally {
      clearInterval(pings);
      channel.postMessage({ isOver: true });
      channel.close();
    }
  }

  /** @param {{ leader?: boolean, id: string, path: string, options: import("./types.js").ReadOptions }} message */
  #hear({ leader, id, path, options }) {
    if (leader) for (const topic of this.#link.topics) topic.wake(this.#link.transport === "tabs");
    else if (this.#release) this.#serve(id, path, options);
  }

  /**
   * Reads for another tab, until that says that it is over, or is silent for too long.
   * @param {string} id
   * @param {string} path
   * @param {import("./types.js").ReadOptions} options
   */
  #serve(id, path, options) {
    const channel = new BroadcastChannel(id);
    const topic = new Topic(this.#link, path, { ...options, isForOthers: true });
    const say = (/** @type {import("./types.js").Item} */ item) => channel.postMessage({ item });
    const end = () => {
      clearTimeout(timer);
      this.#served.delete(end);
      topic.onclose = undefined;
      topic.close();
      channel.postMessage({});
      channel.close();
    };
    let timer = setTimeout(end, GONE_MS);
    this.#served.add(end);
    const sayPosition = () => say(parsePosition(topic.position ?? "") ? { position: topic.position } : {});
    topic.onopen = () => queueMicrotask(sayPosition); // the beginning is known right after the opening
    topic.ongap = (gap) => say({ gap });
    topic.onmessage = ({ position, time, data, skipped }) => {
      if (skipped) say({ skipped });
      say({ position, time, data });
    };
    topic.onclose = (error) => {
      if (error) channel.postMessage({ error: { code: error.code, message: error.message, status: error.status, problem: error.problem } });
      else say({ end: { reason: "ended" } });
      end();
    };
    channel.onmessage = ({ data: { isOver } }) => {
      if (isOver) return end();
      clearTimeout(timer);
      timer = setTimeout(end, GONE_MS);
      sayPosition(); // still here
    };
  }
}
