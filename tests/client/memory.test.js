/**
 * A page that reads on and on holds no more than at the beginning: events as fast as they go, through the client, through the page
 * about a topic, and by every transport at once through the page that compares them. On the real server, in Chromium.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, kill, launch, remove, serve, until } from "../e2e/support.js";

/** With `make soak`, an hour of 50 events a second. The bytes are those that may be held more at the end than after the first step, when everything that is bounded is full. */
const { EVENTS, STEP, GROWTH_BYTES_MAX } = process.env.TEST_SOAK
  ? { EVENTS: 180_000, STEP: 20_000, GROWTH_BYTES_MAX: 4 * 2 ** 20 }
  : { EVENTS: 6000, STEP: 2000, GROWTH_BYTES_MAX: 300_000 };
const BATCH = 1000;
/** The server retains 10,000 events of a file, and none is to be lost to a transport that is slow. */
const TOGETHER_MAX = 5000;

/** @type {import("../e2e/support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await kill(server);
});

/**
 * @param {string} name
 * @returns {(lines: string) => Promise<void>}
 */
function publishing(name) {
  return async (body) => {
    const reply = await fetch(`${server.origin}/topics/${name}`, { method: "POST", headers: { "content-type": "application/x-ndjson" }, body });
    assert.equal(reply.status, 201);
  };
}

/**
 * Publishes all events. What the page holds after each step is no more than after the first one: at once, or as soon as it has done what it
 * puts off.
 * @param {import("playwright-core").Page} page
 * @param {(lines: string) => Promise<void>} publish
 * @param {(last: number) => Promise<void>} arrived
 */
async function assertBounded(page, publish, arrived) {
  const session = await page.context().newCDPSession(page);
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize;
  };
  /** @type {number[]} */
  const found = [];
  const isBounded = async () => {
    found.push(await heap());
    return Number(found.at(-1)) - least < GROWTH_BYTES_MAX;
  };
  let least = Infinity;
  const inMiB = () => `${found.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(", ")} MiB`;
  for (let last = 0; last < EVENTS; ) {
    for (const end = last + STEP; last < end; last += BATCH) {
      const body = Array.from({ length: BATCH }, (_, index) => `{"n":${last + index + 1},"speed":${(index % 70) / 10}}`).join("\n");
      await publish(`${body}\n`);
      if ((last + BATCH) % Math.min(STEP, TOGETHER_MAX) === 0) await arrived(last + BATCH);
    }
    // One reading may be of a moment when the page has much to do.
    if (last === STEP) for (let reading = 0; reading < 5; reading += 1) least = Math.min(least, await heap());
    await until(`less than ${GROWTH_BYTES_MAX} bytes more`, isBounded).catch((error) => {
      throw new Error(`${error.message}: ${inMiB()}`);
    });
  }
  console.log(`${new URL(page.url()).pathname}: ${inMiB()}`);
}

for (const transport of ["mux", "sse"]) {
  test(`${transport}: ${EVENTS} events through the client`, { timeout: 900_000 }, async () => {
    const name = `scratch-memory-${transport}`;
    const page = await browser.newPage();
    await page.goto(`${server.origin}/clock`); // a document without scripts of its own
    await page.evaluate(
      async ([name, transport]) => {
        /** @type {typeof import("../../clients/js/src/client.js")} */
        const { connect } = await import(String("/client.js"));
        const topic = connect("/", { transports: [/** @type {any} */ (transport)] }).topic(String(name), { after: "earliest" });
        const told = { last: 0, faults: 0 };
        topic.onmessage = ({ data }) => {
          if (data.n !== told.last + 1) told.faults += 1;
          told.last = data.n;
        };
        Object.assign(globalThis, { told });
      },
      [name, transport],
    );
    await assertBounded(page, publishing(name), (last) => until(`event ${last}`, async () => (await page.evaluate("told.last")) === last));
    assert.equal(await page.evaluate("told.faults"), 0);
    await page.close();
  });
}

test(`${EVENTS} events through the page about a topic`, { timeout: 900_000 }, async () => {
  const name = "scratch-memory-page";
  await fetch(`${server.origin}/topics/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"n":0,"speed":0}' });
  const page = await browser.newPage();
  await page.goto(`${server.origin}/topics/${name}`);
  const shows = (/** @type {number} */ last) => page.evaluate((last) => new RegExp(`"?n"?:\\s*${last}\\b`).test(String(document.body.textContent)), last);
  await until("the first event", () => shows(0));
  await assertBounded(page, publishing(name), (last) => until(`event ${last}`, () => shows(last)));
  await page.close();
});

test(`${EVENTS} measurements by every transport through the page that compares them`, { timeout: 1_100_000 }, async () => {
  const directory = await folder("anemone-memory-");
  const file = join(directory, "wind.ndjson");
  await writeFile(file, '{"n":0,"speed":0}\n');
  const other = await serve("--file", `wind=${file}`, "--listen", "127.0.0.1:0");
  const page = await browser.newPage();
  try {
    await page.goto(`${other.origin}/transports`);
    const panes = ["websocket", "plain-websocket", "sse", "ndjson", "long-polling", "polling"];
    const counts = () => page.evaluate((panes) => panes.map((name) => Number(document.querySelector(`#pane-${name} [data-field=messages]`)?.textContent?.replaceAll(",", ""))), panes);
    const states = () => page.evaluate((panes) => panes.map((name) => document.querySelector(`#pane-${name}`)?.getAttribute("data-state")), panes);
    await until("all transports", async () => (await states()).every((state) => state === "connected"));
    await assertBounded(page, (lines) => appendFile(file, lines), (last) => until(`event ${last} by each`, async () => (await counts()).every((count) => count >= last)));
  } finally {
    await page.close();
    await kill(other);
    await remove(directory);
  }
});
