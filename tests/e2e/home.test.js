/**
 * Home with many topics and with services: live, over one connection, and with as few requests as with one topic.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { BIN, PATIENCE_MS, becomes, folder, kill, launch, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const TOPICS = 500;

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  server = await serve("--demo", "--run", "slow=sleep 600", "--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server", "--host-resolver-rules=MAP phone.example 127.0.0.1");
  for (let n = 0; n < TOPICS; n += 25) await Promise.all(Array.from({ length: 25 }, (_, index) => post(topic(n + index), { n: n + index })));
});

after(async () => {
  await browser?.close();
  await kill(server);
});

/** @param {number} n */
const topic = (n) => `scratch-${String(n).padStart(3, "0")}`;

/**
 * @param {string} name
 * @param {unknown} data
 */
async function post(name, data) {
  const reply = await fetch(`${server.origin}/topics/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });
  assert.equal(reply.status, 201);
}

/**
 * Opens Home, counts what it asks for, and expects no fault.
 * @param {(page: import("playwright-core").Page, counts: { requests: string[], sockets: number }) => Promise<void>} body
 * @param {string} [refused] what the network does not let through
 */
async function withHome(body, refused) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  const counts = { requests: /** @type {string[]} */ ([]), sockets: 0 };
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => counts.requests.push(new URL(request.url()).pathname));
  page.on("websocket", () => (counts.sockets += 1));
  if (refused) await page.routeWebSocket(refused, (socket) => socket.close());
  try {
    await page.goto(`${server.origin}/`);
    await body(page, counts);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
}

/** @param {string} name */
const row = (name) => `#topics li[data-name="${name}"]`;

/**
 * @param {import("playwright-core").Page} page
 * @param {string} name
 * @param {string} field
 * @param {RegExp} expected
 */
async function says(page, name, field, expected) {
  await page.locator(`${row(name)} [data-field=${field}]`, { hasText: expected }).waitFor({ state: "attached", timeout: PATIENCE_MS });
}

test("500 topics are read over one connection, as far as they are in view", { timeout: STEP_MS_MAX }, async () => {
  await withHome(async (page, counts) => {
    await says(page, topic(0), "newest", /^\{"n":0\}$/);
    await becomes("500 of the 503 topics", () => page.locator("#topics li").count(), TOPICS);
    await page.getByLabel("Find a topic").fill("nowhere");
    await becomes("what is found", () => page.locator("#topics [data-field=count]").textContent(), "No topic has this in its name.");
    await page.getByLabel("Find a topic").fill("");
    await becomes("all topics again", () => page.locator("#topics li").count(), TOPICS);
    await says(page, topic(0), "kept", /^1 kept, \d+ B$/);
    await post(topic(0), { n: "next" });
    await says(page, topic(0), "newest", /^\{"n":"next"\}$/);
    await says(page, topic(0), "age", /^just now|^\d+ s ago$/);
    await until("a row far below", async () => {
      // Rows get their own heights as they come into view.
      await page.locator(row(topic(400))).scrollIntoViewIfNeeded();
      return (await page.locator(`${row(topic(400))} [data-field=newest]`).textContent()) === '{"n":400}';
    });
    const readers = async (/** @type {number} */ n) => {
      const { topics } = await (await fetch(`${server.origin}/topics?prefix=${topic(n)}`)).json();
      return topics[0].readers;
    };
    await until("what went out of view to be read no longer", async () => (await readers(0)) === 0);
    await becomes("the readers of what is in view", () => readers(400), 1);
    // Its files, the look for wind, and nothing for each topic.
    assert.deepEqual(counts.requests.filter((path) => path.startsWith("/topics/")), []);
    assert.equal(counts.sockets, 1);
  });
});

test("topics with numbers have a curve, which begins with what they keep, as far as they are in view", { timeout: STEP_MS_MAX }, async () => {
  for (let n = 0; n < 5; n += 1) await post(topic(3), { level: n % 3, units: "m" });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  /** @type {string[]} */
  const asked = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => asked.push(...(/GET \S+ \/topics\/\S+\?after=-\d\d+/.exec(String(payload)) ?? []))));
  await page.goto(`${server.origin}/`);
  await page.locator(row(topic(3))).scrollIntoViewIfNeeded();
  await says(page, topic(3), "trend", /^level, m$/);
  const curve = () => page.locator(`${row(topic(3))} canvas`).evaluate((canvas) => (canvas instanceof HTMLCanvasElement ? canvas.toDataURL() : ""));
  const first = await curve();
  await post(topic(3), { level: 9, units: "m" });
  await until("a curve that goes on", async () => (await curve()) !== first);
  const light = await curve();
  await page.emulateMedia({ colorScheme: "dark" });
  await until("other colours in the dark", async () => (await curve()) !== light);
  assert.equal(await page.locator("#topics").getByText("level, m").evaluate((words) => words.closest("[aria-hidden=true]") !== null), true);
  assert.equal(await page.locator(`${row(topic(4))} [data-field=trend]`).textContent(), "", "one value is no curve");
  // What comes late above the rows moves them; some are in view only before.
  const near = await page.locator("#topics li").evaluateAll((rows) => rows.filter((row) => row.getBoundingClientRect().top < 2 * innerHeight).length);
  assert.ok(asked.length > 0 && asked.length <= near && near < 100, `${asked.length} histories, ${near} rows near the window`);
  await page.close();
});

