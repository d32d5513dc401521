/** How fast topics grow, from the positions of their newest events in two looks. Pure. */
import { parsePosition } from "../client.js";

/** A rate is the mean over this time at most. */
const MEMORY_MS = 10_000;

export class Rate {
  /** @type {{ epoch: string, offset: number, at: number, time: number }[]} oldest first */
  #looks = [];

  /**
   * @param {string} next the position of the newest event
   * @param {number} now
   * @param {number} [time] of that event, if it may be one of the past
   */
  look(next, now, time = now) {
    const position = parsePosition(next);
    if (!position) return;
    if (this.#looks[0]?.epoch !== position.epoch) this.#looks = [];
    this.#looks.push({ ...position, at: now, time });
    while (this.#looks.length > 2 && now - Number(this.#looks[0]?.at) > MEMORY_MS) this.#looks.shift();
  }

  /** Events in a second; null until there were two looks. */
  get perSecond() {
    const [first, last] = [this.#looks[0], this.#looks.at(-1)];
    if (!first || !last || last.at <= first.at) return null;
    // Events of the past come all at once: they took the time between them.
    return ((last.offset - first.offset) * 1000) / Math.max(last.at - first.at, last.time - first.time);
  }
}

/** @param {number | null} perSecond */
export function rateInWords(perSecond) {
  if (perSecond === null) return "";
  if (perSecond === 0) return "quiet";
  if (perSecond >= 0.95) return `${perSecond.toFixed(perSecond < 9.95 ? 1 : 0)} a second`;
  return `${(perSecond * 60).toFixed(perSecond < 0.16 ? 1 : 0)} a minute`;
}
