/** The delay before the next attempt: exponential, with jitter, so that many clients do not return at once. */
export class Backoff {
  static MS_FIRST = 250;
  static MS_MAX = 5000;

  #attempts = 0;
  #random;

  /** @param {() => number} random */
  constructor(random) {
    this.#random = random;
  }

  /** Returns the next delay in milliseconds: between half of the step and all of it. */
  next() {
    const step = Math.min(Backoff.MS_MAX, Backoff.MS_FIRST * 2 ** this.#attempts);
    this.#attempts += 1;
    return step * (0.5 + 0.5 * this.#random());
  }

  /** Resets the delay. To be called when something useful was received; an open connection alone proves nothing. */
  reset() {
    this.#attempts = 0;
  }
}
