/** Answers that are in no protocol: an object in the place of a word, a run without a key, pages without events. Each is a typed error, or a pause. */
import assert from "node:assert/strict";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { until } from "../e2e/support.js";
import { fake, test } from "./fakes.js";

/** Whoever makes a text or a number of it gets a TypeError. */
const ODD = '{"toString":1}';
const ITEMS = [`{"position":${ODD}}`, `{"position":["e-2"]}`, `{"gap":{"resume":${ODD}}}`, '{"gap":{"resume":5}}', '{"gap":true}', `{"skipped":${ODD}}`, `{"retry":${ODD}}`];
ITEMS.push(`{"position":"e-2","time":${ODD},"data":1}`, `{"end":{"reason":${ODD}}}`);

/**
 * Returns the code of the first error of a client that reads topics, and its place then.
 * @param {string} origin
 * @param {any} transport
 * @param {string[]} names
 */
async function codeOf(origin, transport, names) {
  const client = connect(origin, { WebSocket, transports: [transport], random: () => 0.01 });
  const error = new Promise((resolve) => (client.onerror = resolve));
  const [topic] = names.map((name) => client.topic(name, { after: "e-1" }));
  const { code, retryAt } = await error;
  client.close();
  return [code, retryAt > 0, topic?.position];
}

test("an object in the place of a word is told, and taken for nothing, by each transport", async () => {
  for (const item of ITEMS) {
    const mux = await fake(() => ({}), { onMessage: (say, message) => ["100 I e-1", `110 I\n${item}`].forEach((text) => say(text.replace("I", String(message.split(" ")[1])))) });
    assert.deepEqual(await codeOf(mux.origin, "mux", ["t"]), ["protocol", true, "e-1"], `mux: ${item}`);
    const ndjson = { headers: { "content-type": "application/x-ndjson" }, body: `{"position":"e-1"}\n${item}\n`, isOpen: true };
    assert.deepEqual(await codeOf((await fake(() => ndjson)).origin, "ndjson", ["t"]), ["protocol", true, "e-1"], `ndjson: ${item}`);
    const sse = { headers: { "content-type": "text/event-stream" }, body: `id: e-1\n\nevent: notice\ndata: ${item}\n\n`, isOpen: true };
    assert.deepEqual(await codeOf((await fake(() => sse)).origin, "sse", ["t"]), ["protocol", true, "e-1"], `sse: ${item}`);
  }
});

test("a page with an object in the place of a word moves no reader, and is asked for again", async () => {
  for (const transport of ["poll", "long-poll"]) {
    let isOdd = true;
    const { origin, asked } = await fake(({ url }) => {
      const odd = { epoch: "e", next: "e-1", events: [], gap: { resume: { toString: 1 } } };
      const mended = { epoch: "e", next: "e-2", events: [{ offset: 2, time: 1, data: "well" }] };
      return { body: String(url).startsWith("/topics") ? (isOdd ? odd : mended) : {} };
    });
    const client = connect(origin, { transports: [/** @type {any} */ (transport)], random: () => 0.01 });
    const topic = client.topic("t", { after: "e-1" });
    topic.onerror = ({ code }) => {
      assert.equal(code, "protocol");
      isOdd = false;
    };
    for await (const { data } of topic) {
      assert.equal(data, "well");
      break;
    }
    assert.ok(asked.every((line) => !line.startsWith("GET /topics") || line.includes("after=e-1")), `${asked}`);
    client.close();
  }
});

test("a stream of several topics whose token or end is no text is told as such", async () => {
  for (const item of [`{"position":${ODD}}`, '{"position":5}', `{"end":{"reason":"failed","problem":{"status":${ODD}}}}`]) {
    const { origin } = await fake(() => ({ headers: { "content-type": "application/x-ndjson" }, body: `{"position":"a:e-1,b:1"}\n${item}\n`, isOpen: true }));
    assert.equal((await codeOf(origin, "ndjson", ["a", "b"]))[0], "protocol", item);
  }
});

