import assert from "node:assert/strict";
import { test } from "node:test";
import { classesInWords, roseOf } from "../../web/wind/rose.js";
import { niceScale } from "../../web/chart/scale.js";
import { judge, sensorStatusOf } from "../../web/wind/sensor.js";
import { formatBytes, formatCount, formatDuration, formatMs, formatNumber, parseNumber, stateInWords } from "../../web/page/words.js";
import { compassPoint, normal } from "../../web/page/wind/compass.js";
import { beaufort, faultInWords, shortestTurn, windInWords } from "../../web/wind/words.js";
import { signed } from "../../web/page/propagation/words.js";
import { windOf } from "../../web/page/wind/wind.js";
import { SPANS, WIND_SPANS, filledBy, offered, placeOf } from "../../web/page/ranges/spans.js";

test("the compass has 16 points and closes", () => {
  /** @type {[number, string][]} */
  const cases = [[0, "N"], [11, "N"], [12, "NNE"], [90, "E"], [229, "SW"], [348, "NNW"], [349, "N"], [360, "N"]];
  for (const [degrees, point] of cases) assert.equal(compassPoint(degrees), point, String(degrees));
});

test("a needle turns the short way round", () => {
  assert.equal(shortestTurn(350, 10), 20);
  assert.equal(shortestTurn(10, 350), -20);
  assert.equal(shortestTurn(0, 180), 180);
  assert.equal(normal(-10), 350);
  for (let from = 0; from < 360; from += 7) {
    for (let to = 0; to < 360; to += 11) {
      const turn = shortestTurn(from, to);
      assert.ok(Math.abs(turn) <= 180);
      assert.equal(normal(from + turn), to);
    }
  }
});

test("Beaufort begins each force at its lower bound", () => {
  /** @type {[number, number][]} */
  const cases = [[0, 0], [0.29, 0], [0.3, 1], [1.59, 1], [1.6, 2], [3.4, 3], [5.5, 4], [8, 5], [10.8, 6], [13.9, 7], [17.2, 8], [20.8, 9], [24.5, 10], [28.5, 11], [32.7, 12], [60, 12]];
  for (const [mps, force] of cases) assert.equal(beaufort(mps, "m/s")?.force, force, `${mps} m/s`);
});

test("Beaufort knows the instrument's units, and no others", () => {
  assert.equal(beaufort(20, "knots")?.force, 5);
  assert.equal(beaufort(20, "km/h")?.force, 4);
  assert.equal(beaufort(20, "mph")?.force, 5);
  assert.equal(beaufort(2000, "ft/min")?.force, 5);
  assert.equal(beaufort(20, "furlongs"), null);
});

test("wind is said in words", () => {
  const wind = { unit: "Q", direction: 229, speed: 2.74, units: "m/s", status: "00", t0: 0 };
  assert.equal(windInWords(wind), "SW 229°, 2.74 m/s, light breeze (Beaufort 2)");
  assert.equal(windInWords({ ...wind, direction: null, speed: 0.03 }), "no direction, 0.03 m/s, calm (Beaufort 0)");
  assert.equal(windInWords({ ...wind, direction: null, speed: null, status: "04" }), "not measured");
});

test("a measurement without t0 has its event's time, and anything else is none", () => {
  const event = { position: "a-1", time: 7, received: 8 };
  assert.equal(windOf({ ...event, data: { speed: 1, direction: null } })?.t0, 7);
  assert.equal(windOf({ ...event, data: { speed: 1, t0: 5 } })?.t0, 5);
  for (const data of [null, 3, "x", {}, { speed: "1" }]) assert.equal(windOf({ ...event, data }), null);
});

test("an instrument that could not measure has no speed, and its status names the fault", () => {
  const data = { unit: "Q", direction: null, speed: null, units: "m/s", status: "04", t0: 5 };
  const wind = windOf({ position: "a-1", time: 7, received: 8, data });
  assert.deepEqual([wind?.speed, wind?.direction, wind && faultInWords(wind.status)], [null, null, "both axes failed"]);
});

test("faults have names; 00 is none", () => {
  assert.equal(faultInWords("00"), null);
  assert.equal(faultInWords("A"), null);
  assert.equal(faultInWords("V"), "its data is void");
  assert.equal(faultInWords("04"), "both axes failed");
  assert.equal(faultInWords("77"), "status 77");
});

test("amounts keep their width", () => {
  assert.deepEqual([formatNumber(1234.5, 2), formatNumber(-0.25, 6), formatNumber(30_000, 6), formatNumber(9.999, 2)], ["1,234.5", "-0.25", "30,000", "10"]);
  assert.deepEqual([0, 999, 1000, 12_345, 999_900, 25e9].map(formatBytes), ["0 B", "999 B", "1.00 kB", "12.3 kB", "1.00 MB", "25.0 GB"]);
  assert.deepEqual([3.123, 41.31, 151.3, -0.5].map(formatMs), ["3.12", "41.3", "151", "-0.50"]);
  assert.deepEqual([900, 59_000, 192_000, 7_500_000].map(formatDuration), ["0 s", "59 s", "3 min 12 s", "2 h 5 min"]);
});

