/**
 * A page of a user's own, from `--static DIR`: its module scripts and its `EventSource`, in Chromium, directly, behind nginx as it
 * comes, and below a path of a proxy's own.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), nginx, openssl, curl and Chromium
 * (`CHROMIUM`, default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { output } from "./programs.js";
import { NAME, Proxy } from "./proxies.js";
import { PATIENCE_MS, becomes, folder, kill, launch, numbersTo, publish, remove, serve } from "./support.js";

const STEP_MS_MAX = 300_000;
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Mine</title>
    <link rel="stylesheet" href="style.css">
    <script type="module" src="scripts/main.js"></script>
  </head>
  <body><ol id="events"></ol></body>
</html>
`;
const MAIN = `import { show } from "./show.js";
const events = new EventSource("topics/test?after=earliest");
events.onmessage = ({ data }) => show(JSON.parse(data).n);
`;
const SHOW = `${"// A script that is long enough to be compressed.\n".repeat(50)}
export function show(n) {
  const item = document.createElement("li");
  item.textContent = String(n);
  document.getElementById("events").append(item);
}
`;

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** @type {Proxy} */ let stock;
/** @type {Proxy} */ let below;
/** @type {import("playwright-core").Browser} */ let browser;

/** @param {string} name */
const at = (name) => join(directory, "www", name);

before(async () => {
  directory = await folder("anemone-own-page-");
  await mkdir(at("scripts"), { recursive: true });
  const files = { "index.html": PAGE, "scripts/main.js": MAIN, "scripts/show.js": SHOW, "style.css": "ol { color: rgb(1, 2, 3) }" };
  for (const [name, text] of Object.entries(files)) await writeFile(at(name), text);
  const config = join(directory, "anemone.toml");
  await writeFile(config, '[[topic]]\nname = "test"\npublish = "anyone"\n');
  server = await serve("--config", config, "--static", at(""), "--listen", "127.0.0.1:0");
  const ports = { http: Number(new URL(server.origin).port), tcp: 0 };
  [stock, below] = await Promise.all([Proxy.start("stock", ports), Proxy.start("path", ports)]);
  browser = await launch(`--host-resolver-rules=MAP ${NAME} 127.0.0.1`, "--no-proxy-server");
  await publish(`${server.origin}/topics/test`, 1, 5);
});

after(async () => {
  await browser?.close();
  await Promise.all([stock?.remove(), below?.remove()]);
  await kill(server);
  await remove(directory);
});

/**
 * @param {import("playwright-core").Page} page
 * @param {number[]} numbers
 */
async function shows(page, numbers) {
  const said = numbers.join(" ");
  const items = "[...document.querySelectorAll('#events li')].map((item) => item.textContent).join(' ')";
  await page.waitForFunction(`${items} === ${JSON.stringify(said)}`, undefined, { polling: 100, timeout: PATIENCE_MS });
}

test("a page of one's own reads a topic, wherever it is served", { timeout: STEP_MS_MAX }, async () => {
  const urls = [`${server.origin}/`, `${server.origin}/index.html`, `${stock.origin}/`, `http://127.0.0.1:${below.ports.http}/wind/`];
  for (const url of urls) {
    const page = await browser.newPage();
    /** @type {string[]} */
    const refused = [];
    // What Chromium asks for by itself is not there.
    page.on("response", (reply) => {
      if (!reply.ok() && !reply.url().endsWith("/favicon.ico")) refused.push(`${reply.status()} ${reply.url()}`);
    });
    await page.goto(url);
    await shows(page, numbersTo(5)).catch((error) => assert.fail(`${url}: ${error} ${refused}`));
    assert.equal(await page.evaluate("getComputedStyle(document.getElementById('events')).color"), "rgb(1, 2, 3)", url);
    assert.deepEqual(refused, [], url);
    await page.close();
  }
  assert.doesNotMatch(server.output.join(""), /refused/);
});

test("the pages of topics and runs stay beside one's own", { timeout: STEP_MS_MAX }, async () => {
  for (const [path, title] of [["/topics/test", /^test · Anemone$/], ["/runs", /^Runs · Anemone$/]]) {
    const page = await browser.newPage();
    /** @type {string[]} */
    const faults = [];
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.goto(`${server.origin}${path}`);
    assert.match(await page.title(), /** @type {RegExp} */ (title));
    await page.locator("#notice-no-script").waitFor({ state: "detached", timeout: PATIENCE_MS });
    assert.deepEqual(faults, []);
    await page.close();
  }
});

test("an edit is seen at the next reload, and what was not edited is not sent again", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  /** @type {Map<string, number>} */
  const statuses = new Map();
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  // As they came: what is in the browser's own cache passes for 200 elsewhere.
  session.on("Network.responseReceivedExtraInfo", ({ statusCode, headers }) => {
    const type = String(headers["content-type"] ?? headers["etag"]);
    statuses.set(`${type} ${statuses.size}`, statusCode);
  });
  await page.goto(`${server.origin}/`);
  await shows(page, numbersTo(5));
  await writeFile(at("new.js"), (await readFile(at("scripts/main.js"), "utf8")).replace(".n)", ".n * 10)"));
  await rename(at("new.js"), at("scripts/main.js"));
  statuses.clear();
  await page.reload();
  await shows(page, [10, 20, 30, 40, 50]);
  const came = () => [...statuses.values()].filter((status) => status !== 404).sort();
  // The topic and the script that was edited; the page, its style and the other script.
  await becomes("the statuses", came, [200, 200, 304, 304, 304]);
  await page.close();
});

test("curl has a file whole, compressed and in parts", { timeout: STEP_MS_MAX }, async () => {
  const url = `${server.origin}/scripts/show.js`;
  const curl = async (/** @type {string[]} */ ...args) => (await output("curl", ["-s", "--noproxy", "*", ...args])).text;
  assert.equal(await curl(url), SHOW);
  assert.equal(await curl("--compressed", url), SHOW);
  const bytes = Number(await curl("--compressed", "-o", join(directory, "copy"), "-w", "%{size_download}", url));
  assert.ok(bytes < SHOW.length / 5, `${bytes} bytes`);
  assert.equal(await readFile(join(directory, "copy"), "utf8"), SHOW);
  await writeFile(join(directory, "copy"), SHOW.slice(0, 1000));
  await curl("-C", "-", "-o", join(directory, "copy"), url);
  assert.equal(await readFile(join(directory, "copy"), "utf8"), SHOW);
  assert.match(await curl("-I", url), /^HTTP\/1\.1 200 OK\r\n/);
});
