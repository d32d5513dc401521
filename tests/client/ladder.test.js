/**
 * The choice of a transport: what is blocked is left within 3 s, what works again is taken again, and no event is lost
 * meanwhile. On the real server, through a relay.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { kill, numbersTo, ownAddress, publish, serve, until } from "../e2e/support.js";
import { CUTS, SEED, publishThroughCuts } from "./history.js";
import { ONLY_POLLS, ONLY_POLLS_IN_SILENCE, Relay, seeded } from "./relay.js";

/** @typedef {import("../../clients/js/src/anemone-client/types.js").Options} Options */

/** @type {import("../e2e/support.js").Server} */ let server;
/** @type {(() => unknown)[]} */ let cleanups = [];

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
});
after(() => kill(server));
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/**
 * A relay, and a client that reads a topic through it.
 * @param {string} name
 * @param {import("./relay.js").Weather} weather
 * @param {Options} [options]
 */
async function reading(name, weather, options) {
  const relay = await Relay.start(server.origin, seeded(SEED));
  relay.weather = weather;
  const client = connect(relay.origin, { WebSocket, pollMs: 20, random: () => 0.1, ...options });
  cleanups.push(() => client.close(), () => relay.stop());
  /** @type {number[]} */ const numbers = [];
  /** @type {string[]} */ const opened = [];
  /** @type {string[]} */ const errors = [];
  const topic = client.topic(name, { after: "earliest" });
  topic.onmessage = ({ data }) => numbers.push(data.n);
  topic.onopen = ({ transport }) => opened.push(transport);
  topic.onerror = ({ code }) => errors.push(code);
  const has = (/** @type {number} */ last) => until(`event ${last} of ${numbers}: ${errors}`, () => numbers.at(-1) === last);
  return { relay, client, topic, numbers, opened, errors, has, url: `${server.origin}/topics/${name}` };
}

test("nothing in the way: a multiplexed WebSocket", async () => {
  const { client, has, url, opened } = await reading("scratch-open", {});
  await publish(url, 1, 3);
  await has(3);
  assert.deepEqual(opened, ["mux"]);
  assert.equal(client.diagnosis.transport, "mux");
  const { data } = await client.call("GET", "/topics/scratch-open?after=-2");
  assert.deepEqual(data.events.map((/** @type {any} */ event) => event.data.n), [2, 3]);
  assert.deepEqual(client.diagnosis.tries.map(({ transport, code }) => [transport, code]), [["mux", undefined]]);
});

test("without WebSocket, SSE", async () => {
  const { client, has, url, opened } = await reading("scratch-refused", { upgrades: "refuse" }, { betterMs: 1e9 });
  await publish(url, 1, 3);
  await has(3);
  assert.deepEqual(opened, ["sse"]);
  assert.deepEqual(client.diagnosis.tries.map(({ transport, code }) => [transport, code]), [["mux", "blocked"], ["sse", undefined]]);
  // Calls take the same way.
  assert.deepEqual((await client.call("GET", "/messages/testing")).data, { id: "testing" });
});

test("a WebSocket that gets no answer is left after 3 s, and streams that are held back, too", { timeout: 300_000 }, async () => {
  const { client, has, url, opened } = await reading("scratch-held", { upgrades: "swallow", holds: true }, { betterMs: 1e9 });
  await publish(url, 1, 3);
  await has(3);
  assert.deepEqual(opened, ["long-poll"]);
  const { tries } = client.diagnosis;
  assert.deepEqual(tries.map(({ transport }) => transport), ["mux", "sse", "long-poll"]);
  console.log(`left after ${tries.map(({ transport, ms }) => `${transport} ${ms} ms`).join(", ")}`);
  for (const { ms } of tries.slice(0, 2)) assert.ok(ms >= 2900, `left after ${ms} ms`);
});

test("where nothing passes but polls, each of the others is left after 3 s", { timeout: 300_000 }, async () => {
  const { client, has, url, opened } = await reading("scratch-silence", ONLY_POLLS_IN_SILENCE, { betterMs: 1e9 });
  await publish(url, 1, 3);
  await has(3);
  assert.deepEqual(opened, ["poll"]);
  const { tries } = client.diagnosis;
  assert.deepEqual(tries.map(({ transport }) => transport), ["mux", "sse", "long-poll", "poll"]);
  console.log(`left after ${tries.map(({ transport, ms }) => `${transport} ${ms} ms`).join(", ")}`);
  for (const { ms } of tries.slice(0, 3)) assert.ok(ms >= 2900, `left after ${ms} ms`);
});

