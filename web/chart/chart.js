/**
 * A chart of values over time: panels above each other with one axis of time, lines or dots, live until somebody moves
 * or zooms it. Its canvas is a slider for the keyboard and for screen readers, which reads the values.
 *
 * Drawing costs as much as the chart has pixels, whatever the number of values: see `outline.js`.
 *
 * @typedef {object} Line
 * @property {string} name
 * @property {import("./series.js").Series} series
 * @property {string} colour the name of one in the style sheet
 * @property {"line" | "area" | "dots"} kind dots are for what goes round, as a direction in degrees
 * @property {(value: number) => string} [words] of a value, with its unit
 *
 * @typedef {object} Panel
 * @property {string} caption with the unit
 * @property {readonly Line[]} lines
 * @property {number} share of the height
 * @property {"fits" | "from zero" | import("./scale.js").Range} scale
 * @property {(value: number) => string} [label] of a level
 *
 * @typedef {object} Options
 * @property {string} name what is shown, for screen readers
 * @property {number} spanMs the time in view at first
 * @property {() => number} now the time at the right edge of a chart that follows
 * @property {number} [holeMs] the shortest time without values that is shown as a hole; without it only those that
 *   `interrupt` tells of
 * @property {string} holeWords in a hole
 * @property {() => string} [earlierWords] in the time before the first value; without it, as in any hole
 */
import { fillBelow } from "./area.js";
import { drawCaption, drawHoles, drawLevels, drawTimes, placeInWords } from "./axes.js";
import { colour, fitted } from "./canvas.js";
import { listen } from "./gestures.js";
import { meanDirectionOf, meanOf } from "./mean.js";
import { commonHoles, outline } from "./outline.js";
import { drawReading, nearest } from "./reading.js";
import { formatLevel, formatValue, niceRange, niceScale, partOf } from "./scale.js";
import { addTools } from "./tools.js";
import { View } from "./view.js";

/** @typedef {import("./axes.js").Box} Box */

const LEFT = 54; // for "1,013.5"
const RIGHT = 12;
const CAPTION = 24;
const GAP = 8;
const FOOT = 24;
const READING_PX_MAX = 32;
/** Up to so many values within so many pixels are dots: a line through them could not be seen. */
const LONE = { px: 4, values: 4, radius: 2.5 };

export class Chart {
  #canvas;
  #options;
  #ask;
  #view;
  #tools;
  /** @type {readonly Panel[]} */
  #panels = [];
  /** @type {Map<Panel, import("./scale.js").Range>} */
  #ranges = new Map();
  /** @type {number | null} the time that is read */
  #cursor = null;
  /** @type {number | null} the right edge of a chart that has settled */
  #end = null;
  /** @type {import("./axes.js").Axis} */
  #axis = "time";

  /** The shortest time without values that is shown as a hole. */
  holeMs;

