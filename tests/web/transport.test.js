import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../../web/transport/backoff.js";
import * as longPoll from "../../web/transport/long-poll.js";
import { pageUrl, problemInWords } from "../../web/transport/page.js";
import * as poll from "../../web/transport/poll.js";
import { Sequence } from "../../web/transport/sequence.js";
import * as websocket from "../../web/transport/websocket.js";
import * as either from "../../web/wind/either.js";
import { Reading } from "../../web/wind/reading.js";
import { FakeSocket, page, recorder, settle, world } from "./fakes.js";

const TOPIC = "http://localhost/topics/wind";

/**
 * @param {import("../../web/transport/types.js").Read} read
 * @param {import("./fakes.js").Reply[]} replies
 * @param {{ after?: string }} [more]
 */
async function run(read, replies, more = {}) {
  const { environment, controller, requested, slept } = world(replies);
  const seen = recorder();
  const position = await read(TOPIC, { ...seen.options, ...more, environment, signal: controller.signal });
  return { ...seen, position, slept, asked: requested.map((url) => url.slice(TOPIC.length)) };
}

// --- the sequence ---

test("each event is next, repeated, or after a gap", () => {
  const sequence = new Sequence("e-4");
  assert.equal(sequence.accept("e-5"), "next");
  assert.equal(sequence.accept("e-5"), "repeated");
  assert.equal(sequence.accept("e-3"), "repeated");
  assert.deepEqual(sequence.accept("e-8"), { reason: "unannounced", after: "e-5", missed: 2, resume: "e-8" });
  assert.deepEqual(sequence.accept("f-1"), { reason: "unannounced", after: "e-8", missed: null, resume: "f-1" });
  assert.equal(sequence.position, "f-1");
});

test("an epoch may contain a hyphen", () => {
  const sequence = new Sequence("a-b-4");
  assert.equal(sequence.accept("a-b-5"), "next");
});

test("a reader without a place takes whatever comes first", () => {
  for (const after of [undefined, "latest", "earliest"]) {
    const sequence = new Sequence(after);
    assert.equal(sequence.accept("e-9"), "next");
  }
});

// --- back-off ---

test("waits double from 0.25 s to 5 s, with jitter, and begin anew after success", () => {
  const most = new Backoff(() => 1);
  assert.deepEqual(Array.from({ length: 7 }, () => most.next()), [250, 500, 1000, 2000, 4000, 5000, 5000]);
  most.reset();
  assert.equal(most.next(), 250);
  assert.equal(new Backoff(() => 0).next(), 125);
});

// --- polling and long polling ---

test("polling waits 150 ms after each reply and reads on from the last position", async () => {
  const { positions, position, slept, asked } = await run(poll.read, [page("e-2", [1, 2]), page("e-2", []), page("e-3", [3])]);
  assert.deepEqual(positions(), ["e-1", "e-2", "e-3"]);
  assert.deepEqual(slept, [150, 150, 150]);
  assert.deepEqual(asked, ["", "?after=e-2", "?after=e-2", "?after=e-3"]);
  assert.equal(position, "e-3");
});

test("long polling asks again at once", async () => {
  const read = (/** @type {string} */ url, /** @type {import("../../web/transport/types.js").ReadOptions} */ options) =>
    longPoll.read(url, { ...options, waitSeconds: 0.3 });
  const { slept, asked } = await run(read, [page("e-1", [1]), page("e-1", []), page("e-2", [2])], { after: "e-0" });
  assert.deepEqual(slept, []);
  assert.deepEqual(asked, ["?after=e-0&wait=0", "?after=e-1&wait=0.3", "?after=e-1&wait=0.3", "?after=e-2&wait=0.3"]);
});

test("t4 is the same for every event of a page", async () => {
  const { events } = await run(poll.read, [page("e-3", [1, 2, 3])]);
  assert.deepEqual(events.map(({ received }) => received), [1000, 1000, 1000]);
});

