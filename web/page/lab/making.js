/**
 * Makes reports in a worker: their intervals take so long that the page would be blocked.
 *
 * The script for that is loaded before anything is measured, since the server may be gone afterwards. Without the script, the page makes
 * the reports itself, so that no figure is lost.
 */
import { ownScript } from "../site.js";
import { made } from "./report.js";

const SCRIPT = ownScript(new URL("./worker.js", import.meta.url));
const LOAD_MS_MAX = 5000;
/** The longest time for a report. One of 30 rounds takes about a second. */
const MAKE_MS_MAX = 60_000;

export class Maker {
  /** @type {Worker | null} */
  #worker = null;

  /**
   * Returns once the script is loaded, or has failed.
   * @param {AbortSignal} signal ends the wait
   */
  async load(signal) {
    this.#worker = new Worker(SCRIPT, { type: "module" });
    const isLoaded = await answerOf(this.#worker, AbortSignal.any([signal, AbortSignal.timeout(LOAD_MS_MAX)]));
    if (!isLoaded) this.end();
  }

  /**
   * @param {Parameters<typeof made>} wish
   * @returns {Promise<ReturnType<typeof made>>}
   */
  async make(...wish) {
    this.#worker?.postMessage(wish);
    const answer = this.#worker && (await answerOf(this.#worker, AbortSignal.timeout(MAKE_MS_MAX)));
    if (answer) return answer;
    this.end();
    return made(...wish);
  }

  end() {
    this.#worker?.terminate();
    this.#worker = null;
  }
}

/**
 * Returns the next message of a worker; null if it fails, or has none before `signal`.
 * @param {Worker} worker
 * @param {AbortSignal} signal
 */
function answerOf(worker, signal) {
  return new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = () => resolve(null);
    if (signal.aborted) resolve(null);
    signal.addEventListener("abort", () => resolve(null));
  });
}
