/**
 * The page about messages: the records of the resource as they change, in every window at once.
 *
 * The topic of the resource has all records and all changes, so the page reads nothing else. All data of messages is shown as text.
 */
import { command } from "../commands.js";
import { fieldsOf, find, putAfter, setText } from "../element.js";
import { showReached, tellState, waitingOf } from "../following.js";
import { listTopics, showPlaces } from "../places.js";
import { client, learnClock } from "../server.js";
import { keepShowing } from "../showing.js";
import { at } from "../site.js";
import { countOf, formatCount } from "../words.js";
import { now, parsePosition } from "../../client.js";
import { Records } from "./records.js";
import { Row } from "./row.js";
import { offerWriting } from "./write.js";

const TOPIC = "messages";
const SHOWN_MAX = 200;
const AGES_EVERY_MS = 1000;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
const field = fieldsOf(document.body);
const list = element("#messages ul");
const template = find(document, "#message", HTMLTemplateElement);

const records = new Records();
/** @type {Map<string, Row>} */
const rows = new Map();
/** The ids of the messages that are new or changed since the last drawing. @type {Set<string>} */
const fresh = new Set();
let isChanged = true;
/** True once all messages of the beginning are here. */
let isWhole = false;
/** The offset of the newest event at the beginning; null until it is known. @type {number | null} */
let wholeAt = null;
/** @type {import("../../transport/types.js").State} */
let state = { kind: "connecting" };

const topic = client.topic(TOPIC, { after: "earliest" });
topic.onmessage = take;
topic.ongap = startAnew;
topic.onclose = end;
tellState(topic, (next) => {
  state = next;
  showState();
});

/** @param {import("../../anemone-client/types.js").TopicEvent} event */
function take({ data, position, time }) {
  isChanged = true;
  const change = records.take(data, position, time);
  if (!change) return;
  if (change.what === "removed") rows.get(change.id)?.leave();
  else if (isWhole) fresh.add(change.id);
  if (isWhole) setText(element("#announcer"), `A message was ${change.what}.`);
}

/**
 * Begins anew after a gap for which the server sends all messages again. Any others are no longer there.
 * @param {import("../../anemone-client/types.js").Gap} gap
 */
function startAnew({ reason }) {
  if (reason !== "epoch" && reason !== "retention") return;
  isChanged = true;
  for (const row of rows.values()) row.leave();
  records.clear();
}

/** @param {import("../../client.js").AnemoneError | undefined} error */
function end(error) {
  if (error) state = waitingOf(error, now());
  showState();
}

/** Returns true if something has come since the last time. */
function takeNews() {
  beWhole();
  const isNews = isChanged;
  isChanged = false;
  return isNews;
}

function show() {
  const newest = records.newest.slice(0, SHOWN_MAX);
  const ids = new Set(newest.map(({ record }) => record.id));
  for (const [id, row] of rows) if (!ids.has(id) && !row.isEdited) forget(id, row);
  /** @type {Element | null} */
  let previous = null;
  for (const version of newest) {
    const { id } = version.record;
    const row = rows.get(id) ?? addRow(version);
    row.show(version);
    if (fresh.has(id)) row.mark();
    putAfter(list, row.element, previous);
    previous = row.element;
  }
  fresh.clear();
  const { size } = records;
  setText(element("#count"), size > SHOWN_MAX ? `the newest ${SHOWN_MAX} of ${formatCount(size)}` : size === 0 ? "" : countOf(size, "message"));
  element("#none").hidden = size > 0 || !isWhole;
}

/** @param {import("./records.js").Version} version */
function addRow(version) {
  const { id } = version.record;
  const row = new Row(template, version, (left) => forget(id, left));
  rows.set(id, row);
  return row;
}

/**
 * @param {string} id
 * @param {Row} row
 */
function forget(id, row) {
  const hadFocus = row.element.contains(document.activeElement);
  const next = row.element.nextElementSibling ?? row.element.previousElementSibling;
  row.element.remove();
  rows.delete(id);
  if (hadFocus) (next ?? element("#write")).querySelector(next ? "button" : "textarea")?.focus();
}

/** Checks whether all messages of the beginning are here. */
function beWhole() {
  const here = parsePosition(topic.position ?? "");
  if (isWhole || wholeAt === null || !here || here.offset < wholeAt) return;
  isWhole = isChanged = true;
}

function showState() {
  document.body.dataset.state = state.kind;
  setText(field("state"), showReached(state));
}

function showAges() {
  showState();
  for (const row of rows.values()) row.showAge();
}

/** Shows the command lines that do the same in a terminal. */
function showCommands() {
  const url = at(TOPIC);
  const json = "-H 'Content-Type: application/json'";
  const lines = {
    "Follow the changes": `curl -N '${at(`topics/${TOPIC}`)}?after=earliest' -H 'Accept: text/event-stream'`,
    "Write one": `curl '${url}' ${json} -d '{"text":"hello"}'`,
    "Find some": `curl -g '${url}?from=Ada&$sort[text]=1'`,
    "Change one, if it is still that version": `curl -X PATCH '${url}/ID' ${json} -H 'If-Match: "TAG"' -d '{"text":"new"}'`,
  };
  const items = Object.entries(lines).map(([title, line]) => command(find(document, "#command", HTMLTemplateElement), title, line));
  element("#how ul").append(...items);
}

element("#notice-no-script").remove();
void showPlaces();
offerWriting(element("#write"));
showCommands();
void keepShowing([show], takeNews);
setInterval(showAges, AGES_EVERY_MS);
void learnClock().catch(() => {}); // ages are then by this clock
const listed = await listTopics(`?prefix=${TOPIC}&limit=1`);
wholeAt = parsePosition(listed?.topics[0]?.next ?? "")?.offset ?? 0;
