/**
 * Runs that several windows have open, on the real binary: a window that turns to another document cancels the run that it has begun, also
 * after a reload, and no other. One that it leaves is read no further.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default `/usr/bin/chromium`).
 * Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onMap, says } from "./maps.js";
import { folder, kill, launch, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
/** A map that takes very long, whatever the machine: 1,500,000 points behind hills, each for 8 transmitters. */
const LONG = {
  area: { width_m: 60_000, height_m: 24_000 },
  step_m: 31.1,
  model: "free-space",
  terrain: { type: "valley", depth_m: 900 },
  transmitters: Array.from({ length: 8 }, (_, index) => ({ name: `far ${index}`, x_m: 2_000 + 8_000 * index, y_m: 12_000, height_m: 30, frequency_mhz: 800, power_dbm: 43 })),
};

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
});

/** Starts a run as another program does; returns its key. */
async function begin({ origin } = server) {
  const headers = { "Content-Type": "application/json", Prefer: "respond-async" };
  const { key } = await (await fetch(`${origin}/propagation`, { method: "POST", headers, body: JSON.stringify(LONG) })).json();
  return String(key);
}

/** @param {string} key */
async function stateOf(key) {
  return await (await fetch(`${server.origin}/runs/${key}?state`)).json();
}

/**
 * Waits until the address leads to another run, and returns the key of that one.
 * @param {import("playwright-core").Page} page
 */
async function nextKey(page, before = "") {
  let key = "";
  await until("the address to lead to another run", () => (key = /run=([0-9a-f]{32})/.exec(page.url())?.[1] ?? "") !== "" && key !== before);
  return key;
}

/** @param {string} key */
async function goesOn(key) {
  const before = await stateOf(key);
  await until("the run to go on", async () => {
    const { state, progress } = await stateOf(key);
    assert.equal(state, "running");
    return progress > before.progress;
  });
}

/** @param {import("playwright-core").Page} page */
async function chooseAnotherPlace(page) {
  await page.locator("#preset").selectOption("plain");
}

test("a window that watches a run and turns to another place leaves it to the others, and its button cancels it", { timeout: STEP_MS_MAX }, async () => {
  const key = await begin();
  await onMap(
    browser,
    server,
    async (page) => {
      await says(page, "computes");
      const other = await page.context().newPage();
      await other.goto(page.url());
      await says(other, "computes");
      await chooseAnotherPlace(other);
      await nextKey(other, key);
      await goesOn(key);
      await says(page, "computes");
      await other.close();

      await page.getByRole("button", { name: "Cancel" }).click();
      await says(page, "cancelled");
      await until("the run to be cancelled", async () => (await stateOf(key)).state === "cancelled");
    },
    { at: `#run=${key}` },
  );
});

test("a run that this window has begun is cancelled by another place after a reload, too", { timeout: STEP_MS_MAX }, async () => {
  await onMap(browser, server, async (page) => {
    const example = await nextKey(page);
    await says(page, "done");
    await page.locator("#document summary").click();
    await page.getByLabel("The document, JSON").fill(JSON.stringify(LONG));
    await page.getByRole("button", { name: "Use this document" }).click();
    const key = await nextKey(page, example);
    await page.reload();
    await says(page, "computes");
    assert.equal((await stateOf(key)).state, "running");
    await chooseAnotherPlace(page);
    await until("the run to be cancelled", async () => (await stateOf(key)).state === "cancelled");
    assert.notEqual(await nextKey(page, key), key);
  }, { isCoarse: true });
});

test("a browser that keeps nothing for pages computes and watches, and leaves what it only watches", { timeout: STEP_MS_MAX }, async () => {
  await onMap(browser, server, async (page) => {
    await page.addInitScript(() => Object.defineProperty(window, "sessionStorage", { get: () => { throw new DOMException("denied", "SecurityError"); } }));
    await page.goto("about:blank");
    const key = await begin();
    await page.goto(`${server.origin}/propagation#run=${key}`);
    await says(page, "computes");
    await chooseAnotherPlace(page);
    await nextKey(page, key);
    await goesOn(key);
    await fetch(`${server.origin}/runs/${key}`, { method: "DELETE" });
  }, { isCoarse: true });
});

test("a run that waits is read no further once the window turns to another one", { timeout: STEP_MS_MAX }, async () => {
  const directory = await folder("anemone-watched-");
  const config = join(directory, "anemone.toml");
  await writeFile(config, "[limits]\nruns_running_max = 1\n");
  const narrow = await serve("--config", config, "--demo", "--listen", "127.0.0.1:0");
  try {
    const [first, waiting] = [await begin(narrow), await begin(narrow)];
    const page = await browser.newPage();
    /** @type {string[]} */
    const sent = [];
    page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(String(payload))));
    await page.goto(`${narrow.origin}/propagation#run=${waiting}`);
    await says(page, "starts next");
    await page.evaluate((key) => (location.hash = `#run=${key}`), first);
    await says(page, "computes");
    const read = new RegExp(`^GET (\\S+) /runs/${waiting}\\?(?!state)`);
    const [id] = sent.flatMap((request) => read.exec(request)?.[1] ?? []);
    assert.ok(id !== undefined, "the run was read");
    await until("the reading to end", () => sent.includes(`CANCEL ${id}`));
    await page.close();
  } finally {
    await kill(narrow);
    await remove(directory);
  }
});

test("a run that waits is read no further once it is cancelled here, also if the server does not hear of that", { timeout: STEP_MS_MAX }, async () => {
  const directory = await folder("anemone-watched-");
  const config = join(directory, "anemone.toml");
  await writeFile(config, "[limits]\nruns_running_max = 1\n");
  const narrow = await serve("--config", config, "--demo", "--listen", "127.0.0.1:0");
  try {
    const [, waiting] = [await begin(narrow), await begin(narrow)];
    const page = await browser.newPage();
    /** @type {string[]} */
    const sent = [];
    await page.routeWebSocket(/./, (socket) => {
      const answers = socket.connectToServer();
      socket.onMessage((message) => {
        sent.push(String(message));
        if (!String(message).startsWith("DELETE ")) answers.send(message);
      });
    });
    await page.goto(`${narrow.origin}/propagation#run=${waiting}`);
    await says(page, "starts next");
    await page.getByRole("button", { name: "Cancel" }).click();
    await says(page, "cancelled");
    const read = new RegExp(`^GET (\\S+) /runs/${waiting}\\?(?!state)`);
    const [id] = sent.flatMap((request) => read.exec(request)?.[1] ?? []);
    assert.ok(id !== undefined, "the run was read");
    await until("the reading to end", () => sent.includes(`CANCEL ${id}`));
    await until("the run to be cancelled", () => sent.some((request) => request.startsWith("DELETE ")));
    await page.close();
  } finally {
    await kill(narrow);
    await remove(directory);
  }
});
