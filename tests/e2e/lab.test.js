/**
 * The Lab page: it measures every transport in Chromium, its report is one that `anemone lab report` takes, and reports are published
 * on the server by those who may write there.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { output } from "./programs.js";
import { Proxy } from "./proxies.js";
import { BIN, PATIENCE_MS, becomes, folder, kill, launch, remove, serve } from "./support.js";

const STEP_MS_MAX = 300_000;
const RULES = new URL("../../web/page/lab/rules.json", import.meta.url);

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** The other one, as long as they take. This one takes no long echoes, which take a busy machine long. @type {import("./support.js").Server} */ let small;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-lab-");
  const configured = async (/** @type {string} */ limit) => {
    const config = join(directory, "limits.toml");
    await writeFile(config, `[limits.echo]\n${limit}\n`);
    return await serve("--demo", "--listen", "127.0.0.1:0", "--config", config);
  };
  server = await configured('message_timeout = "10min"');
  small = await configured('message_bytes_max = "2MiB"');
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  for (const one of [server, small]) await kill(one);
  await remove(directory);
});

/** @param {string} origin */
async function open(origin) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(`${origin}/lab`);
  await page.locator("#notice-no-script").waitFor({ state: "detached", timeout: PATIENCE_MS });
  return { page, faults };
}

/**
 * Chooses a value that the page offers, or another one.
 * @param {import("playwright-core").Page} page
 * @param {string} id of the choice
 * @param {number} value
 */
async function choose(page, id, value) {
  await page.locator(id).evaluate((select, value) => /** @type {HTMLSelectElement} */ (select).add(new Option("", value, true, true)), String(value));
}

/**
 * Waits until everything is measured. It does not look at each frame, so that the page draws none for it.
 * @param {import("playwright-core").Page} page
 */
async function isDone(page) {
  await page.waitForFunction(() => document.querySelector("#said")?.textContent === "Done.", undefined, { polling: 100, timeout: 2 * STEP_MS_MAX });
}

/**
 * The texts of all elements.
 * @param {import("playwright-core").Page} page
 * @param {string} selector
 */
const texts = async (page, selector) => await page.locator(selector).allTextContents();

