/** Browsers that are too old for the pages: Chromium without what they lack. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PATIENCE_MS, kill, launch, serve } from "./support.js";

/** @type {import("./support.js").Server} */
let server;
/** @type {import("playwright-core").Browser} */
let browser;

before(async () => {
  [server, browser] = await Promise.all([serve("--demo"), launch()]);
});

after(async () => {
  await browser?.close();
  await kill(server);
});

const PAGES = ["", "wind", "runs", "messages", "connections", "lab", "computations", "propagation", "topics/wind", "topics/none", "runs/0123456789abcdef0123456789abcdef"];
/** What came with Safari 15.4 and later, and the pages use. */
const LACKING = ["Array.prototype.at", "Array.prototype.findLast", "Object.hasOwn", "structuredClone", "BroadcastChannel", "HTMLDialogElement", "AbortSignal.timeout", "AbortSignal.any"];
const WORDS = /too old for this page.*Safari \d+.*Chrome \d+.*Firefox \d+/;

/**
 * Opens a page in a browser that lacks these, and returns its notice.
 * @param {string} path
 * @param {string[]} lacking
 */
async function opened(path, lacking) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript((names) => {
    for (const name of names) {
      const words = name.split(".");
      const last = /** @type {string} */ (words.pop());
      const owner = words.reduce((/** @type {any} */ value, word) => value[word], window);
      delete owner[last];
    }
  }, lacking);
  await page.goto(`${server.origin}/${path}`, { waitUntil: "load" });
  return { page, notice: page.locator("#notice-too-old"), close: () => context.close() };
}

test("each page says that the browser is too old, in one sentence", { timeout: 5 * PATIENCE_MS }, async () => {
  for (const path of PAGES) {
    const { page, notice, close } = await opened(path, LACKING);
    await notice.filter({ hasText: WORDS }).waitFor({ timeout: PATIENCE_MS });
    assert.equal(await page.locator("#notice-no-script").isVisible(), false, path);
    await close();
  }
});

test("it is enough that one thing is lacking", { timeout: 5 * PATIENCE_MS }, async () => {
  for (const name of LACKING) {
    const { notice, close } = await opened("", [name]);
    await notice.filter({ hasText: WORDS }).waitFor({ timeout: PATIENCE_MS });
    await close();
  }
});

test("a browser that has all of it is told nothing", { timeout: 5 * PATIENCE_MS }, async () => {
  for (const path of PAGES) {
    const { page, notice, close } = await opened(path, []);
    assert.equal(await notice.count(), 0, path);
    assert.equal(await page.evaluate(() => Array.from(document.scripts).some(({ src }) => src.endsWith("/page/old.js"))), true, path);
    await close();
  }
});
