/**
 * Tokens that expire while topics are read, again and again, in Node and in Chromium: a new one is asked for, and reading goes on where
 * it was. A token that is not to be had, or is refused again, is told, and nothing is asked for in a fast loop. On the real server.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { numbersTo, publish, until } from "../e2e/support.js";
import { browser } from "./browser.js";
import { Gate } from "./gate.js";
import { read, server } from "./page.js";

const STEP_MS_MAX = 300_000;
const EXPIRIES = process.env.TEST_SOAK ? 200 : 12;
const TRANSPORTS = /** @type {const} */ (["sse", "ndjson", "long-poll", "poll"]);

/** @typedef {{ newest: () => unknown, told: () => Promise<{ numbers: number[], gaps: unknown[], closed: string[] }> }} Reader */

/**
 * Publishes while the token expires; each time, some of the events come before and some after it.
 * @param {Gate} gate
 * @param {string} name
 * @param {Reader} reader
 */
async function publishThroughExpiries(gate, name, { newest, told }) {
  let last = 0;
  for (let count = 0; count < EXPIRIES; count += 1) {
    const publishing = publish(`${server.origin}/topics/${name}`, last + 1, last + 6);
    await until("one of the events", async () => Number(await newest()) > last);
    // The first event came with the first token: to count before it would count that one as the next.
    const { issued } = gate;
    gate.expire();
    await publishing;
    last += 6;
    await until("a new token", () => gate.issued > issued);
  }
  await until(`event ${last}`, async () => (await newest()) === last);
  const { numbers, gaps, closed } = await told();
  assert.deepEqual([numbers, gaps, closed], [numbersTo(last), [], []]);
  // The first token, and one for each that has expired.
  assert.equal(gate.issued, EXPIRIES + 1);
  assert.ok(gate.refused >= EXPIRIES, `${gate.refused} requests were refused`);
}

for (const transport of TRANSPORTS) {
  test(`Node, ${transport}: a token that expires ${EXPIRIES} times loses nothing, and repeats nothing`, { timeout: STEP_MS_MAX }, async () => {
    const gate = await Gate.start(server.origin);
    const token = async () => await (await fetch(`${gate.origin}/token`)).text();
    const client = connect(gate.origin, { transports: [transport], token, random: () => 0, pollMs: 1 });
    const name = `scratch-token-${transport}`;
    /** @type {number[]} */ const numbers = [];
    /** @type {unknown[]} */ const gaps = [];
    /** @type {string[]} */ const closed = [];
    const topic = client.topic(name, { after: "earliest" });
    topic.onmessage = ({ data }) => numbers.push(data.n);
    topic.ongap = (gap) => gaps.push(gap);
    topic.onclose = (error) => closed.push(String(error?.code));
    await publishThroughExpiries(gate, name, { newest: () => numbers.at(-1), told: async () => ({ numbers, gaps, closed }) });
    client.close();
    await gate.stop();
  });

  test(`Chromium, ${transport}: a token that expires ${EXPIRIES} times loses nothing, and repeats nothing`, { timeout: STEP_MS_MAX }, async () => {
    const gate = await Gate.start(server.origin);
    const context = await browser.newContext();
    const name = `scratch-page-token-${transport}`;
    const reader = await read(await context.newPage(), gate.origin, name, { transports: [transport], pollMs: 1, tokenFrom: "/token" });
    await publishThroughExpiries(gate, name, reader);
    await context.close();
    await gate.stop();
  });
}

test("many topics and calls at once ask for one token", async () => {
  const gate = await Gate.start(server.origin);
  const client = connect(gate.origin, { token: async () => gate.issue(), random: () => 0 });
  const names = ["a", "b", "c"].map((letter) => `scratch-token-${letter}`);
  /** @type {Map<string, number[]>} */
  const numbers = new Map(names.map((name) => [name, []]));
  for (const name of names) client.topic(name, { after: "earliest" }).onmessage = ({ data }) => numbers.get(name)?.push(data.n);
  for (const round of [1, 2, 3]) {
    if (round > 1) gate.expire();
    await Promise.all(names.map((name) => client.publish(name, { n: round })));
    await until(`event ${round} of each`, () => [...numbers.values()].every((all) => all.at(-1) === round));
    assert.equal(gate.issued, round);
  }
  assert.deepEqual([...numbers.values()], Array(3).fill([1, 2, 3]));
  client.close();
  await gate.stop();
});

test("a client with a token begins without WebSocket, and one that is told to try it is refused there", async () => {
  const gate = await Gate.start(server.origin);
  await publish(`${server.origin}/topics/scratch-token-socket`, 1, 1);
  for (const { transports, tried } of /** @type {const} */ ([{ transports: undefined, tried: ["sse"] }, { transports: ["mux", "sse"], tried: ["mux", "sse"] }])) {
    const client = connect(gate.origin, { WebSocket, token: () => gate.issue(), random: () => 0, ...(transports && { transports: [...transports] }) });
    for await (const { data } of client.topic("scratch-token-socket", { after: "earliest" })) {
      assert.deepEqual(data, { n: 1 });
      break;
    }
    assert.deepEqual(client.diagnosis.tries.map(({ transport }) => transport), tried);
    client.close();
  }
  assert.equal(gate.upgrades, 1);
  await gate.stop();
});

