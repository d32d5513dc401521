/**
 * The page about computations on the real binary: lists are drawn while they are sorted, a reload goes on, two windows see the same, a
 * cancelled run stops, a document that does not fit shows its place, and a run that is held ends with its page.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default `/usr/bin/chromium`).
 * Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { check } from "../../web/page/computations/document.js";
import { EXAMPLES } from "../../web/page/computations/examples.js";
import { PATIENCE_MS, becomes, isOfTest, kill, launch, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** A run that lasts as long as a test, on any machine: one change a second. */
const LONG = JSON.stringify({ actions: [{ id: "list", do: "list", size: 300 }, { id: "slow", after: "list", do: "sort", algorithm: "insertion" }] });

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
  context = await browser.newContext({ viewport: { width: 1280, height: 1000 } });
});

afterEach(async () => {
  await context.close();
  for (const { key, state } of await runs()) if (state === "running" || state === "queued") await fetch(`${server.origin}/runs/${key}`, { method: "DELETE" });
});

/** @returns {Promise<{ key: string, state: string }[]>} the newest first */
async function runs() {
  return (await (await fetch(`${server.origin}/runs`)).json()).runs;
}

async function open(hash = "") {
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && !isOfTest(message.text()) && faults.push(message.text()));
  await page.goto(`${server.origin}/computations${hash}`);
  return page;
}

/**
 * Starts a document; returns the key, if the run is kept.
 * @param {Page} page
 * @param {string} text
 * @param {{ pace?: string, states?: string, isHeld?: boolean }} [options]
 */
async function start(page, text, { pace = "", states = "rate:60", isHeld = false } = {}) {
  await page.getByLabel(/^The document/).fill(text);
  await page.getByLabel("Changes a second").selectOption(pace);
  await page.getByLabel("States sent").selectOption(states);
  await page.getByRole("radio", { name: isHeld ? /the run ends/ : /the run goes on/ }).check();
  await page.getByRole("button", { name: /^Start/ }).click();
  await page.locator("#run[data-run] .lists canvas").first().waitFor({ timeout: PATIENCE_MS });
  return new URL(page.url()).hash.slice("#run=".length);
}

/**
 * @param {Page} page
 * @param {string} state
 */
async function isState(page, state) {
  await page.locator("[data-field=run-state]", { hasText: new RegExp(`^${state}$`) }).waitFor({ timeout: PATIENCE_MS });
}

/**
 * The number of colours of each canvas: one that shows a list has several.
 * @param {Page} page
 */
function colours(page) {
  return page.locator("#run canvas").evaluateAll((canvases) =>
    canvases.map((canvas) => {
      const { width, height } = /** @type {HTMLCanvasElement} */ (canvas);
      const data = /** @type {HTMLCanvasElement} */ (canvas).getContext("2d")?.getImageData(0, 0, width, height).data;
      return new Set(new Uint32Array(data?.buffer ?? new ArrayBuffer(0))).size;
    }),
  );
}

/**
 * The pixels of all canvases, as text.
 * @param {Page} page
 */
function pixels(page) {
  return page.locator("#run canvas").evaluateAll((canvases) => canvases.map((canvas) => /** @type {HTMLCanvasElement} */ (canvas).toDataURL()));
}

/**
 * The changes that the page has counted.
 * @param {Page} page
 */
async function changes(page) {
  return Number(/([\d,]+) changes?/.exec((await page.locator("#now [data-field=steps]").textContent()) ?? "")?.[1]?.replaceAll(",", "") ?? 0);
}

/** @param {Page} page */
async function nodes(page) {
  const all = await page.locator(".tree li").evaluateAll((items) => items.map((item) => [item.querySelector("strong")?.textContent, /** @type {HTMLElement} */ (item).dataset.run]));
  return Object.fromEntries(all);
}

