/** The frame of a chart: levels, times, captions and the shading of times without values. */
import { colour, font } from "./canvas.js";
import { niceMs, timeStep } from "./scale.js";

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */
/** @typedef {(value: number) => number} Map */
/** @typedef {"time" | "numbers"} Axis what is from left to right: times, or the numbers of events */

const MARK_PX = 84;
const LABEL_PX_MIN = 120;

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {string} text
 * @param {readonly { name: string, colour: string }[]} legend of the lines, if there are several
 */
export function drawCaption(context, box, text, legend) {
  write(context, { align: "left", baseline: "alphabetic", px: 12 });
  context.fillText(text, box.left, box.top - 8);
  let at = box.left + context.measureText(text).width + 12;
  for (const { name, colour: paint } of legend) {
    context.fillStyle = colour(paint);
    context.fillRect(at, box.top - 14, 10, 3);
    context.fillStyle = colour("quiet");
    context.fillText(name, at + 14, box.top - 8);
    at += context.measureText(name).width + 30;
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {readonly number[]} ticks
 * @param {Map} y
 * @param {(value: number) => string} label
 */
export function drawLevels(context, box, ticks, y, label) {
  write(context, { align: "right", baseline: "middle", px: 11 });
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  for (const value of ticks) {
    const at = Math.round(y(value)) + 0.5;
    context.beginPath();
    context.moveTo(box.left, at);
    context.lineTo(box.right, at);
    context.stroke();
    context.fillText(label(value), box.left - 8, at);
  }
}

/**
 * Draws the lines of round times, and their labels below the last box.
 * @param {CanvasRenderingContext2D} context
 * @param {{ from: number, to: number }} times
 * @param {Map} x
 * @param {readonly Box[]} boxes
 * @param {Axis} axis
 */
export function drawTimes(context, { from, to }, x, boxes, axis) {
  const [first, last] = [boxes[0], boxes.at(-1)];
  if (!first || !last) return;
  write(context, { align: "center", baseline: "alphabetic", px: 11 });
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  const marksMax = Math.max(2, (first.right - first.left) / MARK_PX);
  const isTime = axis === "time";
  const step = isTime ? timeStep(to - from, marksMax) : Math.max(1, niceMs((to - from) / marksMax));
  const format = isTime ? timeFormat(step) : numberInWords;
  // Round in the local time: a day does not begin at the same moment everywhere.
  const shift = isTime ? new Date(to).getTimezoneOffset() * 60_000 : 0;
  for (let time = Math.ceil((from - shift) / step) * step + shift; time <= to; time += step) {
    const at = Math.round(x(time)) + 0.5;
    context.beginPath();
    for (const { top, bottom } of boxes) {
      context.moveTo(at, top);
      context.lineTo(at, bottom);
    }
    context.stroke();
    if (at > first.left + 22 && at < first.right - 20) context.fillText(format(time), at, last.bottom + 17);
  }
}

const DAY = clock({ day: "numeric", month: "short" });
const HOUR = clock({ hour: "2-digit", minute: "2-digit" });
const SECOND = clock({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const PRECISE = clock({ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const COMPLETE = clock({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** @param {Intl.DateTimeFormatOptions} options */
function clock(options) {
  return new Intl.DateTimeFormat("en-GB", options);
}

/**
 * @param {number} step between the marks, ms
 * @returns {(time: number) => string}
 */
function timeFormat(step) {
  const format = step >= 86_400_000 ? DAY : step >= 60_000 ? HOUR : step >= 1000 ? SECOND : PRECISE;
  return (time) => format.format(time);
}

/** @param {number} number of an event, as in the list of events */
function numberInWords(number) {
  return `#${Math.round(number)}`;
}

/**
 * Returns a place on an axis in words.
 * @param {number} place
 * @param {number} span of the view
 * @param {Axis} axis
 */
export function placeInWords(place, span, axis) {
  return axis === "time" ? timeInWords(place, span) : numberInWords(place);
}

/**
 * Returns a time in words, with no more than what tells it from others in view.
 * @param {number} time
 * @param {number} span of the view, ms
 */
export function timeInWords(time, span) {
  return (span < 5000 ? PRECISE : span < 43_200_000 ? SECOND : COMPLETE).format(time);
}

/**
 * Shades the times without values.
 * @param {CanvasRenderingContext2D} context
 * @param {readonly (readonly [number, number])[]} holes
 * @param {Map} x
 * @param {readonly Box[]} boxes
 * @param {(from: number) => string} words in a hole that is wide enough
 */
export function drawHoles(context, holes, x, boxes, words) {
  for (const [from, to] of holes) {
    boxes.forEach(({ left, right, top, bottom }, index) => {
      const [start, end] = [Math.max(left, x(from)), Math.min(right, x(to))];
      if (end <= start) return;
      context.fillStyle = colour("hole");
      context.fillRect(start, top, end - start, bottom - top);
      if (index > 0 || end - start < LABEL_PX_MIN) return;
      write(context, { align: "center", baseline: "middle", px: 12 });
      context.fillText(words(from), (start + end) / 2, top + (bottom - top) * 0.375);
    });
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{ align: CanvasTextAlign, baseline: CanvasTextBaseline, px: number }} style
 */
export function write(context, { align, baseline, px }) {
  context.fillStyle = colour("quiet");
  context.font = font(px);
  context.textAlign = align;
  context.textBaseline = baseline;
}
