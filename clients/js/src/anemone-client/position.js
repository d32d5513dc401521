/**
 * @param {string} position
 * @returns {{ epoch: string, offset: number } | null} null if it is not `EPOCH-OFFSET`
 */
export function parsePosition(position) {
  const match = /^(.+)-(\d+)$/.exec(position);
  return match ? { epoch: String(match[1]), offset: Number(match[2]) } : null;
}

/** @param {{ epoch: string, offset: number }} position */
export function formatPosition({ epoch, offset }) {
  return `${epoch}-${offset}`;
}

/** A reader's position in a topic. Owns the rule that every lost or repeated event is reported. */
export class Sequence {
  /** The number of events that the server has skipped before the next one. */
  skipped = 0;

  /** @param {string | undefined} position the last event seen, or the beginning */
  constructor(position) {
    this.position = position;
  }

  /**
   * Handles an event.
   * @param {string} position
   * @returns {"next" | "repeated" | import("./types.js").Gap} a gap that nobody announced comes with the event still valid
   */
  accept(position) {
    const distance = this.#distanceTo(position);
    if (distance !== null && distance <= 0) return "repeated";
    return this.#move(position, distance, this.skipped + 1) ?? "next";
  }

  /**
   * Handles a position from the server: the beginning, or how far reading has come.
   * @param {string} position
   */
  settle(position) {
    const distance = this.#distanceTo(position);
    return distance !== null && distance <= 0 ? null : this.#move(position, distance, this.skipped);
  }

  /**
   * Returns the number of events up to `position`: 1 is the next one; null without a position, or in another epoch.
   * @param {string} position
   */
  #distanceTo(position) {
    const here = parsePosition(this.position ?? "");
    const there = parsePosition(position);
    return here && there && here.epoch === there.epoch ? there.offset - here.offset : null;
  }

  /**
   * @param {string} position
   * @param {number | null} distance
   * @param {number} expected
   * @returns {import("./types.js").Gap | null}
   */
  #move(position, distance, expected) {
    const after = this.position;
    this.position = position;
    this.skipped = 0;
    // `latest` and `earliest` are no positions, so any first event is correct.
    if (after === undefined || !parsePosition(after) || distance === expected) return null;
    return { reason: "unannounced", after, missed: distance && distance - expected, resume: position };
  }
}
