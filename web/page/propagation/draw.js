/** Draws a map: terrain, tiles of the web, values, contours, buildings, the grid with distances, and the place that is read. */
import { colour, font } from "../../chart/canvas.js";
import { roundStep } from "../../chart/scale.js";
import { formatDistance } from "./profile.js";
import { clamp, webTiles } from "./projection.js";

/**
 * @typedef {import("./projection.js").Spot} Spot
 *
 * @typedef {object} Ground what is below the values
 * @property {import("./projection.js").View} view
 * @property {import("./projection.js").Frame} frame
 * @property {{ columns: number, rows: number, step_m: number } | null} area the grid of points; null before there is one of this place
 * @property {HTMLCanvasElement | null} relief
 * @property {((tile: { z: number, x: number, y: number }) => CanvasImageSource | null) | null} tileOf
 *
 * @typedef {object} Above
 * @property {HTMLCanvasElement | null} values
 * @property {number} opacity of the values
 * @property {{ level: number, lines: Float32Array }[]} contours
 * @property {readonly number[][][]} buildings
 * @property {Spot | null} cursor
 * @property {string | null} value at the cursor
 * @property {Spot | null} from where the path to the cursor begins
 *
 * @typedef {Ground & Above} Scene
 */

const GRID_LINES = 7;
const SCALE_BAR_PX = 130;
const LABEL_MARGIN_PX = 4;
/** If the distances are closer to the upper edge than this, they have no room for the scale above them. */
const LOW_PX = 60;
const labelFont = (px = 11) => font(px, "600");

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Scene} scene
 */
export function drawMap(context, width, height, scene) {
  const { view, area } = scene;
  drawGround(context, width, height, scene);
  if (area && scene.values) {
    context.globalAlpha = scene.opacity;
    // Squares of points have sharp edges.
    drawGrid(context, view, area, scene.values, view.scale * area.step_m < 1);
    context.globalAlpha = 1;
  }
  drawBuildings(context, scene);
  if (area) drawContours(context, scene, area);
  drawDistances(context, width, height, scene);
  drawCursor(context, width, scene);
}

/**
 * Draws what is below the values.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Ground} ground
 */
export function drawGround(context, width, height, ground) {
  const { view, frame, area } = ground;
  context.fillStyle = colour("hole");
  context.fillRect(0, 0, width, height);
  const [corner, opposite] = [view.pixel({ x: 0, y: frame.height }), view.pixel({ x: frame.width, y: 0 })];
  context.fillStyle = colour("card");
  context.fillRect(corner.x, corner.y, opposite.x - corner.x, opposite.y - corner.y);
  if (area && ground.relief) drawGrid(context, view, area, ground.relief, true);
  if (ground.tileOf) drawTiles(context, width, height, ground, ground.tileOf);
}

/**
 * Draws an image over the points of the grid.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./projection.js").View} view
 * @param {{ columns: number, rows: number, step_m: number }} area
 * @param {HTMLCanvasElement} image
 * @param {boolean} isSmooth
 */
function drawGrid(context, view, { columns, rows, step_m: step }, image, isSmooth) {
  // A pixel of the image lies around its point.
  const [halfX, halfY] = [((columns - 1) / Math.max(1, image.width - 1) || 1) * step * 0.5, ((rows - 1) / Math.max(1, image.height - 1) || 1) * step * 0.5];
  const low = view.pixel({ x: -halfX, y: -halfY });
  const high = view.pixel({ x: (columns - 1) * step + halfX, y: (rows - 1) * step + halfY });
  context.imageSmoothingEnabled = isSmooth;
  context.drawImage(image, low.x, high.y, high.x - low.x, low.y - high.y);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Ground} ground
 * @param {NonNullable<Ground["tileOf"]>} tileOf
 */
