/** Contour lines of a grid of values. Pure. */
import { parseNumber } from "../words.js";
import { NONE } from "./tiles.js";

/** The most cells that are visited, so that the lines are there at once. */
const CELLS_MAX = 200_000;
const LEVELS_MAX = 32;

/**
 * Returns the lines on which the values have a level, with the column and row of both ends of each segment.
 * @param {Int16Array} values in hundredths
 * @param {number} columns
 * @param {number} level
 * @param {number} stride looks at every n-th point
 */
export function contour(values, columns, level, stride) {
  const rows = values.length / columns;
  while (Math.ceil(columns / stride) * Math.ceil(rows / stride) > CELLS_MAX) stride *= 2;
  const target = level * 100;
  /** @type {number[]} */
  const lines = [];
  for (let row = 0; row + stride < rows; row += stride) {
    for (let column = 0; column + stride < columns; column += stride) {
      const at = row * columns + column;
      const corners = [values[at], values[at + stride], values[at + stride * columns + stride], values[at + stride * columns]].map((value) => value ?? NONE);
      if (!corners.includes(NONE)) cell(corners, target, (east, south) => lines.push(column + east * stride, row + south * stride));
    }
  }
  return Float32Array.from(lines);
}

/** The corners of a cell, in turn. */
const CORNERS = /** @type {const} */ ([[0, 0], [1, 0], [1, 1], [0, 1]]);

/**
 * Adds the ends of the segments within a cell.
 * @param {number[]} corners north-west, north-east, south-east, south-west
 * @param {number} target
 * @param {(east: number, south: number) => void} add
 */
function cell(corners, target, add) {
  const above = corners.map((value) => value >= target);
  /** @type {[number, number][]} */
  const crossings = [];
  for (let side = 0; side < 4; side += 1) {
    const next = (side + 1) % 4;
    if (above[side] === above[next]) continue;
    const [from, to] = [corners[side] ?? 0, corners[next] ?? 0];
    const part = (target - from) / (to - from);
    const [[fromX, fromY], [toX, toY]] = [CORNERS[side] ?? CORNERS[0], CORNERS[next] ?? CORNERS[0]];
    crossings.push([fromX + part * (toX - fromX), fromY + part * (toY - fromY)]);
  }
  const [north, east, south, west] = crossings;
  // At a saddle, the middle decides which corners are together.
  const isApart = north && east && south && west && corners.reduce((sum, value) => sum + value, 0) / 4 >= target !== above[0];
  for (const [x, y] of isApart ? [north, west, east, south] : crossings) add(x, y);
}

/**
 * Reads levels that a person has typed: numbers with blanks, commas or semicolons between them. A comma before three zeros is a thousands
 * separator.
 * @param {string} text
 * @returns {{ levels: number[], fault: string | null }}
 */
export function readLevels(text) {
  const words = text.split(/[\s;]+|,(?!000\b)/).filter((word) => word !== "");
  const levels = words.map((word) => parseNumber(word));
  const wrong = levels.findIndex((level) => !(Math.abs(level) <= 1000));
  if (wrong >= 0) return { levels: [], fault: `“${words[wrong]}” is not a number from -1,000 to 1,000.` };
  if (levels.length > LEVELS_MAX) return { levels: [], fault: `At most ${LEVELS_MAX} levels.` };
  return { levels: [...new Set(levels)].sort((a, b) => a - b), fault: null };
}
