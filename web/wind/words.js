/** Formats wind. Pure. */
import { compassPoint, normal } from "../page/wind/compass.js";

/**
 * Returns the shorter turn from one direction to another: above -180 up to 180, clockwise positive.
 * @param {number} from
 * @param {number} to
 */
export function shortestTurn(from, to) {
  const turn = normal(to - from);
  return turn > 180 ? turn - 360 : turn;
}

/** Lower bounds of Beaufort 1 to 12 in m/s. */
const BEAUFORT_MPS = [0.3, 1.6, 3.4, 5.5, 8.0, 10.8, 13.9, 17.2, 20.8, 24.5, 28.5, 32.7];
const BEAUFORT_NAMES = [
  "calm",
  "light air",
  "light breeze",
  "gentle breeze",
  "moderate breeze",
  "fresh breeze",
  "strong breeze",
  "near gale",
  "gale",
  "strong gale",
  "storm",
  "violent storm",
  "hurricane force",
];

/** The units in m/s. The single letters are those of the instrument. */
const MPS = new Map([
  ["m/s", 1],
  ["M", 1],
  ["knots", 1852 / 3600],
  ["kn", 1852 / 3600],
  ["N", 1852 / 3600],
  ["mph", 0.44704],
  ["P", 0.44704],
  ["km/h", 1 / 3.6],
  ["K", 1 / 3.6],
  ["ft/min", 0.3048 / 60],
  ["F", 0.3048 / 60],
]);

/**
 * @param {number} speed
 * @param {string} units
 * @returns {{ force: number, name: string } | null} null when the units are unknown
 */
export function beaufort(speed, units) {
  const factor = MPS.get(units);
  if (factor === undefined) return null;
  // Compare at the scale's own precision: 1.6 read as 1.5999999 is still force 2.
  const mps = Math.round(speed * factor * 1000) / 1000;
  const force = BEAUFORT_MPS.filter((bound) => mps >= bound).length;
  return { force, name: String(BEAUFORT_NAMES[force]) };
}

/**
 * "SW 229°, 2.74 m/s, light breeze (Beaufort 2)", or "not measured"
 * @param {import("../page/wind/wind.js").Wind} wind
 */
export function windInWords({ direction, speed, units }) {
  if (speed === null) return "not measured";
  const from = direction === null ? "no direction" : `${compassPoint(direction)} ${direction}°`;
  const scale = beaufort(speed, units);
  const force = scale === null ? "" : `, ${scale.name} (Beaufort ${scale.force})`;
  return `${from}, ${speed.toFixed(2)} ${units}${force}`;
}

/**
 * Describes the instrument's status code; null if there is no fault.
 * @param {string} status
 */
export function faultInWords(status) {
  /** @type {Record<string, string | null>} */
  const words = {
    "00": null,
    "01": "axis 1 failed",
    "02": "axis 2 failed",
    "04": "both axes failed",
    "08": "non-volatile memory checksum failed",
    "09": "ROM checksum failed",
    A: null,
    V: "its data is void",
  };
  return status in words ? (words[status] ?? null) : `status ${status}`;
}
