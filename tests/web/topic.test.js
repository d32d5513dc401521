/** The pure parts of the pages about topics: numbers, columns, places, words and rates. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Rate, rateInWords } from "../../web/page/rates.js";
import { Columns, cellsOf, numberOf } from "../../web/page/events/columns.js";
import { FIELDS_MAX, Fields, numbersOf } from "../../web/page/events/fields.js";
import { waysTo } from "../../web/page/events/ways.js";
import { captionOf, isDirection, shownUnit, withUnit } from "../../web/page/events/units.js";
import { gapInWords, inOneLine, shortName } from "../../web/page/events/words.js";
import { looksLikeJson } from "../../web/page/sending.js";
import { csvOfEvents } from "../../web/topic/file.js";
import { keptInWords } from "../../web/topic/kept.js";
import { placeOf } from "../../web/topic/places.js";

test("numbers are found wherever they are", () => {
  assert.deepEqual(numbersOf(3), [["value", 3]]);
  assert.deepEqual(numbersOf("3"), []);
  assert.deepEqual(numbersOf(null), []);
  assert.deepEqual(numbersOf({ a: 1, b: { c: [2, { d: 3 }] }, e: null, f: "4", g: true }), [["a", 1], ["b.c[0]", 2], ["b.c[1].d", 3], ["e", null]]);
  assert.deepEqual(numbersOf({ a: { b: { c: { d: { e: 1 } } } } }), []);
  assert.deepEqual(numbersOf(JSON.parse('{"great":1e308,"greater":1e999}')), [["great", 1e308]]);
  assert.ok(numbersOf(Array.from({ length: 10_000 }, (_, index) => index)).length <= 2 * FIELDS_MAX);
});

test("fields are bounded, and after ten events and ten seconds those are shown that were worth a look then", () => {
  const fields = new Fields();
  for (let n = 0; n < 20; n += 1) {
    const isEarly = n < 11;
    fields.add(n * 1000, numbersOf({ same: isEarly ? 1 : n % 2, counter: n, t0: 1_789_000_000_000 + n, wave: isEarly ? n % 3 : 0, missing: n === 6 ? null : isEarly ? n : 0 }));
    assert.deepEqual(fields.choose(), n < 10 ? { names: ["same", "counter", "wave"], isDecided: false } : { names: ["wave", "counter", "missing"], isDecided: true }, `after ${n + 1} events`);
  }
  assert.deepEqual(fields.values.map(({ name }) => name), ["same", "counter", "wave", "missing"], "no times");
  const missing = fields.all.find(({ name }) => name === "missing")?.series;
  assert.ok(missing && Number.isNaN(missing.value(6)) && missing.length === 20);
  fields.add(20_000, numbersOf(Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`f${index}`, index]))));
  assert.deepEqual([fields.all.length, fields.more], [FIELDS_MAX, 50 - (FIELDS_MAX - 5)]);

  const few = new Fields();
  for (let n = 0; n < 9; n += 1) few.add(n * 60_000, numbersOf({ a: n % 2 }));
  assert.ok(!few.choose().isDecided, "nine events of a slow topic decide nothing");
});

/** Lines as vmstat prints them, at a machine that is busy and at one that is not. */
const VMSTAT = {
  busy: ["29 0 0 18653712 33552 4392200 0 0 1025 1687 931 2727 61 13 25 0 0", "21 0 0 18653712 33552 4392200 0 0 180 1528 2099 20993 73 25 0 0 1", "20 0 0 18653712 33552 4392200 0 0 0 596 3078 26340 72 27 0 0 0", "11 0 0 18653712 33552 4392200 0 0 752 1160 7313 24363 75 25 0 0 1", "12 0 0 18653712 33552 4392200 0 0 0 0 3320 26141 80 20 0 0 0", "6 0 0 18653712 33552 4392200 0 0 0 24 1542 8685 91 8 0 0 0", "3 0 0 18653712 33552 4392200 0 0 204 20 1145 3111 92 9 0 0 0"],
  idle: ["1 0 0 9120416 33552 4392200 0 0 2 7 120 240 1 0 99 0 0", "0 0 0 9120290 33552 4392204 0 0 0 0 96 180 0 0 100 0 0", "0 0 0 9120416 33560 4392204 0 0 0 36 131 260 2 1 97 0 0", "0 0 0 9119974 33560 4392204 0 0 0 0 88 171 0 0 100 0 0", "1 0 0 9120100 33560 4392208 0 0 0 0 102 190 1 0 98 1 0"],
  asleep: ["0 0 0 9120416 33552 4392200 0 0 0 0 120 240 0 0 100 0 0", "0 0 0 9120416 33552 4392200 0 0 0 0 96 180 0 0 100 0 0", "0 0 0 9120416 33552 4392200 0 0 0 0 131 260 0 0 100 0 0"],
};

