/** The words of the page about connections: pure functions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { behind, busyShare, codeInWords, endedByInWords, hasText, idleInWords, isIdle, lagInWords, lastedInWords, perSecond, placeInWords, reasonInWords, sorted, subjectInWords, summaryInWords, transportInWords, whyInWords, withBehind } from "../../web/page/connections/words.js";

/** @typedef {import("../../web/page/connections/words.js").Connection} Connection */

/** @param {Partial<Connection>} [other] @returns {Connection} */
function one(other = {}) {
  return {
    id: "0-1",
    thread: 0,
    client: "192.0.2.1:4000",
    transport: "sse",
    why: "Accept: text/event-stream",
    protocol: "http/1.1",
    tls: false,
    path: "/topics/wind",
    subprotocol: null,
    age: 5,
    requests: 1,
    readers: 1,
    position: "a-7",
    received_bytes: 120,
    sent_bytes: 3000,
    lag: { events: 0, bytes: 0 },
    reads: [{ path: "/topics/wind", position: "a-7", lag: { events: 0, bytes: 0 } }],
    ...other,
  };
}

/** @param {Partial<import("../../web/page/connections/words.js").Thread>} other */
function thread(other) {
  return { thread: 0, connections: 1, http_connections: 0, waiting: 0, events: 0, received_bytes: 0, sent_bytes: 0, cpu_ms: 0, ...other };
}

test("a transport has its name and its reason", () => {
  assert.equal(transportInWords("forever-frame"), "forever-frame");
  assert.equal(transportInWords("multiplexed"), "multiplexed WebSocket");
  assert.equal(transportInWords("one of tomorrow"), "one of tomorrow");
  assert.equal(whyInWords(one()), "Accept: text/event-stream, HTTP/1.1");
  const more = { protocol: "http/2", tls: true, subprotocol: "anemone.events", compressed: true, closing: true };
  assert.equal(whyInWords(one(more)), "Accept: text/event-stream, HTTP/2, TLS, anemone.events, compressed, closing");
  assert.equal(whyInWords(one({ protocol: "tcp", why: "with anemone.v1", subprotocol: "anemone.v1" })), "with anemone.v1");
});

test("what is read is the topic, or the first of several, or the path that was asked for", () => {
  assert.equal(subjectInWords(one()), "/topics/wind");
  assert.equal(subjectInWords(one({ readers: 3 })), "/topics/wind and 2 more");
  assert.equal(subjectInWords(one({ readers: 0, reads: [], path: "/clock" })), "/clock");
  assert.equal(subjectInWords(one({ readers: 0, reads: [], path: null })), "");
  assert.equal(placeInWords(one()), "at a-7");
  assert.equal(placeInWords(one({ position: null, readers: 3, requests: 3 })), "3 readers");
  assert.equal(placeInWords(one({ position: null, readers: 0, requests: 1 })), "1 open request");
  assert.equal(placeInWords(one({ position: null, readers: 0, requests: 0 })), "");
});

test("a connection over HTTP without a request is idle; one that reads, or is a WebSocket, is not", () => {
  const kept = { transport: "http", requests: 0, readers: 0, reads: [], lag: null, position: null };
  assert.equal(isIdle(one(kept)), true);
  for (const other of [{ requests: 1 }, { requests: 1, readers: 1 }, { transport: "multiplexed" }, { transport: "long-poll" }, { transport: "undecided" }]) assert.equal(isIdle(one({ ...kept, ...other })), false);
  assert.deepEqual([1, 1234].map(idleInWords), ["and 1 idle HTTP connection", "and 1,234 idle HTTP connections"]);
});

test("a lag is in events, and nothing for one that reads nothing", () => {
  assert.equal(lagInWords(one()), "up to date");
  assert.equal(lagInWords(one({ lag: { events: 1, bytes: 9 } })), "1 event");
  assert.equal(lagInWords(one({ lag: { events: 1234, bytes: 9 } })), "1,234 events");
  assert.equal(lagInWords(one({ lag: null })), "");
});

