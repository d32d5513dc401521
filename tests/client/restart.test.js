/**
 * A server that is killed and comes back, again and again, while events are published and read: with topics on disk no event is lost
 * or comes twice, and without them what is gone is told. On the real server.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { folder, kill, numbersTo, ownAddress, remove, serve, until } from "../e2e/support.js";
import { TRANSPORTS } from "./history.js";

const KILLS = 3;
/** The events that are read before the first kill, and after each. */
const STEP = 20;

/** @typedef {import("../../clients/js/src/client.js").Client} Client */
/** @typedef {import("../../clients/js/src/anemone-client/types.js").TopicEvent} TopicEvent */

/**
 * Publishes 1, 2, 3, and so on, each until it is acknowledged.
 * @param {Client} client
 * @param {string} name
 */
function publishing(client, name) {
  let last = 0;
  let isOver = false;
  const publish = async (/** @type {number} */ n) => {
    for (;;) {
      try {
        return await client.publish(name, { n }, { key: `${name}-${n}` });
      } catch (error) {
        // The server may take longer to come back than a call waits; a client that was closed publishes nothing.
        if (/** @type {{ code?: string }} */ (error).code === "closed") return;
      }
    }
  };
  const all = (async () => {
    while (!isOver && (await publish(last + 1))) last += 1;
  })();
  const end = async () => {
    isOver = true;
    await all;
    return last;
  };
  return { end };
}

/**
 * Kills the server again and again, and returns what was read and published.
 * @param {import("./history.js").TRANSPORTS[number]} transport
 * @param {string[]} options of the server
 */
async function readThroughKills(transport, options) {
  const listen = await ownAddress();
  let server = await serve("--demo", "--listen", listen, ...options);
  const client = connect(server.origin, { WebSocket, transports: [transport], random: () => 0.1, pollMs: 5, waitSeconds: 1 });
  try {
    const topic = client.topic("scratch-killed", { after: "earliest" });
    /** @type {TopicEvent[]} */ const events = [];
    /** @type {unknown[]} */ const closed = [];
    topic.onmessage = (event) => events.push(event);
    topic.onclose = (error) => closed.push(error?.code);
    const { end } = publishing(client, "scratch-killed");
    const readMore = async () => {
      const enough = events.length + STEP;
      await until(`event ${enough}`, () => events.length >= enough);
    };
    await readMore();
    for (let kills = 0; kills < KILLS; kills += 1) {
      await kill(server);
      server = await serve("--demo", "--listen", listen, ...options);
      // An event that was read before the kill, and published again after it, must not pass for the last one.
      await readMore();
    }
    const last = await end();
    await until(`event ${last}`, () => events.at(-1)?.data.n === last);
    assert.deepEqual(closed, []);
    return { events, last };
  } finally {
    client.close();
    await kill(server);
  }
}

for (const transport of TRANSPORTS) {
  test(`${transport}: ${KILLS} kills of a server with topics on disk lose nothing, and repeat nothing`, { timeout: 300_000 }, async () => {
    const data = await folder("anemone-killed-");
    try {
      const { events, last } = await readThroughKills(transport, ["--data", data]);
      assert.deepEqual(events.map(({ data }) => data.n), numbersTo(last));
      assert.deepEqual(events.flatMap(({ gaps = [] }) => gaps), []);
    } finally {
      await remove(data);
    }
  });

  test(`${transport}: ${KILLS} kills of a server with topics in memory are told, and nothing else is missing`, { timeout: 300_000 }, async () => {
    const { events } = await readThroughKills(transport, []);
    for (const [index, { data, gaps }] of events.entries()) {
      if (!gaps) assert.equal(data.n, 1 + (index > 0 ? events[index - 1]?.data.n : 0));
      else assert.ok(gaps.every(({ reason, missed }) => reason === "epoch" && missed === null), JSON.stringify(gaps));
    }
    const told = events.flatMap(({ gaps = [] }) => gaps).length;
    assert.ok(told >= KILLS, `${told} gaps`);
  });
}
