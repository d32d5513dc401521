/** The pure parts of Home. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { servicesIn } from "../../web/page/described.js";
import { runsInWords } from "../../web/home/services.js";
import { shared } from "../../web/home/share.js";
import { Statuses } from "../../web/home/statuses.js";
import { Trend, hasNumbers } from "../../web/home/trend.js";
import { keepsInWords, mostKept, retentionInWords } from "../../web/home/words.js";
import { reading } from "../../web/page/commands.js";
import { statusInWords } from "../../web/page/status.js";

test("services are what a description of the paths has besides the server's own", () => {
  const own = { get: { tags: ["topics"] } };
  const sends = (/** @type {object} */ json) => ({ content: { "application/json": json } });
  const paths = {
    "/topics": own,
    "/clock": { get: { tags: ["server"] } },
    "/runs": { get: { tags: ["runs"] } },
    "/runs/{key}": { get: { tags: ["runs"] } },
    "/slow": { post: { tags: ["runs"], operationId: "start_slow", summary: "Starts a run." } },
    "/sort": { post: { tags: ["runs"], operationId: "start_sort", summary: "Sorts.", parameters: [{ name: "Prefer", in: "header" }, { name: "name", in: "query" }, { name: "pace", in: "query" }], requestBody: sends({ example: [2, 1] }) } },
    "/messages": { get: { tags: ["Message"], summary: "Finds records." }, post: { requestBody: sends({ schema: { properties: { id: {}, text: {} } } }) } },
    "/notes": { get: {} },
    "/notes/{id}": { get: {} },
    "/messages/{id}": { parameters: [], get: { summary: "Returns a record." }, delete: {} },
    "/axum": { description: "A service that has not described itself." },
  };
  assert.deepEqual(servicesIn({ paths }), [
    { path: "/axum", about: "A service that has not described itself.", methods: [], startsRuns: false, isRunService: false },
    { path: "/messages", about: "A resource: records (id, text) to find, and to change as its methods allow.", methods: ["GET", "POST", "DELETE"], startsRuns: false, isRunService: false },
    { path: "/notes", about: "A resource: records to find, and to change as its methods allow.", methods: ["GET"], startsRuns: false, isRunService: false },
    { path: "/slow", about: "Starts a run.", methods: ["POST"], startsRuns: true, isRunService: true },
    { path: "/sort", about: "Sorts.", example: "[2,1]", parameters: [{ name: "pace", in: "query" }], methods: ["POST"], startsRuns: true, isRunService: true },
  ]);
});

test("runs that work are told from those that wait", () => {
  assert.deepEqual([[1, 0], [2, 0], [2, 1], [1, 2], [0, 1], [0, 2]].map(([running = 0, queued = 0]) => runsInWords(running, queued)), [
    ...["is going on.", "are going on.", "are going on, 1 waits.", "is going on, 2 wait.", "waits.", "wait."],
  ]);
});

test("what is no description has no services", () => {
  for (const document of [null, undefined, {}, { paths: null }, { paths: { "/x": null } }]) assert.deepEqual(servicesIn(document), []);
});

/** @param {[number, unknown][]} events */
function trendOf(...events) {
  const trend = new Trend();
  for (const [time, data] of events) trend.add(time, data);
  return trend;
}

test("the curve of a topic is its first number, unless that is a time or a direction", () => {
  const wind = (/** @type {number} */ n) => ({ t0: 1_789_000_000_000 + n, direction: 90 - (n % 2), speed: 1, units: "m/s", gust: n % 2 });
  const trend = trendOf([0, wind(0)], [250, wind(1)]);
  assert.deepEqual([trend.curve], [null]);
  for (let n = 2; n < 9; n += 1) trend.add(n * 250, wind(n));
  assert.deepEqual([trend.curve?.caption, trend.curve?.series.length], ["speed, m/s", 9]);
  for (let n = 0; n < 3; n += 1) trend.add(3000, { later: n % 2, direction: 0 });
  assert.equal(trend.curve?.caption, "speed, m/s", "what is shown stays");
  const others = Array.from({ length: 4 }, (_, n) => /** @type {[number, unknown]} */ ([n, n === 0 ? { once: 1 } : { level: n }]));
  assert.equal(trendOf(...others).curve?.caption, "level", "a number that came once is no curve");
  assert.equal(trendOf([0, { heading: 359 }], [1, { heading: 1 }], [2, { heading: 0 }]).curve?.caption, "heading");
  assert.equal(trendOf([0, "r free"], [0, "1 20"], [1, "2 30"], [2, "1 40"], [3, "2 50"], [4, "1 60"]).curve?.caption, "r");
  assert.equal(trendOf([0, "a"], [1, "b"], [2, "c"], [3, null]).curve, null);
  assert.deepEqual([3, null, { a: 1 }, { a: "1" }, "1 2", "a b", "1", undefined].map(hasNumbers), [true, false, true, false, true, false, false, false]);
});

