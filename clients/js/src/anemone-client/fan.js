/**
 * Readings of one path that share a request: those of other tabs above all, since a browser has six connections for each server.
 * One that joins the others gets by pages what it does not have yet.
 */
import { parsePosition } from "./position.js";
import { now } from "./time.js";
import { page } from "./transports.js";

/** The most events of a page with which one that joins gets what it lacks. */
const PAGE_EVENTS = 1000;

/** @typedef {import("./types.js").Reading} Reading */
/** @typedef {import("./types.js").Item} Item */

export class Fan {
  /** @type {Map<Reading, (ended: Promise<void>) => void>} */
  #readings = new Map();
  #round = new AbortController();
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

  /** The place of the reading that is behind all others, up to which everything has come. */
  get #after() {
    const offset = (/** @type {string | undefined} */ place) => parsePosition(place)?.offset ?? -1;
    return [...this.#readings.keys()].map(({ options }) => options().after).sort((one, other) => offset(one) - offset(other))[0];
  }

  /**
   * Returns true if a reading that begins there may join: what others have asked for may not have come yet.
   * @param {string | undefined} after
   */
  takes(after) {
    return after === this.#after || parsePosition(this.#after);
  }

  /**
   * Lets a reading get what the others have; returns false if that is all there is.
   * @param {Reading} reading
   * @param {(more: object) => string} target of a request of its own
   */
  async catchUp(reading, target) {
    const { after } = reading.options();
    if (after === this.#after) return true;
    if (after === "latest") {
      reading.take({ position: this.#after }, now());
      return true;
    }
    for (let pages = 0; ; pages += 1) {
      const events = await page({ ...reading, target }, pages, { limit: PAGE_EVENTS });
      reading.signal.throwIfAborted();
      if (!events || events.length < PAGE_EVENTS) return events;
    }
  }

  /**
   * Adds a reading, and asks again from its place if the others are ahead.
   * @param {Reading} reading
   * @returns {Promise<void>}
   */
  add(reading) {
    const { after } = reading.options();
    const [own, place] = [after, this.#after].map(parsePosition);
    const isFirst = this.#readings.size === 0;
    const isBehind = own && !(own.epoch === place?.epoch && own.offset >= place.offset);
    const ended = /** @type {Promise<void>} */ (new Promise((resolve) => this.#readings.set(reading, resolve)));
    reading.signal.addEventListener("abort", () => {
      this.#readings.delete(reading);
      if (this.#readings.size > 0) return;
      this.#end();
      this.#round.abort();
    });
    if (isFirst || isBehind) this.#request(reading);
    return ended;
  }

  /** @param {Reading} reading one of all */
  #request(reading) {
    this.#round.abort();
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
    for (const reading of this.#readings.keys()) reading.take(item.gap ? lacked(item.gap, reading.options().after) : item, received);
  }
}

/**
 * Returns what a gap is to a reading at a place, which may be ahead of others.
 * @param {import("./types.js").Gap} gap
 * @param {string | undefined} after
 * @returns {Item}
 */
function lacked(gap, after) {
  const [here, there] = [after, gap.resume].map(parsePosition);
  if (!after || !here || here.epoch !== there?.epoch || after === gap.after) return { gap };
  return there.offset > here.offset ? { gap: { ...gap, after, missed: there.offset - here.offset } } : {};
}
