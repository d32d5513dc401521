/**
 * Each way to read and to publish, by way of each proxy that docs/DEPLOY.md has settings for: the real programs, with the very
 * files that it shows.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), nginx, Caddy, HAProxy, Apache, openssl and
 * Chromium (`CHROMIUM`, default `/usr/bin/chromium`). Waits on conditions, never for a fixed time, but for one: what lives
 * longer than a minute is not known before.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { chmod, readFile, readdir, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { output } from "./programs.js";
import { NAME, Proxy, freePort, replaced } from "./proxies.js";
import { Reader, begun, haveRead, publish } from "./readers.js";
import { BIN, folder, kill, launch, numbersTo, panesConnect, PATIENCE_MS, remove, serve, start, until } from "./support.js";
import { FRAME, TRANSPORTS, ask, request } from "./transports.js";

const STEP_MS_MAX = 300_000;
const NAMES = /** @type {const} */ (["nginx", "caddy", "haproxy", "apache"]);
/** After this long without a byte nginx and Apache give up by default, and HAProxy with our settings. */
const PROXY_PATIENCE_MS = 60_000;
/** The machine was not asleep for longer than this. */
const STALL_MS_MIN = 10_000;
/** Where a visitor comes from. */
const VISITOR = "127.0.0.9";

/** @type {string} */ let directory;
/** @type {import("./support.js").Program} */ let server;
/** @type {import("./proxies.js").Ports} */ let ports;
/** @type {string} */ let socket;
/** @type {Map<string, Proxy>} */ const proxies = new Map();
/** Readers of a topic to which nothing is published for more than a minute. @type {Quiet | undefined} */
let quiet;

/** @typedef {Promise<Awaited<ReturnType<typeof ask>>>} LongPoll */
/** @typedef {{ topic: string, since: number, by: { proxy: Proxy, all: Reader[], asked: LongPoll }[] }} Quiet */

/** When this process last had to wait for the machine, as it may when that is asleep: heartbeats had to, too. */
let stalledAt = 0;
let tickedAt = Date.now();
const ticking = setInterval(() => {
  const now = Date.now();
  if (now - tickedAt > STALL_MS_MIN) stalledAt = now;
  tickedAt = now;
}, 1_000);

/** @param {string} path */
const deployed = async (path) => await readFile(new URL(`../../deploy/${path}`, import.meta.url), "utf8");

/** The server, with the file that is documented. */
before(async () => {
  directory = await folder("anemone-deploy-");
  ports = { http: await freePort(), tcp: await freePort() };
  socket = join(directory, "socket");
  const config = replaced(await deployed("anemone.toml"), [
    ["127.0.0.1:8080", `127.0.0.1:${ports.http}`],
    ["127.0.0.1:8081", `127.0.0.1:${ports.tcp}`],
    ["/run/anemone/anemone.sock", socket],
    ["/var/lib/anemone", join(directory, "data")],
  ]);
  const topics = '\n[[topic]]\nname = "test-*"\npublish = "anyone"\n';
  await writeFile(join(directory, "anemone.toml"), config + topics);
  // As the systemd unit has it.
  const [, command] = /^ExecStart=\S+ (.*)$/m.exec(await deployed("anemone.service")) ?? [];
  server = start(replaced(String(command), [["/etc/anemone/anemone.toml", join(directory, "anemone.toml")]]).split(" "));
  await until("the server", () => /tcp on/.test(server.output.join("")));
  await Promise.all(NAMES.map(async (name) => proxies.set(name, await Proxy.start(name, ports))));
  quiet = await readQuietly(1);
});

/**
 * A quiet topic that is read in each way, by a proxy of its own of each kind.
 * @param {number} attempt
 * @returns {Promise<Quiet>}
 */
async function readQuietly(attempt) {
  const topic = `test-quiet-${attempt}`;
  const by = [];
  for (const name of NAMES) {
    const proxy = await Proxy.start(name, ports);
    const all = await readInEachWay(proxy, topic);
    const asked = ask(through(proxy), `/topics/${topic}?after=latest`, { headers: { Prefer: "wait=120" } });
    asked.catch(() => {}); // told once it is awaited
    by.push({ proxy, all, asked });
  }
  return { topic, since: Date.now(), by };
}

/** @param {Quiet | undefined} quiet */
async function endQuiet(quiet) {
  await Promise.all((quiet?.by ?? []).flatMap(({ all }) => all.map((reader) => reader.stop())));
  await Promise.all((quiet?.by ?? []).map(({ proxy }) => proxy.remove()));
}

