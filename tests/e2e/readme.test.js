/**
 * The README's JavaScript, as it is, in the console of a page of the server; its other languages are in crates/cli/tests/readme.rs.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`).
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { kill, launch, serve, until } from "./support.js";

const STEP_MS_MAX = 120_000;

test("each line of JavaScript shows the wind", { timeout: STEP_MS_MAX }, async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const lines = /^```js\n(.*?)^```$/ms.exec(readme)?.[1]?.trimEnd().split("\n") ?? [];
  assert.equal(lines.length, 2);
  const server = await serve("--demo", "--listen", "127.0.0.1:0");
  const browser = await launch();
  try {
    for (const line of lines) {
      const page = await browser.newPage();
      /** @type {import("playwright-core").ConsoleMessage[]} */
      const said = [];
      page.on("console", (message) => said.push(message));
      await page.goto(`${server.origin}/`);
      await page.evaluate(line.replace("127.0.0.1:8080", new URL(server.origin).host));
      await until("an event", () => said.length > 0);
      const event = await said[0]?.args()[0]?.jsonValue();
      assert.equal(typeof event?.direction, "number", line);
      await page.close();
    }
  } finally {
    await browser.close();
    await kill(server);
  }
});
