/**
 * What holds on every page: axe-core finds nothing in light and dark, no error is in the console, no request fails, no page is wider than
 * a phone, and none makes a script of a string.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), vmstat and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { PATIENCE_MS, becomes, kill, launch, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** This machine, as if it were another one. */
const OTHER = "phone.example";

/** Each page, what is there once it has data, and whether that is for this machine alone. @type {[string, string, boolean?][]} */
const PAGES = [
  ["/", "#topics li [data-field=rate]:not(:empty)"],
  ["/wind", "#rose-words:not(:empty)"],
  ["/transports", '.pane.measured[data-transport="websocket"]'],
  ["/topics/wind", "#plot #fields label"],
  ["/topics/cpu", "#table tbody td"],
  ["/topics/scratch-page", "#publish textarea", true],
  ["/topics/missing", "#watching:not(:empty)"],
  ["/missing/here", "#nothing"],
  ["/runs", "#runs li progress", true],
  ["/runs/KEY", "#plot #fields label"],
  ["/messages", "#messages li"],
  ["/computations", "#size:not(:empty)"],
  ["/propagation", "[data-computation=done]", true],
  ["/connections", "#threads tbody progress[aria-label]", true],
  ["/lab", "#experiments [value=wind]:enabled"],
];

/** @type {import("./support.js").Server} */ let server;
/** The run in place of KEY. @type {string} */ let key;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  const run = "counts=printf '1\\n2\\nprogress 0.5 half\\n'; sleep 600";
  server = await serve("--demo", "--host", "--exec", "cpu=vmstat 1", "--run", run, "--listen", "127.0.0.1:0", "--allow-host", OTHER);
  key = (await post("/counts", 1)).key;
  await post("/messages", { text: "<b>hello</b>", from: "Ada" });
  // A page changes with the first lines of a topic and of a run: here they have come.
  for (const [path, most] of /** @type {[string, number][]} */ ([["/topics/cpu", 5], [`/runs/${key}`, 3]])) {
    await until(`${most} events of ${path}`, async () => (await (await fetch(`${server.origin}${path}?after=earliest`)).json()).events?.length >= most);
  }
  browser = await launch("--no-proxy-server", `--host-resolver-rules=MAP ${OTHER} 127.0.0.1`);
});

after(async () => {
  await browser?.close();
  await kill(server);
});

/** The distance that content may move in all while a page begins ("cumulative layout shift"). */
const MOVED_MAX = 0.1;

/** Runs in the page, before its scripts. Rows of a list that begins with the newest, or that loses rows, move however long one looks. */
function noteMoves() {
  Object.assign(window, { moved: 0, moves: [] });
  const isRow = (/** @type {Node | null} */ node) => (node instanceof Element ? node : node?.parentElement)?.closest("#list, #table, #messages li, #runs li, #connections tbody, #closed tbody") != null;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (Reflect.get(entry, "sources").every((/** @type {any} */ { node }) => isRow(node))) continue;
      const moved = Number(Reflect.get(entry, "value"));
      Object.assign(window, { moved: Reflect.get(window, "moved") + moved });
      Reflect.get(window, "moves").push([moved, ...Reflect.get(entry, "sources").map((/** @type {any} */ { node }) => `${node?.nodeName} ${node?.id ?? ""}`)]);
    }
  }).observe({ type: "layout-shift", buffered: true });
}

/**
 * @param {string} path
 * @param {unknown} data
 */
async function post(path, data) {
  const headers = { "Content-Type": "application/json", Prefer: "respond-async" };
  const reply = await fetch(server.origin + path, { method: "POST", headers, body: JSON.stringify(data) });
  assert.ok(reply.ok, `${reply.status} ${path}`);
  return await reply.json();
}

/** @param {string} path */
function urlOf(path) {
  return server.origin + path.replace("KEY", key);
}

/** Tries in the page to make a script of a string. Returns the errors. */
function makeScripts() {
  const tries = [
    () => (document.createElement("p").innerHTML = "<b>text</b>"),
    () => new Worker("/transports/worker.js"),
    () => Reflect.get(window, "trustedTypes").createPolicy("other", {}),
  ];
  return tries.map((attempt) => {
    try {
      attempt();
      return "allowed";
    } catch (error) {
      return /** @type {Error} */ (error).name;
    }
  });
}

/** @typedef {{ colorScheme: "light" | "dark", width: number }} Look */
/** @type {Look} */ const WIDE = { colorScheme: "light", width: 1280 };
/** @type {Look} */ const PHONE = { colorScheme: "dark", width: 390 };

/** Each page begins once in each look; the phone comes over plain http from another machine, unless the page has less, or an error, for it. */
const VISITS = PAGES.flatMap(([path, filled, isLocal = false]) => [
  { path, filled, look: WIDE, isOther: false },
  { path, filled, look: PHONE, isOther: !isLocal && !path.includes("missing") },
  ...(isLocal ? [{ path, filled: ".places", look: WIDE, isOther: true }] : []),
]);

