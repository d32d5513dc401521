/** Chromium without a window, for the tests of the file that imports it. */
import { after, before } from "node:test";
import { launch } from "../e2e/support.js";

/** @type {import("playwright-core").Browser} */ export let browser;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());
