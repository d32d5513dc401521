/**
 * `anemone doctor` against the real nginx and HAProxy, set up right, and wrong in each way: it finds that and nothing else, and
 * says what to set. The doctor of the Lab page finds the same.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), nginx, HAProxy, openssl and Chromium (`CHROMIUM`,
 * default `/usr/bin/chromium`). Waits on conditions, never for a fixed time: what is right has longer time limits than any machine needs.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { after, before, describe, test } from "node:test";
import { Proxy } from "./proxies.js";
import { PATIENCE_MS, folder, kill, launch, remove, serve, start } from "./support.js";

const STEP_MS_MAX = 300_000;
/** The time for which the doctors keep quiet connections that nothing cuts. */
const WAIT_SECONDS = 1;
/** The time limit of what cuts them, and the time for which the doctors keep them then. */
const CUT = "1s";
const WAIT_SECONDS_CUT = 3;
/** The same where everything is cut, so that no answer of a busy machine is. */
const CUT_ALL = "5s";
const WAIT_SECONDS_ALL = 12;
/** The time after which a stream is held back: what is held back never comes; everything else has the long one, or that of the
 * page. */
const BEGIN_SECONDS = { short: 4, long: 30 };
/** The doctors judge times of 200 ms. Where this process itself was nearly so late, they examine again. */
const LATE_MS = 150;
const EXAMINATIONS_MAX = 3;
/** The time within which a page of a busy machine has an answer for which the server does not wait: less than the second of a poll. */
const AT_ONCE_MS_MAX = 900;
/** Examinations mostly wait, so some are made at the same time. */
const AT_ONCE = { concurrency: 3 };
const RULES = new URL("../../web/page/lab/rules.json", import.meta.url);

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await Proxy.removeAll();
  await kill(server);
});

/** @typedef {{ name: string, state: string, fault?: string, words: string, remedies: { program: string, setting: string }[] }} Finding */

/**
 * Examines, and again if something else is found while the machine stands still.
 * @param {import("node:test").TestContext} context
 * @param {() => Promise<void>} examine
 */
async function unlessLate(context, examine) {
  for (let count = 1; ; count += 1) {
    const delay = monitorEventLoopDelay();
    delay.enable();
    try {
      return await examine();
    } catch (error) {
      const lateMs = delay.max / 1e6;
      if (count === EXAMINATIONS_MAX || lateMs < LATE_MS || !(error instanceof assert.AssertionError)) throw error;
      context.diagnostic(`examined again, since this process was ${lateMs.toFixed()} ms late`);
    } finally {
      delay.disable();
    }
  }
}

/**
 * What the doctor says of a URL.
 * @param {string} url
 * @param {{ isHeld?: boolean, wait?: number, args?: string[] }} [options] held if streams are
 * @returns {Promise<{ status: number | null, findings: Finding[], faults: Finding[], said: string }>}
 */
async function doctor(url, { isHeld = false, wait = WAIT_SECONDS, args = [] } = {}) {
  const times = ["--wait", `${wait}s`, "--begin-max", `${BEGIN_SECONDS[isHeld ? "short" : "long"]}s`];
  const program = start(["doctor", url, "--json", "--quiet", ...times, ...args]);
  await once(program.process, "close");
  const said = program.output.join("");
  const line = said.split("\n").find((line) => line.startsWith("{"));
  assert.ok(line, said);
  const { findings } = /** @type {{ findings: Finding[] }} */ (JSON.parse(line));
  return { status: program.process.exitCode, findings, faults: findings.filter(({ state }) => state === "fault"), said };
}

/**
 * @param {string} name a kind of proxy
 * @param {string} site its configuration
 * @param {Parameters<typeof doctor>[1]} [options]
 */
async function behind(name, site, options) {
  const proxy = await Proxy.start(name, { http: Number(new URL(server.origin).port), tcp: 0 }, site);
  try {
    return await doctor(`http://127.0.0.1:${proxy.ports.http}`, options);
  } finally {
    await proxy.remove();
  }
}