  /**
   * @param {HTMLCanvasElement} canvas in a figure of the class `chart`
   * @param {Options} options
   */
  constructor(canvas, options) {
    this.#canvas = canvas;
    this.#options = options;
    this.holeMs = options.holeMs ?? Infinity;
    this.#view = new View(options.spanMs);
    canvas.tabIndex = 0;
    for (const [name, value] of [["role", "slider"], ["aria-roledescription", "chart"], ["aria-label", options.name]]) {
      canvas.setAttribute(String(name), String(value));
    }
    this.#tools = addTools(canvas, {
      zoom: (factor) => this.#zoom(factor, null),
      reset: () => this.#reset(),
    });
    this.#ask = fitted(canvas, (context, width, height) => this.#draw(context, width, height));
    listen(canvas, {
      zoom: (factor, x) => this.#zoom(factor, x),
      pan: (px) => this.#pan(px),
      point: (x) => this.#point(x),
      step: (steps) => this.#step(steps),
      jump: (end) => this.#jump(end),
      reset: () => this.#reset(),
    });
    this.#tell();
  }

  /** @param {readonly Panel[]} panels */
  show(panels) {
    this.#panels = panels;
    this.#ranges.clear();
    this.#ask();
    this.#tell();
  }

  /**
   * Shows this much time, up to now.
   * @param {number} spanMs
   */
  fit(spanMs) {
    this.#view.begin(spanMs);
    this.#moved();
  }

  /**
   * Shows what is between two places: nothing comes after the second one.
   * @param {number} from
   * @param {number} to
   * @param {import("./axes.js").Axis} axis
   */
  settle(from, to, axis) {
    this.#end = to;
    this.#axis = axis;
    this.#cursor = null;
    this.#tools.settle();
    this.fit(to - from);
  }

  /** Draws anew in the next frame. To be called after values were added, and from time to time while it follows. */
  redraw() {
    this.#ask();
  }

  /**
   * Says that what follows does not continue what came before.
   * @param {number} time
   */
  interrupt(time) {
    for (const { series } of this.#lines()) series.interrupt(time);
    this.#ask();
  }

  /** Whether the newest values are in view, and stay there. */
  get follows() {
    return this.#view.follows;
  }

  /** True until a hand moves or zooms it. */
  get isFirst() {
    return this.#view.isFirst;
  }

  /** @returns {{ from: number, to: number }} the times in view */
  get times() {
    return this.#view.at(this.#now());
  }

  #now() {
    return this.#end ?? this.#options.now();
  }

  /**
   * Returns the values of a series that are in view, in short; null if there are none. The mean of dots is that of directions.
   * @param {import("./series.js").Series} series
   * @param {Line["kind"]} [kind]
   */
  summary(series, kind = "line") {
    const { from, to } = this.times;
    const [begin, end] = [series.indexAt(from), series.indexAfter(to)];
    const { low, high } = series.extent(begin, end);
    if (low > high) return null;
    return { low, high, ...(kind === "dots" ? meanDirectionOf : meanOf)(series, begin, end) };
  }

  /** @returns {readonly Line[]} */
  #lines() {
    return this.#panels.flatMap(({ lines }) => lines);
  }

  #extent() {
    const now = this.#now();
    const oldest = Math.min(now, ...this.#lines().map(({ series }) => (series.length > 0 ? series.time(series.first) : now)));
    return { oldest, now };
  }

  // --- drawing ---

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const times = this.times;
    const boxes = this.#boxes(width, height);
    const [left, right] = [LEFT, width - RIGHT];
    if (right - left < 20 || this.#panels.length === 0) return;
    const perMs = (right - left) / (times.to - times.from);
    /** @param {number} time */
    const x = (time) => right - (times.to - time) * perMs;
    const options = { step: 1 / perMs, holeMs: this.holeMs };
    const drawn = this.#panels.map((panel) => {
      return panel.lines.map(({ series }) => outline(series, times.from, times.to, options));
    });
    const holes = commonHoles(drawn.flat().map((each) => each.holes));
    const { holeWords, earlierWords } = this.#options;
    drawHoles(context, holes, x, boxes, (from) => (from === -Infinity && earlierWords ? earlierWords() : holeWords));
    drawTimes(context, times, x, boxes, this.#axis);
    const maps = this.#panels.map((panel, index) => {
      const outlines = drawn[index] ?? [];
      return drawPanel(context, panel, /** @type {Box} */ (boxes[index]), outlines, this.#scale(panel, outlines), x);
    });
    if (this.#cursor !== null && this.#cursor >= times.from && this.#cursor <= times.to) {
      drawReading(context, this.#panels, boxes, maps, x, this.#cursor, { span: times.to - times.from, axis: this.#axis });
    }
  }

  /**
   * @param {number} width
   * @param {number} height
   * @returns {Box[]}
   */
  #boxes(width, height) {
    const shares = this.#panels.reduce((sum, { share }) => sum + share, 0);
    const room = height - FOOT - this.#panels.length * CAPTION - (this.#panels.length - 1) * GAP;
    let top = 0;
    return this.#panels.map(({ share }) => {
      top += CAPTION;
      const box = { left: LEFT, right: width - RIGHT, top, bottom: Math.round(top + (room * share) / shares) };
      top = box.bottom + GAP;
      return box;
    });
  }

  /**
   * @param {Panel} panel
   * @param {readonly import("./outline.js").Outline[]} outlines
   * @returns {import("./scale.js").Range}
   */
  #scale(panel, outlines) {
    if (typeof panel.scale === "object") return panel.scale;
    const low = Math.min(...outlines.map((each) => each.low));
    const high = Math.max(...outlines.map((each) => each.high));
    const before = this.#ranges.get(panel) ?? null;
    const range =
      low > high
        ? (before ?? { low: 0, high: 1, ticks: [0, 1] })
        : panel.scale === "from zero"
          ? fromZero(niceScale(high, before?.high ?? 0))
          : niceRange(low, high, before);
    if (low <= high) this.#ranges.set(panel, range);
    return range;
  }

  // --- hands ---

  /** @returns {{ left: number, width: number }} the part of the canvas with the values */
  #plot() {
    return { left: LEFT, width: Math.max(1, this.#canvas.clientWidth - LEFT - RIGHT) };
  }

  /**
   * @param {number} factor
   * @param {number | null} at
   */
  #zoom(factor, at) {
    const { left, width } = this.#plot();
    const { from, to } = this.times;
    const isCursorInView = this.#cursor !== null && this.#cursor >= from && this.#cursor <= to;
    const part = at !== null ? (at - left) / width : isCursorInView ? (Number(this.#cursor) - from) / (to - from) : 1;
    this.#view.zoom(factor, Math.min(1, Math.max(0, part)), this.#extent());
    this.#moved();
  }

  /** @param {number} px */
  #pan(px) {
    this.#view.pan((px / this.#plot().width) * this.#view.span, this.#extent());
    this.#moved();
  }

  #reset() {
    this.#view.reset();
    this.#cursor = null;
    this.#moved();
  }

  /** @param {number | null} x */
  #point(x) {
    const { left, width } = this.#plot();
    const { from, to } = this.times;
    const msPerPx = (to - from) / width;
    const time = x === null ? null : from + (x - left) * msPerPx;
    const found = time === null ? null : this.#nearest(time);
    this.#cursor = found !== null && Math.abs(found - Number(time)) <= READING_PX_MAX * msPerPx ? found : null;
    this.#ask();
  }

  /** @param {number} steps */
  #step(steps) {
    const { from, to } = this.times;
    const series = this.#longest();
    if (!series || series.length === 0) return;
    const here = this.#cursor;
    const newest = series.indexAfter(to) - 1;
    let next = newest;
    if (here !== null && here >= from && here <= to) {
      // At least a pixel, or reading a long time would take forever.
      const there = here + (steps * (to - from)) / this.#plot().width;
      const at = series.indexAt(here);
      next = steps > 0 ? Math.max(at + steps, series.indexAt(there)) : Math.min(at + steps, series.indexAfter(there) - 1);
    }
    this.#read(series.time(Math.min(series.end - 1, Math.max(series.first, next))));
  }

  /** @param {"first" | "last"} end */
  #jump(end) {
    const series = this.#longest();
    if (!series || series.length === 0) return;
    this.#read(series.time(end === "first" ? series.first : series.end - 1));
  }

  /** @param {number} time */
  #read(time) {
    this.#cursor = time;
    this.#view.reveal(time, this.#extent());
    this.#moved();
  }

  /** Returns the series with the most values. */
  #longest() {
    const [first, ...others] = this.#lines().map(({ series }) => series);
    return others.reduce((best, series) => (best && series.length <= best.length ? best : series), first);
  }

  /**
   * Returns the time of the value that is nearest to this time; null if there is none.
   * @param {number} time
   */
  #nearest(time) {
    /** @type {number | null} */
    let best = null;
    for (const { series } of this.#lines()) {
      const found = nearest(series, time);
      if (found && (best === null || Math.abs(found.time - time) < Math.abs(best - time))) best = found.time;
    }
    return best;
  }

  #moved() {
    this.#tools.show({ isFirst: this.#view.isFirst });
    this.#ask();
    this.#tell();
  }

  /** Tells screen readers what is read. */
  #tell() {
    const { oldest, now } = this.#extent();
    const cursor = this.#cursor;
    const words = this.#lines().flatMap(({ name, series, words = formatValue }) => {
      const found = cursor === null ? null : nearest(series, cursor);
      return found && found.time === cursor ? [`${name} ${words(found.value)}`] : [];
    });
    const all = this.#end === null ? "the newest values" : "all values";
    const text = cursor === null ? `${all}; the arrow keys read them one by one` : `${placeInWords(cursor, this.#view.span, this.#axis)}: ${words.join(", ") || "no value"}`;
    const age = (/** @type {number} */ time) => String(Math.round(time - now));
    this.#canvas.setAttribute("aria-valuemin", age(oldest));
    this.#canvas.setAttribute("aria-valuemax", "0");
    this.#canvas.setAttribute("aria-valuenow", age(Math.min(now, cursor ?? now)));
    this.#canvas.setAttribute("aria-valuetext", text);
  }
}

