/** The kept events of a run as a file: all as NDJSON, or the partial results as CSV. Pure. */
import { csvOf as csvOfRows } from "../csv.js";

/** @typedef {{ offset: number, time: number, data: any }} RunEvent as a page of the server has it */
/** @typedef {{ epoch: string, missed: number, events: RunEvent[] }} Kept `missed` are the first events, which the server no longer has */

/**
 * Returns the same lines that a reader of the server's NDJSON gets.
 * @param {Kept} kept
 */
export function ndjsonOf({ epoch, missed, events }) {
  const gap = { reason: "retention", after: `${epoch}-0`, missed, resume: `${epoch}-${missed}` };
  const lines = events.map(({ offset, time, data }) => `${JSON.stringify({ position: `${epoch}-${offset}`, time, data })}\n`);
  return (missed > 0 ? `${JSON.stringify({ gap })}\n` : "") + lines.join("");
}

/**
 * Returns CSV with a row for each partial result.
 * @param {readonly RunEvent[]} events
 */
export function csvOf(events) {
  const results = events.filter(({ data }) => "partial" in data).map(({ time, data }) => ({ time, data: data.partial }));
  return csvOfRows(results, "partial");
}
