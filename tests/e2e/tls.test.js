/**
 * TLS in a real browser: Chromium opens its WebSockets over the HTTP/2 connection it has already
 * (RFC 8441), without being asked to.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium
 * (`CHROMIUM`, default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";
import { BIN, CHROMIUM, CHROMIUM_ARGS, PATIENCE_MS } from "./support.js";

const STEP_MS_MAX = 90_000;

/** @type {import("node:child_process").ChildProcess} */ let server;
/** @type {string} */ let origin;
/** @type {string[]} */ const output = [];

before(async () => {
  assert.ok(existsSync(BIN), `there is no ${BIN}: build it, or set TEST_ANEMONE_BIN`);
  const args = ["serve", "--verbose", "--tls-dev", "--listen", "127.0.0.1:0"];
  server = spawn(BIN, args, { stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [server.stdout, server.stderr]) {
    stream?.setEncoding("utf8");
    stream?.on("data", (text) => output.push(text));
  }
  const said = (/** @type {RegExp} */ pattern) => pattern.exec(output.join(""))?.[1];
  const end = Date.now() + PATIENCE_MS;
  while (said(/list=(\S+)/) === undefined) {
    if (server.exitCode !== null) throw new Error(`the server ended:\n${output.join("")}`);
    if (Date.now() > end) throw new Error(`the server does not listen:\n${output.join("")}`);
    await sleep(50);
  }
  origin = String(said(/listening on (https:\/\/[^\s/]+)/));
});

after(async () => {
  if (!server || server.exitCode !== null) return;
  const gone = once(server, "exit");
  server.kill("SIGKILL");
  await gone;
});

/**
 * A page of the server, opened in a browser with these arguments.
 * @param {string[]} args
 * @param {(page: import("playwright-core").Page) => Promise<void>} body
 */
async function withPage(args, body) {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...CHROMIUM_ARGS, ...args] });
  try {
    const page = await browser.newPage();
    await page.goto(`${origin}/`);
    await body(page);
  } catch (error) {
    console.error(`--- server ---\n${output.join("")}`);
    throw error;
  } finally {
    await browser.close();
  }
}

/**
 * What comes back from `/echo`, by a WebSocket of the page's own.
 * @param {import("playwright-core").Page} page
 * @param {string[]} messages
 */
function echoed(page, messages) {
  return page.evaluate(
    (messages) =>
      new Promise((done, failed) => {
        /** @type {string[]} */
        const received = [];
        const socket = new WebSocket(`wss://${location.host}/echo`);
        socket.onopen = () => messages.forEach((message) => socket.send(message));
        socket.onmessage = ({ data }) => {
          received.push(data);
          if (received.length === messages.length) socket.close(1000);
        };
        socket.onclose = ({ code, wasClean }) => done({ received, code, wasClean });
        socket.onerror = () => failed(new Error("the WebSocket failed"));
      }),
    messages,
  );
}

test("Chromium's WebSockets go over HTTP/2 by themselves", { timeout: STEP_MS_MAX }, async () => {
  await withPage(["--ignore-certificate-errors"], async (page) => {
    const session = await page.context().newCDPSession(page);
    /** @type {Map<string, { url: string, status?: number }>} */
    const sockets = new Map();
    session.on("Network.webSocketCreated", ({ requestId, url }) => sockets.set(requestId, { url }));
    session.on("Network.webSocketHandshakeResponseReceived", ({ requestId, response }) => {
      Object.assign(sockets.get(requestId) ?? {}, { status: response.status });
    });
    await session.send("Network.enable");
    const protocol = await page.evaluate(
      () => performance.getEntriesByType("navigation").map((entry) => Reflect.get(entry, "nextHopProtocol"))[0],
    );
    assert.equal(protocol, "h2", "the page");
    const messages = ["", "hello", "ä".repeat(200_000), "bye"];
    assert.deepEqual(await echoed(page, messages), { received: messages, code: 1000, wasClean: true });
    // HTTP/2 has no 101; both ends say so.
    const echo = [...sockets.values()].find(({ url }) => url.endsWith("/echo"));
    assert.equal(echo?.status, 200);
    assert.match(output.join(""), /WebSocket over HTTP\/2/);
  });
});

test("the server's words are enough to trust its certificate", { timeout: STEP_MS_MAX }, async () => {
  const trust = /(--ignore-certificate-errors-spki-list=\S+)/.exec(output.join(""))?.[1];
  await withPage([String(trust)], async (page) => {
    assert.equal(await page.evaluate(() => isSecureContext), true);
    assert.deepEqual(await echoed(page, ["x"]), { received: ["x"], code: 1000, wasClean: true });
  });
});

test("a page is live over TLS", { timeout: STEP_MS_MAX }, async () => {
  await withPage(["--ignore-certificate-errors"], async (page) => {
    await page.waitForFunction(() => document.querySelectorAll("#cores li").length > 0, null, {
      timeout: PATIENCE_MS,
    });
  });
});
