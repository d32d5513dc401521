/** Makes reports in a thread of its own: their intervals take so long that the page would stand still. */
import { estimateOf, reportOf } from "./report.js";

/**
 * The arguments of a report, and the report with its intervals.
 * @typedef {Parameters<typeof reportOf>} Wish
 * @typedef {{ report: import("./report.js").Report, estimates: import("./answer.js").Estimates }} Made
 */

addEventListener("message", (/** @type {MessageEvent<Wish>} */ { data }) => {
  const report = reportOf(...data);
  /** @type {Made} */
  const made = { report, estimates: new Map(report.series.map((series) => [series, estimateOf(series)])) };
  postMessage(made);
});
