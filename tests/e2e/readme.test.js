/**
 * The JavaScript of the README, of the documents that go on where it ends, and of the client's README, as it is; the other languages
 * are in crates/cli/tests/shared/readme.rs.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`).
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect } from "../../clients/js/src/client.js";
import { PATIENCE_MS, becomes, folder, kill, launch, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const ROOT = new URL("../../", import.meta.url);
const DOCUMENTS = ["docs/TUTORIAL.md", "docs/RUNS.md"];
const FRONT = await readFile(new URL("README.md", ROOT), "utf8");
const COMPUTATIONS = await readFile(new URL("docs/COMPUTATIONS.md", ROOT), "utf8");
const CLIENT = await readFile(new URL("clients/js/README.md", ROOT), "utf8");
const README = (await Promise.all(DOCUMENTS.map((path) => readFile(new URL(path, ROOT), "utf8")))).join("\n");

/**
 * The blocks between fences of a text, in this language.
 * @param {string} text
 * @param {string} language
 */
const blocks = (text, language) => [...text.matchAll(RegExp(`^\`{3}${language}\\n(.*?)^\`{3}$`, "gms"))].map(([, code]) => String(code));

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

test("three lines read a topic in a page and in Node", { timeout: STEP_MS_MAX }, async () => {
  const [script = ""] = blocks(FRONT, "js");
  assert.equal(script.trimEnd().split("\n").length, 3);
  const root = await folder("anemone-readme-");
  await writeFile(join(root, "index.html"), `<!doctype html><script type="module">${script}</script>`);
  const server = await serve("--listen", "127.0.0.1:0", "--static", root, "--exec", "cpu=vmstat 1");
  const inNode = script.replace("/client.js", new URL("clients/js/src/client.js", ROOT).href).replace('connect("/")', `connect("${server.origin}")`);
  const program = spawn(process.execPath, ["--input-type=module", "--eval", inNode], { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  program.stdout.on("data", (text) => (printed += text));
  const browser = await launch();
  try {
    const page = await browser.newPage();
    /** @type {string[]} */
    const said = [];
    page.on("console", (message) => message.type() === "log" && said.push(message.text()));
    await page.goto(`${server.origin}/`);
    const isLine = (/** @type {string} */ text) => /^\s*\d+ +\d+ /m.test(text);
    await until("a line in the page and in Node", () => said.some(isLine) && isLine(printed));
  } finally {
    await browser.close();
    program.kill();
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

test("the client that the server has shows the wind", { timeout: STEP_MS_MAX }, async () => {
  const script = blocks(README, "js").find((code) => code.includes("/client.js"));
  const [page] = blocks(CLIENT, "html");
  const root = await folder("anemone-readme-");
  await writeFile(join(root, "index.html"), String(page));
  const server = await serve("--demo", "--listen", "127.0.0.1:0", "--static", root);
  const browser = await launch();
  try {
    const page = await browser.newPage();
    /** @type {import("playwright-core").ConsoleMessage[]} */
    const said = [];
    page.on("console", (message) => message.type() === "log" && said.push(message));
    await page.goto(`${server.origin}/`);
    await page.waitForFunction(() => /^[\d.]+ m\/s$/.test(document.title), null, { timeout: PATIENCE_MS });
    // It reads until the page goes.
    void page.evaluate(`(async () => { ${script} })()`).catch(() => undefined);
    await until("an event", () => said.length > 0);
    const event = await said[0]?.args()[0]?.jsonValue();
    assert.equal(typeof event?.direction, "number");
  } finally {
    await browser.close();
    await kill(server);
    await remove(root);
  }
});

test("the README of the client reads, publishes, calls and runs as it says", { timeout: STEP_MS_MAX }, async () => {
  const program = fileURLToPath(new URL("examples/primes.py", ROOT));
  const server = await serve("--demo", "--listen", "127.0.0.1:0", "--run", `primes=python3 -u ${program}`);
  /** @type {unknown[][]} */
  const said = [];
  const log = (/** @type {unknown[]} */ ...words) => void said.push(words);
  const [loop, callbacks, calls] = blocks(CLIENT, "js");
  /** @type {ReturnType<typeof connect>[]} */
  const clients = [];
  const connecting = () => {
    const client = connect(`${server.origin}/`);
    clients.push(client);
    return client;
  };
  const client = connecting();
  /** @type {new (...parts: string[]) => (...values: unknown[]) => Promise<void>} */
  const Code = Object.getPrototypeOf(async () => undefined).constructor;
  const run = (/** @type {string | undefined} */ code) => {
    return new Code("client", "connect", "console", String(code).replace("const client =", "client ="))(client, connecting, { log, warn: log });
  };
  try {
    await run(calls);
    const shown = (/** @type {unknown} */ value) => said.some((words) => words.some((word) => JSON.stringify(word) === JSON.stringify(value)));
    assert.ok(shown(19_997) && shown({ partial: 2 }) && said.some(([progress, text]) => progress === 1 && text === "up to 20000"), JSON.stringify(said.slice(-5)));
    said.length = 0;
    await run(callbacks);
    await until("the transport and an event", () => said.some(([word]) => word === "reading by") && said.some(([data]) => typeof data === "object"));
    said.length = 0;
    // It reads until its client is closed.
    void run(loop).catch(() => undefined);
    await until("an event with its position", () => said.some(([position, data]) => typeof position === "string" && typeof data === "object"));
  } finally {
    for (const one of clients) one.close();
    await kill(server);
  }
});

test("the document of docs/COMPUTATIONS.md is computed, and its function draws the lists", { timeout: STEP_MS_MAX }, async () => {
  const server = await serve("--demo", "--listen", "127.0.0.1:0");
  const client = connect(`${server.origin}/`);
  const apply = new Function(`${blocks(COMPUTATIONS, "js")[0]} return apply;`)();
  /** @type {Map<number, number[]>} */
  const lists = new Map();
  try {
    for await (const event of client.run("/computations", JSON.parse(String(blocks(COMPUTATIONS, "json")[0])))) apply(lists, event);
    const [, quick = [], merge = []] = [0, 1, 2].map((action) => lists.get(action));
    assert.deepEqual(quick, Array.from({ length: 2000 }, (_, at) => at + 1));
    const digits = merge.map((value) => value % 10);
    assert.deepEqual(digits, [...digits].sort());
    assert.equal(digits.length, 2000);
  } finally {
    client.close();
    await kill(server);
  }
});
