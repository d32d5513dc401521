/**
 * The client in Chromium, as a page of the server gets it, on the real server, through a relay that breaks every connection.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { numbersTo, publish, until } from "../e2e/support.js";
import { browser } from "./browser.js";
import { CUTS, SEED, TRANSPORTS, publishThroughCuts } from "./history.js";
import { patient, read, server } from "./page.js";
import { ONLY_POLLS, Relay, seeded } from "./relay.js";

const STEP_MS_MAX = 300_000;

/**
 * Opens a page that reads topics; what it is told of the first one and of all others can be asked for.
 * @param {string} origin
 * @param {string} name
 * @param {object} options of the client
 * @param {string[]} others
 * @param {import("playwright-core").Page} [page]
 */
async function reading(origin, name, options, others = [], page) {
  page ??= await (await browser.newContext()).newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  return { context: page.context(), faults, page, ...(await read(page, origin, name, options, others)) };
}

/** @type {import("playwright-core").Page | undefined} */ let reused;

/**
 * The same in a page that is opened once: another one is another process.
 * @param {string} origin
 * @param {string} name
 * @param {object} options of the client
 * @param {string[]} [others]
 */
async function readingThroughCuts(origin, name, options, others) {
  if (!reused || reused.isClosed()) reused = await (await browser.newContext()).newPage();
  // Those of the test before, and none of Playwright's own.
  for (const event of ["pageerror", "request"]) reused.removeAllListeners(event);
  return await reading(origin, name, options, others, reused);
}

for (const transport of TRANSPORTS) {
  test(`${transport}: ${CUTS} cuts lose nothing, repeat nothing, and keep the order`, { timeout: STEP_MS_MAX }, async () => {
    const random = seeded(SEED);
    const relay = await Relay.start(server.origin, random);
    const name = `scratch-page-${transport}`;
    const { page, told, has, faults } = await readingThroughCuts(relay.origin, name, { transports: [transport], waitSeconds: 0.2, pollMs: 1 });
    await until("the first connection", async () => (await told()).opened.length > 0);
    const last = await publishThroughCuts(relay, [`${server.origin}/topics/${name}`], random);
    const { numbers, gaps } = await has(last);
    assert.deepEqual(numbers, numbersTo(last), `seed ${SEED}`);
    assert.deepEqual([gaps, faults], [[], []]);
    await page.evaluate("end()");
    await relay.stop();
  });
}

for (const transport of /** @type {const} */ (["sse", "long-poll"])) {
  test(`${transport}: ${CUTS} cuts lose nothing of several topics on one stream`, { timeout: STEP_MS_MAX }, async () => {
    const random = seeded(SEED);
    const relay = await Relay.start(server.origin, random);
    const names = ["a", "b", "c"].map((letter) => `scratch-page-many-${transport}-${letter}`);
    const [name = "", ...others] = names;
    const { page, told, has, ofOthers, faults } = await readingThroughCuts(relay.origin, name, { transports: [transport], waitSeconds: 0.2 }, others);
    let most = 0;
    page.on("request", (request) => (most = Math.max(most, new URL(request.url()).searchParams.getAll("topic").length)));
    await until("the first connection", async () => (await told()).opened.length > 0);
    const last = await publishThroughCuts(relay, names.map((name) => `${server.origin}/topics/${name}`), random);
    const { numbers, gaps } = await has(last);
    await until("the others", async () => (await ofOthers()).every((numbers) => numbers.at(-1) === last));
    assert.deepEqual([numbers, ...(await ofOthers())], Array(3).fill(numbersTo(last)), `seed ${SEED}`);
    assert.deepEqual([gaps, faults, most], [[], [], 3]);
    await page.evaluate("end()");
    await relay.stop();
  });
}

