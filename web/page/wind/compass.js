/** Directions on the compass. Pure. */

const POINTS = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"];

/**
 * Returns the nearest of the 16 compass points.
 * @param {number} degrees
 */
export function compassPoint(degrees) {
  return String(POINTS[Math.round(normal(degrees) / 22.5) % 16]);
}

/**
 * Normalizes an angle to 0 up to 360.
 * @param {number} degrees
 */
export function normal(degrees) {
  return ((degrees % 360) + 360) % 360;
}
