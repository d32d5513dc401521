/** Rows as CSV (RFC 4180), which no spreadsheet takes for formulas. Pure. */

/** Members beyond that have one column together: a run with a new key in each result would be a file of commas. */
const COLUMNS_MAX = 1000;
const TIME = "time";
const OTHERS = "others";

/**
 * A row for each of these: the time in ISO 8601, and a column for each field that any of them has. What has no fields is in the column
 * `value`; a field that is no text, number or truth value is JSON. Fields for which there are no columns are JSON in the last one.
 * @param {readonly { time: number, data: unknown }[]} rows
 * @param {string} place of the fields in an event: a field with the name of one of our own columns has it in its heading
 */
export function csvOf(rows, place) {
  const results = rows.map(({ time, data }) => ({ time, fields: fieldsOf(data) }));
  /** @type {Set<string>} */
  const all = new Set();
  for (const { fields } of results) for (const name of Object.keys(fields)) all.add(name);
  const names = [...all].slice(0, COLUMNS_MAX);
  const own = all.size > names.length ? [TIME, OTHERS] : [TIME];
  const head = [TIME, ...headingsOf(names, own, place), ...own.slice(1)];
  const places = new Map(names.map((name, at) => [name, at + 1]));
  const lines = results.map(({ time, fields }) => `${new Date(time).toISOString()}${cellsOf(fields, places, head.length - 1)}`);
  return [head.map(cell).join(","), ...lines].map((line) => `${line}\r\n`).join("");
}

/**
 * @param {any} data
 * @returns {Record<string, unknown>}
 */
function fieldsOf(data) {
  return typeof data === "object" && data !== null && !Array.isArray(data) ? data : { value: data };
}

/**
 * The headings of the fields, all different. A field with the name of one of our own columns gets that of its place in the event, such as `partial.time`.
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
