/** The rates at which topics grow, from the positions of their newest events in looks. Pure. */
import { parsePosition } from "../client.js";

/** A rate is the mean over this time at most. */
const MEMORY_MS = 10_000;
/** Events within this time after the first look may be of the past, which comes at once; and a rate over less time says nothing. */
const HEAP_MS = 1000;
/** A topic without an event for this long is quiet. */
const QUIET_MS = 5000;

export class Rate {
  #began = 0;
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
    const last = this.#looks.at(-1);
    if (last?.epoch !== position.epoch || position.offset < last.offset) this.forget(now);
    if (now - this.#began < HEAP_MS) this.#looks = [];
    this.#looks.push({ ...position, at: now, time });
    while (this.#looks.length > 2 && now - Number(this.#looks[0]?.at) > MEMORY_MS) this.#looks.shift();
  }

  /**
   * Begins anew: what comes next does not follow what was seen last.
   * @param {number} now
   */
  forget(now) {
    this.#looks = [];
    this.#began = now;
  }

  /** Events in a second; null until it can be known. */
  get perSecond() {
    const [first, last] = [this.#looks[0], this.#looks.at(-1)];
    if (!first || !last) return null;
    const [events, watched] = [last.offset - first.offset, last.at - first.at];
    if (events === 0) return watched < QUIET_MS ? null : 0;
    // From event to event; without the time since the last one, unless that is longer than they take.
    const ms = Math.max(last.time - first.time, (watched * events) / (events + 1));
    return ms < HEAP_MS ? null : (events * 1000) / ms;
  }
}

/** @param {number | null} perSecond */
export function rateInWords(perSecond) {
  if (perSecond === null) return "";
  if (perSecond === 0) return "quiet";
  if (perSecond >= 0.95) return `${perSecond.toFixed(perSecond < 9.95 ? 1 : 0)} a second`;
  return `${(perSecond * 60).toFixed(perSecond < 0.16 ? 1 : 0)} a minute`;
}
