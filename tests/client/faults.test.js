/** The faults of servers, networks and callers: each is a typed error with a code and a sentence, never a silent stall or a fast loop. */
import assert from "node:assert/strict";
import { WebSocket } from "ws";
import { AnemoneError, connect } from "../../clients/js/src/client.js";
import { until } from "../e2e/support.js";
import { fake, page, problem, test } from "./fakes.js";

/** @typedef {import("../../clients/js/src/anemone-client/types.js").Options} Options */
/** @typedef {import("../../clients/js/src/anemone-client/types.js").TransportName} TransportName */

const POSITION = "e-1";
const ALL = /** @type {TransportName[]} */ (["mux", "sse", "ndjson", "long-poll", "poll"]);

/**
 * Reads a topic to its end, and returns what was told.
 * @param {string} origin
 * @param {Options} [options]
 * @param {{ after?: string, enough?: number }} [more] the number of events after which it is closed
 */
async function read(origin, options, { after = POSITION, enough = Infinity } = {}) {
  const client = connect(origin, { WebSocket, pollMs: 1, waitSeconds: 0.1, random: () => 0.01, ...options });
  const topic = client.topic("t", { after });
  /** @type {AnemoneError[]} */ const errors = [];
  /** @type {import("../../clients/js/src/anemone-client/types.js").TopicEvent[]} */ const events = [];
  /** @type {import("../../clients/js/src/anemone-client/types.js").Gap[]} */ const gaps = [];
  topic.onerror = (error) => errors.push(error);
  topic.ongap = (gap) => gaps.push(gap);
  /** @type {AnemoneError | undefined} */
  let end;
  try {
    for await (const event of topic) if (events.push(event) >= enough) break;
  } catch (error) {
    end = /** @type {AnemoneError} */ (error);
  }
  client.close();
  return { end, errors, events, gaps, topic, client, positions: events.map(({ position }) => position) };
}

/** A port on which nothing listens. */
async function nowhere() {
  const { origin } = await fake(() => undefined);
  return origin.replace(/\d+$/, "1");
}

test("what is not the URL of a server is refused at once", () => {
  for (const base of ["ftp://example.org/", "not a URL", "", "file:///tmp/", "ws://example.org/"]) {
    assert.throws(() => connect(base), { name: "AnemoneError", code: "bad-argument" }, base);
  }
  const options = { transports: /** @type {any} */ (["smoke"]) };
  assert.throws(() => connect("http://localhost/", options), { code: "bad-argument", message: /smoke/ });
});

test("a server that is gone at the start: an error for each try, and the end after a few", async () => {
  const { end, errors, client } = await read(await nowhere());
  assert.equal(end?.code, "unreachable");
  assert.match(String(end), /the server does not answer/);
  assert.ok(errors.length >= 6 && errors.length <= 20, `${errors.length} errors`);
  assert.deepEqual([...new Set(client.diagnosis.tries.map(({ code }) => code))], ["blocked", "unreachable"]);
  const caller = connect(await nowhere(), { WebSocket, random: () => 0.01 });
  await assert.rejects(() => caller.call("GET", "/clock"), { code: "unreachable" });
  caller.close();
});

test("a server that is gone for a while is asked less and less often", async () => {
  let isThere = true;
  const { origin, asked } = await fake(() => (isThere ? page("e-2", [2]) : undefined));
  const client = connect(origin, { transports: ["poll"], pollMs: 1, random: () => 0.02 });
  const topic = client.topic("t", { after: POSITION });
  /** @type {number[]} */ const waits = [];
  topic.onmessage = () => (isThere = false);
  topic.onerror = ({ retryAt = 0 }) => waits.push(retryAt - Date.now());
  await until("six failures", () => waits.length === 6);
  for (const [index, wait] of waits.entries()) assert.ok(wait <= Math.min(10_000, 500 * 2 ** index) * 0.02 + 1, `${waits}`);
  assert.ok(asked.length <= 40, `${asked.length} requests`);
  client.close();
});

