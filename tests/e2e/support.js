/** What end-to-end tests need: the binary, other programs, Chromium, and somebody who publishes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect, isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";

export const BIN = resolve(process.env.TEST_ANEMONE_BIN ?? "target/debug/anemone");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
/** It keeps pages that were left, and freezes hidden ones, which its shell does not. */
const WHOLE_CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const CHROMIUM_ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** The time that a step may take on a machine that does much else at the same time. */
export const PATIENCE_MS = 90_000;

/** @typedef {{ process: import("node:child_process").ChildProcess, output: string[] }} Program */
/** @typedef {Program & { origin: string, tcp: string | undefined }} Server */

/** @param {string[]} args more for Chromium */
export async function launch(...args) {
  return patient(await chromium.launch({ executablePath: CHROMIUM, args: [...CHROMIUM_ARGS, ...args], timeout: PATIENCE_MS }));
}

/**
 * A browser whose pages wait as long as the tests do.
 * @param {import("playwright-core").Browser} browser
 */
function patient(browser) {
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
  };
  return browser;
}

/** Chromium that keeps pages which were left, as it does for people; Playwright turns that off. */
export async function launchKeepingPages() {
  const ignoreDefaultArgs = ["--disable-back-forward-cache"];
  return patient(await chromium.launch({ executablePath: WHOLE_CHROMIUM, args: CHROMIUM_ARGS, ignoreDefaultArgs, timeout: PATIENCE_MS }));
}

/**
 * Returns an address for a server that goes and comes back to it: a free port below those that the kernel gives to whoever asks for any, so
 * no other test gets it meanwhile.
 */
export async function ownAddress() {
  for (;;) {
    const port = 20_000 + Math.floor(10_000 * Math.random());
    const server = createServer();
    const isFree = await new Promise((resolve, reject) => {
      server.on("error", (/** @type {NodeJS.ErrnoException} */ error) => (error.code === "EADDRINUSE" ? resolve(false) : reject(error)));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return `127.0.0.1:${port}`;
  }
}

/** @param {string} prefix */
export async function folder(prefix) {
  return await mkdtemp(join(tmpdir(), prefix));
}

/** @param {string | undefined} path */
export async function remove(path) {
  if (path) await rm(path, { recursive: true, force: true });
}

/** No server outlives the tests of its file, also if the runner is interrupted, which ends the file by a signal. @type {Set<import("node:child_process").ChildProcess>} */
const started = new Set();
process.once("exit", () => started.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

/**
 * Starts `anemone`; what it says is kept.
 * @param {string[]} args
 * @returns {Program}
 */
export function start(args) {
  assert.ok(existsSync(BIN), `there is no ${BIN}: build it, or set TEST_ANEMONE_BIN`);
  const child = spawn(BIN, args, { stdio: ["ignore", "pipe", "pipe"] });
  started.add(child);
  child.once("exit", () => started.delete(child));
  /** @type {string[]} */
  const output = [];
  child.on("error", (error) => output.push(`${args[0]}: ${error.message}\n`));
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text) => output.push(text));
  }
  return { process: child, output };
}

/**
 * Starts `anemone serve` and waits until it has said everything about where it listens. One that comes back to the port of
 * an earlier server waits for it: a connection of another program may have the port for a moment.
 * @param {string[]} args
 * @returns {Promise<Server>}
 */
export async function serve(...args) {
  let program = start(["serve", ...args]);
  const said = (/** @type {RegExp} */ pattern) => pattern.exec(program.output.join(""))?.[1];
  const expected = [
    /listening on (https?:\/\/[^\s/]+)\n/,
    ...(args.includes("--tcp") ? [/tcp on (\S+)\n/] : []),
    ...(args.includes("--tls-dev") ? [/list=(\S+)/] : []),
  ];
  await until("the server to listen", () => {
    const output = program.output.join("");
    if (hasEnded(program) && /another program listens there/.test(output)) program = start(["serve", ...args]);
    else if (hasEnded(program)) throw new Error(`the server ended:\n${output}`);
    return expected.every((pattern) => said(pattern) !== undefined);
  });
  return { ...program, origin: String(said(/listening on (https?:\/\/[^\s/]+)/)), tcp: said(/tcp on (\S+)/) };
}

/** @param {Program} program */
function hasEnded({ process: { exitCode, signalCode } }) {
  return exitCode !== null || signalCode !== null;
}

/** @param {Program | undefined} program */
export async function kill(program) {
  if (!program || hasEnded(program)) return;
  const gone = once(program.process, "exit");
  program.process.kill("SIGKILL");
  await gone;
}

/**
 * @param {string} what
 * @param {() => boolean | Promise<boolean>} condition
 */
export async function until(what, condition) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited ${PATIENCE_MS / 1000} s for ${what}`);
    await sleep(50);
  }
}

/**
 * Waits until what is read is as expected, and tells what it was last if that does not happen. What a page shows in several
 * places does not change in one moment: whoever has waited for one of them waits for the others, too.
 * @param {string} what
 * @param {() => unknown} read
 * @param {unknown} expected a value, or a pattern of one
 */
export async function becomes(what, read, expected) {
  /** @type {unknown} */
  let value;
  const isExpected = async () => {
    value = await read();
    return expected instanceof RegExp ? expected.test(String(value)) : isDeepStrictEqual(value, expected);
  };
  await until(what, isExpected).catch((error) => {
    throw new Error(`${error.message}, ${inspect(expected)}: it is ${inspect(value)}`);
  });
}

/**
 * Publishes `{"n":first}` to `{"n":last}`, each under a key of its own and again until it is acknowledged, so that a
 * server that is killed meanwhile gets each of them once.
 * @param {string} topic its URL
 * @param {number} first
 * @param {number} last
 */
export async function publish(topic, first, last) {
  for (let n = first; n <= last; n += 1) {
    await until(`event ${n} to be published`, async () => {
      const headers = { "Content-Type": "application/json", "Idempotency-Key": `event-${n}` };
      const reply = await fetch(topic, { method: "POST", headers, body: JSON.stringify({ n }) }).catch(() => undefined);
      if (reply) assert.ok(reply.ok, `${reply.status} ${await reply.text()}`);
      return reply !== undefined;
    });
  }
}

/**
 * Returns true for a warning that a test gets for itself, since it reads the pixels of a canvas again and again.
 * @param {string} text of the console
 */
export const isOfTest = (text) => text.includes("willReadFrequently");

/** @param {number} last */
export function numbersTo(last) {
  return Array.from({ length: last }, (_, index) => index + 1);
}

/**
 * Opens the one pane of the page of the wind that does not open by itself, and waits until all are connected.
 * @param {import("playwright-core").Page} page
 */
export async function panesConnect(page) {
  await page.locator('.pane[data-transport="forever-frame"] button').click({ timeout: PATIENCE_MS });
  await page.waitForFunction(
    () => {
      const states = [...document.querySelectorAll(".pane, #host")].map((pane) => pane instanceof HTMLElement && pane.dataset.state);
      return states.length === 8 && states.every((state) => state === "connected");
    },
    null,
    { polling: 100, timeout: PATIENCE_MS },
  );
}
