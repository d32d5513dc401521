/**
 * The page about a topic: its events as they come, a chart of its numbers, how to read it, and a box to publish.
 *
 * Events arrive at any time, and are shown together a little later. All data is shown as text.
 */
import { fieldsOf, find, setText } from "../page/element.js";
import { Columns } from "../page/events/columns.js";
import { Fields, numbersOf } from "../page/events/fields.js";
import { showWays } from "../page/events/how.js";
import { KEPT_MAX, Log, ROWS_MAX, pretty } from "../page/events/log.js";
import { Plot } from "../page/events/plot.js";
import { gapInWords } from "../page/events/words.js";
import { showReached } from "../page/following.js";
import { showPlaces } from "../page/places.js";
import { Ranges } from "../page/ranges/ranges.js";
import { SPANS, filledBy } from "../page/ranges/spans.js";
import { Rate, rateInWords } from "../page/rates.js";
import { keepShowing } from "../page/showing.js";
import { at } from "../page/site.js";
import { countOf, formatCount } from "../page/words.js";
import { PROBES_IN_BLOCK, probeBlock } from "../measure/clock.js";
import { parsePosition } from "../client.js";
import { browser } from "../transport/environment.js";
import { keptInWords } from "./kept.js";
import { placeOf } from "./places.js";
import { offerPublishing } from "./publish.js";
import { offerSaving } from "./saving.js";
import { follow, now, pageAt } from "./source.js";
import { offerStatus } from "./status.js";

/** @typedef {import("../transport/types.js").TopicEvent} TopicEvent */

const SHOW_MS_MAX = 250;
const SUMMARY_EVERY_MS = 2000;
const HISTORY_EVENTS = 1000;
const PAGE_EVENTS = 500;
/** The longest wait for the first event. A topic without one by then is shown as empty. */
const BEGIN_MS_MAX = 500;
/** The longest time until the page is shown, even if it is not drawn completely. */
const SHOWN_MS_MAX = 15_000;
const PROBES = PROBES_IN_BLOCK / 4;

const name = decodeURIComponent(location.pathname.slice(location.pathname.lastIndexOf("/") + 1));
const url = at(`topics/${name}`);

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
/** @param {string} selector */
const button = (selector) => find(document, selector, HTMLButtonElement);
const field = fieldsOf(document.body);

let clockOffset = 0;
const serverNow = () => now() + clockOffset;
/** The time of the newest event if the page shows old ones; null while it follows the topic. @type {number | null} */
let stoppedAt = null;
/** The time at which the connection was lost; null while the page is connected. @type {number | null} */
let lostAt = null;

const columns = new Columns((names) => plot.rename(names));
const log = new Log(element("#events"), () => columns.names);
const plot = new Plot(element("#plot"), name, () => stoppedAt ?? lostAt ?? serverNow(), () => wholeFrom === -Infinity);
plot.onChosen = (/** @type {readonly string[]} */ names) => log.reveal(names);
const rate = new Rate();

/** @type {TopicEvent | null} */
let newest = null;
/** The event that is shown as the newest. @type {TopicEvent | null} */
let told = null;
/** The epoch of the topic, once an event has told it. @type {string | null} */
let epoch = null;
let count = 0;
/** The time from which the chart has all values. */
let wholeFrom = Infinity;
/** The number of the first event of this reading. The chart may have older ones, which were read back. */
let first = 0;
/** The time of that first event. */
let firstAt = 0;
let isChanged = false;
/** True once a first part of the drawing had events. The last part then shows the page. */
let hasShown = false;
let shownAt = 0;
let summaryAt = -Infinity;
let isPaused = false;
/** True if the next event comes after a gap. */
let isAfterGap = false;
/** @type {import("../transport/types.js").State} */
let state = { kind: "connecting" };

// --- events ---

/** @param {TopicEvent} event */
function take(event) {
  if (isAfterGap) plot.interrupt(event.time);
  isAfterGap = false;
  const number = parsePosition(event.position)?.offset ?? 0;
  const isBegun = newest !== null;
  newest = event;
  if (!isBegun || epoch !== parsePosition(event.position)?.epoch) [first, firstAt] = [number, event.time];
  if (!isBegun) wholeFrom = number <= 1 ? -Infinity : event.time;
  epoch = parsePosition(event.position)?.epoch ?? epoch;
  count += 1;
  isChanged = true;
  const { cells, numbers } = partsOf(event.data, columns);
  plot.add(event.time, numbers, number);
  log.add(event, cells);
}

/**
 * Returns the cells of an event that is a row of a table, and the numbers of any event.
 * @param {unknown} data
 * @param {Columns} columns
 */
function partsOf(data, columns) {
  const cells = typeof data === "string" ? columns.row(data) : null;
  return { cells, numbers: cells === null ? numbersOf(data) : columns.isTable ? columns.numbers(cells) : [] };
}

