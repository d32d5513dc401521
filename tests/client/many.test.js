/**
 * Several topics on one stream, where no WebSocket opens: one request for all, whoever joins or leaves, and no event is
 * lost, comes twice, or out of order. On the real server, through a relay.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { connect } from "../../clients/js/src/client.js";
import { becomes, folder, kill, numbersTo, publish, remove, serve, until } from "../e2e/support.js";
import { CUTS, SEED, publishThroughCuts } from "./history.js";
import { Relay, seeded } from "./relay.js";

/** @typedef {import("../../clients/js/src/anemone-client/types.js").Options} Options */
/** @typedef {import("../../clients/js/src/client.js").Client} Client */

/** @type {import("../e2e/support.js").Server} */ let server;
/** @type {(() => unknown)[]} */ const cleanups = [];

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
});
after(() => kill(server));
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/**
 * @param {string} name
 * @param {string} [origin]
 */
const url = (name, origin = server.origin) => `${origin}/topics/${name}`;

/**
 * Reads a topic, and keeps what it is told.
 * @param {Client} client
 * @param {string} name
 * @param {import("../../clients/js/src/anemone-client/types.js").ReadOptions} [options]
 */
function read(client, name, options = { after: "earliest" }) {
  const topic = client.topic(name, options);
  const told = { name, topic, numbers: /** @type {number[]} */ ([]), gaps: /** @type {unknown[]} */ ([]), errors: /** @type {string[]} */ ([]), closed: /** @type {unknown[]} */ ([]) };
  topic.onmessage = ({ data }) => told.numbers.push(data.n);
  topic.ongap = (gap) => told.gaps.push(gap);
  topic.onerror = ({ code }) => told.errors.push(code);
  topic.onclose = (error) => told.closed.push(error?.code);
  return told;
}

/** @typedef {ReturnType<typeof read>} Told */

/**
 * @param {Told} told
 * @param {number} last
 */
async function has({ name, numbers, gaps, errors }, last) {
  await until(`event ${last} of ${name}`, () => numbers.at(-1) === last).catch((error) => {
    throw new Error(`${error.message}: ${numbers} ${errors}`);
  });
  assert.deepEqual([numbers, gaps], [numbersTo(last), []], name);
}

/**
 * A client whose requests are kept.
 * @param {Options} options
 * @param {string} [origin]
 */
function asking(options, origin = server.origin) {
  /** @type {URL[]} */
  const asked = [];
  /** @type {typeof fetch} */
  const counting = (input, init) => {
    asked.push(new URL(String(input)));
    return fetch(input, init);
  };
  const client = connect(origin, { fetch: counting, random: () => 0, pollMs: 5, ...options });
  cleanups.unshift(() => client.close());
  return { client, asked, topicsOf: () => asked.map(({ searchParams }) => searchParams.getAll("topic").length) };
}

/** @param {string} name */
async function readersOf(name) {
  const { readers } = await (await fetch(`${url(name)}/readers`)).json();
  return readers.map((/** @type {any} */ { client }) => client);
}

for (const transport of /** @type {const} */ (["sse", "ndjson", "long-poll", "poll"])) {
  test(`${transport}: ${CUTS} cuts lose nothing of several topics, repeat nothing, and keep the order`, { timeout: 300_000 }, async () => {
    const random = seeded(SEED);
    const relay = await Relay.start(server.origin, random);
    cleanups.push(() => relay.stop());
    const { client, topicsOf } = asking({ transports: [transport], waitSeconds: 0.2, pollMs: 1 }, relay.origin);
    const names = ["a", "b", "c", "d"].map((letter) => `scratch-cuts-${transport}-${letter}`);
    const all = names.map((name) => read(client, name));
    await until("the beginnings", () => all.every(({ topic }) => topic.position?.includes("-") && topic.position !== "earliest"));
    const last = await publishThroughCuts(relay, names.map((name) => url(name)), random);
    for (const told of all) {
      await has(told, last);
      assert.deepEqual(told.closed, []);
    }
    assert.ok(relay.cuts >= CUTS);
    assert.ok(Math.max(...topicsOf()) === names.length, `seed ${SEED}: ${topicsOf()}`);
  });

  test(`${transport}: topics join and leave one stream, and nothing is lost`, { timeout: 300_000 }, async () => {
    const { client, asked } = asking({ transports: [transport], waitSeconds: 1 });
    /** @type {Told[]} */
    const all = [];
    const name = (/** @type {number} */ index) => `scratch-join-${transport}-${index}`;
    let last = 0;
    for (let index = 0; index < 8; index += 1) {
      all.push(read(client, name(index)));
      last += 5;
      // Into all topics, also those that join later, while the stream begins again.
      await Promise.all(Array.from({ length: 8 }, (_, each) => publish(url(name(each)), last - 4, last)));
      if (index === 5) all.splice(1, 1)[0]?.topic.close();
    }
    for (const told of all) await has(told, last);
    if (transport !== "poll") {
      await until("one stream", async () => new Set((await Promise.all(all.map((told) => readersOf(told.name)))).flat()).size === 1);
    }
    const topics = () => asked.at(-1)?.searchParams.getAll("topic").length;
    await becomes("the topics of the newest request", topics, 7);
    // A token leaves out what it says already.
    assert.match(String(asked.at(-1)?.searchParams.get("after")), /^scratch-join-[a-z-]+-0:\w+-\d+,.*:\d+,/);
  });
}

