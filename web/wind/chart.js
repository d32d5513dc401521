/**
 * The strip chart: two minutes of speed (line) and direction (dots, because a line would cross the
 * whole chart each time the wind passes north). Interruptions stay empty.
 */
import { colour, fitted, font } from "./canvas.js";
import { niceScale } from "./scale.js";

const SPAN_MS = 120_000;
const TICK_MS = 30_000;
/** The shortest interruption that is drawn as one: the slowest instrument sends every second. */
const HOLE_MS = 2500;
const POINTS_MAX = 4000;
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */

export class Chart {
  #ask;
  #now;
  /** @type {import("./wind.js").Wind[]} in order of t0 */
  #points = [];
  #scale = 0;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => number} now the server's clock
   */
  constructor(canvas, now) {
    this.#now = now;
    this.#ask = fitted(canvas, (context, width, height) => this.#draw(context, width, height));
  }

  /** @param {import("./wind.js").Wind} wind */
  add(wind) {
    const points = this.#points;
    let at = points.length;
    while (at > 0 && /** @type {import("./wind.js").Wind} */ (points[at - 1]).t0 > wind.t0) at -= 1;
    points.splice(at, 0, wind);
    if (points.length > POINTS_MAX) points.shift();
  }

  redraw() {
    this.#ask();
  }

  /** @returns {{ mean: number, gust: number, units: string, count: number } | null} of what is in view */
  summary() {
    const visible = this.#visible(this.#now());
    const newest = visible.at(-1);
    if (!newest) return null;
    let sum = 0;
    let gust = 0;
    for (const { speed } of visible) {
      sum += speed;
      gust = Math.max(gust, speed);
    }
    return { mean: sum / visible.length, gust, units: newest.units, count: visible.length };
  }

  /** @param {number} now */
  #visible(now) {
    return this.#points.filter(({ t0 }) => t0 > now - SPAN_MS && t0 <= now + 1000);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const now = this.#now();
    const points = this.#visible(now);
    const units = this.#points.at(-1)?.units ?? "m/s";
    const [left, right] = [42, width - 12];
    const split = Math.round(20 + (height - 60) * 0.56);
    const speed = { left, right, top: 22, bottom: split };
    const direction = { left, right, top: split + 30, bottom: height - 24 };
    /** @param {number} t */
    const x = (t) => right - ((now - t) / SPAN_MS) * (right - left);

