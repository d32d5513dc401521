/** What the pages make of the client: states in words, counts, pauses. What the client itself does is tested in tests/client. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { requestPage, split } from "../../web/transport/page.js";
import { overFrame, overWebSocket } from "../../web/transport/lines.js";
import { reader } from "../../web/transport/reader.js";
import { Reading } from "../../web/transport/reading.js";
import { FakeSocket, page, recorder, settle, world } from "./fakes.js";

const [poll, longPoll, websocket] = [reader("poll"), reader("long-poll"), reader("mux")];
const TOPIC = "http://localhost/below/topics/wind";
// No wait is so short that none is told, or over before the reason for it is there.
mock.method(Math, "random", () => 0.5);

/**
 * @param {import("../../web/transport/types.js").Read} read
 * @param {import("./fakes.js").Reply[]} replies
 * @param {object} [more]
 */
async function run(read, replies, more = {}) {
  const { environment, controller, requested, slept } = world(replies);
  const seen = recorder();
  const position = await read(TOPIC, { ...seen.options, pauseMs: 1, waitSeconds: 0.3, ...more, environment, signal: controller.signal });
  return { ...seen, position, slept, asked: requested.map((url) => url.slice(TOPIC.length)) };
}

test("polling reads on from the last position", async () => {
  const { positions, position, asked, counts, states } = await run(poll, [page("e-2", [1, 2]), page("e-2", []), page("e-3", [3])]);
  assert.deepEqual(positions(), ["e-1", "e-2", "e-3"]);
  assert.deepEqual(asked, ["", "?after=e-2", "?after=e-2", "?after=e-3"]);
  assert.deepEqual([position, counts.requests], ["e-3", 4]);
  assert.deepEqual(states.map(({ kind }) => kind), ["connecting", "connected"]);
});

test("long polling waits from the second request on", async () => {
  const { asked } = await run(longPoll, [page("e-1", [1]), page("e-1", []), page("e-2", [2])], { after: "e-0" });
  assert.deepEqual(asked, ["?after=e-0&wait=0", "?after=e-1&wait=0.3", "?after=e-1&wait=0.3", "?after=e-2&wait=0.3"]);
});

for (const [name, read] of /** @type {const} */ ([["polling", poll], ["long polling", longPoll]])) {
  test(`${name}: a failure is waited out, and reading goes on from the position`, async () => {
    const { positions, states } = await run(read, [page("e-1", [1]), new TypeError("Failed to fetch"), page("e-2", [2])]);
    assert.deepEqual(positions(), ["e-1", "e-2"]);
    assert.deepEqual(states.map(({ kind }) => kind), ["connecting", "connected", "waiting", "connected"]);
    assert.match(states[2]?.kind === "waiting" ? states[2].reason : "", /the server does not answer/);
  });

  test(`${name}: a problem's detail is what is said, and 404 is asked again after 5 s`, async () => {
    const problem = { type: "/problems/unknown-topic", title: "Not found", status: 404, detail: "there is no topic wind" };
    const { states, slept, positions } = await run(read, [{ status: 404, body: problem }, page("e-1", [1])]);
    assert.deepEqual(states[1], { kind: "waiting", until: 6000, reason: "there is no topic wind", status: 404 });
    assert.deepEqual([slept, positions()], [[5000], ["e-1"]]);
  });

  test(`${name}: an answer of a proxy without its server is none of the server`, async () => {
    const { states } = await run(read, [page("e-1", [1]), { status: 502, body: "<h1>Bad gateway</h1>" }, page("e-2", [2])]);
    assert.deepEqual(states[2]?.kind === "waiting" && states[2].status, null);
  });

  test(`${name}: gaps are told, and repeats counted`, async () => {
    const gap = { reason: "retention", after: "e-2", missed: 7, resume: "e-9" };
    const { positions, counts, gaps } = await run(read, [page("e-2", [1, 2]), page("e-10", [2, 10], gap)]);
    assert.deepEqual([positions(), gaps, counts.repeats], [["e-1", "e-2", "e-10"], [gap], 1]);
  });
}

test("a WebSocket: states, counts, and a position at the end", async () => {
  const { environment, controller } = world([]);
  const seen = recorder();
  const done = websocket(TOPIC, { ...seen.options, after: "e-1", environment, signal: controller.signal });
  await settle();
  const [socket] = FakeSocket.opened;
  assert.deepEqual([socket?.url, socket?.protocol, socket?.sent], ["ws://localhost/below/ws", "anemone.v1", ["GET 0 /topics/wind?after=e-1"]]);
  socket?.say("100 0 e-1");
  socket?.say('206 0 e-2 500\n{"speed":"ü"}');
  controller.abort();
  assert.equal(await done, "e-2");
  assert.deepEqual(seen.positions(), ["e-2"]);
  assert.deepEqual(seen.counts, { repeats: 0, requests: 1, bytes: 9 + 14 + 14 });
  assert.deepEqual(seen.states.map(({ kind }) => kind), ["connecting", "connected"]);
});