for (const transport of ALL) {
  test(`${transport}: another server is told from ours`, async () => {
    const html = await read((await fake(() => ({ body: "<!doctype html>hello" }))).origin, { transports: [transport] });
    assert.equal(html.end?.code, transport === "mux" ? "blocked" : "protocol");
    const missing = await read((await fake(() => ({ status: 404, body: "<h1>404" }))).origin, { transports: [transport] });
    assert.equal(missing.end?.code, transport === "mux" ? "blocked" : "foreign");
    assert.ok(missing.errors.length <= 7, `${missing.errors.length}`);
  });
}

test("what a network answers in the middle is waited out", async () => {
  const html = { "content-type": "text/html" };
  const login = [
    { headers: html, body: "<p>Log in" },
    { status: 403, headers: html, body: "<p>Log in" },
    { status: 404, body: "" },
    { status: 401, body: "{}" },
    { status: 511, headers: html, body: "<p>Log in" },
  ];
  const block = (/** @type {number} */ offset) => ({ headers: { "content-type": "text/event-stream" }, body: `id: e-${offset}\ntime: 1\ndata: ${offset}\n\n` });
  const line = (/** @type {number} */ offset) => ({ headers: { "content-type": "application/x-ndjson" }, body: `{"position":"e-${offset}","time":1,"data":${offset}}\n` });
  const onePage = (/** @type {number} */ offset) => page(`e-${offset}`, [offset]);
  const answers = /** @type {const} */ ([["sse", block], ["ndjson", line], ["long-poll", onePage], ["poll", onePage]]);
  const reading = answers.flatMap(([transport, answer]) =>
    login.map(async (foreign) => {
      let asked = 0;
      // An answer that comes too late on a busy machine is asked for again: what is asked decides, and not how often.
      const { origin } = await fake(({ url }) => (!url?.includes("e-2") ? answer(2) : (asked += 1) < 11 ? foreign : answer(3)));
      const told = await read(origin, { transports: [transport] }, { enough: 2 });
      assert.deepEqual(told.positions, ["e-2", "e-3"], `${transport}: ${JSON.stringify(foreign)}`);
    }),
  );
  await Promise.all(reading);
});

test("a protocol of the future is not guessed at", async () => {
  const v2 = await fake(() => page("e-2", [2]), { subprotocol: "anemone.v2", onMessage: () => {} });
  // Reading goes on by what both still speak.
  const told = await read(v2.origin, {}, { enough: 1 });
  assert.deepEqual(told.positions, ["e-2"]);
  assert.deepEqual(told.client.diagnosis.tries.map(({ transport, code }) => [transport, code]), [["mux", "blocked"], ["sse", "protocol"], ["long-poll", undefined]]);

  for (const body of [{ epoch: "e", items: [] }, [], null, { epoch: "e", next: "somewhere", events: [] }, "{"]) {
    const { origin } = await fake(() => ({ body }));
    const { end, errors } = await read(origin, { transports: ["poll"] });
    assert.equal(end?.code, "protocol", JSON.stringify(body));
    assert.ok(errors.length <= 7);
  }
  const odd = await fake(() => ({}), { onMessage: (say) => say("HELLO 1 2 3") });
  assert.equal((await read(odd.origin, { transports: ["mux"] })).end?.code, "protocol");
});

test("unknown fields, words, notices and messages are ignored", async () => {
  const mux = await fake(() => ({}), {
    onMessage: (say, message) => {
      if (!message.startsWith("GET 0")) return;
      for (const text of ["100 0 e-1 new=word and more", '110 0\n{"weather":"fine"}', "206 zz e-7 1\n1", "199 0", '206 0 e-2 500 x y=1\n{"n":2}']) say(text);
    },
  });
  assert.deepEqual((await read(mux.origin, { transports: ["mux"] }, { enough: 1 })).positions, ["e-2"]);
  const text = "retry: 5\nid: e-1\n\n: quiet\nnew: field\n\nevent: weather\ndata: {\"weather\":1}\n\nid: e-2\ntime: 1.5\ndata: {\"n\":2}\n\n";
  const sse = await fake(() => ({ headers: { "content-type": "text/event-stream" }, body: text, isOpen: true }));
  const { events } = await read(sse.origin, { transports: ["sse"] }, { enough: 1 });
  assert.deepEqual(events.map(({ position, time, data }) => [position, time, data]), [["e-2", 1.5, { n: 2 }]]);
  const lines = '{"position":"e-1"}\n{"weather":1}\n{"position":"e-2","time":1,"data":null,"more":1}\n';
  const ndjson = await fake(() => ({ headers: { "content-type": "application/x-ndjson" }, body: lines, isOpen: true }));
  assert.deepEqual((await read(ndjson.origin, { transports: ["ndjson"] }, { enough: 1 })).positions, ["e-2"]);
});

