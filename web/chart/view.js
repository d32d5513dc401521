/**
 * The stretch of time that a chart shows. It follows the newest values until somebody moves it away. Pure.
 */

const SPAN_MS_MIN = 50;
/** The part at the right where zooming goes on following the newest values. */
const LIVE_PART = 0.1;

/** @typedef {{ oldest: number, now: number }} Extent the times between which the view stays */

export class View {
  #spanFirst;
  #span;
  /** @type {number | null} null while it follows */
  #to = null;

  /** @param {number} spanMs */
  constructor(spanMs) {
    this.#spanFirst = this.#span = spanMs;
  }

  /** Whether the newest values are in view, and stay there. */
  get follows() {
    return this.#to === null;
  }

  /** Whether the view is as it was in the beginning. */
  get isFirst() {
    return this.follows && this.#span === this.#spanFirst;
  }

  get span() {
    return this.#span;
  }

  /**
   * @param {number} now
   * @returns {{ from: number, to: number }}
   */
  at(now) {
    const to = Math.min(now, this.#to ?? now);
    return { from: to - this.#span, to };
  }

  /**
   * Shows `factor` times as much time. `part` is the part of the view, 0 to 1 from the left, that stays where it is.
   * @param {number} factor
   * @param {number} part
   * @param {Extent} extent
   */
  zoom(factor, part, extent) {
    const { from, to } = this.at(extent.now);
    const anchor = from + part * (to - from);
    const longest = Math.max(this.#spanFirst, (extent.now - extent.oldest) * 1.05);
    const span = Math.min(longest, Math.max(SPAN_MS_MIN, this.#span * factor));
    const staysLive = this.follows && part > 1 - LIVE_PART;
    this.#span = span;
    if (!staysLive) this.#moveTo(anchor + (1 - part) * span, extent);
  }

  /**
   * @param {number} ms to the right; negative to the left
   * @param {Extent} extent
   */
  pan(ms, extent) {
    this.#moveTo(this.at(extent.now).to + ms, extent);
  }

  /**
   * Moves as little as needed to have a time in view.
   * @param {number} time
   * @param {Extent} extent
   */
  reveal(time, extent) {
    const { from, to } = this.at(extent.now);
    const margin = this.#span * LIVE_PART;
    if (time < from + margin) this.pan(time - margin - from, extent);
    else if (time > to - margin && !this.follows) this.pan(time + margin - to, extent);
  }

  /**
   * Begins anew with another span.
   * @param {number} spanMs
   */
  begin(spanMs) {
    this.#spanFirst = spanMs;
    this.reset();
  }

  /** Returns to the beginning: the first span, and the newest values. */
  reset() {
    this.#span = this.#spanFirst;
    this.#to = null;
  }

  /**
   * @param {number} to
   * @param {Extent} extent
   */
  #moveTo(to, { oldest, now }) {
    const least = Math.min(now, oldest + this.#span);
    this.#to = to >= now ? null : Math.max(to, least);
    if (this.#to !== null && this.#to >= now) this.#to = null;
  }
}
