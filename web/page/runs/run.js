/**
 * The page of one run: its progress, its partial results as they come with a chart of their numbers, its end, and how to read it.
 *
 * The state is requested once, and then follows from the events. Events arrive at any time, and are shown together a little later. All data
 * is shown as text.
 */
import { Columns } from "../events/columns.js";
import { numbersOf } from "../events/fields.js";
import { showWays } from "../events/how.js";
import { Log, ROWS_MAX } from "../events/log.js";
import { Plot } from "../events/plot.js";
import { gapInWords } from "../events/words.js";
import { fieldsOf, find, setText } from "../element.js";
import { showReached, tellState } from "../following.js";
import { showPlaces } from "../places.js";
import { client, failureInWords, learnClock, sentence, serverNow } from "../server.js";
import { keepShowing } from "../showing.js";
import { at } from "../site.js";
import { AnemoneError, now, parsePosition } from "../../client.js";
import { save } from "../save.js";
import { begin as beginRun } from "./begin.js";
import { cancel } from "./cancel.js";
import { csvOf, ndjsonOf } from "./download.js";
import { keptOf } from "./kept.js";
import { showOutcome } from "./outcome.js";
import { UNKNOWN_RUN, afterEvent, countInWords, drawnAt, inputInWords, isOver, missedInWords, nameOf, percent, partInWords, progressInWords, timesInWords } from "./words.js";

const REDRAW_EVERY_MS = 250;
const SUMMARY_EVERY_MS = 2000;
const LOOK_PAUSED_MS = 2000;
/** The number of events of the first request: the last ones of a long run. */
const HISTORY_EVENTS = 1000;
const HISTORY_FACTOR = 10;
const HISTORY_EVENTS_MAX = 100_000;
/** The characters of a run that a server keeps by default. */
const RUN_CHARS_MAX = 16 * 1024 * 1024;
/** The most rows in the list of a run that is over. While a run works, there are fewer, so that new rows cost little. */
const ROWS_AT_END = 1000;

/** @typedef {import("../../anemone-client/types.js").TopicEvent} TopicEvent */
/** @typedef {import("./words.js").RunState} RunState */

const path = `runs/${location.pathname.slice(location.pathname.lastIndexOf("/") + 1)}`;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
/** @param {string} selector */
const button = (selector) => find(document, selector, HTMLButtonElement);
const field = fieldsOf(document.body);
const bar = find(document, "progress", HTMLProgressElement);

/** @type {RunState | null} */
let run = null;
/** The time at which the connection was lost; null while the page is connected. @type {number | null} */
let lostAt = null;
const columns = new Columns((names) => plot.rename(names));
const log = new Log(element("#events"), () => columns.names, RUN_CHARS_MAX);
log.hold(HISTORY_EVENTS_MAX, ROWS_MAX);
const plot = new Plot(element("#plot"), "the partial results", () => run?.ended ?? lostAt ?? serverNow(), isWhole);
plot.onChosen = (/** @type {readonly string[]} */ names) => log.reveal(names);

/** The time at which the server reported the progress, by the server's clock. */
let toldAt = 0;
let partials = 0;
/** The number of the first event that was taken; events are numbered from 1. @type {number | null} */
let first = null;
/** How many of the last events the page requests. */
let history = HISTORY_EVENTS;
let isChanged = false;
let isPaused = false;
/** @type {import("../../transport/types.js").State} */
let state = { kind: "connecting" };
/** @type {ReturnType<typeof client.read> | null} */
let reading = null;
/** The place of the last event that was taken. @type {string | undefined} */
let position;
/** The place up to which all parts of the page show the events. @type {string | undefined} */
let shown;

// --- events ---

/** @param {TopicEvent} event */
function take(event) {
  position = event.position;
  first ??= offsetOf(event.position);
  isChanged = true;
  const { data, time } = event;
  if ("partial" in data) takePartial({ ...event, data: data.partial });
  else if (run && !isOver(run)) {
    toldAt = time;
    run = afterEvent(run, data, time);
  }
}

