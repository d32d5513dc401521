/** Means of the values of a series between two indexes. Pure. */

import { finite } from "./scale.js";

/** As long as this share of the values, the sum of directions points somewhere. */
const RESULTANT_MIN = 0.1;

/** Parts of great values, whose sum is no number otherwise. A power of two, so that no digit is lost. */
const PART = 2 ** -40;

/**
 * @param {import("./series.js").Series} series
 * @param {number} begin
 * @param {number} end is not included
 * @returns {{ mean: number, count: number }}
 */
export function meanOf(series, begin, end) {
  let [sum, parts, count] = [0, 0, 0];
  for (let index = begin; index < end; index += 1) {
    const value = series.value(index);
    if (Number.isNaN(value)) continue;
    sum += value;
    parts += value * PART;
    count += 1;
  }
  return { mean: count === 0 || Number.isFinite(sum) ? sum / count : finite(parts / count / PART), count };
}

/**
 * Returns where directions in degrees point together, so that the mean of 350° and 10° is north; NaN if they point all round.
 * @param {import("./series.js").Series} series
 * @param {number} begin
 * @param {number} end is not included
 * @returns {{ mean: number, count: number }}
 */
export function meanDirectionOf(series, begin, end) {
  let [east, north, count] = [0, 0, 0];
  for (let index = begin; index < end; index += 1) {
    const angle = (series.value(index) * Math.PI) / 180;
    if (Number.isNaN(angle)) continue;
    east += Math.sin(angle);
    north += Math.cos(angle);
    count += 1;
  }
  const isSomewhere = Math.hypot(east, north) >= RESULTANT_MIN * count;
  const degrees = (Math.atan2(east, north) * 180) / Math.PI;
  return { mean: isSomewhere ? (degrees + 360) % 360 : NaN, count };
}