/** @param {import("../transport/types.js").Gap} gap */
function takeGap(gap) {
  isAfterGap = true;
  isChanged = true;
  log.note(gapInWords(gap));
}

/**
 * Draws. While the box to publish has the focus, scrolls so that it stays in place: new events and a chart push it down.
 * @param {() => void} draw
 */
function drawSteadily(draw) {
  const box = element("#publish");
  if (!box.contains(document.activeElement)) return draw();
  const { top, bottom } = box.getBoundingClientRect();
  const isSeen = top < innerHeight && bottom > 0;
  draw();
  if (!isSeen) return;
  scrollBy({ top: box.getBoundingClientRect().top - top, behavior: "instant" });
}

/** The drawing, in parts. Each has a frame of its own, so that an input waits for at most one of them. */
const PARTS = [
  () => {
    hasShown = count > 0; // more may come before the last part has had its turn
    offerTable();
    log.update();
  },
  () => log.finish(),
  () => {
    plot.update();
    if (wanted !== null) showWanted();
    if (stoppedAt === null) plot.redraw();
  },
  // The chart is painted here.
  () => {},
  () => {
    if (newest && lostAt === null) rate.look(newest.position, now(), newest.time);
    showState();
    element("#nothing").hidden = count > 0;
    if (hasShown) begin();
    setText(field("count"), formatCount(count));
    showSummary();
    if (!newest) return;
    setText(field("position"), newest.position);
    if (newest === told) return;
    told = newest;
    setText(element("#newest"), pretty(newest.data));
  },
].map((part) => () => drawSteadily(part));

function show() {
  for (const part of PARTS) part();
  shownAt = performance.now();
}

function showSummary() {
  if (performance.now() - summaryAt < SUMMARY_EVERY_MS) return;
  summaryAt = performance.now();
  setText(element("#summary"), plot.summary());
}

/** Shows the page. It is hidden until its parts are known, so that nothing moves after that. */
function begin() {
  const { classList } = find(document, "main", HTMLElement);
  if (classList.contains("begun")) return;
  classList.add("begun");
  log.look();
}

/** Returns true if something has come since the last call, or if it is time to draw again. */
function takeNews() {
  const isNews = isChanged || performance.now() - shownAt >= SHOW_MS_MAX;
  isChanged = false;
  if (isNews) shownAt = performance.now();
  return isNews;
}

/** Shows the table once there is one. The user may choose the list instead. */
function offerTable() {
  const choice = find(document, "#as-table", HTMLInputElement);
  const label = element("#as-table-label");
  if (!label.hidden || !columns.isTable) return;
  label.hidden = false;
  choice.checked = true;
  log.showAsTable(true);
}

function forget() {
  newest = null;
  count = 0;
  isAfterGap = false;
  rate.forget(now());
  log.clear();
  plot.clear();
}

// --- following ---

/** @type {ReturnType<typeof follow>} */
let reading;

/** @param {string} after */
function followFrom(after) {
  reading = follow(url, {
    after,
    onEvent: take,
    onGap: takeGap,
    onState: (next) => {
      announce(state, next);
      state = next;
      lostAt = next.kind === "connected" ? null : (lostAt ?? serverNow());
      if (lostAt !== null) rate.forget(now());
      // What has come is shown as a whole, unless that takes very long.
      if (next.kind !== "connecting") {
        setTimeout(() => count === 0 && begin(), BEGIN_MS_MAX);
        setTimeout(begin, SHOWN_MS_MAX);
      }
      showState();
    },
  });
  stoppedAt = null;
  isPaused = false;
  followVisibility();
  showState();
}

function showState() {
  const reached = showReached(state);
  const words = stoppedAt !== null ? "not following; old events are shown" : isPaused ? "paused; nothing is lost as long as the topic keeps it" : reached;
  document.body.dataset.state = stoppedAt !== null || isPaused ? "paused" : state.kind;
  setText(field("state"), words);
  button("#pause").textContent = stoppedAt !== null ? "Follow" : isPaused ? "Continue" : "Pause";
  setText(field("rate"), rateInWords(rate.perSecond) || "–");
}

/**
 * Announces to screen readers when the connection opens or fails, and nothing in between.
 * @param {import("../transport/types.js").State} before
 * @param {import("../transport/types.js").State} after
 */
function announce(before, after) {
  if (after.kind === "connected") setText(element("#announcer"), "connected");
  if (after.kind === "waiting" && before.kind === "connected") setText(element("#announcer"), after.reason);
}

// A hidden page shows nothing, and continues from its position when it is seen again.
function followVisibility() {
  if (isPaused || stoppedAt !== null || document.visibilityState === "hidden") reading.pause();
  else reading.resume();
}

// --- the range of the chart ---

/**
 * The span to show once there is a chart. "filled" is the longest span that the events fill.
 * @type {"filled" | import("../page/ranges/spans.js").Span | null}
 */
let wanted = "filled";

