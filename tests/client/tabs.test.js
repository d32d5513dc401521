/**
 * Tabs that share one connection, in Chromium, on the real server.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, kill, launch, numbersTo, publish, remove, serve, until } from "../e2e/support.js";

const TABS = 6;
const STEP_MS_MAX = 120_000;

/** @type {string} */ let directory;
/** @type {import("../e2e/support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-tabs-");
  await writeFile(join(directory, "index.html"), "<!doctype html><link rel=icon href=data:,><title>Tab</title>");
  server = await serve("--demo", "--listen", "127.0.0.1:0", "--static", directory);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await kill(server);
  await remove(directory);
});

/** @typedef {{ numbers: number[], gaps: unknown[], errors: string[], transport: string, closed: string[] }} Told */

/**
 * @param {import("playwright-core").BrowserContext} context
 * @param {string} name
 */
async function openTab(context, name) {
  const page = await context.newPage();
  let sockets = 0;
  page.on("websocket", () => (sockets += 1));
  await page.goto(server.origin);
  await page.evaluate(async (name) => {
    /** @type {typeof import("../../clients/js/src/client.js")} */
    const { connect } = await import(String("/client.js"));
    const client = connect("/");
    const topic = client.topic(name, { after: "earliest" });
    /** @type {Told} */
    const told = { numbers: [], gaps: [], errors: [], transport: "", closed: [] };
    topic.onmessage = ({ data }) => told.numbers.push(data.n);
    topic.ongap = (gap) => told.gaps.push(gap);
    topic.onerror = ({ code, message }) => told.errors.push(`${code}: ${message}`);
    topic.onclose = (error) => told.closed.push(String(error?.code));
    topic.onopen = ({ transport }) => (told.transport = transport);
    Object.assign(globalThis, { told: () => told, end: () => client.close() });
  }, name);
  /** @type {() => Promise<Told>} */
  const told = () => page.evaluate("told()");
  const has = async (/** @type {number} */ last) => {
    await until(`event ${last}`, async () => (await told()).numbers.at(-1) === last).catch(async (error) => {
      throw new Error(`${error.message}: ${JSON.stringify(await told())}`);
    });
    return await told();
  };
  return { page, told, has, sockets: () => sockets };
}

/** @typedef {Awaited<ReturnType<typeof openTab>>} Tab */

/** The readers that the server has of a topic. */
async function readersOf(/** @type {string} */ name) {
  const reply = await fetch(`${server.origin}/topics/${name}/readers`);
  return /** @type {{ readers: { transport: string, client: string }[] }} */ (await reply.json()).readers;
}

test(`${TABS} tabs have one connection, and lose nothing when the leader is closed`, { timeout: STEP_MS_MAX }, async () => {
  const name = "scratch-tabs";
  const topic = `${server.origin}/topics/${name}`;
  await publish(topic, 1, 5);
  const context = await browser.newContext();
  /** @type {Tab[]} */
  const tabs = [];
  for (let count = 0; count < TABS; count += 1) tabs.push(await openTab(context, name));
  for (const tab of tabs) await tab.has(5);
  const transports = await Promise.all(tabs.map(async (tab) => (await tab.told()).transport));
  assert.deepEqual(transports, ["mux", ...Array(TABS - 1).fill("tabs")]);
  assert.deepEqual(tabs.map((tab) => tab.sockets()), [1, 0, 0, 0, 0, 0]);
  assert.equal(new Set((await readersOf(name)).map(({ client }) => client)).size, 1);

  // The leader goes, once by its tab and once by its client, while events come.
  for (const { leader, last } of [{ leader: 0, last: 30 }, { leader: -1, last: 60 }]) {
    const publishing = publish(topic, last - (leader === 0 ? 24 : 29), last);
    if (leader === 0) {
      await tabs.shift()?.page.close();
    } else {
      const told = await Promise.all(tabs.map((tab) => tab.told()));
      const index = told.findIndex(({ transport }) => transport === "mux");
      const [tab] = tabs.splice(index, 1);
      await tab?.page.evaluate("end()");
      assert.deepEqual((await tab?.told())?.closed, ["undefined"]);
    }
    await publishing;
    for (const tab of tabs) {
      const { numbers, gaps, closed } = await tab.has(last);
      assert.deepEqual([numbers, gaps, closed], [numbersTo(last), [], []]);
    }
    await until("one connection", async () => new Set((await readersOf(name)).map(({ client }) => client)).size === 1);
    /** @type {string[]} */
    const now = await Promise.all(tabs.map(async (tab) => (await tab.told()).transport));
    assert.deepEqual(now.sort(), ["mux", ...Array(tabs.length - 1).fill("tabs")]);
  }
  await context.close();
});

test("what ends a reading is told in each tab", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext();
  const first = await openTab(context, "scratch-ended");
  await publish(`${server.origin}/topics/scratch-ended`, 1, 1);
  await first.has(1);
  const second = await openTab(context, "scratch-ended");
  const third = await openTab(context, "no-such-topic");
  await second.has(1);
  await fetch(`${server.origin}/topics/scratch-ended`, { method: "DELETE" });
  for (const [tab, code] of /** @type {const} */ ([[first, "topic-deleted"], [second, "topic-deleted"], [third, "unknown-topic"]])) {
    await until(`the end: ${code}`, async () => (await tab.told()).closed.length > 0);
    assert.deepEqual((await tab.told()).closed, [code]);
  }
  await context.close();
});
