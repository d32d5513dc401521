/**
 * An HTTP server in front of a real one that asks for a token and ends what is open when the token expires. Everything else that it is
 * asked for, the files of the client above all, needs none.
 */
import { once } from "node:events";
import { createServer, request as forward } from "node:http";

/** The paths that need a token. */
const GUARDED = /^\/(topics|runs|messages|ws|who)\b/;

export class Gate {
  /** The number of tokens that were issued. */
  issued = 0;
  /** The requests that were refused. */
  refused = 0;
  /** The WebSocket handshakes that were refused. */
  upgrades = 0;
  /** The replies that ended since their token had expired. */
  ended = 0;
  /** No token is valid. */
  isShut = false;
  #valid = "";
  /** @type {Set<import("node:http").ServerResponse>} replies that go on */
  #open = new Set();
  #server;
  #target;

  /** @param {string} target the origin of the server */
  constructor(target) {
    this.#target = new URL(target);
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#server.on("upgrade", (_, socket) => {
      this.upgrades += 1;
      socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
  }

  /** @param {string} target */
  static async start(target) {
    const gate = new Gate(target);
    gate.#server.listen(0, "127.0.0.1");
    await once(gate.#server, "listening");
    return gate;
  }

  get origin() {
    const { port } = /** @type {import("node:net").AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${port}`;
  }

  /** Returns a token, the only one that is valid from now on. */
  issue() {
    this.issued += 1;
    return (this.#valid = `token-${this.issued}`);
  }

  /** Makes the token invalid, and cuts the replies that it has opened, in the middle of whatever they say. */
  expire() {
    this.#valid = "";
    for (const response of this.#open) {
      this.ended += 1;
      response.destroy();
    }
  }

  async stop() {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  /**
   * @param {import("node:http").IncomingMessage} request
   * @param {import("node:http").ServerResponse} response
   */
  #answer(request, response) {
    const { pathname } = new URL(String(request.url), this.origin);
    if (pathname === "/token") return void response.end(this.issue());
    const { authorization, ...headers } = request.headers;
    const isGuarded = GUARDED.test(pathname);
    if (isGuarded && (this.isShut || this.#valid === "" || authorization !== `Bearer ${this.#valid}`)) {
      this.refused += 1;
      request.resume();
      response.writeHead(401, { "content-type": "application/problem+json", "www-authenticate": "Bearer" });
      return void response.end('{"type":"/problems/unauthorized","status":401,"detail":"the token is not valid"}');
    }
    const { hostname, port } = this.#target;
    const asked = forward({ hostname, port, path: request.url, method: request.method, headers: { ...headers, host: this.#target.host } }, (reply) => {
      response.writeHead(Number(reply.statusCode), reply.headers);
      response.flushHeaders();
      reply.pipe(response);
    });
    asked.on("error", () => response.destroy());
    if (isGuarded) this.#open.add(response);
    response.on("close", () => {
      this.#open.delete(response);
      asked.destroy();
    });
    request.pipe(asked);
  }
}
