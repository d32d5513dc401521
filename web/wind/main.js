/**
 * The wind page: shows the worker's measurements, the sensor's state and the machine's load. Without a topic `wind`, it
 * waits for one.
 *
 * Values arrive at any time, and are drawn together a little later. The worker does the measuring, and nothing here can
 * delay it.
 */
import { parsePosition } from "../client.js";
import { at, ownScript } from "../page/site.js";
import { browser } from "../transport/environment.js";
import { reader } from "../transport/reader.js";
import { Reading } from "../transport/reading.js";
import { showCommands } from "../page/commands.js";
import { Dial } from "./dial.js";
import { Frames } from "./frames.js";
import { find, setText } from "../page/element.js";
import { HostPanel } from "./host.js";
import { Pane } from "./pane.js";
import { PANES } from "./panes.js";
import { Ranges } from "./ranges.js";
import { RoseChart } from "./rose-chart.js";
import { timeInWords } from "../chart/axes.js";
import { niceMs } from "../chart/scale.js";
import { StripChart } from "./strip-chart.js";
import { judge, sensorStatusOf } from "./sensor.js";
import { hasTopic, showPlaces } from "../page/places.js";
import { isShared } from "./turn.js";
import { windOf } from "./wind.js";
import { formatCount, formatDuration, formatMs } from "../page/words.js";
import { faultInWords, windInWords } from "./words.js";

/** @typedef {import("./panes.js").PaneName} PaneName */
/** @typedef {import("./figures.js").Snapshot} Snapshot */

const REDRAW_EVERY_MS = 250;
const STALE_MS = 3000;
const SUMMARY_EVERY_MS = 2000;
const LOOK_EVERY_MS = 5000;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
/** @param {string} selector */
const template = (selector) => find(document, selector, HTMLTemplateElement);

/** @type {{ offset: number, bound: number } | null} */
let clock = null;
const serverNow = () => browser.now() + (clock?.offset ?? 0);

const dial = new Dial(find(document, "#dial", HTMLCanvasElement));
const chart = new StripChart(find(document, "#chart", HTMLCanvasElement), serverNow);
const rose = new RoseChart(find(document, "#rose", HTMLCanvasElement), element("#rose-legend"), element("#rose-words"));
const host = new HostPanel(element("#host"));
const frames = new Frames((id, line) => tell({ type: "frame line", id, line }));
/** @type {Map<PaneName, Pane>} */
const panes = new Map(
  PANES.map((about) => {
    const begin = () => tell({ type: "begin", pane: about.name });
    return [about.name, new Pane(element("#panes"), template("#pane"), about, begin)];
  }),
);
new Ranges(element("#ranges"), chart, at("topics/wind"), () => showSummary());
showCommands(element("#commands"), template("#command"), at("topics/wind"));

// --- wind: the first transport to deliver moves the dial ---

/** @type {{ epoch: string, offset: number } | null} */
let newest = null;
let lastWindAt = -Infinity;
/** @type {import("./wind.js").Wind | null} */
let wind = null;
/** True while the instrument reports a fault of its own. */
let isFaulty = false;

/**
 * @param {import("../transport/types.js").TopicEvent} event
 * @param {"history" | "live"} kind
 */
function takeWind(event, kind) {
  const measured = windOf(event);
  const position = parsePosition(event.position);
  if (!measured || !position) return null;
  const known = newest !== null && newest.epoch === position.epoch && position.offset <= newest.offset;
  if (!known) {
    newest = position;
    wind = measured;
    chart.add(measured);
    const age = clock === null ? 0 : event.received + clock.offset - measured.t0;
    if (kind === "live" && age < STALE_MS) lastWindAt = performance.now();
    dial.show(measured);
    if (kind === "live") showReadout();
  }
  return measured;
}

function showReadout() {
  if (!wind) return;
  setText(element("#readout"), windInWords(wind));
  const fault = faultInWords(wind.status);
  setText(element("#fault"), fault === null ? "" : `The instrument reports: ${fault}.`);
  if (isFaulty !== (fault !== null)) {
    isFaulty = fault !== null;
    showSensor();
  }
}

// --- the worker ---

/** @type {Worker | null} */
let worker = null; // until there is wind to measure
/** @param {import("./worker.js").ToWorker} order */
const tell = (order) => worker?.postMessage(order);