for (const [name, read] of /** @type {const} */ ([["polling", poll.read], ["long polling", longPoll.read]])) {
  test(`${name}: a failure is waited out, and reading goes on from the position`, async () => {
    const network = new TypeError("Failed to fetch");
    const { positions, states, slept, asked } = await run(read, [page("e-1", [1]), network, network, page("e-2", [2])]);
    assert.deepEqual(positions(), ["e-1", "e-2"]);
    assert.deepEqual(slept.filter((ms) => ms !== 150), [250, 500]);
    assert.deepEqual(states.map(({ kind }) => kind), ["connecting", "connected", "waiting", "connecting", "waiting", "connecting", "connected"]);
    assert.ok(asked.slice(1, 4).every((url) => url.startsWith("?after=e-1")));
  });

  test(`${name}: a problem's detail is what is said, and 404 is asked again after 5 s`, async () => {
    const problem = { title: "Not found", status: 404, detail: "there is no topic wind" };
    const { states, slept } = await run(read, [{ status: 404, body: problem }]);
    assert.deepEqual(states[1], { kind: "waiting", until: 6000, reason: "there is no topic wind", status: 404 });
    assert.deepEqual(slept, [5000]);
  });

  test(`${name}: Retry-After is kept`, async () => {
    const { slept } = await run(read, [{ status: 503, body: "busy", headers: { "retry-after": "7" } }]);
    assert.deepEqual(slept, [7000]);
  });

  test(`${name}: an announced gap is told once, before what follows it`, async () => {
    const gap = { reason: "retention", after: "e-1", missed: 8, resume: "e-9" };
    const { gaps, positions } = await run(read, [page("e-1", [1]), page("e-10", [10], gap)]);
    assert.deepEqual(gaps, [gap]);
    assert.deepEqual(positions(), ["e-1", "e-10"]);
  });

  test(`${name}: a new epoch is a gap of unknown size`, async () => {
    const gap = { reason: "epoch", after: "e-5", missed: null, resume: "f-0" };
    const { gaps, positions, position } = await run(read, [page("f-2", [1, 2], gap)], { after: "e-5" });
    assert.deepEqual(gaps, [gap]);
    assert.deepEqual(positions(), ["f-1", "f-2"]);
    assert.equal(position, "f-2");
  });

  test(`${name}: repeats are dropped and counted, silent losses are told`, async () => {
    const { positions, repeats, gaps } = await run(read, [page("e-2", [1, 2]), page("e-5", [2, 5])]);
    assert.deepEqual(positions(), ["e-1", "e-2", "e-5"]);
    assert.equal(repeats(), 1);
    assert.deepEqual(gaps, [{ reason: "unannounced", after: "e-2", missed: 2, resume: "e-5" }]);
  });

  test(`${name}: what is no page is said to be none`, async () => {
    for (const body of ["<html>", "[]", "null", '{"epoch":1}']) {
      const { states } = await run(read, [{ body }]);
      assert.equal(states[1]?.kind === "waiting" && states[1].reason, "the reply is not a page of events");
    }
  });
}

test("the problem's title does where there is no detail", () => {
  assert.equal(problemInWords('{"title":"Gone"}'), "Gone");
  assert.equal(problemInWords("<html>"), null);
  assert.equal(problemInWords("null"), null);
});

test("only what was asked for is in the query", () => {
  assert.equal(pageUrl("/t", undefined), "/t");
  assert.equal(pageUrl("/t", "e-1", 0.3), "/t?after=e-1&wait=0.3");
});

// --- WebSocket ---

/** @param {{ after?: string, replies?: import("./fakes.js").Reply[], quietMs?: number }} [more] */
function openReading({ replies = [], ...more } = {}) {
  const { environment, controller, slept } = world(replies);
  const seen = recorder();
  const done = websocket.read(TOPIC, { ...seen.options, ...more, environment, signal: controller.signal });
  const socket = () => /** @type {FakeSocket} */ (FakeSocket.opened.at(-1));
  return { ...seen, controller, slept, done, socket };
}

test("a WebSocket asks for the subprotocol that carries positions", async () => {
  const { socket, controller, done } = openReading({ after: "e-4" });
  assert.deepEqual([socket().url, socket().protocol], ["ws://localhost/topics/wind?after=e-4", "anemone.events"]);
  controller.abort();
  assert.equal(await done, "e-4");
  assert.ok(socket().closed);
});

test("a quiet WebSocket still learns its position", async () => {
  const { socket, controller, done } = openReading();
  socket().onopen?.();
  socket().say({ position: "e-41" });
  controller.abort();
  assert.equal(await done, "e-41");
});