const HOST = "proxy_set_header Host $http_host;";
const UPGRADE = 'proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";';

/** @param {string[]} lines of the location */
const nginx = (...lines) =>
  `limit_conn_zone $binary_remote_addr zone=each:1m; server { listen 80; location / { proxy_pass http://127.0.0.1:8080; ${lines.join(" ")} } }`;

/** What is not in the cache waits for long, so that what comes from it comes sooner, however busy the machine is. */
const CACHING =
  "proxy_cache_path kept keys_zone=kept:1m; " +
  nginx(HOST, UPGRADE, "proxy_cache kept; proxy_cache_key $request_uri; proxy_cache_valid 200 1m; proxy_ignore_headers Cache-Control;").replace("location", "if ($arg_wait) { set $args after=latest&wait=6; } location");

/** Browsers let replies be compressed, and so see what programs that do not would miss. */
const COMPRESSING = nginx(HOST, UPGRADE, "proxy_ignore_headers X-Accel-Buffering; gzip on; gzip_types *; gzip_proxied any;");

/**
 * @param {string} [frontend] more lines of it
 * @param {string} [limit] of all times
 */
const haproxy = (frontend = "", limit = "60s") =>
  `defaults\n  mode http\n  timeout connect 5s\n  timeout client ${limit}\n  timeout server ${limit}\n  timeout tunnel ${limit}\n` +
  `frontend web\n  bind :80\n  ${frontend}\n  default_backend anemone\nbackend anemone\n  server anemone 127.0.0.1:8080\n`;

/** Without it, and without TLS, HAProxy keeps each event for 200 ms. */
const NO_DELAY = "option http-no-delay";

/** The proxies that are set up wrong, the faults that follow, and the setting that is told. More are examined by both doctors. */
const WRONG = /** @type {const} */ ([
  ["nginx as it comes", "stock", "server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } }", ["upgrade", "origin"], "proxy_set_header Upgrade $http_upgrade;"],
  ["nginx with a short time-out", "stock", nginx(HOST, UPGRADE, `proxy_read_timeout ${CUT_ALL};`), ["idle"], "proxy_read_timeout 60s;"],
  ["nginx with another host", "stock", nginx(UPGRADE, "proxy_set_header Host inner.example;"), ["reach"], "proxy_set_header Host $http_host;"],
  ["nginx with few connections", "stock", nginx(HOST, UPGRADE, "limit_conn each 6;"), ["connections"], "limit_conn"],
  ["HAProxy with a short time-out", "plainHaproxy", haproxy("", CUT_ALL), ["idle"], "timeout tunnel 1h"],
  ["HAProxy without upgrades", "plainHaproxy", haproxy("http-request del-header Upgrade"), ["upgrade"], "Upgrade"],
  ["HAProxy that closes connections", "plainHaproxy", haproxy("option httpclose"), ["keep-alive"], "option http-keep-alive"],
  ["HAProxy with another host", "plainHaproxy", haproxy("http-request set-header Host inner.example"), ["reach"], "Host"],
]);

/**
 * Checks that the doctor says which setting mends each fault, and ends as it does where there are faults.
 * @param {Awaited<ReturnType<typeof doctor>>} examined
 * @param {string} program the proxy
 * @param {string} setting that of the first fault
 */
function isMended({ status, faults, said }, program, setting) {
  assert.equal(status, 13, said);
  assert.ok(faults[0]?.remedies.some((remedy) => remedy.program === program && remedy.setting.includes(setting)), said);
  for (const { remedies } of faults) {
    assert.ok(remedies.some((remedy) => remedy.program === program), said);
    // HAProxy does not say its name.
    assert.equal(remedies.some((remedy) => remedy.program === "Cloudflare"), program === "HAProxy", said);
  }
}

