/** Finds out whether a page measured itself instead of the network: it was hidden, or it was busy, so that all events had to wait. */
import { now } from "../../client.js";

const TICK_MS = 10;
/** The time after which a task is long, as in W3C Long Tasks. */
const LONG_TASK_MS = 50;
/** The greatest share of time in long tasks with which the figures are good. With more, medians may be those of the page. */
const SHARE_MAX = 0.05;

/** Watches the page until it is ended. */
export class Disturbance {
  #begun = now();
  #due = 0;
  #stoodMs = 0;
  #share = 0;
  #isHidden = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #see = () => void (this.#isHidden ||= document.visibilityState === "hidden");

  constructor() {
    this.#see();
    document.addEventListener("visibilitychange", this.#see);
    this.#wait();
  }

  #wait() {
    this.#due = now() + TICK_MS;
    this.#timer = setTimeout(() => {
      this.#look();
      this.#wait();
    }, TICK_MS);
  }

  #look() {
    const taskMs = now() - this.#due + TICK_MS / 2; // it began somewhere in the wait
    if (taskMs > LONG_TASK_MS) this.#stoodMs += taskMs;
  }

  end() {
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#see);
    this.#look();
    this.#share = this.#stoodMs / (now() - this.#begun);
  }

  /**
   * Returns the reason why figures are those of the page; null if there is none.
   * @param {boolean} hasLongTasks what was measured has long tasks of its own, which then tell nothing
   */
  reason(hasLongTasks) {
    if (this.#isHidden) return "the page was hidden meanwhile, and browsers slow down what is hidden";
    if (hasLongTasks || this.#share <= SHARE_MAX) return null;
    return `this page stood still for ${Math.round(100 * this.#share)} % of the time: close other pages and programs, and measure again`;
  }
}
