/**
 * The wind page: shows the worker's measurements, the sensor's state and the machine's load. Without a topic `wind`, it
 * waits for one.
 *
 * Values arrive at any time, and are drawn together a little later. The worker does the measuring, and nothing here can
 * delay it.
 */
import * as longPoll from "../transport/long-poll.js";
import { at, ownScript } from "../page/site.js";
import { browser } from "../transport/environment.js";
import { parsePosition } from "../transport/sequence.js";
import { showCommands } from "../page/commands.js";
import { Dial } from "./dial.js";
import * as either from "./either.js";
import { find, setText } from "../page/element.js";
import { HostPanel } from "./host.js";
import { Pane } from "./pane.js";
import { PANES } from "./panes.js";
import { Reading } from "./reading.js";
import { timeInWords } from "../chart/axes.js";
import { niceMs } from "../chart/scale.js";
import { StripChart } from "./strip-chart.js";
import { judge, sensorStatusOf } from "./sensor.js";
import { hasTopic } from "../page/places.js";
import { windOf } from "./wind.js";
import { formatCount, formatDuration, formatMs } from "../page/words.js";
import { faultInWords, windInWords } from "./words.js";

/** @typedef {import("./panes.js").PaneName} PaneName */
/** @typedef {import("./figures.js").Snapshot} Snapshot */

const REDRAW_EVERY_MS = 250;
const STALE_MS = 3000;
const SUMMARY_EVERY_MS = 2000;
const STATUS_WAIT_SECONDS = 25;
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
const host = new HostPanel(element("#host"));
/** @type {Map<PaneName, Pane>} */
const panes = new Map(PANES.map((about) => [about.name, new Pane(element("#panes"), template("#pane"), about)]));
showCommands(element("#commands"), template("#command"), at("topics/wind"));

// --- wind: the first transport to deliver moves the dial ---

/** @type {{ epoch: string, offset: number } | null} */
let newest = null;
let lastWindAt = -Infinity;
/** @type {import("./wind.js").Wind | null} */
let wind = null;

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

// --- the sensor's state, over long polling, since plain HTTP works everywhere ---

/** @type {import("./sensor.js").SensorStatus | null} */
let sensorStatus = null;
/** @type {import("../transport/types.js").State} */
let statusConnection = { kind: "connecting" };
/** @type {import("./sensor.js").Verdict | null} */
let verdict = null;

const statusReading = new Reading(longPoll.read, at("topics/wind.status"), {
  waitSeconds: STATUS_WAIT_SECONDS,
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
  verdict = judge(sensorStatus, statusConnection);
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

/** Resolves when the server has wind, or at once if it does not list its topics: the readings then report why. */
async function untilWind() {
  for (let wasMissing = false; ; wasMissing = true) {
    const found = await hasTopic("wind");
    if (found || (found === null && !wasMissing)) break;
    element("#no-wind").hidden = false;
    element("#notice-no-server").hidden = found !== null;
    do await browser.sleep(LOOK_EVERY_MS, new AbortController().signal);
    while (document.visibilityState === "hidden");
  }
  element("#notice-no-server").hidden = true;
  element("#no-wind").hidden = true;
}

// --- this machine's load ---

const hostReading = new Reading(either.read, at("topics/host"), {
  onEvent: ({ data }) => host.show(data),
  onGap: () => {},
  onState: (state) => {
    host.state = state;
    host.showState(browser.now());
  },
});

// A server publishes its machine's load only if configured. One that does not answer now may still have it.
async function addHost() {
  if ((await hasTopic("host")) === false) return;
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
  if (performance.now() - summaryAt < SUMMARY_EVERY_MS) return;
  summaryAt = performance.now();
  setText(element("#summary"), summaryInWords());
}

function summaryInWords() {
  const summary = chart.summary();
  if (summary === null) return "Nothing measured in this time.";
  const { mean, gust, units, count, from, to } = summary;
  return `${timeInWords(from, to - from)} to ${timeInWords(to, to - from)}: mean ${mean.toFixed(2)} ${units}, gust ${gust.toFixed(2)} ${units}, ${formatCount(count)} measurements.`;
}

setInterval(redraw, REDRAW_EVERY_MS);
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
void addHost();
// Everything is set up, so the script has loaded.
element("#notice-no-script").remove();

await untilWind();
for (const part of document.querySelectorAll(".of-wind")) part.removeAttribute("hidden");
startWorker();
readings.push(statusReading);
followVisibility();
