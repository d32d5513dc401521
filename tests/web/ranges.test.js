/** Older events, read from a topic that a test makes up. */
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { readBetween } from "../../web/page/ranges/history.js";
import { TIME_MS_MIN, since } from "../../web/page/ranges/spans.js";
import { browser } from "../../web/transport/environment.js";

const EVENTS = 50;
const PAGE_EVENTS = 10;
const DATA = "x".repeat(100);
const BEGIN = 1_789_000_000_000;
/** @param {number} offset of an event */
const timeOf = (offset) => BEGIN + offset * 1000;
/** @type {Parameters<typeof readBetween>[2]} */
const NO_LIMIT = { eventsMax: Infinity, bytesMax: Infinity, signal: new AbortController().signal, onProgress: () => {} };

let asked = 0;
const all = Array.from({ length: EVENTS }, (_, index) => ({ offset: index + 1, time: timeOf(index + 1), data: DATA }));

beforeEach(() => {
  asked = 0;
  mock.method(browser, "fetch", async (/** @type {URL} */ url, /** @type {RequestInit} */ { signal }) => {
    signal?.throwIfAborted();
    asked += 1;
    const query = new URL(url).searchParams;
    const [from, after] = [Number(query.get("since") ?? 0), Number(query.get("after")?.slice("e-".length) ?? 0)];
    const events = all.filter(({ offset, time }) => offset > after && time >= from).slice(0, PAGE_EVENTS);
    const next = `e-${events.at(-1)?.offset ?? EVENTS}`;
    return new Response(JSON.stringify({ epoch: "e", first: 1, next, events }), { headers: { "Content-Type": "application/json" } });
  });
});

/**
 * @param {number} first
 * @param {number} last
 * @param {Partial<typeof NO_LIMIT>} [options]
 */
async function read(first, last, options) {
  const { events, hasMore } = await readBetween("http://server/topics/t", { from: timeOf(first), to: timeOf(last) }, { ...NO_LIMIT, ...options });
  return [events[0]?.time, events.at(-1)?.time, events.length, hasMore];
}

test("all events between two times are read, and no page after them", async () => {
  assert.deepEqual(await read(5, 24), [timeOf(5), timeOf(24), 20, false]);
  assert.equal(asked, 3);
  assert.deepEqual(await read(-1000, 1000), [timeOf(1), timeOf(EVENTS), EVENTS, false]);
  assert.deepEqual(await read(60, 70), [undefined, undefined, 0, false]);
});

test("of more events or bytes than fit, the first are read", async () => {
  assert.deepEqual(await read(5, 40, { eventsMax: 12 }), [timeOf(5), timeOf(16), 12, true]);
  assert.deepEqual(await read(5, 40, { eventsMax: 36 }), [timeOf(5), timeOf(40), 36, false]);
  asked = 0;
  assert.deepEqual(await read(5, 40, { bytesMax: 15 * DATA.length }), [timeOf(5), timeOf(19), 15, true]);
  assert.equal(asked, 2, "nothing is read beyond them");
});

test("reading tells how far it is, from the oldest event that is kept", async () => {
  /** @type {number[]} */
  const told = [];
  await read(-1000, EVENTS, { onProgress: (done) => void told.push(Math.round(done * 100)) });
  assert.deepEqual(told, [18, 39, 59, 80, 100]);
});

test("reading stops when it is told to", async () => {
  const reading = new AbortController();
  const stop = (/** @type {number} */ done) => void (done > 0.3 && reading.abort());
  await assert.rejects(read(1, EVENTS, { signal: reading.signal, onProgress: stop }));
  assert.equal(asked, 2);
});

test("no time is asked for that the server does not take for one", () => {
  assert.deepEqual([since(-5), since(BEGIN + 0.5)], [`since=${TIME_MS_MIN}.000`, `since=${BEGIN}.500`]);
});