    this.#scale = niceScale(Math.max(...points.map((point) => point.speed), 0), this.#scale);
    drawHoles(context, points, now, x, [speed, direction]);
    drawTimes(context, now, x, speed, direction);
    drawLevels(context, speed, steps(this.#scale), (value) => String(value), this.#scale);
    drawLevels(context, direction, [0, 90, 180, 270, 360], (value) => "NESWN".charAt(value / 90), 360);
    caption(context, left, speed.top - 9, `speed, ${units}`);
    caption(context, left, direction.top - 9, "direction, where the wind comes from");

    context.save();
    context.beginPath();
    context.rect(left, 0, right - left, height);
    context.clip();
    drawSpeed(context, points, x, speed, this.#scale);
    drawDirection(context, points, x, direction);
    context.restore();
  }
}

/** @param {number} top */
function steps(top) {
  return [0, top / 4, top / 2, (top * 3) / 4, top];
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {string} text
 */
function caption(context, x, y, text) {
  context.fillStyle = colour("quiet");
  context.font = font(12);
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.fillText(text, x, y + 2);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {number[]} values
 * @param {(value: number) => string} label
 * @param {number} top
 */
function drawLevels(context, box, values, label, top) {
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.fillStyle = colour("quiet");
  context.font = font(11);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of values) {
    const y = Math.round(box.bottom - (value / top) * (box.bottom - box.top)) + 0.5;
    context.beginPath();
    context.moveTo(box.left, y);
    context.lineTo(box.right, y);
    context.stroke();
    context.fillText(label(value), box.left - 8, y);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} now
 * @param {(t: number) => number} x
 * @param {Box} speed
 * @param {Box} direction
 */
function drawTimes(context, now, x, speed, direction) {
  context.strokeStyle = colour("line");
  context.fillStyle = colour("quiet");
  context.font = font(11);
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  for (let t = Math.ceil((now - SPAN_MS) / TICK_MS) * TICK_MS; t <= now; t += TICK_MS) {
    const at = Math.round(x(t)) + 0.5;
    context.beginPath();
    context.moveTo(at, speed.top);
    context.lineTo(at, speed.bottom);
    context.moveTo(at, direction.top);
    context.lineTo(at, direction.bottom);
    context.stroke();
    if (at > speed.left + 22 && at < speed.right - 20) context.fillText(TIME.format(t), at, direction.bottom + 17);
  }
}

/**
 * Shades the times without measurements, up to now.
 * @param {CanvasRenderingContext2D} context
 * @param {readonly import("./wind.js").Wind[]} points
 * @param {number} now
 * @param {(t: number) => number} x
 * @param {readonly Box[]} boxes
 */
function drawHoles(context, points, now, x, boxes) {
  context.fillStyle = colour("hole");
  const ends = [now - SPAN_MS, ...points.map(({ t0 }) => t0), now];
  for (let i = 1; i < ends.length; i += 1) {
    const [from, to] = [Number(ends[i - 1]), Number(ends[i])];
    if (to - from < HOLE_MS) continue;
    for (const { left, right, top, bottom } of boxes) {
      const [start, end] = [Math.max(left, x(from)), Math.min(right, x(to))];
      context.fillRect(start, top, end - start, bottom - top);
    }
    const middle = (Math.max(Number(boxes[0]?.left), x(from)) + x(to)) / 2;
    if (x(to) - x(from) > 120 && boxes[0]) {
      context.save();
      context.fillStyle = colour("quiet");
      context.font = font(12);
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText("nothing measured", middle, boxes[0].top + (boxes[0].bottom - boxes[0].top) * 0.375);
      context.restore();
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {readonly import("./wind.js").Wind[]} points
 * @param {(t: number) => number} x
 * @param {Box} box
 * @param {number} top
 */
function drawSpeed(context, points, x, box, top) {
  /** @param {number} speed */
  const y = (speed) => box.bottom - (speed / top) * (box.bottom - box.top);
  context.lineWidth = 1.6;
  context.lineJoin = "round";
  for (const stretch of stretches(points)) {
    const [first, last] = [stretch[0], stretch.at(-1)];
    if (!first || !last) continue;
    context.beginPath();
    for (const { t0, speed } of stretch) context.lineTo(x(t0), y(speed));
    context.strokeStyle = colour("bloom");
    context.stroke();
    context.lineTo(x(last.t0), box.bottom);
    context.lineTo(x(first.t0), box.bottom);
    context.closePath();
    context.globalAlpha = 0.11;
    context.fillStyle = colour("bloom");
    context.fill();
    context.globalAlpha = 1;
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {readonly import("./wind.js").Wind[]} points
 * @param {(t: number) => number} x
 * @param {Box} box
 */
function drawDirection(context, points, x, box) {
  context.fillStyle = colour("bloom");
  context.beginPath();
  for (const { t0, direction } of points) {
    if (direction === null) continue;
    const at = [x(t0), box.bottom - (direction / 360) * (box.bottom - box.top)];
    context.moveTo(Number(at[0]) + 1.5, Number(at[1]));
    context.arc(Number(at[0]), Number(at[1]), 1.5, 0, 2 * Math.PI);
  }
  context.fill();
}

/**
 * Splits the values at interruptions.
 * @param {readonly import("./wind.js").Wind[]} points
 */
function stretches(points) {
  /** @type {import("./wind.js").Wind[][]} */
  const result = [];
  let before = -Infinity;
  for (const point of points) {
    if (point.t0 - before > HOLE_MS) result.push([]);
    result.at(-1)?.push(point);
    before = point.t0;
  }
  return result;
}
