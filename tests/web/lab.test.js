import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";
import { Random, estimate, isDistinguishable, leftOut, median, shift } from "../../web/measure/bootstrap.js";
import { browser } from "../../web/transport/environment.js";
import { browserName } from "../../web/page/lab/environment.js";
import { scaleOf } from "../../web/page/lab/answer.js";
import { Disturbance } from "../../web/page/lab/disturbance.js";
import { areEnough, delayOf, delayed, examine, judgePair, stream } from "../../web/page/lab/doctor.js";
import { ofSilence, quietOf, silence } from "../../web/page/lab/quiet.js";
import { Way, begin } from "../../web/page/lab/way.js";
import { conclusion } from "../../web/page/lab/findings.js";
import { adviceOf } from "../../web/page/lab/advice.js";
import { slowOverHttp, tooSoon } from "../../web/page/lab/bias.js";
import { echoCells, echoedBytes } from "../../web/page/lab/echoes.js";
import { leastOf, sampleOf, seriesOfRounds } from "../../web/page/lab/latency.js";
import { Maker } from "../../web/page/lab/making.js";
import { doubtOf, judge, reportOf } from "../../web/page/lab/report.js";
import { failed, interleaved } from "../../web/page/lab/rounds.js";
import { stopped } from "../../web/page/lab/stopped.js";
import { FakeSocket } from "./fakes.js";

test("the median is the middle, or between the two in the middle", () => {
  assert.deepEqual([median([]), median([3]), median([3, 1, 2]), median([4, 1, 2, 3])], [null, 3, 2, 2.5]);
});

test("an interval of few values leaves out less of its resamples, as that of the command line", () => {
  // Student's distribution with 9 degrees of freedom: 2.262, times the root of 10/9, is exceeded by 1.71 % of the normal one on both sides.
  assert.ok(Math.abs(leftOut(10) - 0.0171) < 1e-4, String(leftOut(10)));
  assert.ok(leftOut(2) < 1e-6 && Math.abs(leftOut(1000) - 0.05) < 1e-3);
});

test("equal values leave no doubt, and none give no estimate", () => {
  assert.deepEqual(estimate([1.5, 1.5, 1.5], new Random(1)), { median: 1.5, low: 1.5, high: 1.5 });
  assert.equal(estimate([], new Random(1)), null);
  assert.equal(shift([], [], new Random(1)), null);
});

/** Nearly normal: the sum of twelve uniform numbers. @param {Random} random */
const normal = (random) => Array.from({ length: 12 }, () => random.next()).reduce((sum, value) => sum + value, -6);

test("the interval of a median holds it nineteen times in twenty", () => {
  const random = new Random(7);
  let held = 0;
  for (let run = 0; run < 100; run += 1) {
    const found = estimate(Array.from({ length: 10 }, () => random.next()), new Random(1));
    held += Number(found !== null && found.low <= 0.5 && found.high >= 0.5);
  }
  assert.ok(held >= 92, `${held} of 100`);
});

test("equal contenders seldom differ, and a known difference of 1 ms is found", () => {
  const random = new Random(11);
  let apart = 0;
  for (let run = 0; run < 60; run += 1) {
    const [of, to] = [0, 1].map(() => Array.from({ length: 10 }, () => normal(random)));
    const found = shift(of ?? [], to ?? [], new Random(1));
    apart += Number(found !== null && isDistinguishable(found));
  }
  assert.ok(apart <= 6, `${apart} of 60`);
  const to = Array.from({ length: 10 }, () => 40 + 0.3 * normal(random));
  const found = shift(to.map((ms) => ms + 1 + 0.3 * normal(random)), to, random);
  assert.ok(found && found.low > 0 && found.low <= 1 && found.high >= 1, JSON.stringify(found));
});

test("the same seed gives the same order, and a shuffle reaches every order", () => {
  assert.deepEqual(new Random(5).shuffled([1, 2, 3, 4]), new Random(5).shuffled([1, 2, 3, 4]));
  const random = new Random(1);
  const orders = new Set(Array.from({ length: 100 }, () => random.shuffled([1, 2, 3]).join("")));
  assert.equal(orders.size, 6);
});

/** @type {import("../../web/page/lab/rounds.js").Quantity} */
const TIME = { quantity: "time", unit: "ms" };

/**
 * @param {string} contender
 * @param {() => Promise<number>} value
 * @returns {import("../../web/page/lab/rounds.js").Cell}
 */
const cell = (contender, value) => ({
  case: "1 call",
  x: 1,
  contender,
  measure: async () => ({ figures: [{ ...TIME, value: await value() }], expected: 1, received: 1 }),
});