test("it measures every transport, and its report is one of the lab", { timeout: 2 * STEP_MS_MAX }, async () => {
  const { page, faults } = await open(server.origin);
  let makers = 0;
  page.on("worker", () => (makers += 1));
  await page.locator("#rounds").selectOption("4");
  await page.locator("#time").selectOption("300");
  const sum = await page.locator("#sum").textContent();
  await page.locator("#begin").click();
  const heights = async () => await page.locator("#answers > section").evaluateAll((sections) => sections.map((section) => section.clientHeight));
  const expected = await heights();
  const said = page.locator("#said");
  await isDone(page);
  assert.equal(await said.textContent(), "Done.");
  // Nothing is invalid, unless this machine is so busy that the page says so.
  const STOOD_STILL = /this page stood still for \d+ % of the time/;
  for (const words of await texts(page, "#answers .invalid:not([hidden])")) assert.match(words, STOOD_STILL);
  // All reports were computed by one worker, and none is left.
  assert.equal(makers, 1);
  await becomes("the workers that are left", async () => page.workers().length, 0);
  const download = page.waitForEvent("download");
  await page.locator("#save").click();
  const path = join(directory, "browser.json");
  await (await download).saveAs(path);
  /** @type {import("../../web/page/lab/report.js").Report[]} */
  const reports = JSON.parse(await readFile(path, "utf8"));
  assert.deepEqual(reports.map(({ experiment }) => experiment), ["calls", "sequential", "echo", "wind"]);
  for (const { experiment, series, comparisons, invalid, quantity } of reports) {
    if (invalid !== null) assert.match(invalid, STOOD_STILL, experiment);
    assert.ok(comparisons.length > 0, experiment);
    const main = series.filter((one) => one.quantity === quantity);
    const contenders = new Set(main.map(({ contender }) => contender));
    assert.deepEqual([...contenders].sort(), experiment === "wind" ? ["NDJSON", "SSE", "WebSocket", "long poll", "poll"] : ["HTTP", "WebSocket"], experiment);
    for (const one of main) assert.equal(one.rounds.filter((value) => value !== null).length, 4, `${experiment}, ${one.contender}`);
    const rows = page.locator(`#answers [data-experiment=${experiment}] tbody tr`);
    assert.equal(await rows.count(), main.length, experiment);
    assert.equal(await rows.locator(".range b").count(), main.length, experiment);
  }
  // Four rounds decide nothing, neither in the sentence nor in the rows.
  for (const words of [await texts(page, "#answers .verdict"), await texts(page, "#answers tbody tr:has(.transport)")].flat()) assert.doesNotMatch(words, /not distinguishable/);
  for (const words of await texts(page, "#answers .verdict")) assert.match(words, /With 4 rounds, no difference is sure: measure at least 6\.$/);
  assert.doesNotMatch((await texts(page, "#answers")).join(""), /too few rounds/);
  // On a phone, all figures are there without scrolling to the side.
  // Little has moved: the places of the answers were as high, but for echoes, of which a busy machine leaves some out.
  for (const [index, height] of (await heights()).entries()) assert.ok(index === 2 || Math.abs(height - Number(expected[index])) < 40, `${height}, ${expected[index]}`);
  const viewport = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  for (const table of await page.locator("#answers .wide").all()) assert.equal(await table.evaluate((box) => box.scrollWidth - box.clientWidth), 0);
  for (const figures of await page.locator("#answers tbody tr").all()) assert.ok(await figures.locator("td").last().isVisible());
  if (viewport) await page.setViewportSize(viewport);
  const echoes = new Set(reports[2]?.series.map((one) => one.case));
  // All that this machine is not too busy for.
  const slow = ["1 MB"].filter((size) => reports[2]?.answer.includes(`${size}, since an echo takes more than 10 s`));
  assert.deepEqual([...echoes, ...slow], ["1 B", "100 B", "10 kB", "1 MB"]);
  // Nobody has asked for 10 MB, and what goes over the network was said before.
  assert.match(String(sum), /^This sends and receives 24 MB of echoes, there and back, as many calls as fit into 3 s, less than 1 MB for the rest\.$/);
  // It ends with one sentence about what can be relied on, unless this machine is so busy that nothing can.
  assert.match(String(await page.locator("#advice").textContent()), /^At first sight, and with too few rounds to be sure: for (events|calls) take |^There is no advice/);
  const wind = Object.fromEntries((reports[3]?.series ?? []).map(({ contender, rounds }) => [contender, Math.min(...rounds.map(Number))]));
  // On one machine, an event waits for a poll longer than it takes to be pushed.
  assert.ok(Number(wind.poll) > Number(wind.WebSocket), JSON.stringify(wind));

  const html = join(directory, "all.html");
  const { errors } = await output(BIN, ["lab", "report", path, "--out", html]);
  const text = await readFile(html, "utf8").catch(() => assert.fail(errors));
  for (const { question, answer } of reports) assert.ok(text.includes(question) && text.includes(answer), question);
  assert.match(text, /the Lab page in Chrome \d+/);

  assert.equal(await page.locator("#others").isVisible(), false);
  await page.locator("#upload").click();
  await becomes("what is published", async () => (await texts(page, "#others li strong")).sort(), ["calls", "echo", "sequential", "wind"]);
  // Once each, however often they are published.
  await page.locator("#upload").click();
  await becomes("the answer", async () => await page.locator("#kept").textContent(), "Published.");
  const { events } = await (await fetch(`${server.origin}/topics/scratch-lab?after=earliest`)).json();
  assert.equal(events.length, 4);
  // They are published, also if they cannot be listed.
  const list = /scratch-lab\?after=-/;
  await page.route(list, (route) => route.fulfill({ json: null }));
  const listed = page.waitForResponse(list);
  await page.locator("#upload").click();
  await (await listed).finished();
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
  assert.deepEqual(await texts(page, "#kept:not(.failure)"), ["Published."]);
  await page.unroute(list);
  // What somebody else has written there hides none of them.
  const odd = { toString: 1, valueOf: 1 };
  for (const more of [{ environment: { program: odd } }, { comparisons: [{ pairs: odd }] }]) {
    const body = JSON.stringify({ experiment: "odd", answer: "x", comparisons: [], ...more });
    assert.equal((await fetch(`${server.origin}/topics/scratch-lab`, { method: "POST", headers: { "Content-Type": "application/json" }, body })).status, 201);
  }
  await page.reload();
  await becomes("all reports", async () => (await texts(page, "#others:not([hidden]) li strong")).sort(), ["calls", "echo", "odd", "odd", "sequential", "wind"]);
  assert.deepEqual(faults, []);
  await page.close();
});

