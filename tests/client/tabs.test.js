/**
 * Tabs that share one connection, in Chromium, on the real server.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { becomes, numbersTo, publish, until } from "../e2e/support.js";
import { browser } from "./browser.js";
import { patient, read, server } from "./page.js";
import { Relay } from "./relay.js";

const TABS = 6;
const STEP_MS_MAX = 300_000;

/**
 * @param {import("playwright-core").BrowserContext} context
 * @param {string} name
 * @param {string} [origin]
 * @param {Record<string, any>} [options] of the client
 */
async function openTab(context, name, origin = server.origin, options = undefined) {
  const page = await patient(await context.newPage());
  let sockets = 0;
  page.on("websocket", () => (sockets += 1));
  return { page, sockets: () => sockets, ...(await read(page, origin, name, options)) };
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
  const transports = () => Promise.all(tabs.map(async (tab) => (await tab.told()).opened.at(-1)));
  await becomes("one to lead", transports, ["mux", ...Array(TABS - 1).fill("tabs")]);
  assert.deepEqual(tabs.map((tab) => tab.sockets()), [1, 0, 0, 0, 0, 0]);
  await becomes("one connection", async () => new Set((await readersOf(name)).map(({ client }) => client)).size, 1);

  // The leader goes, once by its tab and once by its client, while events come.
  for (const { leader, last } of [{ leader: 0, last: 30 }, { leader: -1, last: 60 }]) {
    const publishing = publish(topic, last - (leader === 0 ? 24 : 29), last);
    if (leader === 0) {
      await tabs.shift()?.page.close();
    } else {
      const index = (await transports()).indexOf("mux");
      const [tab] = tabs.splice(index, 1);
      await tab?.page.evaluate("end()");
      await becomes("the end to be told", async () => (await tab?.told())?.closed, ["undefined"]);
    }
    await publishing;
    for (const tab of tabs) {
      const { numbers, gaps, closed } = await tab.has(last);
      assert.deepEqual([numbers, gaps, closed], [numbersTo(last), [], []]);
    }
    // All may have come before the leader went.
    await becomes("another one to lead", async () => (await transports()).sort(), ["mux", ...Array(tabs.length - 1).fill("tabs")]);
    await until("one connection", async () => new Set((await readersOf(name)).map(({ client }) => client)).size === 1);
  }
  await context.close();
});

test(`where no WebSocket opens, ${TABS} tabs have one stream, so that calls and pages get through`, { timeout: STEP_MS_MAX }, async () => {
  const relay = await Relay.start(server.origin);
  relay.weather = { upgrades: "refuse" };
  const name = "scratch-streamed";
  const topic = `${server.origin}/topics/${name}`;
  await publish(topic, 1, 5);
  const context = await browser.newContext();
  /** @type {Tab[]} */
  const tabs = [];
  for (let count = 0; count < TABS; count += 1) {
    const tab = await openTab(context, name, relay.origin);
    tabs.push(tab);
    await tab.has(5);
  }
  await becomes("one stream", async () => (await readersOf(name)).map(({ transport }) => transport), ["sse"]);
  for (const last of [30, 60]) {
    await publish(topic, last - (last === 30 ? 24 : 29), last);
    for (const tab of tabs) {
      const { numbers, gaps, closed } = await tab.has(last);
      assert.deepEqual([numbers, gaps, closed], [numbersTo(last), [], []]);
    }
    // A browser has six connections for a server.
    assert.equal(await tabs.at(-1)?.page.evaluate("fetch('/clock').then(({ status }) => status)"), 200);
    await tabs.shift()?.page.close();
    await becomes("one stream of those that are left", async () => (await readersOf(name)).map(({ transport }) => transport), ["sse"]);
  }
  await context.close();
  await relay.stop();
});

test("tabs tell that the server is gone, and why, as the one that leads does, and that it is back", { timeout: STEP_MS_MAX }, async () => {
  const relay = await Relay.start(server.origin);
  const name = "scratch-gone";
  const topic = `${server.origin}/topics/${name}`;
  await publish(topic, 1, 2);
  const context = await browser.newContext();
  // The waits between tries are short.
  const open = () => openTab(context, name, relay.origin, { random: 0.02 });
  const tabs = [await open(), await open(), await open()];
  for (const tab of tabs) await tab.has(2);
  const last = (/** @type {"errors" | "opened"} */ what) => async () => Promise.all(tabs.map(async (tab) => (await tab.told())[what].at(-1)));
  relay.weather = { isGone: true };
  relay.cut();
  // The connection is lost, and then no other is to be had.
  for (const tab of tabs) await until("the reason", async () => (await tab.told()).errors.some((error) => error.startsWith("unreachable: ")));
  const [led, ...others] = await Promise.all(tabs.map(async (tab) => (await tab.told()).errors.filter((error) => /^(lost|blocked|unreachable)/.test(error))));
  for (const other of others) assert.equal(other[0], led?.[0], `${other}`);
  relay.weather = {};
  await publish(topic, 3, 4);
  for (const tab of tabs) await tab.has(4);
  await becomes("the one that leads, and all others over it", last("opened"), ["mux", "tabs", "tabs"]);
  for (const tab of tabs) {
    const { numbers, gaps, closed } = await tab.told();
    assert.deepEqual([numbers, gaps, closed], [numbersTo(4), [], []]);
  }
  // Nobody has taken another way.
  assert.deepEqual(tabs.map((tab) => tab.sockets()).slice(1), [0, 0]);
  await context.close();
  await relay.stop();
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

test("a tab that leads and stands still is left", { timeout: STEP_MS_MAX }, async () => {
  const name = "scratch-still";
  const context = await browser.newContext();
  await publish(`${server.origin}/topics/${name}`, 1, 1);
  const leader = await openTab(context, name);
  await leader.has(1);
  const other = await openTab(context, name);
  await other.has(1);
  // A dialog that nobody answers.
  const asked = leader.page.waitForEvent("dialog");
  const still = leader.page.evaluate("alert('still')");
  const dialog = await asked;
  await publish(`${server.origin}/topics/${name}`, 2, 3);
  const { numbers, gaps, errors } = await other.has(3);
  assert.deepEqual([numbers, gaps], [numbersTo(3), []]);
  assert.match(String(errors), /silent: the tab that reads for this one does not answer/);
  await dialog.dismiss();
  await still;
  await context.close();
});
