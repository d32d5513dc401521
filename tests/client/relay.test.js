/**
 * The client in Node, on the real server, through a relay that breaks every connection: no event is lost, none comes
 * twice, and the order is that of the topic.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { kill, numbersTo, serve, until } from "../e2e/support.js";
import { CUTS, SEED, TRANSPORTS, publishThroughCuts, someBytes } from "./history.js";
import { Relay, seeded } from "./relay.js";

/** @typedef {import("../../clients/js/src/anemone-client/types.js").TransportName} TransportName */

/** @type {import("../e2e/support.js").Server} */ let server;

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
});

after(() => kill(server));

for (const transport of TRANSPORTS) {
  test(`${transport}: ${CUTS} cuts lose nothing, repeat nothing, and keep the order`, { timeout: 300_000 }, async () => {
    const random = seeded(SEED);
    const relay = await Relay.start(server.origin, random);
    const client = connect(relay.origin, { transports: [transport], WebSocket, random: () => 0, waitSeconds: 0.2, pollMs: 1 });
    const name = `scratch-cut-${transport}`;
    try {
      const topic = client.topic(name, { after: "earliest" });
      /** @type {number[]} */
      const numbers = [];
      /** @type {unknown[]} */
      const gaps = [];
      topic.ongap = (gap) => gaps.push(gap);
      topic.onmessage = ({ data }) => numbers.push(data.n);
      await until("the first connection", () => topic.position !== undefined && topic.position !== "earliest");
      const last = await publishThroughCuts(relay, [`${server.origin}/topics/${name}`], random);
      await until(`event ${last}`, () => numbers.at(-1) === last);
      assert.deepEqual(numbers, numbersTo(last), `seed ${SEED}`);
      assert.deepEqual(gaps, []);
      assert.ok(relay.cuts >= CUTS);
    } finally {
      client.close();
      await relay.stop();
    }
  });
}

test("publishing and calling through cuts happens once", { timeout: 300_000 }, async () => {
  for (const transport of /** @type {TransportName[]} */ (["mux", "sse"])) {
    const random = seeded(SEED);
    const relay = await Relay.start(server.origin, random);
    relay.weather = { cutAfter: () => 400 + someBytes(random) / 10 };
    const client = connect(relay.origin, { transports: [transport], WebSocket, random: () => 0 });
    const name = `scratch-once-${transport}`;
    for (let n = 1; n <= 200; n += 1) await client.publish(name, { n });
    assert.ok(relay.cuts >= 10, `${relay.cuts} cuts`);
    client.close();
    await relay.stop();
    const { events } = await (await fetch(`${server.origin}/topics/${name}?after=earliest`)).json();
    assert.deepEqual(events.map((/** @type {any} */ { data }) => data.n), numbersTo(200));
  }
});
