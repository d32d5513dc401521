/**
 * The page that compares the transports: shows the worker's measurements of the wind over each of them, and the load of the server's
 * machine. Without a topic `wind`, it waits for one.
 *
 * Values arrive at any time, and are drawn together a little later. The worker does the measuring, and nothing here can delay it.
 */
import { niceMs } from "../chart/scale.js";
import { find, setText } from "../page/element.js";
import { hasTopic, showPlaces } from "../page/places.js";
import { at, ownScript } from "../page/site.js";
import { formatMs } from "../page/words.js";
import { browser } from "../transport/environment.js";
import { reader } from "../transport/reader.js";
import { Reading } from "../transport/reading.js";
import { showOnceWindy } from "../page/wind/waiting.js";
import { windOf } from "../page/wind/wind.js";
import { Frames } from "./frames.js";
import { HostPanel } from "./host.js";
import { Pane } from "./pane.js";
import { PANES } from "./panes.js";
import { isShared } from "./turn.js";

/** @typedef {import("./panes.js").PaneName} PaneName */
/** @typedef {import("./figures.js").Snapshot} Snapshot */

const REDRAW_EVERY_MS = 250;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);

/** The error of the estimate of the server's clock, once there is one. @type {number | null} */
let clockBound = null;

const host = new HostPanel(element("#host"));
const frames = new Frames((id, line) => tell({ type: "frame line", id, line }));
/** @type {Map<PaneName, Pane>} */
const panes = new Map(
  PANES.map((about) => {
    const begin = () => tell({ type: "begin", pane: about.name });
    return [about.name, new Pane(element("#panes"), find(document, "#pane", HTMLTemplateElement), about, begin)];
  }),
);

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
    case "event": {
      const measured = windOf(message.event);
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
      clockBound = message.bound;
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
    panes.get(name)?.showFigures(figures[name], { scaleMs, sparkMs, clockBound, socketMean });
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
  if ((await hasTopic("host")) === false) return;
  element("#host").hidden = false;
  isHostThere = true;
  followVisibility();
}

// --- drawing ---

setInterval(() => {
  const now = browser.now();
  for (const pane of panes.values()) pane.showState(now);
  host.showState(now);
}, REDRAW_EVERY_MS);

/** How this page came says how many connections the browser allows. */
function showConnections() {
  const streams = PANES.filter(({ isSocket }) => !isSocket).map(({ title }) => title.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase()));
  const words = isShared()
    ? "This page came over HTTP/2, so all requests share one connection, and each WebSocket has one of its own."
    : `This page came over HTTP/1.1, with which a browser opens at most six connections to a server. ${streams.length} are for the transports here: ${streams.join(", ")}. WebSockets do not count. A second window of this page waits with its streams until this one is closed or hidden; over HTTPS, HTTP/2 has no such limit.`;
  setText(element("#connections"), words);
}

let isHostThere = false;

// A hidden page's timers are slowed down by the browser, which would be measured as slow polling.
function followVisibility() {
  const isHidden = document.visibilityState === "hidden";
  tell({ type: isHidden ? "pause" : "resume" });
  if (isHostThere) isHidden ? hostReading.pause() : hostReading.resume();
}

showConnections();
element("#reset").addEventListener("click", () => tell({ type: "reset" }));
document.addEventListener("visibilitychange", followVisibility);
void showPlaces();
// Everything is set up, so the script has loaded.
element("#notice-no-script").remove();

// What is above the machine comes first, so that it does not move.
await showOnceWindy(() => void addHost());
startWorker();
followVisibility();
if (!isHostThere) await addHost();
