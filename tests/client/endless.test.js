/** Answers without an end: none of them fills the memory, whatever asks and whichever way they come. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after } from "node:test";
import { WebSocket } from "ws";
import { connect } from "../../clients/js/src/client.js";
import { fake, test } from "./fakes.js";

/** What is on its way when a client has had enough: buffers of both ends. */
const ON_ITS_WAY = 32 * 2 ** 20;
const REPLY_BYTES_MAX = 2 ** 25;
const PIECE = Buffer.alloc(2 ** 20, "x");

/**
 * Starts a server that answers everything with a body that goes on until its connection ends.
 * @param {number} status
 * @param {string} type
 */
async function endless(status, type) {
  let written = 0;
  /** @type {Set<Promise<unknown>>} */
  const answers = new Set();
  const server = createServer((_, response) => {
    const isOver = once(response, "close");
    answers.add(isOver);
    response.writeHead(status, { "content-type": type });
    const write = () => {
      while (!response.closed && !response.destroyed) {
        written += PIECE.length;
        if (!response.write(PIECE)) return void response.once("drain", write);
      }
    };
    write();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  // Each connection is ended by the client, so what is written then is all that there will be.
  return { origin: `http://127.0.0.1:${port}`, written: async () => (await Promise.all(answers), written), asked: () => answers.size };
}

/** @typedef {import("../../clients/js/src/client.js").Client} Client */
/** @type {[string, number, string, string, (client: Client) => Promise<unknown>][]} */
const WAYS = [
  ["a call", 200, "application/json", "protocol", (client) => client.call("GET", "/x")],
  ["a call for bytes", 200, "application/octet-stream", "protocol", (client) => client.call("GET", "/x")],
  ["a refusal", 404, "application/problem+json", "foreign", (client) => client.call("GET", "/x")],
  ["one item", 200, "application/json", "protocol", (client) => client.items("GET", "/x").next()],
  ["items", 200, "application/x-ndjson", "protocol", (client) => client.items("GET", "/x").next()],
];

test("a reply without an end is a fault, and read no further than to its bound", async () => {
  for (const [name, status, type, code, ask] of WAYS) {
    const { origin, written, asked } = await endless(status, type);
    const client = connect(origin, { transports: ["poll"], random: () => 0.01 });
    await assert.rejects(() => ask(client), { name: "AnemoneError", code }, name);
    assert.ok((await written()) <= REPLY_BYTES_MAX + ON_ITS_WAY, `${name}: ${await written()}`);
    assert.equal(asked(), 1, `${name}: it is not asked for again`);
    client.close();
  }
});

test("a page, and a line of a stream, without an end is told, and read no further than to its bound", async () => {
  for (const [transport, type] of /** @type {const} */ ([["poll", "application/json"], ["ndjson", "application/x-ndjson"], ["sse", "text/event-stream"]])) {
    const { origin, written } = await endless(200, type);
    const client = connect(origin, { transports: [transport] });
    const error = new Promise((resolve) => (client.onerror = resolve));
    client.topic("t", { after: "e-1" });
    assert.equal((await error).code, "protocol", transport);
    client.close();
    assert.ok((await written()) <= REPLY_BYTES_MAX + ON_ITS_WAY, `${transport}: ${await written()}`);
  }
});

test("a multiplexed reply in parts without an end is a fault, and cancelled", async () => {
  const part = "x".repeat(2 ** 20);
  let parts = 0;
  /** @type {string[]} */
  const heard = [];
  const { origin } = await fake(() => ({}), {
    onMessage: (say, message, socket) => {
      const [method = "", id] = message.split(" ");
      heard.push(method);
      const more = () => {
        if (heard.includes("CANCEL") || socket.readyState !== socket.OPEN) return;
        parts += 1;
        socket.send(`206 ${id}\n${part}`, more);
      };
      if (method === "GET") more();
      else say(`204 ${id}`);
    },
  });
  const client = connect(origin, { WebSocket, transports: ["mux"] });
  await assert.rejects(() => client.call("GET", "/x"), { name: "AnemoneError", code: "protocol" });
  client.close();
  assert.ok(heard.includes("CANCEL") || parts * part.length <= REPLY_BYTES_MAX + ON_ITS_WAY, `${parts} parts`);
});
