/** The wind rose: a petal for each direction, as long as the wind came from there often, in rings of classes of speed. */
import { colour, fitted, font } from "../chart/canvas.js";
import { setText } from "../page/element.js";
import { compassPoint } from "../page/wind/compass.js";
import { formatCount } from "../page/words.js";
import { CLASSES, SECTORS, classesInWords, sum } from "./rose.js";

const PETAL_PART = 0.84;
const LEVELS = [0.05, 0.1, 0.2, 0.25, 0.5, 1];

export class RoseChart {
  #canvas;
  #legend;
  #words;
  #ask;
  /** @type {import("./rose.js").Rose | null} */
  #rose = null;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} legend
   * @param {HTMLElement} words
   */
  constructor(canvas, legend, words) {
    this.#canvas = canvas;
    this.#legend = legend;
    this.#words = words;
    this.#ask = fitted(canvas, (context, width, height) => this.#draw(context, width, height));
  }

  /**
   * @param {import("./rose.js").Rose | null} rose
   * @param {string} units
   */
  show(rose, units) {
    this.#rose = rose;
    setText(this.#words, rose ? inWords(rose) : "Nothing measured in this time.");
    this.#canvas.setAttribute("aria-label", `Wind rose. ${this.#words.textContent}`);
    this.#canvas.dataset.total = String(rose?.total ?? 0);
    const classes = rose ? classesInWords(rose.step) : [];
    [...this.#legend.children].forEach((item, index) => setText(item, classes[index] ? `${classes[index]}${index === CLASSES - 1 ? ` ${units}` : ""}` : ""));
    this.#ask();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const radius = Math.min(width, height) / 2 - 2;
    context.translate(width / 2, height / 2);
    const rose = this.#rose;
    const most = rose ? Math.max(...rose.counts.map(sum)) / Math.max(1, rose.total) : 0;
    const level = LEVELS.find((each) => each * 4 >= most) ?? 1;
    const top = Math.max(level, Math.ceil(most / level) * level);
    const [inner, outer] = [radius * 0.1, radius * 0.84];
    const reach = (/** @type {number} */ share) => inner + (share / top) * (outer - inner);
    if (rose && rose.total > 0) drawPetals(context, rose, reach);
    drawLevels(context, level, top, reach);
    drawPoints(context, radius);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import("./rose.js").Rose} rose
 * @param {(share: number) => number} reach
 */
function drawPetals(context, { counts, total }, reach) {
  const half = (Math.PI / SECTORS) * PETAL_PART;
  context.fillStyle = colour("bloom");
  counts.forEach((sector, index) => {
    const middle = (index * 2 * Math.PI) / SECTORS - Math.PI / 2;
    let below = 0;
    sector.forEach((count, speedClass) => {
      if (count === 0) return;
      context.globalAlpha = (speedClass + 1) / CLASSES;
      context.beginPath();
      context.arc(0, 0, reach((below + count) / total), middle - half, middle + half);
      context.arc(0, 0, reach(below / total), middle + half, middle - half, true);
      context.closePath();
      context.fill();
      below += count;
    });
  });
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} level
 * @param {number} top
 * @param {(share: number) => number} reach
 */
function drawLevels(context, level, top, reach) {
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.font = font(11);
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let share = level; share <= top * 1.001; share += level) {
    context.beginPath();
    context.arc(0, 0, reach(share), 0, 2 * Math.PI);
    context.stroke();
    // Between two petals.
    const angle = Math.PI / SECTORS - Math.PI / 2;
    context.fillStyle = colour("quiet");
    context.fillText(`${Math.round(share * 100)} %`, Math.cos(angle) * reach(share), Math.sin(angle) * reach(share));
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} radius
 */
function drawPoints(context, radius) {
  for (let bearing = 0; bearing < 360; bearing += 45) {
    const isMain = bearing % 90 === 0;
    const angle = (bearing * Math.PI) / 180;
    context.fillStyle = colour(isMain ? "ink" : "quiet");
    context.font = font(radius * (isMain ? 0.105 : 0.075), isMain ? "600" : "400");
    context.fillText(compassPoint(bearing), Math.sin(angle) * radius * 0.93, -Math.cos(angle) * radius * 0.93);
  }
}

/** @param {import("./rose.js").Rose} rose */
function inWords({ counts, calm, total }) {
  const part = (/** @type {number} */ count) => `${Math.round((count / total) * 100)} %`;
  const most = counts.map((sector, index) => ({ index, count: sum(sector) })).filter(({ count }) => count > 0);
  const words = most.sort((a, b) => b.count - a.count).slice(0, 3).map(({ index, count }) => `${compassPoint((index * 360) / SECTORS)} ${part(count)}`);
  return `${formatCount(total)} measurements in view, most often from ${words.join(", ") || "nowhere"}; calm ${part(calm)}.`;
}