test("each round has every contender once, and the first round does not count", async () => {
  let time = 0;
  const cells = [cell("a", async () => (time += 1)), cell("b", async () => Promise.reject(Object.assign(new Error("no"), { status: 503 })))];
  let steps = 0;
  const [a, b] = await interleaved(cells, { first: TIME, rounds: 3, random: new Random(1), signal: new AbortController().signal, onStep: () => (steps += 1), onFailure: async () => {} });
  assert.deepEqual([a?.rounds, a?.received, steps], [[2, 3, 4], 3, 8]);
  assert.deepEqual([b?.rounds, b?.received, b?.expected, b?.faults], [[null, null, null], 0, 3, { refused: 3 }]);
});

test("what the user stops is no fault, and what was measured stays", async () => {
  const controller = new AbortController();
  let count = 0;
  const one = cell("a", async () => {
    count += 1;
    if (count === 3) controller.abort();
    return count;
  });
  const [series] = await interleaved([one], { first: TIME, rounds: 9, random: new Random(1), signal: controller.signal, onStep: () => {}, onFailure: async () => {} });
  assert.deepEqual([series?.rounds, series?.faults], [[2], {}]);
});

test("faults are counted by kind", () => {
  const kinds = [new DOMException("late", "TimeoutError"), new SyntaxError("odd"), new TypeError("network")].map((error) => failed(error).faults);
  assert.deepEqual(kinds, [{ stalled: 1 }, { wrong: 1 }, { unreachable: 1 }]);
});

/**
 * @param {string} contender
 * @param {(number | null)[]} rounds
 * @returns {import("../../web/page/lab/report.js").Series}
 */
const series = (contender, rounds) => ({ case: "1 call", x: 1, contender, ...TIME, is_more_better: false, rounds, histogram: null, expected: rounds.length, received: rounds.filter((value) => value !== null).length, faults: {}, traffic: null });

/** @param {import("../../web/page/lab/report.js").Series[]} all */
const report = (all) => reportOf({ experiment: "calls", question: "How long?", quantity: "time", baseline: "WebSocket", method: [] }, all, /** @type {any} */ ({}), null);

test("the verdict says which is best, and what cannot be told from it", () => {
  const clear = report([series("WebSocket", [1, 1.1, 0.9, 1, 1, 1]), series("HTTP", [3, 3.1, 2.9, 3, 3, 3])]);
  assert.equal(clear.answer, "1 call: 1.00 ms over WebSocket, HTTP 2.00 ms more.");
  assert.equal(clear.comparisons[0]?.shift.median.toFixed(2), "2.00");
  assert.equal(clear.invalid, null);
  const alike = report([series("WebSocket", [1, 2, 3, 4, 5, 6]), series("HTTP", [2, 1, 4, 3, 6, 5])]);
  assert.match(alike.answer, /HTTP not distinguishable|WebSocket not distinguishable/);
});

test("with too few rounds, neither the sentence nor the row decides", () => {
  const few = report([series("WebSocket", [1, 1.1, 0.9, 1]), series("HTTP", [3, 3.1, 2.9, 3])]);
  assert.equal(few.answer, "1 call: 1.00 ms over WebSocket, HTTP 3.00 ms.");
  assert.equal(doubtOf(few.comparisons), "With 4 rounds, no difference is sure: measure at least 6.");
  assert.deepEqual(few.comparisons.map(judge), ["too few"]);
  const more = report([series("WebSocket", [1, 1.1, 0.9, 1, 1, 1]), series("HTTP", [3, 3.1, 2.9, 3, 3, 3]), series("SSE", [1.1, 0.9, 1, 1, 1, 1])]);
  assert.deepEqual(more.comparisons.map(judge), ["apart", "alike"]);
  const mixed = report([series("WebSocket", [1, 1, 1, 1, 1, 1]), series("HTTP", [3, 3, 3, 3, 3, 3]), series("SSE", [2, null, 2, 2, 2, null])]);
  assert.match(mixed.answer, /^1 call: 1.00 ms over WebSocket, HTTP 2.00 ms more, SSE 2.00 ms \(too few rounds to be sure\)\.$/);
  assert.deepEqual([doubtOf(mixed.comparisons), doubtOf([]), doubtOf([{ pairs: 1 }])], ["", "", "With 1 round, no difference is sure: measure at least 6."]);
  const ofBytes = (/** @type {number} */ high) => doubtOf([{ pairs: 4, unit: "B", shift: { median: 14, low: 14, high } }]);
  assert.deepEqual([ofBytes(14), ofBytes(15) !== ""], ["", true], "bytes that are the same in each round are sure");
  assert.notEqual(doubtOf([{ pairs: 4, unit: "B", shift: /** @type {any} */ (null) }]), "", "a report of somebody else may have anything");
});

