/** The events of a topic as a file. Pure. */
import { csvOf } from "../page/csv.js";
import { Columns, cellsOf } from "../page/events/columns.js";

/**
 * The events as CSV. Lines of text that are rows of a table have a column for each cell, with the names of the head before them. Rows
 * before the first head have its names if there is only one head; otherwise, their columns are numbered. Heads are left out.
 * @param {readonly { time: number, data: unknown }[]} events
 */
export function csvOfEvents(events) {
  const columns = new Columns();
  /** The newest head for each number of cells. Any line of words may be a head. @type {Map<number, readonly string[]>} */
  const heads = new Map();
  const rows = events.map(({ data }) => {
    const cells = typeof data === "string" ? columns.row(data) : null;
    if (cells) return { cells, head: heads.get(cells.length) };
    heads.set(columns.head.length, columns.head);
    return null;
  });
  if (!columns.isTable) return csvOf(events, "data");
  const width = columns.names.length;
  const ofTable = rows.map((row) => (row?.cells.length === width ? row : null));
  const all = new Map(ofTable.flatMap((row) => (row?.head ? [[JSON.stringify(row.head), row.head]] : [])));
  const [only, another] = all.size > 0 ? all.values() : [heads.get(width)];
  const first = only && !another ? only : Array.from({ length: width }, (_, at) => `column ${at + 1}`);
  const used = new Set([...all.keys(), JSON.stringify(first)]);
  const isHead = (/** @type {unknown} */ data) => typeof data === "string" && used.has(JSON.stringify(cellsOf(data)));
  const found = events.flatMap(({ time, data }, index) => {
    const row = ofTable[index];
    if (row) return [{ time, data: Object.fromEntries((row.head ?? first).map((name, at) => [name, row.cells[at]])) }];
    return isHead(data) ? [] : [{ time, data }];
  });
  return csvOf(found, "data");
}
