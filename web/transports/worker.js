/**
 * Reads the wind over all transports at once and measures them.
 *
 * Runs in a worker, so that the page's drawing cannot delay the receipt of a message. Sends its results to the
 * page, and draws nothing. Only the document can have a frame: the page passes on what its scripts say.
 *
 * @typedef {{ type: "pause" } | { type: "resume" } | { type: "reset" }
 *   | { type: "begin", pane: import("./panes.js").PaneName }
 *   | { type: "frame line", id: number, line: string }} ToWorker
 *
 * @typedef {{ type: "event", pane: import("./panes.js").PaneName, event: import("../transport/types.js").TopicEvent }
 *   | { type: "state", pane: import("./panes.js").PaneName, state: import("../transport/types.js").State }
 *   | { type: "figures", panes: Record<import("./panes.js").PaneName, import("./figures.js").Snapshot> }
 *   | { type: "frame", id: number, url: string | null }
 *   | { type: "clock", offset: number, bound: number, driftPerMinute: number | null }} FromWorker a frame without a URL is to be removed
 */
import { driftPerMinute, probeBlock } from "../measure/clock.js";
import { at } from "../page/site.js";
import { browser } from "../transport/environment.js";
import { overFrame, overWebSocket } from "../transport/lines.js";
import { requestPage } from "../transport/page.js";
import { reader } from "../transport/reader.js";
import { Reading } from "../transport/reading.js";
import { Figures } from "./figures.js";
import { LONG_POLL_SECONDS, PANES, POLL_PAUSE_MS } from "./panes.js";
import { Turn } from "./turn.js";
import { windOf } from "../page/wind/wind.js";

/** @typedef {import("./panes.js").PaneName} PaneName */
/** @typedef {import("../transport/types.js").TopicEvent} TopicEvent */

const TOPIC = at("topics/wind");
const ANSWER_MS_MAX = 5000;
const CLOCK_EVERY_MS = 60_000;
const CLOCK_RETRY_MS = 2000;
const FIGURES_EVERY_MS = 250;

const page = /** @type {{ postMessage(message: FromWorker): void }} */ (/** @type {unknown} */ (globalThis));

/** A plain WebSocket of the browser does not tell of the server's pings, so its silence says nothing. */
const NEVER_MS = 2 ** 30;

/** @type {Map<number, import("../transport/lines.js").Lines>} */
const frames = new Map();
let frameIds = 0;

const openFrame = (/** @type {string} */ url, /** @type {import("../transport/lines.js").Lines} */ lines) => {
  const id = (frameIds += 1);
  frames.set(id, lines);
  page.postMessage({ type: "frame", id, url });
  return () => {
    if (frames.delete(id)) page.postMessage({ type: "frame", id, url: null });
  };
};

/** @type {Record<PaneName, import("../transport/types.js").Read>} */
const READ = {
  websocket: reader("mux"),
  "plain-websocket": reader("ndjson", { fetch: ({ WebSocket }) => overWebSocket(WebSocket), quietMs: NEVER_MS }),
  sse: reader("sse"),
  ndjson: reader("ndjson"),
  "forever-frame": reader("ndjson", { fetch: () => overFrame(openFrame) }),
  "long-polling": (url, options) => reader("long-poll")(url, { ...options, waitSeconds: LONG_POLL_SECONDS }),
  polling: (url, options) => reader("poll")(url, { ...options, pauseMs: POLL_PAUSE_MS }),
};

/** @type {import("../measure/clock.js").Estimate | null} */
let clock = null;
let changed = true;

/** @type {Record<PaneName, Figures>} */
let figures = freshFigures();

function freshFigures() {
  // No browser tells the bytes of a frame before it ends.
  return forEachPane(({ name }) => new Figures({ bytesTold: name !== "forever-frame" }));
}

/**
 * @template T
 * @param {(about: import("./panes.js").About) => T} make
 */
function forEachPane(make) {
  return /** @type {Record<PaneName, T>} */ (Object.fromEntries(PANES.map((about) => [about.name, make(about)])));
}

/**
 * Begins a reading; it begins paused.
 * @param {PaneName} name
 * @param {string | undefined} after
 */