test("a run that was stopped has figures, says so, and has no verdict", () => {
  const all = report([series("WebSocket", [1, 1.1, 0.9, 1, 1, 1]), series("HTTP", [3, 3.1, 2.9, 3, 3, 3, 3])]);
  const cut = stopped({ ...all, environment: /** @type {any} */ ({ rounds: 30 }) }, 6);
  assert.equal(cut.answer, "Stopped after 6 of 30 rounds, so there is no verdict. Medians of the time: 1 call: WebSocket 1.00 ms, HTTP 3.00 ms.");
  assert.deepEqual([cut.is_interrupted, cut.method], [true, ["It was interrupted: this is what was measured by then."]]);
});

test("an echo over a WebSocket that does not open ends with its signal", async (t) => {
  t.mock.method(globalThis, "fetch", async (/** @type {unknown} */ _url, /** @type {RequestInit} */ { body }) => new Response(body));
  const real = globalThis.WebSocket;
  t.after(() => Reflect.set(globalThis, "WebSocket", real));
  let isClosed = false;
  Reflect.set(globalThis, "WebSocket", class extends EventTarget {
    close() {
      isClosed = true;
    }
  });
  const ending = new AbortController();
  const { cells } = await echoCells(100, new Random(1), ending.signal);
  const echo = cells.find(({ contender }) => contender === "WebSocket")?.measure(ending.signal);
  ending.abort(new Error("stopped"));
  await assert.rejects(async () => await echo, /stopped/);
  assert.ok(isClosed);
});

test("a report is made without the script for it, or if that fails", async (t) => {
  /** The steps of the script: as it begins, and for each report. @type {((worker: any) => void)[]} */
  let steps = [];
  class FakeWorker {
    /** @type {((message: { data: unknown }) => void) | null} */ onmessage = null;
    /** @type {(() => void) | null} */ onerror = null;
    constructor() {
      queueMicrotask(() => steps.shift()?.(this));
    }
    postMessage() {
      queueMicrotask(() => steps.shift()?.(this));
    }
    terminate() {}
  }
  Reflect.set(globalThis, "Worker", FakeWorker);
  t.after(() => Reflect.deleteProperty(globalThis, "Worker"));
  /** @type {Parameters<Maker["make"]>} */
  const wish = [{ experiment: "calls", question: "How long?", quantity: "time", baseline: "WebSocket", method: [] }, [series("WebSocket", [1, 1, 1, 1])], /** @type {any} */ ({}), null];
  const load = (/** @type {any} */ worker) => worker.onmessage({ data: "loaded" });
  const fail = (/** @type {any} */ worker) => worker.onerror();
  for (const [what, all] of /** @type {const} */ ([["it does not load", [fail]], ["it fails", [load, fail]]])) {
    steps = [...all];
    const maker = new Maker();
    await maker.load(new AbortController().signal);
    assert.equal((await maker.make(...wish)).report.answer, "1 call: 1.00 ms over WebSocket.", what);
    assert.equal(steps.length, 0, what);
  }
  steps = [() => {}];
  const [maker, ending] = [new Maker(), new AbortController()];
  const loading = maker.load(ending.signal);
  ending.abort();
  await loading;
  assert.equal((await maker.make(...wish)).estimates.size, 1, "it is stopped before it has come");
});

