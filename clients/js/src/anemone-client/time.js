/** The time in which a connection opens, or the server answers, if it ever does. */
export const OPEN_MS_MAX = 3000;

/** The most time that a call may take, and what a reply that goes on may take to begin. */
export const ANSWER_MS_MAX = 45_000;

/** No timer may be longer: one of Infinity ends at once. */
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

/** The most before a second try, which a server may lengthen and not shorten. */
const FIRST_MS = 500;

/** The delay before the next try: exponential, with full jitter, so that many clients do not return at once. */
export class Backoff {
  /** The server's wish. */
  wishMs = 0;
  /** To be set to 0 when something new was received; an open connection alone proves nothing. */
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
