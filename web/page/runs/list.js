/**
 * The list of the runs. Each has its state, its progress, its end, and a button that cancels it.
 *
 * There are no events of this list, so the page asks for it while it is visible: often while a run works, less often otherwise, and still
 * less often if the answer takes long. The address of the page has the query and the search, so that a link leads to the same runs.
 */
import { fieldsOf, find, putAfter, setText } from "../element.js";
import { showPlaces } from "../places.js";
import { client, failureInWords, isGone, learnClock, serverNow } from "../server.js";
import { at } from "../site.js";
import { formatCount } from "../words.js";
import { AnemoneError, now, sleep } from "../../client.js";
import { cancel } from "./cancel.js";
import { showOutcome } from "./outcome.js";
import { offerStarts } from "./start.js";
import { STATES, countsInWords, hasText, inOrder, isOver, keptInWords, nameOf, progressInWords, reasonOf, statesIn, timesInWords, unknownInWords } from "./words.js";

const LOOK_BUSY_MS = 1000;
const LOOK_IDLE_MS = 3000;
const LOOK_REFUSED_MS = 60_000;
/** The page waits for this multiple of the time that the server took for its answer. */
const REST_FACTOR = 10;
const ANSWER_MS_MAX = 10_000;
/** The number of runs that are shown at first, and that each press of the button adds; below, the most that the server lists. */
const LISTED_STEP = 200;
const LISTED_MAX = 1000;

/** @typedef {import("./words.js").RunState} RunState */
/** @typedef {{ element: HTMLElement, field: (name: string) => HTMLElement, bar: HTMLProgressElement, run: RunState }} Row */

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
const list = element("#runs ul");
const template = find(document, "#run", HTMLTemplateElement);
const search = find(document, "#find", HTMLInputElement);
const ofService = find(document, "#of", HTMLSelectElement);
const inState = find(document, "#state", HTMLSelectElement);

/** @type {Map<string, Row>} */
const rows = new Map();
let wake = new AbortController();
let listedMax = LISTED_STEP;
/** The number of the server's runs, including those that it does not list. */
let total = 0;
/** The query of the runs that are shown; null if there are none. @type {string | null} */
let answered = null;

/** @param {RunState} run */
function addRow(run) {
  list.append(template.content.cloneNode(true));
  const item = /** @type {HTMLElement} */ (list.lastElementChild);
  const field = fieldsOf(item);
  const row = { element: item, field, bar: find(item, "progress", HTMLProgressElement), run };
  const link = find(item, "a", HTMLAnchorElement);
  link.href = at(`runs/${run.key}`);
  link.textContent = nameOf(run);
  row.bar.setAttribute("aria-label", `Progress of ${nameOf(run)}`);
  const button = find(item, "button", HTMLButtonElement);
  button.setAttribute("aria-label", `Cancel ${nameOf(run)}`);
  button.addEventListener("click", async () => {
    const words = await cancel(row.run);
    if (words === null) return;
    setText(element("#said"), words);
    link.focus();
    lookNow();
  });
  const details = find(item, "details", HTMLDetailsElement);
  details.addEventListener("toggle", () => details.open && void showEnd(row));
  rows.set(run.key, row);
  return row;
}

/** @param {Row} row */
async function showEnd({ run, field }) {
  try {
    const { data } = await client.call("GET", `runs/${run.key}?state`);
    showOutcome(field("outcome"), data);
  } catch (error) {
    setText(field("outcome"), failureInWords(error));
  }
}

/**
 * @param {Row} row
 * @param {RunState} run
 */
function showRow(row, run) {
  const { element: item, field, bar } = row;
  row.run = run;
  item.dataset.run = run.state;
  setText(field("state"), run.state);
  setText(field("times"), timesInWords(run, serverNow()));
  setText(field("progress"), isOver(run) ? "" : progressInWords(run));
  setText(field("text"), run.problem ? reasonOf(run.problem) : (run.text ?? ""));
  bar.hidden = run.progress === null || run.state === "queued";
  bar.value = run.progress ?? 0;
  find(item, "button", HTMLButtonElement).hidden = isOver(run);
  find(item, "details", HTMLElement).hidden = !isOver(run);
}

// --- which runs ---

/** Returns the query of the chosen service and states, in the form of the server and of the page's address. */
function chosen() {
  const names = Object.entries({ service: ofService.value, state: inState.value }).filter(([, value]) => value !== "");
  return new URLSearchParams(names).toString().replaceAll("%2F", "/").replaceAll("%2C", ",");
}

/** Shows the choice and the search of the address. */
function readAddress() {
  const asked = new URLSearchParams(location.search);
  const [service, state] = [asked.get("service") ?? "", statesIn(asked.get("state") ?? "")];
  const isPath = service.startsWith("/");
  if (isPath) offerServices([service]);
  ofService.value = isPath ? service : "";
  if (!STATES.some(([value]) => value === state)) inState.append(new Option(state.replaceAll(",", " or "), state));
  inState.value = state;
  setText(element("#said"), unknownInWords(asked.get("service") ?? "", asked.get("state") ?? ""));
  readSearch();
}

/** Shows the search of the address. It is after the `#`, since the server does not need it. */
function readSearch() {
  search.value = new URLSearchParams(location.hash.slice(1)).get("find") ?? "";
}

