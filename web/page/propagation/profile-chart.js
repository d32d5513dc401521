/** Draws the profile of a path: the ground, the line of sight, and the first Fresnel zone. */
import { colour, font } from "../../chart/canvas.js";
import { roundStep } from "../../chart/scale.js";
import { formatNumber } from "../words.js";
import { formatDistance } from "./profile.js";

const MARGIN = { left: 52, right: 12, top: 10, bottom: 22 };

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {import("./profile.js").Profile} profile
 */
export function drawProfile(context, width, height, { steps, length }) {
  const heights = steps.flatMap(({ ground, ray, zone }) => [ground, ray - zone, ray + zone]);
  const [least, most] = [Math.min(...heights), Math.max(...heights)];
  const margin = Math.max(5, (most - least) * 0.08);
  const [low, high] = [least - margin, most + margin];
  const x = (/** @type {number} */ metres) => MARGIN.left + (metres / Math.max(length, 1)) * (width - MARGIN.left - MARGIN.right);
  const y = (/** @type {number} */ metres) => MARGIN.top + ((high - metres) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);
  const line = (/** @type {(step: import("./profile.js").Step) => number} */ of) => {
    steps.forEach((step, index) => (index === 0 ? context.moveTo(x(step.at), y(of(step))) : context.lineTo(x(step.at), y(of(step)))));
  };
  drawAxes(context, width, height, { x, y, low, high, length });
  context.beginPath();
  line(({ ray, zone }) => ray + zone);
  for (const { at, ray, zone } of [...steps].reverse()) context.lineTo(x(at), y(ray - zone));
  context.closePath();
  context.fillStyle = colour("petal");
  context.fill();
  context.strokeStyle = colour("faint");
  context.lineWidth = 1;
  context.stroke();
  context.beginPath();
  line(({ ground }) => ground);
  context.lineTo(x(length), y(low));
  context.lineTo(x(0), y(low));
  context.closePath();
  context.fillStyle = colour("faint");
  context.fill();
  context.strokeStyle = colour("ink");
  context.lineWidth = 1.5;
  context.beginPath();
  line(({ ground }) => ground);
  context.stroke();
  context.strokeStyle = colour("bloom");
  context.beginPath();
  line(({ ray }) => ray);
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {{ x: (metres: number) => number, y: (metres: number) => number, low: number, high: number, length: number }} scales
 */
function drawAxes(context, width, height, { x, y, low, high, length }) {
  context.font = font(11);
  context.fillStyle = colour("quiet");
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  const up = roundStep((high - low) / 4);
  for (let metres = Math.ceil(low / up) * up; metres <= high; metres += up) {
    context.fillText(`${formatNumber(metres, 3)} m`, MARGIN.left - 6, y(metres));
    context.beginPath();
    context.moveTo(MARGIN.left, y(metres));
    context.lineTo(width - MARGIN.right, y(metres));
    context.stroke();
  }
  context.textAlign = "center";
  const along = roundStep(length / Math.max(2, width / 110));
  for (let metres = along; metres < length * 0.98; metres += along) context.fillText(formatDistance(metres), x(metres), height - 9);
}
