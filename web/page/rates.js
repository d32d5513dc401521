/** The rates at which topics grow, from the positions of their newest events in looks. Pure. */
import { parsePosition } from "../client.js";

/** The longest time of which a rate is the mean. */
const MEMORY_MS = 10_000;
/** The time after the first look in which events may be old ones that come all at once. It is also the least time of a rate. */
const HEAP_MS = 1000;
/** A topic without an event for this time is quiet, unless its events have always been as far apart. */
const QUIET_MS = 5000;
const QUIET_PAUSES = 3;
/** @type {[string, number][]} */
const TIMES = [["a second", 1], ["a minute", 60], ["an hour", 3600]];

export class Rate {
  #began = 0;
  #now = 0;
  /** The looks that found a new event, oldest first. @type {{ epoch: string, offset: number, at: number, time: number }[]} */
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
    // An offset of 0 is that of no event, from which no pause begins.
    if (now - this.#began < HEAP_MS || (last?.offset === 0 && position.offset > 0)) this.#looks = [];
    this.#now = now;
    if (this.#looks.at(-1)?.offset !== position.offset) this.#looks.push({ ...position, at: now, time });
    // A topic that is slower than that is known by its last two events.
    while (this.#looks.length > 2 && now - Number(this.#looks[1]?.at) > MEMORY_MS) this.#looks.shift();
  }

  /**
   * Begins anew, since the next event does not follow the last one.
   * @param {number} now
   */
  forget(now) {
    this.#looks = [];
    this.#began = now;
  }

  /** The events in a second; null while it is not known. */
  get perSecond() {
    const [first, last] = [this.#looks[0], this.#looks.at(-1)];
    if (!first || !last) return null;
    const [events, span, watched, silence] = [last.offset - first.offset, last.time - first.time, this.#now - first.at, this.#now - last.at];
    if (events === 0) return silence < QUIET_MS ? null : 0;
    if (silence > Math.max(QUIET_MS, (QUIET_PAUSES * span) / events)) return 0;
    // From event to event; without the time since the last one, unless that is longer than they take.
    const ms = Math.max(span, (watched * events) / (events + 1));
    return ms < HEAP_MS ? null : (events * 1000) / ms;
  }
}

/** @param {number | null} perSecond */
export function rateInWords(perSecond) {
  if (perSecond === null) return "";
  for (const [time, seconds] of TIMES) {
    const events = perSecond * seconds;
    if (events >= 0.95) return `${events.toFixed(events < 9.95 ? 1 : 0)} ${time}`;
  }
  return "quiet";
}
