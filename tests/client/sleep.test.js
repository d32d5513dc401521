/**
 * Pages that sleep: left and frozen by the browser, or on a machine that slept. In Chromium, and in Node by the same
 * events. On the real server.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { becomes, launchKeepingPages, numbersTo, publish, until } from "../e2e/support.js";
import { patient, read, server } from "./page.js";
import { Relay } from "./relay.js";

/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  browser = await launchKeepingPages();
});
after(() => browser?.close());

const STEP_MS_MAX = 300_000;

/** @param {string} name */
const url = (name) => `${server.origin}/topics/${name}`;

/** @param {string} name */
async function readersOf(name) {
  const { readers } = await (await fetch(`${url(name)}/readers`)).json();
  return readers.map((/** @type {any} */ { transport }) => transport);
}

/**
 * Leaves a page; Chromium freezes it and keeps it for the way back.
 * @param {import("playwright-core").Page} page
 */
async function leave(page) {
  await page.evaluate(() => void globalThis.addEventListener("pageshow", ({ persisted }) => (document.title = `persisted: ${persisted}`)));
  await page.goto(`${server.origin}/clock`);
}

/** @param {import("playwright-core").Page} page */
async function comeBack(page) {
  await page.goBack({ waitUntil: "commit" }); // what was kept does not load again
  await until("the page", async () => (await page.title()) === "persisted: true");
}

for (const transport of ["mux", "sse", "long-poll"]) {
  test(`${transport}: a page that was left is frozen, leaves the server alone, and misses nothing when it is back`, { timeout: STEP_MS_MAX }, async () => {
    const name = `scratch-frozen-${transport}`;
    const page = await patient(await (await browser.newContext()).newPage());
    const { has } = await read(page, server.origin, name, { transports: [transport] });
    await publish(url(name), 1, 2);
    await has(2);
    await leave(page);
    await until("the reader to go", async () => (await readersOf(name)).length === 0);
    await publish(url(name), 3, 5);
    await comeBack(page);
    const { numbers, gaps, errors, opened } = await has(5);
    assert.deepEqual([numbers, gaps, errors, opened], [numbersTo(5), [], [], [transport, transport]]);
    await page.context().close();
  });
}

test("a tab that is left gives the lead to another one, and reads over it when it is back", { timeout: STEP_MS_MAX }, async () => {
  const name = "scratch-frozen-tabs";
  const context = await browser.newContext();
  const [page, other] = [await patient(await context.newPage()), await patient(await context.newPage())];
  const [first, second] = [await read(page, server.origin, name), await read(other, server.origin, name)];
  await publish(url(name), 1, 2);
  for (const tab of [first, second]) await tab.has(2);
  await leave(page);
  await until("the other tab to lead", async () => (await second.told()).opened.at(-1) === "mux");
  await publish(url(name), 3, 4);
  const { numbers, gaps, errors, opened } = await second.has(4);
  assert.deepEqual([numbers, gaps, opened], [numbersTo(4), [], ["tabs", "mux"]]);
  assert.ok(errors.every((error) => error === "lost: the tab that has read for this one is gone"), String(errors));
  await comeBack(page);
  await publish(url(name), 5, 6);
  await second.has(6);
  const told = await first.has(6);
  assert.deepEqual([told.numbers, told.gaps, told.errors, told.opened], [numbersTo(6), [], [], ["mux", "tabs"]]);
  await becomes("the readers", () => readersOf(name), ["multiplexed", "multiplexed"]); // one for each tab, on one connection
  await context.close();
});

/**
 * Runs with the events of a page, in Node.
 * @param {(say: (type: string) => void) => Promise<void>} body
 */
async function asInPage(body) {
  const target = new EventTarget();
  Object.assign(globalThis, { addEventListener: target.addEventListener.bind(target) });
  try {
    await body((type) => void target.dispatchEvent(new Event(type)));
  } finally {
    Reflect.deleteProperty(globalThis, "addEventListener");
  }
}

test("events of a page: put away, shown, frozen, resumed", { timeout: STEP_MS_MAX }, async () => {
  for (const transport of /** @type {const} */ (["mux", "sse", "ndjson", "long-poll", "poll"])) {
    await asInPage(async (say) => {
      const name = `scratch-events-${transport}`;
      const client = connect(server.origin, { WebSocket, transports: [transport], pollMs: 5, waitSeconds: 1 });
      const topic = client.topic(name, { after: "earliest" });
      /** @type {number[]} */ const numbers = [];
      /** @type {unknown[]} */ const errors = [];
      topic.onmessage = ({ data }) => numbers.push(data.n);
      topic.onerror = (error) => errors.push(error);
      let last = 0;
      for (const [away, back] of /** @type {const} */ ([["pagehide", "pageshow"], ["freeze", "resume"]])) {
        await publish(url(name), last + 1, last + 2);
        await until("the events", () => numbers.at(-1) === last + 2);
        say(away);
        say(away);
        for (const type of ["visibilitychange", "online", "offline"]) say(type); // none of them brings the page back
        await until("the reader to go", async () => (await readersOf(name)).length === 0);
        await publish(url(name), last + 3, last + 4);
        const call = client.call("GET", "/clock"); // waits for the page to be back
        assert.equal(numbers.at(-1), last + 2);
        say(back);
        await until("the rest", () => numbers.at(-1) === last + 4);
        assert.equal((await call).status, 200);
        last += 4;
      }
      assert.deepEqual([numbers, errors], [numbersTo(last), []], transport);
      say("pagehide");
      client.close();
      assert.throws(() => client.topic(name), { code: "closed" });
    });
  }
});

test("a connection that died while the machine slept is found dead by what wakes the page", { timeout: STEP_MS_MAX }, async () => {
  for (const [transport, event] of /** @type {const} */ ([["mux", "visibilitychange"], ["mux", "offline"], ["sse", "online"], ["long-poll", "online"]])) {
    await asInPage(async (say) => {
      const relay = await Relay.start(server.origin);
      const name = `scratch-woken-${transport}-${event}`;
      // Its silence would be found much later.
      const client = connect(relay.origin, { WebSocket, transports: [transport], quietMs: 1e9, waitSeconds: 120, random: () => 0 });
      const topic = client.topic(name, { after: "earliest" });
      /** @type {number[]} */ const numbers = [];
      topic.onmessage = ({ data }) => numbers.push(data.n);
      await publish(url(name), 1, 2);
      await until("two events", () => numbers.length === 2);
      relay.die(); // what is open stays open, and nothing passes
      await publish(url(name), 3, 4);
      say(event);
      await until("the rest", () => numbers.length === 4);
      assert.deepEqual(numbers, numbersTo(4));
      client.close();
      await relay.stop();
    });
  }
});
