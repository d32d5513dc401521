/**
 * Runs, calls and publishing over each transport, on the real server.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and python3. Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { kill, serve, until } from "../e2e/support.js";
import { TRANSPORTS } from "./history.js";
import { Relay, seeded } from "./relay.js";

/** @type {import("../e2e/support.js").Server} */ let server;

before(async () => {
  const programs = ["primes=python3 -u examples/primes.py", "fails=sh -c 'echo 1; echo broken >&2; exit 3'", "waits=sh -c 'echo 1; sleep 600'"];
  server = await serve("--demo", "--listen", "127.0.0.1:0", ...programs.flatMap((program) => ["--run", program]));
});

after(() => kill(server));

for (const transport of TRANSPORTS) {
  test(`${transport}: a run has partial results, progress, a result and an end`, { timeout: 300_000 }, async () => {
    const client = connect(server.origin, { WebSocket, transports: [transport], pollMs: 5, waitSeconds: 1 });
    try {
      const run = client.run("/primes", 300);
      /** @type {number[]} */ const progress = [];
      run.onprogress = (told) => progress.push(told.progress);
      const primes = [];
      for await (const prime of run) primes.push(prime);
      assert.deepEqual([primes.length, primes[0], primes.at(-1)], [62, 2, 293]);
      assert.equal(await run.result, undefined);
      assert.equal(progress.at(-1), 1);
      assert.match(await run.key, /^[0-9a-f]{32}$/);
      assert.equal((await run.cancel()).state, "done"); // which changes nothing

      // Whoever waits for the result alone hears of the progress, too.
      const other = client.run("/primes", 300);
      /** @type {number[]} */ const heard = [];
      other.onprogress = (told) => heard.push(told.progress);
      await other.result;
      const all = [];
      for await (const { data } of other.events()) if ("progress" in data) all.push(data.progress);
      assert.deepEqual(heard, all);
      assert.equal(heard.at(-1), 1);

      const failing = client.run("/fails");
      await assert.rejects(() => failing.result, { name: "AnemoneError", code: "run-failed" });
      await assert.rejects(async () => { for await (const _ of failing); }, { code: "run-failed" });

      const waiting = client.run("/waits");
      for await (const one of waiting) {
        assert.equal(one, 1);
        assert.equal((await waiting.cancel()).state, "cancelled");
        break;
      }
      await assert.rejects(() => waiting.result, { code: "run-cancelled" });
      await assert.rejects(() => client.run("/nothing").key, { name: "AnemoneError", code: "unknown-path" });
    } finally {
      client.close();
    }
  });

  test(`${transport}: a record is changed only as it was read`, { timeout: 300_000 }, async () => {
    const client = connect(server.origin, { WebSocket, transports: [transport] });
    try {
      const { status, data, fields } = await client.call("POST", "/messages", { text: "hi" }, { key: true });
      assert.deepEqual([status, data.text], [201, "hi"]);
      const path = `/messages/${data.id}`;
      const { etag = "" } = (await client.call("GET", path)).fields;
      assert.equal(fields.etag, etag);
      // @ts-expect-error: plain JavaScript has no types that forbid it
      const unset = client.call("PATCH", path, { text: "x" }, { headers: { "if-match": undefined } });
      await assert.rejects(unset, { code: "bad-argument", message: /if-match/ });
      const changed = await client.call("PATCH", path, { text: "ü" }, { headers: { "if-match": etag } });
      assert.equal(changed.data.text, "ü");
      await assert.rejects(() => client.call("PATCH", path, { text: "c" }, { headers: { "if-match": etag } }), { code: "precondition-failed", status: 412 });
      assert.equal((await client.call("GET", path, undefined, { headers: { "if-none-match": changed.fields.etag ?? "" } })).status, 304);
      assert.equal((await client.call("DELETE", path)).status, 200);
      await assert.rejects(() => client.call("GET", path), { code: "unknown-record" });
    } finally {
      client.close();
    }
  });

  test(`${transport}: what is published comes back`, { timeout: 300_000 }, async () => {
    const client = connect(server.origin, { WebSocket, transports: [transport], pollMs: 5 });
    try {
      const name = `scratch-types-${transport}`;
      const values = [null, 0, "", "text", [1, { a: "ü\n" }], { deep: { er: true } }];
      const positions = [];
      for (const value of values) positions.push((await client.publish(name, value)).position);
      const repeated = [await client.publish(name, "once", { key: "k-1" }), await client.publish(name, "once", { key: "k-1" })];
      assert.deepEqual(repeated[0], repeated[1]);
      const seen = [];
      for await (const { data, position } of client.topic(name, { after: "earliest" })) {
        seen.push({ data, position });
        if (data === "once") break;
      }
      assert.deepEqual(seen.map(({ data }) => data), [...values, "once"]);
      assert.deepEqual(seen.map(({ position }) => position), [...positions, repeated[0]?.position]);
      await assert.rejects(() => client.publish("wind", 1), { code: "method-not-allowed", status: 405 });
    } finally {
      client.close();
    }
  });
}

