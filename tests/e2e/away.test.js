/**
 * A server that is away behind a proxy: each page says so as if there were no proxy, and takes it back.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { PATIENCE_MS, kill, launch, serve } from "./support.js";

const STEP_MS_MAX = 300_000;

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;
/** Passes requests on, or answers that it does not reach the server. It lets no WebSocket through. */
const proxy = createServer((asked, reply) => {
  if (asked.method === "POST") keys.push(asked.headers["idempotency-key"]);
  if (isAway) {
    reply.writeHead(502, { "Content-Type": "text/html" }).end("<h1>502 Bad Gateway</h1>");
    return;
  }
  const passed = request(new URL(asked.url ?? "/", server.origin), { method: asked.method, headers: asked.headers }, (answer) => {
    reply.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(reply);
  });
  passed.on("error", () => reply.destroy());
  reply.on("close", () => passed.destroy());
  asked.pipe(passed);
});
let isAway = false;
/** The `Idempotency-Key` of each POST. @type {unknown[]} */
const keys = [];

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", () => resolve(null)));
});

after(async () => {
  await browser?.close();
  proxy.closeAllConnections();
  proxy.close();
  await kill(server);
});

/** @param {string} path */
function at(path) {
  const address = proxy.address();
  assert.ok(address !== null && typeof address === "object");
  return `http://127.0.0.1:${address.port}/${path}`;
}

for (const path of ["", "wind", "topics/wind", "messages", "runs", "connections"]) {
  test(`/${path} says that the server cannot be reached, and nothing else`, { timeout: STEP_MS_MAX }, async () => {
    isAway = false;
    const page = await browser.newPage();
    await page.goto(at(path));
    await page.locator("#notice-no-script").waitFor({ state: "detached", timeout: PATIENCE_MS });
    isAway = true;
    proxy.closeAllConnections();
    await page.locator("#notice-no-server").waitFor({ timeout: PATIENCE_MS });
    assert.doesNotMatch(await page.locator("body").innerText(), /not from an Anemone server/);
    isAway = false;
    await page.locator("#notice-no-server").waitFor({ state: "hidden", timeout: PATIENCE_MS });
    await page.close();
  });
}

for (const { path, write, press, said } of [
  { path: "computations", write: "", press: /^Start/, said: "#said" },
  { path: "runs", write: "", press: "Start", said: "#start [role=status]" },
  { path: "messages", write: "hi", press: "Send", said: "#sent" },
  { path: "topics/scratch-away", write: "hi", press: "Publish", said: "#publish [role=status]" },
]) {
  test(`/${path} says soon that what was sent has not arrived, and sends it again with the same key`, { timeout: STEP_MS_MAX }, async () => {
    isAway = false;
    const page = await browser.newPage();
    // The longest pauses between tries, so that their number says for how long they were made.
    await page.addInitScript(() => (Math.random = () => 0.999));
    await page.goto(at(path));
    const button = page.getByRole("button", { name: press, exact: typeof press === "string" });
    await button.waitFor({ timeout: PATIENCE_MS });
    const send = async () => {
      if (write !== "") await page.locator("textarea").first().fill(write);
      await button.click();
    };
    const arrived = () => page.locator(`${said}:not(.failure)`, { hasText: /^(Started.*|Sent\.|Published.*|)$/ }).waitFor({ state: "attached", timeout: PATIENCE_MS });
    await send();
    await arrived();
    keys.length = 0;
    isAway = true;
    await send();
    await page.locator(`${said}.failure`, { hasText: / again: if / }).waitFor({ timeout: PATIENCE_MS });
    assert.ok(keys.length > 0 && keys.length <= 4, `${keys.length} tries`);
    isAway = false;
    await button.click();
    await arrived();
    assert.equal(new Set(keys).size, 1, "the same key");
    await page.close();
  });
}
