/** Running statistics of a sample: mean and standard deviation without storing the values (Welford). */
export class Statistics {
  count = 0;
  mean = 0;
  min = Infinity;
  max = -Infinity;
  #squares = 0;

  /** @param {number} value */
  add(value) {
    this.count += 1;
    const before = value - this.mean;
    this.mean += before / this.count;
    this.#squares += before * (value - this.mean);
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
  }

  /** Standard deviation of the sample (n - 1); 0 below two values. */
  get deviation() {
    return this.count < 2 ? 0 : Math.sqrt(this.#squares / (this.count - 1));
  }
}