test("a number is read as it is written, or with a decimal comma", () => {
  for (const value of [0, -0.25, 999, 1234.5, 20_000, -30_000_000, 1_234_567.125]) assert.equal(parseNumber(formatNumber(value, 6)), value);
  const typed = ["1,5", "−1,500", "1,500.5", "-0,125", "11,123456", "1,0000", "20000", "5e3"];
  assert.deepEqual(typed.map((text) => parseNumber(text)), [1.5, -1500, 1500.5, -0.125, 11.123456, 1, 20_000, 5000]);
  for (const text of ["1,5,2", "1,50,000", "1.500,5", "1,5.2", "1 800", "x", "", " "]) assert.equal(parseNumber(text), NaN, text);
  assert.deepEqual(["11,123", "−52,516", "1,5", "11.123"].map((text) => parseNumber(text, true)), [11.123, -52.516, 1.5, 11.123]);
  assert.equal(parseNumber("1,234.5", true), NaN);
});

test("a connection's state is said in words", () => {
  assert.equal(stateInWords({ kind: "connected", since: 0 }, 8000), "connected for 8 s");
  const waiting = { kind: /** @type {const} */ ("waiting"), until: 2000, reason: "the server does not answer", status: null };
  assert.equal(stateInWords(waiting, 500), "reconnecting in 2 s: the server does not answer");
  assert.equal(stateInWords(waiting, 2000), "reconnecting now: the server does not answer");
  assert.equal(stateInWords({ ...waiting, status: 503 }, 500), "trying again in 2 s: the server does not answer");
});

test("the sensor's state is what its topic last said, unless the topic cannot be read", () => {
  const lost = sensorStatusOf({ state: "lost", detail: "line closed", since: 5, events: 1, bad_lines: 0 });
  const connected = { kind: /** @type {const} */ ("connected"), since: 0 };
  assert.equal(judge(lost, connected).phrase, "sensor lost");
  assert.equal(judge(lost, { kind: "connecting" }).phrase, "sensor lost");
  assert.equal(judge(null, { kind: "connecting" }).phrase, "connecting");
  /** @param {number | null} status */
  const waiting = (status) => ({ kind: /** @type {const} */ ("waiting"), until: 0, reason: "why", status });
  assert.deepEqual([judge(lost, waiting(404)).phrase, judge(lost, waiting(404)).notice], ["no sensor", null], "others may publish the wind");
  for (const status of [401, 403, 421]) {
    const { phrase, notice, detail } = judge(lost, waiting(status));
    assert.deepEqual([phrase, notice, detail], ["refused", "refused", judge(lost, waiting(null)).detail], "in its words");
  }
  assert.deepEqual([judge(lost, waiting(null)).phrase, judge(lost, waiting(null)).notice], ["server not reached", "no server"]);
  const moods = ["opening", "live", "silent", "lost", "waiting", "ended"].map((state) => judge(sensorStatusOf({ state }), connected).mood);
  assert.deepEqual(moods, ["doubtful", "good", "doubtful", "bad", "doubtful", "bad"]);
  assert.equal(sensorStatusOf({ state: "dancing" }), null);
});

test("the chart's scale is round, and comes down only with room to spare", () => {
  assert.equal(niceScale(0, 0), 2);
  assert.equal(niceScale(3.9, 0), 8);
  assert.equal(niceScale(3.5, 8), 8);
  assert.equal(niceScale(2.5, 8), 4);
});

test("a rose counts by direction and class of speed", () => {
  /** @type {[number, number][]} */
  const winds = [[1, 0], [3, 359], [9.5, 12], [2, 90], [0, NaN], [NaN, NaN]];
  const { counts, calm, total, step } = roseOf(winds, 9.5);
  assert.deepEqual([calm, total, step], [1, 5, 2]);
  assert.deepEqual([counts[0], counts[1], counts[4]?.[1]], [[1, 1, 0, 0, 0], [0, 0, 0, 0, 1], 1]);
  assert.equal(counts.flat().reduce((sum, count) => sum + count, 0), 4);
  assert.deepEqual(classesInWords(step), ["0 to 2", "2 to 4", "4 to 6", "6 to 8", "8 and more"]);
  assert.deepEqual(classesInWords(roseOf([[0.3, 10]], 0.3).step)[1], "0.1 to 0.2");
  assert.deepEqual(roseOf([], -Infinity).total, 0);
});

test("thousands have commas, and negative values a minus", () => {
  assert.deepEqual([0, 999, 1000, 1_234_567, -1234, 999.5].map(formatCount), ["0", "999", "1,000", "1,234,567", "-1,234", "1,000"]);
  assert.deepEqual([-87.25, 0, 1087.34, -12_345.6].map(signed), ["\u221287.3", "0.0", "1,087.3", "\u221212,345.6"]);
});

test("a chart offers no time that reaches beyond what is kept", () => {
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
  /** @type {[number, string[]][]} */
  const cases = [
    [0, []],
    [42 * minute, []],
    [hour - 1, []],
    [hour, ["1 h"]],
    [3 * day, ["1 h", "24 h"]],
    [7 * day, ["1 h", "24 h", "7 d"]],
  ];
  for (const [keptMs, expected] of cases) {
    const titles = offered(WIND_SPANS, keptMs).map(({ title }) => title);
    assert.deepEqual(titles, ["2 min", ...expected, "All"], String(keptMs));
  }
  const filled = (/** @type {number} */ ms) => filledBy(SPANS, ms).title;
  assert.deepEqual([0, minute, 5 * minute - 1, 5 * minute, 100 * day].map(filled), ["1 min", "1 min", "1 min", "5 min", "24 h"]);
  assert.deepEqual(SPANS.map(placeOf), ["since=60000ms", "since=300000ms", "since=3600000ms", "since=21600000ms", "since=86400000ms", "after=earliest"]);
});
