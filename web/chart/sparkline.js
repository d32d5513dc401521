/** A small line without axes: the last values, newest at the right. */
import { colour, fitted } from "./canvas.js";

export class Sparkline {
  #ask;
  /** @type {readonly number[]} */
  #values = [];
  #top = 1;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{ paint: string, capacity: number }} options the name of a colour, and how many values fill the width
   */
  constructor(canvas, { paint, capacity }) {
    this.#ask = fitted(canvas, (context, width, height) => {
      const step = (width - 3) / (capacity - 1);
      const start = width - 2 - step * (this.#values.length - 1);
      /** @param {number} value */
      const y = (value) => height - 2 - Math.max(0, Math.min(1, value / this.#top)) * (height - 4);
      context.strokeStyle = colour("line");
      context.beginPath();
      context.moveTo(0, height - 0.5);
      context.lineTo(width, height - 0.5);
      context.stroke();
      context.strokeStyle = context.fillStyle = colour(paint);
      context.lineWidth = 1.25;
      context.lineJoin = "round";
      context.beginPath();
      this.#values.forEach((value, index) => context.lineTo(start + index * step, y(value)));
      context.stroke();
      const newest = this.#values.at(-1);
      if (newest === undefined) return;
      context.beginPath();
      context.arc(width - 2, y(newest), 2, 0, 2 * Math.PI);
      context.fill();
    });
  }

  /**
   * @param {readonly number[]} values oldest first
   * @param {number} top the value at the upper edge
   */
  show(values, top) {
    this.#values = values;
    this.#top = top > 0 ? top : 1;
    this.#ask();
  }
}
