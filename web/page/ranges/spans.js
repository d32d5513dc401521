/** The times that a chart offers. Pure. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** @typedef {{ title: string, spanMs: number }} Span */

/** @type {Span} */
const ALL = { title: "All", spanMs: Infinity };

/** Those of any topic, the shortest first. @type {readonly Span[]} */
export const SPANS = [
  { title: "1 min", spanMs: MINUTE_MS },
  { title: "5 min", spanMs: 5 * MINUTE_MS },
  { title: "1 h", spanMs: HOUR_MS },
  { title: "6 h", spanMs: 6 * HOUR_MS },
  { title: "24 h", spanMs: DAY_MS },
  ALL,
];

/** The time in the chart of the wind at first. @type {Span} */
export const WIND_SPAN = { title: "2 min", spanMs: 2 * MINUTE_MS };

/** Those of the wind. @type {readonly Span[]} */
export const WIND_SPANS = [
  WIND_SPAN,
  { title: "1 h", spanMs: HOUR_MS },
  { title: "24 h", spanMs: DAY_MS },
  { title: "7 d", spanMs: 7 * DAY_MS },
  ALL,
];

/**
 * Returns the spans that are worth a button: the first one, those that do not reach beyond what is kept, and that for all of it.
 * @param {readonly Span[]} spans
 * @param {number} keptMs how far back the topic reaches
 */
export function offered(spans, keptMs) {
  return spans.filter(({ spanMs }, index) => index === 0 || spanMs === Infinity || spanMs <= keptMs);
}

/**
 * Returns the longest span that values of this time fill; if they fill none, the first one.
 * @param {readonly Span[]} spans
 * @param {number} ms
 */
export function filledBy(spans, ms) {
  return spans.filter(({ spanMs }) => spanMs <= ms).at(-1) ?? spans[0] ?? ALL;
}

/** The first time that the server takes for one: a number with fewer digits is none. */
export const TIME_MS_MIN = 100_000_000_000;

/**
 * Returns the place where the events from a time on begin, as the parameter of a request.
 * @param {number} time
 */
export function since(time) {
  return `since=${Math.max(TIME_MS_MIN, time).toFixed(3)}`;
}

/**
 * Returns the place where a span begins, as the parameter of a request.
 * @param {Span} span
 */
export function placeOf({ spanMs }) {
  return spanMs === Infinity ? "after=earliest" : `since=${spanMs}ms`;
}
