/** The times that the chart offers. Pure. */

const MINUTE_MS = 60_000;

/** @typedef {{ title: string, spanMs: number, place: string | null }} Span */

/** The shortest first. The first is what came while the page was open; the others are read back from `place` on. @type {readonly Span[]} */
export const SPANS = [
  { title: "2 min", spanMs: 2 * MINUTE_MS, place: null },
  { title: "1 hour", spanMs: 60 * MINUTE_MS, place: "since=1h" },
  { title: "1 day", spanMs: 1440 * MINUTE_MS, place: "since=1d" },
  { title: "1 week", spanMs: 7 * 1440 * MINUTE_MS, place: "since=7d" },
  { title: "All", spanMs: Infinity, place: "after=earliest" },
];

/**
 * Returns true if a span shows something of its own: it does not reach beyond what is kept, or it is the one for all of that.
 * @param {Span} span
 * @param {number} keptMs how far back the topic reaches
 */
export const isFilled = ({ spanMs, place }, keptMs) => place === null || spanMs === Infinity || spanMs <= keptMs;