test("a tree is sorted, drawn and counted, each action in its state", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  await becomes("the preview", () => page.locator(".tree li").count(), 7);
  assert.match(await start(page, EXAMPLES[0]?.text ?? "", { pace: "1" }), /^[0-9a-f]{32}$/);
  await becomes("the branches", () => page.locator("#run canvas").count(), 3);
  await until("a picture of each", async () => (await colours(page)).every((count) => count > 1));
  await becomes("what has begun, and what waits", () => nodes(page), { list: "done", quick: "running", heap: "running", merge: "running", descending: "queued", few: "queued", radix: "queued" });
  await page.locator("#run [data-field=steps]", { hasText: /[1-9][\d,]* comparisons?, [1-9][\d,]* writes?/ }).first().waitFor({ timeout: PATIENCE_MS });
  await page.locator("[data-field=progress]", { hasText: /^\d+ %/ }).waitFor({ timeout: PATIENCE_MS });
  for (const name of ["points", "circle", "scatter"]) {
    const before = await pixels(page);
    await page.getByLabel("All as").selectOption(name);
    await until(`another picture as ${name}`, async () => (await pixels(page)).every((picture, at) => picture !== before[at]));
  }
  await page.getByLabel("This list as").first().selectOption("bars");
  await start(page, EXAMPLES[0]?.text ?? "");
  await isState(page, "done");
  // Until the other run begins, the address is that of the one before.
  const key = new URL(page.url()).hash.slice("#run=".length);
  await becomes("all actions", async () => [...new Set(Object.values(await nodes(page)))], ["done"]);
  const { result } = await (await fetch(`${server.origin}/runs/${key}?state`)).json();
  for (const { id, comparisons, writes } of result.sorts) {
    const shown = page.locator(".tree li", { has: page.locator("strong", { hasText: new RegExp(`^${id}$`) }) });
    const counts = `${comparisons.toLocaleString("en")} comparisons|${writes.toLocaleString("en")} writes`;
    await becomes(`the counts of ${id}`, async () => (await shown.locator("[data-field=comparisons], [data-field=writes]").allTextContents()).join("|"), counts);
  }
  assert.deepEqual(faults, []);
});

test("a reload goes on, another window sees the same, and either may cancel", { timeout: STEP_MS_MAX }, async () => {
  const first = await open();
  const key = await start(first, LONG, { pace: "1" });
  await isState(first, "running");
  const second = await open(`#run=${key}`);
  await isState(second, "running");
  await second.locator("#run canvas").waitFor({ timeout: PATIENCE_MS });
  // The document of the run is there, too.
  await becomes("the document", async () => check(await second.locator("#text").inputValue()).actions?.map(({ id }) => id), ["list", "slow"]);
  const seen = await changes(first);
  await first.reload();
  await isState(first, "running");
  assert.equal(await first.locator("#text").inputValue(), LONG, "the document is still there");
  await until("it to go on where it was", async () => (await changes(first)) > seen);
  await first.locator("[data-field=progress]", { hasText: "%" }).waitFor({ timeout: PATIENCE_MS });
  await first.getByRole("button", { name: "Cancel" }).click();
  // The run goes on behind the question, which says nothing that becomes old.
  assert.match(String(await first.locator("dialog p").first().textContent()), /^\/computations [0-9a-f]{6}\. Its work stops /);
  await first.getByRole("button", { name: "Cancel the run" }).click();
  for (const page of [first, second]) await isState(page, "cancelled");
  await becomes("the same in both", async () => (await changes(first)) === (await changes(second)), true);
  await until("the same picture", async () => JSON.stringify(await pixels(first)) === JSON.stringify(await pixels(second)));
  await becomes("what was stopped", () => nodes(second), { list: "done", slow: "cancelled" });
  assert.deepEqual(faults, []);
});

test("a run leads to where it is drawn, and back", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  const key = await start(page, EXAMPLES.at(-1)?.text ?? "");
  await isState(page, "done");
  await page.getByRole("link", { name: "Its events, and how to read them" }).click();
  await page.waitForURL(`${server.origin}/runs/${key}`);
  await page.locator("#list code").first().waitFor({ timeout: PATIENCE_MS });
  assert.ok(!(await page.locator("#plot").isVisible()), "the numbers of its picture are no chart");
  await page.getByRole("link", { name: "Watch it drawn" }).click();
  await page.waitForURL(`${server.origin}/computations#run=${key}`);
  await isState(page, "done");
  await until("a picture", async () => (await colours(page)).every((count) => count > 1));
  assert.deepEqual(faults, []);
});