test("topics come and go as they are made and deleted", { timeout: STEP_MS_MAX }, async () => {
  await withHome(async (page) => {
    await says(page, topic(0), "rate", /./);
    await post("scratch--new", { first: true });
    await says(page, "scratch--new", "newest", /^\{"first":true\}$/);
    assert.equal((await fetch(`${server.origin}/topics/scratch--new`, { method: "DELETE" })).status, 204);
    await page.locator(row("scratch--new")).waitFor({ state: "detached", timeout: PATIENCE_MS });
  });
});

test("whoever publishes to a topic called as the status of another one says nothing about that", { timeout: STEP_MS_MAX }, async () => {
  const fake = `${topic(0)}.status`;
  await post(fake, { state: "lost", detail: "all is lost" });
  await withHome(async (page) => {
    await page.getByLabel("Find a topic").fill("wind");
    await page.locator(`${row("wind")} .status`, { hasText: /^live/ }).waitFor({ timeout: PATIENCE_MS });
    await page.getByLabel("Find a topic").fill(topic(0));
    await says(page, fake, "newest", /all is lost/);
    await says(page, topic(0), "newest", /./);
    assert.ok(!(await page.locator(`${row(topic(0))} .status`).isVisible()));
    // The same on the pages of the two topics.
    await page.goto(`${server.origin}/topics/wind`);
    await page.locator("#status", { hasText: /^source: live/ }).waitFor({ timeout: PATIENCE_MS });
    const listed = page.waitForResponse((reply) => reply.url().includes(`prefix=${fake}`), { timeout: PATIENCE_MS });
    await page.goto(`${server.origin}/topics/${topic(0)}`);
    await (await listed).finished();
    await page.locator("main.begun").waitFor({ timeout: PATIENCE_MS });
    assert.ok(!(await page.locator("#status").isVisible()));
  });
  assert.equal((await fetch(`${server.origin}/topics/${fake}`, { method: "DELETE" })).status, 204);
});

test("somebody else who reads a topic is counted, this page is not", { timeout: STEP_MS_MAX }, async () => {
  const stream = new AbortController();
  await withHome(async (page) => {
    await says(page, topic(1), "newest", /./);
    await fetch(`${server.origin}/topics/${topic(1)}`, { headers: { Accept: "text/event-stream" }, signal: stream.signal });
    await says(page, topic(1), "readers", /^1 reader$/);
    assert.equal(await page.locator(`${row(topic(2))} [data-field=readers]`).textContent(), "");
    stream.abort();
    await says(page, topic(1), "readers", /^$/);
  });
});

