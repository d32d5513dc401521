/**
 * The page with the messages, on the real binary: two windows, conflicts, what is refused, a server that is gone, and HTML that is
 * only text.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), curl and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { firstOutput, output } from "./programs.js";
import { PATIENCE_MS, becomes, kill, launch, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const EVIL = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

/** @typedef {import("playwright-core").Page} Page */
/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;
/** @type {import("playwright-core").BrowserContext} */ let context;
/** @type {string[]} */ let faults;

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
});

beforeEach(async () => {
  faults = [];
  context = await browser.newContext();
});

afterEach(async () => {
  await context.close();
  for (const { id } of (await find()).data) await fetch(`${server.origin}/messages/${id}`, { method: "DELETE" });
});

/** @returns {Promise<{ total: number, data: { id: string, text: string, from?: string }[] }>} */
async function find() {
  return await (await fetch(`${server.origin}/messages`)).json();
}

/** Opens a window with the messages. */
async function open(origin = server.origin) {
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => faults.push(`dialog: ${dialog.message()}`));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await page.goto(`${origin}/messages`);
  await page.locator("[data-field=state]", { hasText: /^connected/ }).waitFor({ timeout: PATIENCE_MS });
  return page;
}

/**
 * @param {Page} page
 * @param {string} text
 * @param {string} [from]
 */
async function write(page, text, from = "") {
  await page.getByLabel(/^Text, at most/).fill(text);
  await page.getByLabel("From (may be empty)").fill(from);
  await page.getByLabel(/^Text, at most/).press("Control+Enter");
  await page.locator("#sent", { hasText: /^Sent\.$/ }).waitFor({ timeout: PATIENCE_MS });
}

/**
 * Waits for the messages to be these, the newest first.
 * @param {Page} page
 * @param {string[]} texts
 */
async function shows(page, ...texts) {
  const shown = () => page.locator("#messages li .shown .text").allTextContents();
  await becomes("the messages", shown, texts);
}

/**
 * Begins to edit a message; returns its row and the box.
 * @param {Page} page
 * @param {string} text
 */
async function edit(page, text) {
  await page.locator("#messages li", { hasText: text }).getByRole("button", { name: /^Edit/ }).click();
  const row = page.locator("#messages li.edited");
  return { row, box: row.getByLabel(/^Text\. /) };
}

/**
 * Two windows edit the same message, and the second saves first.
 * @returns {Promise<{ first: Page, second: Page, row: import("playwright-core").Locator }>}
 */
async function conflict() {
  const [first, second] = [await open(), await open()];
  await write(first, "original", "Ada");
  await shows(second, "original");
  const mine = await edit(first, "original");
  const theirs = await edit(second, "original");
  await theirs.box.fill("theirs");
  await theirs.box.press("Control+Enter");
  const row = first.locator("#messages li");
  await row.locator("[data-field=said]", { hasText: /^Somebody has changed this message meanwhile/ }).waitFor({ timeout: PATIENCE_MS });
  await mine.box.fill("mine");
  await row.getByRole("button", { name: "Save" }).click();
  await row.getByRole("heading", { name: "Somebody has changed this message meanwhile" }).waitFor({ timeout: PATIENCE_MS });
  return { first, second, row };
}

test("what one window writes, changes and deletes, the other sees at once", { timeout: STEP_MS_MAX }, async () => {
  const [first, second] = [await open(), await open()];
  await first.locator("#none").waitFor({ timeout: PATIENCE_MS });
  await write(first, "early", "Ada");
  await write(first, EVIL);
  await shows(second, EVIL, "early");
  assert.equal(await second.locator("main img, main script").count(), 0);
  await becomes("the facts", () => second.locator("#messages li").last().locator(".facts").textContent(), /^from Ada \d+ (s|min) ago id \d+$/);

  const { row, box } = await edit(second, "early");
  assert.equal(await box.inputValue(), "early");
  await row.getByLabel("From").fill("");
  await box.pressSequentially(", changed");
  await box.press("Control+Enter");
  await shows(first, EVIL, "early, changed");
  assert.deepEqual((await find()).data.map(({ text, from }) => [text, from]), [["early, changed", undefined], [EVIL, undefined]]);
  await until("the editor to close", async () => !(await box.isVisible()));

  // Escape leaves a message as it was, and keeps it when it should be deleted.
  await (await edit(first, "early, changed")).box.pressSequentially("never saved");
  await first.keyboard.press("Escape");
  const remove = first.locator("#messages li", { hasText: "early, changed" }).getByRole("button", { name: /^Delete/ });
  await remove.click();
  await first.keyboard.press("Escape");
  await remove.click();
  await first.getByRole("dialog", { name: "Delete this message?" }).getByRole("button", { name: "Delete it" }).click();
  await shows(second, EVIL);
  await shows(first, EVIL);
  assert.equal((await find()).total, 1);
  await first.reload();
  await shows(first, EVIL);
  assert.deepEqual(faults, []);
});