test("a page that stands still says that its figures are not those of the network", { timeout: STEP_MS_MAX }, async () => {
  const { page, faults } = await open(server.origin);
  for (const other of ["sequential", "echo", "wind"]) await page.locator(`input[value=${other}]`).uncheck();
  await choose(page, "#rounds", 1);
  await page.evaluate(() => {
    const stand = () => {
      for (const begun = performance.now(); performance.now() - begun < 300; );
      setTimeout(stand, 100);
    };
    stand();
  });
  await page.locator("#begin").click();
  await isDone(page);
  const [words] = await texts(page, "#answers .invalid:not([hidden])");
  assert.match(String(words), /^Invalid, so do not rely on this: this page stood still for [5-9]\d % of the time: close other pages/);
  assert.deepEqual(faults, []);
  await page.close();
});

test("network emulation that delays HTTP alone is named, and makes nothing valid", { timeout: STEP_MS_MAX }, async () => {
  const { page, faults } = await open(server.origin);
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: -1, uploadThroughput: -1 });
  for (const other of ["sequential", "echo"]) await page.locator(`input[value=${other}]`).uncheck();
  await choose(page, "#rounds", 2);
  await page.locator("#at-once").selectOption("6");
  await page.locator("#begin").click();
  await isDone(page);
  const reasons = await texts(page, "#answers .invalid:not([hidden])");
  assert.equal(reasons.length, 2, `${reasons}`);
  for (const words of reasons) assert.match(words, /something delays HTTP alone, such as the network emulation|this page stood still/);
  // No event of a stream comes before it was sent, however the clock was found.
  for (const words of await texts(page, "#answers [data-experiment=wind] td[data-label^='one-way latency']")) assert.doesNotMatch(words, /^−\d/);
  assert.equal(await page.locator("#advice").textContent(), "There is no advice, since nothing that was measured can be relied on.");
  assert.deepEqual(faults, []);
  await page.close();
});

test("a size that the server does not take is left out, and the answer says so", { timeout: STEP_MS_MAX }, async () => {
  const { page, faults } = await open(small.origin);
  for (const other of ["calls", "sequential", "wind"]) await page.locator(`input[value=${other}]`).uncheck();
  await choose(page, "#rounds", 1);
  await page.locator("#longest").selectOption("10000000");
  await page.locator("#begin").click();
  await isDone(page);
  const [answer] = await texts(page, "#answers .verdict");
  assert.match(String(answer), /Not measured: 10 MB, since the server, by message_bytes_max in its \[limits\.echo\], or a proxy takes nothing as long\./);
  assert.deepEqual(faults, []);
  await page.close();
});

