/** Examines the way from this browser to its server: what holds streams back, cuts quiet connections, or lets no WebSocket through. */
import { browser } from "../../transport/environment.js";
import { at } from "../site.js";

/** A beginning that is not there after this time is held back: the server sends it at once. */
const BEGIN_MS_MAX = 8000;
const ANSWER_MS_MAX = 20_000;
/** A stream that is cut after this time without a byte was held back; one that is cut sooner was refused. */
const HELD_MS_MIN = 1000;
/** More streams at once than browsers open to a server over HTTP/1.1. */
const STREAMS = 8;
const BROWSER_CONNECTIONS = 6;
/** Polls until one of them has waited, and the time after which it has. */
const POLLS = 5;
const WAITED_MS_MIN = 900;
/** A server that answers more polls in a time has not waited. */
const ANSWERS_MAX = 100;
/** A stream is not silent for longer: the server sends a heartbeat each 15 s, or as often as it is set to. */
const HEARTBEAT_MS_MAX = 20_000;
/** The index: every server has it, and its readers get a beginning at once. */
const INDEX = "topics/$topics?after=latest";
const SUBPROTOCOL = "anemone.v1";

/** @typedef {"good" | "fault" | "note" | "unknown"} State */
/** @typedef {{ name: string, state: State, words: string, fault?: string }} Finding `fault` is the key of its settings */

/** @type {(name: string, words: string) => Finding} */
const good = (name, words) => ({ name, state: "good", words });
/** @type {(name: string, fault: string, words: string) => Finding} */
const wrong = (name, fault, words) => ({ name, state: "fault", words, fault });

/**
 * Makes all examinations, and tells each finding as soon as it is there.
 * @param {{ waitMs: number, signal: AbortSignal, onFinding: (finding: Finding) => void }} settings
 */
export async function examine({ waitMs, signal, onFinding }) {
  const exams = [keepAlive, cache, () => stream("SSE", "text/event-stream", signal), () => stream("NDJSON", "application/x-ndjson", signal), webSocket, origin, () => connections(signal), () => silence(waitMs, signal)];
  for (const exam of exams) {
    if (signal.aborted) return;
    onFinding(await exam());
  }
}

/**
 * The program that answers, by the name that it gives itself.
 * @param {readonly { name: string, mark: string }[]} programs
 */
export async function programOf(programs) {
  const reply = await ask("health").catch(() => null);
  const fields = `${reply?.headers.get("server") ?? ""} ${reply?.headers.get("via") ?? ""}`.toLowerCase();
  return programs.find(({ mark }) => mark !== "" && fields.includes(mark))?.name;
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function ask(path, init) {
  return await browser.fetch(at(path), { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS_MAX), ...init });
}

/** What the browser noted of its last request for a path. @param {string} path */
function timingOf(path) {
  const entries = performance.getEntriesByName(at(path), "resource");
  return /** @type {PerformanceResourceTiming | undefined} */ (entries.at(-1));
}

async function keepAlive() {
  const paths = [1, 2, 3].map((count) => `health?doctor=${count}-${Date.now()}`);
  for (const path of paths) await (await ask(path).catch(() => null))?.arrayBuffer();
  const timings = paths.slice(1).map(timingOf);
  if (timings.some((timing) => timing === undefined || timing.nextHopProtocol === "")) return /** @type {Finding} */ ({ name: "keep-alive", state: "unknown", words: "this browser does not tell" });
  const isOpened = timings.every((timing) => timing && timing.connectEnd > timing.connectStart);
  const protocol = timings[0]?.nextHopProtocol;
  return isOpened ? wrong("keep-alive", "keep-alive", "the connection is closed after each answer, so every poll and every call opens another one") : good("keep-alive", `requests share a connection (${protocol})`);
}

/**
 * Opens a stream, and waits for its beginning. The caller aborts it.
 * @param {string} type
 * @param {AbortSignal} signal
 * @returns {Promise<{ ms: number, isHeld?: boolean, status?: number, foreign?: string, reader?: ReadableStreamDefaultReader<Uint8Array> }>} the time until its beginning, or until it was given up
 */
