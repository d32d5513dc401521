/**
 * One measurement, as published on `/topics/wind`, or the news that the instrument could not measure.
 *
 * @typedef {object} Wind
 * @property {string} unit the instrument's identifier
 * @property {number | null} direction degrees that the wind comes from; null in a calm, and if nothing was measured
 * @property {number | null} speed null if nothing was measured, because something is in the instrument's path or it is broken
 * @property {string} units of the speed
 * @property {string} status the instrument's status code, "00" or, in NMEA, "A" when all is well
 * @property {number} t0 when the server had read the last byte, its clock, ms since the Unix epoch
 */

/**
 * @param {import("../../transport/types.js").TopicEvent} event
 * @returns {Wind | null} null when the event is something else
 */
export function windOf({ data, time }) {
  if (typeof data !== "object" || data === null) return null;
  const { unit, direction, speed, units, status, t0 } = /** @type {Record<string, unknown>} */ (data);
  if (typeof speed !== "number" && speed !== null) return null;
  return {
    unit: typeof unit === "string" ? unit : "",
    direction: typeof direction === "number" ? direction : null,
    speed,
    units: typeof units === "string" ? units : "m/s",
    status: typeof status === "string" ? status : "00",
    t0: typeof t0 === "number" ? t0 : time,
  };
}
