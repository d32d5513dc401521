/** What a caller gets wrong, and what a caller sees: options that do not exist, the words of errors, and an event on the console. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { inspect } from "node:util";
import { runInNewContext } from "node:vm";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { until } from "../e2e/support.js";
import { fake, page, problem, test } from "./fakes.js";

const SOURCES = "clients/js/src/anemone-client";

test("an option that does not exist is refused by its name", async () => {
  const misspelt = (/** @type {string} */ name) => ({ name: "AnemoneError", code: "bad-argument", message: `${name} is no option, or no number from 0` });
  assert.throws(() => connect("http://localhost/", /** @type {any} */ ({ transport: ["poll"] })), misspelt("transport"));
  const client = connect("http://localhost/", { token: undefined, transports: ["poll"] });
  assert.throws(() => client.topic("wind", /** @type {any} */ ({ afer: "earliest" })), misspelt("afer"));
  assert.throws(() => client.read("runs/0", /** @type {any} */ ({ modus: "latest" })), misspelt("modus"));
  await assert.rejects(client.call("GET", "/clock", undefined, /** @type {any} */ ({ keys: true })), misspelt("keys"));
  await assert.rejects(client.items("GET", "/clock", undefined, /** @type {any} */ ({ header: {} })).next(), misspelt("header"));
  await assert.rejects(client.publish("t", 1, /** @type {any} */ ({ kay: "k" })), misspelt("kay"));
  await assert.rejects(client.run("/primes", 1, /** @type {any} */ ({ signals: 1 })).key, misspelt("signals"));
  await assert.rejects(client.watch("0").events(/** @type {any} */ ({ before: "1" })).next(), misspelt("before"));
  client.close();
});

test("an option that is a number takes no other value, and none below 0", async () => {
  const { origin, asked } = await fake(({ url }) => (url?.includes("wait=0") ? page("e-1", [1]) : problem("bad-parameter", 400, "no")));
  for (const name of ["waitSeconds", "pollMs", "quietMs", "betterMs"]) {
    for (const value of [NaN, -1, "30s", "1000", true, 1n, {}]) assert.throws(() => connect(origin, { [name]: value }), { code: "bad-argument" }, `${name}: ${value}`);
    for (const value of [1, Infinity, undefined, null]) connect(origin, { transports: ["poll"], [name]: value }).close();
  }
  // A server grants no longer wait than two minutes.
  const client = connect(origin, { transports: ["long-poll"], waitSeconds: 300 });
  await assert.rejects(async () => { for await (const _ of client.read("runs/1")); }, { code: "bad-parameter" });
  assert.deepEqual(asked, ["GET /runs/1?wait=0", "GET /runs/1?after=e-1&wait=120"]);
  client.close();
});

/** A server that keeps what it is asked over HTTP, in `asked`, and over WebSocket, in `messages`. */
async function keeping() {
  /** @type {string[]} */ const messages = [];
  /** @type {import("node:http").IncomingHttpHeaders[]} */ const headers = [];
  const answer = (/** @type {import("node:http").IncomingMessage} */ request) => {
    headers.push(request.headers);
    return request.method === "POST" ? { status: 202, body: { key: "k", position: "e-1" } } : { body: {} };
  };
  const onMessage = (/** @type {(text: string) => void} */ say, /** @type {string} */ message) => {
    messages.push(message);
    if (!message.endsWith("/silent")) say(`202 ${message.split(" ")[1]}\n{"key":"k","position":"e-1"}`);
  };
  return { ...(await fake(answer, { onMessage })), messages, headers };
}

const TRANSPORTS = /** @type {const} */ (["mux", "poll"]);