test("what cannot be decoded on a WebSocket is told, and ends nothing else", async () => {
  const { origin } = await fake(() => ({}), {
    onMessage: (say, message) => {
      const id = message.split(" ")[1];
      if (message.includes("/bad-json")) return say(`200 ${id} content-type=application/json\n{oops`);
      if (message.includes("/bad-item")) return ["206", "206", "200"].forEach((status) => say(`${status} ${id}\n${status === "200" ? "" : "{oops"}`));
      say(`200 ${id} ${message.includes("/bad-field") ? "etag=%zz%22" : "x=%22a%22"}\n{}`);
    },
  });
  const client = connect(origin, { WebSocket, transports: ["mux"] });
  for (const path of ["/bad-json", "/bad-item", "/bad-field"]) await assert.rejects(() => client.call("GET", path), { name: "AnemoneError", code: "protocol" }, path);
  assert.deepEqual((await client.call("GET", "/field")).fields, { x: '"a"' });
  client.close();
});

test("the items of a reply: one value, lines in whatever pieces, a slow loop, a cut, and what is not JSON", async () => {
  const ndjson = { headers: { "content-type": "application/x-ndjson" } };
  const answers = /** @type {Record<string, import("./fakes.js").Answer>} */ ({
    "/one": { body: { a: 1 } },
    "/lines": { ...ndjson, body: '1\n\n{"a":"ü"}\n3\n' },
    "/cut": { ...ndjson, body: "1\n2\n", isCut: true },
    "/bad": { ...ndjson, body: "1\n{oops\n" },
    "/endless": { ...ndjson, body: "1\n", isOpen: true },
  });
  const { origin, asked } = await fake(({ url }) => answers[String(url)] ?? problem("unknown-path", 404, "nothing here"));
  const client = connect(origin, { transports: ["poll"], random: () => 0 });
  const all = async (/** @type {string} */ path, /** @type {any} */ options = undefined) => {
    const found = [];
    try {
      for await (const item of client.items("GET", path, undefined, options)) found.push(item);
    } catch (error) {
      found.push(/** @type {AnemoneError} */ (error).code ?? String(error));
    }
    return found;
  };
  assert.deepEqual(await all("/one"), [{ a: 1 }]);
  assert.deepEqual(await all("/lines"), [1, { a: "ü" }, 3]);
  assert.deepEqual((await all("/cut")).at(-1), "lost");
  assert.deepEqual(await all("/bad"), [1, "protocol"]);
  assert.deepEqual(await all("/none"), ["unknown-path"]);
  const end = new AbortController();
  const items = client.items("GET", "/endless", undefined, { signal: end.signal });
  assert.deepEqual(await items.next(), { value: 1, done: false });
  end.abort(new Error("enough"));
  await assert.rejects(() => items.next(), /enough/);
  assert.deepEqual(asked, ["/one", "/lines", "/cut", "/bad", "/none", "/endless"].map((path) => `GET ${path}`));
  client.close();
  assert.deepEqual(await all("/one"), ["closed"]);
});

