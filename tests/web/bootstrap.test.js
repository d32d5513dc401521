import assert from "node:assert/strict";
import { test } from "node:test";
import { Random, estimate, median, shift } from "../../web/measure/bootstrap.js";

/** The middle of sorted values. @param {readonly number[]} values */
function bySorting(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (Number(sorted[(sorted.length - 1) >> 1]) + Number(sorted[sorted.length >> 1])) / 2;
}

/** Values of different kinds: with and without ties, in and out of order, close and far apart. @param {number} count @param {Random} random */
function kinds(count, random) {
  const all = (/** @type {(at: number) => number} */ value) => Array.from({ length: count }, (_, at) => value(at));
  return [
    all(() => random.next() - 0.5),
    all(() => random.below(3) - 1),
    all(() => 7.25),
    all((at) => at),
    all((at) => -at),
    all((at) => (at % 7 === 0 ? 1e99 : 1) * random.next()),
    all((at) => 10 ** (random.next() * 600 - 300) * (at % 2 === 0 ? 1 : -1)),
  ];
}

test("a median is that of sorted values to the last bit", () => {
  const random = new Random(5);
  for (let count = 1; count < 70; count += 1) {
    for (const values of kinds(count, random)) assert.equal(median(values), bySorting(values), String(values));
  }
});

test("a shift is the median of the means of all pairs to the last bit", () => {
  const random = new Random(5);
  for (const count of [1, 2, 3, 4, 5, 8, 13, 30]) {
    for (const values of kinds(count, random)) {
      const means = values.flatMap((one, at) => values.slice(at).map((other) => (one + other) / 2));
      const zeros = values.map(() => 0);
      assert.equal(shift(values, zeros, new Random(1))?.median, bySorting(means), String(values));
    }
  }
});

test("resamples are not sorted, which took seconds", (context) => {
  const { sort } = Array.prototype;
  let sorts = 0;
  Array.prototype.sort = function (/** @type {any} */ compare) {
    sorts += 1;
    return sort.call(this, compare);
  };
  context.after(() => (Array.prototype.sort = sort));
  const typed = context.mock.method(Object.getPrototypeOf(Float64Array.prototype), "sort");
  const random = new Random(5);
  const values = () => Array.from({ length: 30 }, () => random.next());
  estimate(values(), random);
  shift(values(), values(), random);
  // Only the figures of the resamples are sorted, once for each interval.
  assert.deepEqual([sorts, typed.mock.callCount()], [0, 2]);
});

test("the same seed gives the same interval, and leaves the values as they are", () => {
  const values = Object.freeze([3, 1, 2, 5, 4, 9]);
  assert.deepEqual(estimate(values, new Random(1)), estimate(values, new Random(1)));
});