/** @typedef {{ started?: unknown, events?: string[], state?: unknown }} RunAnswers */

/**
 * Returns what a run that is answered so comes to: its result, its partial results, and its cancelling.
 * @param {RunAnswers} answers
 * @param {string} [type] of the first answer
 */
async function outcomesOf({ started = { key: "k" }, events = [], state }, type = "application/json") {
  const { origin } = await fake(({ method, url }) => {
    if (method === "POST") return { status: 202, headers: { "content-type": type }, body: started };
    if (method === "DELETE" || String(url).includes("?state")) return { body: state };
    const lines = events.map((data, index) => `{"position":"e-${index + 1}","time":1,"data":${data}}\n`).join("");
    return { headers: { "content-type": "application/x-ndjson" }, body: `{"position":"e-0"}\n${lines}{"end":{"reason":"ended"}}\n` };
  });
  const client = connect(origin, { transports: ["ndjson"], random: () => 0.01 });
  const run = client.run("/x");
  const partials = async () => {
    const all = [];
    for await (const partial of run) all.push(partial);
    return all;
  };
  const told = [];
  for (const outcome of [() => run.result, partials, () => run.cancel()]) {
    told.push(await outcome().catch((/** @type {any} */ error) => `${error.name} ${error.code}`));
  }
  client.close();
  return told;
}

test("a run that is answered in no protocol fails with a code, however it is asked", async () => {
  const fault = "AnemoneError protocol";
  for (const started of ["", null, {}, { key: 5 }, { key: {} }]) assert.deepEqual(await outcomesOf({ started }), [fault, fault, fault], JSON.stringify(started));
  assert.deepEqual(await outcomesOf({ started: "<html>" }, "text/html"), [fault, fault, fault]);
  for (const event of ["5", "null", '"x"']) assert.deepEqual(await outcomesOf({ events: [event], state: { state: "done" } }), [fault, fault, { state: "done" }], event);
  for (const state of [null, 5, "done"]) assert.deepEqual(await outcomesOf({ events: ["{}"], state }), [fault, [], fault], JSON.stringify(state));
  // It is over, and has no outcome.
  assert.deepEqual(await outcomesOf({ events: ["{}"], state: { state: "running" } }), [fault, [], { state: "running" }]);
  const failed = "AnemoneError run-failed";
  for (const problem of ["null", "5", `{"type":5,"detail":${ODD}}`]) {
    assert.deepEqual((await outcomesOf({ events: [`{"state":"failed","problem":${problem}}`], state: {} })).slice(0, 2), [failed, failed], problem);
  }
  assert.deepEqual(await outcomesOf({ events: ['{"partial":1}', '{"state":"done","result":2}'], state: {} }), [2, [1], {}]);
});

test("a long poll whose pages move and bring nothing new is polled", async (t) => {
  t.mock.method(performance, "now", () => 0); // the answers are at once, however slow the machine is
  /** @type {((asked: number) => object)[]} */
  const kinds = [(asked) => ({ next: `e-${asked}`, events: [] }), (asked) => ({ next: `e${asked}-0`, events: [] }), (asked) => ({ next: `e-${asked % 2}`, events: [{ offset: 1, time: 1, data: 1 }] })];
  for (const kind of kinds) {
    const { origin, asked } = await fake(() => ({ body: { epoch: "e", ...kind(asked.length) } }));
    const client = connect(origin, { transports: ["long-poll"], pollMs: 1e9 });
    client.topic("t", { after: "e-1" });
    await until("the second answer", () => asked.length === 2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(asked.length, 2, String(kind));
    client.close();
  }
});

test("a reply of items that does not begin is given up", async (t) => {
  const { origin } = await fake(() => ({ isSilent: true }));
  const { timeout } = AbortSignal;
  t.mock.method(AbortSignal, "timeout", (/** @type {number} */ ms) => timeout.call(AbortSignal, ms / 1000));
  const client = connect(origin, { transports: ["sse"] });
  await assert.rejects(() => client.items("GET", "/slow").next(), { name: "AnemoneError", code: "timeout" });
  client.close();
});