for (const transport of TRANSPORTS) {
  test(`${transport}: a run is watched by its key, from another client`, { timeout: 300_000 }, async () => {
    const options = { WebSocket, transports: [transport], pollMs: 5, waitSeconds: 1 };
    const [client, other] = [connect(server.origin, options), connect(server.origin, options)];
    try {
      const key = await client.run("/primes", 100).key;
      const run = other.watch(key);
      /** @type {any[]} */ const events = [];
      for await (const { data, position } of run.events()) events.push({ ...data, position });
      assert.deepEqual(events.map(({ partial }) => partial).filter(Boolean).slice(0, 3), [2, 3, 5]);
      assert.equal(events.at(-1).state, "done");
      assert.deepEqual(events.map(({ position }) => Number(position.split("-")[1])), events.map((_, index) => index + 1));
      const rest = [];
      for await (const { data } of run.events({ after: events.at(-2).position })) rest.push(data.state);
      assert.deepEqual(rest, ["done"]);
      assert.equal(await run.result, undefined);

      const waiting = other.watch(await client.run("/waits").key);
      assert.equal((await waiting.cancel()).state, "cancelled");
      await assert.rejects(() => waiting.result, { code: "run-cancelled" });
      await assert.rejects(() => other.watch("0".repeat(32)).result, { name: "AnemoneError", code: "unknown-run", status: 404 });
    } finally {
      client.close();
      other.close();
    }
  });
}

test("the items of a reply come one by one, on every transport", { timeout: 300_000 }, async () => {
  for (const transport of TRANSPORTS) {
    const client = connect(server.origin, { WebSocket, transports: [transport] });
    const items = [];
    for await (const item of client.items("POST", "/primes", 100)) items.push(item);
    assert.deepEqual(items.map(({ data }) => data?.partial).filter(Boolean).slice(-2), [89, 97], transport);
    assert.deepEqual(items.at(-1), { end: { reason: "ended" } });
    const first = client.items("POST", "/waits?attach");
    for await (const item of first) if (item.data?.partial) break;
    await until("the run to end with its reader", async () => {
      const { runs } = await (await fetch(`${server.origin}/runs`)).json();
      return runs.every((/** @type {any} */ { service, state }) => service !== "/waits" || state === "cancelled");
    });
    await assert.rejects(() => client.items("POST", "/nothing").next(), { name: "AnemoneError", code: "unknown-path", status: 404 });
    client.close();
  }
});

test("a run is read to its end through cuts, and started once", { timeout: 300_000 }, async () => {
  for (const transport of /** @type {const} */ (["mux", "sse"])) {
    const random = seeded(7);
    const relay = await Relay.start(server.origin, random);
    const client = connect(relay.origin, { WebSocket, transports: [transport], waitSeconds: 0.2, random: () => 0 });
    relay.weather = { cutAfter: () => 700 + 3000 * random() };
    const run = client.run("/primes", 3000);
    const primes = [];
    for await (const prime of run) primes.push(prime);
    assert.deepEqual([primes.length, primes.at(-1), new Set(primes).size], [430, 2999, 430], transport);
    await until("some cuts", () => relay.cuts > 2);
    client.close();
    await relay.stop();
  }
  const { runs } = await (await fetch(`${server.origin}/runs`)).json();
  assert.equal(runs.filter((/** @type {any} */ { service, text }) => service === "/primes" && text === "up to 3000").length, 2);
});
