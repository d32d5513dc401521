/**
 * nginx as it comes, with `proxy_pass` and nothing else, before a server that was told nothing of it; and nginx that serves a
 * server below a path of its own. The page for a visitor from elsewhere, in Chromium, and each transport: what passes, and the
 * words for what does not.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), nginx, openssl and Chromium (`CHROMIUM`,
 * default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { output } from "./programs.js";
import { NAME, Proxy } from "./proxies.js";
import { Reader, begun, haveRead, publish } from "./readers.js";
import { BIN, PATIENCE_MS, becomes, folder, kill, launch, numbersTo, remove, serve, until } from "./support.js";
import { TRANSPORTS, ask } from "./transports.js";

const STEP_MS_MAX = 300_000;
const VISITOR = "127.0.0.9";
/** What needs more than HTTP/1.0 and a host. */
const BLOCKED = ["plain WebSocket", "anemone.events", "multiplexed WebSocket", "TCP"];

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** @type {Proxy} */ let stock;
/** @type {Proxy} */ let below;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-stock-");
  const config = join(directory, "anemone.toml");
  await writeFile(config, 'demo = true\n[[topic]]\nname = "test-*"\npublish = "anyone"\n');
  server = await serve("--config", config, "--listen", "127.0.0.1:0");
  const ports = { http: Number(new URL(server.origin).port), tcp: 0 };
  [stock, below] = await Promise.all([Proxy.start("stock", ports), Proxy.start("path", ports)]);
  browser = await launch(`--host-resolver-rules=MAP ${NAME} 127.0.0.1`, "--no-proxy-server");
});

after(async () => {
  await Reader.stopAll();
  await browser?.close();
  await Promise.all([stock?.remove(), below?.remove()]);
  await kill(server);
  await remove(directory);
});

/**
 * @param {Proxy} proxy
 * @param {string} [path] below which the server is
 * @returns {import("./transports.js").Target}
 */
const by = ({ ports, origin }, path = "") => ({
  port: ports.http,
  isSecure: false,
  host: new URL(origin).host,
  from: VISITOR,
  below: path,
});

/** @returns {import("./transports.js").Target} */
const direct = () => ({ port: Number(new URL(server.origin).port), isSecure: false, host: new URL(server.origin).host });

/**
 * What a reader of a page sees of each connection.
 * @param {string} url
 * @param {(page: import("playwright-core").Page, state: (selector: string) => Promise<string>) => Promise<void>} look
 */
async function withPage(url, look) {
  const page = await browser.newPage();
  await page.goto(url);
  await look(page, async (selector) => (await page.locator(selector).first().textContent()) ?? "");
  await page.close();
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} selector
 * @param {string} kind
 */
async function hasState(page, selector, kind) {
  await page.locator(`${selector}[data-state="${kind}"]`).waitFor({ timeout: PATIENCE_MS });
}

test("the page works behind nginx as it comes, and says what does not", { timeout: STEP_MS_MAX }, async () => {
  await withPage(`${stock.origin}/wind`, async (_, text) => {
    await until("the wind", async () => /m\/s/.test(await text("#readout")));
    await until("the sensor", async () => (await text("#sensor-status")) === "sensor live");
  });
  await withPage(`${stock.origin}/transports`, async (page, text) => {
    await hasState(page, '.pane[data-transport="polling"]', "connected");
    await hasState(page, '.pane[data-transport="long-polling"]', "connected");
    await hasState(page, "#host", "connected");
    // It is told between one try and the next.
    const reason = /HTTP works but the WebSocket does not open; something on the way may block it, as a proxy that is not told to pass it on$/;
    await until("the reason", async () => reason.test(await text('.pane[data-transport="websocket"] [data-field="how"]')));
    assert.equal(await page.locator("#notice-no-script").count(), 0);
  });
  await becomes(
    "the log",
    () => server.output.join(""),
    /refused GET \/ws of 127\.0\.0\.1, 403 origin-refused: pages of origin http:\/\/wind\.example:\d+ may not use this server, asked for as 127\.0\.0\.1:\d+: .* a proxy in front has replaced the Host: have it forward the original/,
  );
});

test("nginx as it comes passes what is HTTP, each event at once", { timeout: STEP_MS_MAX }, async () => {
  const position = await publish(direct(), "test-stock", 0);
  const passing = Object.entries(TRANSPORTS).filter(([name]) => !BLOCKED.includes(name));
  const all = passing.map(([name, read]) => new Reader(name, read, by(stock), "/topics/test-stock", position));
  await begun(stock, all);
  for (const n of numbersTo(10)) {
    // With a key, as a program: no browser sends this without an Origin.
    await publish(by(stock), "test-stock", n);
    await haveRead(stock, all, n);
  }
  for (const { transport, numbers, ends } of all) assert.deepEqual([transport, numbers, ends], [transport, numbersTo(10), 0]);
  await Promise.all(all.map((reader) => reader.stop()));
  // What a program is told whose handshake goes this way.
  const handshake = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" };
  const refused = await ask(by(stock), "/topics/test-stock", { headers: handshake });
  assert.equal(refused.status, 426);
  assert.match(refused.text, /a WebSocket handshake without Upgrade: a proxy on the way has removed it; configure the proxy to forward WebSockets/);
});

