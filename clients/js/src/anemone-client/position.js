import { words } from "./error.js";

/**
 * @param {unknown} position
 * @returns {{ epoch: string, offset: number } | null} null if it is not `EPOCH-OFFSET`
 */
export function parsePosition(position) {
  const [, epoch, offset] = /^(.+)-(\d+)$/.exec(words(position)) ?? [];
  return epoch ? { epoch, offset: Number(offset) } : null;
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
   * Moves to the position of an event; with a `count` of 0, to a place.
   * @param {string} position
   * @returns {"next" | "repeated" | import("./types.js").Gap} a gap that nobody announced comes with the event still valid
   */
  accept(position, count = 1) {
    const after = this.position;
    const here = parsePosition(after);
    const there = parsePosition(position);
    const distance = here && there?.epoch === here.epoch ? there.offset - here.offset : NaN;
    if (distance <= 0) return "repeated";
    const missed = distance - this.skipped - count;
    this.position = position;
    this.skipped = 0;
    // `latest` and `earliest` are no positions, so any first event is correct.
    return here && missed !== 0 ? { reason: "unannounced", after: /** @type {string} */ (after), missed: missed || null, resume: position } : "next";
  }
}
