/** Loops and `onclose`: who gets the events that wait, and when the end is told. */
import assert from "node:assert/strict";
import { connect } from "../../clients/js/src/client.js";
import { until } from "../e2e/support.js";
import { fake, page, test } from "./fakes.js";

const ENDED = { end: { reason: "ended" } };

test("the loops of a topic share its events, and let everything else run", async () => {
  let isThere = false;
  const { origin } = await fake(() => page(isThere ? "e-3" : "e-1", isThere ? [2, 3] : [], isThere ? ENDED : {}));
  const client = connect(origin, { transports: ["poll"], pollMs: 1 });
  const topic = client.topic("t", { after: "e-1" });
  /** @type {number[]} */ const seen = [];
  const loops = [0, 1].map(async () => {
    for await (const { data } of topic) seen.push(data.n);
  });
  // Timers run while both wait.
  await new Promise((resolve) => setTimeout(resolve));
  isThere = true;
  await Promise.all(loops);
  assert.deepEqual(seen.sort(), [2, 3]);
  client.close();
});

test("`onclose` comes after the events of a loop, also when it is left", async () => {
  const { origin } = await fake(() => page("e-4", [2, 3, 4], ENDED));
  const client = connect(origin, { transports: ["poll"] });
  for (const [last, expected] of /** @type {const} */ ([[4, [2, 3, 4, "close"]], [2, [2, "close"]]])) {
    /** @type {unknown[]} */ const told = [];
    const topic = client.topic("t", { after: "e-1" });
    topic.onclose = () => told.push("close");
    for await (const { data } of topic) {
      told.push(data.n);
      await until("the end", () => topic.isEnded);
      if (data.n === last && last === 2) break;
    }
    assert.deepEqual(told, expected);
  }
  client.close();
});

test("a topic that is closed, or whose client is, tells it, also when it had ended with events that nobody took", async () => {
  const { origin } = await fake(() => page("e-2", [2], ENDED));
  for (const isOfClient of [false, true]) {
    const client = connect(origin, { transports: ["poll"] });
    const topic = client.topic("t", { after: "e-1" });
    let closed = 0;
    topic.onclose = () => void (closed += 1);
    await until("the end", () => topic.isEnded);
    assert.equal(closed, 0);
    if (!isOfClient) topic.close();
    client.close();
    topic.close();
    assert.equal(closed, 1);
  }
});

test("a loop that is left leaves the others their events", async () => {
  const { origin } = await fake(() => page("e-6", [2, 3, 4, 5, 6], ENDED));
  const client = connect(origin, { transports: ["poll"] });
  const topic = client.topic("t", { after: "e-1" });
  /** @type {number[]} */ const seen = [];
  const stays = async () => {
    for await (const { data } of topic) seen.push(data.n);
  };
  const leaves = async () => {
    for await (const { data } of topic) {
      seen.push(data.n);
      break;
    }
  };
  await Promise.all([leaves(), stays()]);
  assert.deepEqual(seen.sort(), [2, 3, 4, 5, 6]);
  client.close();
});
