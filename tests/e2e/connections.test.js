/**
 * The page of the connections in Chromium: who is connected over which transport, those who are behind first, what is searched for, why
 * the last ones have ended, and the threads.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import WebSocket from "ws";
import { PATIENCE_MS, becomes, folder, kill, launch, remove, serve } from "./support.js";

const STEP_MS_MAX = 300_000;
const HTML = { Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };
const EVENT_BYTES = 60_000;

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-connections-");
  const config = join(directory, "anemone.toml");
  // Who does not read, or waits, is there for the whole test.
  await writeFile(config, '[limits]\nwrite_timeout = "10min"\nwait_max = "10min"\n');
  server = await serve("--config", config, "--demo", "--listen", "127.0.0.1:0", "--tcp", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
  await remove(directory);
});

/**
 * Opens the page; it must have no fault.
 * @param {(page: import("playwright-core").Page) => Promise<void>} body
 */
async function withPage(body) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  try {
    await page.goto(`${server.origin}/connections`);
    await page.locator("#connections tbody tr").first().waitFor({ timeout: PATIENCE_MS });
    await body(page);
    assert.deepEqual(faults, []);
  } finally {
    await page.close();
  }
}

/**
 * A reader that asks over HTTP, and reads nothing of the reply.
 * @param {string} target
 * @param {string} accept
 */
async function reader(target, accept) {
  const { hostname, port, host } = new URL(server.origin);
  const socket = connect(Number(port), hostname).pause();
  await once(socket, "connect");
  socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAccept: ${accept}\r\n\r\n`);
  return { address: `${socket.localAddress}:${socket.localPort}`, leave: () => socket.destroy() };
}

/**
 * @param {string} target
 * @param {string[]} subprotocols
 */
async function webSocket(target, subprotocols) {
  const socket = new WebSocket(server.origin.replace("http", "ws") + target, subprotocols);
  const upgraded = once(socket, "upgrade");
  await once(socket, "open");
  const [{ socket: stream }] = await upgraded;
  return { address: `${stream.localAddress}:${stream.localPort}`, socket };
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} address
 */
function row(page, address) {
  return page.locator("#connections tbody tr").filter({ has: page.getByText(address, { exact: true }) });
}

/**
 * @param {import("playwright-core").Locator} place
 * @param {string} field
 * @param {RegExp} expected
 */
async function says(place, field, expected) {
  await place.locator(`[data-field=${field}]`, { hasText: expected }).waitFor({ timeout: PATIENCE_MS });
}

/** @param {string} topic */
async function flood(topic) {
  // Much more than the system takes for one who does not read.
  for (let n = 0; n < 200; n += 1) {
    const reply = await fetch(`${server.origin}/topics/${topic}`, { method: "POST", body: JSON.stringify("x".repeat(EVENT_BYTES)) });
    assert.ok(reply.ok, `${reply.status} ${await reply.text()}`);
  }
}

test("a browser gets the page, and programs get JSON", { timeout: STEP_MS_MAX }, async () => {
  const type = async (/** @type {string} */ path, /** @type {Record<string, string>} */ headers) => {
    const reply = await fetch(server.origin + path, { headers });
    return `${reply.status} ${reply.headers.get("content-type")}`;
  };
  assert.equal(await type("/connections", HTML), "200 text/html; charset=utf-8");
  for (const path of ["/connections", "/connections/closed", "/connections/threads"]) assert.equal(await type(path, {}), "200 application/json");
  assert.equal(await type("/connections/closed", HTML), "200 application/json");
});

test("each connection is there with its transport, and one that does not read is behind", { timeout: STEP_MS_MAX }, async () => {
  const slow = await reader("/topics/scratch-slow?after=earliest", "text/event-stream");
  const lines = await reader("/topics/wind", "application/x-ndjson");
  const poll = await reader("/topics/scratch-quiet?after=latest&wait=600", "*/*");
  const plain = await webSocket("/topics/wind", ["anemone.events"]);
  const multiplexed = await webSocket("/ws", ["anemone.v1"]);
  multiplexed.socket.send("GET a /topics/wind");
  multiplexed.socket.send("GET b /topics/scratch-quiet");
  await flood("scratch-slow");
  await withPage(async (page) => {
    await says(row(page, slow.address), "transport", /^SSE$/);
    await says(row(page, slow.address), "lag", /^\d+ events?$/);
    await says(row(page, slow.address), "queued", /B$/);
    await says(row(page, slow.address), "sent", /^[\d.]+ [kM]B$/);
    await says(row(page, slow.address), "received", /^received \d{2,3} B$/);
    await says(row(page, lines.address), "transport", /^NDJSON$/);
    await says(row(page, lines.address), "path", /^\/topics\/wind$/);
    await says(row(page, poll.address), "transport", /^long poll$/);
    await says(row(page, plain.address), "why", /^a WebSocket handshake at this path, HTTP\/1\.1, anemone\.events/);
    await says(row(page, plain.address), "position", /^at \w+-\d+$/);
    await says(row(page, multiplexed.address), "transport", /^multiplexed WebSocket$/);
    await says(row(page, multiplexed.address), "path", / and 1 more$/);
    await page.locator("#connections .mark", { hasText: "this page" }).first().waitFor({ timeout: PATIENCE_MS });

    // Who is behind comes first; another order is a click or a key away.
    const first = page.locator("#connections tbody tr").first();
    await says(first, "client", new RegExp(`^${slow.address.replaceAll(".", "\\.")}$`));
    const age = page.locator("#connections").getByRole("columnheader", { name: "Open for" });
    await age.getByRole("button").focus();
    await page.keyboard.press("Enter");
    assert.equal(await age.getAttribute("aria-sort"), "descending");
    assert.equal(await page.getByLabel("Sort by").inputValue(), "age");
    await page.keyboard.press("Enter");
    assert.equal(await age.getAttribute("aria-sort"), "ascending");
    await page.getByLabel("Sort by").selectOption("lag");

    await page.getByLabel("Find a connection").fill("wind ndjson");
    await row(page, slow.address).waitFor({ state: "detached", timeout: PATIENCE_MS });
    assert.equal(await page.locator("#connections tbody tr").count(), 1);
    await page.locator("#summary", { hasText: /^1 connection, 1 reader, .*, of \d+\.$/ }).waitFor({ timeout: PATIENCE_MS });
    await page.getByLabel("Find a connection").fill("");

    // Who leaves is no longer there, and the last ones say why.
    plain.socket.close(4001, "had enough");
    await row(page, plain.address).waitFor({ state: "detached", timeout: PATIENCE_MS });
    const ended = page.locator("#closed tbody tr").filter({ has: page.getByText(plain.address, { exact: true }) });
    await says(ended, "by", /^client$/);
    await says(ended, "reason", /^had enough$/);
    await says(ended, "code", /^close code 4001$/);
    lines.leave();
    const left = page.locator("#closed tbody tr").filter({ has: page.getByText(lines.address, { exact: true }) });
    await says(left, "reason", /^client gone$/);
  });
  for (const { leave } of [slow, poll]) leave();
  multiplexed.socket.close();
});

test("idle connections of HTTP are one line, which opens, and a search finds them", { timeout: STEP_MS_MAX }, async () => {
  const { hostname, port, host } = new URL(server.origin);
  const socket = connect(Number(port), hostname);
  socket.write(`GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await once(socket, "data");
  const address = `${socket.localAddress}:${socket.localPort}`;
  await withPage(async (page) => {
    const idle = page.getByRole("button", { name: /and \d+ idle HTTP connections?$/ });
    await idle.waitFor({ timeout: PATIENCE_MS });
    assert.equal(await row(page, address).count(), 0);
    await idle.click();
    await says(row(page, address), "transport", /^HTTP$/);
    assert.equal(await idle.getAttribute("aria-expanded"), "true");
    await idle.click();
    await row(page, address).waitFor({ state: "detached", timeout: PATIENCE_MS });
    await page.getByLabel("Find a connection").fill(address);
    await says(row(page, address), "transport", /^HTTP$/);
    await idle.waitFor({ state: "hidden", timeout: PATIENCE_MS });
  });
  socket.destroy();
});