test("each page is good for everybody", { timeout: 2 * STEP_MS_MAX }, async (context) => {
  const page = await browser.newPage();
  /** @type {string[]} */
  let faults = [];
  // A page that says that something does not exist is a failed request to the browser.
  const isMissing = (/** @type {string} */ url) => /\/(topics\/missing|missing\/here)$/.test(url);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && !isMissing(message.location().url) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("response", (reply) => reply.ok() || isMissing(reply.url()) || faults.push(`${reply.status()} ${reply.url()}`));
  await page.addInitScript(noteMoves);
  /** @param {Look} look */
  const show = async ({ colorScheme, width }) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
  };
  for (const { path, filled, look, isOther } of VISITS) {
    const origin = isOther ? server.origin.replace("127.0.0.1", OTHER) : server.origin;
    await context.test(`${path} of ${origin}, ${look.width} pixels wide`, { timeout: STEP_MS_MAX }, async () => {
      await page.goto("about:blank");
      faults = [];
      await show(look);
      await page.goto(urlOf(path).replace(server.origin, origin));
      await page.locator(filled).first().waitFor({ timeout: PATIENCE_MS });
      for (const place of ["wind", "messages", "computations"]) await page.locator(`.places [href$=${place}]`).waitFor({ timeout: PATIENCE_MS });
      assert.equal(await page.evaluate(() => isSecureContext), !isOther);
      assert.ok((await page.evaluate(() => Reflect.get(window, "moved"))) < MOVED_MAX, `what is seen moves: ${JSON.stringify(await page.evaluate(() => Reflect.get(window, "moves")))}`);
      assert.equal(await overflow(page), 0, "nothing reaches beyond the edge");
      if (look === WIDE && !isOther) {
        // What the first request of a page asks for is not in the page's policy.
        await page.evaluate(AXE);
        for (const each of [WIDE, PHONE]) {
          await show(each);
          assert.deepEqual(await violations(page), [], JSON.stringify(each));
          assert.equal(await overflow(page), 0, "nothing reaches beyond the edge");
        }
      }
      assert.deepEqual(faults, []);
      // Last, since each of these is an error in the console.
      assert.deepEqual(await page.evaluate(makeScripts), ["TypeError", "TypeError", "TypeError"]);
    });
  }
  await page.close();
});

/** @param {import("playwright-core").Page} page */
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/**
 * The rules that a page which has axe breaks.
 * @param {import("playwright-core").Page} page
 */
async function violations(page) {
  return await page.evaluate(async () => {
    const { violations } = await Reflect.get(window, "axe").run(document);
    return violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ node) => node.html).join(" ")}`);
  });
}

test("on a phone, the places fade where there are more, and the place of the page is seen", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  const line = page.locator(".places");
  /** The edges that fade, and whether the link of the page is inside. */
  const look = () =>
    line.evaluate((places) => {
      const here = /** @type {Element} */ (places.querySelector("[aria-current]")).getBoundingClientRect();
      const { left, right } = places.getBoundingClientRect();
      return [...[...places.classList].filter((name) => name.startsWith("more-")).sort(), here.left >= left - 1 && here.right <= right + 1];
    });
  for (const [path, expected] of /** @type {const} */ ([["/", ["more-right", true]], ["/messages", ["more-left", "more-right", true]], ["/lab", ["more-left", true]]])) {
    await page.goto(urlOf(path));
    await page.locator(".places [href$=propagation]").waitFor({ timeout: PATIENCE_MS });
    await becomes(`the places at ${path}`, look, expected);
  }
  await line.evaluate((places) => places.scrollTo(0, 0));
  await becomes("the edges at the beginning", async () => (await look())[0], "more-right");
  await page.close();
});

/** The most bytes that a browser receives for all files of a page, with the header fields of each reply. Those of Home are with curves. */
const RECEIVED_BYTES_MAX = { "/": 78 * 1024, "/wind": 110 * 1024, "/transports": 88 * 1024 };

test("a browser receives each page compressed", { timeout: STEP_MS_MAX }, async (context) => {
  for (const [path, most] of Object.entries(RECEIVED_BYTES_MAX)) {
    const page = await browser.newPage();
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    /** @type {Map<string, { path: string, coding: string, bytes: number }>} */
    const replies = new Map();
    session.on("Network.responseReceived", ({ requestId, response, type }) => {
      if (!["Document", "Script", "Stylesheet"].includes(type)) return;
      replies.set(requestId, { path: new URL(response.url).pathname, coding: String(response.headers["content-encoding"]), bytes: 0 });
    });
    let decoded = 0;
    session.on("Network.dataReceived", ({ requestId, dataLength }) => (decoded += replies.has(requestId) ? dataLength : 0));
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => Object.assign(replies.get(requestId) ?? {}, { bytes: encodedDataLength }));
    await page.goto(urlOf(path));
    await until("the whole page", () => replies.size > 10 && [...replies.values()].every(({ bytes }) => bytes > 0));
    const all = [...replies.values()];
    // What is smaller than 1 KiB is sent as it is.
    const plain = all.filter(({ coding, bytes }) => coding !== "gzip" && bytes > 2048);
    assert.deepEqual(plain, []);
    const received = all.reduce((sum, { bytes }) => sum + bytes, 0);
    context.diagnostic(`${path}: ${received} bytes received in ${all.length} replies, ${decoded} bytes decoded`);
    assert.ok(received < most, `${received} bytes for ${path}`);
    await page.close();
  }
});