after(async () => {
  clearInterval(ticking);
  await Reader.stopAll();
  await Proxy.removeAll();
  await kill(server);
  await remove(directory);
});

/** The server itself. @returns {import("./transports.js").Target} */
const direct = () => ({ port: ports.http, isSecure: false, host: `127.0.0.1:${ports.http}` });

/**
 * By way of a proxy, as a visitor from elsewhere.
 * @param {Proxy} proxy
 * @returns {import("./transports.js").Target}
 */
const through = ({ ports, kind }) => ({
  port: ports.http,
  tcp: ports.tcp,
  isSecure: kind.isSecure,
  host: `${NAME}:${ports.http}`,
  from: VISITOR,
});

/** A program on the server's own machine. @returns {import("./transports.js").Target} */
const local = () => ({ port: 0, isSecure: false, host: "localhost", socket });

/** @param {string} name of the proxy */
const readers = (name) => Object.entries(TRANSPORTS).filter(([transport]) => transport !== "TCP" || name === "haproxy");

/**
 * A new topic, and somebody who reads it in each way by a proxy.
 * @param {Proxy} proxy
 * @param {string} topic
 * @param {() => Promise<string>} [first] publishes the first event
 */
async function readInEachWay(proxy, topic, first = async () => await publish(direct(), topic, 0)) {
  const position = await first();
  const all = readers(proxy.name).map(([transport, read]) => new Reader(transport, read, through(proxy), `/topics/${topic}`, position));
  return await begun(proxy, all);
}

for (const name of NAMES) {
  test(`${name} passes each event on at once, in each way`, { timeout: STEP_MS_MAX }, async () => {
    const proxy = /** @type {Proxy} */ (proxies.get(name));
    const topic = `test-${name}-at-once`;
    const all = await readInEachWay(proxy, topic);
    // The next one is published when the one before has come: one that is held back is never seen.
    for (const n of numbersTo(10)) {
      await publish(through(proxy), topic, n);
      await haveRead(proxy, all, n);
    }
    for (const { transport, numbers, ends } of all) {
      assert.deepEqual(numbers, numbersTo(10), transport);
      assert.equal(ends, 0, transport);
    }
    await Promise.all(all.map((reader) => reader.stop()));
  });

  test(`${name} may end at any time: nothing is lost, and nothing comes twice`, { timeout: STEP_MS_MAX }, async () => {
    const proxy = await Proxy.start(name, ports);
    const topic = `test-${name}-ended`;
    const all = await readInEachWay(proxy, topic);
    for (const last of [10, 20, 30]) {
      const publishing = (async () => {
        for (let n = last - 9; n <= last; n += 1) await publish(through(proxy), topic, n);
      })();
      const before = all.map(({ ends }) => ends);
      await proxy.kill();
      // One who polls has no connection between two polls, and may not notice a proxy that is back at once.
      await until("all to be cut off", () => all.every(({ ends }, index) => ends > Number(before[index])));
      await publish(direct(), `${topic}-meanwhile`, 1);
      await proxy.run();
      await publishing;
      await haveRead(proxy, all, last);
    }
    for (const { transport, numbers, ends } of all) {
      assert.deepEqual(numbers, numbersTo(30), transport);
      assert.ok(ends > 0, `${transport} was not cut off`);
    }
    await Promise.all(all.map((reader) => reader.stop()));
    await proxy.remove();
  });
}

/** What a client may say of itself, none of which is to be believed. */
const LIES = {
  "X-Forwarded-For": "127.0.0.1",
  "X-Forwarded-Host": "evil.example",
  "X-Forwarded-Proto": "http",
  Forwarded: "for=127.0.0.1;host=evil.example;proto=http",
};
/** What every reply tells browsers. */
const PROTECTION = [
  "content-security-policy",
  "x-frame-options",
  "x-content-type-options",
  "cross-origin-resource-policy",
  "cross-origin-opener-policy",
  "cross-origin-embedder-policy",
  "referrer-policy",
  "cache-control",
  "content-type",
];

