/**
 * A reader's position in a topic. Owns the rule that every lost or repeated event is reported.
 */

/**
 * @param {string} position
 * @returns {{ epoch: string, offset: number } | null} null when it is not `EPOCH-OFFSET`
 */
export function parsePosition(position) {
  const match = /^(.+)-(\d+)$/.exec(position);
  return match ? { epoch: String(match[1]), offset: Number(match[2]) } : null;
}

/** @param {{ epoch: string, offset: number }} position */
export function formatPosition({ epoch, offset }) {
  return `${epoch}-${offset}`;
}

export class Sequence {
  /** @type {string | undefined} */
  #position;

  /** @param {string | undefined} after */
  constructor(after) {
    this.#position = after;
  }

  /** The last event seen, or the beginning; undefined until the server has sent it. */
  get position() {
    return this.#position;
  }

  /**
   * Handles a gap that the server announced; reading continues after `resume`.
   * @param {import("./types.js").Gap} gap
   */
  skip(gap) {
    this.#position = gap.resume;
  }

  /**
   * Handles an event.
   * @param {string} position
   * @returns {"next" | "repeated" | import("./types.js").Gap} a gap that nobody announced comes with the event still valid
   */
  accept(position) {
    const distance = this.#distanceTo(position);
    if (distance !== null && distance <= 0) return "repeated";
    const gap = this.#unannounced(position, distance, 1);
    this.#position = position;
    return gap ?? "next";
  }

  /**
   * Handles a position from the server: the beginning, or the end of a page.
   * @param {string} position
   * @returns {import("./types.js").Gap | null}
   */
  settle(position) {
    const gap = this.#unannounced(position, this.#distanceTo(position), 0);
    this.#position = position;
    return gap;
  }

  /**
   * Returns the number of events from the current position to `position`: 1 is the next one; null without a
   * position, or in another epoch.
   * @param {string} position
   */
  #distanceTo(position) {
    const here = this.#position === undefined ? null : parsePosition(this.#position);
    const there = parsePosition(position);
    return here && there && here.epoch === there.epoch ? there.offset - here.offset : null;
  }

  /**
   * @param {string} position
   * @param {number | null} distance
   * @param {0 | 1} expected
   * @returns {import("./types.js").Gap | null}
   */
  #unannounced(position, distance, expected) {
    // `latest` and `earliest` are not positions, so any first event is correct.
    if (this.#position === undefined || parsePosition(this.#position) === null || distance === expected) return null;
    const missed = distance === null || distance < 0 ? null : distance - expected;
    return { reason: "unannounced", after: this.#position, missed, resume: position };
  }
}

/**
 * Adds one event to the sequence, and passes it on once.
 * @param {Sequence} sequence
 * @param {import("./types.js").TopicEvent} event
 * @param {import("./types.js").ReadOptions} options
 */
export function deliver(sequence, event, options) {
  const verdict = sequence.accept(event.position);
  if (verdict === "repeated") {
    options.onRepeat?.();
    return;
  }
  if (verdict !== "next") options.onGap(verdict);
  options.onEvent(event);
}