test("where no WebSocket passes, one request asks for all values in view", { timeout: STEP_MS_MAX }, async () => {
  await withHome(async (page, counts) => {
    await says(page, topic(0), "newest", /^\{"n":/);
    await post(topic(0), { n: "later" });
    await says(page, topic(0), "newest", /^\{"n":"later"\}$/);
    assert.deepEqual([...new Set(counts.requests.filter((path) => path.startsWith("/topics/")))], ["/topics/%24topics"]);
  }, "**/ws");
});

test("on a phone, the first topic is in view", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  await page.goto(`${server.origin}/`);
  await becomes("the first topic in view", async () => Number((await page.locator("#topics li").first().boundingBox())?.y) < 844, true);
  await page.close();
});

test("what the demo shows comes last, each with a sentence", { timeout: STEP_MS_MAX }, async () => {
  await withHome(async (page) => {
    await page.getByLabel("Find a topic").fill("s");
    await becomes("the last topics", async () => (await page.locator("#topics h3").allTextContents()).filter((name) => !name.startsWith("scratch")), []);
    await page.getByLabel("Find a topic").fill("o");
    await becomes("the order", () => page.locator("#topics h3").allTextContents(), ["host"]);
    await becomes("the demos", () => page.locator("#demos dt:visible").allTextContents(), ["Wind", "Transports", "Messages", "Computations", "Propagation", "Host"]);
    assert.ok((await page.locator("#demos dd").allTextContents()).every((words) => /^[A-Z].+\.$/.test(words)));
  });
});

/**
 * Opens Home of a server with this configuration.
 * @param {string} text
 * @param {(page: import("playwright-core").Page, origin: string) => Promise<void>} body
 */
async function withConfig(text, body) {
  const own = await folder("anemone-home-");
  const config = join(own, "anemone.toml");
  await writeFile(config, text);
  const { origin, ...program } = await serve("--config", config, "--listen", "127.0.0.1:0");
  const page = await browser.newPage();
  try {
    await page.goto(`${origin}/`);
    await body(page, origin);
  } finally {
    await page.close();
    await kill(program);
    await remove(own);
  }
}

test("of the demo, Home shows what this server has", { timeout: STEP_MS_MAX }, async () => {
  await withConfig("demo = true\nhost = false\n", async (page) => {
    await becomes("the demos", () => page.locator("#demos dt:visible").allTextContents(), ["Wind", "Transports", "Messages", "Computations", "Propagation"]);
    const links = await page.locator("#demos a:visible").evaluateAll((all) => all.map((link) => link instanceof HTMLAnchorElement && link.href));
    const found = await Promise.all(links.map(async (link) => (await fetch(String(link), { headers: { Accept: "text/html" } })).status));
    assert.deepEqual(found, [200, 200, 200, 200, 200]);
  });
});

test("the curve of a topic has the configured unit", { timeout: STEP_MS_MAX }, async () => {
  await withConfig('[[topic]]\nname = "tide"\npublish = "anyone"\nunits = { level = "m" }\n', async (page, origin) => {
    for (const level of [1, 2, 3]) await fetch(`${origin}/topics/tide`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ level }) });
    await page.reload(); // the curve begins with what is kept
    await says(page, "tide", "trend", /^level, m$/);
  });
});

test("the link to share is there where others reach the server, and its code is a picture", { timeout: STEP_MS_MAX }, async () => {
  await withHome(async (page) => {
    await page.locator("#who", { hasText: /^So far, only this machine can open this page\. Start the server with --listen 0\.0\.0\.0:\d+, / }).waitFor({ timeout: PATIENCE_MS });
    assert.deepEqual([await page.locator("#share li").count(), await page.locator("#share img").isVisible()], [0, false]);
  });
  const other = await serve("--listen", "0.0.0.0:0", "--allow-host", "phone.example");
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const { port } = new URL(other.origin);
    await page.goto(`http://phone.example:${port}/`);
    await becomes("the link", () => page.locator("#share a").getAttribute("href"), `http://phone.example:${port}/`);
    await becomes("the picture", () => page.locator("#share img").evaluate((image) => image instanceof HTMLImageElement && image.complete && image.naturalWidth > 0), true);
    assert.equal(await page.locator("#share img").getAttribute("alt"), `QR code of http://phone.example:${port}/`);
  } finally {
    await context.close();
    await kill(other);
  }
});