for (const name of NAMES) {
  test(`${name} says who asks, by which name and how, whatever its client says`, { timeout: STEP_MS_MAX }, async () => {
    const proxy = /** @type {Proxy} */ (proxies.get(name));
    const target = { ...through(proxy), fields: LIES };
    for (const [transport, read] of readers(name).filter(([name]) => !["poll", "TCP"].includes(name))) {
      // Each has a topic of its own: some proxies notice late that a client has gone.
      const topic = `test-${name}-who-${transport.replace(" ", "-")}`;
      const reader = new Reader(transport, read, target, `/topics/${topic}`, await publish(direct(), topic, 0));
      await begun(proxy, [reader]);
      // By TCP, and to those who may see it.
      await until(`${transport} to be listed as ${VISITOR}`, async () => {
        const { text } = await ask(local(), `/topics/${topic}/readers`);
        const clients = JSON.parse(text).readers.map((/** @type {{ client: string }} */ { client }) => client);
        assert.ok(clients.every((/** @type {string} */ client) => client === VISITOR || client.startsWith(`${VISITOR}:`)), `${name}, ${transport}: ${text}`);
        return clients.length > 0;
      });
      await reader.stop();
    }
    const origin = async (/** @type {string} */ Origin) => (await ask(target, "/clock", { headers: { Origin } })).status;
    assert.equal(await origin(proxy.origin), 200, "the page's own, by https");
    assert.equal(await origin(proxy.origin.replace("https", "http")), 403, "the same name by http is another origin");
    assert.equal(await origin("https://evil.example"), 403);
    const post = async (/** @type {import("./transports.js").Target} */ target, /** @type {Record<string, string>} */ fields) => {
      const headers = { "Content-Type": "application/json", ...fields };
      return await ask(target, "/topics/wind", { method: "POST", headers, body: '{"speed":1}' });
    };
    const refused = await post(target, { Origin: proxy.origin });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /publish-refused.*this one comes through a trusted proxy/);
    assert.equal((await ask(target, "/topics/wind/readers")).status, 403);
    assert.equal((await post(local(), {})).status, 201, "programs of this machine have the Unix socket");
  });

  test(`${name} leaves what protects pages as it is`, { timeout: STEP_MS_MAX }, async () => {
    const proxy = /** @type {Proxy} */ (proxies.get(name));
    const protection = async (/** @type {import("./transports.js").Target} */ target, /** @type {string} */ path) => {
      const headers = { "Accept-Encoding": "identity", "Sec-Fetch-Site": "same-origin", ...(path.includes("frame") ? FRAME : {}) };
      const controller = new AbortController();
      const { headers: fields, statusCode } = await request(target, path, { headers, signal: controller.signal });
      controller.abort();
      // The policy names the WebSockets of the host that was asked for.
      const { host } = target;
      return [statusCode, ...PROTECTION.map((name) => `${name}: ${fields[name]}`.replaceAll(`//${host}`, "//HOST"))];
    };
    await publish(direct(), "test-frame", 1);
    for (const path of ["/", "/wind/main.js", "/topics", "/topics/test-frame", "/topics/none", "/topics/test-frame?frame=f", "/clock"]) {
      assert.deepEqual(await protection(through(proxy), path), await protection(direct(), path), path);
    }
  });
}

test("HAProxy sends an event without delay, and compresses no stream", { timeout: STEP_MS_MAX }, async () => {
  // With TLS, the option has no effect; but some leave TLS out of the file.
  const compressing = "option http-no-delay\n    compression algo gzip\n    compression type text/html text/event-stream application/x-ndjson application/json";
  const proxy = await Proxy.start("haproxy", ports, replaced(await deployed("haproxy.cfg"), [["option http-no-delay", compressing]]));
  const position = await publish(direct(), "test-compressed", 1);
  const coding = async (/** @type {string} */ path, /** @type {Record<string, string>} */ fields) => {
    const controller = new AbortController();
    const headers = { ...fields, "Accept-Encoding": "gzip" };
    const reply = await request(through(proxy), path, { headers, signal: controller.signal });
    controller.abort();
    return [reply.statusCode, reply.headers["content-encoding"]];
  };
  const path = "/topics/test-compressed";
  assert.deepEqual(await coding(path, {}), [200, "gzip"], "a page");
  assert.deepEqual(await coding(path, { Accept: "text/event-stream" }), [200, undefined]);
  assert.deepEqual(await coding(path, { Accept: "application/x-ndjson" }), [200, undefined]);
  assert.deepEqual(await coding(`${path}?frame=f`, FRAME), [200, undefined]);
  // An encoder would keep the end of an event until the next one comes.
  const fields = { "Accept-Encoding": "gzip" };
  const all = /** @type {const} */ (["SSE", "NDJSON"]).map((name) => new Reader(name, TRANSPORTS[name], { ...through(proxy), fields }, path, position));
  await begun(proxy, all);
  await publish(direct(), "test-compressed", 2);
  await haveRead(proxy, all, 2);
  await Promise.all(all.map((reader) => reader.stop()));
  await proxy.remove();
});

