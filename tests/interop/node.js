/** The npm package `ws`, as the client or the server of tests/interop/run. */
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { WebSocket, WebSocketServer } from "ws";
import { payload } from "./payload.js";

/** How long a case may take. */
const TIMEOUT_MS = 120_000;
const TOO_MANY_BYTES = (16 << 20) + 1;
const COMPRESSIONS = {
  none: false,
  message: { threshold: 0, clientNoContextTakeover: true, serverNoContextTakeover: true },
  context: { threshold: 0 },
};

/** @param {string | undefined} extensions */
function compression(extensions) {
  if (!extensions) return "none";
  return extensions.includes("no_context_takeover") ? "message" : "context";
}

/**
 * What the peer closed with; 1006 when it did not.
 * @param {WebSocket} socket
 * @returns {Promise<{ code: number, reason: string }>}
 */
function closed(socket) {
  // What went wrong shows in how it is closed.
  socket.on("error", () => {});
  return new Promise((done) => {
    socket.on("close", (code, reason) => done({ code, reason: reason.toString() }));
  });
}

/**
 * @param {WebSocket} socket
 * @param {Buffer} payload
 * @param {boolean} binary
 */
async function sendFragments(socket, payload, binary) {
  socket.send(payload.subarray(0, 1), { binary, fin: false });
  for (const [from, to] of /** @type {const} */ ([[1, 1], [1, 127], [127, payload.length]])) {
    const pong = once(socket, "pong", { signal: AbortSignal.timeout(TIMEOUT_MS) });
    socket.ping(`before ${from}`);
    const [answer] = await pong;
    if (String(answer) !== `before ${from}`) throw new Error(`pong ${answer}`);
    socket.send(payload.subarray(from, to), { binary, fin: to === payload.length });
  }
}

/**
 * @param {WebSocket} socket
 * @param {string | null} bad
 */
function sendBad(socket, bad) {
  if (bad === "utf8") socket.send(Buffer.from([0x61, 0xff, 0x62]), { binary: false });
  if (bad === "big") socket.send(Buffer.alloc(TOO_MANY_BYTES));
}

/**
 * @param {string} url
 * @param {import("./payload.js").Case} test
 */
async function check(url, test) {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const socket = new WebSocket(url + test.path, { perMessageDeflate: COMPRESSIONS[test.compression] });
  const ended = closed(socket);
  /** @type {Promise<never>} */
  const early = ended.then(({ code, reason }) => Promise.reject(new Error(`closed with ${code} ${reason}`)));
  early.catch(() => {});
  try {
    const opened = once(socket, "open", { signal });
    const [response] = await Promise.race([once(socket, "upgrade", { signal }), early]);
    await opened;
    const extensions = response.headers["sec-websocket-extensions"];
    if (compression(extensions) !== test.compression) throw new Error(`agreed on ${extensions}`);
    for (const [kind, size] of test.messages) {
      const message = Buffer.from(payload(kind, size));
      const replied = once(socket, "message", { signal });
      if (test.fragmented) await sendFragments(socket, message, kind === "binary");
      else socket.send(message, { binary: kind === "binary" });
      const [reply, isBinary] = await Promise.race([replied, early]);
      if (isBinary !== (kind === "binary") || !message.equals(reply)) {
        throw new Error(`${kind} of ${size} bytes came back changed`);
      }
    }
    const { close } = test;
    if (close.by === "client") {
      socket.close(close.code ?? undefined, close.reason);
    } else {
      if (test.command !== null) socket.send(test.command);
      if (test.bad === "stop") process.kill(Number(test.pid), "SIGTERM");
      else sendBad(socket, test.bad);
    }
    const late = once(signal, "abort").then(() => ({ code: "none in time", reason: "" }));
    const received = await Promise.race([ended, late]);
    if (received.code !== (close.code ?? 1005)) throw new Error(`close code ${received.code}`);
    if (close.by === "server" && received.reason !== (close.reason ?? received.reason)) {
      throw new Error(`close reason ${received.reason}`);
    }
  } finally {
    socket.terminate();
  }
  if (test.verdict) {
    const socket = new WebSocket(`${url}/verdict`);
    const [verdict] = await once(socket, "message", { signal });
    const { code, reason } = JSON.parse(String(verdict));
    if (code !== test.verdict.code || reason !== test.verdict.reason) {
      throw new Error(`the server received ${verdict}`);
    }
  }
}

/** @param {string} url */
async function client(url) {
  for (const test of JSON.parse(await text(process.stdin))) {
    try {
      await check(url, test);
      console.log(`ok      ${test.name}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`FAILED  ${test.name}: ${error}`);
    }
  }
}

function server() {
  const listener = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: { threshold: 0 } });
  /** What the last connection was closed with. */
  let verdict = Promise.resolve({});
  let extensions = "";
  listener.on("headers", (headers) => {
    extensions = headers.find((header) => /^sec-websocket-extensions:/i.test(header)) ?? "";
  });
  listener.on("connection", async (socket, request) => {
    const path = request.url;
    if (path === "/verdict") {
      socket.send(JSON.stringify(await verdict));
      return;
    }
    const agreed = { compression: compression(extensions) };
    verdict = closed(socket).then((received) => ({ ...received, ...agreed }));
    socket.on("message", (/** @type {Buffer} */ message, binary) => {
      if (path === "/fragments") void sendFragments(socket, message, binary);
      else if (path === "/close") {
        const [code, ...reason] = message.toString().split(" ");
        socket.close(code ? Number(code) : undefined, reason.join(" "));
      } else if (path === "/bad") sendBad(socket, message.toString());
      else socket.send(message, { binary });
    });
  });
  listener.on("listening", () => {
    const address = /** @type {import("node:net").AddressInfo} */ (listener.address());
    console.log(`listening on ws://127.0.0.1:${address.port}`);
  });
}

const [, , role, url] = process.argv;
if (role === "client") await client(String(url));
else server();
