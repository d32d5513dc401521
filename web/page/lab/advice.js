/** The advice of all reports in one sentence, as `anemone lab advise` gives it. Pure. */
import { median } from "../../measure/bootstrap.js";
import { compare, doubtOf, formatValue, judge, valuesOf } from "./report.js";

/** The least difference that a person can see between two events of a picture. */
const SEEN_MS = 50;
/** The greatest difference to the best latency with which another one counts as equal. */
const ALIKE_MS = 2;

/** @typedef {import("./report.js").Report} Report */
/** @typedef {import("./report.js").Series} Series */

/** @param {readonly Report[]} reports */
export function adviceOf(reports) {
  const whole = reports.filter((report) => !report.is_interrupted);
  const valid = whole.filter(({ invalid }) => invalid === null);
  if (whole.length > 0 && valid.length === 0) return "There is no advice, since nothing that was measured can be relied on.";
  const of = (/** @type {string} */ name) => valid.find(({ experiment }) => experiment === name);
  const [wind, calls] = [of("wind"), of("calls")];
  const parts = [wind ? ofEvents(wind.series) : "", calls ? ofCalls(calls.series) : ""].filter(Boolean);
  if (parts.length === 0) return "";
  const isSure = [wind, calls].every((report) => !report || doubtOf(report.comparisons) === "");
  const words = parts.join("; ");
  return `${isSure ? words.charAt(0).toUpperCase() + words.slice(1) : `At first sight, and with too few rounds to be sure: ${words}`}.`;
}

/** @param {Series} one */
const middle = (one) => median(valuesOf(one)) ?? NaN;
/** @param {number} ms */
const inMs = (ms) => formatValue(ms, "ms");

/** @param {readonly Series[]} series */
function ofEvents(series) {
  const all = series.filter((one) => valuesOf(one).length > 0);
  const best = Math.min(...all.map(middle));
  const names = all.filter((one) => middle(one) <= best + ALIKE_MS).map(({ contender }) => contender);
  const poll = all.find(({ contender }) => contender === "poll");
  const laterMs = poll ? middle(poll) - best : 0;
  if (names.length === 0) return "";
  const seen = laterMs < SEEN_MS ? ", which nobody sees" : "";
  const later = names.includes("poll") || !poll ? "" : `, and by a poll ${inMs(laterMs)} later${seen}`;
  return `for events take ${listed(names)}: they are there after ${inMs(best)}${later}`;
}

/** @param {readonly Series[]} series */
function ofCalls(series) {
  const [socket, http] = ["WebSocket", "HTTP"].map((name) => series.find((one) => one.x === 1 && one.quantity === "time" && one.contender === name));
  if (!socket || !http || valuesOf(socket).length === 0 || valuesOf(http).length === 0) return "";
  const [ofSocket, ofHttp] = [middle(socket), middle(http)];
  const isAlike = judge(compare(http, socket)) === "alike" || Math.abs(ofHttp - ofSocket) < ALIKE_MS;
  if (isAlike) return `for calls take what you like: ${inMs(ofSocket)} over WebSocket, ${inMs(ofHttp)} over HTTP`;
  return `for calls take ${ofHttp < ofSocket ? "HTTP" : "WebSocket"}: ${inMs(Math.min(ofHttp, ofSocket))} against ${inMs(Math.max(ofHttp, ofSocket))}`;
}

/** @param {readonly string[]} names */
function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