test("a curve has the configured unit of its number where the events say none", () => {
  const trend = trendOf([0, { course: 1, level: 3 }], [1, { course: 2, level: 4 }], [2, { course: 3, level: 5 }]);
  assert.equal(trend.curve?.caption, "course");
  trend.units = { course: "°", level: "m" };
  assert.equal(trend.curve?.caption, "level, m", "a direction is no curve");
});

test("a curve shows the last minute, or twenty values of a slow topic, up to the newest", () => {
  const span = (/** @type {number} */ count, /** @type {number} */ apartMs) => {
    const { curve } = trendOf(...Array.from({ length: count }, (_, n) => /** @type {[number, unknown]} */ ([1e6 + n * apartMs, n % 2])));
    assert.ok(curve && curve.to === 1e6 + (count - 1) * apartMs);
    return (curve.to - curve.from) / 1000;
  };
  assert.deepEqual([span(5, 1000), span(30, 1000), span(200, 1000), span(100, 10_000), span(5, 60_000)], [10, 29, 60, 190, 240]);
  assert.ok(trendOf(...Array.from({ length: 5000 }, (_, n) => /** @type {[number, unknown]} */ ([n, n]))).curve?.series.length === 256);
});

test("a topic has the status of a source only if the server says so, whatever its name", () => {
  const topics = [{ name: "cpu" }, { name: "cpu.status", status_of: "cpu" }, { name: "room" }, { name: "room.status" }, { name: "lonely.status", status_of: "gone" }];
  const statuses = new Statuses();
  statuses.list(topics);
  assert.deepEqual(topics.map(({ name }) => statuses.topicOf(name)), [null, "cpu", null, null, null]);
  assert.deepEqual(["cpu", "room", "gone"].map((topic) => statuses.hasStatus(topic)), [true, false, false]);
  assert.deepEqual(["cpu", "room", "gone"].map((topic) => statuses.withStatus(topic)), [["cpu", "cpu.status"], ["room"], ["gone"]]);
});

test("the status of a source is said in words", () => {
  const said = (/** @type {unknown} */ data) => statusInWords(data)?.words ?? null;
  assert.deepEqual(["opening", "live", "silent", "lost", "waiting", "ended"].map((state) => said({ state })), ["opening", "live", "silent", "trying again", "waiting for the disk", "ended"]);
  assert.equal(statusInWords({ state: "ended", detail: "exit status: 1" })?.detail, "exit status: 1");
  assert.equal(statusInWords({ state: "lost", detail: "d".repeat(750_000) })?.detail, `${"d".repeat(300)}…`);
  assert.deepEqual([said({ state: "toString" }), said("live"), said(null), said({ state: 1 })], [null, null, null, null]);
});

test("what topics keep is said once for those that keep the same, with whether a restart ends it", () => {
  const [memory, disk, old] = [{ keeps: "7 d", storage: "memory" }, { keeps: "7 d", storage: "disk" }, { keeps: "7 d" }];
  assert.deepEqual([memory, disk, old, {}, { keeps: null }].map(keepsInWords), ["7 d, in memory", "7 d, on disk", "7 d", "", ""]);
  assert.deepEqual(mostKept([{}, memory, disk, disk, {}, {}]), disk);
  assert.deepEqual(mostKept([]), {});
  assert.equal(retentionInWords(memory, true), "Each keeps 7 d, in memory: events are gone when the server stops; --data DIR keeps them on disk.");
  assert.equal(retentionInWords(disk, false), "Unless it says otherwise, each keeps 7 d, on disk: events are still there after a restart.");
  assert.deepEqual([retentionInWords(old, true), retentionInWords({}, true)], ["Each keeps 7 d.", ""]);
});

test("the link to share is the one of the network, or how to listen there", () => {
  const from = (/** @type {string} */ url, /** @type {string[]} */ ...urls) => shared(urls, new URL(url));
  assert.deepEqual(from("http://localhost:8080/", "http://192.0.2.7:8080/"), { links: ["http://192.0.2.7:8080/"], address: null });
  assert.deepEqual(from("https://wind.example/below/"), { links: ["https://wind.example/below/"], address: null });
  for (const here of ["localhost", "a.localhost", "127.0.0.1", "127.8.0.9", "[::1]"]) assert.deepEqual(from(`http://${here}:8080/`), { links: [], address: "0.0.0.0:8080" }, here);
  assert.deepEqual([from("http://127.0.0.1/").address, from("https://127.0.0.1/").address], ["0.0.0.0:80", "0.0.0.0:443"]);
  assert.deepEqual(from("http://127.0.0.1.example/").address, null, "a name is no address");
});

test("the command that reads a topic has quotes only where a shell needs them", () => {
  assert.equal(reading("http://127.0.0.1:8080/topics/cpu_1.a-b"), "curl http://127.0.0.1:8080/topics/cpu_1.a-b");
  assert.equal(reading("http://[::1]:8080/topics/cpu"), "curl -g 'http://[::1]:8080/topics/cpu'");
});
