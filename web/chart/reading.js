/** Reading the values at one time: a line through all panels, a dot on each line, and a box with the words. */
import { placeInWords } from "./axes.js";
import { colour, font } from "./canvas.js";
import { formatValue } from "./scale.js";

const LINE_PX = 17;
const PADDING = 8;

/**
 * Returns the value that is nearest to this time; null if there is none.
 * @param {import("./series.js").Series} series
 * @param {number} time
 */
export function nearest(series, time) {
  if (series.length === 0) return null;
  const after = Math.min(series.end - 1, series.indexAt(time));
  const before = Math.max(series.first, after - 1);
  const index = Math.abs(series.time(before) - time) < Math.abs(series.time(after) - time) ? before : after;
  const value = series.value(index);
  return Number.isNaN(value) ? null : { time: series.time(index), value };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {readonly import("./chart.js").Panel[]} panels
 * @param {readonly import("./axes.js").Box[]} boxes
 * @param {readonly ((value: number) => number)[]} maps from a value to its place, of each panel
 * @param {(time: number) => number} x
 * @param {number} time
 * @param {{ span: number, axis: import("./axes.js").Axis }} view
 */
export function drawReading(context, panels, boxes, maps, x, time, { span, axis }) {
  const [first, last] = [boxes[0], boxes.at(-1)];
  if (!first || !last) return;
  const at = Math.round(x(time)) + 0.5;
  context.strokeStyle = colour("faint");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(at, first.top);
  context.lineTo(at, last.bottom);
  context.stroke();
  /** @type {{ paint: string, text: string }[]} */
  const words = [{ paint: "quiet", text: placeInWords(time, span, axis) }];
  panels.forEach(({ lines }, index) => {
    for (const { name, series, colour: paint, words: format = formatValue } of lines) {
      const found = nearest(series, time);
      if (!found || Math.abs(found.time - time) > span / 100) continue;
      words.push({ paint: "ink", text: `${name} ${format(found.value)}` });
      context.beginPath();
      context.arc(x(found.time), maps[index]?.(found.value) ?? 0, 4, 0, 2 * Math.PI);
      context.fillStyle = colour(paint);
      context.fill();
      context.strokeStyle = colour("card");
      context.lineWidth = 2;
      context.stroke();
    }
  });
  drawBox(context, words, at, first);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {readonly { paint: string, text: string }[]} words
 * @param {number} at
 * @param {import("./axes.js").Box} box
 */
function drawBox(context, words, at, box) {
  context.font = font(12);
  const width = Math.max(...words.map(({ text }) => context.measureText(text).width)) + 2 * PADDING;
  const height = words.length * LINE_PX + PADDING;
  const left = at + 10 + width > box.right ? Math.max(2, at - 10 - width) : at + 10;
  context.fillStyle = colour("card");
  context.strokeStyle = colour("faint");
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(left, box.top + 4, width, height, 6);
  context.fill();
  context.stroke();
  context.textAlign = "left";
  context.textBaseline = "middle";
  words.forEach(({ paint, text }, index) => {
    context.fillStyle = colour(paint);
    context.fillText(text, left + PADDING, box.top + 4 + PADDING / 2 + LINE_PX * (index + 0.5));
  });
}
