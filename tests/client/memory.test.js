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

/** An hour of 50 events a second with `make soak`. */
const EVENTS = process.env.TEST_SOAK ? 180_000 : 60_000;
const STEP = 20_000;
const BATCH = 1000;
/** The bytes that may be held more at the end than after the first 40,000 events, when everything that is bounded is full. */
const GROWTH_BYTES_MAX = 4 * 2 ** 20;

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
 * Publishes all events, and returns the heap in use after each step.
 * @param {import("playwright-core").Page} page
 * @param {(lines: string) => Promise<void>} publish
 * @param {(last: number) => Promise<void>} arrived
 * @param {number} [together] the events that are published before it waits for them
 */
async function heaps(page, publish, arrived, together = STEP) {
  const session = await page.context().newCDPSession(page);
  const found = [];
  for (let last = 0; last < EVENTS; ) {
    for (const end = last + STEP; last < end; last += BATCH) {
      const body = Array.from({ length: BATCH }, (_, index) => `{"n":${last + index + 1},"speed":${(index % 70) / 10}}`).join("\n");
      await publish(`${body}\n`);
      if ((last + BATCH) % together === 0) await arrived(last + BATCH);
    }
    await session.send("HeapProfiler.collectGarbage");
    found.push((await session.send("Runtime.getHeapUsage")).usedSize);
  }
  console.log(`${new URL(page.url()).pathname}: ${found.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(", ")} MiB`);
  return found;
}

/** @param {number[]} found */
function assertBounded(found) {
  const growth = Math.max(...found.slice(2)) - Number(found[1]);
  assert.ok(growth < GROWTH_BYTES_MAX, `${growth} bytes more: ${found}`);
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
    const found = await heaps(page, publishing(name), (last) => until(`event ${last}`, async () => (await page.evaluate("told.last")) === last));
    assert.equal(await page.evaluate("told.faults"), 0);
    assertBounded(found);
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
  assertBounded(await heaps(page, publishing(name), (last) => until(`event ${last}`, () => shows(last))));
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
    // The server retains 10,000 events, and none is to be lost to a transport that is slow.
    const found = await heaps(page, (lines) => appendFile(file, lines), (last) => until(`event ${last} by each`, async () => (await counts()).every((count) => count >= last)), 5000);
    assertBounded(found);
  } finally {
    await page.close();
    await kill(other);
    await remove(directory);
  }
});