test("a program of this machine publishes as anemone.toml says", { timeout: STEP_MS_MAX }, async () => {
  const [, command] = /^# (curl --unix-socket .*)$/m.exec(await deployed("anemone.toml")) ?? [];
  const line = replaced(String(command), [["/run/anemone/anemone.sock", socket]]);
  const { text, errors } = await output("sh", ["-c", line]);
  assert.match(text, /^{"position":"\w+-\d+",.*"count":1}$/m, errors);
});

const readDocument = async () => await readFile(new URL("../../docs/DEPLOY.md", import.meta.url), "utf8");

test("the owner has every command over the Unix socket, as docs/DEPLOY.md says", { timeout: STEP_MS_MAX }, async () => {
  const commands = [...(await readDocument()).matchAll(/^    anemone (\w+ .*unix:.*)$/gm)].map(([, command]) => String(command));
  assert.deepEqual(commands.map((command) => command.split(" ")[0]).sort(), ["call", "doctor", "pub", "runs", "sub", "topics"]);
  await publish(local(), "wind", 1);
  // Those that go on for long are cut short.
  const more = { sub: "--after earliest --count 1", doctor: "--wait 1s" };
  for (const command of commands) {
    const [name] = command.split(" ");
    const rest = Object.entries(more).find(([of]) => of === name)?.[1] ?? "";
    const line = `${BIN} ${replaced(command, [["/run/anemone/anemone.sock", socket]])} ${rest}`;
    const { text, errors, status } = await output("sh", ["-c", line]);
    assert.equal(status, 0, `${line}: ${text}${errors}`);
  }
});

