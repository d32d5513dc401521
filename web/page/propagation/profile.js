/** The path from a transmitter to a point: the ground with the curve of the Earth, the line of sight, and its first Fresnel zone. Pure. */

import { formatNumber } from "../words.js";

/** The effective radius of the Earth, as in the service. */
const EARTH_M = 8_500_000;
const LIGHT_M_S = 299_792_458;
const STEPS = 160;
/** The part of the first Fresnel zone that must be free for a free path (Recommendation ITU-R P.526). */
const FREE_PART = 0.6;

/**
 * @typedef {import("./projection.js").Spot} Spot
 * @typedef {{ at: number, ground: number, ray: number, zone: number }} Step metres from the transmitter, heights with the curve of the Earth, and
 *   the radius of the first Fresnel zone
 * @typedef {{ length: number, steps: Step[], clearance: number, worst: Step }} Profile the clearance is the least one between ray and ground, in radii
 *   of the zone
 */

/**
 * @param {{ spot: Spot, height: number }} from above the ground
 * @param {{ spot: Spot, height: number }} to
 * @param {number} mhz
 * @param {(spot: Spot) => number} heightAt the ground above the sea
 * @returns {Profile}
 */
export function profile(from, to, mhz, heightAt) {
  const length = Math.hypot(to.spot.x - from.spot.x, to.spot.y - from.spot.y);
  const wave = LIGHT_M_S / (mhz * 1e6);
  const [begin, end] = [heightAt(from.spot) + from.height, heightAt(to.spot) + to.height];
  const steps = Array.from({ length: STEPS + 1 }, (_, index) => {
    const part = index / STEPS;
    const [before, after] = [part * length, (1 - part) * length];
    const spot = { x: from.spot.x + part * (to.spot.x - from.spot.x), y: from.spot.y + part * (to.spot.y - from.spot.y) };
    const bulge = (before * after) / (2 * EARTH_M);
    return { at: before, ground: heightAt(spot) + bulge, ray: begin + part * (end - begin), zone: length > 0 ? Math.sqrt((wave * before * after) / length) : 0 };
  });
  let worst = /** @type {Step} */ (steps[STEPS >> 1]);
  let clearance = Infinity;
  for (const step of steps.slice(1, -1)) {
    const free = (step.ray - step.ground) / Math.max(step.zone, 1e-9);
    if (free < clearance) [clearance, worst] = [free, step];
  }
  return { length, steps, clearance, worst };
}

/**
 * Returns "2.31 km, in sight, the first Fresnel zone is free", or the place at which the ground is in the way.
 * @param {Profile} profile
 */
export function profileInWords({ length, clearance, worst }) {
  if (length < 1) return "at the transmitter";
  const place = `${formatDistance(worst.at)} from the transmitter`;
  if (clearance < 0) return `not in sight: the ground is ${Math.max(1, Math.round(worst.ground - worst.ray))} m above the line of sight, ${place}`;
  if (clearance < FREE_PART) return `in sight, but the ground reaches into the first Fresnel zone, ${place}`;
  return "in sight, and the first Fresnel zone is free";
}

/** @param {number} metres */
export function formatDistance(metres) {
  if (metres < 999.5) return `${Math.round(metres)} m`;
  const km = metres / 1000;
  return `${formatNumber(km, km < 9.995 ? 2 : km < 99.95 ? 1 : 0)} km`;
}