test("a page that is hidden, or stands still in long tasks, measured itself", () => {
  let ms = 0;
  mock.method(performance, "now", () => ms);
  mock.timers.enable({ apis: ["setTimeout"] });
  /** @type {Set<() => void>} */ const listeners = new Set();
  const page = {
    visibilityState: "visible",
    addEventListener: (/** @type {string} */ _, /** @type {() => void} */ listener) => listeners.add(listener),
    removeEventListener: (/** @type {string} */ _, /** @type {() => void} */ listener) => listeners.delete(listener),
  };
  Object.assign(globalThis, { document: page });
  try {
    // For ten seconds, with tasks of this length one after the other.
    const watched = (/** @type {number} */ taskMs, /** @type {() => void} */ last = () => {}) => {
      const disturbance = new Disturbance();
      for (const end = ms + 10_000; ms < end; mock.timers.tick(taskMs)) ms += taskMs;
      last();
      disturbance.end();
      assert.equal(listeners.size, 0);
      return disturbance;
    };
    for (const taskMs of [1, 20, 40]) assert.equal(watched(taskMs).reason(false), null, `tasks of ${taskMs} ms`);
    for (const taskMs of [60, 300]) {
      assert.match(String(watched(taskMs).reason(false)), /^this page stood still for (9\d|100) % of the time/, `tasks of ${taskMs} ms`);
      assert.equal(watched(taskMs).reason(true), null);
    }
    // A task that is not long, wherever in the wait it begins, is none.
    for (const idleMs of [1, 5, 9, 15, 19, 30]) {
      const disturbance = new Disturbance();
      for (const end = ms + 10_000; ms < end; mock.timers.tick(44)) {
        for (let idle = 0; idle < idleMs; idle += 1) {
          ms += 1;
          mock.timers.tick(1);
        }
        ms += 44;
      }
      disturbance.end();
      assert.equal(disturbance.reason(false), null, `${idleMs} ms between tasks of 44 ms`);
    }
    // A long task just before the end counts, and a short stop is no reason.
    assert.match(String(watched(20, () => (ms += 2000)).reason(false)), /stood still for 17 %/);
    assert.equal(watched(20, () => (ms += 400)).reason(false), null);
    const hidden = watched(20, () => {
      page.visibilityState = "hidden";
      for (const listener of listeners) listener();
      page.visibilityState = "visible";
    });
    assert.match(String(hidden.reason(true)), /^the page was hidden meanwhile/);
  } finally {
    mock.timers.reset();
    mock.restoreAll();
    Reflect.deleteProperty(globalThis, "document");
  }
});

test("a report of which too little came is invalid", () => {
  assert.match(String(report([series("WebSocket", [1, null, null, 1])]).invalid), /WebSocket in case 1 call: 2 of 4 came/);
});

test("rounds are paired where both have a value", () => {
  const found = report([series("WebSocket", [1, null, 1, 1]), series("HTTP", [2, 9, 2, 2])]);
  assert.equal(found.comparisons[0]?.shift.high, 1);
});

test("latencies are those of the events that all transports have", () => {
  const arrivals = (/** @type {[string, number][]} */ ...all) => new Map(all);
  const [a, b, none] = [arrivals(["e-1", 1], ["e-2", 3], ["e-3", 50]), arrivals(["e-2", 80], ["e-3", 90]), arrivals()];
  const all = new Map([["a", a], ["b", b], ["none", none]]);
  assert.equal(sampleOf(a, all, 10).figures[0]?.value, 10 + (3 + 50) / 2);
  assert.deepEqual(sampleOf(none, all, 10).figures, []);
  assert.equal(sampleOf(none, all, 10).received, 0);
});

test("rounds become series with the offset, and the soonest event of all is known", () => {
  const round = (/** @type {number} */ ms) => new Map([["SSE", new Map([["e-1", ms]])], ["poll", new Map([["e-1", ms + 100]])]]);
  assert.equal(leastOf([round(5), round(-31)]), -31);
  assert.equal(leastOf([new Map()]), Infinity);
  const all = seriesOfRounds([round(5), round(7)], 10);
  assert.deepEqual(all.filter(({ received }) => received > 0).map(({ contender, rounds }) => [contender, rounds]), [["SSE", [15, 17]], ["poll", [115, 117]]]);
});

test("a call that takes a round trip more over HTTP is delayed by something else", () => {
  // Network emulation of 60 ms, of HTTP alone.
  assert.match(String(slowOverHttp(65, 5)), /^a call takes at least 65\.0 ms over HTTP and 5\.00 ms over a WebSocket, .* network emulation/);
  // A busy machine, a far server, and a far server with a slow browser.
  assert.deepEqual([slowOverHttp(9, 1), slowOverHttp(101, 100), slowOverHttp(190, 100), slowOverHttp(5, 65)], [null, null, null, null]);
  assert.notEqual(slowOverHttp(200, 100), null);
});

test("events that are a round trip sooner over a WebSocket than over anything else are named", () => {
  const of = (/** @type {Record<string, number>} */ all) => Object.entries(all).map(([contender, ms]) => series(contender, [ms, ms, ms]));
  assert.match(String(tooSoon(of({ WebSocket: 1, SSE: 63, NDJSON: 62, poll: 150 }), 60)), /^events come 61\.0 ms sooner over a WebSocket/);
  // One way that is as soon is enough; so is a difference below a round trip, or one of a busy machine.
  assert.equal(tooSoon(of({ WebSocket: 1, SSE: 63, "long poll": 2 }), 60), null);
  assert.equal(tooSoon(of({ WebSocket: 1, SSE: 41 }), 60), null);
  assert.equal(tooSoon(of({ WebSocket: 1, SSE: 9 }), 0), null);
  assert.equal(tooSoon([series("WebSocket", [null]), series("SSE", [1])], 0), null);
});

