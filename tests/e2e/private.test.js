/**
 * What a page of somebody else's can do to a server on the reader's own machine, in Chromium: nothing. And what programs
 * there can, with `curl` over a Unix socket.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium
 * (`CHROMIUM`, default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { firstOutput, output } from "./programs.js";
import { folder, kill, launch, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  // Chromium itself keeps such a page from this machine. Here, the server alone does.
  browser = await launch("--host-resolver-rules=MAP evil.example 127.0.0.1", "--no-proxy-server", "--disable-features=LocalNetworkAccessChecks");
});

after(async () => {
  await browser?.close();
  await kill(server);
});

/**
 * A page of evil.example, whose name was pointed here after it had loaded: it is of the same origin as the server, so Chromium lets
 * it ask for anything.
 */
async function rebound() {
  const page = await browser.newPage();
  const own = `http://evil.example:${new URL(server.origin).port}/`;
  await page.route(own, (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html><title>evil</title>" }));
  await page.goto(own);
  return page;
}

/**
 * What each request of a page comes to: a status, or whether a WebSocket opens.
 * @param {import("playwright-core").Page} page
 */
async function attempts(page) {
  return await page.evaluate(async () => {
    /** @type {(path: string, init?: RequestInit) => Promise<number>} */
    const ask = async (path, init) => (await fetch(path, init)).status;
    /** @type {(path: string, protocol?: string) => Promise<string>} */
    const open = (path, protocol) =>
      new Promise((resolve) => {
        const socket = new WebSocket(`ws://${location.host}${path}`, protocol ? [protocol] : []);
        socket.onopen = () => resolve("open");
        socket.onerror = () => resolve("refused");
      });
    return {
      topics: await ask("/topics"),
      topic: await ask("/topics/wind"),
      readers: await ask("/topics/wind/readers"),
      stream: await ask("/topics/wind", { headers: { Accept: "application/x-ndjson" } }),
      publish: await ask("/topics/scratch-x", { method: "POST", body: "1" }),
      events: await open("/topics/wind"),
      multiplexed: await open("/ws", "anemone.v1"),
      broadcast: await open("/broadcast"),
    };
  });
}

const REFUSED = {
  topics: 421,
  topic: 421,
  readers: 421,
  stream: 421,
  publish: 421,
  events: "refused",
  multiplexed: "refused",
  broadcast: "refused",
};

test("a page whose name was pointed here gets nothing", { timeout: STEP_MS_MAX }, async () => {
  const page = await rebound();
  assert.deepEqual(await attempts(page), REFUSED);
  await page.close();
});

test("the server's own page gets everything, by each of its names", { timeout: STEP_MS_MAX }, async () => {
  for (const host of ["127.0.0.1", "localhost"]) {
    const page = await browser.newPage();
    await page.goto(`http://${host}:${new URL(server.origin).port}/clock`);
    const { topics, topic, readers, publish, events, multiplexed } = await attempts(page);
    assert.deepEqual(
      { topics, topic, readers, publish, events, multiplexed },
      { topics: 200, topic: 200, readers: 200, publish: 201, events: "open", multiplexed: "open" },
    );
    await page.close();
  }
});

test("a link to a frame empties no storage", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  const link = `${server.origin}/topics/wind?frame=localStorage.clear&after=earliest`;
  const kept = async () => {
    await page.goto(`${server.origin}/clock`);
    return await page.evaluate(() => localStorage.getItem("kept"));
  };
  await page.goto(`${server.origin}/clock`);
  await page.evaluate(() => localStorage.setItem("kept", "yes"));
  const reply = await page.goto(link);
  assert.equal(reply?.status(), 403);
  assert.equal(await kept(), "yes");
  // Nor would it if a browser said that this was an iframe: the document is its own parent, and so it has none.
  /** @type {string[]} */
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  const fields = ["Accept: text/html", "Sec-Fetch-Dest: iframe", "Sec-Fetch-Site: same-origin"];
  const as = fields.flatMap((field) => ["--header", field]);
  const words = ["curl", "--silent", "--noproxy", "*", "--no-buffer", "--max-time", "40", ...as, link].map((word) => `'${word}'`);
  const body = await firstOutput(words.join(" "), /parent\.localStorage\.clear\(.*<\/script>/);
  assert.match(body, /parent\.localStorage\.clear\(/);
  await page.route(link, (route) => route.fulfill({ contentType: "text/html", body }));
  await page.goto(link);
  await until("the script to run", () => errors.length > 0);
  assert.match(String(errors[0]), /null/);
  assert.equal(await kept(), "yes");
  await page.close();
});

// A proxy need not say that it is one, but it has a user of its own. To be somebody else one must be root.
const nobody = process.getuid?.() === 0 ? "65534" : undefined;
test("another user of this machine is none of its own clients", { timeout: STEP_MS_MAX, skip: !nobody }, async () => {
  const publish = ["--json", "1", `${server.origin}/topics/scratch-o`];
  const curl = ["--silent", "--show-error", "--noproxy", "*", "--max-time", "30", ...publish];
  assert.match((await output("curl", curl)).text, /"count":1/);
  const refused = await output("setpriv", [`--reuid=${nobody}`, "--clear-groups", "curl", ...curl]);
  assert.match(refused.text, /publish-refused.*another user of this machine, 65534/s);
});

test("curl speaks over a Unix socket, whose file goes with the server", { timeout: STEP_MS_MAX }, async () => {
  const directory = await folder("anemone-unix-");
  const socket = join(directory, "socket");
  const own = await serve("--demo", "--listen", "127.0.0.1:0", "--listen", `unix:${socket}`);
  await until("the socket", () => existsSync(socket));
  assert.equal((await stat(socket)).mode & 0o777, 0o660);
  const curl = async (/** @type {string[]} */ ...args) =>
    await output("curl", ["--silent", "--show-error", "--max-time", "30", "--unix-socket", socket, ...args]);
  const url = "http://localhost/topics/scratch-u";
  const status = ["--output", "/dev/null", "--write-out", "%{http_code}"];
  assert.equal((await curl(...status, "--json", "1", url)).text, "201", "whoever may connect may publish");
  assert.equal((await curl(...status, `${url}/readers`)).text, "200");
  const stream = `curl --silent --no-buffer --max-time 40 --unix-socket '${socket}' --header 'Accept: text/event-stream' '${url}?after=earliest'`;
  assert.match(await firstOutput(stream, /\ndata: 1\n/), /\ndata: 1\n/);
  assert.equal((await curl(...status, "--header", "Host: evil.example", url)).text, "421");
  const gone = once(own.process, "exit");
  own.process.kill("SIGTERM");
  await gone;
  assert.ok(!existsSync(socket));
  await remove(directory);
});
