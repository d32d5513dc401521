/** The colours of values. Their brightness rises evenly, so that the colour-blind can read them, too. Pure. */
import { clamp } from "./projection.js";

/** Some colours of the map viridis of S. van der Walt and N. Smith, as in the PNG of the service. The others are between them. */
const CONTROL = /** @type {const} */ ([[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]]);
/** Colours for transmitters, which the colour-blind can tell apart, too. */
const SERVERS = /** @type {const} */ ([[0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0], [240, 228, 66], [120, 120, 120]]);

/** @typedef {readonly [number, number, number]} Rgb */

/**
 * The colour of a part of the range, 0 to 1.
 * @param {number} part
 * @returns {Rgb}
 */
export function colourAt(part) {
  const place = clamp(part, 0, 1) * (CONTROL.length - 1);
  const before = Math.min(Math.floor(place), CONTROL.length - 2);
  const [from, to] = [CONTROL[before] ?? CONTROL[0], CONTROL[before + 1] ?? CONTROL[0]];
  const mix = (/** @type {0 | 1 | 2} */ channel) => Math.round(from[channel] + (place - before) * (to[channel] - from[channel]));
  return [mix(0), mix(1), mix(2)];
}

/**
 * The colour of a transmitter.
 * @param {number} index
 * @returns {Rgb}
 */
export function serverColour(index) {
  return SERVERS[index % SERVERS.length] ?? SERVERS[0];
}

/** @param {Rgb} colour */
export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/**
 * A colour over another one.
 * @param {Rgb} colour
 * @param {Rgb} ground
 * @param {number} opacity of the colour
 */
export function over(colour, ground, opacity) {
  const mix = (/** @type {0 | 1 | 2} */ channel) => Math.round(opacity * colour[channel] + (1 - opacity) * ground[channel]);
  return css([mix(0), mix(1), mix(2)]);
}

/** A colour as one number of 32 bits, in the form of the pixels of an image on machines with the low byte first. @param {Rgb} colour */
export function packed([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

const PALETTE = Uint32Array.from({ length: 256 }, (_, index) => packed(colourAt(index / 255)));
const REVERSED = PALETTE.slice().reverse();

/** Returns packed colours for 256 steps of the range. If reversed, the smallest value is light. @param {boolean} isReversed */
export function palette(isReversed) {
  return isReversed ? REVERSED : PALETTE;
}

/** The step in decibels of which the ends of the range are multiples. */
const RANGE_STEP = 20;
const MARKS_MAX = 9;

/**
 * Returns round ends for values, and round marks between them. `current` is kept while it fits, so that colours do not flicker.
 * @param {number} low
 * @param {number} high
 * @param {ColourRange | null} current
 * @returns {ColourRange}
 */
export function colourRange(low, high, current) {
  const from = Math.floor(low / RANGE_STEP) * RANGE_STEP;
  const to = Math.max(from + 2 * RANGE_STEP, Math.ceil(high / RANGE_STEP) * RANGE_STEP);
  if (current && from >= current.low && to <= current.high && current.high - current.low - (to - from) <= 2 * RANGE_STEP) return current;
  const parts = (to - from) / RANGE_STEP;
  const count = parts < MARKS_MAX ? parts : parts % 2 === 0 ? parts / 2 : 1;
  return { low: from, high: to, marks: Array.from({ length: count + 1 }, (_, index) => from + (index * (to - from)) / count) };
}

/** @typedef {{ low: number, high: number, marks: number[] }} ColourRange */
