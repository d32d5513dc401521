/**
 * Values over time, in memory of a fixed size, with the extent of any stretch of them in logarithmic time.
 *
 * Beside the values stands a tree: a block of each level has the least and the greatest value of 16 blocks of the level
 * below. A block is computed once, when its last value comes, so that adding costs the same however many values there
 * are. The oldest values make room for new ones.
 *
 * Values have absolute indexes, which stay the same when older values go: `first` up to, but without, `end`.
 */

const FAN = 16;
const CAPACITY_FIRST = 1024;
/** Holds 20 minutes at 100 values a second, in 2.3 MB. A power of two. */
export const CAPACITY_MAX = 2 ** 17;
/** A clock that goes back over more values than these begins the series anew. */
export const LATE_MAX = 1000;

/** @typedef {{ lows: Float64Array, highs: Float64Array }} Level */

export class Series {
  #capacityMax;
  #capacity;
  #times;
  #values;
  /** @type {Level[]} the lowest first */
  #levels;
  #first = 0;
  #end = 0;

  /** @param {number} [capacityMax] a power of two, at least 16 */
  constructor(capacityMax = CAPACITY_MAX) {
    this.#capacityMax = capacityMax;
    this.#capacity = Math.min(CAPACITY_FIRST, capacityMax);
    this.#times = new Float64Array(this.#capacity);
    this.#values = new Float64Array(this.#capacity);
    this.#levels = levelsOf(this.#capacity);
  }

  /** The index of the oldest value. */
  get first() {
    return this.#first;
  }

  /** The index after the newest value. */
  get end() {
    return this.#end;
  }

  get length() {
    return this.#end - this.#first;
  }

  /**
   * Adds a value at its place in time. NaN says that there is no value, and interrupts the line.
   * @param {number} time
   * @param {number} value
   */
  add(time, value) {
    const late = this.#end - this.indexAfter(time);
    if (late === 0) return this.#append(time, value);
    if (late > LATE_MAX) {
      this.#first = this.#end = 0;
      return this.#append(time, value);
    }
    const later = Array.from({ length: late }, (_, index) => {
      const at = this.#end - late + index;
      return { time: this.time(at), value: this.value(at) };
    });
    this.#end -= late;
    this.#append(time, value);
    for (const each of later) this.#append(each.time, each.value);
  }

  /**
   * Says that what follows does not continue what came before.
   * @param {number} time
   */
  interrupt(time) {
    if (this.length > 0 && !Number.isNaN(this.value(this.#end - 1))) this.add(time, NaN);
  }

  /** @param {number} index */
  time(index) {
    return Number(this.#times[index % this.#capacity]);
  }

  /** @param {number} index */
  value(index) {
    return Number(this.#values[index % this.#capacity]);
  }

  /**
   * Returns the index of the first value at this time or later, from `from` on.
   * @param {number} time
   * @param {number} [from]
   */
  indexAt(time, from = this.#first) {
    return this.#search(from, (at) => at >= time);
  }

  /**
   * Returns the index of the first value after this time.
   * @param {number} time
   */
  indexAfter(time) {
    const end = this.#end;
    if (this.length === 0 || this.time(end - 1) <= time) return end;
    return this.#search(this.#first, (at) => at > time);
  }

  /**
   * Returns the least and the greatest value between two indexes. If there is none, `low` is above `high`.
   * @param {number} from
   * @param {number} to is not included
   */
  extent(from, to) {
    let low = Infinity;
    let high = -Infinity;
    let at = from;
    while (at < to) {
      let size = 1;
      /** @type {Level} */
      let blocks = { lows: this.#values, highs: this.#values };
      for (const level of this.#levels) {
        const next = size * FAN;
        if (at % next !== 0 || at + next > to) break;
        size = next;
        blocks = level;
      }
      const slot = (at / size) % blocks.lows.length;
      // Comparisons with NaN are false, so a missing value counts for nothing.
      if (Number(blocks.lows[slot]) < low) low = Number(blocks.lows[slot]);
      if (Number(blocks.highs[slot]) > high) high = Number(blocks.highs[slot]);
      at += size;
    }
    return { low, high };
  }

  /**
   * Returns the first index whose time fulfils a condition that all later times fulfil, too. Steps that double find it
   * quickly if it is near `from`.
   * @param {number} from
   * @param {(time: number) => boolean} fulfils
   */
  #search(from, fulfils) {
    let low = from;
    let step = 1;
    while (low + step < this.#end && !fulfils(this.time(low + step - 1))) {
      low += step;
      step *= 2;
    }
    let high = Math.min(low + step, this.#end);
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (fulfils(this.time(middle))) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * @param {number} time
   * @param {number} value
   */
  #append(time, value) {
    if (this.length === this.#capacity) {
      if (this.#capacity < this.#capacityMax) this.#grow();
      else this.#first += 1;
    }
    const slot = this.#end % this.#capacity;
    this.#times[slot] = time;
    this.#values[slot] = Number.isFinite(value) ? value : NaN;
    this.#end += 1;
    /** @type {Level} */
    let below = { lows: this.#values, highs: this.#values };
    let size = FAN;
    for (const level of this.#levels) {
      if (this.#end % size !== 0) return;
      summarize(level, this.#end / size - 1, below);
      below = level;
      size *= FAN;
    }
  }

  /** Doubles the capacity; as nothing has gone yet, the indexes stay. */
  #grow() {
    const [times, values, end] = [this.#times, this.#values, this.#end];
    this.#capacity *= 2;
    this.#times = new Float64Array(this.#capacity);
    this.#values = new Float64Array(this.#capacity);
    this.#levels = levelsOf(this.#capacity);
    this.#end = 0;
    for (let index = 0; index < end; index += 1) this.#append(Number(times[index]), Number(values[index]));
  }
}

/**
 * @param {number} capacity
 * @returns {Level[]}
 */
function levelsOf(capacity) {
  const levels = [];
  for (let blocks = capacity / FAN; blocks >= 1; blocks /= FAN) {
    levels.push({ lows: new Float64Array(Math.floor(blocks)), highs: new Float64Array(Math.floor(blocks)) });
  }
  return levels;
}

/**
 * Computes a block from those below it.
 * @param {Level} level
 * @param {number} block
 * @param {Level} below
 */
function summarize(level, block, { lows, highs }) {
  let low = Infinity;
  let high = -Infinity;
  const begin = (block * FAN) % lows.length;
  for (let slot = begin; slot < begin + FAN; slot += 1) {
    if (Number(lows[slot]) < low) low = Number(lows[slot]);
    if (Number(highs[slot]) > high) high = Number(highs[slot]);
  }
  const slot = block % level.lows.length;
  level.lows[slot] = low;
  level.highs[slot] = high;
}