test("headers are whatever `fetch` takes", async () => {
  const { origin, messages, headers } = await keeping();
  const tag = '"5"';
  for (const given of [{ "If-Match": tag }, new Headers({ "if-match": tag }), new Map([["if-match", tag]]), [["if-match", tag]]]) {
    const options = { headers: /** @type {HeadersInit} */ (given) };
    for (const transport of TRANSPORTS) {
      const client = connect(origin, { WebSocket, transports: [transport] });
      messages.length = headers.length = 0;
      await client.call("PATCH", "/messages/1", {}, options);
      await client.run("/primes", 1, options).key;
      const sent = transport === "mux" ? messages : headers.map((fields) => ` if-match=${encodeURIComponent(String(fields["if-match"]))} prefer=${fields.prefer}`);
      assert.deepEqual(sent.map((fields) => fields.includes(` if-match=${encodeURIComponent(tag)}`)), [true, true], transport);
      assert.match(String(sent[1]), / prefer=respond-async/);
      headers.length = 0;
      for await (const _ of client.items("GET", "/items", undefined, options));
      assert.deepEqual(headers.map((fields) => fields["if-match"]), [tag], transport);
      client.close();
    }
  }
});

test("what no transport would send is refused at once", async () => {
  const { origin, asked } = await keeping();
  const circle = {};
  Object.assign(circle, { circle });
  for (const transport of TRANSPORTS) {
    const client = connect(origin, { WebSocket, transports: [transport] });
    const { call } = client;
    /** @type {Record<string, Parameters<typeof call>>} */
    const calls = {
      "a key that is no ASCII": ["POST", "/x", {}, { key: "schlüssel→" }],
      "the name of a header": ["GET", "/x", undefined, { headers: { "bad header": "1" } }],
      "the value of a header": ["PUT", "/x", {}, { headers: { from: "→" } }],
      "no value of a header": ["PUT", "/x", {}, { headers: [["if-match", /** @type {any} */ (undefined)]] }],
      "a body of a GET": ["GET", "/x", {}],
      "a body that is no JSON": ["POST", "/x", circle],
      "a body that JSON leaves out": ["POST", "/x", () => {}],
      "a body of which JSON leaves nothing": ["POST", "/x", new Map([["a", 1]])],
      "a promise of a body": ["POST", "/x", Promise.resolve(1)],
      "a promise within a body": ["POST", "/x", [{ user: Promise.resolve(1) }]],
      "a buffer within a body": ["POST", "/x", { user: new ArrayBuffer(1) }],
      "the memory of threads": ["POST", "/x", new SharedArrayBuffer(1)],
      "a buffer of another realm": ["POST", "/x", runInNewContext("new ArrayBuffer(8)")],
      "a number that JSON does not have": ["POST", "/x", { n: 1n }],
      "a body that is no text": ["POST", "/x", new Blob(["a"]), { headers: { "content-type": "text/plain" } }],
      "a method that nobody may send": ["TRACE", "/x"],
      "a method with a space": ["FOO BAR", "/x"],
      "a path that is none": ["GET", "http://["],
      "a path that ends with dots": ["DELETE", "/topics/.."],
      "a path that ends with dots after a backslash": ["DELETE", "topics\\.."],
      "a path that is a server's": ["POST", ".///127.0.0.1:1/x", {}],
    };
    for (const [what, given] of Object.entries(calls)) await assert.rejects(client.call(...given), { name: "AnemoneError", code: "bad-argument" }, `${transport}: ${what}`);
    await assert.rejects(client.items("FOO BAR", "/x").next(), { code: "bad-argument" });
    client.close();
  }
  assert.deepEqual(asked, []);
});