test("a conflict shows both versions, and one's own may be saved", { timeout: STEP_MS_MAX }, async () => {
  const { first, second, row } = await conflict();
  await becomes("the versions", () => row.locator(".versions .text").allTextContents(), ["mine", "theirs"]);
  assert.deepEqual((await find()).data.map(({ text }) => text), ["theirs"]);
  await row.getByRole("button", { name: "Save yours" }).click();
  await shows(second, "mine");
  await shows(first, "mine");
  assert.deepEqual((await find()).data.map(({ text, from }) => [text, from]), [["mine", "Ada"]]);
});

test("a conflict shows both versions, and the server's may be kept, even as it changes", { timeout: STEP_MS_MAX }, async () => {
  const { first, second, row } = await conflict();
  const again = await edit(second, "theirs");
  await again.box.fill("theirs, newer");
  await again.box.press("Control+Enter");
  await row.locator(".versions .text", { hasText: "theirs, newer" }).waitFor({ timeout: PATIENCE_MS });
  await row.getByRole("button", { name: "Keep the server's" }).click();
  await shows(first, "theirs, newer");
  assert.deepEqual((await find()).data.map(({ text }) => text), ["theirs, newer"]);
});

test("what is deleted while it is edited may be written again", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  for (const choice of ["Write it again", "Let it go"]) {
    await write(page, "short-lived");
    const { row, box } = await edit(page, "short-lived");
    await box.fill("kept");
    const [found] = (await find()).data.filter(({ text }) => text === "short-lived");
    await fetch(`${server.origin}/messages/${found?.id}`, { method: "DELETE" });
    await row.locator("[data-field=said]", { hasText: /^Somebody has deleted this message/ }).waitFor({ timeout: PATIENCE_MS });
    await row.getByRole("button", { name: "Save" }).click();
    await row.getByRole("button", { name: choice }).click();
    await shows(page, "kept");
  }
  assert.deepEqual((await find()).data.map(({ text }) => text), ["kept"]);
});

test("what is refused is told, and stays in the box", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  const box = page.getByLabel(/^Text, at most/);
  await box.fill("x".repeat(2001));
  await box.press("Control+Enter");
  await page.locator("#sent", { hasText: /2,?000/ }).waitFor({ timeout: PATIENCE_MS });
  assert.equal((await box.inputValue()).length, 2001);
  assert.equal((await find()).total, 0);

  await context.setExtraHTTPHeaders({ Via: "1.1 proxy.example" });
  await context.addInitScript(() => Reflect.deleteProperty(window, "WebSocket")); // it would have no such field
  const stranger = await context.newPage();
  await stranger.goto(`${server.origin}/messages`);
  await stranger.getByLabel(/^Text, at most/).fill("from afar");
  await stranger.getByRole("button", { name: "Send" }).click();
  await stranger.locator("#sent", { hasText: /may change messages/ }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await stranger.getByLabel(/^Text, at most/).inputValue(), "from afar");
});

test("a server that is gone is told, and what was written can be sent when it is back", { timeout: STEP_MS_MAX }, async () => {
  const port = new URL(server.origin).port;
  const page = await open();
  await write(page, "in memory only");
  await shows(page, "in memory only");
  await kill(server);
  await page.locator("#notice-no-server").waitFor({ timeout: PATIENCE_MS });
  await page.getByLabel(/^Text, at most/).fill("patient");
  server = await serve("--demo", "--listen", `127.0.0.1:${port}`);
  await page.locator("#notice-no-server").waitFor({ state: "hidden", timeout: PATIENCE_MS });
  await shows(page); // the server has forgotten it, and so does the page
  await page.getByRole("button", { name: "Send" }).click();
  await shows(page, "patient");
});

test("the lines for a terminal work", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  const [follow, write, find, change] = await page.locator("#how .commands code").allTextContents();
  const run = async (/** @type {string | undefined} */ line) => (await output("sh", ["-c", `${line} -s --noproxy '*' --max-time 40`])).text;
  const { id } = JSON.parse(await run(write));
  await shows(page, "hello");
  assert.match(await run(find), /"total":0\}/);
  assert.match(await firstOutput(`${follow} -s --noproxy '*' --max-time 40`, /hello.*\n/), /"created".*hello|hello.*"created"/);
  const tag = (await fetch(`${server.origin}/messages/${id}`)).headers.get("etag")?.replaceAll('"', "");
  assert.match(await run(change?.replace("TAG", String(tag)).replace("ID'", `${id}'`)), /"text":"new"/);
  await shows(page, "new");
});
