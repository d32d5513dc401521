/** The messages between tabs that share a connection: a tab that stands still is not sent without a bound, and one that is slow is not left. */
import assert from "node:assert/strict";
import { Link } from "../../clients/js/src/anemone-client/link.js";
import { read, serve } from "../../clients/js/src/anemone-client/tabs.js";
import { until } from "../e2e/support.js";
import { fake, page, test } from "./fakes.js";

const EVENTS = 5000;

/** A link to a server whose topic has many events, and a gap before the one in the middle. */
async function linkToMany() {
  const { origin } = await fake(({ url }) => {
    const after = Number(/after=e-(\d+)/.exec(String(url))?.[1]);
    const gap = after === EVENTS / 2 ? { reason: "retention", after: `e-${after}`, missed: 0, resume: `e-${after}` } : undefined;
    const most = after < EVENTS / 2 ? EVENTS / 2 : EVENTS;
    const last = Math.min(after + 400, most);
    return page(`e-${last}`, Array.from({ length: last - after }, (_, index) => after + 1 + index), { gap });
  });
  return new Link(origin, { transports: ["poll"], pollMs: 1 }, {});
}

test("a tab that does not take what it is sent gets a thousand events, and the others when it goes on, in order", async () => {
  const link = await linkToMany();
  const channel = new BroadcastChannel(`test ${Math.random()}`);
  /** @type {number[]} */ const numbers = [];
  /** @type {unknown[]} */ const gaps = [];
  /** @type {string[]} */ const places = [];
  channel.onmessage = ({ data: { item } }) => {
    if (item?.gap) gaps.push([item.gap.reason, numbers.length]);
    else if (item?.time !== undefined) numbers.push(item.data.n);
    else if (item?.position) places.push(`${item.position} after ${numbers.length}`);
  };
  serve(link, { id: channel.name, path: "topics/t", options: { after: "e-0" } });
  const [topic] = link.topics;
  await until("as many as wait in the topic", () => topic?.position === "e-2000");
  await until("as many as are sent", () => numbers.length === 1000);
  channel.postMessage({ taken: 0 }); // a sign of life, and no more
  await until("the place that was sent, and not the one that was read", () => places.at(-1) === "e-1000 after 1000");
  assert.equal(numbers.length, 1000);
  while (numbers.length < EVENTS) {
    const before = numbers.length;
    channel.postMessage({ taken: before });
    await until("more events", () => numbers.length > before);
    assert.ok(numbers.length <= before + 1000);
  }
  assert.deepEqual(numbers, Array.from({ length: EVENTS }, (_, index) => index + 1));
  assert.deepEqual(gaps, [["retention", EVENTS / 2]]);
  channel.close();
  link.close();
});

test("a tab that leads is left after three pings without an answer, and is told what has been taken without a timer", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const link = new Link("http://127.0.0.1:1/", { transports: ["poll"] }, {});
  /** @type {any[]} */ const asked = [];
  /** @type {any[]} */ const pings = [];
  link.share = /** @type {any} */ ({ postMessage: (/** @type {any} */ message) => asked.push(message) });
  const { signal } = new AbortController();
  let left = "";
  let taken = 0;
  const reading = { link, path: "topics/t", options: () => ({}), losses: () => 0, signal, take: (/** @type {any} */ { data }) => void (taken = data ?? taken), wait: () => {} };
  const end = read(reading).catch((error) => (left = error.code));
  const leader = new BroadcastChannel(asked[0].id);
  leader.onmessage = ({ data }) => pings.push(data);
  for (let n = 1; n <= 250; n += 1) leader.postMessage({ item: { position: `e-${n}`, time: 1, data: n } });
  await until("what has been taken", () => pings.length === 1);
  assert.deepEqual(pings, [{ taken: 250 }]);
  t.mock.timers.tick(3000);
  await until("three pings", () => pings.length === 4);
  assert.equal(left, "");
  leader.postMessage({ item: {} });
  leader.postMessage({ item: { position: "e-251", time: 1, data: 251 } });
  await until("the answer", () => taken === 251);
  // It was in time: three more pings may follow.
  t.mock.timers.tick(3000);
  await until("three more", () => pings.length === 7);
  assert.deepEqual([left, pings.at(-1)], ["", { taken: 251 }]);
  t.mock.timers.tick(1000);
  await end;
  assert.equal(left, "silent");
  leader.close();
  link.close();
});
