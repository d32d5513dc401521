/** Rows as CSV (RFC 4180), in which no spreadsheet finds a formula. Pure. */

/** The most columns. All further fields share one: a run with a new field in each result would be a file of commas. */
const COLUMNS_MAX = 1000;
/** The most empty cells. A field that would add more is in the column for the others. */
const EMPTY_MAX = 20_000_000;
/** The mark by which Excel recognizes UTF-8. */
const BOM = "\ufeff";
const TIME = "time";
const OTHERS = "others";

/**
 * Returns rows with the time in ISO 8601, and a column for each field of any row. Data without fields is in the column `value`; a field
 * that is no text, number or truth value is JSON. Fields without a column of their own are JSON in the last column, so that nothing is left
 * out.
 * @param {readonly { time: number, data: unknown }[]} rows
 * @param {string} place of the fields in an event: a field with the name of one of our own columns has it in its heading
 */
export function csvOf(rows, place) {
  const results = rows.map(({ time, data }) => ({ time, fields: fieldsOf(data) }));
  /** The number of rows that have each field. @type {Map<string, number>} */
  const counts = new Map();
  for (const { fields } of results) for (const name of Object.keys(fields)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = columnsOf(counts, rows.length);
  const own = counts.size > names.length ? [TIME, OTHERS] : [TIME];
  const head = [TIME, ...headingsOf(names, own, place), ...own.slice(1)];
  const places = new Map(names.map((name, at) => [name, at + 1]));
  const lines = results.map(({ time, fields }) => `${new Date(time).toISOString()}${cellsOf(fields, places, head.length - 1)}`);
  return BOM + [head.map(cell).join(","), ...lines].map((line) => `${line}\r\n`).join("");
}

/**
 * The fields that have a column of their own.
 * @param {ReadonlyMap<string, number>} counts how many rows have each field
 * @param {number} rows
 */
function columnsOf(counts, rows) {
  let empty = 0;
  const names = [...counts].flatMap(([name, count]) => {
    if (empty + rows - count > EMPTY_MAX) return [];
    empty += rows - count;
    return [name];
  });
  return names.slice(0, COLUMNS_MAX);
}

/**
 * @param {any} data
 * @returns {Record<string, unknown>}
 */
function fieldsOf(data) {
  return typeof data === "object" && data !== null && !Array.isArray(data) ? data : { value: data };
}

/**
 * The headings of the fields, all different. A field with the name of one of our own columns gets its place in front, such as
 * `partial.time`.
 * @param {readonly string[]} names
 * @param {readonly string[]} own the names of our own columns
 * @param {string} place
 */
function headingsOf(names, own, place) {
  const taken = new Set([...names, ...own]);
  return names.map((name) => {
    let heading = name;
    if (own.includes(name)) while (taken.has(heading)) heading = `${place}.${heading}`;
    return heading;
  });
}

/**
 * The cells after the time, with their commas. Takes time for each field of the row, not for each column.
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
  if (typeof value === "number") return String(value); // JSON has no Infinity, which a number beyond all others becomes
  const text = value === null ? "" : unlikeFormula(typeof value === "string" ? value : JSON.stringify(value));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Text that a spreadsheet may run as a formula (OWASP, "CSV Injection"; NUL is of ASVS 1.2.10). It is at the beginning of a cell or a line.
 * Many spreadsheets split at semicolons or tabs, so it may also follow one of these. Such a cell may have quotes.
 */
const FORMULA = /(^|[;\t\r\n])([ "]*[=+\-@＝＋－＠\0][^;\t\r\n]*)/g;
const BREAK = /^[\t\r\n]/;
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/**
 * Puts an apostrophe before a formula, so that a spreadsheet shows it as text. Numbers stay as they are.
 * @param {string} text
 */
function unlikeFormula(text) {
  const shown = text.replace(FORMULA, (whole, before, part) => (NUMBER.test(part) ? whole : `${before}'${part}`));
  return BREAK.test(text) ? `'${shown}` : shown;
}