test("the advice is one sentence, of what can be relied on, and says when it is not sure", () => {
  const rounds = (/** @type {number} */ ms) => [ms, ms + 0.1, ms - 0.1, ms, ms, ms];
  const wind = (/** @type {number} */ count) => ({ ...report([series("WebSocket", rounds(1).slice(0, count)), series("SSE", rounds(1.5).slice(0, count)), series("long poll", rounds(40).slice(0, count)), series("poll", rounds(120).slice(0, count))]), experiment: "wind" });
  const calls = report([series("WebSocket", rounds(10)), series("HTTP", rounds(30))]);
  assert.equal(adviceOf([wind(6), calls]), "For events take WebSocket or SSE: they are there after 1.00 ms, and by a poll 119 ms later; for calls take WebSocket: 10.0 ms against 30.0 ms.");
  assert.match(adviceOf([wind(4)]), /^At first sight, and with too few rounds to be sure: for events take WebSocket or SSE: /);
  const alike = report([series("WebSocket", rounds(1)), series("HTTP", rounds(2))]);
  assert.equal(adviceOf([alike]), "For calls take what you like: 1.00 ms over WebSocket, 2.00 ms over HTTP.");
  const none = "There is no advice, since nothing that was measured can be relied on.";
  assert.equal(adviceOf([{ ...wind(6), invalid: "an event arrived before it was sent" }]), none);
  assert.match(adviceOf([{ ...wind(6), invalid: "so" }, calls]), /^For calls take WebSocket/);
  assert.deepEqual([adviceOf([]), adviceOf([{ ...calls, is_interrupted: true }])], ["", ""]);
});

test("the bytes of echoes are known before, and 10 MB are ten times the rest", () => {
  // 11 rounds over two ways in two directions, and one look at each size.
  assert.equal(echoedBytes(11, 1), 2 * (2 * 10 * 11 + 1));
  const [usual, long] = [echoedBytes(11, 1_000_000), echoedBytes(11, 10_000_000)];
  assert.ok(usual < 50e6 && long - usual === 2 * 10_000_000 * 23, `${usual} ${long}`);
});

test("a wide range is drawn in powers, and round values are marked", () => {
  const [linear, wide, wider, widest] = [scaleOf(2, 9), scaleOf(1, 100), scaleOf(0.5, 2000), scaleOf(0.01, 100_000)];
  assert.deepEqual([linear.place(0), linear.place(10), wide.place(1), Math.round(wide.place(10)), wide.place(100)], [0, 100, 0, 50, 100]);
  assert.deepEqual([linear.marks, wide.marks], [[0, 5, 10], [1, 2, 5, 10, 20, 50, 100]]);
  assert.deepEqual([wider.marks, widest.marks.length], [[1, 3, 10, 30, 100, 300, 1000], 8]);
  assert.deepEqual([linear.isLogarithmic, wide.isLogarithmic, scaleOf(Infinity, -Infinity).marks], [false, true, []]);
});

test("browsers are told by their own names", () => {
  const agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36";
  assert.deepEqual([browserName(agent), browserName(`${agent} Edg/121.0`), browserName("Firefox/130.0"), browserName("")], ["Chrome 120", "Edge 121", "Firefox 130", "a browser"]);
});

test("a server that limits waits is no cache, and what comes at once with the same answer is of one", () => {
  const limits = { waited_ms_min: 200 };
  const pair = (/** @type {[string, number]} */ ...first) => (/** @type {[string, number]} */ ...second) => {
    const [a, b] = [first, second].map(([body, ms]) => ({ body, ms, age: 0 }));
    return a && b && judgePair(a, b, limits);
  };
  assert.deepEqual([pair("a", 1002)("a", 1001), pair("a", 502)("a", 501), pair("a", 3)("a", 1001)], ["anew", "anew", "anew"]);
  assert.deepEqual([pair("a", 1002)("a", 2), pair("a", 502)("a", 2)], ["early", "early"]);
  assert.deepEqual([pair("a", 3)("a", 2), pair("a", 1002)("b", 2)], ["at once", "changed"]);
});

