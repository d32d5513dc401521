/**
 * The wind page: the instrument, with what it measures now, what it has measured, and its state. Without a topic `wind`, it waits for one.
 *
 * Values arrive at any time, and are drawn together a little later.
 */
import { timeInWords } from "../chart/axes.js";
import { PROBES_IN_BLOCK, probeBlock } from "../measure/clock.js";
import { showCommands } from "../page/commands.js";
import { find, setText } from "../page/element.js";
import { showPlaces } from "../page/places.js";
import { Ranges } from "../page/ranges/ranges.js";
import { WIND_SPAN, WIND_SPANS } from "../page/ranges/spans.js";
import { at } from "../page/site.js";
import { showOnceWindy } from "../page/wind/waiting.js";
import { windOf } from "../page/wind/wind.js";
import { formatCount, formatDuration } from "../page/words.js";
import { browser } from "../transport/environment.js";
import { reader } from "../transport/reader.js";
import { Reading } from "../transport/reading.js";
import { Dial } from "./dial.js";
import { RoseChart } from "./rose-chart.js";
import { judge, sensorStatusOf } from "./sensor.js";
import { StripChart } from "./strip-chart.js";
import { faultInWords, windInWords } from "./words.js";

const REDRAW_EVERY_MS = 250;
const STALE_MS = 3000;
const SUMMARY_EVERY_MS = 2000;
const CLOCK_EVERY_MS = 60_000;
const EVENTS_PER_SECOND_MAX = 4;
/** Those that the strip chart shows at first. */
const HISTORY_EVENTS = (WIND_SPAN.spanMs / 1000) * EVENTS_PER_SECOND_MAX;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);

/** The server's clock against this device's, once it is measured. @type {number | null} */
let clockOffset = null;
const serverNow = () => browser.now() + (clockOffset ?? 0);

const dial = new Dial(find(document, "#dial", HTMLCanvasElement));
const chart = new StripChart(find(document, "#chart", HTMLCanvasElement), serverNow);
const rose = new RoseChart(find(document, "#rose", HTMLCanvasElement), element("#rose-legend"), element("#rose-words"));
const ranges = new Ranges(element("#ranges"), { name: "wind", topic: at("topics/wind"), spans: WIND_SPANS, shown: chart, now: serverNow });
showCommands(element("#commands"), find(document, "#command", HTMLTemplateElement), at("topics/wind"));

// --- wind ---

let lastWindAt = -Infinity;
/** @type {import("../page/wind/wind.js").Wind | null} */
let wind = null;
/** True while the instrument reports a fault of its own. */
let isFaulty = false;

/** @param {import("../transport/types.js").TopicEvent} event */
function takeWind(event) {
  const measured = windOf(event);
  if (!measured) return;
  wind = measured;
  chart.add(measured);
  if (clockOffset === null || event.received + clockOffset - measured.t0 < STALE_MS) lastWindAt = performance.now();
  dial.show(measured);
  showReadout();
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

// Not over another tab, which would not tell that it no longer reaches the server.
const ways = reader(["mux", "sse", "long-poll", "poll"]);
const windReading = new Reading(ways, at("topics/wind"), { after: `-${HISTORY_EVENTS}`, onEvent: takeWind, onGap: () => {}, onState: () => {} });

// --- the sensor's state ---

/** @type {import("./sensor.js").SensorStatus | null} */
let sensorStatus = null;
/** @type {import("../transport/types.js").State} */
let statusConnection = { kind: "connecting" };
/** @type {import("./sensor.js").Verdict | null} */
let verdict = null;

const statusReading = new Reading(ways, at("topics/wind.status"), {
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

// --- drawing ---

let summaryAt = -Infinity;

function redraw() {
  chart.redraw();
  const isCurrent = performance.now() - lastWindAt < STALE_MS;
  dial.setStale(!isCurrent);
  element("#wind").classList.toggle("stale", !isCurrent);
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

chart.onShown = showSummary;
setInterval(redraw, REDRAW_EVERY_MS);

async function measureClock() {
  const estimate = await probeBlock(at("clock"), { environment: browser, signal: AbortSignal.timeout(30_000), probes: PROBES_IN_BLOCK / 4 });
  clockOffset = estimate?.offset ?? clockOffset;
}

function followVisibility() {
  const isHidden = document.visibilityState === "hidden";
  for (const reading of [windReading, statusReading]) isHidden ? reading.pause() : reading.resume();
  // The machine may have been suspended, and the browser's clock stopped meanwhile.
  if (!isHidden) void measureClock().then(() => ranges.look());
}

void showPlaces();
// Everything is set up, so the script has loaded.
element("#notice-no-script").remove();

await showOnceWindy();
ranges.mark(WIND_SPAN);
followVisibility();
document.addEventListener("visibilitychange", followVisibility);
setInterval(() => document.visibilityState !== "hidden" && void measureClock(), CLOCK_EVERY_MS);