test("of the columns that move, the shares of a whole are shown first", () => {
  const shownOf = (/** @type {readonly string[]} */ lines) => {
    const fields = new Fields();
    const columns = new Columns();
    columns.row("r b swpd free buff cache si so bi bo in cs us sy id wa st");
    for (let n = 0; n < 12; n += 1) fields.add(n * 1000, columns.numbers(columns.row(String(lines[n % lines.length])) ?? []));
    return fields.choose().names;
  };
  assert.deepEqual(Object.values(VMSTAT).map(shownOf), [["us", "sy", "id"], ["us", "sy", "id"], ["in", "cs", "r"]]);
});

test("numbers have the unit that their event says, and directions degrees", () => {
  const wind = { unit: "Q", direction: 229, speed: 2.74, units: "m/s", status: "00", seq: 7, t0: 1_789_000_000_123.456 };
  assert.deepEqual(numbersOf(wind), [["direction", 229, "°"], ["speed", 2.74, "m/s"], ["seq", 7], ["t0", 1_789_000_000_123.456]]);
  assert.deepEqual(numbersOf({ a: { units: "V", cells: [3, 4] }, b: 5 }), [["a.cells[0]", 3, "V"], ["a.cells[1]", 4, "V"], ["b", 5]]);
  assert.deepEqual(numbersOf({ units: { t: "°C" }, t: 20, id: 1, toString: 2 }), [["t", 20, "°C"], ["id", 1], ["toString", 2]]);
  assert.deepEqual(numbersOf({ units: "x".repeat(1000), v: 1, w: null }), [["v", 1], ["w", null]]);
  assert.deepEqual([withUnit("229", "°"), withUnit("2.74", "m/s"), withUnit("1", ""), captionOf("speed", "m/s"), captionOf("n", "")], ["229°", "2.74 m/s", "1", "speed, m/s", "n"]);
  assert.deepEqual([["wind.direction", ""], ["heading_deg", ""], ["x", "deg"], ["speed", "m/s"], ["directions", ""]].map(([name = "", unit = ""]) => isDirection(name, unit)), [true, true, true, false, false]);
  const fields = new Fields();
  for (const [time, units] of ["m/s", "m/s", "kn", "m/s"].entries()) {
    fields.add(time, numbersOf({ speed: time, ...(time === 1 ? {} : { units }), bare: 1 }));
    assert.deepEqual(fields.all.map(({ unit }) => unit)[0], time < 2 ? "m/s" : "", "none is shown where there are several");
  }
});

test("a configured unit is shown where the events say none, and not where they say several", () => {
  const configured = { bare: "V", one: "V", several: "V" };
  const fields = new Fields();
  for (const [time, unit] of ["m/s", "kn"].entries()) fields.add(time, [["bare", time], ["one", time, "m/s"], ["several", time, unit], ["toString", time]]);
  assert.deepEqual(fields.all.map((field) => [field.name, shownUnit(field, configured)]), [["bare", "V"], ["one", "m/s"], ["several", ""], ["toString", ""]]);
});

test("a value may have a unit of its own", () => {
  assert.deepEqual(numbersOf({ value: 3, unit: "m/s", n: 1 }), [["value", 3, "m/s"], ["n", 1]]);
  assert.deepEqual(numbersOf({ speed: 3, unit: "Q" }), [["speed", 3]], "a unit may be a device");
  assert.deepEqual(numbersOf({ value: 3, unit: 7 }), [["value", 3], ["unit", 7]]);
});