test("a token that is too long is divided, and so are too many topics", { timeout: 300_000 }, async () => {
  const directory = await folder("anemone-many-");
  const config = join(directory, "anemone.toml");
  await writeFile(config, '[limits]\ntoken_bytes_max = "200"\nstream_topics_max = 20\n');
  const strict = await serve("--demo", "--listen", "127.0.0.1:0", "--config", config);
  cleanups.push(() => kill(strict), () => remove(directory));
  const { client, topicsOf } = asking({ transports: ["long-poll"], waitSeconds: 1 }, strict.origin);
  // 24 topics, of which 6 fit in 200 bytes.
  const all = Array.from({ length: 24 }, (_, index) => read(client, `scratch-a-rather-long-name-${index}`));
  await Promise.all(all.map(({ name }) => publish(url(name, strict.origin), 1, 2)));
  for (const told of all) {
    await has(told, 2);
    assert.deepEqual(told.closed, []);
  }
  await Promise.all(all.map(({ name }) => publish(url(name, strict.origin), 3, 4)));
  for (const told of all) await has(told, 4);
  assert.ok(topicsOf().slice(-4).every((count) => count <= 6), `${topicsOf()}`);
});

for (const transport of /** @type {const} */ (["sse", "long-poll"])) {
  test(`${transport}: what is refused or deleted ends alone`, { timeout: 300_000 }, async () => {
    const { client } = asking({ transports: [transport], waitSeconds: 1 });
    const name = (/** @type {string} */ letter) => `scratch-alone-${transport}-${letter}`;
    await publish(url(name("a")), 1, 1);
    await publish(url(name("b")), 1, 1);
    const [a, b, missing, ahead] = [read(client, name("a")), read(client, name("b")), read(client, "no-such-topic"), read(client, name("c"), { after: "xyz-~" })];
    await until("the refusals", () => missing.closed.length > 0 && ahead.closed.length > 0);
    assert.deepEqual([missing.closed, ahead.closed], [["unknown-topic"], ["bad-parameter"]]);
    await has(a, 1);
    await has(b, 1);
    await fetch(url(name("a")), { method: "DELETE" });
    await until("the deletion", () => a.closed.length > 0);
    assert.deepEqual(a.closed, ["topic-deleted"]);
    await publish(url(name("b")), 2, 3);
    await has(b, 3);
    assert.deepEqual([b.errors, b.closed], [[], []]);
  });
}

test("two readers of one topic, another mode and a time have streams of their own", { timeout: 300_000 }, async () => {
  const { client } = asking({ transports: ["sse"] });
  await publish(url("scratch-own"), 1, 3);
  const [first, second, since] = [read(client, "scratch-own"), read(client, "scratch-own"), read(client, "scratch-own", { since: "1h" })];
  const latest = read(client, "scratch-own", { after: "earliest", mode: "latest" });
  for (const told of [first, second, since]) await has(told, 3);
  await until("the latest", () => latest.numbers.length > 0);
  assert.deepEqual(latest.numbers, [3]);
});

test("a quiet topic beside a busy one is not taken for dead", { timeout: 300_000 }, async () => {
  const { client } = asking({ transports: ["ndjson"], quietMs: 1000 });
  const [busy, quiet] = [read(client, "scratch-busy"), read(client, "scratch-quiet")];
  await until("the beginnings", () => [busy, quiet].every(({ topic }) => topic.position?.endsWith("-0")));
  const begun = Date.now();
  let last = 0;
  while (Date.now() - begun < 2500) await publish(url("scratch-busy"), ++last, last);
  await has(busy, last);
  // A machine that stands still for 1 s makes both silent, and never the quiet one alone.
  assert.deepEqual(quiet.errors, busy.errors);
});
