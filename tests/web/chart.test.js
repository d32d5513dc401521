/** The pure parts of the chart: values over time, what a screen can show of them, the view and the scales. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fillBelow } from "../../web/chart/area.js";
import { meanDirectionOf, meanOf } from "../../web/chart/mean.js";
import { columns, commonHoles, outline } from "../../web/chart/outline.js";
import { formatLevel, formatValue, niceMs, niceRange, partOf, roundedTo, timeStep } from "../../web/chart/scale.js";
import { LATE_MAX, Series } from "../../web/chart/series.js";
import { View } from "../../web/chart/view.js";

/**
 * Random numbers that are the same each time (mulberry32).
 * @param {number} seed
 */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @typedef {{ time: number, value: number }} Point */

/**
 * Adds random points to a series and to a plain list: late ones, equal times, missing values and pauses.
 * @param {Series} series
 * @param {number} count
 * @param {() => number} next
 * @returns {Point[]} all of them, in order
 */
function fill(series, count, next) {
  /** @type {Point[]} */
  const all = [];
  let time = 1000;
  for (let n = 0; n < count; n += 1) {
    const dice = next();
    if (dice < 0.005) time += 60_000 * next();
    else if (dice > 0.3) time += 20 * next();
    const point = { time: dice > 0.98 ? time - 100 * next() : time, value: next() < 0.03 ? NaN : 100 * (next() - 0.5) };
    series.add(point.time, point.value);
    let at = all.length;
    while (at > 0 && Number(all[at - 1]?.time) > point.time) at -= 1;
    all.splice(at, 0, point);
  }
  return all;
}

/**
 * @param {readonly Point[]} points
 * @param {number} from
 * @param {number} to
 */
function naive(points, from, to) {
  const values = points.filter(({ time }) => time >= from && time < to).map(({ value }) => value);
  const known = values.filter((value) => !Number.isNaN(value));
  return { count: values.length, low: Math.min(...known), high: Math.max(...known) };
}

test("a series has the values that it kept, in order, at any capacity", () => {
  for (const [capacity, count] of /** @type {const} */ ([[16, 10], [16, 500], [256, 256], [2048, 5000], [8192, 5000]])) {
    const series = new Series(capacity);
    const all = fill(series, count, random(capacity + count));
    assert.equal(series.end, count);
    const kept = all.slice(-series.length);
    assert.deepEqual(
      Array.from({ length: series.length }, (_, index) => {
        const at = series.first + index;
        return { time: series.time(at), value: series.value(at) };
      }),
      kept,
      `${count} in ${capacity}`,
    );
    assert.ok(series.length <= capacity && (count < capacity || series.length > capacity - 200), String(series.length));
  }
});

test("each column has what a naive search finds, at each zoom, before and after old values went", () => {
  for (const [capacity, count] of /** @type {const} */ ([[16, 300], [1024, 900], [1024, 6000], [4096, 9000]])) {
    const next = random(count);
    const series = new Series(capacity);
    const all = fill(series, count, next).slice(-series.length);
    const [first, last] = [Number(all[0]?.time), Number(all.at(-1)?.time)];
    for (let round = 0; round < 40; round += 1) {
      const span = (last - first) * 4 ** -Math.floor(8 * next());
      const start = first - span * 0.3 + next() * (last - first);
      const step = span / 60;
      const found = columns(series, start, step, 60);
      for (let column = 0; column < 60; column += 1) {
        const expected = naive(all, start + column * step, start + (column + 1) * step);
        const count = Number(found.indexes[column + 1]) - Number(found.indexes[column]);
        assert.deepEqual({ count, low: found.lows[column], high: found.highs[column] }, expected, `column ${column} from ${start}, each ${step}`);
      }
    }
  }
});

test("an outline goes through the extremes, and holes are where nothing came", () => {
  const next = random(7);
  const series = new Series(8192);
  const all = fill(series, 8000, next);
  const known = all.filter(({ value }) => !Number.isNaN(value));
  for (let round = 0; round < 40; round += 1) {
    const from = 1000 + next() * 100_000;
    const to = from + 10 ** (1 + 5 * next());
    const step = (to - from) / 200;
    const { stretches, holes, low, high } = outline(series, from, to, { step, holeMs: 1000 });
    const start = Math.floor(from / step) * step;
    const expected = naive(all, start, start + Math.max(1, Math.ceil((to - start) / step)) * step);
    assert.deepEqual({ low, high }, { low: expected.low, high: expected.high });
    const times = stretches.flatMap((points) => points.filter((_, index) => index % 2 === 0));
    assert.deepEqual(times, [...times].sort((a, b) => a - b));
    assert.ok(times.length <= 4 * 202, `${times.length} points`);
    for (const points of stretches) {
      for (let at = 2; at < points.length; at += 2) assert.ok(Number(points[at]) - Number(points[at - 2]) <= 1000);
    }
    for (const [begin, end] of holes) {
      const inside = known.filter(({ time }) => time > begin + step && time < end - step && time >= from && time <= to);
      assert.deepEqual(inside, [], `from ${begin} to ${end}, in ${from} to ${to}`);
    }
    // Each long silence in view is one of the holes.
    known.forEach(({ time }, index) => {
      const before = known[index - 1]?.time ?? Infinity;
      if (time - before > 1000 && before > from && time < to) assert.ok(holes.some(([begin, end]) => begin <= before + step && end >= time - step), `${before} to ${time}`);
    });
  }
});