/** @param {Omit<TopicEvent, "topic">} event */
function takePartial(event) {
  const { data, time } = event;
  partials += 1;
  const cells = typeof data === "string" ? columns.row(data) : null;
  const numbers = cells === null ? numbersOf(data) : columns.isTable ? columns.numbers(cells) : [];
  // The numbers of a run that is drawn elsewhere are parts of its picture.
  if (run === null || drawnAt(run) === null) plot.add(time, numbers, offsetOf(event.position));
  log.add(event, cells);
}

/** @param {string} position */
function offsetOf(position) {
  return parsePosition(position)?.offset ?? 0;
}

/** Returns true if the page has the run from its first event on. */
function isWhole() {
  return first === null || first <= 1;
}

// --- showing ---

/** The drawing, in parts. Each has a frame of its own. */
const PARTS = [
  () => {
    offerTable();
    log.update();
    element("#nothing").hidden = partials > 0;
  },
  () => log.finish(),
  () => plot.update(),
  () => {
    showRun();
    begin();
  },
];

/**
 * Shows the parts below the state once all events are here that the run had at the first request, so that nothing moves after that. Each
 * run has an event.
 */
function begin() {
  if (run && shown !== undefined && offsetOf(shown) >= offsetOf(run.next ?? "")) beginNow();
}

function beginNow() {
  find(document, "main", HTMLElement).classList.add("begun");
}

/** Returns true if something has come since the last time. */
function takeNews() {
  const isNews = isChanged;
  isChanged = false;
  // More may come before the last part has had its turn.
  shown = position;
  return isNews;
}

function showRun() {
  if (!run) return;
  find(document, "main", HTMLElement).classList.add("known");
  document.body.dataset.run = run.state;
  element("#now").hidden = false;
  setText(element("#title"), `Run ${nameOf(run)}`);
  document.title = `${run.state === "running" && run.progress !== null ? `${percent(run.progress)} ` : ""}${nameOf(run)} · Anemone`;
  setText(field("run-state"), run.state);
  setText(field("times"), timesInWords(run, serverNow()));
  setText(field("progress"), progressInWords(run, serverNow() - toldAt));
  setText(field("text"), run.text ?? "");
  bar.hidden = run.progress === null || run.state === "queued";
  bar.value = run.progress ?? 0;
  button("#cancel").hidden = isOver(run);
  button("#pause").hidden = isOver(run) && !isPaused;
  element("#goes-on").hidden = isOver(run);
  const input = inputInWords(run.input);
  element("#given").hidden = input === "";
  setText(field("input"), input);
  button("#again").hidden = !isOver(run) || !run.input || run.input.cut === true;
  element("#downloads").hidden = false;
  const drawn = drawnAt(run);
  element("#drawn").hidden = drawn === null;
  if (drawn !== null) find(document, "#drawn a", HTMLAnchorElement).href = at(drawn);
  setText(element("#nothing"), nothingInWords(isOver(run)));
  showPart();
}

/** @param {boolean} isEnd */
function nothingInWords(isEnd) {
  if (!isEnd) return "No partial result yet. This page shows the first one as soon as it is there.";
  return isWhole() ? "It has no partial result." : "No partial result among the last events of the run.";
}