function drawTiles(context, width, height, { view, frame }, tileOf) {
  context.imageSmoothingEnabled = true;
  const { a, d, e, f } = context.getTransform();
  for (const tile of webTiles(frame, view.spot(0, height), view.spot(width, 0), view.scale)) {
    const image = tileOf(tile);
    if (!image) continue;
    const [low, high] = [view.pixel(tile.low), view.pixel(tile.high)];
    // Up to whole pixels of the canvas: no seam is seen between two tiles.
    const [left, right] = [(Math.floor(low.x * a + e) - e) / a, (Math.ceil(high.x * a + e) - e) / a];
    const [top, bottom] = [(Math.floor(high.y * d + f) - f) / d, (Math.ceil(low.y * d + f) - f) / d];
    context.drawImage(image, left, top, right - left, bottom - top);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 */
function drawBuildings(context, { view, frame, buildings }) {
  if (buildings.length === 0) return;
  context.beginPath();
  for (const ring of buildings) {
    ring.forEach(([east = 0, north = 0], index) => {
      const { x, y } = view.pixel(frame.spot(east, north));
      if (index === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
    context.closePath();
  }
  context.fillStyle = "rgb(20 24 32 / 22%)";
  context.fill();
  context.strokeStyle = "rgb(20 24 32 / 60%)";
  context.lineWidth = 0.75;
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {{ rows: number, step_m: number }} area
 */
function drawContours(context, { view, contours }, { rows, step_m: step }) {
  for (const { level, lines } of contours) {
    context.beginPath();
    let [label, length] = [{ x: 0, y: 0 }, 0];
    for (let at = 0; at + 3 < lines.length; at += 4) {
      const pixel = (/** @type {number} */ index) => view.pixel({ x: (lines[index] ?? 0) * step, y: (rows - 1 - (lines[index + 1] ?? 0)) * step });
      const [from, to] = [pixel(at), pixel(at + 2)];
      context.moveTo(from.x, from.y);
      context.lineTo(to.x, to.y);
      // The label stands in the middle of the list, which is somewhere on the line.
      if (at <= lines.length / 2) [label, length] = [from, length + 1];
    }
    // Dark within light: seen on all colours.
    for (const [paint, thick] of /** @type {const} */ ([["rgb(255 255 255 / 75%)", 3.2], ["rgb(15 18 24)", 1.3]])) {
      context.strokeStyle = paint;
      context.lineWidth = thick;
      context.stroke();
    }
    if (length > 4) write(context, String(level), label.x, label.y, "center");
  }
}

/**
 * The width of words as {@link write} writes them.
 * @param {CanvasRenderingContext2D} context
 * @param {string} words
 */
function widthOf(context, words) {
  context.font = labelFont();
  return context.measureText(words).width;
}

/**
 * Writes words that can be read on all colours.
 * @param {CanvasRenderingContext2D} context
 * @param {string} words
 * @param {number} x
 * @param {number} y
 * @param {CanvasTextAlign} align
 * @param {number} [px] the height of the letters
 */
function write(context, words, x, y, align, px) {
  context.font = labelFont(px);
  context.textAlign = align;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3.5;
  context.strokeStyle = colour("card");
  context.strokeText(words, x, y);
  context.fillStyle = colour("ink");
  context.fillText(words, x, y);
}

/**
 * Draws a grid with distances from the south-west corner, and a scale.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Scene} scene
 */
function drawDistances(context, width, height, { view, frame }) {
  const step = roundStep(Math.max(width, 300) / view.scale / GRID_LINES);
  const [low, high] = [view.spot(0, height), view.spot(width, 0)];
  context.strokeStyle = "rgb(128 128 128 / 35%)";
  context.lineWidth = 1;
  context.beginPath();
  const [southWest, northEast] = [view.pixel({ x: 0, y: 0 }), view.pixel({ x: frame.width, y: frame.height })];
  const marks = (/** @type {number} */ from, /** @type {number} */ to) => {
    const first = Math.max(0, Math.ceil(from / step));
    return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, index) => (first + index) * step);
  };
  const [easts, norths] = [marks(low.x, Math.min(high.x, frame.width)), marks(low.y, Math.min(high.y, frame.height))];
  for (const east of easts) {
    const x = Math.round(view.pixel({ x: east, y: 0 }).x) + 0.5;
    context.moveTo(x, northEast.y);
    context.lineTo(x, southWest.y);
  }
  for (const north of norths) {
    const y = Math.round(view.pixel({ x: 0, y: north }).y) + 0.5;
    context.moveTo(southWest.x, y);
    context.lineTo(northEast.x, y);
  }
  context.stroke();
  context.strokeStyle = colour("quiet");
  context.strokeRect(southWest.x, northEast.y, northEast.x - southWest.x, southWest.y - northEast.y);
  const bottom = Math.min(height - 10, southWest.y + 1);
  // On a narrow map, not each line has room for its distance.
  const widest = Math.max(0, ...easts.map((east) => widthOf(context, formatDistance(east)))) + 2 * LABEL_MARGIN_PX;
  const every = Math.ceil(widest / (step * view.scale));
  for (const east of easts.slice(1).filter((east) => Math.round(east / step) % every === 0)) {
    // Whole, also where its line is at the edge.
    const half = widthOf(context, formatDistance(east)) / 2 + LABEL_MARGIN_PX;
    write(context, formatDistance(east), clamp(view.pixel({ x: east, y: 0 }).x, half, width - half), bottom - 8, "center");
  }
  const left = Math.max(4, southWest.x + 4);
  for (const north of norths.slice(1)) write(context, formatDistance(north), left, view.pixel({ x: 0, y: north }).y, "left");
  drawScale(context, width, bottom > LOW_PX ? bottom : height, view.scale);
}

/**
 * Draws the scale at the right, above the distances.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} bottom of the distances
 * @param {number} scale
 */
function drawScale(context, width, bottom, scale) {
  const metres = roundStep(SCALE_BAR_PX / scale / 2.5);
  const [length, right, y] = [metres * scale, width - 12, bottom - 26];
  for (const [paint, thick] of /** @type {const} */ ([["card", 5], ["ink", 2]])) {
    context.strokeStyle = colour(paint);
    context.lineWidth = thick;
    context.beginPath();
    context.moveTo(right - length, y);
    context.lineTo(right, y);
    context.stroke();
  }
  write(context, formatDistance(metres), right - length / 2, y - 11, "center");
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {Scene} scene
 */
function drawCursor(context, width, { view, cursor, value, from }) {
  if (!cursor) return;
  const { x, y } = view.pixel(cursor);
  for (const [paint, thick] of /** @type {const} */ ([["rgb(255 255 255)", 3.5], ["rgb(15 18 24)", 1.5]])) {
    context.strokeStyle = paint;
    context.lineWidth = thick;
    if (from) {
      const begin = view.pixel(from);
      context.setLineDash([6, 4]);
      context.beginPath();
      context.moveTo(begin.x, begin.y);
      context.lineTo(x, y);
      context.stroke();
      context.setLineDash([]);
    }
    context.beginPath();
    context.arc(x, y, 6, 0, 2 * Math.PI);
    context.moveTo(x - 11, y);
    context.lineTo(x + 11, y);
    context.moveTo(x, y - 11);
    context.lineTo(x, y + 11);
    context.stroke();
  }
  // Towards the middle, where there is room for it.
  const isLeft = x < width / 2;
  write(context, value ?? "", x + (isLeft ? 14 : -14), y + (y < 30 ? 14 : -14), isLeft ? "left" : "right", 14);
}