test("a body is sent as it was when it was given", async () => {
  /** @type {unknown[]} */ let bodies = [];
  const { origin } = await fake(({ method }, body) => (method === "POST" ? { status: 201, body: { position: "e-1", bodies: bodies.push(body) } } : {}));
  const client = connect(origin, { transports: ["poll"] });
  const changing = { n: 0 };
  const bytes = new TextEncoder().encode("0");
  const sent = [1, 2, 3].map((n) => {
    bytes[0] = 48 + n;
    return [client.publish("t", Object.assign(changing, { n })), client.publish("t", bytes.subarray(0)), client.publish("t", bytes.buffer)];
  });
  bytes[0] = 48;
  changing.n = 0;
  await Promise.all(sent.flat());
  assert.deepEqual(bodies.sort(), ["1", "1", "2", "2", "3", "3", '{"n":1}', '{"n":2}', '{"n":3}']);
  // Memory that is shared by threads, which `fetch` refuses.
  bodies = [];
  await client.publish("t", new Uint8Array(new SharedArrayBuffer(3)).fill(65));
  assert.deepEqual(bodies, ["AAA"]);
  client.close();
});

test("a path has no fragment, over each transport", async () => {
  const { origin, asked, messages } = await keeping();
  for (const transport of TRANSPORTS) {
    const client = connect(origin, { WebSocket, transports: [transport] });
    await client.call("GET", "/messages/a#b?c#d");
    client.close();
  }
  assert.deepEqual(asked.filter((request) => request.startsWith("GET")), ["GET /messages/a%23b?c%23d"]);
  assert.deepEqual(messages, ["GET 0 /messages/a%23b?c%23d"]);
});

test("an address with a name and a password, which `fetch` refuses, is called over WebSocket", async () => {
  const { origin, messages } = await keeping();
  const client = connect(origin.replace("//", "//name:password@"), { WebSocket, transports: ["mux"] });
  await client.call("GET", "/clock");
  assert.deepEqual(messages, ["GET 0 /clock"]);
  client.close();
});

test("a name that a URL would drop is refused, and so is a path that is no topic and no run", async () => {
  const { origin, asked } = await keeping();
  for (const transport of TRANSPORTS) {
    const client = connect(origin, { WebSocket, transports: [transport] });
    for (const name of [".", ".."]) {
      assert.throws(() => client.topic(name), { code: "bad-argument" });
      await assert.rejects(client.publish(name, 1), { code: "bad-argument" });
      await assert.rejects(client.watch(name).cancel(), { code: "bad-argument" });
      await assert.rejects(client.watch(name).events().next(), { code: "bad-argument" });
    }
    for (const path of ["topics/a b", "topics/a?mode=latest", "topics/a#b", "topics/", "topics/..", "topics/%2e%2E", "runs/a\\b", "messages/1", ""]) assert.throws(() => client.read(path), { code: "bad-argument" }, path);
    client.close();
  }
  assert.deepEqual(asked, []);
});

test("the path of another server is neither read nor called, and the token stays here", async () => {
  const other = await fake(() => page("e-2", [2]));
  const { origin } = await keeping();
  for (const path of [`${other.origin}/x`, `/${other.origin}/x`, other.origin.replace("http:", "/"), other.origin.replace("http://", "\\\\"), "../x", "topics/a\\..\\..\\..\\x", "topics/%2E%2e/../x"]) {
    const client = connect(`${origin}/below`, { token: "secret", transports: ["poll"] });
    assert.throws(() => client.read(path), { code: "bad-argument" }, path);
    await assert.rejects(client.call("GET", path), { code: "bad-argument" }, path);
    assert.deepEqual(client.diagnosis.tries, [], path);
    client.close();
  }
  assert.deepEqual(other.asked, []);
});

test("a token that no header may have is told without it", async () => {
  const { origin, asked, headers } = await keeping();
  for (const [token, expected] of /** @type {[any, string][]} */ ([["se\ncret", "bad-argument"], [() => ({ token: "secret" }), "token-failed"]])) {
    const client = connect(origin, { token, transports: ["poll"], random: () => 0 });
    await assert.rejects(client.call("POST", "/x", 1, { triesMs: 0 }), ({ code, message }) => code === expected && !message.includes("cret"));
    client.close();
  }
  assert.deepEqual(asked, []);
  // One that is wrong once is asked for again, and blanks around it are not sent.
  const tokens = ["se\ncret", "\nsecret \n"];
  const client = connect(origin, { token: () => String(tokens.shift()), transports: ["poll"], random: () => 0 });
  await client.call("GET", "/x");
  assert.deepEqual(headers.map(({ authorization }) => authorization), ["Bearer secret"]);
  client.close();
});