/** Says which part of the run is on the page, if it is not the whole. */
function showPart() {
  element("#part").hidden = isWhole();
  if (isWhole() || first === null) return;
  const events = Math.max(offsetOf(position ?? ""), offsetOf(run?.next ?? ""));
  const isAllKept = run !== null && isOver(run) && events - first + 1 < history;
  setText(field("part"), partInWords({ results: partials, first, events, isAllKept }));
  button("#earlier").hidden = isAllKept || history >= HISTORY_EVENTS_MAX;
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

function showState() {
  const isEnd = run !== null && isOver(run) && reading === null && !isPaused;
  const reached = showReached(isPaused || isEnd ? { kind: "paused" } : state);
  const words = isPaused ? "paused; the run goes on" : isEnd ? endInWords() : reached;
  document.body.dataset.state = isPaused ? "paused" : isEnd ? "connected" : state.kind;
  setText(field("state"), words);
  setText(button("#pause"), isPaused ? "Continue" : "Pause");
}

function endInWords() {
  return isWhole() && log.keptFrom === undefined ? "all of the run is here" : "the end of the run is here";
}

/** @param {string} words for screen readers, and nothing in between */
function announce(words) {
  setText(element("#announcer"), words);
}

// --- reading ---

/** Asks for the state. */
async function look() {
  try {
    const { data } = await client.call("GET", `${path}?state`);
    run = data;
    toldAt = serverNow();
    isChanged = true;
    const isEnd = isOver(data);
    element("#end").hidden = !isEnd;
    if (isEnd) showOutcome(find(document, "#end .outcome", HTMLElement), data);
    return true;
  } catch (error) {
    if (error instanceof AnemoneError && error.code === "unknown-run") showGone();
    else setText(element("#said"), failureInWords(error));
    return false;
  }
}

function follow() {
  const topic = client.read(path, { after: position ?? `-${history}` });
  reading = topic;
  tellState(topic, (next) => {
    if (next.kind === "connected") {
      announce("connected");
      setText(element("#said"), "");
      if (run === null) void look();
    } else if (next.kind === "waiting" && state.kind === "connected") announce(next.reason);
    state = next;
    lostAt = next.kind === "connected" ? null : (lostAt ?? serverNow());
  });
  topic.onmessage = take;
  topic.ongap = (gap) => {
    isChanged = true;
    log.note(gapInWords(gap).replace("the topic", "the run"));
  };
  topic.onclose = (error) => {
    if (reading !== topic) return; // paused
    reading = null;
    void end(error);
  };
}

/** @param {AnemoneError | undefined} error without one, all of the run has been read */
async function end(error) {
  if (error?.code === "topic-deleted" || error?.code === "unknown-run") return showGone();
  if (error) setText(element("#said"), sentence(error.message));
  if (!(await look()) || run === null) return;
  log.hold(HISTORY_EVENTS_MAX, ROWS_AT_END);
  showCount();
  showTurns();
  plot.end();
  announce(`The run is ${run.state}.`);
  showState();
}

/** Shows that the server has no such run. The events that have come stay on the page. */
function showGone() {
  const isKnown = partials > 0 || run !== null;
  const words = isKnown ? "The server no longer keeps this run. What is below is what this page has of it." : UNKNOWN_RUN;
  beginNow();
  element("#gone").hidden = false;
  setText(element("#gone"), words);
  if (run === null) setText(element("#title"), "No such run");
  button("#cancel").hidden = button("#pause").hidden = element("#downloads").hidden = true;
  if (run === null) showWayToList();
  if (run === null) for (const id of ["#events", "#how"]) element(id).hidden = true;
  state = { kind: "paused" };
  showReached(state);
  setText(field("state"), "not here");
  document.body.dataset.state = "paused";
  clearInterval(drawing);
  if (run === null || isOver(run)) return;
  // Nobody knows how it ended.
  element("#now").hidden = true;
  document.title = `${nameOf(run)} · Anemone`;
  delete document.body.dataset.run;
  run = null;
}

/** Reads the run again, from an earlier event on. */
function readEarlier() {
  history = Math.min(history * HISTORY_FACTOR, HISTORY_EVENTS_MAX);
  const before = reading;
  reading = null;
  before?.close();
  partials = 0;
  position = undefined;
  first = null;
  columns.clear();
  log.clear();
  plot.clear();
  if (isPaused) button("#pause").click();
  else follow();
}

function showWayToList() {
  const link = document.createElement("a");
  link.href = at("runs");
  link.textContent = "See the runs that this server has";
  element("#gone").append(" ", link, ".");
}

// --- hands ---

button("#earlier").addEventListener("click", readEarlier);

for (const [selector, other, which] of /** @type {const} */ ([["#older", "#newer", "earlier"], ["#newer", "#older", "later"], ["#newest", "#older", "newest"]])) {
  button(selector).addEventListener("click", () => {
    log.turn(which);
    showCount();
    showTurns();
    if (button(selector).hidden) button(other).focus();
  });
}

button("#pause").addEventListener("click", () => {
  isPaused = !isPaused;
  if (isPaused) {
    lostAt ??= serverNow();
    const paused = reading;
    reading = null;
    paused?.close();
  } else {
    state = { kind: "connecting" };
    follow();
  }
  showState();
});

button("#cancel").addEventListener("click", async () => {
  if (!run) return;
  const words = await cancel(run);
  if (words === null) return;
  setText(element("#said"), words);
  await look();
});

button("#again").addEventListener("click", async () => {
  const input = run?.input;
  if (!run || !input) return;
  button("#again").disabled = true;
  const { words, location: started } = await beginRun({ ...input, name: run.name ?? null });
  button("#again").disabled = false;
  if (started === null) setText(element("#said"), words);
  else location.assign(started);
});

for (const [id, type, text] of /** @type {const} */ ([["ndjson", "application/x-ndjson", ndjsonOf], ["csv", "text/csv", csvOfKept]])) {
  button(`#${id}`).addEventListener("click", async () => {
    try {
      const kept = await keptOf(path);
      save(text(kept), type, `run-${path.slice("runs/".length, "runs/".length + 6)}.${id}`);
      setText(element("#said"), missedInWords(kept.missed));
    } catch (error) {
      setText(element("#said"), failureInWords(error));
    }
  });
}

/** @param {import("./download.js").Kept} kept */
function csvOfKept({ events }) {
  return csvOf(events);
}

find(document, "#filter", HTMLInputElement).addEventListener("input", ({ target }) => {
  if (target instanceof HTMLInputElement) log.filter(target.value);
  showCount();
  showTurns();
});

find(document, "#as-table", HTMLInputElement).addEventListener("change", ({ target }) => {
  if (target instanceof HTMLInputElement) log.showAsTable(target.checked);
});

// --- beginning ---

let summaryAt = -Infinity;
let lookedAt = 0;

function redraw() {
  if (run && !isOver(run)) plot.redraw();
  showRun();
  showState();
  showTurns();
  // The log waits while it is paused; the progress does not.
  if (isPaused && run && !isOver(run) && now() - lookedAt > LOOK_PAUSED_MS) {
    lookedAt = now();
    void look();
  }
  if (performance.now() - summaryAt < SUMMARY_EVERY_MS) return;
  summaryAt = performance.now();
  setText(element("#summary"), plot.summary());
  showCount();
}

function showCount() {
  const { listed, keptFrom } = log;
  const number = (/** @type {string | undefined} */ place) => (place === undefined ? null : offsetOf(place));
  setText(field("count"), countInWords({ ...listed, results: partials, isNewest: log.beyond.later === 0, first: number(listed.first), last: number(listed.last), keptFrom: number(keptFrom) }));
}

function showTurns() {
  const { earlier, later } = log.beyond;
  button("#older").hidden = earlier === 0;
  button("#newer").hidden = button("#newest").hidden = later === 0;
}

element("#notice-no-script").remove();
void showPlaces();
void keepShowing(PARTS, takeNews);
const drawing = setInterval(redraw, REDRAW_EVERY_MS);
void learnClock().catch(() => {}); // ages are then by this clock
await look();
if (element("#gone").hidden) {
  showWays(element("#how"), find(document, "#command", HTMLTemplateElement), at(path));
  follow();
}
