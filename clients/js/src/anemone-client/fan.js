/**
 * Readings of one path that share a request. Most are those of other tabs, since a browser has six connections for each server. A reading
 * that joins gets the events that it lacks from pages.
 */
import { parsePosition } from "./position.js";
import { now } from "./time.js";
import { page } from "./transports.js";

/**
 * The most events of the first page for a reading that joins, and of any page; below, the most pages, since a busy topic is always a little
 * ahead.
 */
const FIRST_EVENTS = 64;
export const PAGE_EVENTS = 1000;
const PAGES_MAX = 100;

/** @typedef {import("./types.js").Reading} Reading */
/** @typedef {import("./types.js").Item} Item */

export class Fan {
  /** @type {Map<Reading, (ended: Promise<void>) => void>} */
  #readings = new Map();
  #round = new AbortController();
  /** True once something has come by the current request. */
  #isOpen = false;
  #start;
  #end;

  /**
   * @param {(reading: Reading) => Promise<void>} start makes the request
   * @param {() => void} end is called when nobody reads any more, or before those that read hear that the request has ended
   */
  constructor(start, end) {
    this.#start = start;
    this.#end = end;
  }

  /** The place of the reading that is behind all others. Everything up to there has come. */
  get #after() {
    const offset = (/** @type {string | undefined} */ place) => parsePosition(place)?.offset ?? -1;
    return [...this.#readings.keys()].map(({ options }) => options().after).sort((one, other) => offset(one) - offset(other))[0];
  }

  /**
   * Returns true if a reading at this place may join: if the others have the same place, or if their place is known and this is not of
   * another epoch.
   * @param {string | undefined} after
   */
  takes(after) {
    const [own, place] = [after, this.#after].map(parsePosition);
    return after === this.#after || (place && (!own || own.epoch === place.epoch));
  }

  /**
   * Reads pages until a reading has what the others have. Returns false if the topic has ended.
   * @param {Reading} reading
   * @param {(more: object) => string} target of a request of its own
   */
  async catchUp(reading, target) {
    if (reading.options().after === this.#after) return true;
    for (let pages = 0; pages < PAGES_MAX; pages += 1) {
      // The first is small, to be here before the time to open is over on a slow connection.
      const limit = Math.min(PAGE_EVENTS, FIRST_EVENTS << (2 * Math.min(5, pages)));
      const events = await page({ ...reading, target }, pages, { limit });
      reading.signal.throwIfAborted();
      if (!events?.[0] || !this.isAhead(reading)) return events;
    }
    return true;
  }

  /**
   * Returns true if the others are ahead of a reading by more events.
   * @param {Reading} reading
   */
  isAhead(reading, events = 0) {
    const { after } = reading.options();
    return after !== this.#after && !(distance(after, this.#after) <= events);
  }

  /**
   * Adds a reading. Makes a new request from its place if the others are ahead.
   * @param {Reading} reading
   * @returns {Promise<void>}
   */
  add(reading) {
    const isNew = this.#readings.size === 0 || this.isAhead(reading);
    const ended = /** @type {Promise<void>} */ (new Promise((resolve) => this.#readings.set(reading, resolve)));
    reading.signal.addEventListener("abort", () => {
      const { reason } = reading.signal;
      this.#readings.delete(reading);
      // What is silent is dead for all.
      if (this.#readings.size > 0 && !/silent|timeout/.test(reason.code)) return;
      this.#end();
      this.#round.abort();
      for (const resolve of this.#readings.values()) resolve(Promise.reject(reason));
    });
    if (isNew) this.#request(reading);
    else if (this.#isOpen) reading.take({}, now());
    return ended;
  }

  /** @param {Reading} reading one of all */
  #request(reading) {
    this.#round.abort();
    this.#isOpen = false;
    const { signal } = (this.#round = new AbortController());
    const ended = this.#start({
      ...reading,
      signal,
      options: () => {
        const after = this.#after;
        return after ? { after } : {};
      },
      losses: () => Math.max(...[...this.#readings.keys()].map(({ losses }) => losses())),
      take: (item, received) => signal.aborted || this.#take(item, received),
    });
    const tell = () => {
      if (signal.aborted) return;
      this.#end();
      for (const resolve of this.#readings.values()) resolve(ended);
    };
    ended.then(tell, tell);
  }

  /**
   * @param {Item} item
   * @param {number} received
   */
  #take(item, received) {
    this.#isOpen = true;
    for (const reading of this.#readings.keys()) reading.take(item.gap ? lacked(item.gap, reading.options().after) : item, received);
  }
}

/**
 * Returns the number of events between two positions; NaN if one is missing, or if their epochs differ.
 * @param {string | undefined} from
 * @param {string | undefined} to
 */
function distance(from, to) {
  const [here, there] = [from, to].map(parsePosition);
  return here && there?.epoch === here.epoch ? there.offset - here.offset : NaN;
}

/**
 * Returns a gap as seen from the place of a reading, which may be ahead of others.
 * @param {import("./types.js").Gap} gap
 * @param {string | undefined} after
 * @returns {Item}
 */
function lacked(gap, after) {
  const missed = distance(after, gap.resume);
  if (!after || Number.isNaN(missed) || after === gap.after) return { gap };
  return missed > 0 ? { gap: { ...gap, after, missed } } : {};
}
