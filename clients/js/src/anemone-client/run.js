/** A long computation on the server, which goes on when its client has gone. */
import { AnemoneError } from "./error.js";
import { call } from "./call.js";
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
   * @param {string} path
   * @param {unknown} body
   * @param {import("./types.js").CallOptions} options
   */
  constructor(link, path, body, { key = true, headers, signal } = {}) {
    this.#link = link;
    const started = call(link, "POST", path, body, { key, signal, headers: { ...headers, prefer: "respond-async" } });
    /** The key; whoever has it may read the run, and cancel it. */
    this.key = started.then(({ status, data }) => {
      if (status === 202) return String(/** @type {any} */ (data).key);
      throw new AnemoneError("protocol", `no run, but status ${status}`);
    });
    this.key.catch(() => {});
  }

  /** The result. Fails if the run does. */
  get result() {
    return (this.#result ??= this.#watch());
  }

  /** The partial results. Ends with the run, and fails as it does. */
  async *[Symbol.asyncIterator]() {
    for await (const { data } of await this.#read({})) {
      if ("partial" in data) yield data.partial;
      else if (!this.#result) this.#take(data);
      else outcome(data);
    }
  }

  /** Cancels the run, and returns its state then. Does nothing to a run that has ended. */
  async cancel() {
    const path = `runs/${await this.key}`;
    try {
      return (await call(this.#link, "DELETE", path)).data;
    } catch (error) {
      if (!(error instanceof AnemoneError && error.code === "run-ended")) throw error;
      return (await call(this.#link, "GET", `${path}?state`)).data;
    }
  }

  async #watch() {
    let last;
    for await (const { data } of await this.#read({ mode: "latest" })) last = this.#take(data) ?? last;
    // The last event may be no longer retained, but its state is.
    last ??= outcome((await call(this.#link, "GET", `runs/${await this.key}?state`)).data);
    return last?.result;
  }

  /**
   * @param {any} data
   * @returns {{ result: unknown } | undefined}
   */
  #take(data) {
    if ("progress" in data) this.onprogress?.((this.progress = data));
    return outcome(data);
  }

  /** @param {import("./types.js").ReadOptions} options */
  async #read(options) {
    return /** @type {AsyncIterable<any>} */ (new Topic(this.#link, `runs/${await this.key}`, options));
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