test("bytes are sent as they are, whatever holds them", async () => {
  /** @type {string[]} */ const bodies = [];
  const { origin } = await fake((_, body) => ({ body: { body: bodies.push(body) } }));
  const client = connect(origin, { transports: ["poll"] });
  const bytes = new TextEncoder().encode("-abcd-");
  for (const body of [bytes.slice(1, 5).buffer, bytes.subarray(1, 5), new DataView(bytes.buffer, 1, 4), new Uint16Array(bytes.slice(1, 5).buffer)]) await client.call("POST", "/x", body);
  assert.deepEqual(bodies, Array(4).fill("abcd"));
  for (const body of [{}, new (class {})(), Object.create(null)]) {
    await client.call("POST", "/x", body);
    assert.equal(bodies.pop(), "{}");
  }
  await client.call("POST", "/x", [null, [], new Date(0), { a: undefined }, Object(1), new Uint8Array()]);
  assert.equal(bodies.pop(), '[null,[],"1970-01-01T00:00:00.000Z",{},1,{}]');
  client.close();
});

test("what a WebSocket does not take is called over HTTP: a path that is too long, and HEAD", async () => {
  const { origin, asked, messages } = await keeping();
  const client = connect(origin, { WebSocket, transports: ["mux"] });
  await client.call("GET", `/x?${"a".repeat(3900)}`);
  await client.call("GET", `/x?${"a".repeat(4100)}`);
  await client.call("GET", "/x", undefined, { headers: { "if-match": `"${"%".repeat(1400)}"` } });
  await client.call("HEAD", "/x");
  assert.equal(messages.length, 1);
  assert.deepEqual(asked.map((line) => line.split(/[ ?]/, 1)[0]), ["UPGRADE", "GET", "GET", "HEAD"]);
  client.close();
});

