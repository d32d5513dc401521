import assert from "node:assert/strict";
import { test } from "node:test";
import { driftPerMinute, estimate, narrowed, probeBlock } from "../../web/measure/clock.js";
import { Statistics } from "../../web/measure/statistics.js";
import { Figures } from "../../web/transports/figures.js";
import { world } from "./fakes.js";

test("the probe with the shortest round trip gives offset and bound", () => {
  const probes = [
    { sent: 100, server: 5300, received: 400 },
    { sent: 500, server: 5504, received: 508 },
    { sent: 600, server: 5690, received: 700 },
  ];
  assert.deepEqual(estimate(probes), { offset: 5000, bound: 4, at: 504 });
});

test("the true offset is within the bound however lopsided the way is", () => {
  for (let share = 0; share <= 1; share += 0.1) {
    const found = estimate([{ sent: 0, server: 1234 + 10 * share, received: 10 }]);
    assert.ok(found && Math.abs(found.offset - 1234) <= found.bound + 1e-9);
  }
});

test("no probe, or one that ends before it began, gives no estimate", () => {
  assert.equal(estimate([]), null);
  assert.equal(estimate([{ sent: 10, server: 0, received: 9 }]), null);
});

test("drift is the change of offset in a minute", () => {
  const first = { offset: 10, bound: 1, at: 0 };
  assert.equal(driftPerMinute(first, { offset: 11, bound: 1, at: 120_000 }), 0.5);
});

test("a block asks 32 times, and one failure voids it", async () => {
  const answers = () => Array.from({ length: 32 }, () => ({ body: { time: 6000 } }));
  const good = world(answers());
  const options = (/** @type {ReturnType<typeof world>} */ { environment, controller }) => ({ environment, signal: controller.signal });
  assert.deepEqual(await probeBlock("/clock", options(good)), { offset: 5000, bound: 0, at: 1000 });
  assert.equal(good.requested.length, 32);
  const bad = world([...answers().slice(1), new TypeError("network")]);
  assert.equal(await probeBlock("/clock", options(bad)), null);
});

test("mean and deviation are those of the sample", () => {
  const statistics = new Statistics();
  for (const value of [2, 4, 4, 4, 5, 5, 7, 9]) statistics.add(value);
  assert.equal(statistics.mean, 5);
  assert.ok(Math.abs(statistics.deviation - Math.sqrt(32 / 7)) < 1e-12);
  assert.deepEqual([statistics.count, statistics.min, statistics.max], [8, 2, 9]);
});

test("a large offset does not cost precision", () => {
  const statistics = new Statistics();
  for (const value of [1, 2, 3]) statistics.add(1e9 + value);
  assert.equal(statistics.deviation, 1);
});

test("one value has no deviation", () => {
  const statistics = new Statistics();
  statistics.add(3);
  assert.equal(statistics.deviation, 0);
});

test("latency is corrected by the offset: t4 - (t0 - offset)", () => {
  const figures = new Figures({ bytesTold: true });
  figures.message(5_100, 140, 0, 5_000);
  assert.equal(figures.snapshot().latency?.mean, 40);
});

test("latencies wait for the clock", () => {
  const figures = new Figures({ bytesTold: true });
  figures.message(5_100, 140, 0, null);
  assert.equal(figures.snapshot().latency, null);
  figures.clockKnown(5_000);
  assert.equal(figures.snapshot().latency?.mean, 40);
});

test("what happened before the connection stood is counted, but not as latency", () => {
  const figures = new Figures({ bytesTold: true });
  figures.message(5_100, 900, 800, 5_000);
  const { messages, caughtUp, latency } = figures.snapshot();
  assert.deepEqual([messages, caughtUp, latency], [1, 1, null]);
});

test("gaps add up, and an unknown size stays unknown", () => {
  const figures = new Figures({ bytesTold: false });
  figures.gap({ reason: "retention", after: "a-1", missed: 12, resume: "a-13" });
  figures.gap({ reason: "epoch", after: "a-13", missed: null, resume: "b-0" });
  const { gaps, missed, missedUnknown, unannounced, bytes } = figures.snapshot();
  assert.deepEqual([gaps, missed, missedUnknown, unannounced, bytes], [2, 12, true, 0, null]);
});

test("an event that cannot have arrived before it was sent narrows the clock, or contradicts it", () => {
  // All requests are delayed by 60 ms on their way back, and no event is: the clock seems 30 ms early.
  const found = narrowed({ offset: -30, bound: 30.5, at: 0 }, 0.5);
  assert.deepEqual([found?.offset, found?.bound], [0, 0.5]);
  // An event that takes half a round trip says nothing more.
  assert.deepEqual(narrowed({ offset: 5, bound: 20, at: 0 }, 15), { offset: 5, bound: 20, at: 0 });
  // Clocks are coarse, and then the event is right.
  assert.deepEqual(narrowed({ offset: 5, bound: 1, at: 0 }, -7), { offset: 7, bound: 0, at: 0 });
  // By more than that, one of the clocks was set.
  assert.equal(narrowed({ offset: 5, bound: 1, at: 0 }, -9), null);
});