function startWorker() {
  worker = new Worker(ownScript(new URL("./worker.js", import.meta.url)), { type: "module" });
  worker.addEventListener("message", (/** @type {MessageEvent<import("./worker.js").FromWorker>} */ { data }) => take(data));
  worker.addEventListener("error", () => {
    setText(element("#announcer"), "The measuring script did not load. Reload the page to try again.");
    element("#announcer").classList.remove("unseen");
  });
}

/** @param {import("./worker.js").FromWorker} message */
function take(message) {
  switch (message.type) {
    case "history":
      for (const event of message.events) takeWind(event, "history");
      showReadout();
      return;
    case "event": {
      const measured = takeWind(message.event, "live");
      if (measured) panes.get(message.pane)?.showWind(measured);
      return;
    }
    case "state":
      takeState(message.pane, message.state);
      return;
    case "figures":
      showFigures(message.panes);
      return;
    case "frame":
      frames.show(message.id, message.url);
      return;
    case "clock":
      clock = message;
      showClock(message);
  }
}

/**
 * @param {PaneName} name
 * @param {import("../transport/types.js").State} state
 */
function takeState(name, state) {
  const pane = panes.get(name);
  if (!pane) return;
  announce(name, pane.state, state);
  pane.state = state;
  pane.showState(browser.now());
}

/**
 * Announces to screen readers when a connection opens or fails, and nothing in between.
 * @param {PaneName} name
 * @param {import("../transport/types.js").State} before
 * @param {import("../transport/types.js").State} after
 */
function announce(name, before, after) {
  const title = PANES.find((about) => about.name === name)?.title;
  if (after.kind === "connected") setText(element("#announcer"), `${title}: connected`);
  if (after.kind === "waiting" && before.kind === "connected") setText(element("#announcer"), `${title}: ${after.reason}`);
}

/** @param {Record<PaneName, Snapshot>} figures */
function showFigures(figures) {
  const all = PANES.map(({ name }) => figures[name]);
  const scaleMs = niceMs(Math.max(...all.map(({ latency }) => (latency ? latency.mean + latency.deviation : 0))));
  const sparkMs = niceMs(Math.max(...all.flatMap(({ recent }) => recent), 0));
  const socketMean = figures.websocket.latency?.mean ?? null;
  for (const { name } of PANES) {
    panes.get(name)?.showFigures(figures[name], { scaleMs, sparkMs, clockBound: clock?.bound ?? null, socketMean });
  }
  setText(element("#bar-scale"), `${scaleMs} ms`);
  setText(element("#spark-scale"), `${sparkMs} ms`);
}

/** @param {{ offset: number, bound: number, driftPerMinute: number | null }} estimate */
function showClock({ offset, bound, driftPerMinute }) {
  const ahead = `${formatMs(Math.abs(offset))} ms ${offset < 0 ? "behind" : "ahead of"} this device's`;
  const drift =
    driftPerMinute === null
      ? ""
      : `, drifting ${driftPerMinute < 0 ? "−" : ""}${formatMs(Math.abs(driftPerMinute))} ms a minute`;
  setText(element("#clock"), `Server's clock: ${ahead}, ±${formatMs(bound)} ms${drift}.`);
}

// --- the sensor's state, over whatever works: HTTP's few connections are for the transports ---

/** @type {import("./sensor.js").SensorStatus | null} */
let sensorStatus = null;
/** @type {import("../transport/types.js").State} */
let statusConnection = { kind: "connecting" };
/** @type {import("./sensor.js").Verdict | null} */
let verdict = null;

// Not over another tab, which would not tell that it no longer reaches the server.
const statusReading = new Reading(reader(["mux", "sse", "long-poll", "poll"]), at("topics/wind.status"), {
  after: "-1",
  onEvent: (event) => {
    sensorStatus = sensorStatusOf(event.data) ?? sensorStatus;
    showSensor();
  },
  onGap: () => {},
  onState: (state) => {
    // A new attempt is no news: keep the message until it succeeds.
    if (state.kind === "connecting" && statusConnection.kind === "waiting") return;
    if (state.kind === "connected" && statusConnection.kind === "waiting") sensorStatus = null;
    statusConnection = state;
    showSensor();
  },
});

function showSensor() {
  verdict = judge(sensorStatus, statusConnection, isFaulty);
  setText(element("#sensor-status"), verdict.phrase);
  element("#sensor").dataset.mood = verdict.mood;
  element("#notice-no-server").hidden = verdict.notice !== "no server";
  element("#notice-refused").hidden = verdict.notice !== "refused";
  setText(element("#refused-detail"), verdict.notice === "refused" ? verdict.detail : "");
  showSensorDetail();
}