test("a WebSocket that was asked for nothing is quiet, or floods", async () => {
  const limits = { unasked_max: 3, held_ms_min: 500 };
  const after = async (/** @type {(socket: FakeSocket, end: AbortController) => void} */ happens) => {
    const [socket, end] = [new FakeSocket("ws://host/ws", ""), new AbortController()];
    const quiet = quietOf(/** @type {any} */ (socket), limits, end.signal);
    happens(socket, end);
    return await quiet;
  };
  const say = (/** @type {FakeSocket} */ socket, /** @type {number} */ count) => Array.from({ length: count }, () => socket.say("a"));
  assert.equal(await after((socket, end) => (say(socket, 2), end.abort())), "held");
  assert.deepEqual(await after((socket, end) => (say(socket, 3), end.abort())), { unasked: "3 messages came" });
});

test("a WebSocket that ends as soon as it is open was not cut for its silence", async () => {
  const endsAfter = async (/** @type {number} */ ms, /** @type {boolean} */ isFailed) => {
    const socket = new FakeSocket("ws://host/ws", "");
    const begun = browser.now();
    const now = mock.method(browser, "now", () => begun);
    try {
      const quiet = quietOf(/** @type {any} */ (socket), { unasked_max: 3, held_ms_min: 500 }, new AbortController().signal);
      now.mock.mockImplementation(() => begun + ms);
      if (isFailed) /** @type {any} */ (socket).onerror();
      socket.onclose?.({ code: 1006, reason: "" });
      return await quiet;
    } finally {
      now.mock.restore();
    }
  };
  assert.deepEqual([await endsAfter(3, true), await endsAfter(3, false)], [{ unasked: "what came is no WebSocket" }, "at once"]);
  assert.deepEqual([await endsAfter(60_000, true), await endsAfter(60_000, false)], [60_000, 60_000]);
});

test("heartbeats that do not come on an open stream are held back", () => {
  const way = wayOf({ heartbeat_ms_max: 20_000 }, 1000);
  assert.deepEqual([20_000, 20_001].map((ms) => ofSilence(0, ms, way)), ["held", { silentMs: 20_001 }]);
  assert.deepEqual(ofSilence(4500, 20_001, way), { silentMs: 20_001 }, "the rest of the beginning, within 500 ms and four round trips");
  assert.deepEqual(ofSilence(4501, 20_001, way), { silentMs: 20_001, heardMs: 4501 }, "it was dropped without a word");
});

test("a delay of every stream is of the way, and that of some is of a busy machine", () => {
  const of = (/** @type {[number, number][]} */ ...looks) => delayOf(looks.map(([answerMs, beginningMs]) => ({ answerMs, beginningMs })), { delayed_ms_min: 150 });
  assert.deepEqual([of([1, 209], [2, 211]), of([1, 151], [1, 900]), of([400, 209], [1, 900])], [208, 150, 208]);
  assert.deepEqual([of([1, 150], [1, 900]), of([1, 900], [1, 20]), of([600, 603], [610, 640])], [null, null, null]);
});

/** The way, by rules with other limits. @param {Partial<import("../../web/page/lab/way.js").Limits>} limits */
function wayOf(limits, roundTripMs = 0) {
  const rules = JSON.parse(readFileSync(new URL("../../web/page/lab/rules.json", import.meta.url), "utf8"));
  Object.assign(rules.limits, limits);
  return new Way(rules, { roundTripMs });
}

test("two looks are enough where each takes seconds, and else five", () => {
  const of = (/** @type {[number, number][]} */ ...looks) => areEnough(looks.map(([answerMs, beginningMs]) => ({ answerMs, beginningMs })), wayOf({}).limits);
  const times = (/** @type {number} */ count, /** @type {number} */ ms) => Array.from({ length: count }, () => /** @type {[number, number]} */ ([1, ms]));
  assert.deepEqual([of([1, 5001]), of([1, 5001], [2, 5003])], [false, true]);
  assert.deepEqual([of(...times(3, 1201)), of(...times(4, 1201)), of(...times(4, 999)), of(...times(5, 209))], [false, true, false, true]);
  assert.deepEqual([of([1, 5001], [1, 209]), of([5000, 5003], [5000, 5003])], [false, false], "the soonest counts, and a round trip is no delay");
});

test("a delay of a second or more is a fault as of what is held back, and a shorter one is a note", () => {
  const of = (/** @type {number} */ ms) => delayed(wayOf({}), "sse", ms);
  assert.deepEqual([208, 999, 1000, 5003].map((ms) => `${of(ms).state} ${of(ms).fault}`), ["note delayed", "note delayed", "fault buffered", "fault buffered"]);
  assert.match(of(5003).words, /^no whole item of a stream came within 5\.0 s, although the server sends one at once: /);
});

