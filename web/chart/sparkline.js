/** A small line without axes: the last values, newest at the right. */
import { colour, fitted } from "./canvas.js";
import { outline } from "./outline.js";
import { partOf } from "./scale.js";

/** No sparkline has many more pixels. */
const COLUMNS = 160;

/**
 * @typedef {object} Curve
 * @property {readonly (readonly number[])[]} stretches points without an interruption: place, value, place, value, …
 * @property {number} from the place at the left edge
 * @property {number} to
 * @property {number} low
 * @property {number} high
 * @property {boolean} hasFloor
 */

export class Sparkline {
  #ask;
  #capacity;
  /** @type {Curve} */
  #curve = { stretches: [], from: 0, to: 1, low: 0, high: 1, hasFloor: false };

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{ paint: string, capacity?: number }} options the name of a colour, and how many values fill the width
   */
  constructor(canvas, { paint, capacity = 2 }) {
    this.#capacity = capacity;
    this.#ask = fitted(canvas, (context, width, height) => draw(context, width, height, this.#curve, paint));
  }

  /**
   * @param {readonly number[]} values oldest first
   * @param {number} top the value at the upper edge
   */
  show(values, top) {
    const points = values.flatMap((value, index) => [index + 1 - values.length, value]);
    this.#curve = { stretches: [points], from: 1 - this.#capacity, to: 0, low: 0, high: top > 0 ? top : 1, hasFloor: true };
    this.#ask();
  }

  /**
   * Shows the values between two times, from the least to the greatest one.
   * @param {import("./series.js").Series} series
   * @param {number} from
   * @param {number} to
   */
  follow(series, from, to) {
    const { stretches, low, high } = outline(series, from, to, { step: (to - from) / COLUMNS, holeMs: Infinity });
    this.#curve = { stretches, from, to, low, high, hasFloor: false };
    this.#ask();
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Curve} curve
 * @param {string} paint
 */
function draw(context, width, height, { stretches, from, to, low, high, hasFloor }, paint) {
  const x = (/** @type {number} */ place) => width - 2 - ((to - place) * (width - 3)) / (to - from);
  // Values that are all the same are a line in the middle.
  const part = (/** @type {number} */ value) => (high > low ? Math.max(0, Math.min(1, partOf(value, { low, high }))) : 0.5);
  const y = (/** @type {number} */ value) => height - 2 - part(value) * (height - 4);
  if (hasFloor) {
    context.strokeStyle = colour("line");
    context.beginPath();
    context.moveTo(0, height - 0.5);
    context.lineTo(width, height - 0.5);
    context.stroke();
  }
  context.strokeStyle = context.fillStyle = colour(paint);
  context.lineWidth = 1.25;
  context.lineJoin = "round";
  for (const points of stretches) {
    context.beginPath();
    for (let at = 0; at < points.length; at += 2) context.lineTo(x(Number(points[at])), y(Number(points[at + 1])));
    context.stroke();
  }
  const newest = stretches.at(-1)?.slice(-2);
  if (newest?.length !== 2) return;
  context.beginPath();
  context.arc(x(Number(newest[0])), y(Number(newest[1])), 2, 0, 2 * Math.PI);
  context.fill();
}