async function begin(type, signal) {
  const begun = browser.now();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), BEGIN_MS_MAX);
  const ended = () => ({ ms: browser.now() - begun, isHeld: browser.now() - begun >= HELD_MS_MIN });
  try {
    const reply = await browser.fetch(at(INDEX), { cache: "no-store", headers: { Accept: type }, signal: AbortSignal.any([signal, late.signal]) });
    const ms = browser.now() - begun;
    if (!reply.ok || !reply.body) return { ms, status: reply.status };
    const found = reply.headers.get("content-type") ?? "";
    if (!found.startsWith(type)) return { ms, foreign: found };
    const reader = reply.body.getReader();
    const { done } = await reader.read();
    return done ? ended() : { ms: browser.now() - begun, reader };
  } catch {
    return ended();
  } finally {
    clearTimeout(timer);
  }
}

/**
 * @param {string} name
 * @param {string} type
 * @param {AbortSignal} signal
 * @returns {Promise<Finding>}
 */
async function stream(name, type, signal) {
  const { ms, isHeld, status, foreign, reader } = await begin(type, signal);
  await reader?.cancel().catch(() => {});
  if (foreign !== undefined) return { name, state: "fault", words: `no stream came but an answer of the type "${foreign}": something on the way takes Accept: ${type} away, changes Content-Type, or answers itself` };
  if (status !== undefined) return { name, state: "unknown", words: `the index of topics is refused with status ${status}` };
  if (isHeld) return wrong(name, "buffered", `no byte of a stream came within ${(ms / 1000).toFixed(1)} s, although the server sends its beginning at once: something on the way holds it back`);
  if (!reader) return { name, state: "unknown", words: "the connection was closed before a stream began" };
  return good(name, `a stream begins after ${Math.round(ms)} ms`);
}

/**
 * @param {string} [path]
 * @param {string[]} [subprotocols]
 * @returns {Promise<WebSocket | null>}
 */
async function openSocket(path = "ws", subprotocols = [SUBPROTOCOL]) {
  const socket = new browser.WebSocket(at(path).replace(/^http/, "ws"), subprotocols);
  const opened = new Promise((resolve) => {
    socket.onopen = () => resolve(true);
    socket.onerror = () => resolve(false);
    AbortSignal.timeout(ANSWER_MS_MAX).addEventListener("abort", () => resolve(false));
  });
  if (await opened) return socket;
  socket.close();
  return null;
}

async function webSocket() {
  const begun = browser.now();
  const socket = await openSocket();
  socket?.close();
  if (socket) return good("WebSocket", `a WebSocket opens after ${Math.round(browser.now() - begun)} ms`);
  // A WebSocket of one topic needs no subprotocol.
  const plain = await openSocket(INDEX, []);
  plain?.close();
  if (plain) return wrong("WebSocket", "subprotocol", "a WebSocket opens, but none at /ws with a subprotocol: something on the way takes Sec-WebSocket-Protocol away, or does not forward /ws");
  return wrong("WebSocket", "upgrade", "no WebSocket opens, although HTTP works");
}

/** Makes a poll that waits for a second, and the same again: what comes at once, and is the same, comes from a cache. */
async function cache() {
  const name = "cache";
  /** @type {(words: string) => Finding} */
  const unknown = (words) => ({ name, state: "unknown", words });
  /** @type {string | undefined} */ let before;
  for (let count = 0; count < POLLS; count += 1) {
    const begun = browser.now();
    const reply = await ask(`${INDEX}&wait=1`).catch(() => null);
    const body = await reply?.text().catch(() => undefined);
    const ms = browser.now() - begun;
    if (!reply || body === undefined) return unknown("no answer came");
    const type = reply.headers.get("content-type") ?? "";
    if (!reply.ok || !type.startsWith("application/json")) return unknown(`a poll is answered with status ${reply.status}, "${type}"`);
    if (before !== undefined && ms >= WAITED_MS_MIN) return good(name, "each poll is answered anew");
    if (body === before) return wrong(name, "cached", `a poll that waits for a second was answered after ${Math.round(ms)} ms with the answer of the one before: something on the way keeps answers`);
    before = body;
  }
  return unknown("topics are created or deleted all the time");
}

/** A page's own origin is judged for everything that changes something: the server answers a wrong method, or refuses the origin. */
async function origin() {
  const reply = await ask("topics/$topics", { method: "POST", headers: { "Content-Type": "application/json" }, body: "null" }).catch(() => null);
  const problem = await reply?.json().catch(() => null);
  if (!reply) return /** @type {Finding} */ ({ name: "origin", state: "unknown", words: "no answer came" });
  const isRefused = String(problem?.type).endsWith("origin-refused");
  return isRefused ? wrong("origin", "origin", `the server refuses pages of ${location.origin}, its own: another host or scheme reaches it than the browser asked for`) : good("origin", `pages of ${location.origin} are the server's own`);
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<Finding>}
 */
