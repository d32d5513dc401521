/**
 * Medians with their intervals, and differences of pairs, as `anemone lab` computes them. Pure: randomness comes from a seed.
 *
 * The unit is the round: each gives one value of each contender. The interval is the expanded percentile bootstrap of 95 %.
 *
 * @typedef {{ median: number, low: number, high: number }} Estimate
 */

const RESAMPLES = 10_000;
/** A shift costs the square of its pairs, so it has fewer. */
const SHIFT_RESAMPLES = 2000;

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
  return values.length === 0 ? null : medianOf(Float64Array.from(values));
}

/**
 * Returns the median without sorting all values: only until the one in the middle is in its place (Hoare's FIND).
 * @param {Float64Array} values at least one; their order changes
 */
function medianOf(values) {
  const middle = values.length >> 1;
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const pivot = Number(values[middle]);
    let [at, other] = [low, high];
    while (at <= other) {
      while (Number(values[at]) < pivot) at += 1;
      while (Number(values[other]) > pivot) other -= 1;
      if (at > other) break;
      const value = Number(values[at]);
      values[at] = Number(values[other]);
      values[other] = value;
      at += 1;
      other -= 1;
    }
    if (other < middle) low = at;
    if (at > middle) high = other;
  }
  const upper = Number(values[middle]);
  if (values.length % 2 === 1) return upper;
  // None of those before the middle is greater; they have no order.
  let lower = Number(values[0]);
  for (let at = 1; at < middle; at += 1) lower = Math.max(lower, Number(values[at]));
  return (lower + upper) / 2;
}

/**
 * Returns the median of the rounds with its interval.
 * @param {readonly number[]} values
 * @param {Random} random
 * @returns {Estimate | null} null without values
 */
export function estimate(values, random) {
  return bootstrap(values, medianOf, RESAMPLES, random);
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

/** @param {Float64Array} values at least one */
function hodgesLehmann(values) {
  const means = new Float64Array((values.length * (values.length + 1)) / 2);
  let count = 0;
  for (let one = 0; one < values.length; one += 1) {
    for (let other = one; other < values.length; other += 1) means[count++] = (Number(values[one]) + Number(values[other])) / 2;
  }
  return medianOf(means);
}

/**
 * @param {readonly number[]} values
 * @param {(values: Float64Array) => number} statistic of at least one value, whose order it may change
 * @param {number} resamples
 * @param {Random} random
 * @returns {Estimate | null}
 */
function bootstrap(values, statistic, resamples, random) {
  if (values.length === 0) return null;
  const middle = statistic(Float64Array.from(values));
  const draw = new Float64Array(values.length);
  const found = new Float64Array(resamples);
  for (let resample = 0; resample < resamples; resample += 1) {
    for (let at = 0; at < draw.length; at += 1) draw[at] = Number(values[random.below(values.length)]);
    found[resample] = statistic(draw);
  }
  found.sort();
  const at = (/** @type {number} */ share) => Number(found[Math.round((resamples - 1) * share)]);
  const out = leftOut(values.length) / 2;
  return { median: middle, low: at(out), high: at(1 - out) };
}

/**
 * Returns the share of resamples to leave out for an interval of 95 %. Of few values, resamples vary less than the values that they stand
 * for, and percentiles of theirs make an interval that is too narrow; Student's distribution makes up for both (Hesterberg, What
 * Teachers Should Know About the Bootstrap, 2015, section 4.1.2: expanded percentiles).
 * @param {number} count
 */
export function leftOut(count) {
  const freedom = Math.max(1, count - 1);
  return 2 * normal(student(freedom) * Math.sqrt((freedom + 1) / freedom));
}

/** The value that Student's distribution exceeds in 2.5 % (Abramowitz and Stegun, 26.7.5). @param {number} freedom */
function student(freedom) {
  const z = 1.959964;
  const terms = [z, (z ** 3 + z) / 4, (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96, (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384];
  return terms.reduce((sum, term, power) => sum + term / freedom ** power, 0);
}

/** The share of the normal distribution beyond `z` (Abramowitz and Stegun, 26.2.17). @param {number} z at least 0 */
function normal(z) {
  const t = 1 / (1 + 0.2316419 * z);
  const polynomial = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * polynomial;
}
