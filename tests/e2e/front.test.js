/**
 * Home: the topics of a server, each with its newest value and a command that reads it; and the way to the wind page.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), vmstat, curl and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { firstOutput } from "./programs.js";
import { PATIENCE_MS, becomes, kill, launch, ownAddress, serve } from "./support.js";

const STEP_MS_MAX = 300_000;
/** What is of the wind alone. */
const WIND = ["#sensor", "#wind", ".take"];

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  server = await serve("--exec", "cpu=vmstat 1", "--listen", await ownAddress());
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
});

/**
 * @param {import("playwright-core").Page} page
 * @param {string[]} selectors
 */
async function visible(page, selectors) {
  const seen = await Promise.all(selectors.map((selector) => page.locator(selector).isVisible()));
  return selectors.filter((_, index) => seen[index]);
}

test("a server without wind shows its topics and how each is read", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  await page.goto(`${server.origin}/`);
  const items = page.locator("#topics li");
  await items.first().waitFor({ timeout: PATIENCE_MS });
  assert.deepEqual(await visible(page, [...WIND, "#notice-no-server", "#notice-refused"]), []);
  assert.deepEqual(await items.locator("h3").allTextContents(), ["cpu"]);
  assert.equal(await items.locator("a").first().getAttribute("href"), `${server.origin}/topics/cpu`);
  await becomes("what is kept", () => page.locator("#keeps").textContent(), /^Each keeps .+ in memory: events are gone when the server stops; --data DIR/);
  const status = items.first().locator(".status");
  await becomes("the status", () => status.textContent(), "live: receiving from the shell command vmstat");
  assert.deepEqual([await status.getAttribute("title"), await status.getAttribute("href")], ["receiving from the shell command vmstat", `${server.origin}/topics/cpu.status`]);
  const line = await items.locator("code").first().textContent();
  assert.match(await firstOutput(`${line} --noproxy '*' --max-time ${PATIENCE_MS / 1000}`, /"data":"/), /"data":"/, String(line));
  const copy = items.locator("button").first();
  await becomes("the button", async () => {
    await copy.click(); // what it says then is there for two seconds
    return copy.textContent();
  }, /^(Copied|Selected)$/);
  await page.close();
});

test("what is typed chooses topics by name", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  await page.goto(`${server.origin}/`);
  const items = page.locator("#topics li");
  await items.first().waitFor({ timeout: PATIENCE_MS });
  await page.getByRole("searchbox", { name: "Find a topic" }).fill("STAT");
  await becomes("the topics", () => items.filter({ visible: true }).locator("h3").allTextContents(), ["cpu"]);
  await becomes("the count", () => page.locator("#topics [data-field=count]").textContent(), "1 of 1");
  await page.close();
});

test("the newest value of each topic is there, and how fast it grows", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  await page.goto(`${server.origin}/`);
  const cpu = page.locator('#topics li[data-name="cpu"]');
  await cpu.locator("[data-field=newest]", { hasText: /\d+ +\d+/ }).waitFor({ timeout: PATIENCE_MS });
  await cpu.locator("[data-field=rate]", { hasText: /\d a (second|minute)/ }).waitFor({ timeout: PATIENCE_MS });
  await page.close();
});

test("the wind page waits for wind, and home leads to it", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  const home = await browser.newPage();
  await home.goto(`${server.origin}/`);
  await home.locator("#topics li").first().waitFor({ timeout: PATIENCE_MS });
  assert.deepEqual(await visible(home, ["#demos", '.places [href="wind"]']), []);
  await page.goto(`${server.origin}/wind`);
  await page.locator("#no-wind").waitFor({ timeout: PATIENCE_MS });
  assert.deepEqual(await visible(page, WIND), []);
  await kill(server);
  await page.locator("#notice-no-server").waitFor({ timeout: PATIENCE_MS });
  await home.locator("#notice-no-server").waitFor({ timeout: PATIENCE_MS });
  assert.deepEqual(await visible(home, ["#topics"]), ["#topics"], "what was last said stays");
  server = await serve("--demo", "--listen", new URL(server.origin).host);
  await page.locator('#sensor[data-mood="good"]').waitFor({ timeout: PATIENCE_MS });
  await becomes("the wind alone", () => visible(page, ["#no-wind", "#notice-no-server", ...WIND]), WIND);
  // No command is cut off where its box ends.
  const cut = () => page.locator("#commands pre").evaluateAll((all) => all.filter((pre) => pre.scrollWidth > pre.clientWidth).length);
  await becomes("the commands that are cut off", cut, 0);
  await home.locator('#demos [href="wind"]').click({ timeout: PATIENCE_MS });
  await home.locator("#wind").waitFor({ timeout: PATIENCE_MS });
  await Promise.all([page.close(), home.close()]);
});

test("without its script the page is the notice alone", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  for (const path of ["/", "/wind", "/transports"]) {
    await page.goto(server.origin + path);
    await page.locator("#notice-no-script").waitFor({ timeout: PATIENCE_MS });
    assert.deepEqual(await visible(page, ["#topics", "#share", ...WIND, "#reset", "#host"]), [], path);
  }
  await context.close();
});