test(`where all that is better than a poll breaks, ${CUTS} cuts lose nothing, and the better transport is taken again`, { timeout: 300_000 }, async () => {
  const { relay, has, url, numbers, opened, topic, client } = await reading("scratch-polls", ONLY_POLLS, { random: () => 0, pollMs: 1, waitSeconds: 0.1, betterMs: 1000 });
  /** @type {unknown[]} */ const gaps = [];
  topic.ongap = (gap) => gaps.push(gap);
  await until(`a poll, after ${opened}`, () => opened.at(-1) === "poll");
  const last = await publishThroughCuts(relay, [url], seeded(SEED), ONLY_POLLS);
  await has(last);
  assert.deepEqual([numbers, gaps], [numbersTo(last), []], `seed ${SEED}`);
  assert.deepEqual(new Set(opened), new Set(["long-poll", "poll"]), "nothing better opens");
  relay.weather = {};
  relay.cut();
  await until("the better transport", () => opened.at(-1) === "mux" && client.diagnosis.transport === "mux");
  await publish(url, last + 1, last + 3);
  await has(last + 3);
  assert.deepEqual([numbers, gaps], [numbersTo(last + 3), []], `seed ${SEED}`);
});

test("back to the better transport, without a loss", { timeout: 300_000 }, async () => {
  const { relay, client, has, url, opened, numbers } = await reading("scratch-back", { upgrades: "refuse" }, { betterMs: 50 });
  await publish(url, 1, 3);
  await has(3);
  relay.weather = {};
  let last = 3;
  while (client.diagnosis.transport !== "mux" || opened.at(-1) !== "mux") {
    last += 1;
    await publish(url, last, last);
  }
  await publish(url, last + 1, last + 3);
  await has(last + 3);
  assert.deepEqual(numbers, numbersTo(last + 3));
  assert.deepEqual(opened, ["sse", "mux"]);
});

for (const transport of /** @type {const} */ (["mux", "sse"])) {
  test(`${transport}: a connection that has died silently is replaced`, { timeout: 300_000 }, async () => {
    const name = `scratch-silent-${transport}`;
    const { relay, topic, has, url, numbers } = await reading(name, {}, { transports: [transport], quietMs: 500 });
    await publish(url, 1, 2);
    await has(2);
    relay.weather.isDead = true;
    /** @type {number[][]} */ const whenSilent = [];
    // It may be silent already, and so be replaced, when the relay dies.
    topic.onerror = ({ code }) => ["silent", "timeout"].includes(code) && whenSilent.push([...numbers]);
    await publish(url, 3, 4);
    await until("the silence to be noticed", () => whenSilent.length > 0);
    relay.weather = {};
    relay.cut();
    await has(4);
    assert.deepEqual([whenSilent[0], numbers], [numbersTo(2), numbersTo(4)], "a connection that is alive brings the events first");
  });
}

test("a server that went and came back is found again, and its new log is told", { timeout: 300_000 }, async () => {
  const listen = await ownAddress();
  let second = await serve("--demo", "--listen", listen);
  cleanups.push(() => kill(second));
  const client = connect(second.origin, { WebSocket });
  cleanups.push(() => client.close());
  const topic = client.topic("scratch-restart", { after: "earliest" });
  /** @type {any[]} */ const events = [];
  topic.onmessage = (event) => events.push(event);
  await publish(`${second.origin}/topics/scratch-restart`, 1, 2);
  await until("two events", () => events.length === 2);
  await kill(second);
  second = await serve("--demo", "--listen", listen);
  await publish(`${second.origin}/topics/scratch-restart`, 3, 4);
  await until("four events", () => events.length === 4);
  assert.deepEqual(events.map(({ data }) => data.n), [1, 2, 3, 4]);
  assert.deepEqual(events[2].gaps.map((/** @type {any} */ { reason, missed }) => [reason, missed]), [["epoch", null]]);
});

