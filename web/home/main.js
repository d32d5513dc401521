/**
 * Home: the topics of this server, live, and its services.
 *
 * Reads the topics in view over one connection, however many there are. New events are shown together, a few times a second.
 */
import { connect, now } from "../client.js";
import { fadeEdges } from "../page/edges.js";
import { find, setText } from "../page/element.js";
import { lookForPlaces } from "../page/places.js";
import { SITE } from "../page/site.js";
import { formatCount } from "../page/words.js";
import { offerCopy } from "../page/commands.js";
import { followTopics, NAMES_MAX } from "./index.js";
import { Row } from "./row.js";
import { Services } from "./services.js";
import { askFacts, showShare } from "./share.js";
import { Statuses } from "./statuses.js";
import { Values } from "./values.js";
import { keepsInWords, mostKept, retentionInWords } from "./words.js";

/** @typedef {import("../page/places.js").ListedTopic} ListedTopic */

/** The most topics in the page. The others are found by typing. */
const ROWS_MAX = 500;
const SHOW_EVERY_MS = 250;
const FACTS_EVERY_MS = 1000;
/** The time between two looks at facts that no event has: how much a topic keeps, and the number of its readers. */
const LIST_EVERY_MS = 5000;
const LIST_MAX = 1000;
const GONE_AFTER_MS = 1500;
const SEEN_AFTER_MS = 150;
const FACTS_MS_MAX = 1000;
/** The topics and services of the demo. */
const DEMO_TOPICS = ["host", "messages", "wind"];
const DEMO_SERVICES = ["/computations", "/messages", "/propagation"];

const section = find(document, "#topics", HTMLElement);
const list = find(section, "ul", HTMLElement);
const template = find(document, "#topic", HTMLTemplateElement);
const search = find(document, "#find", HTMLInputElement);

// One WebSocket, and no shared one: where none passes, a tab that reads for all others would take all connections of the browser.
const client = connect(SITE, { transports: ["mux", "sse", "long-poll", "poll"] });
const services = new Services(client, find(document, "#services", HTMLElement), find(document, "#service", HTMLTemplateElement));
const values = new Values(client, (name, newest) => {
  const topic = statuses.topicOf(name);
  if (topic === null) rows.get(name)?.take(newest);
  else rows.get(topic)?.takeStatus(name, newest.data);
});

/** @type {Set<string>} all topics */
const names = new Set();
const statuses = new Statuses();
/** @type {string[]} */
let sorted = [];
/** @type {Map<string, Row>} those in the page */
const rows = new Map();
let isListStale = false;
/** The retention of most topics, in words. */
let usual = "";
/** The topics of the demo, which are shown after the others. @type {readonly string[]} */
let demos = [];
let isThere = false;
let clockOffset = 0;

void followTopics(client, {
  onList(topics) {
    names.clear();
    for (const { name } of topics) names.add(name);
    statuses.list(topics);
    showKept(topics);
    showList();
    for (const topic of topics) rows.get(topic.name)?.list(topic, statuses.hasStatus(topic.name));
    void setClock().then(showFacts);
    // What is above the topics comes first, so that they do not move.
    const late = new Promise((resolve) => setTimeout(resolve, FACTS_MS_MAX));
    void Promise.race([showServer(), late]).then(() => (section.hidden = false));
  },
  onCreated(name) {
    if (names.size < NAMES_MAX) names.add(name);
    isListStale = true;
  },
  onDeleted(name) {
    names.delete(name);
    isListStale = true;
  },
  onServer(is, transport) {
    isThere = is;
    values.over(transport);
    // A connection that is soon there again is no news.
    const tell = () => (find(document, "#notice-no-server", HTMLElement).hidden = isThere);
    if (is) tell();
    else setTimeout(tell, GONE_AFTER_MS);
  },
});

/** Shows the server's facts about itself. After a failure, it may be another server. */
async function showServer() {
  const known = await askFacts();
  showShare(find(document, "#share", HTMLElement), known);
  find(document, "#demos", HTMLElement).hidden = !known.demo;
  demos = known.demo ? DEMO_TOPICS : [];
  isListStale = true;
  await Promise.all([services.look(known.demo ? DEMO_SERVICES : []), lookForPlaces()]);
  // The parts below the topics are shown at once, so that none moves another.
  find(document, "main", HTMLElement).classList.add("known");
}