test("earlier values come before those that were added, in place of others that came before", () => {
  const here = new Fields();
  for (const time of [30, 30, 50]) here.add(time, [["a", time], ["late", time]]);
  const prepend = (/** @type {number[]} */ ...times) => {
    const earlier = new Fields();
    for (const time of times) earlier.add(time, [["a", time, "V"], ["early", -time]]);
    here.prepend(earlier);
  };
  const values = () => here.all.map(({ name, series }) => [name, ...Array.from({ length: series.length }, (_, index) => series.value(series.first + index))]);
  prepend(10, 20, 30);
  assert.deepEqual(values(), [["a", 10, 20, 30, 30, 30, 50], ["late", 30, 30, 50], ["early", -10, -20, -30]]);
  const [a] = here.all;
  assert.deepEqual([a?.unit, a?.low, a?.high], ["V", 10, 50]);
  here.add(60, [["a", 60], ["early", -60]]);
  prepend(25);
  assert.deepEqual(values(), [["a", 25, 30, 30, 50, 60], ["late", 30, 30, 50], ["early", -25, -60]]);
});

test("what is kept is said with number, time, bytes and limit", () => {
  const topic = { name: "t", next: "e-5", first: 1, events: 5, bytes: 1234, oldest: 1000, time: 2000, readers: 0, keeps: "7 d", storage: "disk" };
  assert.equal(keptInWords(topic, 62_000), "The server keeps 5 events of the last 1 min 1 s, 1.23 kB on disk. Its limit: 7 d.");
  assert.equal(keptInWords({ ...topic, events: 0, bytes: 0, oldest: null, storage: "memory" }, 0), "The server keeps no event yet, and will keep them in memory. Its limit: 7 d.");
});

test("events are saved as CSV, and rows of lines with the names of their head", () => {
  const csv = (/** @type {unknown[]} */ ...all) => csvOfEvents(all.map((data) => ({ time: 0, data }))).slice(1).replaceAll("1970-01-01T00:00:00.000Z", "T").trimEnd().split("\r\n");
  assert.deepEqual(csv({ speed: 1.5, time: 3 }, { speed: -2, text: "=1+1" }, 7), ["time,speed,data.time,text,value", "T,1.5,3,,", "T,-2,,'=1+1,", "T,,,,7"]);
  assert.deepEqual(csv("-a", "two, words"), ["time,value", "T,'-a", 'T,"two, words"']);
  assert.deepEqual(csv("1 20", "r free", "2 30", "r free", "3 40", "4 -5", "this is over"), ["time,r,free,value", "T,1,20,", "T,2,30,", "T,3,40,", "T,4,-5,", "T,,,this is over"]);
});

test("a saved row has the names of the head before it, and no head is a row", () => {
  const csv = (/** @type {string[]} */ ...all) => csvOfEvents(all.map((data) => ({ time: 0, data }))).slice(1).replaceAll("1970-01-01T00:00:00.000Z", "T").trimEnd().split("\r\n");
  assert.deepEqual(csv("temp,hum", "1,2", "3,4", "5,6", "hum,temp", "7,8", "temp,hum"), ["time,temp,hum", "T,1,2", "T,3,4", "T,5,6", "T,8,7"]);
  assert.deepEqual(csv("1,2", "temp,hum", "3,4", "temp,hum", "5,6"), ["time,temp,hum", "T,1,2", "T,3,4", "T,5,6"], "a row before the only head has its names");
  assert.deepEqual(csv("1,2", "temp,hum", "3,4", "temp,dew", "5,6"), ["time,column 1,column 2,temp,hum,dew", "T,1,2,,,", "T,,,3,4,", "T,,,5,,6"], "where heads change, that before the first row is not known");
  assert.deepEqual(csv("r free", "1 2", "three words here", "3 4", "5 6"), ["time,r,free,value", "T,1,2,", "T,,,three words here", "T,3,4,", "T,5,6,"], "a line of words of another length is no head of theirs");
});