/** A stream of these pieces, which then does what `then` does. @param {string} type @param {readonly string[]} pieces @param {(controller: ReadableStreamDefaultController<Uint8Array>) => unknown} then */
function streamOf(type, pieces, then) {
  const left = pieces.map((piece) => new TextEncoder().encode(piece));
  const pull = (/** @type {ReadableStreamDefaultController<Uint8Array>} */ controller) => {
    const piece = left.shift();
    return piece ? controller.enqueue(piece) : /** @type {Promise<void>} */ (then(controller));
  };
  return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers: { "Content-Type": type } });
}

const [SSE, NDJSON] = ["text/event-stream", "application/x-ndjson"];

test("a stream begins with its first whole item", async (t) => {
  t.after(() => mock.restoreAll());
  const begins = async (/** @type {string} */ type, /** @type {string[]} */ ...pieces) => {
    mock.method(browser, "fetch", async () => streamOf(type, pieces, (controller) => controller.close()));
    const { reader, isHeld } = await begin(wayOf({ held_ms_min: 0, item_bytes_max: 64 }), type);
    return reader ? "begun" : isHeld && "held";
  };
  const whole = "retry: 1000\nid: a\n\n";
  for (let cut = 1; cut < whole.length; cut += 1) {
    assert.equal(await begins(SSE, whole.slice(0, cut)), "held", `the end of it after ${cut} bytes`);
    assert.equal(await begins(SSE, whole.slice(0, cut), whole.slice(cut)), "begun");
  }
  assert.deepEqual([await begins(SSE), await begins(SSE, "id: a\r\n", "\r\n")], ["held", "begun"]);
  assert.deepEqual([await begins(NDJSON, '{"position":', '"a"}'), await begins(NDJSON, '{"position":', '"a"}', "\n")], ["held", "begun"]);
  assert.deepEqual([await begins(SSE, ":".repeat(64)), await begins(SSE, ":".repeat(65))], ["held", "begun"]);
});

test("streams that each begin seconds late are looked at twice, and held back", async (t) => {
  t.after(() => mock.restoreAll());
  /** What is found, and how often it is looked, if streams begin after these times, and then as the last. */
  const found = async (/** @type {number[]} */ ...times) => {
    let [nowMs, looks] = [0, 0];
    mock.method(browser, "now", () => nowMs);
    mock.method(browser, "fetch", async (/** @type {string} */ _url, /** @type {RequestInit} */ { headers }) => {
      if (!headers) return new Response("{}");
      const ms = Number(times[Math.min(looks, times.length - 1)]);
      nowMs += ms;
      looks += 1;
      if (ms > wayOf({}).beginMs) throw new DOMException("nothing came", "AbortError");
      return streamOf(SSE, ["id: a\n\n"], () => new Promise(() => {}));
    });
    const { state, fault, isSilent = false } = await stream(wayOf({}), "sse", SSE);
    return [state, fault, looks, isSilent];
  };
  assert.deepEqual(await found(5000), ["fault", "buffered", 2, false]);
  assert.deepEqual(await found(208), ["note", "delayed", 5, false]);
  assert.deepEqual(await found(5000, 5000, 3), ["fault", "buffered", 2, false]);
  assert.deepEqual(await found(7990, 8001), ["fault", "buffered", 2, false], "the second never begins");
  assert.deepEqual(await found(5000, 3), ["good", undefined, 2, false], "a busy machine is late in some");
  assert.deepEqual(await found(5000, 200), ["note", "delayed", 5, false]);
});

test("a stream that stays silent after its first item is told apart from one that is cut", async (t) => {
  const { WebSocket } = browser;
  Object.assign(browser, { WebSocket: FakeSocket });
  t.after(() => (mock.restoreAll(), Object.assign(browser, { WebSocket })));
  /** The finding if this follows the first item, and a poll waits until the end. @param {Parameters<typeof streamOf>[2]} then */
  const found = async (then) => {
    mock.method(browser, "fetch", async (/** @type {string} */ _url, /** @type {RequestInit} */ { headers, signal }) => {
      if (headers && "Accept" in headers) return streamOf(SSE, ["id: a\n\n"], then);
      return await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    });
    mock.timers.enable({ apis: ["setTimeout"] });
    const finding = silence(wayOf({ heartbeat_ms_max: -1 }), 60_000);
    const end = new Promise((resolve) => setImmediate(resolve));
    return await Promise.all([finding, end.then(() => mock.timers.tick(60_000))]).then(([found]) => found).finally(() => mock.timers.reset());
  };
  const silent = await found(() => new Promise(() => {}));
  assert.deepEqual([silent.state, silent.fault], ["fault", "buffered"], silent.words);
  assert.match(silent.words, /^no heartbeat of a stream \(SSE\) came within \d+\.\d s, although the server sends one at least every 15 s: something on the way holds it back$/);
  const cut = await found((controller) => controller.close());
  assert.deepEqual([cut.state, cut.fault], ["fault", "idle"], cut.words);
  assert.match(cut.words, /^a stream \(SSE\) is cut after \d+\.\d s of silence$/);
  let nowMs = 0;
  mock.method(browser, "now", () => nowMs);
  const dropped = await found((controller) => {
    if (nowMs > 0) return new Promise(() => {});
    nowMs = 15_000;
    return controller.enqueue(new TextEncoder().encode(":\n\n"));
  });
  assert.deepEqual([dropped.state, dropped.fault], ["fault", "idle"], dropped.words);
  assert.equal(dropped.words, "a stream (SSE) is cut without a word: it was last heard after 15.0 s, and then silent for 0.0 s");
});

