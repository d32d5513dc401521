/** A long computation on the server, which goes on when its client has gone. */
import { AnemoneError } from "./error.js";
import { Topic } from "./topic.js";

export class Run {
  /** @type {import("./types.js").Progress | null} the latest progress, once `result` or the partial results are read */
  progress = null;
  /** @type {((progress: import("./types.js").Progress) => void) | undefined} */
  onprogress;
  #link;
  /** @type {Promise<unknown> | undefined} */
  #result;

  /**
   * @param {import("./link.js").Link} link
   * @param {string | Promise<string>} key
   */
  constructor(link, key) {
    this.#link = link;
    /** Whoever has the key may read the run, and cancel it. */
    this.key = Promise.resolve(key);
    this.key.catch(() => {});
  }

  /** The result. Fails if the run does. */
  get result() {
    return (this.#result ??= this.#watch());
  }

  /** The partial results. Ends with the run, and fails as it does, or with `closed` if the client is closed before. */
  async *[Symbol.asyncIterator]() {
    for await (const { data } of this.events()) {
      if ("partial" in data) yield data.partial;
      else if (!this.#result) this.#take(data);
      else outcome(data);
    }
  }

  /**
   * All events: states, progress and partial results.
   * @param {import("./types.js").ReadOptions} [options]
   * @returns {AsyncGenerator<import("./types.js").TopicEvent, void, void>}
   */
  async *events(options = {}) {
    const topic = new Topic(this.#link, `runs/${encodeURIComponent(await this.key)}`, options);
    yield* topic;
    if (!topic.isEnded) this.#link.check(); // the client was closed before the run was over
  }

  /** Cancels the run, and returns its state then. Does nothing to a run that has ended. */
  async cancel() {
    try {
      return (await this.#call("DELETE", "")).data;
    } catch (error) {
      if (/** @type {any} */ (error).code !== "run-ended") throw error;
      return (await this.#call("GET", "?state")).data;
    }
  }

  /**
   * @param {string} method
   * @param {string} query
   */
  async #call(method, query) {
    const { call } = await this.#link.calls();
    return call(this.#link, method, `runs/${encodeURIComponent(await this.key)}${query}`);
  }

  async #watch() {
    let last;
    for await (const { data } of this.events({ mode: "latest" })) last = this.#take(data) ?? last;
    // The last event may be no longer retained, but its state is.
    last ??= outcome((await this.#call("GET", "?state")).data);
    return last?.result;
  }

  /**
   * @param {any} data
   * @returns {{ result: unknown } | undefined}
   */
  #take(data) {
    if ("progress" in data) this.#link.tell(/** @type {any} */ ("onprogress"), (this.progress = data), /** @type {any} */ (this));
    return outcome(data);
  }
}

/**
 * @param {any} data an event or a state
 * @returns {{ result: unknown } | undefined}
 */
function outcome({ state, result, problem }) {
  if (state === "cancelled") throw new AnemoneError("run-cancelled", "the run was cancelled");
  if (state === "failed") {
    const code = String(problem?.type).replace("/problems/", "");
    throw new AnemoneError(code, problem?.detail ?? "the run has failed", { problem });
  }
  return state === "done" ? { result } : undefined;
}
