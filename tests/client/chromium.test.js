/**
 * The client in Chromium, as a page of the server gets it, on the real server, through a relay that breaks every connection.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, kill, launch, numbersTo, publish, remove, serve, until } from "../e2e/support.js";
import { CUTS, SEED, TRANSPORTS, publishThroughCuts } from "./history.js";
import { Relay, seeded } from "./relay.js";

/** @typedef {{ numbers: number[], gaps: unknown[], opened: string[], errors: string[], position?: string, diagnosis: any }} Told */

const STEP_MS_MAX = 120_000;

/** @type {string} */ let directory;
/** @type {import("../e2e/support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-client-");
  await writeFile(join(directory, "index.html"), "<!doctype html><link rel=icon href=data:,><title>Client</title>");
  server = await serve("--demo", "--listen", "127.0.0.1:0", "--static", directory);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await kill(server);
  await remove(directory);
});

/**
 * Opens a page that reads a topic.
 * @param {string} origin
 * @param {string} name
 * @param {object} options of the client
 */
async function reading(origin, name, options) {
  const context = await browser.newContext();
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(origin);
  await page.evaluate(
    async ([name, options]) => {
      /** @type {typeof import("../../clients/js/src/client.js")} */
      const { connect } = await import(String("/client.js"));
      const client = connect("/", { ...options, random: () => 0 });
      const topic = client.topic(name, { after: "earliest" });
      /** @type {Told} */
      const told = { numbers: [], gaps: [], opened: [], errors: [], diagnosis: null };
      topic.onmessage = ({ data }) => told.numbers.push(data.n);
      topic.ongap = (gap) => told.gaps.push(gap);
      topic.onopen = ({ transport }) => told.opened.push(transport);
      topic.onerror = ({ code }) => told.errors.push(code);
      Object.assign(globalThis, { told: () => ({ ...told, position: topic.position, diagnosis: client.diagnosis }) });
    },
    /** @type {const} */ ([name, options]),
  );
  /** @type {() => Promise<Told>} */
  const told = () => page.evaluate("told()");
  const has = async (/** @type {number} */ last) => {
    await until(`event ${last}`, async () => (await told()).numbers.at(-1) === last);
    return await told();
  };
  return { context, page, told, has, faults };
}

for (const transport of TRANSPORTS) {
  test(`${transport}: ${CUTS} cuts lose nothing, repeat nothing, and keep the order`, { timeout: STEP_MS_MAX }, async () => {
    const random = seeded(SEED);
    const relay = await Relay.start(server.origin, random);
    const name = `scratch-page-${transport}`;
    const { context, told, has, faults } = await reading(relay.origin, name, { transports: [transport], waitSeconds: 0.2, pollMs: 1 });
    await until("the first connection", async () => (await told()).opened.length > 0);
    const last = await publishThroughCuts(relay, `${server.origin}/topics/${name}`, random);
    const { numbers, gaps } = await has(last);
    assert.deepEqual(numbers, numbersTo(last), `seed ${SEED}`);
    assert.deepEqual([gaps, faults], [[], []]);
    await context.close();
    await relay.stop();
  });
}

test("a WebSocket that gets no answer is left after 3 s, and taken again when it works", { timeout: STEP_MS_MAX }, async () => {
  const relay = await Relay.start(server.origin);
  const { context, told, has } = await reading(relay.origin, "scratch-page-blocked", { betterMs: 200 });
  await until("the first connection", async () => (await told()).opened.length > 0);
  relay.weather = { upgrades: "swallow" };
  relay.cut();
  await publish(`${server.origin}/topics/scratch-page-blocked`, 1, 3);
  const { diagnosis } = await has(3);
  const blocked = diagnosis.tries.find((/** @type {any} */ { code }) => code !== undefined);
  console.log(`left after ${blocked.ms} ms: ${blocked.message}`);
  assert.ok(["blocked", "timeout"].includes(blocked.code) && blocked.ms >= 2900, JSON.stringify(blocked));
  relay.weather = {};
  await until("the better transport", async () => (await told()).opened.at(-1) === "mux");
  await publish(`${server.origin}/topics/scratch-page-blocked`, 4, 6);
  const { numbers, gaps, opened } = await has(6);
  assert.deepEqual([numbers, gaps, opened], [numbersTo(6), [], ["mux", "sse", "mux"]]);
  await context.close();
  await relay.stop();
});

test("a page that was offline goes on at once", { timeout: STEP_MS_MAX }, async () => {
  for (const transport of ["mux", "sse"]) {
    const topic = `${server.origin}/topics/scratch-offline-${transport}`;
    const { context, told, has } = await reading(server.origin, `scratch-offline-${transport}`, { transports: [transport], waitSeconds: 1, pollMs: 10, quietMs: 1000 });
    await publish(topic, 1, 2);
    await has(2);
    await context.setOffline(true);
    await until("the loss to be told", async () => (await told()).errors.length > 0);
    await publish(topic, 3, 4);
    await context.setOffline(false);
    await publish(topic, 5, 6);
    const { numbers, gaps } = await has(6);
    assert.deepEqual([numbers, gaps], [numbersTo(6), []], transport);
    await context.close();
  }
});