function writeAddress() {
  const [query, words] = [chosen(), search.value.trim()];
  history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${words && `#find=${encodeURIComponent(words)}`}`);
}

/** Adds these services to the choice, unless it has them. @param {readonly string[]} services */
function offerServices(services) {
  const [all, ...others] = [...ofService.options].map(({ value }) => value);
  const known = new Set([...others, ...services]);
  if (known.size === others.length) return;
  const { value } = ofService;
  ofService.replaceChildren(new Option("all services", all), ...[...known].sort().map((path) => new Option(path)));
  ofService.value = value;
}

// --- showing ---

/** @param {readonly RunState[]} runs */
function show(runs) {
  const keys = new Set(runs.map(({ key }) => key));
  for (const [key, row] of rows) {
    if (keys.has(key)) continue;
    if (row.element.contains(document.activeElement)) list.focus({ preventScroll: true });
    row.element.remove();
    rows.delete(key);
  }
  /** @type {Element | null} */
  let previous = null;
  for (const run of inOrder(runs)) {
    const row = rows.get(run.key) ?? addRow(run);
    putAfter(list, row.element, previous);
    previous = row.element;
    showRow(row, run);
  }
  filter();
}

/** Shows the runs that have the text of the search. */
function filter() {
  const wanted = search.value.trim().toLowerCase();
  let shown = 0;
  for (const { element: item, run } of rows.values()) {
    item.hidden = !hasText(run, wanted);
    if (!item.hidden) shown += 1;
  }
  const runs = [...rows.values()].map(({ run }) => run);
  const running = runs.filter(({ state }) => state === "running").length;
  document.title = `${running > 0 ? `${formatCount(running)} running · ` : ""}Runs · Anemone`;
  const isPart = total > runs.length;
  const all = countsInWords(runs) + (isPart ? `; these are the first ${formatCount(runs.length)} of ${formatCount(total)}` : "");
  const found = `${formatCount(shown)} of ${isPart ? "the first " : ""}${formatCount(runs.length)}`;
  const choice = [ofService.value && "of this service", inState.value && "in this state"].filter((words) => words !== "").join(" and ");
  const none = choice === "" || answered === null ? "" : `No run is ${choice}.`;
  setText(element("#count"), runs.length === 0 ? none : wanted === "" ? all : found);
}

/** Asks for the list; returns the time until the next look. */
async function look() {
  const [asked, query] = [now(), chosen()];
  try {
    const { data } = await client.call("GET", `runs?limit=${listedMax}${query && `&${query}`}`, undefined, { signal: AbortSignal.any([wake.signal, AbortSignal.timeout(ANSWER_MS_MAX)]) });
    if (query !== chosen()) return 0;
    showNotice(null);
    element("#runs").hidden = false;
    element("#none").hidden = data.runs.length > 0 || query !== "";
    offerServices(data.runs.map((/** @type {RunState} */ run) => run.service));
    [total, answered] = [data.total, query];
    setText(element("#kept"), keptInWords(data.kept_ms));
    const hasMore = total > data.runs.length && listedMax < LISTED_MAX;
    if (!hasMore && element("#more") === document.activeElement) list.focus({ preventScroll: true });
    element("#more").hidden = !hasMore;
    show(data.runs);
    const isBusy = data.runs.some((/** @type {RunState} */ run) => !isOver(run));
    return Math.max(isBusy ? LOOK_BUSY_MS : LOOK_IDLE_MS, (now() - asked) * REST_FACTOR);
  } catch (error) {
    if (wake.signal.aborted) return 0;
    showNotice(error);
    if (query !== answered) forget();
    return isGone(error) ? LOOK_IDLE_MS : LOOK_REFUSED_MS;
  }
}

/** Removes all runs, since they are not those of the current query. */
function forget() {
  [total, answered] = [0, null];
  element("#more").hidden = element("#none").hidden = true;
  show([]);
}

/** @param {unknown} error null if all is well */
function showNotice(error) {
  const isAway = error !== null && isGone(error);
  element("#notice-no-server").hidden = !isAway;
  element("#notice-refused").hidden = error === null || isAway;
  if (error instanceof AnemoneError) setText(element("#refused"), failureInWords(error));
}

function lookNow() {
  wake.abort();
}

/** Shows how a run is started, by the descriptions of the services. Without a service, the empty list says how to get one. */
async function showStarts() {
  try {
    const services = await offerStarts(element("#start"), lookNow);
    element("#no-service").hidden = services.length > 0;
    element("#no-run").hidden = services.length === 0;
    offerServices(services);
  } catch (error) {
    setText(element("#said"), failureInWords(error));
  }
}

search.addEventListener("input", () => {
  filter();
  writeAddress(); // which Safari refuses if it comes too often
});
for (const choice of [ofService, inState]) {
  choice.addEventListener("change", () => {
    listedMax = LISTED_STEP;
    setText(element("#said"), "");
    writeAddress();
    lookNow();
  });
}
addEventListener("hashchange", () => {
  readSearch();
  filter();
});
element("#more").addEventListener("click", () => {
  listedMax = Math.min(LISTED_MAX, listedMax + LISTED_STEP);
  lookNow();
});
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && lookNow());
element("#notice-no-script").remove();
inState.append(...STATES.map(([value, words]) => new Option(words, value)));
readAddress();
void showPlaces();
void showStarts();
void learnClock().catch(() => {}); // ages are then by this clock
for (;;) {
  wake = new AbortController();
  const pause = document.visibilityState === "visible" ? await look() : Infinity;
  if (pause === Infinity) await new Promise((resolve) => wake.signal.addEventListener("abort", resolve));
  else await sleep(pause, wake.signal);
}
