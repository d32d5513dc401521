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

/**
 * A row for each partial result: the time in ISO 8601, and a column for each field that any result has. What has no fields is in the
 * column `value`; a field that is no text, number or truth value is JSON.
 * @param {readonly RunEvent[]} events
 */
export function csvOf(events) {
  const results = events.filter(({ data }) => "partial" in data).map(({ time, data }) => ({ time, fields: fieldsOf(data.partial) }));
  const names = [...new Set(results.flatMap(({ fields }) => Object.keys(fields)))];
  const rows = results.map(({ time, fields }) => [new Date(time).toISOString(), ...names.map((name) => (Object.hasOwn(fields, name) ? fields[name] : ""))]);
  return [["time", ...names], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/**
 * @param {any} partial
 * @returns {Record<string, unknown>}
 */
function fieldsOf(partial) {
  return typeof partial === "object" && partial !== null && !Array.isArray(partial) ? partial : { value: partial };
}

/** @param {unknown} value */
function cell(value) {
  const text = typeof value === "string" ? value : value === null ? "" : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
