/** The images of a map: the values in their colours, and the shaded terrain. One pixel for each point. */
import { packed, palette, serverColour } from "./colours.js";
import { clamp } from "./projection.js";
import { NONE } from "./tiles.js";

/** @typedef {import("./colours.js").ColourRange & { quantity: string, isServers: boolean }} Look what is drawn, and the values of the colours */

const OF_SERVER = Uint32Array.from({ length: 256 }, (_, index) => packed(serverColour(index)));

/** The values of a grid as an image. Draws it anew where tiles came; all of it, if the look has changed. */
export class Picture {
  canvas = document.createElement("canvas");
  #grid;
  #context;
  #image;
  #pixels;
  #look = "";
  /** @type {import("./tiles.js").Rectangle | null} */
  #changed = null;

  /** @param {import("./tiles.js").Grid} grid */
  constructor(grid) {
    this.#grid = grid;
    this.canvas.width = grid.columns;
    this.canvas.height = grid.rows;
    this.#context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.#image = this.#context.createImageData(grid.columns, grid.rows);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
  }

  /** @param {import("./tiles.js").Rectangle} changed */
  add(changed) {
    const before = this.#changed ?? changed;
    this.#changed = {
      left: Math.min(before.left, changed.left),
      top: Math.min(before.top, changed.top),
      right: Math.max(before.right, changed.right),
      bottom: Math.max(before.bottom, changed.bottom),
    };
  }

  /** Draws what has changed. @param {Look} look */
  update(look) {
    const key = JSON.stringify(look);
    const { columns, rows } = this.#grid;
    if (key !== this.#look) this.#changed = { left: 0, top: 0, right: columns, bottom: rows };
    this.#look = key;
    const changed = this.#changed;
    this.#changed = null;
    const values = this.#grid.values(look.quantity);
    if (!changed || !values) return;
    const { left, top, right, bottom } = changed;
    const colours = palette(look.quantity === "loss_db");
    const { servers } = this.#grid; // null with one transmitter
    const scale = 255 / Math.max(1, (look.high - look.low) * 100);
    for (let row = top; row < bottom; row += 1) {
      for (let at = row * columns + left, end = row * columns + right; at < end; at += 1) {
        const value = values[at] ?? NONE;
        const colour = look.isServers ? OF_SERVER[servers?.[at] ?? 0] : colours[clamp(Math.round((value - look.low * 100) * scale), 0, 255)];
        this.#pixels[at] = value === NONE ? 0 : (colour ?? 0);
      }
    }
    this.#context.putImageData(this.#image, 0, 0, left, top, right - left, bottom - top);
  }
}

/** The shaded terrain as an image. @param {import("./relief.js").Relief} relief */
export function shaded(relief) {
  const canvas = document.createElement("canvas");
  canvas.width = relief.columns;
  canvas.height = relief.rows;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(relief.columns, relief.rows);
  const pixels = new Uint32Array(image.data.buffer);
  const shade = relief.shade();
  for (let index = 0; index < pixels.length; index += 1) pixels[index] = 0xff000000 | ((shade[index] ?? 0) * 0x010101);
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Draws the legend of values: their colours from the lowest to the highest, over the ground of the map from light to dark.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {boolean} isReversed
 * @param {readonly import("./colours.js").Rgb[]} ground
 * @param {number} opacity
 */
export function drawColours(context, width, height, isReversed, ground, opacity) {
  context.imageSmoothingEnabled = false;
  context.drawImage(stripOf(Uint32Array.from(ground, packed), 1), 0, 0, width, height);
  context.globalAlpha = opacity;
  context.drawImage(stripOf(palette(isReversed), 256), 0, 0, width, height);
  context.globalAlpha = 1;
}

/**
 * @param {Uint32Array} colours
 * @param {number} columns
 */
function stripOf(colours, columns) {
  const strip = document.createElement("canvas");
  [strip.width, strip.height] = [columns, colours.length / columns];
  const image = new ImageData(strip.width, strip.height);
  new Uint32Array(image.data.buffer).set(colours);
  strip.getContext("2d")?.putImageData(image, 0, 0);
  return strip;
}