/**
 * What the doctor finds of a server that answers this or nothing.
 * @param {(path: string) => Promise<Response>} answer
 * @param {Partial<import("../../web/page/lab/way.js").Limits>} limits
 */
async function foundOf(answer, limits) {
  const rules = JSON.parse(readFileSync(new URL("../../web/page/lab/rules.json", import.meta.url), "utf8"));
  Object.assign(rules.limits, limits);
  const asked = mock.method(browser, "fetch", (/** @type {string} */ url) => answer(new URL(url).pathname));
  /** @type {import("../../web/page/lab/way.js").Finding[]} */
  const found = [];
  // In Node, a signal's timer alone does not keep the program from ending.
  const alive = setInterval(() => {}, 60_000);
  await examine({ rules, known: { roundTripMs: 1 }, waitMs: 1, signal: new AbortController().signal, onFinding: (finding) => found.push(finding) }).finally(() => clearInterval(alive));
  return { found, calls: asked.mock.callCount() };
}

test("a server that goes while it is examined is told so, and nothing on the way is blamed", async (t) => {
  t.after(() => mock.restoreAll());
  const { found, calls } = await foundOf(() => Promise.reject(new TypeError("Failed to fetch")), {});
  assert.deepEqual(found.map(({ id, state }) => [id, state]), [["reach", "fault"]]);
  assert.match(String(found[0]?.words), /^it has gone: .* no fault of the way$/);
  assert.equal(conclusion({ fault: 1, unknown: 0, gone: found.filter(({ isGone }) => isGone).length, remark: 0 }), "The server has gone.");
  assert.equal(calls, 2, "one examination, and whether the server is there");
});

test("a silence of the look whether the server is there counts, and nothing on the way is blamed", async (t) => {
  t.after(() => mock.restoreAll());
  const silence = async () => Promise.reject(new DOMException("nothing came", "TimeoutError"));
  // The examinations get answers that are doubtful; the looks between them get none.
  const { found, calls } = await foundOf((path) => (path.endsWith("/health") ? silence() : Promise.resolve(new Response("", { status: 500 }))), {});
  assert.deepEqual(found.map(({ id, words }) => [id, words.split(":")[0]]), [["reach", "it stalls"]]);
  assert.equal(calls, 3, "keep-alive is silent, the cache is in doubt, and the look is silent");
});

test("the look whether the server is there is within the time limit of the examinations", async (t) => {
  t.after(() => mock.restoreAll());
  const answers = [Promise.reject(new TypeError("Failed to fetch"))];
  const { found, calls } = await foundOf(() => answers.pop() ?? new Promise(() => {}), { late_answers: 0, late_begins: 0 });
  assert.deepEqual([found.map(({ id, words }) => [id, words]), calls], [[["reach", "it stalls: the examinations were not over after 0 s, so the rest is left out"]], 2]);
});

test("what has no answer is not called right", () => {
  assert.equal(conclusion({ fault: 0, unknown: 0, gone: 0, remark: 0 }), "Nothing is wrong.");
  assert.equal(conclusion({ fault: 0, unknown: 0, gone: 0, remark: 2 }), "Nothing is wrong, but a setting lets events come sooner.");
  assert.equal(conclusion({ fault: 0, unknown: 1, gone: 0, remark: 0 }), "Nothing wrong was found, but 1 examination has no answer.");
  assert.equal(conclusion({ fault: 0, unknown: 2, gone: 0, remark: 0 }), "Nothing wrong was found, but 2 examinations have no answer.");
  assert.deepEqual([conclusion({ fault: 1, unknown: 2, gone: 0, remark: 0 }), conclusion({ fault: 2, unknown: 0, gone: 0, remark: 0 })], ["1 fault.", "2 faults."]);
});
