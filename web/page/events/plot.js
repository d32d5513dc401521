/** The chart of a topic: a panel for each field that is chosen. */
import { Chart } from "../../chart/chart.js";
import { find, setText } from "../element.js";
import { formatCount } from "../words.js";
import { formatValue, roundedTo } from "../../chart/scale.js";
import { FIELDS_MAX, Fields } from "./fields.js";
import { captionOf, isDirection, shownUnit, withUnit } from "./units.js";
import { shortName } from "./words.js";

const SPAN_MS = 60_000;
const SPAN_MS_MIN = 10_000;
/** The part of the chart at the left. The newest value may not be in it, nor the oldest value of a young topic. */
const EDGE_PART = 0.1;
/** The longest time of values that are shown by their numbers after the end. By time, they would be a single stroke. */
const MOMENTS_MS = 2000;
/** The scale of directions, in degrees. @type {import("../../chart/scale.js").Range} */
const ROUND = { low: 0, high: 360, ticks: [0, 90, 180, 270, 360] };
const PANEL_PX = 130;
const FRAME_PX = 24;

/** @typedef {import("./fields.js").Field} Field */

export class Plot {
  #section;
  #canvas;
  #choices;
  #chart;
  #fields = new Fields();
  /** @type {Set<string>} */
  #chosen = new Set();
  /** True once the fields are chosen, by the user or by the first events. Later events do not change the choice. */
  #isChosen = false;
  /** Gets the names of the fields that the first events have chosen. @type {(names: readonly string[]) => void} */
  onChosen = () => {};
  #count = 0;
  /** The units and scales that are shown. */
  #look = "";
  #now;
  /** The same values by the numbers of their events; null once they span more than `MOMENTS_MS`. @type {Fields | null} */
  #numbered = new Fields();
  /** @type {number | null} */
  #firstTime = null;
  #isEnded = false;
  #isNew = false;
  /** True while the old chart stays, until all new values are there. */
  #isHeld = false;
  /** The span in view, once it is chosen. @type {number | null} */
  #spanMs = null;
  /** The configured units by the names of the fields, for fields whose events have none. @type {Readonly<Record<string, string>>} */
  #units = {};