test("a call leaves nothing behind", async (t) => {
  /** @type {AbortSignal[]} */ const signals = [];
  const { any } = AbortSignal;
  t.mock.method(AbortSignal, "any", (/** @type {AbortSignal[]} */ of) => {
    const signal = any.call(AbortSignal, of);
    signals.push(signal);
    return signal;
  });
  const { origin } = await keeping();
  const client = connect(origin, { WebSocket, transports: ["mux"] });
  await client.call("GET", "/clock");
  await client.publish("t", 1);
  await client.run("/primes", 1).key;
  await assert.rejects(client.call("GET", "/silent", undefined, { signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
  assert.deepEqual(signals.map((signal) => getEventListeners(signal, "abort").length), [0, 0, 0, 0]);
  client.close();
});

test("a topic without a position begins now, over every transport", async () => {
  const { origin, asked, messages } = await keeping();
  for (const after of /** @type {any[]} */ ([undefined, null, ""])) {
    for (const transport of TRANSPORTS) {
      const client = connect(origin, { WebSocket, transports: [transport], random: () => 1 });
      client.topic("t", { after });
      await until("the request", () => messages.length + asked.filter((line) => line.startsWith("GET")).length > 0);
      assert.match([...messages, ...asked].join(), /after=latest/, `${transport}: ${after}`);
      client.close();
      messages.length = asked.length = 0;
    }
  }
});

test("an event has a key of its own, unless the caller gives one", async () => {
  const { origin, asked } = await keeping();
  const client = connect(origin, { transports: ["poll"] });
  for (const key of [true, true, null, undefined, "own"]) await client.publish("t", 1, /** @type {any} */ ({ key }));
  const keys = asked.map((line) => line.split("?key=")[1]);
  assert.equal(keys.pop(), "own");
  assert.equal(new Set(keys).size, 4);
  for (const key of keys) assert.match(String(key), /^\d+-\d+-/);
  client.close();
});

test("a client that has no WebSocket says that it needs one, unless another transport works", (t) => {
  const { WebSocket } = globalThis;
  t.after(() => void (globalThis.WebSocket = WebSocket));
  // @ts-expect-error: as in Node 20
  globalThis.WebSocket = undefined;
  assert.throws(() => connect("http://localhost/", { transports: ["mux"] }), { code: "bad-argument", message: /no transport here: pass a WebSocket/ });
  const client = connect("http://localhost/", { transports: ["tabs", "mux", "poll"] });
  assert.equal(client.diagnosis.transport, "poll");
  client.close();
});

test("a time that no timer can be is as long as one can be, and not none", async (t) => {
  /** @type {string[]} */ const warnings = [];
  const warn = (/** @type {Error} */ { message }) => void warnings.push(message);
  process.on("warning", warn);
  t.after(() => process.off("warning", warn));
  const { origin, asked } = await fake(() => page("e-2", [2]));
  // One transport is better than what works, and tried again later, if ever.
  const client = connect(origin, { WebSocket, transports: ["mux", "poll"], pollMs: Infinity, quietMs: 3e9, betterMs: 2 ** 31 });
  for await (const event of client.topic("t", { after: "e-1" })) {
    assert.equal(event.data.n, 2);
    break;
  }
  const topic = client.topic("t", { after: "e-1" });
  await new Promise((resolve) => (topic.onmessage = resolve));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(warnings, []);
  assert.equal(asked.filter((line) => line.startsWith("GET /topics/t")).length, 2, asked.join());
  client.close();
});

test("a refusal names the place that it is about, as the command does", async () => {
  const refusal = problem("bad-input", 422, "is missing: expected one of quick, merge");
  const { origin } = await fake(() => ({ ...refusal, body: { .../** @type {object} */ (refusal.body), pointer: "/actions/0/algorithm" } }));
  const client = connect(origin, { transports: ["poll"] });
  await assert.rejects(client.call("POST", "/x", {}), { code: "bad-input", message: "is missing: expected one of quick, merge (at /actions/0/algorithm)" });
  client.close();
});

test("a server that cannot be reached is named, with the cause", async () => {
  const origin = "http://127.0.0.1:2"; // the kernel gives this port to no other program
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  await assert.rejects(client.call("GET", "/clock"), (/** @type {any} */ error) => {
    assert.equal(error.code, "unreachable");
    assert.equal(error.message, `the server does not answer, ECONNREFUSED: ${origin}`);
    return error.cause instanceof Error;
  });
  client.close();
  assert.throws(() => connect("127.0.0.1:8080"), { code: "bad-argument", message: "127.0.0.1:8080 is not a URL such as http://localhost" });
});

test("an event shows its data, and knows its topic", async () => {
  const { origin } = await fake(() => page("e-2", [2]));
  const client = connect(origin, { transports: ["poll"] });
  const topic = client.topic("t", { after: "e-1" });
  for await (const event of topic) {
    assert.equal(event.topic, topic);
    assert.deepEqual(Object.keys(event), ["position", "time", "data", "received"]);
    assert.doesNotMatch(inspect(event), /topic|repeats/i);
    break;
  }
  client.close();
});

test("a part that is loaded when it is needed imports no other such part", async () => {
  // A browser that remembers a failed load would never get that one.
  const parts = [...(await readFile(`${SOURCES}/parts.js`, "utf8")).matchAll(/import\("(\.\/\w+\.js)"\)/g)].map(([, path]) => path);
  assert.equal(parts.length, 4);
  for (const name of (await readdir(SOURCES)).filter((name) => name !== "parts.js")) {
    const imported = [...(await readFile(`${SOURCES}/${name}`, "utf8")).matchAll(/^(?:import|export) .* from "(.*)";$/gm)].map(([, path]) => path);
    assert.deepEqual(imported.filter((path) => parts.includes(path)), [], name);
  }
});
