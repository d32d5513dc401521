/** The longest time until a connection is open, or the server answers. */
export const OPEN_MS_MAX = 3000;

/** The longest time of a call, and the longest time until a stream begins. */
export const ANSWER_MS_MAX = 45_000;

/** The longest timer. A timer of Infinity would end at once. */
export const TIMER_MS_MAX = 2e9;

/** The time in ms since the Unix epoch, with fractions. It does not jump when the machine's clock is set. */
export const now = () => performance.timeOrigin + performance.now();

/**
 * Sleeps; ends early, without an error, on abort.
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.min(TIMER_MS_MAX, ms));
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

/** The longest delay before the second try. A server may lengthen it, but not shorten it. */
const FIRST_MS = 500;

/** The delay before the next try: exponential, with full jitter, so that many clients do not return at once. */
export class Backoff {
  /** The delay that the server asked for. */
  wishMs = 0;
  /** The failures in a row. Set this to 0 when something new was received; an open connection alone proves nothing. */
  failures = 0;
  #random;

  /** @param {() => number} random */
  constructor(random) {
    this.#random = random;
  }

  next() {
    return Math.min(10_000, Math.max(FIRST_MS, this.wishMs) * 2 ** this.failures++) * this.#random();
  }
}