test("joining a run late gives the picture of watching it from the start", { timeout: STEP_MS_MAX }, async () => {
  const watcher = await open();
  const key = await start(watcher, JSON.stringify({ actions: [{ id: "list", do: "list", size: 300 }, ...["insertion", "heap", "merge"].map((algorithm) => ({ id: algorithm, after: "list", do: "sort", algorithm, criterion: "by-last-digit" }))] }), { states: "all" });
  await isState(watcher, "done");
  const late = await open(`#run=${key}`);
  await isState(late, "done");
  await until("the same picture", async () => {
    const [ours, theirs] = [await pixels(watcher), await pixels(late)];
    return theirs.length === 3 && JSON.stringify(ours) === JSON.stringify(theirs);
  });
  assert.deepEqual(faults, []);
});

test("the drawing can be paused while the run goes on, and catches up", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  await start(page, LONG, { pace: "10" });
  await until("a picture", async () => (await colours(page)).every((count) => count > 1));
  const pause = page.getByRole("button", { name: "Pause the drawing" });
  await pause.click();
  const held = await pixels(page);
  const begun = await changes(page);
  await until("some changes", async () => (await changes(page)) > begun + 5);
  assert.deepEqual(await pixels(page), held);
  await pause.click();
  await until("it to catch up", async () => (await pixels(page)).every((picture, at) => picture !== held[at]));
  assert.deepEqual(faults, []);
});

test("a document that does not fit shows its place, as the server does", { timeout: STEP_MS_MAX }, async () => {
  const sort = (/** @type {object} */ more) => ({ actions: [{ id: "list", do: "list", size: 9 }, { id: "s", after: "list", do: "sort", algorithm: "quick", ...more }] });
  const bad = [[], {}, { actions: [] }, { actions: [1] }, { actions: [{ do: "x" }] }, { actions: [{ id: "l", do: "list", size: 0 }] }, { actions: [{ id: "l", do: "list", size: 9, seed: -1 }] }, sort({ algorithm: "bogo" }), sort({ criterion: null }), sort({ more: 1 }), sort({ after: "lost" }), sort({ after: "s" }), sort({ id: "list" }), sort({ id: "ü" })];
  for (const document of bad) {
    const body = JSON.stringify(document);
    const reply = await fetch(`${server.origin}/computations`, { method: "POST", headers: { "Content-Type": "application/json", Prefer: "respond-async" }, body });
    assert.deepEqual([reply.status, (await reply.json()).pointer], [422, check(body).misfit?.pointer], body);
  }
  const page = await open();
  const box = page.getByLabel(/^The document/);
  await box.fill('{\n  "actions": [\n    { "id": "a", "do": "list", "size": 4 },\n  ]\n}');
  await page.locator("#checked", { hasText: 'line 4, column 3: a value is expected, not "]"' }).waitFor({ timeout: PATIENCE_MS });
  const text = JSON.stringify(sort({ after: "lost" }), null, 1);
  await box.fill(text);
  await page.locator("#checked", { hasText: '/actions/1/after: no action has the id "lost"' }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await box.getAttribute("aria-invalid"), "true");
  await box.press("Control+Enter");
  await page.locator("#said", { hasText: "The server refuses the document" }).waitFor({ timeout: PATIENCE_MS });
  const selected = () => box.evaluate((area) => (area instanceof HTMLTextAreaElement ? area.value.slice(area.selectionStart, area.selectionEnd) : ""));
  await becomes("the selection", selected, '"lost"');
  await box.press("ArrowLeft");
  await page.getByRole("button", { name: "Show the place" }).click();
  await becomes("the selection", selected, '"lost"');
  assert.ok(faults.every((fault) => /422/.test(fault)), faults.join("\n"));
});

test("a run that is held ends when its page is left, and one that is kept goes on", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  const states = async () => (await runs()).slice(0, 2).map(({ state }) => state).sort();
  const key = await start(page, LONG, { pace: "1" });
  await page.locator("[data-field=kept]", { hasText: /^It is kept: it goes on/ }).waitFor({ timeout: PATIENCE_MS });
  await start(page, LONG, { pace: "1", isHeld: true });
  await page.locator("[data-field=kept]", { hasText: /^It is held to the connection of this page: it ends/ }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(new URL(page.url()).hash, "");
  await becomes("both to run", states, ["running", "running"]);
  await page.goto(`${server.origin}/messages`);
  await becomes("one to end", states, ["cancelled", "running"]);
  assert.equal((await (await fetch(`${server.origin}/runs/${key}?state`)).json()).state, "running");

  const again = await open();
  await start(again, EXAMPLES.at(-1)?.text ?? "", { isHeld: true });
  await isState(again, "done");
  await again.getByText("Other computations of this server").click();
  await again.locator(`#others a[href="#run=${key}"]`).click();
  await isState(again, "running");
  await becomes("the title", () => again.locator("#run-title").textContent(), `Run /computations ${key.slice(0, 6)}`);
  assert.deepEqual(faults, []);
});