test("the report of the command line opens from the disk, with its plots drawn and the figures of its JSON", { timeout: STEP_MS_MAX }, async () => {
  const out = join(directory, "report");
  const { errors } = await output(BIN, ["lab", "overhead", "--quick", "--rounds", "1", "--out", out]);
  const path = join(out, "overhead.json");
  /** @type {import("../../web/page/lab/report.js").Report} */
  const report = JSON.parse(await readFile(path, "utf8").catch(() => assert.fail(errors)));
  const page = await browser.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => request.url().startsWith("file:") || faults.push(request.url()));
  await page.goto(`file://${join(out, "overhead.html")}`);
  assert.ok((await page.locator("body").innerText()).includes(report.answer));
  const main = report.series.filter((one) => one.quantity === report.quantity);
  const points = await page.locator(".plot [data-of]").evaluateAll((layers) => layers.map((layer) => ({ told: JSON.parse(String(layer.getAttribute("data-points"))).length, drawn: layer.querySelectorAll("circle").length })));
  assert.equal(points.reduce((sum, { told }) => sum + told, 0), main.length);
  assert.ok(points.every(({ told, drawn }) => told > 0 && drawn >= told), JSON.stringify(points));
  // A point is where it can be seen, and it tells its figure.
  const plot = await page.locator(".plot").boundingBox();
  const point = await page.locator("figure svg circle").first().boundingBox();
  assert.ok(plot && point && point.width > 0 && point.x > plot.x && point.y > plot.y && point.x < plot.x + plot.width, JSON.stringify({ plot, point }));
  await page.mouse.move(point.x + point.width / 2, point.y + point.height / 2);
  await becomes("what is told", async () => await page.locator(".tip").textContent(), /\d/);
  // The table: the median of each series, of one round here, to three digits.
  const rows = await page.locator("table").first().locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)));
  assert.equal(rows.length, main.length);
  for (const [at, { case: name, contender, rounds }] of main.entries()) {
    assert.deepEqual(rows[at]?.slice(0, 2), [name, contender]);
    assert.ok(Math.abs(parseFloat(String(rows[at]?.[2]).replaceAll(",", "")) / Number(rounds[0]) - 1) < 0.005, `${rows[at]}: ${rounds}`);
  }
  // A contender is hidden and shown.
  const layer = page.locator(".plot [data-of]").first();
  await page.locator("[data-layer]").first().uncheck();
  assert.equal(await layer.isVisible(), false);
  await page.locator("[data-layer]").first().check();
  assert.equal(await layer.isVisible(), true);
  assert.deepEqual(faults, []);
  await page.close();
});

/**
 * Has the doctor of a page go by other limits. Only once: as long as there is a route, all requests take a detour.
 * @param {import("playwright-core").Page} page
 * @param {Partial<import("../../web/page/lab/way.js").Limits>} limits
 */
async function limit(page, limits) {
  const rules = JSON.parse(await readFile(RULES, "utf8"));
  await page.route("**/page/lab/rules.json", (route) => route.fulfill({ json: { ...rules, limits: { ...rules.limits, ...limits } } }), { times: 1 });
}

/**
 * What the page finds on its way: the state and the words of each examination, and the settings.
 * @param {string} origin
 * @param {Partial<import("../../web/page/lab/way.js").Limits>} [limits]
 */
async function findingsAt(origin, limits) {
  const { page, faults } = await open(origin);
  if (limits) await limit(page, limits);
  await page.locator("#wait").selectOption("5");
  await page.locator("#examine").click();
  await page.locator("#examine:enabled").waitFor({ timeout: PATIENCE_MS });
  const found = await page.locator("#findings > li").evaluateAll((items) => items.map((item) => [item.getAttribute("data-id"), item.getAttribute("data-state")]));
  const said = { found: Object.fromEntries(found), settings: (await texts(page, "#findings ul li")).join("\n"), words: (await texts(page, "#findings > li")).join("\n"), end: await page.locator("#diagnosis").textContent() };
  if (process.env.SHOTS) await page.locator("#doctor").screenshot({ path: `${process.env.SHOTS}/doctor-${new URL(origin).port}.png` });
  assert.deepEqual(faults, []);
  await page.close();
  return said;
}