/** Puts the rows of the topics to be shown into the page, in order. Rows that are in the page already stay. */
function showList() {
  isListStale = false;
  const wanted = search.value.trim().toLowerCase();
  sorted = [...names].sort(byName);
  const topics = sorted.filter((name) => statuses.topicOf(name) === null);
  const hasText = (/** @type {string} */ name) => statuses.withStatus(name).some((each) => each.toLowerCase().includes(wanted));
  const found = topics.filter(hasText).sort((a, b) => Number(demos.includes(a)) - Number(demos.includes(b)));
  const shown = found.slice(0, ROWS_MAX);
  const isShown = new Set(shown);
  for (const [name, { element }] of rows) {
    if (isShown.has(name)) continue;
    seen.unobserve(element);
    element.remove();
    rows.delete(name);
  }
  /** @type {Element | null} */
  let place = list.firstElementChild;
  for (const name of shown) {
    const row = rows.get(name) ?? addRow(name);
    if (row.element === place) place = place.nextElementSibling;
    else list.insertBefore(row.element, place);
  }
  find(document, "#finding", HTMLElement).hidden = names.size === 0;
  setText(find(section, "[data-field=count]", HTMLElement), countInWords(wanted !== "", found.length, topics.length));
  showSeen();
}

/** Shows the retention of most topics, once for all of them. @param {readonly ListedTopic[]} topics */
function showKept(topics) {
  const own = topics.filter(({ name }) => statuses.topicOf(name) === null);
  const kept = mostKept(own);
  usual = keepsInWords(kept);
  setText(find(document, "#keeps", HTMLElement), retentionInWords(kept, own.every((topic) => keepsInWords(topic) === usual)));
}

/** @param {string} name */
function addRow(name) {
  const row = new Row(template, name);
  rows.set(name, row);
  seen.observe(row.element);
  return row;
}

/**
 * Compares two names in the server's order: byte by byte.
 * @param {string} a
 * @param {string} b
 */
function byName(a, b) {
  return a < b ? -1 : 1;
}

/**
 * @param {boolean} isSearch
 * @param {number} found
 * @param {number} count
 */
function countInWords(isSearch, found, count) {
  if (count === 0) return "There is no topic yet. Each appears here as soon as it is there; the commands below make one.";
  const all = names.size >= NAMES_MAX ? `the first ${formatCount(count)}` : formatCount(count);
  if (found > ROWS_MAX) return `The first ${ROWS_MAX} of ${formatCount(found)} by name; type to find others.`;
  if (isSearch && found === 0) return "No topic has this in its name.";
  return isSearch ? `${formatCount(found)} of ${all}` : "";
}

// --- what is in view ---

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const row = rows.get(String(target instanceof HTMLElement && target.dataset.name));
    if (row) row.isSeen = isIntersecting;
    if (!isIntersecting) row?.forget();
  }
  showSeen();
});

/** @type {ReturnType<typeof setTimeout> | undefined} */
let seenTimer;

/** Reads the topics in view, once scrolling has come to rest. A hidden page reads nothing. */
function showSeen() {
  clearTimeout(seenTimer);
  seenTimer = setTimeout(() => values.show(document.visibilityState === "visible" ? seenRows().flatMap(({ name }) => statuses.withStatus(name)) : []), SEEN_AFTER_MS);
}

function seenRows() {
  return [...rows.values()].filter(({ isSeen }) => isSeen);
}

function show() {
  if (isListStale) showList();
  for (const row of seenRows()) {
    if (row.showValue()) void row.begin((count, end) => values.past(row.name, count, end));
  }
}

function showFacts() {
  if (document.visibilityState === "hidden") return;
  const serverNow = now() + clockOffset;
  for (const row of seenRows()) row.showFacts(serverNow, values.reads(row.name), usual);
}

/** Asks for the kept data and the readers of the topics in view: one request for all from the first to the last. */
async function lookAgain() {
  const inView = seenRows().map(({ name }) => sorted.indexOf(name));
  const [first, last] = [Math.min(...inView), Math.max(...inView)];
  if (document.visibilityState === "hidden" || !isThere || !(first >= 0)) return;
  const after = first > 0 ? `&after=${sorted[first - 1]}` : "";
  try {
    const { data } = await client.call("GET", `topics?limit=${Math.min(LIST_MAX, last - first + 1)}${after}`);
    for (const topic of /** @type {ListedTopic[]} */ (data.topics)) rows.get(topic.name)?.list(topic, statuses.hasStatus(topic.name));
  } catch {
    // The index says whether the server is there.
  }
}

async function setClock() {
  try {
    const sent = now();
    const { data } = await client.call("GET", "clock");
    clockOffset = data.time - (sent + now()) / 2;
  } catch {
    // Ages are then by this clock.
  }
}

search.addEventListener("input", showList);
document.addEventListener("visibilitychange", () => {
  // Events that come meanwhile are not read, and would be missing in the curve.
  for (const row of rows.values()) row.forget();
  showSeen();
});
setInterval(show, SHOW_EVERY_MS);
setInterval(showFacts, FACTS_EVERY_MS);
setInterval(lookAgain, LIST_EVERY_MS);
for (const command of document.querySelectorAll("#next .command")) {
  offerCopy(find(command, "button", HTMLButtonElement), find(command, "code", HTMLElement), String(command.parentElement?.querySelector("h3")?.textContent));
}
fadeEdges(find(document, ".places", HTMLElement));
find(document, "#notice-no-script", HTMLElement).remove();
