/** A client of an Anemone server. It never loses its place in a topic. README.md has examples and all options. */
import { kept } from "./anemone-client/body.js";
import { Link } from "./anemone-client/link.js";
import { Run } from "./anemone-client/run.js";
import { Topic } from "./anemone-client/topic.js";

export { AnemoneError } from "./anemone-client/error.js";
export { parsePosition } from "./anemone-client/position.js";
export { now, sleep } from "./anemone-client/time.js";

/**
 * Returns a client of the server at `base`. It opens no connection before one is needed.
 * @param {string | URL} base
 * @param {import("./anemone-client/types.js").Options} [options]
 */
export function connect(base, options) {
  return new Client(base, options);
}

export class Client {
  #link;
  /** @type {import("./anemone-client/types.js").Callbacks["onopen"]} */ onopen;
  /** @type {import("./anemone-client/types.js").Callbacks["onmessage"]} */ onmessage;
  /** @type {import("./anemone-client/types.js").Callbacks["onerror"]} */ onerror;
  /** @type {import("./anemone-client/types.js").Callbacks["onclose"]} */ onclose;

  /**
   * @param {string | URL} base
   * @param {import("./anemone-client/types.js").Options} [options]
   */
  constructor(base, options) {
    this.#link = new Link(base, options, this);
  }

  /** The transport in use, and the tries so far: the time, the duration and the error of each. */
  get diagnosis() {
    return { transport: this.#link.transport, tries: this.#link.tries };
  }

  /**
   * Reads a topic, by default its new events.
   * @param {string} name
   * @param {import("./anemone-client/types.js").ReadOptions} [options]
   */
  topic(name, options = {}) {
    const after = options.after || (options.since ? undefined : "latest");
    return this.read(`topics/${encodeURIComponent(name)}`, { ...options, after });
  }

  /**
   * Reads a topic or a run at a path, such as `runs/KEY`.
   * @param {string} path
   * @param {import("./anemone-client/types.js").ReadOptions} [options]
   */
  read(path, options = {}) {
    return new Topic(this.#link, path.replace(/^\//, ""), options);
  }

  /**
   * Publishes an event once, with as many tries as necessary within about a minute.
   * @param {string} name
   * @param {unknown} data
   * @param {import("./anemone-client/types.js").CallOptions} [options]
   * @returns {Promise<import("./anemone-client/types.js").Published>}
   */
  publish(name, data, options) {
    return this.#link.use("call", "publish", name, kept(data), options);
  }

  /**
   * Calls a service. If its answer is lost, a call is made again if that is safe; with a `key`, that is so even for a `POST`.
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @param {import("./anemone-client/types.js").CallOptions} [options]
   * @returns {Promise<import("./anemone-client/types.js").Reply>}
   */
  call(method, path, body, options) {
    return this.#link.use("call", "call", method, path, kept(body), options);
  }

  /**
   * Calls a service once whose reply is a stream, and returns the items as they come: `for await (const item of client.items(…))`.
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @param {import("./anemone-client/types.js").CallOptions} [options]
   * @returns {AsyncGenerator<any, void, void>}
   */
  async *items(method, path, body, options) {
    yield* await this.#link.use("call", "items", method, path, kept(body), options);
  }

  /**
   * Starts a run once, with as many tries as necessary within about a minute.
   * @param {string} path
   * @param {unknown} [body]
   * @param {import("./anemone-client/types.js").CallOptions} [options]
   */
  run(path, body, options) {
    return new Run(this.#link, this.#link.use("call", "start", path, kept(body), options));
  }

  /**
   * Watches a run that was started before, perhaps by another client.
   * @param {string} key
   */
  watch(key) {
    return new Run(this.#link, key);
  }

  /** Ends everything: topics end, and open calls fail. */
  close() {
    this.#link.close();
  }
}