test("the three lines for a page of one's own show the newest line of a program", { timeout: STEP_MS_MAX }, async () => {
  const root = await folder("anemone-home-");
  const page = await browser.newPage();
  await page.goto(`${server.origin}/`);
  const lines = String(await page.locator("#next code").last().textContent());
  assert.equal(lines.split("\n").length, 3);
  const [env, script] = [{ ...process.env, PATH: `${dirname(BIN)}:${process.env.PATH}`, ANEMONE_LISTEN: "127.0.0.1:0" }, lines.replace(/\nanemone/, "\nexec anemone")];
  const shell = spawn("sh", ["-ec", script], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    let said = "";
    shell.stdout.setEncoding("utf8").on("data", (text) => (said += text));
    await until("the server to listen", () => said.includes("\n"));
    await page.goto(`${/http:\S+/.exec(said)?.[0]}/`);
    await page.waitForFunction(() => /^\s*\d+ +\d+ /.test(document.body.textContent ?? ""), null, { timeout: PATIENCE_MS });
  } finally {
    await kill({ process: shell, output: [] });
    await page.close();
    await remove(root);
  }
});

test("services are there with a line that calls each, and the runs that are going on", { timeout: STEP_MS_MAX }, async () => {
  await withHome(async (page) => {
    const services = page.locator("#services li");
    await becomes("the names, without those of the demo", () => services.locator("h3").allTextContents(), ["/slow"]);
    await becomes("the commands", () => services.locator("code").allTextContents(), [`curl -N '${server.origin}/slow' -X POST`]);
    assert.equal(await services.first().locator(".small").textContent(), "POST · Starts a computation, which shows its progress and its results as they come.");
    assert.ok(!(await page.locator("#runs").isVisible()));
    const reply = await fetch(`${server.origin}/slow`, { method: "POST", headers: { Prefer: "respond-async" } });
    const { key } = await reply.json();
    await page.locator("#runs", { hasText: /^1 run is going on\.$/ }).waitFor({ timeout: PATIENCE_MS });
    assert.equal(await page.locator("#runs a").getAttribute("href"), "runs");
    await fetch(`${server.origin}/runs/${key}`, { method: "DELETE" });
    await page.locator("#runs").waitFor({ state: "hidden", timeout: PATIENCE_MS });
  });
});

test("the form that starts a run says what the service does, and begins with an input that works", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  await page.goto(`${server.origin}/runs`);
  const choose = (/** @type {string} */ path) => page.getByLabel("What to run").selectOption(path);
  const input = page.getByLabel(/^Its input/);
  await choose("/slow");
  await becomes("no input", () => input.inputValue(), "");
  await choose("/computations");
  await becomes("the words", () => page.locator("#start .about").textContent(), "Makes lists and sorts them, and tells each state on the way.");
  assert.match(await input.inputValue(), /^\{"actions":\[/);
  await input.press("Control+Enter");
  await page.locator("#start [role=status]", { hasText: /^Started: watch it$/ }).waitFor({ timeout: PATIENCE_MS });
  assert.match((await page.getByRole("link", { name: "watch it" }).getAttribute("href")) ?? "", /\/runs\/[0-9a-f]{32}$/);
  const pace = page.getByLabel("Pace");
  assert.deepEqual([await pace.getAttribute("type"), await pace.getAttribute("min")], ["number", "1"]);
  assert.match((await page.locator("#about-batch").textContent()) ?? "", /^The most states in one event\. 1 to [\d,]+\. Without it: \d+\.$/);
  await pace.fill("0");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await becomes("what is invalid", () => page.locator("input:invalid").getAttribute("name"), "pace");
  await pace.fill("1000");
  await page.getByText("The same from a terminal or a program").click();
  await becomes("the line for curl", () => page.locator("[data-program=curl]").textContent(), /^curl -gN 'http:\S+\/computations\?pace=1000' --data-raw '\{"actions":/);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await until("the run with that pace", async () => (await (await fetch(`${server.origin}/runs`)).json()).runs.some((/** @type {any} */ run) => run.input?.query === "pace=1000"));
  await input.fill("mine");
  await choose("/propagation");
  assert.equal(await input.inputValue(), "mine");
  await page.close();
});