function startReading(name, after) {
  let since = Infinity;
  let connections = 0;
  return new Reading(READ[name], TOPIC, {
    after,
    onEvent: (event) => {
      figures[name].message(windOf(event)?.t0 ?? event.time, event.received, since, clock?.offset ?? null);
      page.postMessage({ type: "event", pane: name, event });
      changed = true;
    },
    onState: (state) => {
      if (state.kind === "connected") {
        since = state.since;
        connections += 1;
        if (connections > 1) figures[name].reconnect();
      }
      page.postMessage({ type: "state", pane: name, state });
      changed = true;
    },
    onGap: (gap) => {
      figures[name].gap(gap);
      changed = true;
    },
    onRepeat: () => figures[name].repeat(),
    onPayload: (bytes) => figures[name].received(bytes),
    onRequest: () => figures[name].request(),
  });
}

/**
 * Returns the position after the newest event. All readings begin there, so they get the same events.
 * @returns {Promise<string | undefined>} undefined when there is nothing to begin from yet
 */
async function newestPosition() {
  try {
    const options = { signal: AbortSignal.timeout(ANSWER_MS_MAX), timeoutMs: ANSWER_MS_MAX, environment: browser };
    return (await requestPage(TOPIC, options)).page.next;
  } catch {
    return undefined; // each reading will find out for itself, and say so in its own pane
  }
}

async function keepClock() {
  for (;;) {
    const before = clock;
    const after = await probeBlock(at("clock"), { environment: browser, signal: AbortSignal.timeout(30_000) });
    if (after) {
      clock = after;
      for (const { name } of PANES) figures[name].clockKnown(after.offset);
      page.postMessage({
        type: "clock",
        offset: after.offset,
        bound: after.bound,
        driftPerMinute: before && driftPerMinute(before, after),
      });
      changed = true;
    }
    const { promise, wake } = sleepUntilWoken(after ? CLOCK_EVERY_MS : CLOCK_RETRY_MS);
    measureClockNow = wake;
    await promise;
  }
}

/** @param {number} ms */
function sleepUntilWoken(ms) {
  const controller = new AbortController();
  return { promise: browser.sleep(ms, controller.signal), wake: () => controller.abort() };
}

let measureClockNow = () => {};
let paused = false;
/** @type {Map<PaneName, Reading>} */
const readings = new Map();
/** Those that begin when somebody asks for them. */
const unasked = new Set(PANES.filter(({ onRequest }) => onRequest).map(({ name }) => name));

/** Over HTTP/1.1, the streams of one window take their turn. */
const turn = new Turn(() => follow());

/** Reads over each transport that is to be read over now. */
function follow() {
  for (const { name, isStream } of PANES) {
    const reading = readings.get(name);
    if (!reading || unasked.has(name)) continue;
    if (paused) reading.pause();
    else if (isStream && !turn.isOurs) {
      page.postMessage({ type: "state", pane: name, state: { kind: "paused", reason: "waits until another window of this page is closed or hidden" } });
    } else reading.resume();
  }
}

globalThis.addEventListener("message", (/** @type {MessageEvent<ToWorker>} */ { data: order }) => {
  switch (order.type) {
    case "pause":
      paused = true;
      turn.end();
      follow();
      return;
    case "resume":
      if (!paused) return;
      paused = false;
      // The machine may have been suspended, and the browser's clock stopped meanwhile: measure again first.
      clock = null;
      measureClockNow();
      turn.ask();
      follow();
      return;
    case "begin":
      unasked.delete(order.pane);
      follow();
      return;
    case "frame line":
      frames.get(order.id)?.push(order.line);
      return;
    case "reset":
      figures = freshFigures();
      changed = true;
  }
});

setInterval(() => {
  if (!changed) return;
  changed = false;
  page.postMessage({ type: "figures", panes: forEachPane(({ name }) => figures[name].snapshot()) });
}, FIGURES_EVERY_MS);

void keepClock();
const after = await newestPosition();
for (const { name } of PANES) readings.set(name, startReading(name, after));
if (!paused) turn.ask();
follow();