test("an event that is not JSON is told and skipped", async () => {
  const mux = await fake(() => ({}), {
    onMessage: (say) => ["100 0 e-1", "206 0 e-2 1\n{oops", '206 0 e-3 1\n{"n":3}'].forEach(say),
  });
  const text = 'id: e-1\n\nid: e-2\ntime: 1\ndata: {oops\n\nid: e-3\ntime: 1\ndata: {"n":3}\n\n';
  const sse = await fake(() => ({ headers: { "content-type": "text/event-stream" }, body: text, isOpen: true }));
  const lines = '{"position":"e-1"}\n{"position":"e-2","time":1,"data":{oops}\n{"position":"e-3","time":1,"data":{"n":3}}\n';
  const ndjson = await fake(() => ({ headers: { "content-type": "application/x-ndjson" }, body: lines, isOpen: true }));
  const gap = { reason: "unreadable", after: "e-1", missed: 1, resume: "e-2" };
  for (const [transport, { origin }] of /** @type {const} */ ([["mux", mux], ["sse", sse], ["ndjson", ndjson]])) {
    const told = await read(origin, { transports: [transport] }, { enough: 1 });
    assert.deepEqual(told.errors.map(({ code }) => code), ["bad-json"], transport);
    assert.deepEqual([told.gaps, told.positions, told.events[0]?.gaps], [[gap], ["e-3"], [gap]], transport);
  }
});

test("an event that is not JSON is skipped in its own topic, whatever else is on the stream", async () => {
  const items = ['"position":"a-2","time":1,"data":{oops', '"position":"a-3","time":1,"data":{"n":3}}'].map((item) => `{"topic":"a",${item}`);
  items.push('{"topic":"b","position":"b-8","time":1,"data":{"n":8}}');
  const sse = items.map((item) => `id: $topics:i-1,a:a-1,b:b-7\ndata: ${item}\n\n`).join("");
  const bodies = { "text/event-stream": `id: $topics:i-1,a:a-1,b:b-7\n\n${sse}`, "application/x-ndjson": `{"position":"$topics:i-1,a:a-1,b:b-7"}\n${items.join("\n")}\n` };
  for (const [transport, type] of /** @type {const} */ ([["sse", "text/event-stream"], ["ndjson", "application/x-ndjson"]])) {
    const { origin, asked } = await fake(() => ({ headers: { "content-type": type }, body: bodies[type], isOpen: true }));
    const client = connect(origin, { transports: [transport], random: () => 0 });
    /** @type {string[]} */ const told = [];
    for (const name of ["a", "b"]) {
      const topic = client.topic(name);
      topic.onmessage = ({ data, gaps }) => told.push(`${name}: ${data.n}${gaps ? ` after a gap: ${gaps[0]?.reason}` : ""}`);
      topic.onerror = ({ code }) => told.push(`${name}: ${code}`);
      topic.onclose = () => told.push(`${name}: closed`);
    }
    await until("both topics", () => told.includes("b: 8"));
    assert.deepEqual(told, ["a: bad-json", "a: 3 after a gap: unreadable", "b: 8"], transport);
    assert.equal(asked.length, 1, transport);
    client.close();
  }
});

test("a reply that was cut off is not taken for a whole one", async () => {
  const { body } = page("e-2", [2]);
  const whole = JSON.stringify(body);
  for (const answer of [{ headers: { "content-length": "1000" }, body: whole, isCut: true }, { headers: { "content-length": "0" } }]) {
    let count = 0;
    const { origin } = await fake(() => ((count += 1) === 1 ? answer : { headers: { "content-type": "application/json" }, body: whole }));
    const told = await read(origin, { transports: ["poll"] }, { enough: 1 });
    assert.deepEqual(told.positions, ["e-2"]);
    assert.equal(told.errors.length, 1);
  }
});

test("a line that is not JSON, and does not say where, is given up after a few tries", async () => {
  const body = '{"position":"e-1"}\n{"gap":{oops}\n';
  const ndjson = await fake(() => ({ headers: { "content-type": "application/x-ndjson" }, body, isOpen: true }));
  const told = await read(ndjson.origin, { transports: ["ndjson"] });
  assert.deepEqual([told.end?.code, told.positions], ["protocol", []]);
  assert.ok(ndjson.asked.length <= 7, `${ndjson.asked.length} requests`);
});

