/**
 * TLS in a real browser: Chromium opens its WebSockets over the HTTP/2 connection it has already
 * (RFC 8441), without being asked to.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium
 * (`CHROMIUM`, default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PATIENCE_MS, becomes, kill, launch, serve } from "./support.js";

const STEP_MS_MAX = 300_000;

/** @type {import("./support.js").Server} */ let server;

before(async () => {
  server = await serve("--verbose", "--tls-dev", "--echo", "--host", "--listen", "127.0.0.1:0");
});

after(() => kill(server));

/**
 * A page of the server, opened in a browser with these arguments.
 * @param {string[]} args
 * @param {(page: import("playwright-core").Page) => Promise<void>} body
 */
async function withPage(args, body) {
  const browser = await launch(...args);
  try {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/transports`);
    await body(page);
  } catch (error) {
    console.error(`--- server ---\n${server.output.join("")}`);
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
    await becomes("the status of the handshake", () => [...sockets.values()].find(({ url }) => url.endsWith("/echo"))?.status, 200);
    await becomes("the log", () => server.output.join(""), /WebSocket over HTTP\/2/);
  });
});

test("the server's words are enough to trust its certificate", { timeout: STEP_MS_MAX }, async () => {
  const trust = /(--ignore-certificate-errors-spki-list=\S+)/.exec(server.output.join(""))?.[1];
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
