/**
 * A reader's place in a topic. Owns the rule that no event is lost or doubled without being told.
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

  /** The last event seen, or where reading begins; undefined until the server has said. */
  get position() {
    return this.#position;
  }

  /**
   * The server announced a gap; reading goes on after `resume`.
   * @param {import("./types.js").Gap} gap
   */
  skip(gap) {
    this.#position = gap.resume;
  }

  /**
   * An event arrived.
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
   * The server says that reading stands at `position`: at the beginning, or at the end of a page.
   * @param {string} position
   * @returns {import("./types.js").Gap | null}
   */
  settle(position) {
    const gap = this.#unannounced(position, this.#distanceTo(position), 0);
    this.#position = position;
    return gap;
  }

  /**
   * Events from our place to `position`; 1 is the next one; null when there is no place yet or another epoch.
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
    // `latest` and `earliest` are requests, not places: whatever comes first is right.
    if (this.#position === undefined || parsePosition(this.#position) === null || distance === expected) return null;
    const missed = distance === null || distance < 0 ? null : distance - expected;
    return { reason: "unannounced", after: this.#position, missed, resume: position };
  }
}

/**
 * Takes one event into the sequence and hands it on, once.
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
