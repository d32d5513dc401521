/** The kept events of a run as a file: all as NDJSON, or the partial results as CSV. Pure. */
import { csvOf as csvOfRows } from "../csv.js";

/** @typedef {{ offset: number, time: number, data: any }} RunEvent as a page of the server has it */
/** @typedef {{ epoch: string, events: RunEvent[] }} Kept */

/**
 * Returns the same lines that a reader of the server's NDJSON gets.
 * @param {Kept} kept
 */
export function ndjsonOf({ epoch, events }) {
  return events.map(({ offset, time, data }) => `${JSON.stringify({ position: `${epoch}-${offset}`, time, data })}\n`).join("");
}

/**
 * Returns CSV with a row for each partial result.
 * @param {readonly RunEvent[]} events
 */
export function csvOf(events) {
  const results = events.filter(({ data }) => "partial" in data).map(({ time, data }) => ({ time, data: data.partial }));
  return csvOfRows(results, "partial");
}
