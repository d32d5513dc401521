/** A run in plain words. Pure. */
import { countOf, formatCount, formatDuration } from "../words.js";

/**
 * The status of a run, in `GET /runs` and `GET /runs/KEY?state`.
 * @typedef {object} RunState
 * @property {string} key
 * @property {string} service
 * @property {string | null} [name] that its starter gave it
 * @property {RunInput | null} [input] what started it
 * @property {"queued" | "running" | "done" | "failed" | "cancelled"} state
 * @property {number | null} progress 0 to 1
 * @property {string | null} text
 * @property {number | null} left seconds
 * @property {number | null} place
 * @property {number} created ms, by the server's clock
 * @property {number | null} started
 * @property {number | null} ended
 * @property {unknown} [result]
 * @property {{ type?: string, title?: string, detail?: string } | null} problem
 * @property {string} [stderr]
 * @property {string} [next] the position of its last event
 */

/**
 * The input that started a run. If `cut` is set, it is only the beginning of the input, and cannot start the run again.
 * @typedef {{ path: string, query: string | null, type: string | null, body: string | null, bytes: number, cut?: boolean }} RunInput
 */

/** The part of a key that is shown. */
const KEY_DIGITS = 6;
/** The times that are given in milliseconds are shorter than this. */
const FINE_MS_MAX = 100;
/** The times that have decimals are shorter than this. */
const PRECISE_MS_MAX = 10_000;

/** The words for a key that no run has. */
export const UNKNOWN_RUN = "There is no run with this key. A run is kept for a while after its end, 10 minutes unless the server is told otherwise, and not beyond a restart of the server.";

/** @param {Pick<RunState, "state">} run */
export function isOver({ state }) {
  return state === "done" || state === "failed" || state === "cancelled";
}

/**
 * Returns the state of a run after one of its events.
 * @param {RunState} run
 * @param {any} data
 * @param {number} time when the server told it
 * @returns {RunState}
 */
export function afterEvent(run, data, time) {
  // The state that a page has asked for may be newer than this event.
  if (isOver(run)) return run;
  if (data.state === "running") return { ...run, state: "running", place: null, started: run.started ?? time };
  if (data.state === "queued") return { ...run, place: data.place ?? null };
  if (isOver(data)) return { ...run, ...data, place: null, left: null, ended: time };
  return "progress" in data ? { ...run, left: null, ...data } : run;
}

/** @param {Pick<RunState, "service" | "key" | "name">} run */
export function nameOf({ service, key, name }) {
  const own = `${service} ${key.slice(0, KEY_DIGITS)}`;
  return name ? `${name} (${own})` : own;
}

/**
 * The input of a run as readable text: the path with its query, then the body. "" if it has none.
 * @param {RunInput | null | undefined} input
 */
export function inputInWords(input) {
  if (!input || (input.query === null && input.bytes === 0)) return "";
  const target = `${input.path}${input.query === null ? "" : `?${input.query}`}`;
  if (input.bytes === 0) return target;
  const size = countOf(input.bytes, "byte");
  const isCut = input.cut === true && input.body !== null;
  return [`${target}, ${input.type ?? "no content type"}, ${size}${isCut ? ", of which this is the beginning" : ""}`, ...(input.body === null ? [] : [input.body])].join("\n");
}

/**
 * The input that starts a run.
 * @typedef {object} Start
 * @property {string} path
 * @property {string | null} query
 * @property {string | null} type of the body
 * @property {string | null} body
 * @property {string | null} name
 */

/** The path and query that start a run. @param {Start} input */
export function targetOf({ path, query, name }) {
  const parts = [query, name && `name=${encodeURIComponent(name)}`].filter(Boolean);
  return parts.length === 0 ? path : `${path}?${parts.join("&")}`;
}

/** The services whose pages draw their runs. */
const DRAWING = ["/computations", "/propagation"];

/**
 * Returns the path of the page that draws a run; null if there is none.
 * @param {Pick<RunState, "service" | "key">} run
 */
export function drawnAt({ service, key }) {
  return DRAWING.includes(service) ? `${service.slice(1)}#run=${key}` : null;
}

/** @param {number} progress */
export function percent(progress) {
  // 100 % is only for what is done.
  return `${Math.floor(progress * 100)} %`;
}

/**
 * The progress of the run: "42 %, about 12 s left", or its place in the queue.
 * @param {RunState} run
 * @param {number} sinceMs the time since the server told it
 */
export function progressInWords({ state, progress, left, place }, sinceMs = 0) {
  if (state === "queued") return place ? `${countOf(place, "run")} ${place === 1 ? "starts" : "start"} before it` : "starts next";
  const words = [];
  if (progress !== null) words.push(percent(progress));
  else if (state === "running") words.push("no progress told yet");
  const leftMs = left === null ? 0 : left * 1000 - sinceMs;
  // An estimate that has run down says nothing more, as in what the server tells.
  if (state === "running" && leftMs > 0) words.push(leftInWords(leftMs));
  return words.join(", ");
}

/** @param {number} ms */
function leftInWords(ms) {
  return ms < 1000 ? "less than 1 s left" : `about ${formatDuration(ms)} left`;
}

/**
 * The beginning and the duration: "started 16:00:56, runs for 12 s", "started 16:00:56, took 3.2 s, ended 5 min ago".
 * @param {RunState} run
 * @param {number} now by the server's clock
 */
export function timesInWords({ state, created, started, ended }, now) {
  if (state === "queued") return `waits for ${formatDuration(now - created)}`;
  if (ended === null) return `${startInWords(started ?? created, now)}, runs for ${formatDuration(now - (started ?? created))}`;
  const end = now - ended < 1000 ? "ended just now" : `ended ${formatDuration(now - ended)} ago`;
  return started === null ? `never ran, ${end}` : `${startInWords(started, now)}, took ${tookInWords(ended - started)}, ${end}`;
}

