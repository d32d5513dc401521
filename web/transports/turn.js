/**
 * Whose turn it is to hold the streams, when a browser has two windows with this page: over HTTP/1.1 it opens six connections to a
 * server, and the streams of two windows would take all of them, so that nothing else could load.
 */

const LOCK = "anemone wind streams";

export class Turn {
  /** True if this window may hold streams now. */
  isOurs = false;
  #onChange;
  /** @type {AbortController | null} */
  #asking = null;
  /** @type {() => void} */
  #release = () => {};

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Gets the turn, at once or when the other window ends its own. */
  ask() {
    if (this.#asking) return;
    this.#asking = new AbortController();
    // Only pages over TLS or from this machine have locks.
    if (!globalThis.navigator?.locks || isShared()) {
      this.isOurs = true;
      return;
    }
    const { signal } = this.#asking;
    navigator.locks.request(LOCK, { signal }, () => this.#hold(signal)).catch(() => {});
  }

  /** Gives the turn to another window. */
  end() {
    this.#asking?.abort();
    this.#asking = null;
    this.isOurs = false;
    this.#release();
  }

  /** @param {AbortSignal} signal */
  #hold(signal) {
    if (signal.aborted) return;
    this.isOurs = true;
    const held = new Promise((/** @type {(nothing: void) => void} */ resolve) => (this.#release = resolve));
    this.#onChange();
    return held;
  }
}

/** True if all requests share one connection, as over HTTP/2. */
export function isShared() {
  const [own] = /** @type {PerformanceResourceTiming[]} */ (performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")));
  return /^h[23]/.test(own?.nextHopProtocol ?? "");
}