test("a reader that takes its time loses nothing, and holds no more than 1,000 events", { timeout: 300_000 }, async () => {
  const COUNT = 5000;
  const body = numbersTo(COUNT).map((n) => `{"n":${n}}`).join("\n");
  for (const part of [0, 1, 2, 3, 4]) {
    const lines = body.split("\n").slice(part * 1000, (part + 1) * 1000).join("\n");
    await fetch(`${server.origin}/topics/scratch-slow`, { method: "POST", headers: { "content-type": "application/x-ndjson" }, body: lines });
  }
  for (const transport of /** @type {const} */ (["mux", "sse", "ndjson", "long-poll", "poll"])) {
    const client = connect(server.origin, { WebSocket, transports: [transport], pollMs: 1 });
    cleanups.push(() => client.close());
    const numbers = [];
    for await (const { data } of client.topic("scratch-slow", { after: "earliest" })) {
      numbers.push(data.n);
      if (data.n % 500 === 0) await sleep(1);
      if (data.n === COUNT) break;
    }
    assert.deepEqual(numbers, numbersTo(COUNT), transport);
  }
});

test("the mode `latest` says how many events it has skipped", async () => {
  for (const transport of /** @type {const} */ (["mux", "sse", "ndjson", "long-poll", "poll"])) {
    const name = `scratch-latest-${transport}`;
    await publish(`${server.origin}/topics/${name}`, 1, 5);
    const client = connect(server.origin, { WebSocket, transports: [transport] });
    cleanups.push(() => client.close());
    for await (const event of client.topic(name, { after: "earliest", mode: "latest" })) {
      assert.deepEqual([event.data.n, event.skipped, event.gaps], [5, 4, undefined], transport);
      break;
    }
  }
});

test("in the mode `latest`, a loop that is slow has the newest event next", async () => {
  for (const transport of /** @type {const} */ (["mux", "sse", "ndjson", "long-poll", "poll"])) {
    const name = `scratch-slow-loop-${transport}`;
    await publish(`${server.origin}/topics/${name}`, 1, 1);
    const client = connect(server.origin, { WebSocket, transports: [transport], pollMs: 1 });
    cleanups.push(() => client.close());
    const topic = client.topic(name, { after: "earliest", mode: "latest" });
    /** @type {number[]} */ const taken = [];
    let told = 0;
    for await (const event of topic) {
      taken.push(event.data.n);
      told += 1 + (event.skipped ?? 0);
      if (event.data.n === 9) break;
      await publish(`${server.origin}/topics/${name}`, 2, 9);
      await until("the newest to be here", () => topic.position?.endsWith("-9") ?? false);
    }
    assert.deepEqual([taken, told], [[1, 9], 9], transport);
  }
});

test("a deleted topic ends", async () => {
  for (const transport of /** @type {const} */ (["mux", "sse", "ndjson", "long-poll", "poll"])) {
    const name = `scratch-deleted-${transport}`;
    await publish(`${server.origin}/topics/${name}`, 1, 1);
    const client = connect(server.origin, { WebSocket, transports: [transport], pollMs: 1 });
    cleanups.push(() => client.close());
    const read = async () => {
      for await (const _ of client.topic(name, { after: "earliest" })) await client.call("DELETE", `/topics/${name}`);
    };
    await assert.rejects(read, { name: "AnemoneError", code: "topic-deleted" }, transport);
  }
});

test("what is there over HTTP alone is called over HTTP", { timeout: 120_000 }, async () => {
  for (const transport of /** @type {const} */ (["mux", "sse"])) {
    const client = connect(server.origin, { transports: [transport], WebSocket });
    const { status, data } = await client.call("GET", "/page/lab/rules.json");
    assert.deepEqual([status, typeof data], [200, "object"], transport);
    await assert.rejects(client.call("GET", "/nothing"), { code: "unknown-path", status: 404 });
    await client.publish("scratch-over-http", 1);
    const page = await client.call("GET", "/topics?topic=scratch-over-http&after=earliest&limit=1");
    assert.deepEqual(page.data.events.map((/** @type {any} */ event) => event.data), [1], transport);
    client.close();
  }
});