describe("each way to set up a proxy wrong", AT_ONCE, () => {
  for (const [what, name, site, expected, setting] of WRONG) {
    test(`${what} is found, and nothing else`, { timeout: STEP_MS_MAX }, async (context) => {
      const isCut = expected.some((one) => one === "idle");
      await unlessLate(context, async () => {
        const examined = await behind(name, site, { wait: isCut ? WAIT_SECONDS_ALL : WAIT_SECONDS });
        assert.deepEqual(examined.faults.map((fault) => fault.name), [...expected], examined.said);
        isMended(examined, name === "stock" ? "nginx" : "HAProxy", setting);
      });
    });
  }
});

test("a way on which nothing is wrong is told so", { timeout: STEP_MS_MAX }, async (context) => {
  await unlessLate(context, async () => {
    const right = [doctor(server.origin), behind("stock", nginx(HOST, UPGRADE)), behind("plainHaproxy", haproxy(NO_DELAY))];
    for (const { status, faults, findings, said } of await Promise.all(right)) {
      assert.deepEqual([faults, status], [[], 0], said);
      assert.deepEqual(findings.filter(({ fault }) => fault), [], said);
      assert.deepEqual(findings.filter(({ state }) => state === "unknown"), [], said);
      assert.equal(findings.length, 10, said);
    }
  });
});

test("HAProxy that delays each event is no fault, and both doctors say what to set", { timeout: STEP_MS_MAX }, async () => {
  const proxy = await Proxy.start("plainHaproxy", { http: Number(new URL(server.origin).port), tcp: 0 }, haproxy());
  try {
    const origin = `http://127.0.0.1:${proxy.ports.http}`;
    const { status, faults, findings, said } = await doctor(origin);
    assert.deepEqual([faults, status], [[], 0], said);
    const delayed = findings.filter(({ fault }) => fault === "delayed");
    assert.deepEqual(delayed.map(({ name, state }) => [name, state]), [["sse", "note"], ["ndjson", "note"]], said);
    for (const { words, remedies } of delayed) {
      assert.match(words, /^a stream begins \d+ ms later than another answer/);
      assert.ok(remedies.some(({ program, setting }) => program === "HAProxy" && setting.startsWith(NO_DELAY)), said);
    }
    const { sse, ndjson } = await pageFinds(await openLab(origin));
    assert.deepEqual([sse, ndjson], ["note delayed", "note delayed"]);
  } finally {
    await proxy.remove();
  }
});