test("who is behind is so in two looks, and not only while an event is on its way", () => {
  const before = [one({ id: "slow", lag: { events: 5, bytes: 1 } }), one({ id: "fast" })];
  const now = [one({ id: "slow", lag: { events: 9, bytes: 1 } }), one({ id: "fast", lag: { events: 1, bytes: 1 } }), one({ id: "new", lag: { events: 2, bytes: 1 } })];
  assert.deepEqual(withBehind(before, now).map(behind), [5, 0, 2]);
  assert.deepEqual(withBehind(before, now).map(lagInWords), ["9 events", "up to date", "2 events"]);
  assert.equal(summaryInWords(withBehind(before, now)), "3 connections, 3 readers, 2 behind");
});

test("an order puts the largest number or the first text at the top, and can be reversed", () => {
  const all = [one({ id: "a", age: 1, client: "192.0.2.10:1" }), one({ id: "b", age: 3, client: "192.0.2.9:1" }), one({ id: "c", age: 1, client: "192.0.2.10:1" })];
  const ids = (/** @type {Connection[]} */ list) => list.map(({ id }) => id).join("");
  assert.equal(ids(sorted(all, "age", false)), "bac");
  assert.equal(ids(sorted(all, "age", true)), "acb");
  assert.equal(ids(sorted(all, "client", false)), "bac");
  assert.equal(ids(sorted([one({ id: "s", sent_bytes: 9 }), one({ id: "m", sent_bytes: 99 })], "sent", false)), "ms");
  assert.equal(ids(sorted([one({ id: "n", lag: null }), one({ id: "l", lag: { events: 2, bytes: 0 } }), one({ id: "z" })], "lag", false)), "lzn");
});

test("a search finds what has all its words", () => {
  assert.equal(hasText(one(), "wind 192.0.2.1"), true);
  assert.equal(hasText(one(), "SSE"), true);
  assert.equal(hasText(one(), "text/event-stream thread 0"), true);
  assert.equal(hasText(one(), "wind websocket"), false);
  assert.equal(hasText(one({ client: null, path: null, reads: [] }), "wind"), false);
});

test("the summary counts connections, readers, those behind and what waits for them", () => {
  assert.equal(summaryInWords([]), "0 connections, 0 readers, none behind");
  const slow = one({ lag: { events: 4, bytes: 80 }, queued_bytes: 2500 });
  assert.equal(summaryInWords([one(), slow]), "2 connections, 2 readers, 1 behind, 2.50 kB of output wait");
});

test("a close code has its name in the protocol, and an end its time", () => {
  assert.equal(codeInWords(1008), "close code 1008, policy violation");
  assert.equal(codeInWords(4001), "close code 4001");
  assert.equal(codeInWords(null), "");
  assert.equal(lastedInWords({ time: 65_000, since: 0 }), "1 min 5 s");
  assert.equal(lastedInWords({ time: 65_000, since: null }), "");
});

test("a thread is as busy as its time between two looks, and its counters are rates", () => {
  const before = { time: 1000, thread: thread({ cpu_ms: 100, events: 10, sent_bytes: 0 }) };
  const after = { time: 3000, thread: thread({ cpu_ms: 600, events: 20, sent_bytes: 4000 }) };
  assert.equal(busyShare(before, after), 0.25);
  assert.equal(busyShare(before, { time: 1001, thread: thread({ cpu_ms: 999 }) }), 1);
  assert.equal(busyShare(undefined, after), null);
  assert.equal(busyShare(after, after), null);
  assert.equal(perSecond(before, after, "events"), 5);
  assert.equal(perSecond(before, after, "sent_bytes"), 2000);
  assert.equal(perSecond(after, { time: 9000, thread: thread({}) }, "sent_bytes"), 0, "a server that has restarted");
  assert.equal(perSecond(undefined, after, "events"), null);
});

test("a client that has only left is told from ends that are faults", () => {
  assert.equal(endedByInWords({ by: "client", left: true }), "client, who left");
  for (const by of /** @type {const} */ (["client", "server", "network"])) assert.equal(endedByInWords({ by, left: false }), by);
});

test("the reasons of libraries are told in plain words, and all others as they are", () => {
  assert.equal(reasonInWords("Broken pipe (os error 32)"), "the client had already closed the connection");
  assert.equal(reasonInWords("invalid HTTP method parsed"), "what came was not HTTP");
  for (const reason of ["had enough", "", "no request came in time", "says: Broken pipe (os error 32)"]) assert.equal(reasonInWords(reason), reason);
});
