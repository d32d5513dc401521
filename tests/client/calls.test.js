/** Calls and events that are published: what is made again, how often, and what of a refusal or of no answer. */
import assert from "node:assert/strict";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { until } from "../e2e/support.js";
import { fake, problem, test } from "./fakes.js";

test("a call to another server is refused with its status", async () => {
  const { origin } = await fake(() => ({ status: 404, body: "<h1>404" }));
  const client = connect(origin, { transports: ["poll"] });
  await assert.rejects(() => client.call("GET", "/clock"), { code: "foreign", status: 404 });
  client.close();
});

test("a time that is longer than a call may take is not waited for", async () => {
  const { origin, asked } = await fake(() => problem("overloaded", 503, "later", { "retry-after": "3600" }));
  const client = connect(origin, { transports: ["poll"] });
  await assert.rejects(client.publish("t", 1), { code: "overloaded", retryMs: 3_600_000 });
  assert.equal(asked.length, 1);
  client.close();
});

test("a caller who has less time hears why before it is over", async () => {
  const { origin, asked } = await fake(() => problem("too-many-runs", 503, "later", { "retry-after": "6" }));
  const client = connect(origin, { transports: ["poll"] });
  await assert.rejects(client.call("POST", "/primes", 1, { key: true, triesMs: 5000 }), { code: "too-many-runs" });
  await assert.rejects(client.run("/primes", 1, { triesMs: 5000 }).key, { code: "too-many-runs" });
  assert.equal(asked.length, 2);
  client.close();
});

test("the key of a run is no path", async () => {
  const { origin, asked } = await fake(() => ({ body: {} }));
  const client = connect(origin, { transports: ["poll"] });
  await client.watch("../topics/scratch-a").cancel();
  assert.deepEqual(asked, ["DELETE /runs/..%2Ftopics%2Fscratch-a"]);
  client.close();
});

test("a call that may have been carried out is not made again without a key", async () => {
  let count = 0;
  const { origin, asked } = await fake(() => ((count += 1) < 3 ? undefined : { status: 201, body: { id: "1" } }));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  for (const method of ["POST", "post", "patch", "LOCK"]) {
    count = 0;
    asked.length = 0;
    await assert.rejects(() => client.call(method, "/messages", { text: "hi" }), { code: "uncertain" });
    assert.deepEqual(asked, [`${method.toUpperCase()} /messages`]);
  }
  count = 1;
  asked.length = 1;
  const { status, data } = await client.call("POST", "/messages", { text: "hi" }, { key: true });
  assert.deepEqual([status, data, asked.length], [201, { id: "1" }, 3]);
  client.close();
});

test("an event is tried again for longer than a call", async () => {
  let count = 0;
  const { origin, asked } = await fake(() => ((count += 1) < 12 ? undefined : { status: 201, body: { position: "e-1" } }));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  assert.equal((await client.publish("scratch-a", 1)).position, "e-1");
  assert.equal(asked.length, 12);
  assert.equal(new Set(asked).size, 1, "the same key");
  count = -100;
  await assert.rejects(() => client.publish("scratch-a", 1), { code: "uncertain" });
  assert.equal(asked.length, 28);
  client.close();
});

test("a server that takes events and is silent is given up after a minute, however few tries that were", async (t) => {
  let late = new AbortController();
  const { origin, asked } = await fake(() => {
    setImmediate(() => late.abort(new DOMException("late", "TimeoutError")));
    return { isOpen: true };
  });
  const { now } = Date;
  let passed = 0;
  // The time of a try passes once the server has been asked.
  t.mock.method(AbortSignal, "timeout", (/** @type {number} */ ms) => {
    passed += ms;
    late = new AbortController();
    return late.signal;
  });
  t.mock.method(Date, "now", () => now() + passed);
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  await assert.rejects(() => client.publish("scratch-a", 1), { code: "uncertain" });
  assert.equal(asked.length, 2);
  client.close();
});

test("a change whose answers were lost is uncertain, also if the last one is that the server is busy", async () => {
  let tries = 0;
  const { origin, asked } = await fake(() => (tries++ > 0 ? problem("overloaded", 503, "later") : undefined));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  await assert.rejects(() => client.call("PATCH", "/messages/1", {}, { key: "k" }), { code: "uncertain" });
  assert.equal(asked.length, 16);
  tries = -Infinity; // every answer is lost
  for (const method of ["PUT", "DELETE"]) await assert.rejects(() => client.call(method, "/messages/1", {}), { code: "uncertain" });
  await assert.rejects(() => client.call("GET", "/messages/1"), { code: "unreachable" });
  client.close();
});

test("a reply may be empty", async () => {
  const { origin, asked } = await fake(() => ({}));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  assert.equal((await client.call("POST", "/empty")).status, 200);
  assert.equal(asked.length, 1);
  client.close();
});

test("a DELETE whose answer is lost is made again with the same key", async () => {
  /** @type {unknown[]} */
  const keys = [];
  const { origin } = await fake(({ headers }) => (keys.push(headers["idempotency-key"]) < 2 ? undefined : { body: { id: "1" } }));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  assert.equal((await client.call("DELETE", "/messages/1")).status, 200);
  assert.match(String(keys[0]), /./);
  assert.equal(keys[1], keys[0]);
  client.close();
});