test("pages are small after failures, and grow with each that comes, however quiet a topic of the request is", async () => {
  for (const transport of /** @type {const} */ (["poll", "long-poll"])) {
    let asked = 0;
    let last = 1;
    /** @type {(string | null)[]} */ const limits = [];
    const { origin } = await fake(({ url }) => {
      const query = new URL(String(url), "http://localhost").searchParams;
      if (!query.has("after") && !query.has("topic")) return { body: {} }; // the clock
      asked += 1;
      if (asked > 1 && asked < 12) return undefined;
      if (asked > 1) limits.push(query.get("limit"));
      last += 1;
      return { body: { next: `busy:e-${last},quiet:e-1`, events: [{ topic: "busy", position: `e-${last}`, time: 1, data: 1 }] } };
    });
    const client = connect(origin, { transports: [transport], pollMs: 1, random: () => 0 });
    const [busy] = ["busy", "quiet"].map((name) => client.topic(name, { after: POSITION }));
    if (busy) busy.onmessage = () => {};
    await until("six pages", () => limits.length >= 6);
    assert.deepEqual(limits.slice(0, 6), ["1", "3", "15", "62", "250", null]);
    client.close();
  }
});

test("pages of another shape are told as such", async () => {
  for (const more of [{ events: [null] }, { events: ["x"] }, { events: [{ topic: "a", time: 1, data: 1 }] }, { events: [], notices: {} }, { events: [], notices: [null] }]) {
    const { origin } = await fake(() => ({ body: { next: "a:e-2,b:e-2", ...more } }));
    const client = connect(origin, { transports: ["poll"], pollMs: 1, random: () => 0.01 });
    const ends = ["a", "b"].map((name) => new Promise((resolve) => (client.topic(name, { after: POSITION }).onclose = resolve)));
    for (const error of await Promise.all(ends)) assert.equal(error?.code, "protocol", JSON.stringify(more));
    client.close();
  }
});

test("an end without a reason is not in the protocol", async () => {
  for (const end of ["{}", "5", '{"reason":{}}']) {
    const { origin } = await fake(() => ({ headers: { "content-type": "application/x-ndjson" }, body: `{"position":"e-1"}\n{"end":${end}}\n` }));
    const { errors } = await read(origin, { transports: ["ndjson"] });
    assert.equal(errors[0]?.code, "protocol", end);
  }
});

test("a pause between two polls is no silence", async (t) => {
  const { origin } = await fake(() => page("e-1", []));
  const { mock } = t.mock.method(globalThis, "setTimeout");
  const client = connect(origin, { transports: ["poll"], pollMs: 60_000, quietMs: 20_000 });
  client.topic("t", { after: POSITION });
  const timers = () => mock.calls.map((call) => Number(call.arguments[1]));
  await until("the pause", () => timers().includes(60_000));
  assert.ok(timers().some((ms) => ms > 60_000), `the silence would be found within the pause: ${timers()}`);
  client.close();
});

test("a silence that is shorter than the opening may take is noticed in its time, the first one, too", async () => {
  const { origin } = await fake(() => ({ headers: { "content-type": "text/event-stream" }, body: "id: e-1\n\n", isOpen: true }));
  const client = connect(origin, { transports: ["sse"], quietMs: 500 });
  const topic = client.topic("t", { after: POSITION });
  /** @type {string[]} */ const told = [];
  // Timers end in their order, however busy the machine is.
  topic.onopen = () => void setTimeout(() => told.push("1000 ms"), 1000);
  topic.onerror = ({ code }) => told.push(code);
  await until("both", () => told.includes("silent") && told.includes("1000 ms"));
  assert.equal(told[0], "silent");
  client.close();
});

test("a callback that throws ends nothing", async () => {
  const { origin } = await fake(() => page("e-3", [2, 3]));
  const client = connect(origin, { transports: ["poll"] });
  const topic = client.topic("t", { after: POSITION });
  /** @type {unknown[]} */ const seen = [];
  /** @type {AnemoneError[]} */ const errors = [];
  topic.onmessage = ({ data }) => {
    seen.push(data.n);
    throw new TypeError("my mistake");
  };
  client.onerror = (error) => errors.push(error);
  await until("both events", () => seen.length === 2);
  assert.deepEqual(errors.map(({ code, cause }) => [code, String(cause)]), Array(2).fill(["callback-failed", "TypeError: my mistake"]));
  assert.match(String(errors[0]?.message), /onmessage: TypeError: my mistake/);
  client.close();
});

