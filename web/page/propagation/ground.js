/** The colours below the values of a map: those of the card, the shaded terrain, or the tiles in view. */
import { drawGround } from "./draw.js";
import { clamp } from "./projection.js";

/** The number of samples of the ground from west to east, and from north to south. */
const PLACES = 48;

const canvas = document.createElement("canvas");
canvas.width = canvas.height = PLACES;
const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));

/**
 * Returns colours of the ground in view, from the lightest to the darkest in even steps.
 * @param {number} count
 * @param {number} width of the map
 * @param {number} height
 * @param {import("./draw.js").Ground} ground
 * @returns {import("./colours.js").Rgb[]}
 */
export function groundColours(count, width, height, ground) {
  const { view, frame } = ground;
  const [corner, opposite] = [view.pixel({ x: 0, y: frame.height }), view.pixel({ x: frame.width, y: 0 })];
  const [left, right] = [clamp(corner.x, 0, width - 1), clamp(opposite.x, 1, width)];
  const [top, bottom] = [clamp(corner.y, 0, height - 1), clamp(opposite.y, 1, height)];
  const [across, down] = [PLACES / Math.max(1, right - left), PLACES / Math.max(1, bottom - top)];
  context.setTransform(across, 0, 0, down, -left * across, -top * down);
  drawGround(context, width, height, ground);
  const { data } = context.getImageData(0, 0, PLACES, PLACES);
  // Sorted by their light, which is in front of each.
  const sorted = Uint32Array.from({ length: PLACES * PLACES }, (_, index) => {
    const [red = 0, green = 0, blue = 0] = data.subarray(4 * index, 4 * index + 3);
    return ((Math.round(0.3 * red + 0.59 * green + 0.11 * blue) << 24) | (red << 16) | (green << 8) | blue) >>> 0;
  }).sort();
  const lightOf = (/** @type {number} */ colour) => colour >>> 24;
  const [darkest = 0, lightest = 0] = [sorted.at(0), sorted.at(-1)].map((colour) => lightOf(colour ?? 0));
  return Array.from({ length: count }, (_, index) => {
    const light = lightest - (index / (count - 1)) * (lightest - darkest);
    const colour = sorted.find((each) => lightOf(each) >= light) ?? 0;
    return [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255];
  });
}