test("it finds nothing wrong where nothing is, but the six connections of a browser", { timeout: STEP_MS_MAX }, async () => {
  const { found, end, words } = await findingsAt(server.origin);
  assert.deepEqual(found, { "keep-alive": "good", cache: "good", sse: "good", ndjson: "good", upgrade: "good", origin: "good", connections: "note", idle: "good" }, words);
  assert.match(words, /6 of 8 streams at once get through/);
  assert.equal(end, "Nothing is wrong.");
});

test("it finds what nginx does to streams, upgrades, quiet connections and the origin", { timeout: STEP_MS_MAX }, async () => {
  // What is cut is a quiet long poll alone, and what is held back never comes, so nothing depends on the speed of this machine.
  const lines = "proxy_ignore_headers X-Accel-Buffering; keepalive_timeout 0; if ($http_prefer) { return 418; } error_page 418 = @quiet;";
  const quiet = "location @quiet { proxy_pass http://127.0.0.1:8080; proxy_read_timeout 1s; }";
  const site = `server { listen 80; location / { proxy_pass http://127.0.0.1:8080; ${lines} } ${quiet} location ~ ^/(page|lab) { proxy_pass http://127.0.0.1:8080; } }`;
  const proxy = await Proxy.start("stock", { http: Number(new URL(server.origin).port), tcp: 0 }, site);
  try {
    const { found, settings, end, words } = await findingsAt(`http://127.0.0.1:${proxy.ports.http}`, { begin_ms_max: 3000 });
    assert.deepEqual(found, { "keep-alive": "fault", cache: "good", sse: "fault", ndjson: "fault", upgrade: "fault", origin: "fault", connections: "unknown", idle: "fault" }, words);
    assert.match(settings, /nginx: proxy_buffering off;/);
    assert.match(settings, /nginx: keepalive_timeout 75s;/);
    assert.doesNotMatch(settings, /HAProxy/);
    assert.equal(end, "6 faults. The answers come through nginx.");
  } finally {
    await proxy.remove();
  }
});

test("a server that stalls is told as one, and nothing on the way is blamed", { timeout: STEP_MS_MAX }, async () => {
  const mortal = await serve("--demo", "--listen", "127.0.0.1:0");
  const { page, faults } = await open(mortal.origin);
  // At the first poll, which comes after what is asked on one connection.
  const stall = (/** @type {import("playwright-core").Route} */ route) => {
    mortal.process.kill("SIGSTOP");
    return route.continue();
  };
  await page.route(/&wait=1\./, stall, { times: 1 });
  await limit(page, { answer_ms_max: 5000, begin_ms_max: 2000 });
  await page.locator("#examine").click();
  await page.locator("#examine:enabled").waitFor({ timeout: PATIENCE_MS });
  assert.deepEqual(await texts(page, "#findings > li:not([data-id=keep-alive])"), ["faultserverit stalls: it answered at first, and then two examinations got no answer, so the rest is left out"]);
  assert.equal(await page.locator("#diagnosis").textContent(), "1 fault.");
  assert.deepEqual(faults, []);
  await page.close();
  await kill(mortal);
});