function showWanted() {
  if (wanted === null || plot.times === null) return;
  const span = wanted;
  wanted = null;
  if (stoppedAt !== null) return;
  if (span !== "filled") return void ranges.show(span);
  const filled = filledBy(SPANS, plot.reachMs);
  ranges.mark(filled);
  plot.fit(filled.spanMs);
}

/** Collects older events in a chart of their own. */
function beginPast() {
  const fields = new Fields();
  const cut = new Columns((names) => fields.rename(names), columns.head);
  return {
    take: (/** @type {TopicEvent} */ { position, time, data }) => {
      const { numbers } = partsOf(data, cut);
      if (Number(parsePosition(position)?.offset) < first) fields.add(time, numbers);
    },
    show: (/** @type {import("../page/ranges/spans.js").Span} */ { spanMs }, /** @type {number} */ apartMs) => {
      plot.prepend(fields, spanMs);
      wholeFrom = apartMs > 0 ? firstAt : serverNow() - spanMs;
      return plot.reachMs;
    },
  };
}

const ranges = new Ranges(element("#ranges"), {
  name,
  topic: url,
  spans: SPANS,
  now: serverNow,
  shown: {
    has: (span) => {
      // Old events are shown: the new ones come first.
      if (stoppedAt !== null) goLive(span);
      return wanted !== null || serverNow() - span.spanMs >= wholeFrom;
    },
    fit: (spanMs) => plot.fit(spanMs),
    begin: beginPast,
  },
  onListed: (topic) => {
    plot.units = topic.units ?? {};
    setText(element("#keeps"), keptInWords(topic, serverNow()));
  },
});

offerSaving(element("#events"), { name, url, times: () => plot.times ?? (log.oldestTime === null ? null : { from: log.oldestTime, to: serverNow() }) });

// --- hands ---

button("#pause").addEventListener("click", () => {
  if (stoppedAt !== null) {
    goLive();
    return;
  }
  isPaused = !isPaused;
  followVisibility();
  showState();
});

/** @param {"filled" | import("../page/ranges/spans.js").Span} span the one to show */
function goLive(span = "filled") {
  wanted = span;
  forget();
  log.hold(KEPT_MAX, ROWS_MAX);
  setText(element("#jumped"), "");
  followFrom(`-${HISTORY_EVENTS}`);
}

find(document, "#filter", HTMLInputElement).addEventListener("input", ({ target }) => {
  if (target instanceof HTMLInputElement) log.filter(target.value);
});

find(document, "#as-table", HTMLInputElement).addEventListener("change", ({ target }) => {
  if (target instanceof HTMLInputElement) log.showAsTable(target.checked);
});

find(document, ".jump", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  void jump(find(document, "#place", HTMLInputElement).value);
});

/** @param {string} text */
async function jump(text) {
  const said = element("#jumped");
  const place = placeOf(text, epoch);
  if (place === null) {
    const isNumber = /^\s*#?\d+\s*$/.test(text);
    setText(said, isNumber ? "There is no event yet." : "Type the number of an event, a position, an age such as 10m, a time of the last 24 hours such as 14:30, earliest or latest.");
    return;
  }
  if (place.value === "latest") {
    goLive();
    return;
  }
  try {
    const { page, received } = await pageAt(url, place, PAGE_EVENTS);
    const last = page.events.at(-1);
    // What is there stays.
    if (!last && !page.gap) {
      setText(said, "There is nothing after this.");
      return;
    }
    stoppedAt = last?.time ?? serverNow();
    ranges.mark(null);
    reading.pause();
    forget();
    log.hold(PAGE_EVENTS + 1, PAGE_EVENTS + 1); // and the notice of a gap
    if (page.gap) takeGap(page.gap);
    for (const { offset, time, data } of page.events) take({ position: `${page.epoch}-${offset}`, time, data, received });
    show();
    log.showOldest();
    setText(said, last ? `${countOf(page.events.length, "event")} from here on: the first is at the end of the list. Follow shows what comes now.` : "There is nothing after this.");
  } catch (error) {
    setText(said, error instanceof Error ? error.message : "The server does not answer.");
  }
}

// --- beginning ---

document.title = `${name} · Anemone`;
setText(element("#title"), name);
showWays(element("#how"), find(document, "#command", HTMLTemplateElement), url);
void offerPublishing(element("#publish"), url);
void offerStatus(find(document, "#status", HTMLAnchorElement), name);
void showPlaces();
document.addEventListener("visibilitychange", followVisibility);
void keepShowing(PARTS, takeNews);
followFrom(`-${HISTORY_EVENTS}`);
element("#notice-no-script").remove();

const asked = new URLSearchParams(location.search);
const place = asked.get("after") ?? asked.get("since");
if (place !== null) void jump(place);

const clock = await probeBlock(at("clock"), { environment: browser, signal: AbortSignal.timeout(30_000), probes: PROBES });
clockOffset = clock?.offset ?? 0;
void ranges.look();