test("a run that is held and does not begin is told", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  await page.route("**/computations?*attach*", () => {}); // no answer
  await page.getByRole("radio", { name: /the run ends/ }).check();
  await page.getByRole("button", { name: /^Start/ }).click();
  await page.locator("#said.failure", { hasText: /^The server does not answer\. Start again/ }).waitFor({ timeout: PATIENCE_MS });
  assert.deepEqual(faults, []);
});

for (const { colorScheme, width } of /** @type {const} */ ([{ colorScheme: "light", width: 1280 }, { colorScheme: "dark", width: 390 }])) {
  test(`a run is good for everybody, ${colorScheme}, ${width} pixels wide`, { timeout: STEP_MS_MAX }, async () => {
    const page = await open();
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await start(page, EXAMPLES[0]?.text ?? "", { pace: "1" });
    await page.locator(".tree [data-run=running]").first().waitFor({ timeout: PATIENCE_MS });
    await page.evaluate(AXE);
    const violations = await page.evaluate(async () => {
      const { violations } = await Reflect.get(window, "axe").run(document);
      return violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ node) => node.html).join(" ")}`);
    });
    assert.deepEqual(violations, []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, "nothing reaches beyond the edge");
    assert.deepEqual(faults, []);
  });
}

test("a window of 1280 pixels cuts no line of the document and no action", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  await page.setViewportSize({ width: 1280, height: 800 });
  /** The pixels that are cut at the right of an element. */
  const cut = (/** @type {string} */ selector) => page.locator(selector).evaluate((element) => element.scrollWidth - element.clientWidth - element.scrollLeft);
  await becomes("the preview", () => page.locator(".tree li").count(), 7);
  await becomes("what is cut of the document", () => cut("#text"), 0);
  await becomes("what is cut of the tree", () => cut(".tree"), 0);
  await becomes("no hint", () => page.locator(".tree.more-right").count(), 0);
  // Where the box is scrolled, the tree begins at its top.
  await page.locator("#example").selectOption({ label: "All algorithms, one list" });
  await page.locator(".tree.more-bottom").waitFor({ timeout: PATIENCE_MS });
  const [top, first] = await page.locator(".tree, .tree li:first-child").evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().top));
  assert.ok(Math.abs(Number(first) - Number(top)) < 10, `the first action is ${Number(first) - Number(top)} pixels below the top`);
  // So many actions one after the other have no room. The edge tells that there are more, until they are seen.
  const chain = Array.from({ length: 12 }, (_, at) => ({ id: `a${at}`, do: at === 0 ? "list" : "sort", ...(at === 0 ? { size: 9 } : { after: `a${at - 1}`, algorithm: "quick" }) }));
  await page.getByLabel(/^The document/).fill(JSON.stringify({ actions: chain }));
  await page.locator(".tree.more-right").waitFor({ timeout: PATIENCE_MS });
  assert.ok((await cut(".tree")) > 100);
  await page.locator(".tree").evaluate((tree) => tree.scrollTo(tree.scrollWidth, 0));
  await becomes("the hint", () => page.locator(".tree.more-right").count(), 0);
  assert.deepEqual(faults, []);
});

test("nothing that is seen moves when a run starts, and when its page is loaded again", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  await page.setViewportSize({ width: 1280, height: 1000 });
  await becomes("the preview", () => page.locator(".tree li").count(), 7);
  const tops = () => page.locator("#stage canvas, #picture").evaluateAll((parts) => parts.map((part) => Math.round(part.getBoundingClientRect().top)));
  await becomes("the room for the lists", async () => (await tops()).length, 4);
  const before = await tops();
  await start(page, EXAMPLES[0]?.text ?? "", { pace: "1" });
  await until("a picture of each", async () => (await colours(page)).every((count) => count > 1));
  assert.deepEqual(await tops(), before);
  await page.addInitScript(() => {
    Object.assign(window, { moved: 0 });
    const add = (/** @type {PerformanceEntry} */ entry) => Object.assign(window, { moved: Reflect.get(window, "moved") + Number(Reflect.get(entry, "value")) });
    new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type: "layout-shift", buffered: true });
  });
  await page.reload();
  await isState(page, "running");
  await until("a picture of each", async () => (await colours(page)).every((count) => count > 1));
  assert.deepEqual(await tops(), before);
  assert.ok((await page.evaluate(() => Reflect.get(window, "moved"))) < 0.1, "what is seen moves");
  assert.deepEqual(faults, []);
});

test("no list moves when the counts grow", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  await page.setViewportSize({ width: 1280, height: 800 });
  const sorts = ["a", "b", "c"].map((id) => ({ id, after: "list", do: "sort", algorithm: "insertion" }));
  const text = JSON.stringify({ actions: [{ id: "list", do: "list", size: 300 }, ...sorts] });
  await page.getByLabel(/^The document/).fill(text);
  const places = () => page.locator("#stage canvas").evaluateAll((all) => all.map((canvas) => Number(canvas.parentElement?.offsetTop)));
  await becomes("the room for the lists", async () => (await places()).length, 3);
  const before = await places();
  await start(page, text);
  await isState(page, "done");
  for (const [at] of sorts.entries()) await page.locator("#stage figcaption").nth(at).filter({ hasText: /[1-9]\d,\d{3} comparisons,?\s+[1-9]\d,\d{3} writes/ }).waitFor({ timeout: PATIENCE_MS });
  assert.deepEqual(await places(), before);
  assert.deepEqual(faults, []);
});

test("a run that is not there is told", { timeout: STEP_MS_MAX }, async () => {
  const page = await open(`#run=${"0".repeat(32)}`);
  const told = () => page.locator("[data-field=kept]", { hasText: /^There is no run with this key/ }).waitFor({ timeout: PATIENCE_MS });
  await told();
  // Of a key that was cut, too.
  await page.goto("about:blank");
  await page.goto(`${server.origin}/computations#run=0123`);
  await told();
  await start(page, EXAMPLES.at(-1)?.text ?? "");
  await isState(page, "done");
  assert.ok(faults.every((fault) => /404/.test(fault)), faults.join("\n"));
});

