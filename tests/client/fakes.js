/** Servers that say what a test wants: over HTTP, and over WebSockets with `anemone.v1`. */
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test as nodeTest } from "node:test";
import { WebSocketServer } from "ws";
import { PATIENCE_MS } from "../e2e/support.js";

/**
 * @typedef {{ status?: number, headers?: Record<string, string>, body?: unknown, isOpen?: boolean, isCut?: boolean, isSilent?: boolean }} Answer `isOpen`: the reply goes on; `isSilent`: none comes
 * @typedef {(request: import("node:http").IncomingMessage, body: string) => Answer | undefined} Answerer undefined: the connection is cut
 * @typedef {(say: (text: string) => void, message: string, socket: import("ws").WebSocket) => void} OnMessage
 */

/**
 * Declares a test that fails by its name if it waits for what does not come.
 * @param {string} name
 * @param {(context: import("node:test").TestContext) => unknown} run
 */
export function test(name, run) {
  return nodeTest(name, { timeout: 2 * PATIENCE_MS }, async (context) => void (await run(context)));
}

/**
 * Starts a server, which ends with the tests of the file.
 * @param {Answerer} answer
 * @param {{ onMessage?: OnMessage, subprotocol?: string }} [sockets] without them, no WebSocket opens
 */
export async function fake(answer, { onMessage, subprotocol = "anemone.v1" } = {}) {
  /** @type {string[]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    asked.push(`${request.method} ${request.url}`);
    const said = answer(request, text);
    if (!said) return void request.socket.destroy();
    const { status = 200, headers = {}, body = "", isOpen, isCut, isSilent } = said;
    if (isSilent) return;
    const isText = typeof body === "string";
    response.writeHead(status, { "content-type": isText ? "text/html" : "application/json", ...headers });
    response.write(isText ? body : JSON.stringify(body));
    if (isCut) setImmediate(() => request.socket.destroy());
    else if (!isOpen) response.end();
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => subprotocol });
  server.on("upgrade", (request, socket, head) => {
    asked.push(`UPGRADE ${request.url}`);
    if (!onMessage) return void socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (client) => {
      client.on("message", (data) => onMessage((words) => client.send(words), String(data), client));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  after(() => {
    server.close();
    server.closeAllConnections();
    for (const client of sockets.clients) client.terminate();
  });
  return { origin: `http://127.0.0.1:${address.port}`, asked };
}

/**
 * @param {string} name
 * @param {number} status
 * @param {string} detail
 * @param {Record<string, string>} [headers]
 * @returns {Answer}
 */
export function problem(name, status, detail, headers) {
  return { status, headers: { "content-type": "application/problem+json", ...headers }, body: { type: `/problems/${name}`, status, detail } };
}

/**
 * @param {string} next
 * @param {number[]} offsets
 * @param {object} [more]
 * @returns {Answer}
 */
export function page(next, offsets, more) {
  const epoch = next.slice(0, next.lastIndexOf("-"));
  const events = offsets.map((offset) => ({ offset, time: offset * 250, data: { n: offset } }));
  return { body: { epoch, first: 1, next, ...more, events } };
}
