/** Places in a topic, as a person types them. Pure. */
import { TIME_MS_MIN } from "../page/ranges/spans.js";

/**
 * Returns the parameter of a request for a place that a person has typed.
 * @param {string} text
 * @param {string | null} epoch of the topic, if it is known
 * @returns {{ name: "after" | "since", value: string } | null} null if it means nothing
 */
export function placeOf(text, epoch) {
  const place = text.trim();
  if (/^(earliest|latest|-\d{1,18}|[0-9a-z]{1,10}-\d+~?)$/.test(place)) return { name: "after", value: place };
  if (/^\d{1,15}(ms|s|m|h|d)$/.test(place) || /^\d{4}-\d\d-\d\dT/.test(place) || (/^\d+(\.\d+)?$/.test(place) && Number(place) >= TIME_MS_MIN)) return { name: "since", value: place };
  // The number of an event: reading begins before it.
  const number = /^#?(\d{1,11})$/.exec(place)?.[1];
  if (number !== undefined && epoch !== null) return { name: "after", value: `${epoch}-${Math.max(0, Number(number) - 1)}` };
  // A time of the last 24 hours.
  const clock = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(place);
  if (!clock) return null;
  const time = new Date();
  time.setHours(Number(clock[1]), Number(clock[2]), Number(clock[3] ?? 0), 0);
  if (time.getTime() > Date.now()) time.setDate(time.getDate() - 1);
  return { name: "since", value: String(time.getTime()) };
}
