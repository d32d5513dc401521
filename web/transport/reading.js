/** A reading that can be paused, and continues from its position. */
export class Reading {
  #read;
  #topicUrl;
  #options;
  /** @type {AbortController | null} */
  #controller = null;
  /** @type {Promise<string | undefined>} */
  #position;

  /**
   * @param {import("./types.js").Read} read
   * @param {string} topicUrl
   * @param {Omit<import("./types.js").ReadOptions, "signal">} options
   */
  constructor(read, topicUrl, options) {
    this.#read = read;
    this.#topicUrl = topicUrl;
    this.#options = options;
    this.#position = Promise.resolve(options.after);
  }

  resume() {
    if (this.#controller) return;
    const controller = new AbortController();
    this.#controller = controller;
    this.#position = this.#position.then((after) =>
      controller.signal.aborted
        ? after
        : this.#read(this.#topicUrl, { ...this.#options, after, signal: controller.signal }),
    );
  }

  /** @param {string} [reason] in place of the page being hidden */
  pause(reason) {
    if (!this.#controller) return;
    this.#controller.abort();
    this.#controller = null;
    this.#options.onState({ kind: "paused", ...(reason && { reason }) });
  }
}
