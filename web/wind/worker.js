/**
 * Reads the wind over three transports at once and measures them.
 *
 * Runs in a worker, so that the page's drawing cannot delay the receipt of a message. Sends its results to the
 * page, and draws nothing.
 *
 * @typedef {{ type: "pause" } | { type: "resume" } | { type: "reset" }} ToWorker
 *
 * @typedef {{ type: "history", events: import("../transport/types.js").TopicEvent[] }
 *   | { type: "event", pane: import("./panes.js").PaneName, event: import("../transport/types.js").TopicEvent }
 *   | { type: "state", pane: import("./panes.js").PaneName, state: import("../transport/types.js").State }
 *   | { type: "figures", panes: Record<import("./panes.js").PaneName, import("./figures.js").Snapshot> }
 *   | { type: "clock", offset: number, bound: number, driftPerMinute: number | null }} FromWorker
 */
import { observeReplies } from "../measure/bytes.js";
import { driftPerMinute, probeBlock } from "../measure/clock.js";
import { at } from "../page/site.js";
import { browser } from "../transport/environment.js";
import * as longPoll from "../transport/long-poll.js";
import { pageUrl, requestPage } from "../transport/page.js";
import * as poll from "../transport/poll.js";
import { formatPosition, parsePosition } from "../transport/sequence.js";
import * as websocket from "../transport/websocket.js";
import { Figures } from "./figures.js";
import { LONG_POLL_SECONDS, PANES, POLL_PAUSE_MS } from "./panes.js";
import { Reading } from "./reading.js";
import { windOf } from "./wind.js";

/** @typedef {import("./panes.js").PaneName} PaneName */
/** @typedef {import("../transport/types.js").TopicEvent} TopicEvent */

const TOPIC = at("topics/wind");
const HISTORY_EVENTS = 480; // two minutes at 4 Hz, the width of the strip chart
const HISTORY_MS_MAX = 5000;
const CLOCK_EVERY_MS = 60_000;
const CLOCK_RETRY_MS = 2000;
const FIGURES_EVERY_MS = 250;

const page = /** @type {{ postMessage(message: FromWorker): void }} */ (/** @type {unknown} */ (globalThis));

/** @type {Record<PaneName, import("../transport/types.js").Read>} */
const READ = {
  websocket: websocket.read,
  "long-polling": (url, options) => longPoll.read(url, { ...options, waitSeconds: LONG_POLL_SECONDS }),
  polling: (url, options) => poll.read(url, { ...options, pauseMs: POLL_PAUSE_MS }),
};

/** @type {import("../measure/clock.js").Estimate | null} */
let clock = null;
let countFrom = Infinity; // reading the history counts for nobody
let changed = true;

const repliesTold = observeReplies(({ url, bodyBytes, startedAt }) => {
  const pane = paneOfReply(url);
  if (pane && startedAt >= countFrom) figures[pane].received(bodyBytes);
});
/** @type {Record<PaneName, Figures>} */
let figures = freshFigures();

/** @returns {Record<PaneName, Figures>} */
function freshFigures() {
  return {
    websocket: new Figures({ bytesTold: true }),
    "long-polling": new Figures({ bytesTold: repliesTold }),
    polling: new Figures({ bytesTold: repliesTold }),
  };
}

/**
 * Returns the polling transport of a request. Both use the same path, but only a long poll has a wait. `latest` belongs
 * to neither: the WebSocket uses it to find out why it did not open.
 * @param {URL} url
 * @returns {PaneName | null}
 */
function paneOfReply({ origin, pathname, searchParams }) {
  if (origin + pathname !== TOPIC || searchParams.get("after") === "latest") return null;
  return searchParams.has("wait") ? "long-polling" : "polling";
}

/**
 * @param {PaneName} name
 * @param {string | undefined} after
 */
function startReading(name, after) {
  let since = Infinity;
  let connections = 0;
  const reading = new Reading(READ[name], TOPIC, {
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
  if (!paused) reading.resume();
  return reading;
}

/**
 * Reads the last two minutes for the chart, and returns the position after them. All three readings begin there, so
 * they get the same events.
 * @returns {Promise<string | undefined>} undefined when there is nothing to begin from yet
 */
async function readHistory() {
  const options = { signal: AbortSignal.timeout(HISTORY_MS_MAX), timeoutMs: HISTORY_MS_MAX, environment: browser };
  try {
    const { page: newest } = await requestPage(TOPIC, options);
    const head = parsePosition(newest.next);
    if (!head) return undefined;
    const start = formatPosition({ epoch: head.epoch, offset: Math.max(0, head.offset - HISTORY_EVENTS) });
    const { page: history, received } = await requestPage(pageUrl(TOPIC, start), options);
    const events = history.events.map(({ offset, time, data }) => {
      return { position: formatPosition({ epoch: history.epoch, offset }), time, data, received };
    });
    page.postMessage({ type: "history", events });
    return history.next;
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
/** @type {Reading[]} */
let readings = [];

globalThis.addEventListener("message", (/** @type {MessageEvent<ToWorker>} */ { data: order }) => {
  switch (order.type) {
    case "pause":
      paused = true;
      for (const reading of readings) reading.pause();
      return;
    case "resume":
      if (!paused) return;
      paused = false;
      // The machine may have been suspended, and the browser's clock stopped meanwhile: measure again first.
      clock = null;
      measureClockNow();
      for (const reading of readings) reading.resume();
      return;
    case "reset":
      if (readings.length > 0) countFrom = browser.now();
      figures = freshFigures();
      changed = true;
  }
});

setInterval(() => {
  if (!changed) return;
  changed = false;
  page.postMessage({
    type: "figures",
    panes: {
      websocket: figures.websocket.snapshot(),
      "long-polling": figures["long-polling"].snapshot(),
      polling: figures.polling.snapshot(),
    },
  });
}, FIGURES_EVERY_MS);

void keepClock();
const after = await readHistory();
countFrom = browser.now();
readings = PANES.map(({ name }) => startReading(name, after));
