/**
 * A run that the page watches. A kept run has a key, and is read from the last plan in its log on. A held run has a connection of this
 * page, and ends with it.
 */
import { AnemoneError, now, parsePosition } from "../../client.js";
import { waitingOf } from "../following.js";
import { UNKNOWN_RUN, afterEvent, isOver } from "../runs/words.js";
import { patience } from "../sending.js";
import { client, failureInWords, sentence, serverNow } from "../server.js";

/** The path of the service that starts runs. */
export const SERVICE = "/computations";
/** The number of events of the first request; below, the factor for the next one, if no plan is among them. */
const HISTORY_EVENTS = 2000;
const HISTORY_FACTOR = 10;

/** @typedef {import("../runs/words.js").RunState} RunState */
/** @typedef {import("../../transport/types.js").State} State */

export class Watching {
  /** @type {RunState | null} null until the server has told it */
  run = null;
  /** The time at which the server reported the progress, by the server's clock. */
  toldAt = 0;
  /** @type {State} */
  state = { kind: "connecting" };
  /** A sentence about an incident that is not in the state of the run. */
  said = "";
  /** True if the server has no such run, or if it is of another service. */
  isMissing = false;
  /** True if the run ends with a connection of this page. */
  isHeld = false;
  #replay;
  #onNews;
  #end = new AbortController();
  #history = HISTORY_EVENTS;
  /** The offset of the newest event at the beginning. If no plan has come up to there, the log has an earlier one. */
  #joinAt = 0;

  /**
   * @param {import("./replay.js").Replay} replay
   * @param {() => void} onNews
   */
  constructor(replay, onNews) {
    this.#replay = replay;
    this.#onNews = onNews;
  }

  get isOver() {
    return this.isMissing || (this.run !== null && isOver(this.run));
  }

  /** Stops watching. A run that is held ends. */
  leave() {
    this.#end.abort();
    if (this.isHeld && !this.isOver) this.#lost("This page was left, and the run ended with its connection, as was chosen.");
  }

  // --- kept ---

  /**
   * Watches a run from now on.
   * @param {string} key
   */
  async follow(key) {
    this.#replay.clear();
    if (!(await this.#look(key)) || this.#end.signal.aborted) return;
    this.#joinAt = parsePosition(this.run?.next ?? "")?.offset ?? 0;
    this.#read(key);
  }

  /**
   * Asks for the state; returns true if the run is there.
   * @param {string} key
   */
  async #look(key) {
    try {
      const { data } = await client.call("GET", `runs/${key}?state`);
      this.run = data;
      this.toldAt = serverNow();
      this.isMissing = data.service !== SERVICE;
      this.said = this.isMissing ? `The run ${key.slice(0, 6)} is no computation, but one of ${data.service}.` : "";
    } catch (error) {
      this.isMissing ||= error instanceof AnemoneError && error.code === "unknown-run";
      const isKnown = this.run !== null;
      const gone = isKnown ? "The server no longer keeps this run. What is below is the last of it." : UNKNOWN_RUN;
      this.said = this.isMissing ? gone : failureInWords(error);
    }
    this.#onNews();
    return !this.isMissing;
  }

  /** @param {string} key */
  #read(key) {
    const topic = client.read(`runs/${key}`, { after: `-${this.#history}` });
    const { signal } = this.#end;
    signal.addEventListener("abort", () => topic.close(), { once: true });
    let first = 0;
    topic.onopen = () => {
      this.#be({ kind: "connected", since: now() });
      if (this.run === null) void this.#look(key);
    };
    topic.onerror = (error) => {
      if (error.retryAt !== undefined) this.#be(waitingOf(error, error.retryAt));
    };
    topic.ongap = () => this.#replay.lose();
    topic.onmessage = ({ data, time, position }) => {
      const offset = parsePosition(position)?.offset ?? 0;
      first ||= offset;
      this.#take(data, time);
      if (this.#replay.plan || first <= 1 || offset < this.#joinAt) return;
      // Further back in the log, there is a plan.
      topic.onclose = undefined;
      topic.close();
      this.#history *= HISTORY_FACTOR;
      this.#read(key);
    };
    topic.onclose = (error) => {
      if (signal.aborted) return;
      if (error) this.said = sentence(error.message);
      void this.#look(key);
    };
  }

  /** @param {State} state */
  #be(state) {
    this.state = state;
    this.#onNews();
  }

  /**
   * @param {any} data
   * @param {number} time
   */
  #take(data, time) {
    if ("partial" in data) {
      this.#replay.take(data.partial);
    } else if (this.run) {
      this.run = afterEvent(this.run, data, time);
      this.toldAt = time;
    }
    this.#onNews();
  }

  // --- held ---

  /**
   * Starts a run that is held. It is watched once the returned function is called.
   * @param {string} target
   * @param {string} document
   * @returns {Promise<() => void>}
   */
  async hold(target, document) {
    const { signal } = this.#end;
    const { signal: late } = patience();
    const giveUp = () => this.#end.abort(late.reason);
    late.addEventListener("abort", giveUp);
    const items = client.items("POST", target, document, { headers: { "content-type": "application/json" }, signal });
    const first = await items.next();
    late.removeEventListener("abort", giveUp);
    this.isHeld = true;
    const created = serverNow();
    this.run = { key: "", service: SERVICE, state: "queued", progress: null, text: null, left: null, place: null, created, started: null, ended: null, problem: null };
    this.state = { kind: "connected", since: now() };
    return () => {
      this.#replay.clear();
      void this.#hear(first.value, items);
    };
  }

  /**
   * @param {any} first
   * @param {AsyncGenerator<any, void, void>} items
   */
  async #hear(first, items) {
    try {
      this.#hearOne(first);
      for await (const item of items) this.#hearOne(item);
      if (!this.isOver) this.#lost("The connection has ended, and the run with it.");
    } catch (error) {
      if (!this.#end.signal.aborted) this.#lost(`${failureInWords(error)} The run ended with its connection.`);
    }
  }

  /** @param {any} item */
  #hearOne({ data, time, gap }) {
    if (gap) this.#replay.lose();
    if (data) this.#take(data, time);
  }

  /** @param {string} words */
  #lost(words) {
    if (this.run) this.run = { ...this.run, state: "cancelled", ended: serverNow() };
    this.said = words;
    this.#onNews();
  }
}