function showSensorDetail() {
  if (!verdict) return;
  const age = verdict.since === null ? "" : `for ${formatDuration(serverNow() - verdict.since)}`;
  const detail = verdict.notice === "refused" ? "" : verdict.detail; // which the notice has
  setText(element("#sensor-detail"), [age, detail].filter(Boolean).join(" · "));
}

// --- whether there is wind ---

let tellWindKnown = () => {};
/** Resolves when it is known whether the server has wind. */
const windKnown = new Promise((/** @type {(nothing: void) => void} */ resolve) => (tellWindKnown = resolve));

/** Resolves when the server has wind, or at once if it does not list its topics: the readings then report why. */
async function untilWind() {
  for (let wasMissing = false; ; wasMissing = true) {
    const found = await hasTopic("wind");
    if (found || (found === null && !wasMissing)) break;
    element("#no-wind").hidden = false;
    tellWindKnown();
    element("#notice-no-server").hidden = found !== null;
    do await browser.sleep(LOOK_EVERY_MS, new AbortController().signal);
    while (document.visibilityState === "hidden");
  }
  element("#notice-no-server").hidden = true;
  element("#no-wind").hidden = true;
}

// --- this machine's load ---

const hostReading = new Reading(reader(), at("topics/host"), {
  onEvent: ({ data }) => host.show(data),
  onGap: () => {},
  onState: (state) => {
    host.state = state;
    host.showState(browser.now());
  },
});

// A server publishes its machine's load only if configured. One that does not answer now may still have it.
async function addHost() {
  const hasHost = await hasTopic("host");
  // What is above it comes first, so that it does not move.
  await windKnown;
  if (hasHost === false) return;
  element("#host").hidden = false;
  readings.push(hostReading);
  followVisibility();
}

// --- drawing ---

let summaryAt = -Infinity;

function redraw() {
  chart.redraw();
  const current = performance.now() - lastWindAt < STALE_MS;
  dial.setStale(!current);
  element("#wind").classList.toggle("stale", !current);
  const now = browser.now();
  for (const pane of panes.values()) pane.showState(now);
  host.showState(now);
  showSensorDetail();
  if (performance.now() - summaryAt >= SUMMARY_EVERY_MS) showSummary();
}

function showSummary() {
  summaryAt = performance.now();
  setText(element("#summary"), summaryInWords());
  const found = chart.rose();
  rose.show(found?.rose ?? null, found?.units ?? "");
}

function summaryInWords() {
  const summary = chart.summary();
  if (summary === null) return "Nothing measured in this time.";
  const { mean, gust, units, count, from, to } = summary;
  return `${timeInWords(from, to - from)} to ${timeInWords(to, to - from)}: mean ${mean.toFixed(2)} ${units}, gust ${gust.toFixed(2)} ${units}, ${formatCount(count)} measurements.`;
}

/** How this page came says how many connections the browser allows. */
function showConnections() {
  const streams = PANES.filter(({ isSocket }) => !isSocket).map(({ title }) => title.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase()));
  const words = isShared()
    ? "This page came over HTTP/2, so all requests share one connection, and each WebSocket has one of its own."
    : `This page came over HTTP/1.1, with which a browser opens at most six connections to a server. ${streams.length} are for the transports here: ${streams.join(", ")}. WebSockets do not count. A second window of this page waits with its streams until this one is closed or hidden; over HTTPS, HTTP/2 has no such limit.`;
  setText(element("#connections"), words);
}

setInterval(redraw, REDRAW_EVERY_MS);
showConnections();
element("#reset").addEventListener("click", () => tell({ type: "reset" }));

/** @type {Reading[]} */
const readings = [];

// A hidden page's timers are slowed down by the browser, which would be measured as slow polling.
function followVisibility() {
  const hidden = document.visibilityState === "hidden";
  tell({ type: hidden ? "pause" : "resume" });
  for (const reading of readings) hidden ? reading.pause() : reading.resume();
}
document.addEventListener("visibilitychange", followVisibility);
void showPlaces();
void addHost();
// Everything is set up, so the script has loaded.
element("#notice-no-script").remove();

await untilWind();
for (const part of document.querySelectorAll(".of-wind")) part.removeAttribute("hidden");
tellWindKnown();
startWorker();
readings.push(statusReading);
followVisibility();