test("lines of columns are a table with the names of its head", () => {
  assert.deepEqual(cellsOf(" 1  2.5 x "), ["1", "2.5", "x"]);
  assert.deepEqual(cellsOf("a b, c"), ["a b", "c"]);
  assert.deepEqual(cellsOf("  "), []);
  assert.deepEqual(["1", "-2.5e3", "98%", "1a", "", "0x1f", "1e999"].map(numberOf), [1, -2500, 98, null, null, null, null]);
  const columns = new Columns();
  for (const line of ["procs ---memory---", " r  free", "1 20", "2 30"]) columns.row(line);
  assert.ok(!columns.isTable);
  const cells = columns.row("3 40");
  assert.ok(columns.isTable && cells);
  assert.deepEqual(columns.names, ["r", "free"]);
  assert.deepEqual(columns.numbers(cells), [["r", 3], ["free", 40]]);
  for (const line of ["1 2 3", "4 5 6", "7 8 9"]) columns.row(line);
  assert.deepEqual(columns.names, ["column 1", "column 2", "column 3"]);
  for (const line of ["", "word", "two words", "x ".repeat(1000)]) assert.equal(columns.row(line), null, line);
});

test("rows that come before their first head get its names", () => {
  const fields = new Fields();
  const columns = new Columns((names) => fields.rename(names));
  const lines = ["1 20", "2 30", "3 40", "procs memory swap", "r free", "4 50", "r free", "5 60"];
  for (const [time, line] of lines.entries()) {
    const cells = columns.row(line);
    if (cells) fields.add(time, columns.numbers(cells));
  }
  assert.deepEqual(fields.all.map(({ name, series }) => [name, series.length]), [["r", 5], ["free", 5]]);
  fields.rename([["r", "free"]]);
  assert.deepEqual(fields.all.map(({ name }) => name), ["r", "free"]);
});

test("a place is what a person types", () => {
  /** @type {[string, string | undefined][]} */
  const cases = [["earliest", "after=earliest"], [" -10 ", "after=-10"], ["4zq81x-42", "after=4zq81x-42"], ["42", "after=4zq81x-41"], ["#1", "after=4zq81x-0"], ["10m", "since=10m"], ["2026-11-22T10:00:00Z", "since=2026-11-22T10:00:00Z"], ["1789000000123.4", "since=1789000000123.4"], ["soon", undefined], ["", undefined], ["10 m", undefined]];
  for (const [text, expected] of cases) {
    const place = placeOf(text, "4zq81x");
    assert.equal(place ? `${place.name}=${place.value}` : undefined, expected, text);
  }
  assert.equal(placeOf("42", null), null);
  const today = placeOf("14:30", null);
  assert.equal(new Date(Number(today?.value)).getHours(), 14);
});

// As in the test of `Data::typed` in crates/hub/src/event.rs.
test("what begins like JSON is told from text", () => {
  for (const text of ['{"a":', "{a:1}", "{", " [1,", "[ ", "[]]", "[-", '"a', '{"a":1} x', '["a', "[[", "[{"]) assert.ok(looksLikeJson(text), text);
  for (const text of ["hello", "a=1&b=%20+2", "[INFO] up", "1 2", "nul", " ", ""]) assert.ok(!looksLikeJson(text), text);
});

test("gaps are said as a person would", () => {
  const gap = (/** @type {string} */ reason, /** @type {number | null} */ missed) => gapInWords({ reason, missed, after: "a-1", resume: "a-2" });
  assert.equal(gap("retention", 1), "1 event is missing here: the topic no longer keeps it.");
  assert.equal(gap("damaged", 1200), "1,200 events are missing here: the server's disk no longer has what was written.");
  assert.match(gap("epoch", null), /^The topic began anew here/);
  assert.match(gap("unannounced", null), /^Events are missing here, nobody knows how many, and/);
  assert.equal(gap("new-reason", 2), "2 events are missing here (new-reason).");
  assert.equal(inOneLine({ a: 1 }, 5), '{"a":…');
  assert.deepEqual([shortName("x".repeat(60)).length, shortName("x".repeat(61)).length, shortName("speed")], [60, 61, "speed"]);
  assert.match(shortName("x".repeat(99)), /x…$/);
});

test("each way to read has the address of the topic, also below a path", () => {
  for (const { lines } of waysTo("https://example.org/live/topics/t.1")) {
    assert.deepEqual(lines.map(({ title }) => title), ["Terminal", "JavaScript", "Python", "anemone"]);
    for (const { code } of lines) assert.match(code, /(https|wss):\/\/example\.org\/live\/(topics\/t\.1|ws)/);
  }
  const mux = waysTo("https://example.org/live/topics/t.1").find(({ id }) => id === "mux");
  assert.match(String(mux?.lines[0]?.code), /GET 1 \/topics\/t\.1\\n.*wss:\/\/example\.org\/live\/ws/);
});

