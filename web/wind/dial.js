/**
 * The compass dial. The arrow begins at the rim, where the wind comes from, and points to the middle. Fading petals on
 * the rim show the directions of the last half minute.
 */
import { colour, fitted, font, reducedMotion } from "../chart/canvas.js";
import { compassPoint, normal } from "../page/wind/compass.js";
import { shortestTurn, windInWords } from "./words.js";

const TRAIL_MS = 30_000;
const TRAIL_MAX = 400;
const NEEDLE_MS = 140; // time constant of the needle's way to a new direction
const ALT_TEXT_EVERY_MS = 5000;

export class Dial {
  #canvas;
  #ask;
  /** @type {import("../page/wind/wind.js").Wind | null} */
  #wind = null;
  #angle = NaN;
  #drawnAt = 0;
  #altTextAt = 0;
  #stale = true;
  /** @type {{ direction: number, at: number }[]} */
  #trail = [];

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#ask = fitted(canvas, (context, width, height) => this.#draw(context, Math.min(width, height), width, height));
  }

  /** @param {import("../page/wind/wind.js").Wind} wind */
  show(wind) {
    this.#wind = wind;
    this.#stale = false;
    this.#canvas.dataset.direction = wind.direction === null ? "" : String(wind.direction);
    this.#canvas.dataset.speed = wind.speed === null ? "" : String(wind.speed);
    if (wind.direction !== null) {
      this.#trail.push({ direction: wind.direction, at: wind.t0 });
      if (this.#trail.length > TRAIL_MAX) this.#trail.shift();
    }
    const now = performance.now();
    if (now - this.#altTextAt > ALT_TEXT_EVERY_MS || this.#altTextAt === 0) {
      this.#altTextAt = now;
      this.#canvas.setAttribute("aria-label", `Compass dial. Wind${wind.speed === null ? "" : " from"} ${windInWords(wind)}`);
    }
    this.#ask();
  }

  /** @param {boolean} stale whether what is shown is no longer the wind that blows */
  setStale(stale) {
    if (this.#stale === stale) return;
    this.#stale = stale;
    if (stale) this.#canvas.setAttribute("aria-label", "Compass dial. No current measurement");
    this.#ask();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} size
   * @param {number} width
   * @param {number} height
   */
  #draw(context, size, width, height) {
    context.translate(width / 2, height / 2);
    const radius = size / 2 - 2;
    drawRose(context, radius);
    drawScale(context, radius);
    this.#drawTrail(context, radius);
    const direction = this.#wind?.direction ?? null;
    if (direction !== null) {
      this.#turnTowards(direction);
      drawArrow(context, radius, this.#angle, this.#stale ? colour("quiet") : colour("bloom"));
    }
    this.#drawMiddle(context, radius);
  }

  /** @param {number} direction */
  #turnTowards(direction) {
    const now = performance.now();
    const passed = Math.min(100, now - this.#drawnAt);
    this.#drawnAt = now;
    if (Number.isNaN(this.#angle) || reducedMotion.matches) this.#angle = direction;
    const left = shortestTurn(this.#angle, direction);
    if (Math.abs(left) < 0.2) {
      this.#angle = direction;
      return;
    }
    this.#angle = normal(this.#angle + left * (1 - Math.exp(-passed / NEEDLE_MS)));
    this.#ask();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} radius
   */
  #drawTrail(context, radius) {
    const newest = this.#wind?.t0 ?? 0;
    this.#trail = this.#trail.filter(({ at }) => newest - at < TRAIL_MS);
    context.strokeStyle = colour(this.#stale ? "quiet" : "bloom");
    context.lineCap = "round";
    context.lineWidth = Math.max(2, radius * 0.016);
    for (const { direction, at } of this.#trail) {
      context.globalAlpha = 0.3 * (1 - (newest - at) / TRAIL_MS) ** 1.5;
      context.beginPath();
      spoke(context, direction, radius * 0.745, radius * 0.8);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} radius
   */
  #drawMiddle(context, radius) {
    const wind = this.#wind;
    const middle = radius * 0.33;
    context.beginPath();
    context.arc(0, 0, middle, 0, 2 * Math.PI);
    context.fillStyle = colour("card");
    context.fill();
    context.strokeStyle = colour(wind && wind.direction !== null && !this.#stale ? "bloom" : "line");
    context.lineWidth = 1.5;
    context.stroke();
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    context.fillStyle = colour(this.#stale ? "quiet" : "ink");
    context.font = font(radius * 0.2, "600");
    context.fillText(wind && wind.speed !== null ? wind.speed.toFixed(2) : "–", 0, radius * 0.03);
    context.fillStyle = colour("quiet");
    context.font = font(Math.max(11, radius * 0.075));
    context.fillText(wind ? wind.units : "", 0, radius * 0.13);
    context.fillText(wind ? underSpeed(wind) : "", 0, radius * 0.22);
  }
}

/** @param {import("../page/wind/wind.js").Wind} wind */
function underSpeed({ direction, speed }) {
  if (speed === null) return "not measured";
  return direction === null ? "calm" : `from ${compassPoint(direction)}`;
}

/**
 * Draws a line along a bearing, between two radii. 0 is up, clockwise.
 * @param {CanvasRenderingContext2D} context
 * @param {number} bearing
 * @param {number} inner
 * @param {number} outer
 */
function spoke(context, bearing, inner, outer) {
  const [x, y] = [Math.sin((bearing * Math.PI) / 180), -Math.cos((bearing * Math.PI) / 180)];
  context.moveTo(x * inner, y * inner);
  context.lineTo(x * outer, y * outer);
}

/**
 * Draws the flower in the background: long petals for N E S W, short ones between.
 * @param {CanvasRenderingContext2D} context
 * @param {number} radius
 */
function drawRose(context, radius) {
  context.beginPath();
  context.arc(0, 0, radius * 0.83, 0, 2 * Math.PI);
  context.fillStyle = colour("card");
  context.fill();
  context.fillStyle = colour("petal");
  for (const [bearings, length, width] of /** @type {const} */ ([
    [[45, 135, 225, 315], 0.58, 0.13],
    [[0, 90, 180, 270], 0.7, 0.15],
  ])) {
    for (const bearing of bearings) {
      context.save();
      context.rotate((bearing * Math.PI) / 180);
      context.beginPath();
      context.moveTo(0, 0);
      context.bezierCurveTo(-radius * width, -radius * 0.3, -radius * width, -radius * length * 0.8, 0, -radius * length);
      context.bezierCurveTo(radius * width, -radius * length * 0.8, radius * width, -radius * 0.3, 0, 0);
      context.fill();
      context.restore();
    }
  }
}

/**
 * Draws the degrees and the names of the points.
 * @param {CanvasRenderingContext2D} context
 * @param {number} radius
 */
function drawScale(context, radius) {
  context.lineCap = "butt";
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.beginPath();
  context.arc(0, 0, radius * 0.83, 0, 2 * Math.PI);
  context.stroke();
  for (let bearing = 0; bearing < 360; bearing += 10) {
    context.strokeStyle = colour(bearing % 90 === 0 ? "ink" : "faint");
    context.lineWidth = bearing % 90 === 0 ? 2 : 1;
    context.beginPath();
    spoke(context, bearing, radius * (bearing % 30 === 0 ? 0.8 : 0.815), radius * 0.85);
    context.stroke();
  }
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let bearing = 0; bearing < 360; bearing += 45) {
    const main = bearing % 90 === 0;
    context.fillStyle = colour(main ? "ink" : "quiet");
    context.font = font(radius * (main ? 0.105 : 0.075), main ? "600" : "400");
    const angle = (bearing * Math.PI) / 180;
    context.fillText(compassPoint(bearing), Math.sin(angle) * radius * 0.93, -Math.cos(angle) * radius * 0.93);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} radius
 * @param {number} bearing that the wind comes from
 * @param {string} paint
 */
function drawArrow(context, radius, bearing, paint) {
  context.save();
  context.rotate((bearing * Math.PI) / 180);
  context.fillStyle = paint;
  context.strokeStyle = paint;
  context.lineWidth = Math.max(2.5, radius * 0.022);
  context.lineCap = "round";
  context.lineJoin = "round";
  context.beginPath(); // the shaft
  context.moveTo(0, -radius * 0.79);
  context.lineTo(0, -radius * 0.46);
  context.stroke();
  context.beginPath(); // three feathers at the rim, as on a weather vane
  for (const at of [0.79, 0.745, 0.7]) {
    context.moveTo(-radius * 0.05, -radius * (at + 0.03));
    context.lineTo(0, -radius * at);
    context.lineTo(radius * 0.05, -radius * (at + 0.03));
  }
  context.stroke();
  context.beginPath(); // the head, pointing to where the wind goes
  context.moveTo(0, -radius * 0.345);
  context.lineTo(-radius * 0.062, -radius * 0.5);
  context.lineTo(0, -radius * 0.465);
  context.lineTo(radius * 0.062, -radius * 0.5);
  context.closePath();
  context.fill();
  context.globalAlpha = 0.35; // and a hint of it beyond the middle
  context.setLineDash([2, 6]);
  context.beginPath();
  context.moveTo(0, radius * 0.36);
  context.lineTo(0, radius * 0.74);
  context.stroke();
  context.restore();
}