test("a run that is stopped has figures without a verdict, and its report says that it was interrupted", { timeout: STEP_MS_MAX }, async () => {
  const { page, faults } = await open(server.origin);
  for (const other of ["sequential", "echo", "wind"]) await page.locator(`input[value=${other}]`).uncheck();
  await page.locator("#rounds").selectOption("30");
  // In the page itself, so that it is in the middle however fast it goes.
  await page.evaluate(() => {
    const progress = /** @type {HTMLProgressElement} */ (document.querySelector("progress"));
    const look = () => progress.value > 0.3 && document.querySelector("button#stop")?.dispatchEvent(new Event("click"));
    new MutationObserver(look).observe(progress, { attributes: true });
  });
  await page.locator("#begin").click();
  await becomes("the page", async () => await page.locator("#said").textContent(), /^Stopped/);
  const [answer] = await texts(page, "#answers .verdict");
  assert.match(String(answer), /^Stopped after \d+ of 30 rounds, so there is no verdict\. Medians of the time: 1 call: WebSocket [\d.,]+ ms, HTTP /);
  for (const words of await texts(page, "#answers tbody tr")) assert.doesNotMatch(words, /distinguishable|too few/);
  const download = page.waitForEvent("download");
  await page.locator("#save").click();
  const path = join(directory, "stopped.json");
  await (await download).saveAs(path);
  const [report] = JSON.parse(await readFile(path, "utf8"));
  assert.deepEqual([report.is_interrupted, report.environment.rounds], [true, 30]);
  const html = join(directory, "stopped.html");
  const { errors } = await output(BIN, ["lab", "report", path, "--out", html]);
  assert.match(await readFile(html, "utf8").catch(() => assert.fail(errors)), /Rounds: \d+ of 30, since it was interrupted/);
  assert.deepEqual(faults, []);
  await page.close();
});

/**
 * Begins to measure calls one after the other, and waits until a round is measured.
 * @param {import("playwright-core").Page} page
 */
async function measureCalls(page) {
  for (const other of ["calls", "echo", "wind"]) await page.locator(`input[value=${other}]`).uncheck();
  await page.locator("#rounds").selectOption("30");
  await page.locator("#time").selectOption("300");
  await page.locator("#begin").click();
  await page.waitForFunction(() => Number(document.querySelector("progress")?.value) > 0.08, undefined, { polling: 100, timeout: STEP_MS_MAX });
}

for (const [what, signal] of /** @type {const} */ ([["ends", "SIGKILL"], ["stalls", "SIGSTOP"]])) {
  test(`what was measured is kept if the server ${what}, which the page says`, { timeout: STEP_MS_MAX }, async () => {
    const mortal = await serve("--demo", "--listen", "127.0.0.1:0");
    const { page, faults } = await open(mortal.origin);
    await measureCalls(page);
    // From here on, each of the page's time limits is a fifth.
    await page.evaluate(() => {
      const timeout = AbortSignal.timeout.bind(AbortSignal);
      AbortSignal.timeout = (ms) => timeout(ms / 5);
    });
    mortal.process.kill(signal);
    const said = async () => await page.locator("#said").textContent();
    await becomes("the page", said, "The server does not answer: what was measured by then is below.");
    assert.match(String(await page.locator("#answers .verdict").textContent()), /^Stopped after \d+ of 30 rounds, .* one after the other: WebSocket [\d,]+ calls\/s, HTTP [\d,]+ calls\/s\.$/);
    assert.ok(await page.locator("#save").isVisible());
    await page.locator("#begin").click();
    await becomes("the page", said, "The server does not answer.");
    assert.ok(await page.locator("#begin").isVisible());
    assert.deepEqual(faults, []);
    await page.close();
    await kill(mortal);
  });
}

test("what is waited for before anything is measured is told", { timeout: STEP_MS_MAX }, async () => {
  const { page } = await open(server.origin);
  await page.route("**/page/lab/worker.js", () => {}); // no answer
  // In the page itself, which waits for some seconds only.
  await page.evaluate(() => {
    const said = /** @type {HTMLElement} */ (document.querySelector("#said"));
    const look = () => said.textContent === "Loading what makes the reports" && document.querySelector("button#stop")?.dispatchEvent(new Event("click"));
    new MutationObserver(look).observe(said, { childList: true, characterData: true, subtree: true });
  });
  await page.locator("#begin").click();
  await becomes("the page", async () => await page.locator("#said").textContent(), "Stopped before anything was measured.");
  await page.close();
});

test("reports are made where the script for them does not load", { timeout: STEP_MS_MAX }, async () => {
  const { page, faults } = await open(server.origin);
  await page.route("**/page/lab/worker.js", (route) => route.abort());
  await measureCalls(page);
  await page.locator("#stop").click();
  await becomes("the page", async () => await page.locator("#said").textContent(), /^Stopped/);
  assert.match(String(await page.locator("#answers .verdict").textContent()), /^Stopped after \d+ of 30 rounds/);
  assert.deepEqual(faults, []);
  await page.close();
});

