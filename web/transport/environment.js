/**
 * The environment of transports: network, time and random numbers. Tests pass their own.
 *
 * @typedef {object} Environment
 * @property {typeof fetch} fetch
 * @property {(url: string, protocol: string) => WebSocket} openSocket
 * @property {() => number} now ms since the Unix epoch, never set back
 * @property {(ms: number, signal: AbortSignal) => Promise<void>} sleep ends early, without an error, on abort
 * @property {() => number} random from 0 up to 1
 */

/** @type {Environment} */
export const browser = {
  fetch: (input, init) => fetch(input, init),
  openSocket: (url, protocol) => new WebSocket(url, protocol),
  // Unlike Date.now(), this has fractions, and does not jump when the machine's clock is set.
  now: () => performance.timeOrigin + performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", done);
    }),
  random: Math.random,
};