test("events wait for a callback or a loop, however many there are, and so does the end", async () => {
  const numbers = Array.from({ length: 3000 }, (_, index) => index + 2);
  const { origin } = await fake(({ url }) => {
    const after = Number(/e-(\d+)/.exec(String(url))?.[1]);
    const end = after + 1000 > 3000 ? { end: { reason: "ended" } } : {};
    return page(`e-${after + 1000}`, numbers.slice(after - 1, after + 999), end);
  });
  const client = connect(origin, { transports: ["poll"], pollMs: 1 });
  const late = client.topic("t", { after: POSITION });
  const first = client.topic("t", { after: POSITION });
  await until("as many events as may wait", () => late.position === "e-1001" && first.position === "e-1001");
  /** @type {number[]} */ const told = [];
  const closed = new Promise((resolve) => {
    late.onmessage = ({ data }) => told.push(data.n);
    late.onclose = resolve;
    assert.deepEqual(told, []); // nobody is called before the next await
  });
  assert.equal(await closed, undefined);
  assert.deepEqual(told, numbers);

  /** @type {number[]} */ const looped = [];
  first.onmessage = ({ data }) => {
    looped.push(data.n);
    first.onmessage = undefined;
  };
  await until("one event", () => looped.length === 1);
  for await (const { data } of first) looped.push(data.n);
  assert.deepEqual(looped, numbers);

  const over = client.topic("t", { after: "e-2999" });
  const end = new Promise((resolve) => (over.onclose = () => resolve(told.at(-1))));
  await until("the end", () => over.isEnded);
  over.onmessage = ({ data }) => told.push(data.n);
  assert.equal(await end, 3001);

  const dropped = client.topic("t", { after: POSITION });
  await until("its events", () => dropped.position === "e-1001");
  dropped.onmessage = ({ data }) => {
    told.push(data.n);
    dropped.close();
  };
  await until("its first event", () => told.at(-1) === 2);
  client.close();
  assert.deepEqual(told.slice(-2), [3001, 2]);
});

test("a run that a closed client has not read to its end fails with closed, and one that it has read does not", async () => {
  const { origin } = await fake(({ url }) =>
    String(url).includes("done") ? page("e-3", [2, 3], { end: { reason: "ended" } }) : page("e-2", String(url).includes("e-2") ? [] : [2]),
  );
  for (const [key, expected] of /** @type {const} */ ([["done", [2, 3]], ["going", [2, "closed"]]])) {
    const client = connect(origin, { transports: ["poll"], pollMs: 1 });
    /** @type {unknown[]} */ const told = [];
    try {
      for await (const { data } of client.watch(key).events({ after: POSITION })) {
        told.push(data.n);
        if (key === "going" || data.n === 3) client.close();
      }
    } catch (error) {
      told.push(/** @type {AnemoneError} */ (error).code);
    }
    assert.deepEqual(told, expected, key);
  }
});

for (const transport of ALL) {
  test(`${transport}: a position that is refused ends the reading, with the server's words`, async () => {
    const detail = "the newest event is e-3";
    const { origin } = await fake(() => problem("position-ahead", 400, detail), {
      onMessage: (say) => say(`400 0\n{"type":"/problems/position-ahead","status":400,"detail":"${detail}"}`),
    });
    const { end, errors } = await read(origin, { transports: [transport] });
    assert.deepEqual([end?.code, end?.status, end?.message, end?.problem.detail], ["position-ahead", 400, detail, detail]);
    assert.equal(errors.length, 1);
  });
}

test("Retry-After is kept, on every transport", async () => {
  for (const transport of ALL) {
    const { origin } = await fake(() => problem("overloaded", 503, "later", { "retry-after": "7" }), {
      onMessage: (say) => say('503 0 retry-after=7\n{"type":"/problems/overloaded","status":503}'),
    });
    const client = connect(origin, { WebSocket, transports: [transport], random: () => 0 });
    const begun = Date.now();
    const topic = client.topic("t");
    const error = await new Promise((/** @type {(error: AnemoneError) => void} */ resolve) => (topic.onerror = resolve));
    assert.equal(error.code, "overloaded");
    assert.ok(Number(error.retryAt) >= begun + 6900, `${transport}: ${Number(error.retryAt) - begun} ms`);
    client.close();
  }
});

