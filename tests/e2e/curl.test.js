/**
 * `curl` publishes and reads, over HTTP/1.1 and HTTP/2, and is cut off again and again; so is the server, once for each.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and curl 7.82.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { lines, output, readOn, told } from "./programs.js";
import { folder, kill, numbersTo, ownAddress, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const EVENTS = 100;
const QUIETLY = ["--silent", "--show-error", "--noproxy", "*"];

/** @typedef {{ version: string, curl: string[], serve: string[] }} Protocol */
/** @type {Protocol[]} */
const PROTOCOLS = [
  { version: "1.1", curl: ["--http1.1"], serve: [] },
  { version: "2", curl: ["--http2", "--insecure"], serve: ["--tls-dev"] },
];

for (const protocol of PROTOCOLS) {
  describe(`HTTP/${protocol.version}`, () => {
    /** @type {string} */ let data;
    /** @type {import("./support.js").Server} */ let server;

    before(async () => {
      data = await folder("anemone-curl-");
      await restart(await ownAddress());
    });

    after(async () => {
      await kill(server);
      await remove(data);
    });

    async function restart(listen = new URL(server.origin).host) {
      await kill(server);
      server = await serve("--demo", "--data", data, "--listen", listen, ...protocol.serve);
    }

    /** @param {string[]} args */
    const curl = (...args) => [...QUIETLY, ...protocol.curl, ...args];

    /**
     * Publishes one event after the other with `curl --json`, until each is acknowledged.
     * @param {string} topic
     * @param {number} first
     * @param {number} last
     */
    async function publish(topic, first, last) {
      for (let n = first; n <= last; n += 1) {
        await until(`event ${n} to be published`, async () => {
          const args = ["--json", `{"n":${n}}`, "--header", `Idempotency-Key: event-${n}`];
          const told = ["--write-out", "%{http_code} %{http_version}\n"];
          const { text, status } = await output("curl", curl(...args, ...told, topic));
          if (status !== 0) return false;
          const [reply, said] = text.trimEnd().split("\n");
          assert.ok([`201 ${protocol.version}`, `200 ${protocol.version}`].includes(String(said)), text);
          assert.match(JSON.parse(String(reply)).position, new RegExp(`-${n}$`), "each is published once");
          return true;
        });
      }
    }

    /**
     * @param {string} way
     * @param {(topic: string) => Promise<{ numbers: number[], runs: number }>} read
     */
    function reads(way, read) {
      test(`${way}: everything once`, { timeout: STEP_MS_MAX }, async () => {
        const topic = `${server.origin}/topics/scratch-${way.toLowerCase().replaceAll(" ", "-")}`;
        await publish(topic, 1, 1);
        const reading = read(topic);
        await publish(topic, 2, EVENTS / 2);
        const published = publish(topic, EVENTS / 2 + 1, EVENTS);
        await restart();
        const [{ numbers, runs }] = await Promise.all([reading, published]);
        assert.deepEqual(numbers, numbersTo(EVENTS));
        assert.ok(runs > 2, `${runs} runs`);
      });
    }

    /**
     * One page after the other, each with a curl of its own.
     * @param {string[]} fields
     */
    const pages = (...fields) => (/** @type {string} */ topic) =>
      readOn(
        (after) => ({ command: "curl", args: curl(...fields, `${topic}?after=${after}&limit=7`) }),
        () => {
          let text = "";
          return (chunk) => {
            text += chunk;
            // A page ends with its line.
            return text.endsWith("\n") ? page(JSON.parse(text)) : [];
          };
        },
        EVENTS,
      );

    /** @param {any} page */
    function page({ gap, epoch, next, events }) {
      assert.equal(gap, undefined);
      return [...events.map((/** @type {any} */ { offset, data }) => ({ position: `${epoch}-${offset}`, n: data.n })), { position: next }];
    }

    /**
     * @param {string} accept
     * @param {(after: string) => string[]} begin
     * @param {() => (line: string) => import("./programs.js").Told[]} parser what a line of the body tells
     */
    const stream = (accept, begin, parser) => (/** @type {string} */ topic) =>
      readOn(
        (after) => ({
          command: "curl",
          args: curl("--no-buffer", "--include", "--header", `Accept: ${accept}`, ...begin(after), topic),
        }),
        () => {
          const parse = parser();
          let [isHead, isFirst] = [true, true];
          return lines((line) => {
            if (isFirst) assert.match(line, new RegExp(`^HTTP/${protocol.version} 200`));
            isFirst = false;
            if (!isHead) return parse(line);
            isHead = line !== "\r";
            return [];
          });
        },
        EVENTS,
      );

    reads("poll", pages());
    reads("long poll", pages("--header", "Prefer: wait=20"));
    reads(
      "NDJSON",
      stream(
        "application/x-ndjson",
        (after) => ["--get", "--data", `after=${after}`],
        () => told,
      ),
    );
    reads(
      "SSE",
      stream(
        "text/event-stream",
        (after) => ["--header", `Last-Event-ID: ${after}`],
        () => {
          /** @type {Record<string, string>} */
          let block = {};
          return (line) => {
            const [name, value] = line.split(/: ?(.*)/);
            if (line !== "") {
              block[String(name)] = String(value);
              return [];
            }
            const { id, data, event } = block;
            block = {};
            assert.equal(event, undefined, data);
            return id ? [{ position: id, ...(data && { n: JSON.parse(data).n }) }] : [];
          };
        },
      ),
    );
  });
}
