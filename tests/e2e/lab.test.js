/**
 * The Lab page: it measures every transport in Chromium, its report is one that `anemone lab report` takes, and reports are published
 * on the server by those who may write there.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { output } from "./programs.js";
import { BIN, PATIENCE_MS, becomes, folder, kill, launch, remove, serve } from "./support.js";

const STEP_MS_MAX = 300_000;

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-lab-");
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
  await remove(directory);
});

/** @param {string} origin */
async function open(origin) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(`${origin}/lab`);
  await page.locator("#notice-no-script").waitFor({ state: "detached", timeout: PATIENCE_MS });
  return { page, faults };
}

/**
 * The texts of all elements.
 * @param {import("playwright-core").Page} page
 * @param {string} selector
 */
const texts = async (page, selector) => await page.locator(selector).allTextContents();

test("it measures every transport, and its report is one of the lab", { timeout: STEP_MS_MAX }, async () => {
  const { page, faults } = await open(server.origin);
  await page.locator("#rounds").selectOption("4");
  await page.locator("#time").selectOption("300");
  await page.locator("#begin").click();
  const said = page.locator("#said");
  await page.waitForFunction(() => document.querySelector("#said")?.textContent === "Done.", undefined, { timeout: STEP_MS_MAX });
  assert.equal(await said.textContent(), "Done.");
  assert.deepEqual(await texts(page, "#answers .invalid:not([hidden])"), []);
  const download = page.waitForEvent("download");
  await page.locator("#save").click();
  const path = join(directory, "browser.json");
  await (await download).saveAs(path);
  /** @type {import("../../web/page/lab/report.js").Report[]} */
  const reports = JSON.parse(await readFile(path, "utf8"));
  assert.deepEqual(reports.map(({ experiment }) => experiment), ["calls", "sequential", "echo", "wind"]);
  for (const { experiment, series, comparisons, invalid, quantity } of reports) {
    assert.equal(invalid, null, experiment);
    assert.ok(comparisons.length > 0, experiment);
    const main = series.filter((one) => one.quantity === quantity);
    const contenders = new Set(main.map(({ contender }) => contender));
    assert.deepEqual([...contenders].sort(), experiment === "wind" ? ["NDJSON", "SSE", "WebSocket", "long poll", "poll"] : ["HTTP", "WebSocket"], experiment);
    for (const one of main) assert.equal(one.rounds.filter((value) => value !== null).length, 4, `${experiment}, ${one.contender}`);
    const rows = page.locator(`#answers [data-experiment=${experiment}] tbody tr`);
    assert.equal(await rows.count(), main.length, experiment);
    assert.equal(await rows.locator(".range b").count(), main.length, experiment);
  }
  const echoes = new Set(reports[2]?.series.map((one) => one.case));
  assert.deepEqual([...echoes], ["1 B", "100 B", "10 kB", "1 MB"]);
  assert.match(String(reports[2]?.method.join(" ")), /takes no body as long: 10 MB/);
  const wind = Object.fromEntries((reports[3]?.series ?? []).map(({ contender, rounds }) => [contender, Math.min(...rounds.map(Number))]));
  // On one machine, an event waits for a poll longer than it takes to be pushed.
  assert.ok(Number(wind.poll) > Number(wind.WebSocket), JSON.stringify(wind));

  const html = join(directory, "all.html");
  const { errors } = await output(BIN, ["lab", "report", path, "--out", html]);
  const text = await readFile(html, "utf8").catch(() => assert.fail(errors));
  for (const { question, answer } of reports) assert.ok(text.includes(question) && text.includes(answer), question);
  assert.match(text, /the Lab page in Chrome \d+/);

  assert.equal(await page.locator("#others").isVisible(), false);
  await page.locator("#upload").click();
  await becomes("what is published", async () => (await texts(page, "#others li strong")).sort(), ["calls", "echo", "sequential", "wind"]);
  // Once each, however often they are published.
  await page.locator("#upload").click();
  await becomes("the answer", async () => await page.locator("#kept").textContent(), "Published.");
  const { events } = await (await fetch(`${server.origin}/topics/scratch-lab?after=earliest`)).json();
  assert.equal(events.length, 4);
  assert.deepEqual(faults, []);
  await page.close();
});

test("a measurement is stopped, and what is missing on the server is told", { timeout: STEP_MS_MAX }, async () => {
  const bare = await serve("--listen", "127.0.0.1:0", "--exec", "other=vmstat 1");
  const { page, faults } = await open(bare.origin);
  assert.deepEqual(await page.locator("#experiments input:enabled").evaluateAll((boxes) => boxes.map((box) => box.getAttribute("value"))), ["calls", "sequential"]);
  assert.match(String(await page.locator("[data-field=echo]").textContent()), /anemone serve --echo/);
  await page.locator("#begin").focus();
  await page.keyboard.press("Enter");
  const stop = page.locator("#stop");
  await stop.waitFor({ timeout: PATIENCE_MS });
  // The keyboard is on the button that ends it.
  await page.locator("#answers section").first().waitFor({ timeout: PATIENCE_MS });
  await page.keyboard.press("Enter");
  await becomes("the page", async () => await page.locator("#said").textContent(), /^Stopped/);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "begin");
  await page.locator("#upload").click();
  await becomes("the refusal", async () => await page.locator("#kept.failure").textContent(), /scratch-lab/);
  assert.deepEqual(faults, []);
  await page.close();
  await kill(bare);
});

for (const { colorScheme, width } of /** @type {const} */ ([{ colorScheme: "light", width: 1280 }, { colorScheme: "dark", width: 390 }])) {
  test(`its answers are good for everybody, ${colorScheme}, ${width} pixels wide`, { timeout: STEP_MS_MAX }, async () => {
    const { page, faults } = await open(server.origin);
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await page.locator("#rounds").selectOption("4");
    for (const name of ["sequential", "wind"]) await page.locator(`[value=${name}]`).uncheck();
    await page.locator("#begin").click();
    await page.waitForFunction(() => document.querySelector("#said")?.textContent === "Done.", undefined, { timeout: STEP_MS_MAX });
    const axe = await readFile(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
    await page.evaluate(axe);
    const violations = await page.evaluate(async () => {
      const { violations } = await Reflect.get(window, "axe").run(document);
      return violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ node) => node.html).join(" ")}`);
    });
    assert.deepEqual(violations, []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/lab-${colorScheme}.png`, fullPage: true });
    assert.deepEqual(faults, []);
    await page.close();
  });
}