test("a server that wishes tries without a pause is asked with one, and so is one that repeats its answer", async (t) => {
  const event = "id: e-2\ntime: 1\ndata: 1\n\n";
  const notices = ['{"retry":"x"}', '{"retry":{}}', '{"retry":[1]}'].map((notice) => `${event}event: wish\ndata: ${notice}\n\n`);
  for (const body of [...["-5", "1e-300", "1", "x"].map((retry) => `retry: ${retry}\n${event}`), ...notices]) {
    const { origin } = await fake(() => ({ headers: { "content-type": "text/event-stream" }, body }));
    const client = connect(origin, { transports: ["sse"], random: () => 1 });
    const begun = Date.now();
    const { retryAt } = await new Promise((/** @type {(error: AnemoneError) => void} */ resolve) => (client.topic("t").onerror = resolve));
    assert.ok(Number(retryAt) >= begun + 500, body);
    client.close();
  }
  t.mock.method(performance, "now", () => 0); // the answers are at once, however slow the machine is
  const { origin, asked } = await fake(() => page("e-2", [2]));
  const client = connect(origin, { transports: ["long-poll"], pollMs: 1e9 });
  client.topic("t", { after: POSITION });
  await until("the second answer", () => asked.length === 2);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(asked.length, 2);
  client.close();
});

test("a topic that has ended says nothing after its end", async () => {
  const lines = ['{"position":"e-1"}', '{"position":"e-2","time":1,"data":{"n":2}}', '{"end":{"reason":"deleted"}}', ""].join("\n");
  const { origin } = await fake(() => ({ headers: { "content-type": "application/x-ndjson" }, body: lines, isOpen: true }));
  const client = connect(origin, { transports: ["ndjson"] });
  /** @type {unknown[]} */
  const told = [];
  const topic = client.topic("t", { after: "e-1" });
  topic.onmessage = ({ data }) => told.push(data.n);
  topic.onerror = ({ code, retryAt }) => told.push([code, retryAt]);
  await new Promise((/** @type {(value?: unknown) => void} */ resolve) => (topic.onclose = resolve));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(told, [2, ["topic-deleted", undefined]]);
  client.close();
});

test("a token that cannot be had is told", async () => {
  const { origin, asked } = await fake(() => ({}));
  const token = () => Promise.reject(new Error("no session"));
  const client = connect(origin, { token, random: () => 0 });
  await assert.rejects(() => client.call("GET", "/x"), { code: "token-failed", message: /no session/ });
  assert.deepEqual(asked, []);
  client.close();
});

test("a token is sent, and renewed once it is refused", async () => {
  let valid = "one";
  const { origin, asked } = await fake(({ headers }) => (headers.authorization === `Bearer ${valid}` ? { body: { is: valid } } : { status: 401 }));
  const tokens = ["one", "two", "three"];
  let count = 0;
  const client = connect(origin, { token: async () => String(tokens[count++]) });
  assert.equal(client.diagnosis.transport, "sse"); // a WebSocket has no place for a token
  assert.deepEqual((await client.call("GET", "/who")).data, { is: "one" });
  valid = "two";
  assert.deepEqual((await client.call("GET", "/who")).data, { is: "two" });
  assert.deepEqual([count, asked.length], [2, 3]);
  valid = "never";
  await assert.rejects(() => client.call("GET", "/who"), { status: 401 });
  client.close();
});

test("a client that is closed ends its topics and its calls", async () => {
  const { origin } = await fake(() => ({}), { onMessage: () => {} });
  const client = connect(origin, { WebSocket, transports: ["mux"] });
  const call = client.call("GET", "/slow");
  const topic = client.topic("t");
  /** @type {unknown[]} */ const closed = [];
  topic.onclose = (error) => closed.push(error);
  setTimeout(() => client.close(), 50);
  await assert.rejects(() => call, { code: "closed" });
  for await (const _ of topic) assert.fail();
  assert.deepEqual(closed, [undefined]);
  await assert.rejects(() => client.call("GET", "/x"), { code: "closed" });
  assert.throws(() => client.topic("t"), { code: "closed" });
});