const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/**
 * @param {number} started
 * @param {number} now
 */
function startInWords(started, now) {
  const isToday = new Date(started).toDateString() === new Date(now).toDateString();
  return `started ${(isToday ? TIME : DATE).format(started)}`;
}

/** @param {number} ms */
function tookInWords(ms) {
  if (ms < 0.5) return "less than 1 ms";
  if (ms < FINE_MS_MAX) return `${Math.round(ms)} ms`;
  return ms < PRECISE_MS_MAX ? `${(ms / 1000).toFixed(1)} s` : formatDuration(ms);
}

/**
 * Returns a sentence about the part of a run that the page has.
 * @param {{ results: number, first: number, events: number, isAllKept: boolean }} part `first` is the number of the first event that is there;
 * `isAllKept` if the server has none before it
 */
export function partInWords({ results, first, events, isAllKept }) {
  const last = results === 1 ? "The last result is here" : `The last ${formatCount(results)} results are here`;
  return `${last}: events ${formatCount(first)} to ${formatCount(events)} of ${formatCount(events)}. ${isAllKept ? "The server keeps no earlier ones" : "Earlier ones are not loaded"}.`;
}

/**
 * Returns a sentence about the first events of a run that a file lacks; "" if it has all.
 * @param {number} missed
 */
export function missedInWords(missed) {
  if (missed <= 0) return "";
  return `The file lacks the first ${countOf(missed, "event")} of the run: the server keeps the newest ones alone (run_events_max, run_bytes_max).`;
}

/**
 * Returns the number of results, and the range of those in the list by the numbers of their events.
 * @param {object} list
 * @param {number} list.results on the page
 * @param {number} list.count in the list
 * @param {number | null} list.first event in the list
 * @param {number | null} list.last event in the list
 * @param {boolean} list.isNewest whether there is none after it that fits the filter
 * @param {number} list.fitting those that fit the filter
 * @param {boolean} list.isFiltered
 * @param {number | null} list.keptFrom the first event that is kept; null if all are
 */
export function countInWords({ results, count, first, last, isNewest, fitting, isFiltered, keptFrom }) {
  if (results === 0) return "";
  const words = [countOf(results, "result")];
  if (keptFrom !== null) words.push(`this page keeps those from event ${formatCount(keptFrom)} on`);
  if (isFiltered) words.push(`${formatCount(fitting)} ${fitting === 1 ? "fits" : "fit"} the filter`);
  if (count < fitting && first !== null && last !== null) words.push(`the list has ${isNewest ? `the newest ${formatCount(count)}` : `events ${formatCount(first)} to ${formatCount(last)}`}`);
  return words.join("; ");
}

/**
 * Returns a sentence about how long a run is kept, with a space after it; "" if the server does not say.
 * @param {unknown} ms
 */
export function keptInWords(ms) {
  return typeof ms === "number" ? `A run and its results are kept for ${formatDuration(ms).replace(/ 0 \w+$/, "")} after its end, in memory. ` : "";
}

/** @param {RunState["problem"]} problem */
export function reasonOf(problem) {
  return problem?.detail ?? problem?.title ?? "";
}

const ORDER = { running: 0, queued: 1, done: 2, failed: 2, cancelled: 2 };

/** The states that a query may have, and their words. @type {readonly (readonly [states: string, words: string])[]} */
export const STATES = [
  ["", "any"],
  ["queued,running", "queued or running"],
  ["queued", "queued"],
  ["running", "running"],
  ["done", "done"],
  ["failed", "failed"],
  ["cancelled", "cancelled"],
  ["queued,running,done,failed", "not cancelled"],
];

/**
 * Returns the states in a text with commas, each once. If the server does not know all of them, returns "", which is any state.
 * @param {string} text
 */
export function statesIn(text) {
  const states = [...new Set(text.split(","))];
  return states.every((state) => Object.hasOwn(ORDER, state)) ? states.join() : "";
}

/**
 * Returns a sentence about an unknown service or state in a query; "" if there is none.
 * @param {string} service its path
 * @param {string} states with commas
 */
export function unknownInWords(service, states) {
  const words = [];
  if (service !== "" && !service.startsWith("/")) words.push(`There is no service "${service}": a service is a path, such as /primes.`);
  if (states !== "" && statesIn(states) === "") words.push(`There is no state "${states}".`);
  return words.join(" ");
}

/**
 * Returns the runs that work first, then those that wait, then those that have ended; each in the order in which they came.
 * @template {Pick<RunState, "state">} R
 * @param {readonly R[]} runs
 */
export function inOrder(runs) {
  return [...runs].sort((a, b) => ORDER[a.state] - ORDER[b.state]);
}

/**
 * "2 running, 1 waiting, 5 ended"
 * @param {readonly Pick<RunState, "state">[]} runs
 */
export function countsInWords(runs) {
  const running = runs.filter(({ state }) => state === "running").length;
  const waiting = runs.filter(({ state }) => state === "queued").length;
  const counts = { running, waiting, ended: runs.length - running - waiting };
  const words = Object.entries(counts).filter(([, count]) => count > 0);
  return words.map(([what, count]) => `${formatCount(count)} ${what}`).join(", ");
}

/**
 * Returns true if a run has the text that is searched for.
 * @param {RunState} run
 * @param {string} wanted in lower case
 */
export function hasText({ service, key, name, input, state, text, problem }, wanted) {
  return [service, key, name ?? "", input?.query ?? "", input?.body ?? "", state, text ?? "", reasonOf(problem)].some((words) => words.toLowerCase().includes(wanted));
}