test("a call is not made again after a refusal that does not pass", async () => {
  const { origin, asked } = await fake(() => problem("unknown-record", 404, "there is no record"));
  const client = connect(origin, { transports: ["poll"] });
  await assert.rejects(() => client.call("GET", "/messages/1"), { code: "unknown-record", message: "there is no record" });
  assert.equal(asked.length, 1);
  client.close();
});

test("a call that was answered is over, whatever its signal does later", async () => {
  /** @type {string[]} */ const messages = [];
  const { origin } = await fake(() => ({}), {
    onMessage: (say, message) => {
      messages.push(message);
      say(`200 ${message.split(" ")[1]}\n{}`);
    },
  });
  const client = connect(origin, { WebSocket, transports: ["mux"] });
  const controller = new AbortController();
  await client.call("GET", "/a", undefined, { signal: controller.signal });
  controller.abort();
  await client.call("GET", "/b");
  assert.deepEqual(messages, ["GET 0 /a", "GET 1 /b"]);
  const late = client.call("GET", "/c", undefined, { signal: controller.signal });
  await assert.rejects(late, { name: "AbortError" });
  client.close();
});

test("a login page is no receipt of an event, and HEAD has no body", async () => {
  const { origin } = await fake(({ method }) => (method === "HEAD" ? { headers: { "content-length": "5" } } : { body: "<html>Please log in</html>" }));
  const client = connect(origin, { transports: ["poll"] });
  await assert.rejects(client.publish("t", 1), { code: "protocol" });
  assert.equal((await client.call("HEAD", "/clock")).status, 200);
  // Of a problem, it has the type alone.
  const refusing = connect((await fake(() => problem("unknown-topic", 404, "there is none", { "retry-after": "5" }))).origin, { transports: ["poll"] });
  await assert.rejects(refusing.call("HEAD", "/topics/none"), { code: "refused", status: 404, retryMs: 5000 });
  await assert.rejects(refusing.call("GET", "/topics/none"), { code: "unknown-topic", status: 404 });
  refusing.close();
  await assert.rejects(client.call("GET", "https://example.org/clock"), { code: "bad-argument" });
  client.close();
});

test("a closed client leaves no call open", async () => {
  const { origin, asked } = await fake(() => ({ body: "", isOpen: true }));
  const client = connect(origin, { transports: ["poll"] });
  const call = client.call("GET", "/slow");
  const taken = (async () => {
    for await (const item of client.items("GET", "/slow")) assert.fail(String(item));
  })();
  await until("both calls", () => asked.length === 2);
  client.close();
  await assert.rejects(call, { code: "closed" });
  await assert.rejects(taken, { code: "closed" });
});

test("`key=` in a query is a key for events alone", async () => {
  const { origin, asked } = await fake(() => undefined);
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  await assert.rejects(() => client.call("POST", "/primes?key=5", 100), { code: "uncertain" });
  assert.equal(asked.length, 1);
  await assert.rejects(() => client.call("GET", "/search?key=a"), { code: "unreachable" });
  assert.equal(asked.filter((line) => line.startsWith("GET /search")).length, 5);
  client.close();
});

test("a PUT has a key of its own, and one that deletes a topic or a run has none and is not repeated", async () => {
  /** @type {Record<string, unknown[]>} */
  const keys = {};
  const { origin } = await fake(({ method, url, headers }) => void (keys[`${method} ${url}`] ??= []).push(headers["idempotency-key"]));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  for (const path of ["/topics/t", "/runs/k"]) {
    await assert.rejects(() => client.call("DELETE", path), { code: "uncertain" });
    assert.deepEqual(keys[`DELETE ${path}`], [undefined], path);
  }
  await assert.rejects(() => client.call("PUT", "/messages/1", {}), { code: "uncertain" });
  const [first, ...others] = keys["PUT /messages/1"] ?? [];
  assert.match(String(first), /^\d+-/);
  assert.deepEqual([others.length, new Set(others)], [15, new Set([first])]);
  // To cancel a run twice is to cancel it. No page of another origin may send a key with that.
  await assert.rejects(() => client.watch("own").cancel(), { code: "uncertain" });
  assert.deepEqual(keys["DELETE /runs/own"], Array(5).fill(undefined));
  client.close();
});

test("a change that is answered by what is not JSON has an answer, which is no JSON", async () => {
  const { origin } = await fake(() => ({ headers: { "content-type": "application/json" }, body: "{not" }));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  for (const method of ["GET", "PUT", "POST", "DELETE"]) await assert.rejects(() => client.call(method, "/x"), { code: "protocol" }, method);
  client.close();
});

test("many calls at once are no reason for a warning, and all end with the client", async () => {
  /** @type {string[]} */ const warnings = [];
  const warn = (/** @type {Error} */ { message }) => void warnings.push(message);
  process.on("warning", warn);
  for (const transport of /** @type {const} */ (["mux", "sse"])) {
    let asked = 0;
    const { origin } = await fake(() => ((asked += 1), { isSilent: true }), { onMessage: () => void (asked += 1) });
    const client = connect(origin, { WebSocket, transports: [transport] });
    const calls = Array.from({ length: 12 }, () => assert.rejects(client.call("GET", "/clock"), { code: "closed" }));
    await until("all calls", () => asked >= 12);
    assert.equal(asked, 12);
    client.close();
    await Promise.all(calls);
  }
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", warn);
  assert.deepEqual(warnings, []);
});
