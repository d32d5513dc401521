/** A long computation on the server. It continues when its client has gone. */
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
    /** The key of the run. Whoever has it may read the run, and cancel it. */
    this.key = Promise.resolve(key);
    this.key.catch(() => {});
  }

  /** The result. Fails if the run does. */
  get result() {
    return (this.#result ??= this.#link.use("outcome", "result", this));
  }

  /**
   * The partial results. The loop ends with the run, and fails if the run fails, or with `closed` if the client is closed before.
   * @returns {AsyncGenerator<any, void, void>}
   */
  async *[Symbol.asyncIterator]() {
    yield* await this.#link.use("outcome", "partials", this, () => !this.#result); // who reads the result hears of the progress from there
  }

  /**
   * All events: states, progress and partial results.
   * @param {import("./types.js").ReadOptions} [options]
   * @returns {AsyncGenerator<import("./types.js").TopicEvent, void, void>}
   */
  async *events(options) {
    yield* await this.#link.use("outcome", "events", this, options);
  }

  /** Cancels the run, and returns its state after that. Does nothing to a run that has ended. */
  cancel() {
    return this.#link.use("outcome", "cancel", this);
  }
}