test("an interruption that was told is a hole, however short", () => {
  const series = new Series();
  for (const time of [10, 20]) series.add(time, 1);
  series.interrupt(21);
  series.interrupt(22);
  assert.equal(series.length, 3, "one interruption, told twice");
  const options = { step: 0.1, holeMs: Infinity };
  assert.deepEqual(outline(series, 0, 30, options).holes, [[-Infinity, 10], [20, Infinity]]);
  series.add(25, 2);
  assert.deepEqual(outline(series, 0, 30, options), { stretches: [[10, 1, 20, 1], [25, 2]], holes: [[-Infinity, 10], [20, 25]], low: 1, high: 2 });
});

test("a hole is where every line has one", () => {
  assert.deepEqual(commonHoles([]), [[-Infinity, Infinity]]);
  assert.deepEqual(commonHoles([[[1, 5], [7, 9]], [[4, 8]]]), [[4, 5], [7, 8]]);
  assert.deepEqual(commonHoles([[[1, 5]], []]), []);
});

test("a clock that goes far back begins a series anew", () => {
  const series = new Series();
  for (let n = 0; n <= LATE_MAX + 1; n += 1) series.add(10_000 + n, n);
  series.add(5, 1);
  assert.deepEqual([series.length, series.time(series.first)], [1, 5]);
});

test("a view follows until it is moved, and again at the end", () => {
  const extent = { oldest: 0, now: 100_000 };
  const view = new View(10_000);
  assert.deepEqual(view.at(100_000), { from: 90_000, to: 100_000 });
  view.zoom(0.5, 1, extent);
  assert.ok(view.follows && !view.isFirst);
  assert.deepEqual(view.at(200_000), { from: 195_000, to: 200_000 });
  view.pan(-50_000, extent);
  assert.deepEqual(view.at(200_000), { from: 45_000, to: 50_000 });
  view.zoom(2, 0.5, extent);
  assert.deepEqual(view.at(200_000), { from: 42_500, to: 52_500 });
  view.pan(-1e9, extent);
  assert.deepEqual(view.at(200_000), { from: 0, to: 10_000 });
  view.zoom(1e9, 0, extent);
  assert.deepEqual([view.span, view.follows], [105_000, true]);
  view.reset();
  view.reveal(50_000, extent);
  assert.deepEqual(view.at(200_000), { from: 49_000, to: 59_000 });
  view.pan(1e9, extent);
  assert.ok(view.isFirst);
});

test("scales are round, and stay while they fit", () => {
  assert.deepEqual(niceRange(-0.3, 1.2, null), { low: -0.5, high: 1.5, ticks: [-0.5, 0, 0.5, 1, 1.5] });
  assert.deepEqual(niceRange(1012, 1014, null), { low: 1012, high: 1014, ticks: [1012, 1013, 1014] });
  const scale = niceRange(0, 10, null);
  assert.equal(niceRange(3, 8, scale), scale);
  assert.notEqual(niceRange(4, 5, scale), scale);
  for (const value of [0, 5, -1e-9, 1e12]) {
    const { low, high } = niceRange(value, value, null);
    assert.ok(low < value && value < high && Number.isFinite(high), `${value}: ${low} to ${high}`);
  }
  assert.deepEqual([timeStep(120_000, 8), timeStep(1000, 5), timeStep(86_400_000, 12)], [15_000, 200, 7_200_000]);
  assert.deepEqual([0.1 + 0.2, 1013.25, 12_400_000, 2.5e-7, -3, 0].map(formatValue), ["0.3", "1,013.25", "12.4M", "2.5e-7", "-3", "0"]);
  assert.deepEqual([0.25, 5000, -300_000, 1_500_000, 2.5e10, 1e21, 1e-5].map(formatLevel), ["0.25", "5,000", "-300k", "1.5M", "25G", "1e+21", "0.00001"]);
});

