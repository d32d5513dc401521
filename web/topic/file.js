/** The events of a topic as a file. Pure. */
import { csvOf } from "../page/csv.js";
import { Columns, cellsOf } from "../page/events/columns.js";

/**
 * The events as CSV. Lines of text that are rows of a table have a column for each cell, with the names of its head; the head itself is
 * no row then.
 * @param {readonly { time: number, data: unknown }[]} events
 */
export function csvOfEvents(events) {
  const columns = new Columns();
  /** Those of the last row: any line of words may be a new head. @type {readonly string[]} */
  let names = [];
  const cells = events.map(({ data }) => {
    const row = typeof data === "string" ? columns.row(data) : null;
    if (row) ({ names } = columns);
    return row;
  });
  if (!columns.isTable) return csvOf(events, "data");
  const isRow = (/** @type {number} */ index) => cells[index]?.length === names.length;
  const isHead = (/** @type {unknown} */ data) => typeof data === "string" && cellsOf(data).join() === names.join();
  const rows = events.flatMap(({ time, data }, index) => {
    if (isRow(index)) return [{ time, data: Object.fromEntries(names.map((name, at) => [name, cells[index]?.[at]])) }];
    return isHead(data) ? [] : [{ time, data }];
  });
  return csvOf(rows, "data");
}
