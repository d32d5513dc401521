/**
 * nginx asks who reads: with a password (`auth_basic`), and by a program of the operator's own (`auth_request`), with the very
 * files that docs/DEPLOY.md shows. With it each way to read works, and without it none does; and what Chromium does with the
 * password.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), nginx, openssl and Chromium (`CHROMIUM`,
 * default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { NAME, Proxy, replaced } from "./proxies.js";
import { Reader, begun, haveRead, publish } from "./readers.js";
import { folder, kill, launch, numbersTo, panesConnect, remove, serve } from "./support.js";
import { FRAME, TRANSPORTS, ask } from "./transports.js";

const STEP_MS_MAX = 300_000;
const [USER, PASSWORD] = ["reader", "open sesame"];
const BASIC = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString("base64")}`;
const COOKIE = "session=known";

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** @type {http.Server} */ let login;
/** What the program that decides was asked, each as "METHOD URI BYTES-OF-BODY". @type {Set<string>} */
const decided = new Set();

/** @param {string} path */
const deployed = async (path) => await readFile(new URL(`../../deploy/${path}`, import.meta.url), "utf8");

before(async () => {
  directory = await folder("anemone-password-");
  // Another user does the work of nginx.
  await chmod(directory, 0o755);
  const config = join(directory, "anemone.toml");
  await writeFile(config, 'demo = true\n[[topic]]\nname = "test-*"\npublish = "anyone"\n');
  server = await serve("--config", config, "--listen", "127.0.0.1:0", "--allow-host", NAME, "--trusted-proxy", "127.0.0.1");
  login = http.createServer((request, reply) => {
    let bytes = 0;
    request.on("data", (chunk) => (bytes += chunk.length));
    request.on("end", () => {
      const { cookie, "x-original-method": method, "x-original-uri": uri } = request.headers;
      decided.add(`${method} ${uri} ${bytes}`);
      reply.writeHead(cookie === COOKIE && request.url === "/check" ? 200 : 401).end();
    });
  });
  login.listen(0, "127.0.0.1");
  await once(login, "listening");
});

after(async () => {
  await Reader.stopAll();
  await Proxy.removeAll();
  await kill(server);
  login.close();
  await remove(directory);
});

const ports = () => ({ http: Number(new URL(server.origin).port), tcp: 0 });

/** nginx with a password. */
async function withPassword() {
  const passwords = join(directory, "passwords");
  // The command of the file, but for the program that asks for the password.
  const hash = execFileSync("openssl", ["passwd", "-apr1", PASSWORD], { encoding: "utf8" });
  await writeFile(passwords, `${USER}:${hash}`);
  const included = join(directory, "password.conf");
  await writeFile(included, replaced(await deployed("nginx-password.conf"), [["/etc/nginx/anemone.passwords", passwords]]));
  const site = replaced(await deployed("nginx.conf"), [["location / {", `location / {\n        include ${included};`]]);
  return await Proxy.start("nginx", ports(), site);
}

/** nginx that asks the program whether a request may pass. */
async function withLogin() {
  const included = join(directory, "login.conf");
  const port = /** @type {import("node:net").AddressInfo} */ (login.address()).port;
  await writeFile(included, replaced(await deployed("nginx-login.conf"), [["127.0.0.1:9000", `127.0.0.1:${port}`]]));
  const site = replaced(await deployed("nginx.conf"), [["server_name wind.example;", `server_name wind.example;\n    include ${included};`]]);
  return await Proxy.start("nginx", ports(), site);
}

/**
 * @param {Proxy} proxy
 * @param {Record<string, string>} fields
 * @returns {import("./transports.js").Target}
 */
const through = ({ ports, origin }, fields) => ({ port: ports.http, isSecure: true, host: new URL(origin).host, fields });

const HTTP = Object.entries(TRANSPORTS).filter(([name]) => name !== "TCP");

/**
 * With these fields each way to read and to publish works, and without them none does.
 * @param {Proxy} proxy
 * @param {string} topic
 * @param {Record<string, string>} fields
 */
async function isFor(proxy, topic, fields) {
  const known = through(proxy, fields);
  const position = await publish(known, topic, 0);
  const all = HTTP.map(([transport, read]) => new Reader(transport, read, known, `/topics/${topic}`, position));
  await begun(proxy, all);
  for (const n of numbersTo(5)) {
    await publish(known, topic, n);
    await haveRead(proxy, all, n);
  }
  for (const { transport, numbers, ends } of all) assert.deepEqual([transport, numbers, ends], [transport, numbersTo(5), 0]);
  await Promise.all(all.map((reader) => reader.stop()));
  const unknown = through(proxy, {});
  for (const [transport, read] of HTTP) {
    const reading = read(unknown, `/topics/${topic}`, position, () => assert.fail(`${transport} reads`), new AbortController().signal);
    await assert.rejects(reading, /401/, transport);
  }
  const headers = { "Content-Type": "application/json" };
  for (const path of ["/", "/wind", "/topics", "/connections", `/topics/${topic}?frame=f`]) {
    assert.equal((await ask(unknown, path, { headers: FRAME })).status, 401, path);
  }
  assert.equal((await ask(unknown, `/topics/${topic}`, { method: "POST", headers, body: "1" })).status, 401);
}

test("with a password each way to read works, and without it none", { timeout: STEP_MS_MAX }, async () => {
  const proxy = await withPassword();
  await isFor(proxy, "test-password", { Authorization: BASIC });
  const wrong = { Authorization: `Basic ${Buffer.from(`${USER}:x`).toString("base64")}` };
  assert.equal((await ask(through(proxy, wrong), "/topics")).status, 401);
  const { headers } = await ask(through(proxy, {}), "/topics");
  assert.equal(headers["www-authenticate"], 'Basic realm="Anemone"', "so that a browser asks for it");
  await proxy.remove();
});

test("a program of one's own may decide, for each way to read", { timeout: STEP_MS_MAX }, async () => {
  const proxy = await withLogin();
  await isFor(proxy, "test-login", { Cookie: COOKIE });
  // It is told what is asked for, and does not get the body.
  assert.ok(decided.has("GET /ws 0") && decided.has("POST /topics/test-login 0"), [...decided].join("\n"));
  assert.equal((await ask(through(proxy, { Cookie: COOKIE }), "/anemone-login")).status, 404, "nobody asks it from outside");
  await proxy.remove();
});

test("a browser that was given the password reads each way with it", { timeout: STEP_MS_MAX }, async () => {
  const proxy = await withPassword();
  const browser = await launch(`--host-resolver-rules=MAP ${NAME} 127.0.0.1`, "--no-proxy-server", "--ignore-certificate-errors");
  try {
    const page = await browser.newPage({ httpCredentials: { username: USER, password: PASSWORD } });
    await page.goto(`${proxy.origin}/transports`);
    await panesConnect(page);
  } finally {
    await browser.close();
    await proxy.remove();
  }
});