test("a token that is refused again ends the reading, with the words of the refusal", async () => {
  for (const transport of TRANSPORTS) {
    const gate = await Gate.start(server.origin);
    let asked = 0;
    const token = () => {
      asked += 1;
      return gate.issued === 0 ? gate.issue() : "token-1";
    };
    const client = connect(gate.origin, { transports: [transport], token, random: () => 0, pollMs: 1, waitSeconds: 0.1 });
    const name = `scratch-refused-${transport}`;
    await publish(`${server.origin}/topics/${name}`, 1, 1);
    const read = async () => {
      for await (const _ of client.topic(name, { after: "earliest" })) gate.expire();
    };
    await assert.rejects(read, { name: "AnemoneError", code: "unauthorized", status: 401, message: "the token is not valid" }, transport);
    assert.deepEqual([asked, gate.refused], [2, 2], transport);
    client.close();
    await gate.stop();
  }
});

test("a token that is not to be had is told, waited for ever longer, and asked for again until it is there", async () => {
  const gate = await Gate.start(server.origin);
  await publish(`${server.origin}/topics/scratch-no-token`, 1, 2);
  let isSignedOut = false;
  /** @type {number[]} */ const asked = [];
  const token = async () => {
    asked.push(Date.now());
    if (isSignedOut) throw new Error("signed out");
    return gate.issue();
  };
  const client = connect(gate.origin, { token, random: () => 0.02 });
  const topic = client.topic("scratch-no-token", { after: "earliest" });
  /** @type {number[]} */ const numbers = [];
  /** @type {{ code: string, message: string, wait: number }[]} */ const failures = [];
  topic.onmessage = ({ data }) => numbers.push(data.n);
  topic.onerror = ({ code, message, retryAt = 0 }) => code === "token-failed" && failures.push({ code, message, wait: retryAt - Date.now() });
  await until("both events", () => numbers.length === 2);
  isSignedOut = true;
  asked.length = 0;
  gate.expire();
  await until("six failures", () => failures.length === 6);
  // One question for each, and over the transport that was in use.
  assert.ok(asked.length <= 7, `${asked.length} questions`);
  assert.equal(client.diagnosis.transport, "sse");
  assert.ok(failures.every(({ message }) => message.includes("signed out")), failures[0]?.message);
  const last = failures.map(({ wait }) => wait);
  assert.ok(Number(last.at(-1)) > Number(last[0]), `${last}`);
  await assert.rejects(() => client.call("GET", "/messages/testing"), { code: "token-failed", message: /signed out/ });
  isSignedOut = false;
  await publish(`${server.origin}/topics/scratch-no-token`, 3, 4);
  await until("the other events", () => numbers.length === 4);
  assert.deepEqual(numbers, numbersTo(4));
  client.close();
  await gate.stop();
});

test("a token that never comes stalls no call for ever", async () => {
  const gate = await Gate.start(server.origin);
  const client = connect(gate.origin, { token: () => new Promise(() => {}) });
  const end = new AbortController();
  const call = client.call("GET", "/messages/testing", undefined, { signal: end.signal });
  setTimeout(() => end.abort(new Error("enough")));
  await assert.rejects(() => call, /enough/);
  client.close();
  await gate.stop();
});

test("a token that never comes is asked for again", async (t) => {
  const gate = await Gate.start(server.origin);
  await publish(`${server.origin}/topics/scratch-never`, 1, 1);
  const { timeout } = AbortSignal;
  t.mock.method(AbortSignal, "timeout", (/** @type {number} */ ms) => timeout.call(AbortSignal, ms / 100));
  let asked = 0;
  const token = () => ((asked += 1) === 1 ? new Promise((/** @type {(token: string) => void} */ _) => {}) : gate.issue());
  const client = connect(gate.origin, { token, random: () => 0 });
  /** @type {string[]} */ const errors = [];
  client.onerror = ({ code }) => errors.push(code);
  for await (const { data } of client.topic("scratch-never", { after: "earliest" })) {
    assert.deepEqual(data, { n: 1 });
    break;
  }
  assert.deepEqual([errors, asked, client.diagnosis.transport], [["token-failed"], 2, "sse"]);
  client.close();
  await gate.stop();
});

test("a token that takes longer than a connection may is waited for, over the best transport", async () => {
  const gate = await Gate.start(server.origin);
  await publish(`${server.origin}/topics/scratch-slow`, 1, 1);
  const token = () => new Promise((/** @type {(token: string) => void} */ resolve) => setTimeout(() => resolve(gate.issue()), 5900));
  const client = connect(gate.origin, { token });
  /** @type {string[]} */ const errors = [];
  client.onerror = ({ code }) => errors.push(code);
  for await (const { data } of client.topic("scratch-slow", { after: "earliest" })) {
    assert.deepEqual(data, { n: 1 });
    break;
  }
  assert.deepEqual([errors, client.diagnosis.tries.map(({ transport, code }) => [transport, code])], [[], [["sse", undefined]]]);
  client.close();
  await gate.stop();
});