test("a measurement is stopped, and what is missing on the server is told", { timeout: STEP_MS_MAX }, async () => {
  const bare = await serve("--listen", "127.0.0.1:0", "--exec", "other=vmstat 1");
  const { page, faults } = await open(bare.origin);
  assert.deepEqual(await page.locator("#experiments input:enabled").evaluateAll((boxes) => boxes.map((box) => box.getAttribute("value"))), ["calls", "sequential"]);
  assert.match(String(await page.locator("[data-field=echo]").textContent()), /anemone serve --echo/);
  await page.locator("#begin").focus();
  await page.keyboard.press("Enter");
  const stop = page.locator("#stop");
  await stop.waitFor({ timeout: PATIENCE_MS });
  // The keyboard is on the button that ends it.
  await page.locator("#answers [data-experiment]").first().waitFor({ timeout: PATIENCE_MS });
  await page.keyboard.press("Enter");
  await becomes("the page", async () => await page.locator("#said").textContent(), /^Stopped/);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "begin");
  await page.locator("#upload").click();
  await becomes("the refusal", async () => await page.locator("#kept.failure").textContent(), /scratch-lab/);
  assert.deepEqual(faults, []);
  await page.close();
  await kill(bare);
});

test("its answers are good for everybody, in each colour scheme, on a wide screen, a phone and paper", { timeout: STEP_MS_MAX }, async () => {
  const { page, faults } = await open(small.origin);
  await choose(page, "#rounds", 2);
  await page.locator("#longest").selectOption("10000");
  for (const name of ["sequential", "wind"]) await page.locator(`[value=${name}]`).uncheck();
  await page.locator("#begin").click();
  await isDone(page);
  const axe = await readFile(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  await page.evaluate(axe);
  for (const { colorScheme, width } of /** @type {const} */ ([{ colorScheme: "light", width: 1280 }, { colorScheme: "dark", width: 390 }])) {
    await page.emulateMedia({ media: "screen", colorScheme });
    await page.setViewportSize({ width, height: 800 });
    const violations = await page.evaluate(async () => {
      const { violations } = await Reflect.get(window, "axe").run(document);
      return violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ node) => node.html).join(" ")}`);
    });
    assert.deepEqual(violations, []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/lab-${colorScheme}.png`, fullPage: true });
    // On a tablet and on a sheet of A4 too, nothing is cut, and a picture has room.
    for (const [media, width] of /** @type {const} */ ([["screen", 768], ["print", 718]])) {
      await page.emulateMedia({ media, colorScheme });
      await page.setViewportSize({ width, height: 800 });
      const cut = await page.locator("#answers td").evaluateAll((cells) => cells.filter((cell) => cell.getBoundingClientRect().right > (cell.closest("section")?.getBoundingClientRect().right ?? 0)).length);
      const narrow = await page.locator("#answers .range").evaluateAll((pictures) => Math.min(...pictures.map((picture) => picture.clientWidth)));
      assert.deepEqual([cut, narrow > 300], [0, true], `${media}: ${narrow}`);
      for (const axis of await page.locator("#answers .axis").all()) assert.ok((await axis.locator("span").count()) > 1 && (await axis.isVisible()), media);
    }
    // Paper has the answers, each on one sheet and with its method, and nothing to press.
    const breaks = await page.locator("#answers section").evaluateAll((sections) => sections.map((section) => getComputedStyle(section).breakInside));
    assert.deepEqual([...new Set(breaks)], ["avoid"]);
    for (const box of await page.locator("button, select, footer, progress, #doctor").all()) assert.equal(await box.isVisible(), false);
    assert.ok(await page.locator("#answers details li").first().isVisible());
  }
  assert.deepEqual(faults, []);
  await page.close();
});