test("a server that is not there, and one that is another, are told without a hang", { timeout: STEP_MS_MAX }, async () => {
  const nobody = await doctor("http://127.0.0.1:1");
  assert.equal(nobody.status, 4);
  assert.match(String(nobody.faults[0]?.words), /refused/);
  const other = await behind("stock", "server { listen 80; location / { return 200 'hello'; } location /x { proxy_pass http://127.0.0.1:8080; } }");
  assert.equal(other.status, 4);
  assert.match(String(other.faults[0]?.words), /status 200 came instead of an Anemone server's health, behind nginx/);
  const gone = await behind("stock", "server { listen 80; location / { proxy_pass http://127.0.0.1:1; } location /x { proxy_pass http://127.0.0.1:8080; } }");
  assert.equal(gone.status, 4);
  assert.match(String(gone.faults[0]?.words), /status 502 .* the proxy does not reach the server/);

  for (const [answer, status, words] of /** @type {const} */ ([
    ["return 401;", 3, /status 401, behind nginx: the way to the server is refused; give what it asks for with -H/],
    ["return 301 https://wind.example$request_uri;", 4, /it leads to https:\/\/wind\.example\/health: examine that/],
  ])) {
    const refused = await behind("stock", `server { listen 80; location / { ${answer} } location /x { proxy_pass http://127.0.0.1:8080; } }`);
    assert.equal(refused.status, status, refused.said);
    assert.match(String(refused.faults[0]?.words), words);
  }
});

test("a page in place of a stream is no stream, and nothing else is wrong", { timeout: STEP_MS_MAX }, async () => {
  const page = `location /topics { default_type text/html; return 200 "<title>The application</title>"; }`;
  const { faults, said } = await behind("stock", nginx(HOST, UPGRADE).replace("location /", `${page} location /`));
  assert.deepEqual(faults.map(({ name }) => name), ["sse", "ndjson"], said);
  for (const { words } of faults) assert.match(words, /no stream came but an answer of the type "text\/html"/);
});

test("few streams of HTTP/2 are found, and many are good", { timeout: STEP_MS_MAX }, async () => {
  const site = await readFile(new URL("../../deploy/nginx.conf", import.meta.url), "utf8");
  const trusting = await serve("--demo", "--listen", "127.0.0.1:0", "--trusted-proxy", "127.0.0.1");
  const ways = /** @type {const} */ ([["", "good"], ["http2_max_concurrent_streams 4;", "fault"]]);
  await Promise.all(ways.map(async ([more, state]) => {
    const proxy = await Proxy.start("nginx", { http: Number(new URL(trusting.origin).port), tcp: 0 }, site.replace("ssl_certificate ", `${more} ssl_certificate `));
    try {
      const { findings, faults, said } = await doctor(`https://localhost:${proxy.ports.http}`, { args: ["--insecure"] });
      assert.equal(findings.find(({ name }) => name === "http2")?.state, state, said);
      assert.equal(faults.length, state === "fault" ? 1 : 0, said);
      if (state === "fault") assert.match(JSON.stringify(faults), /HTTP\/2 lets 4 streams through .*"http2_max_concurrent_streams 128;/);
    } finally {
      await proxy.remove();
    }
  }));
  await kill(trusting);
});

/** The settings of a proxy that cuts only long polls which ask for it with `Prefer`, and has time for everything else. */
const CUT_POLLS = `if ($http_prefer) { return 418; } error_page 418 = @quiet; } location @quiet { proxy_pass http://127.0.0.1:8080; ${HOST} proxy_read_timeout ${CUT};`;
/** @param {string} location before the others */
const preceded = (location) => nginx(HOST, UPGRADE).replace("location /", `${location} location /`);

/** @typedef {Record<string, string>} Found by the id of an examination, its state and the key of its fault */

/**
 * Opens the Lab page. It opens as many streams as a browser does at once, unless it is to open more: each examination would wait for
 * the others as for what is held back.
 * @param {string} origin
 * @param {{ isHeld?: boolean, isAtOnce?: boolean, hasMoreStreams?: boolean, wait?: number }} [options]
 */
async function openLab(origin, { isHeld = false, isAtOnce = false, hasMoreStreams = false, wait = WAIT_SECONDS } = {}) {
  const page = await browser.newPage();
  const rules = JSON.parse(await readFile(RULES, "utf8"));
  if (isHeld) rules.limits.begin_ms_max = 1000 * BEGIN_SECONDS.short;
  if (isAtOnce) rules.limits.waited_ms_min = AT_ONCE_MS_MAX;
  if (!hasMoreStreams) rules.limits.streams = rules.limits.browser_connections;
  // Only once: as long as there is a route, all requests take a detour.
  await page.route("**/page/lab/rules.json", (route) => route.fulfill({ json: rules }), { times: 1 });
  await page.goto(`${origin}/lab`);
  await page.locator("#notice-no-script").waitFor({ state: "detached", timeout: PATIENCE_MS });
  await page.locator("#wait").evaluate((select, seconds) => /** @type {HTMLSelectElement} */ (select).add(new Option("", seconds, true, true)), String(wait));
  return page;
}

/**
 * What the doctor of the Lab page finds.
 * @param {import("playwright-core").Page} page
 * @returns {Promise<Found>}
 */
async function pageFinds(page) {
  await page.locator("#examine").click();
  await page.locator("#examine:enabled").waitFor({ timeout: STEP_MS_MAX });
  const found = await page.locator("#findings > li").evaluateAll((items) => items.map((item) => /** @type {HTMLElement} */ (item).dataset));
  await page.close();
  return Object.fromEntries(found.map(({ id, state, fault }) => [String(id), [state, fault].filter(Boolean).join(" ")]));
}

/** @param {readonly Finding[]} findings @returns {Found} */
const foundBy = (findings) => Object.fromEntries(findings.map(({ name, state, fault }) => [name, [state, fault].filter(Boolean).join(" ")]));

/** What both find where nothing is wrong. */
const GOOD = Object.fromEntries(["keep-alive", "cache", "sse", "ndjson", "upgrade", "origin", "connections", "idle"].map((id) => [id, "good"]));
const HELD = { sse: "fault buffered", ndjson: "fault buffered", connections: "unknown" };
/** @typedef {{ both?: Found, page?: Found, setting?: string, wait?: number, hasMoreStreams?: boolean }} Expected what is not good: for both, and for the page alone; and the setting that is told */

/** @type {readonly [string, string, Expected][]} */
const BOTH = [
  // Chromium opens six connections to a server, and says so.
  ["set up right", nginx(HOST, UPGRADE), { page: { connections: "note" }, hasMoreStreams: true }],
  // Without HTTP/1.1 to the server, nginx passes on what fills a buffer; with it, whatever comes.
  ["that holds streams back", nginx(HOST, "proxy_ignore_headers X-Accel-Buffering;"), { both: { ...HELD, upgrade: "fault upgrade" }, setting: "proxy_buffering off;" }],
  ["that compresses streams", COMPRESSING, { both: HELD, setting: "gzip_types" }],
  ["without upgrades", nginx(HOST), { both: { upgrade: "fault upgrade" }, setting: "proxy_set_header Upgrade $http_upgrade;" }],
  ["without upgrades at /ws", preceded(`location = /ws { proxy_pass http://127.0.0.1:8080; ${HOST} }`), { both: { upgrade: "fault upgrade" } }],
  ["that does not forward /ws", preceded("location = /ws { return 404; }"), { both: { upgrade: "fault unforwarded" }, setting: "no other location that takes /ws" }],
  ["that limits the rate of WebSockets", preceded("location = /ws { return 503; }"), { both: { upgrade: "unknown" } }],
  ["that sends JSON in chunks", nginx(HOST, UPGRADE, "sub_filter 'zzzz' 'yyyy'; sub_filter_types application/json;"), {}],
  ["with a page at /ws", preceded(`location = /ws { default_type text/html; return 200 "<title>The application</title>"; }`), { both: { upgrade: "fault unforwarded" } }],
  ["without subprotocols", nginx(HOST, UPGRADE, 'proxy_set_header Sec-WebSocket-Protocol "";'), { both: { upgrade: "fault subprotocol" }, setting: "Sec-WebSocket-Protocol" }],
  ["with a cache", CACHING, { both: { cache: "fault cached" }, setting: "proxy_cache off;" }],
  ["that closes connections", nginx(HOST, UPGRADE, "keepalive_timeout 0;"), { both: { "keep-alive": "fault keep-alive" }, setting: "keepalive_timeout 75s;" }],
  ["that cuts long polls", nginx(HOST, UPGRADE, CUT_POLLS), { both: { idle: "fault idle" }, wait: WAIT_SECONDS_CUT }],
  ["with a page in place of streams", preceded(`location /topics { default_type text/html; return 200 "<title>The application</title>"; }`), { both: { cache: "unknown", sse: "fault foreign", ndjson: "fault foreign", connections: "unknown" } }],
  // A page cannot open a WebSocket without its origin, as a program does.
  ["with its own host", nginx(UPGRADE), { both: { origin: "fault origin" }, page: { upgrade: "fault upgrade" }, setting: "proxy_set_header Host $http_host;" }],
];

/**
 * Compares what both find.
 * @param {string} origin
 * @param {Expected} expected
 */
async function bothFind(origin, { both = {}, page = {}, setting, wait = WAIT_SECONDS, hasMoreStreams = false }) {
  const isHeld = both.sse === HELD.sse && both.connections === HELD.connections;
  const isAtOnce = both.cache === "unknown" && both.sse === undefined;
  // To open a page takes the whole processor, and both measure times.
  const lab = await openLab(origin, { isHeld, isAtOnce, hasMoreStreams, wait });
  const [examined, ofPage] = await Promise.all([doctor(origin, { isHeld, wait }), pageFinds(lab)]);
  const { reach, http2, ...found } = foundBy(examined.findings);
  assert.deepEqual([reach, http2, found], ["good", "note", { ...GOOD, ...both }], examined.said);
  if (setting !== undefined) isMended(examined, "nginx", setting);
  assert.deepEqual(ofPage, { ...GOOD, ...both, ...page });
}

/** More than two looks that are a second late, and less than the page waits for the beginning of a stream. */
const KEPT_MS = 2500;

/**
 * Starts a proxy that keeps every piece of a stream for a time.
 * @param {number} port that of the server
 */
async function delaying(port) {
  /** @type {Set<import("node:net").Socket>} */
  const open = new Set();
  const proxy = createServer((down) => {
    const up = connect(port, "127.0.0.1");
    let isStream = false;
    down.on("data", (piece) => {
      isStream ||= /text\/event-stream|x-ndjson/.test(String(piece));
      up.write(piece);
    });
    up.on("data", (piece) => (isStream ? setTimeout(() => down.write(piece), KEPT_MS) : down.write(piece)));
    for (const [end, other] of /** @type {const} */ ([[down, up], [up, down]])) {
      open.add(end);
      end.on("error", () => {});
      end.on("close", () => (open.delete(end), other.destroy()));
    }
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = /** @type {import("node:net").AddressInfo} */ (proxy.address());
  const close = () => (proxy.close(), open.forEach((end) => end.destroy()));
  return { origin: `http://127.0.0.1:${address.port}`, close };
}

describe("both doctors", AT_ONCE, () => {
  for (const [what, site, expected] of BOTH) {
    test(`they say the same of nginx ${what}`, { timeout: STEP_MS_MAX }, async (context) => {
      const proxy = await Proxy.start("stock", { http: Number(new URL(server.origin).port), tcp: 0 }, site);
      try {
        await unlessLate(context, () => bothFind(`http://127.0.0.1:${proxy.ports.http}`, expected));
      } finally {
        await proxy.remove();
      }
    });
  }

  test("they say that what keeps every piece of a stream for seconds holds it back", { timeout: STEP_MS_MAX }, async (context) => {
    const proxy = await delaying(Number(new URL(server.origin).port));
    try {
      await unlessLate(context, () => bothFind(proxy.origin, { both: { sse: HELD.sse, ndjson: HELD.ndjson } }));
    } finally {
      proxy.close();
    }
  });

  for (const [wait, cache] of /** @type {const} */ ([["500ms", "good"], ["0s", "unknown"]])) {
    test(`a server that lets polls wait for ${wait} is no cache to both doctors`, { timeout: STEP_MS_MAX }, async (context) => {
      const directory = await folder("anemone-doctor-");
      const config = join(directory, "anemone.toml");
      await writeFile(config, `[limits]\nwait_proxied = "${wait}"\n`);
      const limited = await serve("--demo", "--listen", "127.0.0.1:0", "--trusted-proxy", "127.0.0.1", "--config", config);
      try {
        await unlessLate(context, () => bothFind(limited.origin, { both: { cache }, wait: WAIT_SECONDS_CUT }));
      } finally {
        await kill(limited);
        await remove(directory);
      }
    });
  }
});
