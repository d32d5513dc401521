/** Chromium, as the client of tests/interop/run. */
import { text } from "node:stream/consumers";
import { launch } from "../e2e/support.js";
import { payload } from "./payload.js";

/** How long a case may take. */
const TIMEOUT_MS = 120_000;

/**
 * Runs in the page, beside `payload` and `stopServer`.
 * @param {{ url: string, test: import("./payload.js").Case, timeout: number }} arguments_
 */
async function exchange({ url, test, timeout }) {
  const socket = new WebSocket(url + test.path);
  socket.binaryType = "arraybuffer";
  /** @type {Promise<CloseEvent>} */
  const closed = new Promise((done, failed) => {
    socket.onclose = done;
    setTimeout(() => failed(new Error("not done in time")), timeout);
  });
  /** @type {Promise<never>} */
  const early = closed.then(({ code, reason }) => Promise.reject(new Error(`closed with ${code} ${reason}`)));
  early.catch(() => {});
  /** @param {"open" | "message"} kind */
  const next = (kind) => new Promise((done) => socket.addEventListener(kind, done, { once: true }));

  await Promise.race([next("open"), early]);
  const { extensions } = socket;
  for (const [kind, size] of test.messages) {
    const bytes = Reflect.get(globalThis, "payload")(kind, size);
    const message = kind === "text" ? new TextDecoder().decode(bytes) : bytes;
    const replied = next("message");
    socket.send(message);
    const reply = (await Promise.race([replied, early])).data;
    const received = reply instanceof ArrayBuffer ? new Uint8Array(reply) : reply;
    /** @type {(byte: number, at: number) => boolean} */
    const isReceived = (byte, at) => byte === received[at];
    const isSame = kind === "text" ? received === message : received.length === size && bytes.every(isReceived);
    if (!isSame) throw new Error(`${kind} of ${size} bytes came back changed`);
  }
  if (test.close.by === "client") socket.close(test.close.code ?? undefined, test.close.reason || undefined);
  else if (test.command !== null) socket.send(test.command);
  else if (test.bad === "big") socket.send(new Uint8Array((16 << 20) + 1));
  else if (test.bad === "stop") Reflect.get(globalThis, "stopServer")(test.pid);
  const { code, reason } = await closed;
  const verdict = await new Promise((done) => {
    if (!test.verdict) return done(undefined);
    new WebSocket(`${url}/verdict`).onmessage = ({ data }) => done(JSON.parse(data));
    setTimeout(done, timeout, "nothing");
  });
  return { code, reason, extensions, verdict };
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} url
 * @param {import("./payload.js").Case} test
 */
async function check(page, url, test) {
  const { code, reason, extensions, verdict } = await page.evaluate(exchange, { url, test, timeout: TIMEOUT_MS });
  const compression = !extensions ? "none" : extensions.includes("no_context_takeover") ? "message" : "context";
  if (compression !== test.compression) throw new Error(`agreed on ${extensions}`);
  if (code !== (test.close.code ?? 1005)) throw new Error(`close code ${code}`);
  if (test.close.by === "server" && reason !== (test.close.reason ?? reason)) throw new Error(`close reason ${reason}`);
  if (test.verdict && (verdict.code !== test.verdict.code || verdict.reason !== test.verdict.reason)) {
    throw new Error(`the server received ${JSON.stringify(verdict)}`);
  }
}

const url = String(process.argv[3]);
const browser = await launch("--ignore-certificate-errors");
try {
  const page = await browser.newPage();
  await page.addInitScript(`globalThis.payload = ${payload}`);
  await page.exposeFunction("stopServer", (/** @type {number} */ pid) => void process.kill(pid, "SIGTERM"));
  // Whatever it answers: what counts is that the page is of its origin.
  await page.goto(`${url.replace("ws", "http")}/clock`);
  for (const test of JSON.parse(await text(process.stdin))) {
    try {
      await check(page, url, test);
      console.log(`ok      ${test.name}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`FAILED  ${test.name}: ${error}`);
    }
  }
} finally {
  await browser.close();
}