  /**
   * @param {HTMLElement} section
   * @param {string} topic
   * @param {() => number} now
   * @param {() => boolean} isWhole whether there is nothing before the first value
   */
  constructor(section, topic, now, isWhole) {
    this.#section = section;
    this.#now = now;
    this.#canvas = find(section, "canvas", HTMLCanvasElement);
    this.#choices = find(section, "#fields", HTMLElement);
    const earlierWords = () => (isWhole() ? "nothing here" : "not loaded");
    this.#chart = new Chart(this.#canvas, { name: `Chart of ${topic}`, spanMs: SPAN_MS, now, holeWords: "nothing here", earlierWords });
    this.#choices.addEventListener("change", ({ target }) => {
      if (!(target instanceof HTMLInputElement)) return;
      this.#isChosen = true;
      if (target.checked) this.#chosen.add(target.value);
      else this.#chosen.delete(target.value);
      this.#showPanels();
    });
  }

  /**
   * @param {number} time
   * @param {readonly import("./fields.js").FieldValue[]} numbers
   * @param {number} number of the event
   */
  add(time, numbers, number) {
    this.#fields.add(time, numbers);
    this.#isNew = true;
    this.#firstTime ??= time;
    if (time - this.#firstTime > MOMENTS_MS) this.#numbered = null;
    this.#numbered?.add(number, numbers);
  }

  /**
   * Gives fields other names.
   * @param {readonly (readonly [string, string])[]} names from and to
   */
  rename(names) {
    this.#fields.rename(names);
    this.#numbered?.rename(names);
    const to = new Map(names);
    this.#chosen = new Set([...this.#chosen].map((name) => to.get(name) ?? name));
    if (this.#count > 0) this.#count = -1; // the choices are shown anew
  }

  /** Call this if no more values come. Fits the chart to all values. */
  end() {
    this.#isEnded = true;
    this.#isNew = true;
    this.#isHeld = false;
    this.update();
  }

  /** @param {number} time */
  interrupt(time) {
    for (const { series } of this.#fields.all) series.interrupt(time);
  }

  /** Forgets all values, and keeps the choice of fields. */
  clear() {
    this.#fields = new Fields();
    this.#numbered = new Fields();
    this.#firstTime = null;
    this.#isHeld = this.#isEnded;
    this.#count = 0;
    this.#spanMs = null;
  }

  /**
   * Shows this much time, up to now. For a younger topic, shows all values.
   * @param {number} spanMs
   */
  fit(spanMs) {
    this.#spanMs = spanMs;
    this.#fit();
  }

  /**
   * Shows earlier values before those that are here.
   * @param {Fields} earlier
   * @param {number} spanMs the time in view
   */
  prepend(earlier, spanMs) {
    this.#numbered = null;
    this.#fields.prepend(earlier);
    this.#count = -1; // the choices are shown anew
    this.update();
    this.fit(spanMs);
  }

  /** The times in view; null without a chart. */
  get times() {
    return this.#count === 0 ? null : this.#chart.times;
  }

  /** The time from the oldest value to now; 0 without one. */
  get reachMs() {
    const oldest = this.#oldest();
    return Number.isFinite(oldest) ? this.#now() - oldest : 0;
  }

  /** @param {Readonly<Record<string, string>>} units of fields whose events say none */
  set units(units) {
    this.#units = units;
  }

  /** All fields, with the units that are shown. */
  get #all() {
    return this.#fields.all.map((field) => ({ ...field, unit: shownUnit(field, this.#units) }));
  }

  /** Shows what was added. */
  update() {
    if (this.#isHeld) return;
    const all = this.#all;
    this.#section.hidden = all.length === 0;
    if (all.length === 0) return;
    const isNews = this.#choose();
    if (all.length !== this.#count || isNews) {
      const isFirst = this.#count === 0;
      this.#count = all.length;
      this.#showChoices();
      this.#showPanels();
      if (isFirst) this.#fit();
    } else if (this.#look !== lookOf(all)) this.#showPanels();
    if (this.#isEnded && this.#isNew) this.#settle();
    this.#isNew = false;
    this.#chart.redraw();
  }

  /** Chooses the fields that are shown, until they are decided; returns true if they are now. */
  #choose() {
    if (this.#isChosen) return false;
    const { names, isDecided } = this.#fields.choose();
    this.#chosen = new Set(names);
    this.#isChosen = isDecided;
    if (isDecided) this.onChosen(names);
    return isDecided;
  }

  /**
   * Draws anew. Call this from time to time. The span grows with a young topic, up to the full span, and widens for a quiet topic before
   * its last value is out of view.
   */
  redraw() {
    const newest = Math.max(...this.#fields.all.map(({ series }) => series.time(series.end - 1)));
    const { from, to } = this.#chart.times;
    const edge = from + (to - from) * EDGE_PART;
    const isYoung = this.#chart.isFirst && to - from < (this.#spanMs ?? SPAN_MS) && this.#oldest() < edge;
    if (isYoung || (this.#chart.follows && newest < edge)) this.#fit();
    this.#chart.redraw();
  }

  /** The values in view, in words. */
  summary() {
    const words = this.#shown().map((field) => {
      const { series, kind, words = formatValue } = lineOf(field);
      const name = shortName(field.name);
      const summary = this.#chart.summary(series, kind);
      if (!summary) return "";
      const mean = `mean ${words(roundedTo(summary.mean, 4))}`;
      // The least and the greatest direction are those beside north.
      if (kind === "dots") return Number.isNaN(summary.mean) ? `${name} all round` : `${name} ${mean}`;
      return `${name} ${formatValue(summary.low)} to ${words(summary.high)}, ${mean}`;
    });
    return words.filter(Boolean).join("; ");
  }

  /** Chooses the span: not longer than the time of the values, but long enough for the newest one, so that the chart of a slow topic is not empty. */
  #fit() {
    const newestMs = this.#now() - Math.max(...this.#fields.all.map(({ series }) => series.time(series.end - 1)));
    const most = Math.max(this.#spanMs ?? Infinity, newestMs * 1.2);
    this.#chart.fit(Math.max(SPAN_MS_MIN, Math.min(most, this.reachMs * 1.1)));
  }

  #oldest() {
    return Math.min(...this.#fields.all.map(({ series }) => series.time(series.first)));
  }

  #settle() {
    if (this.#numbered) this.#fields = this.#numbered;
    const all = this.#fields.all.filter(({ series }) => series.length > 0);
    const first = Math.min(...all.map(({ series }) => series.time(series.first)));
    const last = Math.max(...all.map(({ series }) => series.time(series.end - 1)));
    this.#showPanels();
    if (this.#numbered) this.#chart.settle(first - 1, last + 1, "numbers");
    else this.#chart.settle(first, last, "time");
  }

  #shown() {
    return this.#all.filter(({ name }) => this.#chosen.has(name));
  }

  #showChoices() {
    const choices = this.#fields.all.map(({ name }) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.value = name;
      box.checked = this.#chosen.has(name);
      label.append(box, shortName(name));
      return label;
    });
    const { more } = this.#fields;
    this.#choices.replaceChildren(...choices);
    setText(find(this.#section, "#more-fields", HTMLElement), more > 0 ? `and ${formatCount(more)} more, beyond the ${FIELDS_MAX} that this page keeps` : "");
  }

  #showPanels() {
    const shown = this.#shown();
    this.#canvas.style.height = `${shown.length * PANEL_PX + FRAME_PX}px`;
    this.#canvas.hidden = shown.length === 0;
    this.#look = lookOf(this.#all);
    this.#chart.show(
      shown.map((field) => ({
        caption: captionOf(shortName(field.name), field.unit ?? ""),
        lines: [lineOf(field)],
        share: 1,
        scale: goesRound(field) ? ROUND : "fits",
      })),
    );
  }
}

/** @param {readonly Field[]} fields */
function lookOf(fields) {
  return JSON.stringify(fields.map((field) => [field.unit, goesRound(field)]));
}

/** @param {Field} field */
function goesRound({ name, unit, low, high }) {
  return isDirection(name, unit ?? "") && low >= ROUND.low && high <= ROUND.high;
}

/**
 * @param {Field} field
 * @returns {import("../../chart/chart.js").Line}
 */
function lineOf({ name, unit, series }) {
  const kind = isDirection(name, unit ?? "") ? "dots" : "line";
  return { name, series, colour: "bloom", kind, words: (value) => withUnit(formatValue(value), unit ?? "") };
}
