/**
 * `nc` reads: NDJSON by a request of HTTP written by hand, and `anemone.v1` over TCP with `printf` for the lengths.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and OpenBSD's nc.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { lines, readOn, told } from "./programs.js";
import { folder, kill, numbersTo, ownAddress, publish, remove, serve } from "./support.js";

const STEP_MS_MAX = 300_000;
const EVENTS = 300;

/** @type {string} */ let data;
/** @type {import("./support.js").Server} */ let server;

before(async () => {
  data = await folder("anemone-nc-");
  await restart(await ownAddress(), await ownAddress());
});

after(async () => {
  await kill(server);
  await remove(data);
});

async function restart(listen = new URL(server.origin).host, tcp = String(server.tcp)) {
  await kill(server);
  server = await serve("--demo", "--data", data, "--listen", listen, "--tcp", tcp);
}

/**
 * Reads while others publish and the server is killed once.
 * @param {string} path
 * @param {() => Promise<{ numbers: number[], runs: number }>} read
 */
async function everythingComesOnce(path, read) {
  const topic = `${server.origin}${path}`;
  await publish(topic, 1, 1);
  const reading = read();
  await publish(topic, 2, EVENTS / 2);
  const published = publish(topic, EVENTS / 2 + 1, EVENTS);
  await restart();
  const [{ numbers, runs }] = await Promise.all([reading, published]);
  assert.deepEqual(numbers, numbersTo(EVENTS));
  assert.ok(runs > 2, `${runs} runs`);
}

test("nc reads NDJSON, cut off again and again", { timeout: STEP_MS_MAX }, async () => {
  const path = "/topics/scratch-lines";
  const { hostname, port, host } = new URL(server.origin);
  await everythingComesOnce(path, () =>
    readOn(
      (after) => ({
        command: "nc",
        args: [hostname, port],
        input: `GET ${path}?after=${after} HTTP/1.1\r\nHost: ${host}\r\nAccept: application/x-ndjson\r\n\r\n`,
      }),
      // The head and the framing of chunks end with CR LF, the lines of the stream with LF.
      () => lines((line) => (line.endsWith("\r") ? [] : told(line))),
      EVENTS,
    ),
  );
});

/**
 * A line for `sh` that says a message after its length and then listens.
 * @param {string} message
 */
function saying(message) {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(message));
  const octal = [...length].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  return `printf '${octal}%s' '${message}' | nc ${String(server.tcp).replace(":", " ")}`;
}

/** Messages after their lengths; what is cut off is none. */
function messages() {
  let rest = Buffer.alloc(0);
  return (/** @type {Buffer} */ chunk) => {
    rest = Buffer.concat([rest, chunk]);
    /** @type {import("./programs.js").Told[]} */
    const all = [];
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE()) {
      const end = 4 + rest.readUInt32BE();
      all.push(message(rest.toString("utf8", 4, end)));
      rest = rest.subarray(end);
    }
    return all;
  };
}

/** @param {string} text */
function message(text) {
  const [line, payload] = text.split("\n");
  const [status, id, position, time] = String(line).split(" ");
  assert.ok(id === "r" && position && ["100", "206"].includes(String(status)), text);
  assert.equal(Number(time) > 1.7e12, status === "206", text);
  return { position, ...(payload && { n: JSON.parse(payload).n }) };
}

test("nc reads over TCP, cut off again and again", { timeout: STEP_MS_MAX }, async () => {
  const path = "/topics/scratch-tcp";
  await everythingComesOnce(path, () =>
    readOn(
      (after) => ({ command: "sh", args: ["-c", saying(`GET r ${path}?after=${after}`)] }),
      messages,
      EVENTS,
    ),
  );
});
