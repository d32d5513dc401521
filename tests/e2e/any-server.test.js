/**
 * `anemone lab` at a server that is not Anemone: what a file describes is measured, and what lies, closes, stalls or fails is counted
 * by its kind and is no part of any figure.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { folder, remove, start } from "./support.js";

const STEP_MS_MAX = 300_000;
const HEARTBEAT_MS = 50;
/** The lab mostly waits, so it runs several times at once. */
const AT_ONCE = { concurrency: 3 };

/** @type {string} */ let directory;
/** @type {import("node:http").Server} */ let server;
/** @type {string} */ let origin;
/** The events, the number of the first being 1. */
/** @type {string[]} */ const events = [];
/** What waits for the next event. @type {Set<() => void>} */
const waiting = new Set();
let halves = 0;
let runs = 0;

/** @param {import("node:http").IncomingMessage} request */
async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

/**
 * Passes each event that comes from now on, until the peer is gone.
 * @param {import("node:events").EventEmitter} peer
 * @param {(event: string) => void} pass
 */
function follow(peer, pass) {
  let next = events.length;
  const wake = () => {
    for (; next < events.length; next += 1) pass(String(events[next]));
  };
  waiting.add(wake);
  peer.on("close", () => waiting.delete(wake));
}

/**
 * @param {import("node:http").IncomingMessage} request
 * @param {import("node:http").ServerResponse} response
 */
async function answer(request, response) {
  const url = new URL(String(request.url), origin);
  const page = (/** @type {number} */ since) => response.end(JSON.stringify({ cursor: events.length, items: events.slice(since).map((event) => ({ payload: JSON.parse(event) })) }));
  if (url.pathname === "/echo") return void response.end(await bodyOf(request));
  if (url.pathname === "/publish") {
    events.push(String(await bodyOf(request)));
    waiting.forEach((wake) => wake());
    return void response.writeHead(204).end();
  }
  if (url.pathname === "/sse") {
    // Without chunks: such a stream ends with its connection.
    response.useChunkedEncodingByDefault = false;
    response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
    return follow(response, (event) => response.write(`event: wind\ndata: ${event}\n\n`));
  }
  if (url.pathname === "/heartbeats") {
    response.writeHead(200).flushHeaders();
    const timer = setInterval(() => response.write(":\n\n"), HEARTBEAT_MS);
    return void response.on("close", () => clearInterval(timer));
  }
  if (url.pathname === "/lines") {
    response.writeHead(200).flushHeaders();
    return follow(response, (event) => response.write(`${event}\n`));
  }
  if (url.pathname === "/poll") {
    const since = url.searchParams.get("since") === "new" ? events.length : Number(url.searchParams.get("since"));
    if (!url.searchParams.has("wait") || since < events.length) return void page(since);
    const wake = () => {
      waiting.delete(wake);
      page(since);
    };
    waiting.add(wake);
    return void response.on("close", () => waiting.delete(wake));
  }
  if (url.pathname === "/silent") return;
  if (url.pathname === "/half" && (halves += 1) % 2 === 0) return void response.writeHead(500).end("no");
  response.end("fine");
}

before(async () => {
  directory = await folder("anemone-any-");
  server = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  origin = `http://127.0.0.1:${port}`;
  const sockets = new WebSocketServer({ server, perMessageDeflate: false, maxPayload: 64 << 20 });
  sockets.on("connection", (socket, request) => {
    if (request.url === "/events") return follow(socket, (event) => socket.send(event));
    if (request.url === "/heartbeats") {
      const timer = setInterval(() => socket.ping("a".repeat(100)), HEARTBEAT_MS);
      return void socket.on("close", () => clearInterval(timer));
    }
    let count = 0;
    socket.on("message", (data, isBinary) => {
      count += 1;
      const bytes = /** @type {Buffer} */ (data);
      if (request.url === "/wrong") bytes[0] = Number(bytes[0]) ^ 1;
      if (request.url === "/closes" && count > 2) return socket.terminate();
      socket.send(request.url === "/short" ? bytes.subarray(1) : bytes, { binary: isBinary });
    });
  });
});

after(async () => {
  server.close();
  server.closeAllConnections();
  await remove(directory);
});

/** @typedef {{ case: string, contender: string, quantity: string, rounds: (number | null)[], expected: number, received: number, faults: Record<string, number> }} Series */

/**
 * Runs an experiment at the server that a file describes.
 * @param {string} experiment
 * @param {string} description
 * @param {string[]} args
 * @returns {Promise<{ report: { answer: string, invalid: string | null, series: Series[] }, said: string }>}
 */
async function lab(experiment, description, ...args) {
  const own = join(directory, String((runs += 1)));
  await mkdir(own);
  const file = join(own, "target.toml");
  await writeFile(file, `url = "${origin}"\n${description}`);
  const program = start(["lab", experiment, "--quick", "--target", file, "--out", own, ...args]);
  // By then all that it said is read, too.
  await once(program.process, "close");
  const said = program.output.join("");
  const report = JSON.parse(await readFile(join(own, `${experiment}.json`), "utf8"));
  assert.equal(program.process.exitCode, report.invalid === null ? 0 : 12, said);
  return { report, said };
}

const POLL = 'first = "new"\nnext = "/cursor"\nevents = "/items"\ndata = "/payload"\n';
const STREAM =
  '[stream]\npublish = "/publish"\nwebsocket = "/events"\nsse = "/sse"\nndjson = "/lines"\n' +
  `[stream.poll]\npath = "/poll?since={after}"\n${POLL}[stream.long_poll]\npath = "/poll?since={after}&wait=1"\n${POLL}`;