test("each thread says how busy it is and what it does", { timeout: STEP_MS_MAX }, async () => {
  const { threads } = await (await fetch(`${server.origin}/connections/threads`)).json();
  await withPage(async (page) => {
    assert.equal(await page.locator("#threads tbody tr").count(), threads.length);
    const thread = page.locator("#threads tbody tr").first();
    await says(thread, "busy", /^\d+ %$/);
    await says(thread, "events", /^[\d,]+\/s$/);
    await says(thread, "sent", /B\/s$/);
    assert.equal(await page.getByRole("progressbar", { name: "Time that thread 0 is busy" }).count(), 1);
  });
});

test("on a phone, the last ten that were closed are there, and all on request, with the reason in plain words", { timeout: STEP_MS_MAX }, async () => {
  const { hostname, port } = new URL(server.origin);
  for (let count = 0; count < 12; count += 1) {
    const socket = connect(Number(port), hostname).resume();
    socket.write("(hello)\r\n\r\n");
    await once(socket, "close");
  }
  await withPage(async (page) => {
    const rows = page.locator("#closed tbody tr");
    const all = page.locator("#all-closed");
    await page.locator("#closed").getByText("what came was not HTTP", { exact: true }).first().waitFor({ timeout: PATIENCE_MS });
    assert.equal(await all.isVisible(), false);
    assert.ok((await rows.count()) >= 12);
    await page.setViewportSize({ width: 390, height: 844 });
    await becomes("the newest", () => rows.count(), 10);
    await all.click();
    await becomes("the button", () => all.isVisible(), false);
    assert.ok((await rows.count()) >= 12);
  });
});

test("who may not see the connections is told so", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage({ extraHTTPHeaders: { Via: "1.1 proxy.example" } });
  await page.addInitScript(() => Reflect.deleteProperty(window, "WebSocket")); // it would have no such field
  await page.goto(`${server.origin}/connections`);
  await page.locator("#refused", { hasText: /^Only clients on the server's own machine may see the connections/ }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.locator("#connections").isVisible(), false);
  await page.close();
});

test("a server that is gone is told, and what it said last stays", { timeout: STEP_MS_MAX }, async () => {
  const other = await serve("--listen", "127.0.0.1:0");
  const page = await browser.newPage();
  await page.goto(`${other.origin}/connections`);
  await page.locator("#connections tbody tr").first().waitFor({ timeout: PATIENCE_MS });
  await kill(other);
  await page.locator("#notice-no-server").waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.locator("#connections").isVisible(), true);
  await page.close();
});