async function connections(signal) {
  const name = "connections";
  const all = await Promise.all(Array.from({ length: STREAMS }, () => begin("text/event-stream", signal)));
  const count = all.filter(({ reader }) => reader).length;
  await Promise.all(all.map(async ({ reader }) => await reader?.cancel().catch(() => {})));
  if (count === STREAMS) return good(name, `${STREAMS} streams at once get through`);
  if (count === 0) return { name, state: "unknown", words: "no stream begins" };
  const words = `${count} of ${STREAMS} streams at once get through`;
  if (count < BROWSER_CONNECTIONS) return wrong(name, "connections", words);
  return { name, state: "note", words: `${words}: this browser opens no more connections to a server over HTTP/1.1. HTTP/2, which needs TLS, has no such limit; the tabs of Anemone's own client share one connection` };
}

/**
 * Keeps quiet connections, and tells which of them is cut.
 * @param {number} waitMs
 * @param {AbortSignal} signal
 * @returns {Promise<Finding>}
 */
async function silence(waitMs, signal) {
  const name = "silence";
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), waitMs);
  signal.addEventListener("abort", () => ending.abort());
  const quiet = { "a stream (SSE)": quietStream(ending.signal), "a long poll": quietPoll(waitMs, ending.signal), "a WebSocket": quietSocket(ending.signal) };
  const results = await Promise.all(Object.entries(quiet).map(async ([what, cut]) => ({ what, cut: await cut })));
  clearTimeout(timer);
  const cuts = results.flatMap(({ what, cut }) => (typeof cut === "number" ? [`${what} is cut, or lets nothing through, after ${(cut / 1000).toFixed(1)} s of silence`] : []));
  if (cuts.length > 0) return wrong(name, "idle", cuts.join(", "));
  const held = results.filter(({ cut }) => cut === "held").map(({ what }) => what);
  if (signal.aborted || held.length === 0) return { name, state: "unknown", words: "nothing was held open" };
  const heartbeats = waitMs > HEARTBEAT_MS_MAX && held.includes("a stream (SSE)") ? ", with the server's heartbeats" : "";
  return good(name, `open for ${waitMs / 1000} s${heartbeats}: ${held.join(", ")}`);
}

/** @typedef {"held" | "unknown" | number} Quiet a number: the time in ms after which it was cut */

/**
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
async function quietStream(signal) {
  const { reader } = await begin("text/event-stream", signal);
  if (!reader) return "unknown";
  signal.addEventListener("abort", () => void reader.cancel().catch(() => {}));
  let newest = browser.now();
  try {
    while (!(await reader.read()).done) newest = browser.now();
  } catch {
    // Cut, or the time is over.
  }
  // What drops a connection without a word lets no heartbeat through either.
  return signal.aborted && browser.now() - newest < HEARTBEAT_MS_MAX ? "held" : browser.now() - newest;
}

/**
 * @param {number} waitMs
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
async function quietPoll(waitMs, signal) {
  const begun = browser.now();
  let asked = begun;
  try {
    for (let answers = 0; answers < ANSWERS_MAX; answers += 1) {
      asked = browser.now();
      const left = waitMs - (asked - begun);
      if (left <= 0) return "held";
      const { status } = await browser.fetch(at(INDEX), { cache: "no-store", redirect: "manual", headers: { Prefer: `wait=${Math.ceil(left / 1000)}` }, signal });
      // The server has waited as long as it does, or a topic is new: the next poll goes on.
      if (status === 200) continue;
      // What a proxy says when it gives up.
      return [408, 502, 504].includes(status) ? browser.now() - asked : "unknown";
    }
    return "unknown";
  } catch {
    return signal.aborted ? "held" : browser.now() - asked;
  }
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<Quiet>}
 */
async function quietSocket(signal) {
  const socket = await openSocket();
  if (!socket) return "unknown";
  const begun = browser.now();
  const isCut = await new Promise((resolve) => {
    socket.onclose = () => resolve(true);
    if (signal.aborted) resolve(false);
    signal.addEventListener("abort", () => resolve(false));
  });
  socket.close();
  return isCut ? browser.now() - begun : "held";
}