describe("a server that is not Anemone", AT_ONCE, () => {
  test("a stream of another server is read in each of its ways", { timeout: STEP_MS_MAX }, async () => {
    // The lab waits for its readers to connect by the delay of the link: this gives a busy machine time.
    const { report, said } = await lab("wind", STREAM, "--link", "delay=200ms");
    assert.deepEqual(report.series.map(({ contender }) => contender), ["WebSocket", "SSE", "NDJSON", "long poll", "poll"], said);
    for (const { contender, rounds, expected, received, faults } of report.series) {
      assert.deepEqual([received, faults], [expected, {}], `${contender}: ${said}`);
      assert.ok(rounds.every((latency) => Number(latency) >= 200), `${contender}: ${rounds}`);
    }
  });

  test("an echo by HTTP alone is measured by sizes", { timeout: STEP_MS_MAX }, async () => {
    const { report, said } = await lab("sizes", '[echo]\nhttp = "/echo"\n', "--rounds", "1");
    assert.match(report.answer, /^The file has no websocket in \[echo\], so there is nothing to compare HTTP with\. Over new connections, HTTP takes [\d.]+ to /);
    assert.deepEqual([...new Set(report.series.map(({ contender }) => contender))], ["HTTP", "HTTP, new connections"], said);
  });

  test("the echoes and the answer of another server are measured", { timeout: STEP_MS_MAX }, async () => {
    for (const experiment of ["sizes", "connect", "overhead"]) {
      const { report, said } = await lab(experiment, 'get = "/hello"\n[echo]\nwebsocket = "/"\nhttp = "/echo"\n', "--rounds", "1");
      for (const { contender, expected, received, faults } of report.series) assert.deepEqual([received, faults], [expected, {}], `${experiment}, ${contender}: ${said}`);
    }
  });

  for (const { path, kind } of [
    { path: "/wrong", kind: "wrong" },
    { path: "/short", kind: "wrong" },
    { path: "/closes", kind: "closed" },
  ]) {
    test(`an echo at ${path} is counted as ${kind}, and is no latency`, { timeout: STEP_MS_MAX }, async () => {
      const { report, said } = await lab("echo", `[echo]\nwebsocket = "${path}"\n`, "--rounds", "1");
      assert.match(String(report.invalid), /of \d+ came/);
      for (const { contender, faults, rounds } of report.series) {
        assert.deepEqual(faults, { [kind]: 1 }, `${contender}: ${said}`);
        if (path !== "/closes") assert.deepEqual(rounds, [null], said);
      }
      assert.match(said, kind === "wrong" ? /wrong reply: 1/ : /closed by the server: 1/);
    });
  }

  test("answers of 500 to half are refusals beside the latency of the others", { timeout: STEP_MS_MAX }, async () => {
    const { report, said } = await lab("connect", 'get = "/half"\n[echo]\nwebsocket = "/"\n', "--rounds", "1");
    const http = report.series.find(({ contender }) => contender === "HTTP");
    assert.deepEqual([http?.expected, http?.received, http?.faults], [10, 5, { refused: 5 }], said);
    assert.ok(Number(http?.rounds[0]) > 0, said);
    assert.match(String(report.invalid), /HTTP .* 5 of 10 came/);
  });

  test("a server that is silent is waited for once, and is told so", { timeout: STEP_MS_MAX }, async () => {
    const { report, said } = await lab("connect", 'get = "/silent"\n[echo]\nwebsocket = "/"\n', "--rounds", "3");
    const http = report.series.find(({ contender }) => contender === "HTTP");
    assert.deepEqual([http?.received, http?.faults, http?.rounds], [0, { stalled: 1 }, [null, null, null]], said);
    assert.match(said, /nothing came in time: 1/);
  });

  test("streams on which only heartbeats come are told so, and make no wait longer", { timeout: STEP_MS_MAX }, async () => {
    // Without --quick, nobody would publish for five minutes: all readers have ended long before.
    const file = join(directory, "heartbeats.toml");
    await writeFile(file, `url = "${origin}"\n[stream]\npublish = "/ignored"\nwebsocket = "/heartbeats"\nsse = "/heartbeats"\n`);
    const program = start(["lab", "wind", "--target", file]);
    await once(program.process, "close");
    const said = program.output.join("");
    assert.equal(program.process.exitCode, 12, said);
    for (const name of ["websocket", "sse"]) assert.ok(said.includes(`[stream] ${name}: only heartbeats came within 3 s`), said);
    for (const name of ["WebSocket", "SSE"]) assert.ok(said.includes(`4 events a second, ${name}: only heartbeats came within 10 s`), said);
    assert.doesNotMatch(said, /1,?200 events/);
  });

  test("what a file does not have, and what only Anemone has, is told", { timeout: STEP_MS_MAX }, async () => {
    const file = join(directory, "poor.toml");
    await writeFile(file, `url = "${origin}"\n`);
    for (const [experiment, words] of [["echo", "the file has no websocket in [echo]"], ["wind", "the file has no [stream]"], ["progress", "only an Anemone server has"]]) {
      const program = start(["lab", String(experiment), "--quick", "--target", file]);
      await once(program.process, "close");
      assert.equal(program.process.exitCode, 2);
      assert.ok(program.output.join("").includes(String(words)), program.output.join(""));
    }
  });
});
