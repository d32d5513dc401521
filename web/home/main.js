/** Home: the topics of this server, how fast they grow, their newest values, and a command that reads each. */
import { following, offerCopy } from "../page/commands.js";
import { fieldsOf, find, setText } from "../page/element.js";
import { listTopics, showPlaces } from "../page/places.js";
import { at } from "../page/site.js";
import { formatBytes, formatCount, formatDuration } from "../page/words.js";
import { browser } from "../transport/environment.js";
import { parsePosition } from "../transport/sequence.js";
import { Rate, rateInWords } from "./rates.js";

const LOOK_EVERY_MS = 2000;
const ANSWER_MS_MAX = 10_000;
/** Newest values asked for in one round; the others follow in the next ones. */
const VALUES_MAX = 12;
const VALUE_CHARS_MAX = 300;
/** The age from which it is told. */
const AGE_MS_MIN = 10_000;

/** @typedef {import("../page/places.js").ListedTopic} ListedTopic */
/** @typedef {{ element: HTMLElement, field: (name: string) => HTMLElement, rate: Rate, asked: string, newestAt: number | null, isSeen: boolean }} Row newestAt by this clock */

const section = find(document, "#topics", HTMLElement);
const list = find(section, "ul", HTMLElement);
const template = find(document, "#topic", HTMLTemplateElement);
const search = find(document, "#find", HTMLInputElement);

/** @type {Map<string, Row>} */
const rows = new Map();
/** @type {{ topics: ListedTopic[], next?: string } | null} */
let listed = null;

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const row = rows.get(String(target instanceof HTMLElement && target.dataset.name));
    if (row) row.isSeen = isIntersecting;
  }
});

/** @param {string} name */
function addRow(name) {
  list.append(template.content.cloneNode(true));
  const element = /** @type {HTMLElement} */ (list.lastElementChild);
  element.dataset.name = name;
  const link = document.createElement("a");
  link.href = at(`topics/${name}`);
  link.textContent = name;
  find(element, "h2", HTMLElement).append(link);
  const field = fieldsOf(element);
  field("command").textContent = following(link.href);
  offerCopy(find(element, "button", HTMLButtonElement), field("command"), name);
  seen.observe(element);
  const row = { element, field, rate: new Rate(), asked: "", newestAt: null, isSeen: false };
  rows.set(name, row);
  return row;
}

async function look() {
  const found = await listTopics();
  find(document, "#notice-no-server", HTMLElement).hidden = found !== null;
  if (found) listed = found;
  if (!listed) return;
  section.hidden = false;
  show(listed);
  if (found) await askValues(found.topics);
}

/** @param {{ topics: ListedTopic[], next?: string }} list */
function show({ topics, next: more }) {
  const names = new Set(topics.map(({ name }) => name));
  for (const [name, { element }] of rows) {
    if (names.has(name)) continue;
    element.remove();
    rows.delete(name);
  }
  const now = browser.now();
  /** @type {HTMLElement | null} */
  let previous = null;
  for (const { name, next, first, bytes } of topics) {
    const row = rows.get(name) ?? addRow(name);
    // In the order of the list; only what is elsewhere moves, or it would lose the focus.
    /** @type {Element | null} */
    const place = previous === null ? list.firstElementChild : previous.nextElementSibling;
    if (place !== row.element) list.insertBefore(row.element, place);
    previous = row.element;
    row.rate.look(next, now);
    const count = (parsePosition(next)?.offset ?? 0) - first + 1;
    setText(row.field("rate"), rateInWords(row.rate.perSecond));
    setText(row.field("kept"), count > 0 ? `${formatCount(count)} kept, ${formatBytes(bytes)}` : "empty");
    const age = row.newestAt === null ? 0 : now - row.newestAt;
    setText(row.field("age"), age > AGE_MS_MIN && row.asked === next ? `newest ${formatDuration(age)} ago` : "");
  }
  find(document, "#lead-wind", HTMLElement).hidden = !names.has("wind");
  filter(topics.length, more !== undefined);
}

/**
 * Shows the topics whose names have what is typed.
 * @param {number} count
 * @param {boolean} isMore
 */
function filter(count, isMore) {
  const wanted = search.value.trim().toLowerCase();
  let shown = 0;
  for (const [name, { element }] of rows) {
    element.hidden = !name.toLowerCase().includes(wanted);
    if (!element.hidden) shown += 1;
  }
  const all = isMore ? `the first ${formatCount(count)}` : formatCount(count);
  const words = wanted !== "" ? `${formatCount(shown)} of ${all}` : count === 0 ? "It has no topic yet." : isMore ? `The first ${formatCount(count)} of them by name:` : "";
  setText(find(section, "[data-field=count]", HTMLElement), words);
}

/**
 * Asks for the newest values of topics that are in view and have grown.
 * @param {readonly ListedTopic[]} topics
 */
async function askValues(topics) {
  const grown = topics.filter(({ name, next }) => {
    const row = rows.get(name);
    return row?.isSeen && row.asked !== next && !next.endsWith("-0");
  });
  await Promise.all(grown.slice(0, VALUES_MAX).map(({ name, next }) => askValue(name, next)));
}

/**
 * @param {string} name
 * @param {string} next
 */
async function askValue(name, next) {
  const row = rows.get(name);
  if (!row) return;
  row.asked = next;
  try {
    const headers = { accept: "application/json" };
    const reply = await browser.fetch(at(`topics/${name}`), { cache: "no-store", headers, signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    const { events } = await reply.json();
    const newest = events?.at?.(-1);
    if (!newest) return;
    const text = typeof newest.data === "string" ? newest.data : JSON.stringify(newest.data);
    setText(row.field("newest"), text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text);
    // By the server's clock, as its reply tells it.
    const age = Date.parse(reply.headers.get("date") ?? "") - newest.time;
    row.newestAt = Number.isNaN(age) ? null : browser.now() - age;
  } catch {
    row.asked = ""; // the next look says whether the server is there
  }
}

search.addEventListener("input", () => listed && filter(listed.topics.length, listed.next !== undefined));
find(document, "#notice-no-script", HTMLElement).remove();
void showPlaces();
for (;;) {
  await look();
  do await browser.sleep(LOOK_EVERY_MS, new AbortController().signal);
  while (document.visibilityState === "hidden");
}