test("the greatest numbers have a scale, a place and a mean, which are numbers, too", () => {
  const most = Number.MAX_VALUE;
  assert.deepEqual(niceRange(-1e308, 1e308, null), { low: -1e308, high: 1e308, ticks: [-1e308, 0, 1e308] });
  for (const [low, high] of /** @type {const} */ ([[-1e308, 1e308], [0, most], [-most, most], [most, most], [-most, 3]])) {
    const range = niceRange(low, high, niceRange(-most, most, null));
    assert.ok([range.low, range.high, ...range.ticks].every(Number.isFinite) && range.low < range.high, JSON.stringify(range));
    assert.ok(0 <= partOf(low, range) && partOf(low, range) <= partOf(high, range) && partOf(high, range) <= 1, JSON.stringify(range));
    assert.deepEqual([low, high].map((value) => Number.isFinite(roundedTo(value, 4))), [true, true]);
    assert.doesNotMatch(formatValue(low) + formatLevel(high), /Infinity|NaN/);
  }
  assert.equal(partOf(0, { low: -most, high: most }), 0.5);
  const mean = (/** @type {number[]} */ ...values) => {
    const series = new Series();
    values.forEach((value, time) => series.add(time, value));
    return meanOf(series, series.first, series.end).mean;
  };
  assert.deepEqual([mean(1e308, 1e308), mean(most, most, most), mean(most, -most), mean(-1e308, NaN, -1e308, 1e308, -1e308)], [1e308, most, 0, -5e307]);
});

test("a scale ends at a round number that is greater", () => {
  for (let ms = 0.013; ms < 1e5; ms *= 1.0037) {
    const top = niceMs(ms);
    assert.ok(top > ms && top <= 2.6 * ms && /^[125](e|$)/.test(top.toExponential().replace(/\.0*/, "")), `${ms}: ${top}`);
  }
  assert.equal(niceMs(999.6748046875), 2000);
});

test("what was out of view and is back at once is drawn", async () => {
  /** @type {((entries: { isIntersecting: boolean }[]) => void)[]} */ const watching = [];
  /** @type {(() => void)[]} */ const frames = [];
  class Observer {
    /** @param {(entries: any[]) => void} take */
    constructor(take) {
      this.take = take;
    }
    observe() {
      watching.push(this.take);
    }
  }
  class Quiet {
    observe() {}
  }
  const canvas = /** @type {any} */ ({ clientWidth: 100, clientHeight: 50, getContext: () => ({ setTransform() {}, clearRect() {} }) });
  const globals = { addEventListener() {}, matchMedia: () => ({ addEventListener() {} }), ResizeObserver: Quiet, IntersectionObserver: Observer, requestAnimationFrame: (/** @type {() => void} */ frame) => frames.push(frame) };
  Object.assign(globalThis, globals);
  const { fitted } = await import("../../web/chart/canvas.js");
  let drawn = 0;
  const ask = fitted(canvas, () => (drawn += 1));
  const paint = () => frames.splice(0).forEach((frame) => frame());
  const [seen] = watching;
  seen?.([{ isIntersecting: true }]);
  paint();
  assert.equal(drawn, 1);
  seen?.([{ isIntersecting: false }]);
  ask();
  paint();
  assert.equal(drawn, 1);
  seen?.([{ isIntersecting: false }, { isIntersecting: true }]);
  paint();
  assert.equal(drawn, 2);
});

test("the mean of directions is where they point together", () => {
  /** @param {number[]} values */
  const means = (...values) => {
    const series = new Series();
    values.forEach((value, time) => series.add(time, value));
    return [meanDirectionOf, meanOf].map((mean) => {
      const { mean: found, count } = mean(series, series.first, series.end);
      return [Math.round(found * 1e9) / 1e9, count];
    });
  };
  assert.deepEqual(means(350, 20), [[5, 2], [185, 2]]);
  assert.deepEqual(means(0, NaN, 90, 90, 0), [[45, 4], [45, 4]]);
  assert.deepEqual(means(0, 90, 180, 270)[0], [NaN, 4]);
  assert.deepEqual(means(181, 359, 270), [[270, 3], [270, 3]]);
});

test("the area below a line follows it, however close its points are", () => {
  for (const perPixel of [0.3, 1, 1.1, 3]) {
    const points = Array.from({ length: 400 }, (_, index) => [index / perPixel, index % 40]).flat();
    /** @type {[number, number][]} */
    const path = [];
    const context = /** @type {CanvasRenderingContext2D} */ (/** @type {unknown} */ ({
      beginPath() {},
      moveTo: (/** @type {number} */ x, /** @type {number} */ y) => path.push([x, y]),
      lineTo: (/** @type {number} */ x, /** @type {number} */ y) => path.push([x, y]),
      closePath() {},
      fill() {},
    }));
    fillBelow(context, points, (time) => time, (value) => 100 - value, 100);
    const width = Number(points.at(-2));
    assert.deepEqual([path[0], path.at(-1)], [[0, 100], [width, 100]], `${perPixel}`);
    const steps = path.slice(1).map(([x], index) => x - Number(path[index]?.[0]));
    assert.ok(Math.max(...steps) <= Math.max(1, 1 / perPixel) + 1, `${perPixel}: ${Math.max(...steps)}`);
  }
});