test("a run whose server goes and comes back has one state", { timeout: STEP_MS_MAX }, async () => {
  const page = await open();
  const key = await start(page, LONG, { pace: "1" });
  const events = await context.newPage();
  await events.goto(`${server.origin}/runs/${key}`);
  await events.locator("[data-field=run-state]", { hasText: /^running$/ }).waitFor({ timeout: PATIENCE_MS });
  await becomes("the list that is sorted", () => nodes(page), { list: "done", slow: "running" });
  const { host } = new URL(server.origin);
  const top = () => page.locator(".masthead").evaluate((masthead) => masthead.clientHeight);
  const height = await top();
  await kill(server);
  for (const each of [page, events]) await each.getByRole("heading", { name: "The server cannot be reached" }).waitFor({ timeout: PATIENCE_MS });
  await page.locator(".masthead [data-field=state]", { hasText: /^reconnecting (now|in \d+ s)$/ }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await top(), height, "the words move nothing");
  server = await serve("--demo", "--listen", host);
  await page.locator("[data-field=kept]", { hasText: /^The server no longer keeps this run/ }).waitFor({ timeout: PATIENCE_MS });
  await events.locator("#gone", { hasText: /^The server no longer keeps this run/ }).waitFor({ timeout: PATIENCE_MS });
  await becomes("what was stopped", () => nodes(page), { list: "done", slow: "cancelled" });
  await becomes("the lists", () => page.locator(".lists figure").evaluateAll((lists) => lists.map((list) => /** @type {HTMLElement} */ (list).dataset.run)), ["cancelled"]);
  assert.equal(await page.locator(".masthead [data-field=state]").textContent(), "not here");
  assert.deepEqual(await page.locator("body").evaluate((body) => body.dataset.state), "paused");
  for (const each of [page, events]) assert.ok(!(await each.locator("#now").isVisible()));
  for (const each of [page, events]) assert.ok(!(await each.getByRole("heading", { name: "The server cannot be reached" }).isVisible()));
});
