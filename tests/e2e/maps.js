/** The page about propagation, for the tests of what it does and of how it looks. */
import assert from "node:assert/strict";
import { becomes, isOfTest } from "./support.js";

/** @typedef {{ refused?: number, at?: string, hasTouch?: boolean, isCoarse?: boolean, prepare?: (page: import("playwright-core").Page) => void }} Options the requests that the service refuses, what follows the address, whether the places of the page have few points, and what comes before it is loaded */

/** The points of a coarse map are so many times as far from each other. */
const COARSENESS = 5;

/**
 * Gives the places of the page few points, which are soon computed, for a test that looks at none of them. Only once: as long as there is
 * a route, all requests take a detour.
 * @param {import("playwright-core").Page} page
 */
export async function coarsen(page) {
  const coarse = async (/** @type {import("playwright-core").Route} */ route) => {
    const response = await route.fetch();
    const body = (await response.text()).replaceAll(/step_m: (\d+)/g, (_, step) => `step_m: ${COARSENESS * Number(step)}`);
    await route.fulfill({ response, body });
  };
  await page.route("**/page/propagation/presets.js", coarse, { times: 1 });
}

/**
 * Opens the page in a context of its own; it must have no fault, other than what the service refuses.
 * @param {import("playwright-core").Browser} browser
 * @param {import("./support.js").Server} server
 * @param {(page: import("playwright-core").Page) => Promise<void>} body
 * @param {Options} [options]
 */
export async function onMap(browser, server, body, { refused = 0, at = "", hasTouch = false, isCoarse = false, prepare } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, hasTouch });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && !isOfTest(message.text()) && faults.push(message.text()));
  if (isCoarse) await coarsen(page);
  prepare?.(page);
  await page.goto(`${server.origin}/propagation${at}`);
  await body(page);
  assert.ok(faults.length <= refused && faults.every((fault) => /422/.test(fault)), faults.join("\n"));
  await context.close();
}

/** @param {import("playwright-core").Page} page */
export const maps = (page) => page.locator(".pane:visible");

/**
 * @param {import("playwright-core").Page} page
 * @param {string | RegExp} state
 */
export async function says(page, state, map = 0) {
  await becomes("the state", () => maps(page).nth(map).locator("[data-field=state]").textContent(), state);
}