test("a broken WebSocket comes back and goes on from the last event", async () => {
  const { socket, controller, done, positions, gaps, slept, states } = openReading();
  socket().onopen?.();
  socket().say({ position: "e-1" });
  socket().say({ position: "e-2", time: 1, data: 0 });
  socket().onclose?.({ code: 1006, reason: "" });
  await settle();
  assert.equal(socket().url, "ws://localhost/topics/wind?after=e-2");
  socket().onopen?.();
  socket().say({ position: "e-2" });
  socket().say({ position: "e-3", time: 2, data: 0 });
  controller.abort();
  assert.equal(await done, "e-3");
  assert.deepEqual(positions(), ["e-2", "e-3"]);
  assert.deepEqual([gaps.length, FakeSocket.opened.length], [0, 2]);
  assert.deepEqual(slept, [250]);
  assert.deepEqual(states.map(({ kind }) => kind), ["connecting", "connected", "waiting", "connecting", "connected"]);
});

test("an announced gap is told once, whatever position reading begins with", async () => {
  for (const [begin, more] of /** @type {const} */ ([["e-1", {}], ["e-30", {}], ["e-30", { position: "e-30" }]])) {
    const { socket, controller, done, gaps } = openReading({ after: "e-1" });
    const gap = { reason: "retention", after: "e-1", missed: 29, resume: "e-30" };
    socket().onopen?.();
    socket().say({ position: begin });
    socket().say({ ...more, gap });
    socket().say({ position: "e-31", time: 1, data: 0 });
    controller.abort();
    await done;
    assert.deepEqual(gaps, [gap]);
  }
});

test("unknown messages are ignored", async () => {
  const { socket, controller, done, events } = openReading();
  socket().onopen?.();
  socket().onmessage?.({ data: "not JSON" });
  socket().onmessage?.({ data: new ArrayBuffer(4) });
  socket().say({ hello: 1 });
  socket().say(null);
  controller.abort();
  await done;
  assert.equal(events.length, 0);
});

test("why a WebSocket does not open is asked over HTTP", async () => {
  const replies = [{ status: 404, body: { detail: "there is no topic wind" } }];
  const { socket, controller, done, states } = openReading({ replies });
  socket().onclose?.({ code: 1006, reason: "" });
  await settle();
  assert.equal(states[1]?.kind === "waiting" && states[1].reason, "there is no topic wind");
  controller.abort();
  await done;
});

test("where no WebSocket passes events come by long polls, from the same position", async () => {
  const replies = [page("e-9", []), page("e-2", [2]), page("e-3", [3])];
  const { environment, controller, requested, slept } = world(replies);
  const seen = recorder();
  const done = either.read(TOPIC, { ...seen.options, after: "e-1", environment, signal: controller.signal });
  FakeSocket.opened[0]?.onclose?.({ code: 1006, reason: "" });
  assert.equal(await done, "e-3");
  assert.deepEqual(seen.positions(), ["e-2", "e-3"]);
  const asked = requested.map((url) => url.slice(TOPIC.length));
  assert.deepEqual(asked, ["?after=latest", "?after=e-1&wait=0", "?after=e-2&wait=25", "?after=e-3&wait=25"]);
  assert.deepEqual(seen.states.map(({ kind }) => kind), ["connecting", "connecting", "connected"]);
  assert.equal(slept.length, 1, "what is not opened again is not waited for");
});

test("a silent connection is opened anew, without a wait", async () => {
  const { socket, controller, done, slept } = openReading({ after: "e-1", quietMs: 5 });
  const first = socket();
  first.onopen?.();
  while (FakeSocket.opened.length < 2) await settle();
  assert.ok(first.closed);
  assert.deepEqual(slept, []);
  controller.abort();
  await done;
});

test("close codes have words", () => {
  assert.equal(websocket.closeInWords(1001, ""), "the server is going away");
  assert.equal(websocket.closeInWords(1008, "too slow"), "the server refused by policy: too slow");
  assert.equal(websocket.closeInWords(4000, ""), "the connection was closed with code 4000");
});

// --- pausing ---

test("a reading that was paused goes on from its position", async () => {
  /** @type {(string | undefined)[]} */
  const begun = [];
  /** @type {import("../../web/transport/types.js").Read} */
  const read = (_, { after, signal }) => {
    begun.push(after);
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(`e-${begun.length}`)));
  };
  const seen = recorder();
  const reading = new Reading(read, TOPIC, { ...seen.options, after: "e-0" });
  reading.resume();
  reading.resume();
  await settle();
  reading.pause();
  reading.resume();
  await settle();
  reading.pause();
  assert.deepEqual(begun, ["e-0", "e-1"]);
  assert.deepEqual(seen.states, [{ kind: "paused" }, { kind: "paused" }]);
});
