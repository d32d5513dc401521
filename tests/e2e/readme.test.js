/**
 * The JavaScript of the README and of the documents that go on where it ends, as it is, in pages of the server; the other languages
 * are in crates/cli/tests/readme.rs.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`).
 */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { PATIENCE_MS, becomes, folder, kill, launch, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const ROOT = new URL("../../", import.meta.url);
const DOCUMENTS = ["README.md", "docs/TUTORIAL.md", "docs/RUNS.md"];
const README = (await Promise.all(DOCUMENTS.map((path) => readFile(new URL(path, ROOT), "utf8")))).join("\n");

test("the page shows the newest line", { timeout: STEP_MS_MAX }, async () => {
  const [, page] = /^```html\n(.*?)^```$/ms.exec(README) ?? [];
  const [, flag, directory, source, command] = /^    anemone serve (--static) (\w+) (--exec) (cpu='vmstat 1')/m.exec(README) ?? [];
  const root = await folder("anemone-readme-");
  const www = join(root, String(directory));
  await mkdir(www);
  await writeFile(join(www, "index.html"), String(page));
  const server = await serve("--listen", "127.0.0.1:0", String(flag), www, String(source), String(command).replaceAll("'", ""));
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/`);
    await page.waitForFunction(() => /^\s*\d+ +\d+ /.test(document.querySelector("pre")?.textContent ?? ""), null, { timeout: PATIENCE_MS });
  } finally {
    await browser.close();
    await kill(server);
    await remove(root);
  }
});

test("each line of JavaScript shows the wind", { timeout: STEP_MS_MAX }, async () => {
  const lines = /^```js\n(.*?)^```$/ms.exec(README)?.[1]?.trimEnd().split("\n") ?? [];
  assert.equal(lines.length, 2);
  const server = await serve("--demo", "--listen", "127.0.0.1:0");
  const browser = await launch();
  try {
    for (const { host, line } of ["127.0.0.1", "localhost"].flatMap((host) => lines.map((line) => ({ host, line })))) {
      const page = await browser.newPage();
      /** @type {import("playwright-core").ConsoleMessage[]} */
      const said = [];
      // Chromium has words of its own for what is not found.
      page.on("console", (message) => message.type() === "log" && said.push(message));
      // By either name of this machine: what the page may ask for is what it was opened as.
      await page.goto(`${server.origin.replace("127.0.0.1", host)}/`);
      await page.evaluate(line);
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

test("a page starts a run and shows its events", { timeout: STEP_MS_MAX }, async () => {
  const script = [...README.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => String(code)).find((code) => code.includes("respond-async"));
  const [, flag, run, program] = /^    anemone serve (--run) (primes)='(python3 -u examples\/primes\.py)'/m.exec(README) ?? [];
  assert.ok(script && flag && run && program);
  const root = await folder("anemone-readme-");
  await writeFile(join(root, "index.html"), `<!doctype html><script type="module">${script}</script>`);
  const command = program.replace("examples/", fileURLToPath(new URL("examples/", ROOT)));
  const server = await serve("--listen", "127.0.0.1:0", "--static", root, flag, `${run}=${command}`);
  const browser = await launch();
  try {
    const page = await browser.newPage();
    /** @type {Record<string, unknown>[]} */
    const events = [];
    page.on("console", async (message) => {
      // Chromium itself says that there is no icon.
      if (message.type() === "log") events.push(await message.args()[0]?.jsonValue());
    });
    await page.goto(`${server.origin}/`);
    await until("the end", () => events.some((event) => event["state"] === "done"));
    const primes = () => events.filter((event) => "partial" in event).map((event) => event["partial"]);
    // As many primes as there are up to 20,000; 2 is the first. Each is fetched from the page by itself.
    await becomes("the number of primes", () => primes().length, 2262);
    assert.deepEqual([primes().includes(2), primes().includes(19_997)], [true, true]);
    assert.ok(events.some((event) => typeof event["progress"] === "number"));
  } finally {
    await browser.close();
    await kill(server);
    await remove(root);
  }
});