test("the pages are the owner's by a port that leads to the Unix socket", { timeout: STEP_MS_MAX }, async () => {
  // As ssh -L and socat do.
  const forwarding = createServer((client) => {
    const server = connect(socket);
    client.on("error", () => server.destroy()).pipe(server);
    server.on("error", () => client.destroy()).pipe(client);
  });
  forwarding.listen(0, "127.0.0.1");
  await once(forwarding, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (forwarding.address());
  const browser = await launch("--no-proxy-server");
  try {
    const page = await browser.newPage();
    for (const host of ["localhost", "127.0.0.1"]) {
      await page.goto(`http://${host}:${port}/connections`);
      await page.locator("#connections").waitFor({ timeout: PATIENCE_MS });
      await page.goto(`http://${host}:${port}/runs`);
      await page.locator("#runs").waitFor({ timeout: PATIENCE_MS });
      const published = await page.evaluate(async () => (await fetch("/topics/wind", { method: "POST", body: "2" })).status);
      assert.equal(published, 201);
    }
  } finally {
    await browser.close();
    forwarding.close();
  }
});

test("nginx may come by a Unix socket of its own, and the owner by another", { timeout: STEP_MS_MAX }, async () => {
  const [, listen = "", own = "", trusted = ""] = /^    (listen = .*)\n    (listen_local = .*)\n    (trusted_proxies = .*)$/m.exec(await readDocument()) ?? [];
  const place = await folder("anemone-sockets-");
  // Another user does the work of nginx.
  await chmod(place, 0o755);
  const config = replaced([listen, own, trusted, `allow_hosts = ["${NAME}"]`, 'unix_mode = "666"'].join("\n"), [["/run/anemone", place]]);
  await writeFile(join(place, "anemone.toml"), `${config}\n[[topic]]\nname = "test-*"\npublish = "anyone"\n`);
  const other = start(["serve", "--config", join(place, "anemone.toml")]);
  try {
    await until("the server", () => /local on unix:/.test(other.output.join("")));
    const site = replaced(await deployed("nginx.conf"), [["http://127.0.0.1:8080", `http://unix:${place}/proxy.sock`]]);
    const proxy = await Proxy.start("nginx", ports, `${site}# 127.0.0.1:8080\n`);
    const all = await readInEachWay(proxy, "test-socket", async () => await publish(through(proxy), "test-socket", 0));
    await publish(through(proxy), "test-socket", 1);
    await haveRead(proxy, all, 1);
    assert.equal((await ask(through(proxy), "/connections")).status, 403);
    const list = await ask({ ...local(), socket: join(place, "anemone.sock") }, "/connections");
    assert.equal(list.status, 200);
    assert.match(list.text, new RegExp(VISITOR), "the clients of nginx, by their addresses");
    await Promise.all(all.map((reader) => reader.stop()));
    await proxy.remove();
  } finally {
    await kill(other);
    await remove(place);
  }
});

test("docs/DEPLOY.md shows these files, to the letter, and no others", async () => {
  const shown = [...(await readDocument()).matchAll(/^```[a-z]*\n(.*?)^```$/gms)].map(([, text]) => text);
  const files = await readdir(new URL("../../deploy/", import.meta.url));
  assert.deepEqual(shown.sort(), (await Promise.all(files.map(deployed))).sort());
});

const ANALYZE = "/usr/bin/systemd-analyze";
test("the systemd unit is one, and makes the directories of the configuration", async (t) => {
  const unit = await deployed("anemone.service");
  const config = await deployed("anemone.toml");
  const value = (/** @type {string} */ name) => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1];
  assert.match(config, new RegExp(`"unix:/run/${value("RuntimeDirectory")}/`));
  assert.match(unit, new RegExp(`^#WorkingDirectory=/var/lib/${value("StateDirectory")}$`, "m"));
  assert.match(config, new RegExp(`^dir = "/var/lib/${value("StateDirectory")}"$`, "m"));
  if (!existsSync(ANALYZE)) return t.skip(`there is no ${ANALYZE}`);
  const path = join(directory, "anemone.service");
  // As it is, and with the lines for a serial device and a home folder.
  const whole = unit.replaceAll(/^#([A-Z]\w+=)/gm, "$1");
  assert.notEqual(whole, unit);
  for (const text of [unit, whole]) {
    await writeFile(path, replaced(text, [["/usr/local/bin/anemone", BIN]]));
    const said = await output(ANALYZE, ["verify", path]);
    // It may have something to say of other units.
    assert.deepEqual((said.text + said.errors).split("\n").filter((line) => line.includes("anemone")), []);
  }
});

test("the page is live behind each, and breaks no rule of its own", { timeout: STEP_MS_MAX }, async () => {
  const demo = await serve("--demo", "--listen", "127.0.0.1:0", "--allow-host", NAME, "--trusted-proxy", "127.0.0.1");
  const browser = await launch(`--host-resolver-rules=MAP ${NAME} 127.0.0.1`, "--no-proxy-server", "--ignore-certificate-errors");
  try {
    for (const name of NAMES) {
      const proxy = await Proxy.start(name, { http: Number(new URL(demo.origin).port), tcp: ports.tcp });
      const page = await browser.newPage();
      /** @type {string[]} */
      const said = [];
      page.on("console", (message) => said.push(message.text()));
      page.on("pageerror", (error) => said.push(String(error)));
      await page.goto(`${proxy.origin}/transports`);
      await panesConnect(page);
      assert.equal(await page.evaluate(() => isSecureContext && crossOriginIsolated), true, name);
      assert.deepEqual(said, [], name);
      await page.close();
      await proxy.remove();
    }
  } finally {
    await browser.close();
    await kill(demo);
  }
});

test("a quiet stream outlives the patience of each, and a long poll is answered before", { timeout: 2 * STEP_MS_MAX }, async () => {
  for (let attempt = 2; ; attempt += 1) {
    assert.ok(quiet);
    const { topic, since, by } = quiet;
    const answered = await Promise.allSettled(by.map(({ asked }) => asked));
    // That much, and more than one of its heartbeats.
    await sleep(Math.max(0, since + PROXY_PATIENCE_MS + 5_000 - Date.now()));
    if (stalledAt > since && attempt < 4) {
      await endQuiet(quiet);
      quiet = await readQuietly(attempt);
      continue;
    }
    for (const [index, reply] of answered.entries()) {
      assert.ok(reply.status === "fulfilled", NAMES[index]);
      const { status, headers, text } = reply.value;
      assert.deepEqual([NAMES[index], status, headers["preference-applied"]], [NAMES[index], 200, "wait=50"]);
      assert.deepEqual(JSON.parse(text).events, []);
    }
    await publish(direct(), topic, 1);
    for (const { proxy, all } of by) {
      await haveRead(proxy, all, 1);
      for (const { transport, ends, problems } of all) assert.equal(ends, 0, `${proxy.name}, ${transport}: ${problems}`);
    }
    return;
  }
});
