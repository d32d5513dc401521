/**
 * The HTML report of `anemone lab`: all of its columns are seen on paper and on a screen of 1280, a phone scrolls within the boxes of
 * the tables, and the words of the plot have contrast in the light and in the dark.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`).
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { output } from "./programs.js";
import { BIN, folder, launch, remove } from "./support.js";

/** An A4 sheet in landscape less its margins of 12 mm, in CSS pixels. */
const SHEET = { width: 1032, height: 703 };
const PATIENCE_MS = 120_000;

/** @type {string} */ let directory;
/** @type {import("playwright-core").Browser} */ let browser;
/** @type {import("playwright-core").Page} */ let page;

before(async () => {
  directory = await folder("anemone-report-");
  // Status 12, if this machine is too busy for figures: the report is what is tested.
  await output(BIN, ["lab", "connect", "--quick", "--rounds", "1", "--out", directory]).catch(() => undefined);
  browser = await launch();
  page = await browser.newPage({ colorScheme: "light" });
  await page.goto(pathToFileURL(join(directory, "connect.html")).href);
}, { timeout: PATIENCE_MS });

after(async () => {
  await browser?.close();
  await remove(directory);
});

/** The widths of what is in each table's box, less that of the box. */
const hidden = async () => await page.locator(".wide:has(table)").evaluateAll((boxes) => boxes.map((box) => box.scrollWidth - box.clientWidth));

test("all columns are on paper, and on a screen of 1280", async () => {
  await page.setViewportSize({ width: 1280, height: 800 });
  const onScreen = await hidden();
  assert.ok(onScreen.length >= 2, "the figures and their comparisons");
  assert.deepEqual(onScreen, onScreen.map(() => 0));
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize(SHEET);
  assert.deepEqual(await hidden(), onScreen);
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wider, 0);
  const sheet = await page.pdf({ preferCSSPageSize: true });
  // A4 in landscape, in points.
  assert.match(sheet.toString("latin1"), /\/MediaBox\s*\[0 0 84\d(\.\d+)? 59\d(\.\d+)?\]/);
  await page.emulateMedia({ media: "screen" });
});

test("on paper, the plot is on the first page, and no heading is parted from its table", async () => {
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize(SHEET);
  const end = await page.locator("figure").evaluate((figure) => figure.getBoundingClientRect().bottom);
  assert.ok(end <= SHEET.height, `the plot ends at ${end} of ${SHEET.height}`);
  const breaks = await page.locator("h1, h2, thead").evaluateAll((all) => all.map((one) => getComputedStyle(one).breakAfter));
  assert.deepEqual([...new Set(breaks)], ["avoid"]);
  await page.emulateMedia({ media: "screen" });
});

test("a phone scrolls within the boxes, which can have the focus", async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok((await hidden()).some((more) => more > 0));
  const boxes = await page.locator(".wide").evaluateAll((all) => all.map((box) => [/** @type {HTMLElement} */ (box).tabIndex, getComputedStyle(box).overflowX]));
  assert.deepEqual(boxes, boxes.map(() => [0, "auto"]));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
});

test("the words of the plot have a contrast of 4.5 at least", async () => {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    await page.emulateMedia({ colorScheme });
    const [ink, paper] = await page.evaluate(() => {
      const words = document.querySelector(".plot svg text");
      return [words ? getComputedStyle(words).fill : "", getComputedStyle(document.body).backgroundColor];
    });
    const contrast = (luminance(String(ink)) + 0.05) / (luminance(String(paper)) + 0.05);
    assert.ok(Math.max(contrast, 1 / contrast) >= 4.5, `${colorScheme}: ${ink} on ${paper}`);
  }
});

/**
 * The relative luminance of a colour (WCAG 2.2).
 * @param {string} colour as `rgb(1, 2, 3)`
 */
function luminance(colour) {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
    const share = Number(part) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test("of several reports, the first one stands apart from the list of all, whose answers are no narrow columns", async () => {
  const all = join(directory, "all.html");
  const reports = join(directory, "connect.json");
  await output(BIN, ["lab", "report", reports, "--out", all]);
  const several = await browser.newPage({ viewport: { width: 390, height: 800 } });
  await several.goto(pathToFileURL(all).href);
  const [list, name] = await Promise.all([".contents", "section .name"].map((selector) => several.locator(selector).first().boundingBox()));
  assert.ok(list && name && name.y - list.y - list.height >= 32, JSON.stringify({ list, name }));
  const answer = await several.locator(".contents td").last().boundingBox();
  assert.ok(answer && answer.width >= 250, JSON.stringify(answer));
  await several.close();
});