/**
 * @param {number} top
 * @returns {import("./scale.js").Range}
 */
function fromZero(top) {
  return { low: 0, high: top, ticks: [0, top / 4, top / 2, (top * 3) / 4, top] };
}

/**
 * Draws a panel, and returns where each value is.
 * @param {CanvasRenderingContext2D} context
 * @param {Panel} panel
 * @param {Box} box
 * @param {readonly import("./outline.js").Outline[]} outlines
 * @param {import("./scale.js").Range} range
 * @param {(time: number) => number} x
 * @returns {(value: number) => number}
 */
function drawPanel(context, { caption, lines, label = formatLevel }, box, outlines, range, x) {
  /** @param {number} value */
  const y = (value) => box.bottom - partOf(value, range) * (box.bottom - box.top);
  drawLevels(context, box, range.ticks, y, label);
  drawCaption(context, box, caption, lines.length > 1 ? lines : []);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top - 2, box.right - box.left, box.bottom - box.top + 4);
  context.clip();
  lines.forEach((line, index) => {
    for (const points of outlines[index]?.stretches ?? []) {
      if (line.kind === "dots") drawDots(context, points, x, y, line.colour);
      else drawLine(context, points, x, y, line, box.bottom);
    }
  });
  context.restore();
  return y;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {readonly number[]} points
 * @param {(time: number) => number} x
 * @param {(value: number) => number} y
 * @param {Line} line
 * @param {number} bottom
 */