// Without WebSocket: Chromium waits longer and longer before it opens one where others did not open.
test(`where all that is better than a poll breaks, ${CUTS} cuts lose nothing, and the better transport is taken again`, { timeout: STEP_MS_MAX }, async () => {
  const random = seeded(SEED);
  const relay = await Relay.start(server.origin, random);
  relay.weather = ONLY_POLLS;
  const name = "scratch-page-polls";
  const { page, told, has, faults } = await readingThroughCuts(relay.origin, name, { transports: ["sse", "long-poll", "poll"], pollMs: 1, waitSeconds: 0.1, betterMs: 1000 });
  const opened = async () => (await told()).opened;
  await until("a poll", async () => (await opened()).at(-1) === "poll");
  const last = await publishThroughCuts(relay, [`${server.origin}/topics/${name}`], random, ONLY_POLLS);
  await has(last);
  assert.deepEqual(new Set(await opened()), new Set(["long-poll", "poll"]), "nothing better opens");
  relay.weather = {};
  relay.cut();
  await until("the better transport", async () => (await opened()).at(-1) === "sse");
  await publish(`${server.origin}/topics/${name}`, last + 1, last + 3);
  const { numbers, gaps } = await has(last + 3);
  assert.deepEqual([numbers, gaps, faults], [numbersTo(last + 3), [], []], `seed ${SEED}`);
  await page.evaluate("end()");
  await relay.stop();
});

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

test("a part that does not load is a failed transport: told, waited for, and tried again", { timeout: STEP_MS_MAX }, async () => {
  const relay = await Relay.start(server.origin);
  relay.weather = { upgrades: "refuse" };
  const context = await browser.newContext();
  const page = await patient(await context.newPage());
  let refused = 0;
  await context.route(/anemone-client\/(http|call)\.js/, (route) => ((refused += 1) <= 4 ? route.abort() : route.continue()));
  await page.goto(relay.origin);
  await publish(`${server.origin}/topics/scratch-parts`, 1, 2);
  await page.evaluate(async () => {
    /** @type {typeof import("../../clients/js/src/client.js")} */
    const { connect } = await import(String("/client.js"));
    const client = connect("/", { transports: ["mux", "sse"], random: () => 0.1 });
    const topic = client.topic("scratch-parts", { after: "earliest" });
    /** @type {{ numbers: number[], errors: any[] }} */
    const told = { numbers: [], errors: [] };
    topic.onmessage = ({ data }) => told.numbers.push(data.n);
    topic.onerror = ({ code, message, retryAt }) => told.errors.push({ code, message, isWaiting: retryAt !== undefined });
    Object.assign(globalThis, { told: () => told, publish: () => client.publish("scratch-parts", { n: 3 }).then(() => "published") });
  });
  await until("the events", async () => (await page.evaluate("told()")).numbers.length === 2);
  const { errors } = await page.evaluate("told()");
  assert.deepEqual(new Set(errors.map((/** @type {any} */ { code }) => code)), new Set(["blocked", "unreachable"]));
  assert.ok(errors.every((/** @type {any} */ { message, isWaiting }) => message && isWaiting), JSON.stringify(errors));
  assert.equal(refused, 5, "no more loads than tries");
  assert.equal(await page.evaluate("publish()"), "published");
  await context.close();
  await relay.stop();
});

test("a part whose connection has died silently is loaded over another", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  let asked = 0;
  await context.route(/anemone-client\/call\.js/, (route) => ((asked += 1) === 1 ? undefined : route.continue())); // no answer at first
  await page.goto(server.origin);
  const reply = await page.evaluate(async () => {
    /** @type {typeof import("../../clients/js/src/client.js")} */
    const { connect } = await import(String("/client.js"));
    return await connect("/").call("GET", "clock");
  });
  assert.deepEqual([reply.status, asked], [200, 2]);
  await context.close();
});

test("a page that was offline goes on at once", { timeout: STEP_MS_MAX }, async () => {
  for (const transport of ["mux", "sse"]) {
    const topic = `${server.origin}/topics/scratch-offline-${transport}`;
    // Without the events of the page, silence and the wait for the next try would last for hours.
    const { context, told, has } = await reading(server.origin, `scratch-offline-${transport}`, { transports: [transport], quietMs: 1e9, random: 1e5 });
    await publish(topic, 1, 2);
    await has(2);
    await context.setOffline(true);
    // Chromium lets a stream over HTTP go on that is open.
    if (transport === "mux") await until("the loss to be told", async () => (await told()).errors.length > 0);
    await publish(topic, 3, 4);
    await context.setOffline(false);
    await until("another connection", async () => (await told()).opened.length === 2);
    await publish(topic, 5, 6);
    const { numbers, gaps } = await has(6);
    assert.deepEqual([numbers, gaps], [numbersTo(6), []], transport);
    await context.close();
  }
});
