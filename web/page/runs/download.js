/** What a server keeps of a run as a file: its events as NDJSON, or its partial results as CSV (RFC 4180). Pure. */

/** @typedef {{ offset: number, time: number, data: any }} RunEvent as a page of the server has it */
/** @typedef {{ epoch: string, events: RunEvent[] }} Kept */

/**
 * The lines that a reader of the server's NDJSON gets.
 * @param {Kept} kept
 */
export function ndjsonOf({ epoch, events }) {
  return events.map(({ offset, time, data }) => `${JSON.stringify({ position: `${epoch}-${offset}`, time, data })}\n`).join("");
}

/** Members beyond that have one column together: a run with a new key in each result would be a file of commas. */
const COLUMNS_MAX = 1000;
const TIME = "time";
const OTHERS = "others";

/**
 * A row for each partial result: the time in ISO 8601, and a column for each field that any result has. What has no fields is in the
 * column `value`; a field that is no text, number or truth value is JSON. Fields for which there are no columns are JSON in the last one.
 * @param {readonly RunEvent[]} events
 */
export function csvOf(events) {
  const results = events.filter(({ data }) => "partial" in data).map(({ time, data }) => ({ time, fields: fieldsOf(data.partial) }));
  /** @type {Set<string>} */
  const all = new Set();
  for (const { fields } of results) for (const name of Object.keys(fields)) all.add(name);
  const names = [...all].slice(0, COLUMNS_MAX);
  const own = all.size > names.length ? [TIME, OTHERS] : [TIME];
  const head = [TIME, ...headingsOf(names, own), ...own.slice(1)];
  const places = new Map(names.map((name, at) => [name, at + 1]));
  const rows = results.map(({ time, fields }) => `${new Date(time).toISOString()}${cellsOf(fields, places, head.length - 1)}`);
  return [head.map(cell).join(","), ...rows].map((row) => `${row}\r\n`).join("");
}

/**
 * @param {any} partial
 * @returns {Record<string, unknown>}
 */
function fieldsOf(partial) {
  return typeof partial === "object" && partial !== null && !Array.isArray(partial) ? partial : { value: partial };
}

/**
 * The headings of the fields, all different. A field with the name of one of our own columns gets that of its place in the event, `partial.time`.
 * @param {readonly string[]} names
 * @param {readonly string[]} own the names of our own columns
 */
function headingsOf(names, own) {
  const taken = new Set([...names, ...own]);
  return names.map((name) => {
    let heading = name;
    if (own.includes(name)) while (taken.has(heading)) heading = `partial.${heading}`;
    return heading;
  });
}

/**
 * The cells behind the time, with their commas. The work is that for the fields that there are, not for all columns.
 * @param {Record<string, unknown>} fields
 * @param {ReadonlyMap<string, number>} places of the columns
 * @param {number} last the place of the last column, which has the fields without one of their own
 */
function cellsOf(fields, places, last) {
  const known = Object.keys(fields).filter((name) => places.has(name));
  const cells = known.map((name) => ({ place: places.get(name) ?? last, text: cell(fields[name]) })).sort((a, b) => a.place - b.place);
  const others = Object.entries(fields).filter(([name]) => !places.has(name));
  if (others.length > 0) cells.push({ place: last, text: cell(Object.fromEntries(others)) });
  let row = "";
  let at = 0;
  for (const { place, text } of cells) {
    row += ",".repeat(place - at) + text;
    at = place;
  }
  return row + ",".repeat(last - at);
}

/** @param {unknown} value */
function cell(value) {
  const text = typeof value === "string" ? unlikeFormula(value) : value === null ? "" : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** What makes a spreadsheet run a text as a formula (OWASP, "CSV Injection"); NUL is of ASVS 1.2.10. */
const FORMULA = /^[=+\-@＝＋－＠\t\r\n\0]/;
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/**
 * Puts an apostrophe before a text that a spreadsheet would run, so that it shows the text. A number is only a number.
 * @param {string} text
 */
function unlikeFormula(text) {
  return FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
}