test("line separators within an event are a part of it", async () => {
  const data = JSON.stringify({ text: "one\u2028two\u2029three" });
  const { origin } = await fake(() => ({ headers: { "content-type": "text/event-stream" }, body: `retry: 1000\nid: e-1\n\nid: e-2\ntime: 1\ndata: ${data}\n\n`, isOpen: true }));
  const { events, gaps } = await read(origin, { transports: ["sse"] }, { enough: 1 });
  assert.deepEqual([events.map((event) => event.data), gaps], [[JSON.parse(data)], []]);
});

test("a stream is not open before it has a position", async () => {
  const { origin } = await fake(() => ({ headers: { "content-type": "text/event-stream" }, body: "retry: 1000\n", isCut: true }));
  const client = connect(origin, { transports: ["sse"], random: () => 0.01 });
  const topic = client.topic("t");
  let opened = 0;
  /** @type {AnemoneError[]} */ const errors = [];
  topic.onopen = () => (opened += 1);
  topic.onerror = (error) => errors.push(error);
  await until("an error", () => errors.length > 0);
  assert.equal(opened, 0);
  client.close();
});

test("a callback that fails later is told as one that fails at once", async () => {
  const { origin } = await fake(() => page("e-2", [2]));
  const client = connect(origin, { transports: ["poll"] });
  const topic = client.topic("t", { after: POSITION });
  /** @type {AnemoneError[]} */ const errors = [];
  topic.onmessage = async () => {
    throw new TypeError("my later mistake");
  };
  client.onerror = (error) => errors.push(error);
  await until("the error", () => errors.length > 0);
  assert.deepEqual([errors[0]?.code, String(errors[0]?.cause)], ["callback-failed", "TypeError: my later mistake"]);
  client.close();
});

test("topics whose names are too long for one URL are read on several streams", async () => {
  const names = ["a", "b", "c", "d"].map((name) => name.repeat(100));
  const { origin } = await fake(({ url = "" }) => {
    if (url.length > 500) return { status: 414, body: "<html>too long</html>" };
    const query = new URL(url, "http://localhost").searchParams;
    const topics = query.getAll("topic");
    if (topics.length === 0) return page("e-2", query.get("limit") === "1" ? [] : [2]);
    return { body: { next: topics.map((name) => `${name}:e-2`).join(), events: topics.map((topic) => ({ topic, position: "e-2", time: 1, data: { n: 2 } })) } };
  });
  const client = connect(origin, { transports: ["poll"], pollMs: 5, random: () => 0.01 });
  const seen = new Set();
  for (const name of names) client.topic(name, { after: POSITION }).onmessage = () => seen.add(name);
  await until("an event of each", () => seen.size === names.length);
  client.close();
});

test("the callbacks of the client hear of all topics", async () => {
  const { origin } = await fake(({ url }) => (/^\/topics\/none/.test(String(url)) ? problem("unknown-topic", 404, "there is none") : page("e-2", [2], { end: { reason: "ended" } })));
  const client = connect(origin, { transports: ["poll"] });
  /** @type {unknown[]} */ const told = [];
  client.onopen = ({ topic, transport }) => told.push(["open", topic.path, transport]);
  client.onmessage = ({ topic, data }) => told.push(["message", topic.path, data.n]);
  client.onerror = ({ code }) => told.push(["error", code]);
  client.onclose = (error) => told.push(["close", error?.code]);
  client.topic("t", { after: "e-1" });
  await until("its end", () => told.length === 3);
  client.topic("none", { after: "e-1" });
  await until("its end, too", () => told.length === 5);
  assert.deepEqual(told, [["open", "topics/t", "poll"], ["message", "topics/t", 2], ["close", undefined], ["error", "unknown-topic"], ["close", "unknown-topic"]]);
  client.close();
});

test("the wish of a server makes the waits longer", async () => {
  const { origin } = await fake(() => ({ headers: { "content-type": "text/event-stream" }, body: "retry: 7000\nid: e-1\n\n" }));
  const client = connect(origin, { transports: ["sse"], random: () => 1 });
  const begun = Date.now();
  const { retryAt } = await new Promise((/** @type {(error: AnemoneError) => void} */ resolve) => (client.topic("t").onerror = resolve));
  assert.ok(Number(retryAt) >= begun + 7000, `${Number(retryAt) - begun} ms`);
  client.close();
});
