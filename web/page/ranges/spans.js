/** The spans of time that a chart offers. Pure. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** @typedef {{ title: string, spanMs: number }} Span */

/** @type {Span} */
const ALL = { title: "All", spanMs: Infinity };

/** The spans for any topic, the shortest first. @type {readonly Span[]} */
export const SPANS = [
  { title: "1 min", spanMs: MINUTE_MS },
  { title: "5 min", spanMs: 5 * MINUTE_MS },
  { title: "1 h", spanMs: HOUR_MS },
  { title: "6 h", spanMs: 6 * HOUR_MS },
  { title: "24 h", spanMs: DAY_MS },
  ALL,
];

/** The first span in the chart of the wind. @type {Span} */
export const WIND_SPAN = { title: "2 min", spanMs: 2 * MINUTE_MS };

/** The spans for the wind. @type {readonly Span[]} */
export const WIND_SPANS = [
  WIND_SPAN,
  { title: "1 h", spanMs: HOUR_MS },
  { title: "24 h", spanMs: DAY_MS },
  { title: "7 d", spanMs: 7 * DAY_MS },
  ALL,
];

/**
 * Returns the spans that get a button: the first one, those that are not longer than the kept events reach, and "All".
 * @param {readonly Span[]} spans
 * @param {number} keptMs how far back the topic reaches
 */
export function offered(spans, keptMs) {
  return spans.filter(({ spanMs }, index) => index === 0 || spanMs === Infinity || spanMs <= keptMs);
}

/**
 * Returns the longest span that is not longer than a time; if there is none, the first one.
 * @param {readonly Span[]} spans
 * @param {number} ms
 */
export function filledBy(spans, ms) {
  return spans.filter(({ spanMs }) => spanMs <= ms).at(-1) ?? spans[0] ?? ALL;
}

/** The earliest time that the server accepts. It does not take a number with fewer digits for a time. */
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