test("events of the past that come all at once make no high rate", () => {
  const rate = new Rate();
  // An instrument of one line a second has said its head and three lines when the page comes.
  rate.look("a-1", 3000, 0);
  rate.look("a-5", 3250, 2000);
  assert.equal(rate.perSecond, null);
  const told = new Set();
  for (let now = 3500; now <= 33_000; now += 250) {
    const second = Math.floor(now / 1000);
    rate.look(`a-${second + 3}`, now, second * 1000);
    told.add(rateInWords(rate.perSecond));
  }
  assert.deepEqual([...told], ["", "1.0 a second"]);
  // On a slow way, the past takes longer.
  rate.look("b-300", 1_000_000, 825_000);
  rate.look("b-300", 1_001_000, 825_000);
  rate.look("b-1000", 1_001_250, 1_000_000);
  assert.equal(rateInWords(rate.perSecond), "4.0 a second");
});

test("a rate is that of the last seconds", () => {
  const rate = new Rate();
  assert.equal(rate.perSecond, null);
  for (let second = 0; second <= 60; second += 2) rate.look(`a-${second < 30 ? second * 10 : 300}`, second * 1000);
  assert.equal(rate.perSecond, 0);
  rate.look("b-5", 70_000);
  assert.equal(rate.perSecond, null);
  rate.look("b-15", 72_000);
  assert.deepEqual([rateInWords(rate.perSecond), rateInWords(20), rateInWords(0.5), rateInWords(1 / 60), rateInWords(null)], ["5.0 a second", "20 a second", "30 a minute", "1.0 a minute", ""]);
});

test("the rate of a slow topic is that of its last two events", () => {
  const rate = new Rate();
  const told = new Set();
  // One event each 20 s; the page comes 7 s after one.
  for (let second = 0; second <= 90; second += 1) {
    const event = Math.floor((second + 7) / 20);
    rate.look(`a-${event + 5}`, second * 1000, event * 20_000 - 7000);
    if (second >= 13) told.add(rateInWords(rate.perSecond));
  }
  assert.deepEqual([...told], ["3.0 a minute"]);
  for (let second = 91; second <= 160; second += 1) rate.look("a-9", second * 1000, 73_000);
  assert.equal(rateInWords(rate.perSecond), "quiet");
});

test("a topic of a few events in an hour has a rate of its own, and one that has had no event has none", () => {
  assert.deepEqual([0.9 / 60, 2 / 3600, 0.9 / 3600].map(rateInWords), ["54 an hour", "2.0 an hour", "quiet"]);
  const rate = new Rate();
  rate.look("a-7", 0, -3_600_000);
  rate.look("a-7", 6000, -3_600_000);
  assert.equal(rateInWords(rate.perSecond), "quiet");
  rate.look("a-8", 10_000, 10_000);
  assert.equal(rateInWords(rate.perSecond), "1.0 an hour");
  rate.look("b-0", 20_000);
  rate.look("b-0", 26_000);
  assert.equal(rateInWords(rate.perSecond), "quiet");
  const told = new Set();
  for (let now = 27_000; now < 31_000; now += 250) {
    rate.look("b-1", now, 27_000);
    told.add(rateInWords(rate.perSecond));
  }
  rate.look("b-2", 31_000, 31_000);
  assert.deepEqual([...told, rateInWords(rate.perSecond)], ["", "15 a minute"]);
});

test("no rate is told before it can be known, and none is negative", () => {
  const rate = new Rate();
  rate.look("a-7", 0);
  rate.look("a-7", 2000);
  assert.equal(rate.perSecond, null, "the topic may be slow");
  rate.look("a-7", 6000);
  assert.equal(rateInWords(rate.perSecond), "quiet");
  rate.look("a-3", 6250, 1000);
  assert.equal(rate.perSecond, null, "the topic has gone back");
  rate.look("a-5", 8250, 3000);
  assert.equal(rateInWords(rate.perSecond), "1.0 a second");
  rate.forget(8250);
  assert.equal(rate.perSecond, null);
});