test("below a path of a proxy's own there is all that there is elsewhere", { timeout: STEP_MS_MAX }, async () => {
  const position = await publish(direct(), "test-below", 0);
  const target = by(below, "/wind");
  // `allow_hosts` is not needed for those who ask for an address.
  const addressed = { ...target, host: `127.0.0.1:${below.ports.http}` };
  const passing = Object.entries(TRANSPORTS).filter(([name]) => name !== "TCP");
  const all = passing.map(([name, read]) => new Reader(name, read, addressed, "/topics/test-below", position));
  await begun(below, all);
  for (const n of numbersTo(10)) await publish(addressed, "test-below", n);
  await haveRead(below, all, 10);
  for (const { transport, numbers, ends } of all) assert.deepEqual([transport, numbers, ends], [transport, numbersTo(10), 0]);
  await Promise.all(all.map((reader) => reader.stop()));

  const { headers, text } = await ask(addressed, `/topics/test-below?after=${position}&limit=3`);
  const next = /^<(.*)>; rel="next"$/.exec(String(headers.link))?.[1];
  const url = new URL(String(next), `http://${addressed.host}/wind/topics/test-below`);
  assert.equal(url.pathname + url.search, `/wind/topics/test-below?after=${JSON.parse(text).next}`);
  assert.equal((await ask(target, "/topics")).status, 421, "by a name that is not allowed");

  await withPage(`http://${addressed.host}/wind/wind`, async (page, text) => {
    await becomes("the command", () => text("#commands code"), `curl 'http://${addressed.host}/wind/topics/wind'`);
    await page.getByRole("link", { name: "Compare the transports" }).click({ timeout: PATIENCE_MS });
    for (const name of ["websocket", "polling", "long-polling"]) await hasState(page, `.pane[data-transport="${name}"]`, "connected");
    await hasState(page, "#host", "connected");
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".pane") ?? document.body).borderTopStyle), "solid", "has its style");
  });
  await withPage(`http://${addressed.host}/wind/`, async (page) => {
    await page.locator('#topics li[data-name="wind"] h3 a').click({ timeout: PATIENCE_MS });
    await page.locator("#list code", { hasText: '"speed"' }).first().waitFor({ timeout: PATIENCE_MS });
    assert.equal(page.url(), `http://${addressed.host}/wind/topics/wind`);
    await page.getByRole("link", { name: "Wind" }).click({ timeout: PATIENCE_MS });
    await page.locator("#readout", { hasText: /m\/s/ }).waitFor({ timeout: PATIENCE_MS });
  });
});

test("anemone sub finds what passes", { timeout: STEP_MS_MAX }, async () => {
  const sub = async (/** @type {Proxy} */ proxy, /** @type {string} */ path, /** @type {string} */ via) => {
    const url = `http://127.0.0.1:${proxy.ports.http}${path}/topics/wind`;
    const { text, status, errors } = await output(BIN, ["sub", "--count", "1", "--via", via, url]);
    assert.deepEqual([status, text.split("\n").length], [0, 2], `${via} ${path}: ${errors}`);
    return errors;
  };
  for (const via of ["ws", "mux", "sse", "ndjson", "long-poll", "poll"]) await sub(below, "/wind", via);
  for (const via of ["sse", "ndjson", "long-poll", "poll"]) await sub(stock, "", via);
  assert.match(await sub(stock, "", "auto"), /WARN trying another transport, sse instead of ws: .*a proxy on the way has removed it.*connected over sse/s);
});

test("a page whose script does not come says so", { timeout: STEP_MS_MAX }, async () => {
  for (const missing of ["wind/main.js", "transport/reader.js"]) {
    const page = await browser.newPage();
    await page.route(`**/${missing}`, (route) => route.fulfill({ status: 403, body: "refused" }));
    await page.goto(`${server.origin}/wind`);
    const notice = page.locator("#notice-no-script");
    // It may come yet, and a page that is slow to come shows no notice.
    assert.equal(await notice.evaluate((element) => getComputedStyle(element).animationDelay), "8s");
    await notice.evaluate((element) => element.getAnimations().forEach((animation) => animation.finish()));
    await notice.waitFor({ state: "visible", timeout: PATIENCE_MS });
    assert.match((await notice.textContent()) ?? "", /The script of this page did not load.*the log of the server says what it refuses/s);
    await page.close();
  }
});

test("a page whose requests are refused says why", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  const detail = "pages of origin http://wind.example may not use this server";
  await page.route("**/topics/**", (route) => route.fulfill({ status: 403, body: JSON.stringify({ detail }) }));
  await page.routeWebSocket("**/ws", (socket) => socket.close());
  await page.goto(`${server.origin}/wind`);
  const notice = page.locator("#notice-refused");
  await notice.waitFor({ state: "visible", timeout: PATIENCE_MS });
  await becomes("the notice", () => notice.textContent(), /The server refuses what this page asks for.*pages of origin http:\/\/wind\.example may not/s);
  await becomes("the state of the sensor", () => page.locator("#sensor-status").textContent(), "refused");
  assert.ok(!(await page.locator("#notice-no-server").isVisible()));
  await page.close();
});
