/** Readings of one topic share a stream: what one that joins gets, and what the others notice of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../clients/js/src/client.js";
import { until } from "../e2e/support.js";

const HEAD = 2500;
const encoder = new TextEncoder();

/**
 * A server of a topic with 2,500 events, by a `fetch` of its own: its streams tell where they begin, and what is said then.
 * @param {import("../../clients/js/src/anemone-client/types.js").Options} options
 */
function topicServer(options = {}) {
  /** @type {string[]} */ const asked = [];
  /** @type {Set<{ place: number, say: (text: string) => void }>} */ const streams = new Set();
  const fetch = async (/** @type {URL} */ url, /** @type {any} */ { signal, headers }) => {
    const after = url.searchParams.get("after") ?? "";
    const isStream = headers.accept === "text/event-stream";
    asked.push(`${isStream ? "stream" : "page"} ${after}`);
    const place = after === "latest" ? HEAD : Number(after.slice(2));
    if (!isStream) {
      const events = Array.from({ length: Math.min(Number(url.searchParams.get("limit")), Math.max(0, HEAD - place)) }, (_, index) => ({ offset: place + 1 + index, time: 1, data: place + 1 + index }));
      return new Response(JSON.stringify({ epoch: "e", next: `e-${place + events.length}`, events }), { headers: { "content-type": "application/json" } });
    }
    const body = new ReadableStream({
      start(controller) {
        const stream = { place, say: (/** @type {string} */ text) => controller.enqueue(encoder.encode(text)) };
        stream.say(`id: e-${place}\n\n`);
        streams.add(stream);
        signal.addEventListener("abort", () => {
          streams.delete(stream);
          controller.error(signal.reason);
        });
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const client = connect("http://topics.test/", { transports: ["sse", "poll"], fetch: /** @type {any} */ (fetch), random: () => 0, ...options });
  return { client, asked, streams };
}

/** @param {import("../../clients/js/src/client.js").Client} client @param {string} after */
function reading(client, after) {
  const topic = client.topic("t", { after });
  /** @type {unknown[]} */ const got = [];
  /** @type {unknown[]} */ const told = [];
  topic.onmessage = ({ data }) => got.push(data);
  topic.ongap = (gap) => told.push(gap);
  topic.onerror = ({ code }) => told.push(code);
  topic.onopen = ({ transport }) => told.push(transport);
  return { topic, got, told };
}

test("one that joins at the place of the others is open at once, however quiet the topic is", async () => {
  const { client, asked, streams } = topicServer();
  const first = reading(client, "e-5");
  await until("the first", () => first.told[0] === "sse");
  const second = reading(client, "e-5");
  await until("the second", () => second.told[0] === "sse");
  assert.deepEqual([asked, streams.size], [["stream e-5"], 1]);
  client.close();
  await until("the end", () => streams.size === 0);
});

test("one that begins with new events, or far behind, gets what it asked for, and the others go on", async () => {
  const { client, asked, streams } = topicServer();
  const first = reading(client, `e-${HEAD}`);
  await until("the first", () => first.told[0] === "sse");
  const [newest, all] = [reading(client, "latest"), reading(client, "e-0")];
  await until("both", () => newest.told[0] === "sse" && all.got.length === HEAD);
  assert.deepEqual(asked.slice(1), ["page latest", "page e-0", "page e-64", "page e-320", "page e-1320", "page e-2320"]);
  for (const { say } of streams) say(`id: e-${HEAD + 1}\ntime: 1\ndata: ${HEAD + 1}\n\n`);
  await until("the new event", () => all.got.length === HEAD + 1 && first.got.length === 1);
  assert.deepEqual([first.got, newest.got, all.got.at(-1)], [[HEAD + 1], [HEAD + 1], HEAD + 1]);
  assert.deepEqual([...first.told, ...newest.told, ...all.told], ["sse", "sse", "sse"]);
  assert.equal(streams.size, 1);
  client.close();
});

test("what is silent is left by all at once, and nobody joins it", async () => {
  const { client, asked } = topicServer({ quietMs: 200 });
  const first = reading(client, "e-5");
  await until("the first", () => first.told[0] === "sse");
  const second = reading(client, "e-5");
  await until("both to leave", () => [first, second].every(({ told }) => told.includes("silent")));
  await until("both to be back", () => [first, second].every(({ told }) => told.lastIndexOf("sse") > told.indexOf("silent")));
  // They may have been silent again meanwhile.
  const [one, other] = [first, second].map(({ told }) => told.filter((word) => word === "sse").length);
  const shared = asked.filter((request) => request.startsWith("stream")).length;
  assert.ok(shared <= Math.max(Number(one), Number(other)) + 1, `${shared} streams for ${one} and ${other} readings`);
  client.close();
});

test("one that ends while it joins leaves nothing behind", async () => {
  const { client, streams } = topicServer();
  const first = reading(client, "e-5");
  await until("the first", () => first.told[0] === "sse");
  const second = reading(client, "latest");
  let isClosed = false;
  second.topic.onclose = () => void (isClosed = true);
  second.topic.onopen = () => second.topic.close();
  await until("its end", () => isClosed);
  first.topic.close();
  await until("the end of the stream", () => streams.size === 0);
  client.close();
});