function drawLine(context, points, x, y, { kind, colour: paint }, bottom) {
  const width = x(Number(points.at(-2))) - x(Number(points[0]));
  if (width < LONE.px && points.length <= 2 * LONE.values) return drawDots(context, points, x, y, paint, LONE.radius);
  const isDense = points.length > 2 * width;
  context.strokeStyle = context.fillStyle = colour(paint);
  // Where each pixel has several points, they are one area, and its joins are not seen but cost much.
  context.lineWidth = isDense ? 1 : 1.6;
  context.lineJoin = isDense ? "bevel" : "round";
  context.beginPath();
  for (let at = 0; at < points.length; at += 2) context.lineTo(x(Number(points[at])), y(Number(points[at + 1])));
  context.stroke();
  if (kind === "area") fillBelow(context, points, x, y, bottom);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {readonly number[]} points
 * @param {(time: number) => number} x
 * @param {(value: number) => number} y
 * @param {string} paint
 * @param {number} [radius]
 */
function drawDots(context, points, x, y, paint, radius = 1.5) {
  context.fillStyle = colour(paint);
  context.beginPath();
  for (let at = 0; at < points.length; at += 2) {
    const [across, down] = [x(Number(points[at])), y(Number(points[at + 1]))];
    context.moveTo(across + radius, down);
    context.arc(across, down, radius, 0, 2 * Math.PI);
  }
  context.fill();
}
