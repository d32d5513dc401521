/**
 * Medians with their intervals, and differences of pairs, as `anemone lab` computes them. Pure: randomness comes from a seed.
 *
 * The unit is the round: each gives one value of each contender. The interval is the percentile bootstrap of 95 %.
 *
 * @typedef {{ median: number, low: number, high: number }} Estimate
 */

const RESAMPLES = 10_000;
/** A shift costs the square of its pairs, so it has fewer. */
const SHIFT_RESAMPLES = 2000;
const DOUBT = 0.05;

/** Random numbers of which the same seed gives the same (mulberry32). */
export class Random {
  #state;

  /** @param {number} seed */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 to 1, without 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  }

  /**
   * A whole number from 0 to `end` - 1.
   * @param {number} end
   */
  below(end) {
    return Math.floor(this.next() * end);
  }

  /**
   * Returns the items in a random order.
   * @template T
   * @param {readonly T[]} items
   */
  shuffled(items) {
    const left = [...items];
    const order = [];
    while (left.length > 0) order.push(...left.splice(this.below(left.length), 1));
    return order;
  }
}

/**
 * Returns the middle value, or the mean of the two in the middle.
 * @param {readonly number[]} values
 * @returns {number | null} null without values
 */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return lower === undefined || upper === undefined ? null : (lower + upper) / 2;
}

/**
 * Returns the median of the rounds with its interval.
 * @param {readonly number[]} values
 * @param {Random} random
 * @returns {Estimate | null} null without values
 */
export function estimate(values, random) {
  return bootstrap(values, median, RESAMPLES, random);
}

/**
 * Returns the shift of `of` against `to`, paired by round: the median of the means of all pairs of differences (Hodges-Lehmann).
 * @param {readonly number[]} of
 * @param {readonly number[]} to as many
 * @param {Random} random
 * @returns {Estimate | null} null without pairs
 */
export function shift(of, to, random) {
  const differences = of.slice(0, to.length).map((value, round) => value - Number(to[round]));
  return bootstrap(differences, hodgesLehmann, SHIFT_RESAMPLES, random);
}

/** @param {Estimate} estimate of a difference */
export function isDistinguishable({ low, high }) {
  return low > 0 || high < 0;
}

/** @param {readonly number[]} values */
function hodgesLehmann(values) {
  return median(values.flatMap((one, at) => values.slice(at).map((other) => (one + other) / 2)));
}

/**
 * @param {readonly number[]} values
 * @param {(values: readonly number[]) => number | null} statistic
 * @param {number} resamples
 * @param {Random} random
 * @returns {Estimate | null}
 */
function bootstrap(values, statistic, resamples, random) {
  const middle = statistic(values);
  if (middle === null) return null;
  const draw = new Array(values.length);
  const found = new Float64Array(resamples);
  for (let resample = 0; resample < resamples; resample += 1) {
    for (let at = 0; at < draw.length; at += 1) draw[at] = values[random.below(values.length)];
    found[resample] = Number(statistic(draw));
  }
  found.sort();
  const at = (/** @type {number} */ share) => Number(found[Math.round((resamples - 1) * share)]);
  return { median: middle, low: at(DOUBT / 2), high: at(1 - DOUBT / 2) };
}