test("a plain WebSocket gives the client lines, and its messages are counted", async () => {
  const { environment, controller } = world([]);
  const seen = recorder();
  const read = reader("ndjson", { fetch: ({ WebSocket }) => overWebSocket(WebSocket) });
  const done = read(TOPIC, { ...seen.options, after: "e-1", environment, signal: controller.signal });
  await settle(() => FakeSocket.opened.length > 0);
  const [socket] = FakeSocket.opened;
  assert.deepEqual([socket?.url, socket?.protocol], [`${TOPIC.replace("http", "ws")}?after=e-1`, "anemone.events"]);
  for (const line of ['{"position":"e-1"}', '{"position":"e-2","time":500,"data":1}', '{"gap":{"reason":"retention","after":"e-2","missed":3,"resume":"e-5"}}']) socket?.say(line);
  await settle();
  controller.abort();
  assert.equal(await done, "e-5");
  assert.deepEqual([seen.positions(), seen.gaps.map(({ missed }) => missed)], [["e-2"], [3]]);
  assert.deepEqual(seen.counts, { repeats: 0, requests: 1, bytes: 18 + 38 + 70 });
});

test("a frame gives the client lines, and is removed at the end", async () => {
  const { environment, controller } = world([]);
  const seen = recorder();
  /** @type {{ url: string, lines: import("../../web/transport/lines.js").Lines }[]} */
  const opened = [];
  let removed = 0;
  const open = (/** @type {string} */ url, /** @type {import("../../web/transport/lines.js").Lines} */ lines) => {
    opened.push({ url, lines });
    return () => void (removed += 1);
  };
  const done = reader("ndjson", { fetch: () => overFrame(open) })(TOPIC, { ...seen.options, environment, signal: controller.signal });
  await settle(() => opened.length > 0);
  assert.deepEqual(opened.map(({ url }) => url), [TOPIC]);
  for (const line of ['{"position":"e-1"}', '{"position":"e-2","time":500,"data":1}']) opened[0]?.lines.push(line);
  await settle();
  assert.equal(removed, 0);
  controller.abort();
  assert.equal(await done, "e-2");
  assert.deepEqual([seen.positions(), removed > 0], [["e-2"], true]);
});

test("why a WebSocket does not open is asked over HTTP", { timeout: 60_000 }, async () => {
  for (const { reply, reason } of [
    { reply: { status: 404, body: { type: "/problems/unknown-topic", detail: "there is no topic wind" } }, reason: /^there is no topic wind$/ },
    { reply: page("e-1", []), reason: /^HTTP works but the WebSocket does not open/ },
  ]) {
    const { environment, controller, requested } = world(Array(50).fill(reply)); // asked after each try
    FakeSocket.isOpening = false;
    const seen = recorder();
    const done = websocket(TOPIC, { ...seen.options, environment, signal: controller.signal });
    await settle(() => seen.states.at(-1)?.kind === "waiting");
    const state = seen.states.at(-1);
    assert.match(state?.kind === "waiting" ? state.reason : JSON.stringify(state), reason);
    assert.deepEqual(requested.slice(0, 1), [`${TOPIC}?after=latest`]);
    controller.abort();
    await done;
  }
});

test("where no WebSocket passes, events come another way", async () => {
  const { environment, controller } = world([new TypeError("Failed to fetch"), page("e-2", [2]), page("e-2", [2])]);
  FakeSocket.isOpening = false;
  const { fetch } = environment;
  // Streams are refused by something on the way.
  environment.fetch = async (url, init) =>
    new Headers(init?.headers).get("accept") === "text/event-stream" ? new Response("<html>", { headers: { "content-type": "text/html" } }) : await fetch(url, init);
  const seen = recorder();
  const done = reader()(TOPIC, { ...seen.options, after: "e-1", environment, signal: controller.signal });
  while (seen.events.length === 0) await settle();
  controller.abort();
  assert.equal(await done, "e-2");
  assert.deepEqual(seen.positions(), ["e-2"]);
});

test("a page is requested, or the reason said", async () => {
  const { environment, controller } = world([page("e-2", [1, 2]), { status: 404, body: { type: "/problems/unknown-topic", detail: "no topic" } }, { body: {} }]);
  const options = { signal: controller.signal, timeoutMs: 60_000, environment };
  assert.equal((await requestPage(`${TOPIC}?limit=2`, options)).page.next, "e-2");
  await assert.rejects(() => requestPage(TOPIC, options), { message: "no topic", status: 404 });
  await assert.rejects(() => requestPage(TOPIC, options), { message: "the reply is not a page of events" });
});

test("a topic's URL has the server before it", () => {
  assert.deepEqual(split(TOPIC), { base: "http://localhost/below/", path: "topics/wind" });
});

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
