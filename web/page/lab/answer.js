/** A report as a part of the page: question, verdict, and a table with a picture of each figure. */
import { fieldsOf, find, part, setText } from "../element.js";
import { niceRange } from "../../chart/scale.js";
import { formatCount, formatMs, formatNumber } from "../words.js";
import { TOO_FEW, doubtOf, judge } from "./report.js";

/** The greatest ratio of both ends of a linear picture. One with a wider range is logarithmic. */
const LINEAR_RANGE_MAX = 20;
/** The most marks of a scale. More would overlap. */
const MARKS_MAX = 7;
/** The percentage at both ends of the scale in which words are aligned so that they stay within it. */
const END_PERCENT = 5;

/** @typedef {import("./report.js").Report} Report */
/** @typedef {import("./report.js").Series} Series */
/** @typedef {import("./report.js").Estimates} Estimates */

/**
 * @param {HTMLTemplateElement} template
 * @param {Report} report
 * @param {Estimates} estimates
 */
export function answerElement(template, report, estimates) {
  const section = find(/** @type {DocumentFragment} */ (template.content.cloneNode(true)), "section", HTMLElement);
  const field = fieldsOf(section);
  section.dataset.experiment = report.experiment;
  setText(field("question"), report.question);
  const doubt = report.is_interrupted ? "" : doubtOf(report.comparisons);
  setText(field("answer"), [report.answer, doubt].filter(Boolean).join(" "));
  field("invalid").hidden = report.invalid === null;
  setText(field("invalid"), report.invalid === null ? "" : `Invalid, so do not rely on this: ${report.invalid}.`);
  const unit = report.series[0]?.unit;
  const labels = { quantity: `${report.quantity}${unit ? `, ${unit}` : ""}`, baseline: `against ${report.comparisons[0]?.to ?? "the others"}` };
  setText(field("quantity"), labels.quantity);
  setText(field("baseline"), labels.baseline);
  find(section, ".wide", HTMLElement).setAttribute("aria-label", `Figures: ${report.question}`);
  field("method").replaceChildren(...[...report.method, ...bytesOf(report, estimates)].map((words) => part("li", "", words)));
  const bounds = [...estimates].flatMap(([{ quantity }, estimate]) => (estimate && quantity === report.quantity ? [estimate.low, estimate.high] : []));
  const scale = scaleOf(Math.min(...bounds), Math.max(...bounds));
  find(section, "tbody", HTMLElement).replaceChildren(...rowsOf(report, estimates, labels, scale));
  find(section, ".axis", HTMLElement).replaceChildren(...scale.marks.map((value) => markOf(scale.place(value), formatNumber(value, 3))));
  setText(field("scale"), scale.isLogarithmic ? ", logarithmic" : "");
  return section;
}

/**
 * @param {Report} report
 * @param {Estimates} estimates
 * @param {{ quantity: string, baseline: string }} labels of the columns: on a phone, each cell has its own
 * @param {Scale} scale
 */
function rowsOf(report, estimates, labels, { place, marks }) {
  const all = report.series.filter((series) => series.quantity === report.quantity);
  // Those of a case stand together.
  const cases = [...new Set(all.map((series) => series.case))];
  const rows = cases.flatMap((name) => all.filter((series) => series.case === name)).map((series) => ({ series, estimate: estimates.get(series) ?? null }));
  return rows.map(({ series, estimate }, at) => {
    const row = document.createElement("tr");
    row.dataset.transport = series.contender;
    if (rows[at - 1]?.series.case !== series.case) {
      const head = part("th", "", series.case);
      head.scope = "rowgroup";
      head.rowSpan = rows.filter((other) => other.series.case === series.case).length;
      row.append(head);
    }
    const words = estimate ? `${figure(estimate.median)} [${figure(estimate.low)}, ${figure(estimate.high)}]` : "–";
    const transport = part("td", "name", "");
    transport.append(part("span", "transport", series.contender));
    const cell = (/** @type {string} */ label, /** @type {(string | Node)[]} */ ...content) => {
      const made = part("td", "", "");
      made.dataset.label = label;
      const value = part("span", "", "");
      value.append(...content);
      made.append(value);
      return made;
    };
    const picture = part("td", "picture", "");
    if (estimate) picture.append(pictureOf(place(estimate.low), place(estimate.median), place(estimate.high), marks.map(place)));
    row.append(transport, cell(labels.quantity, words), picture, cell(labels.baseline, ...againstOf(report, series)), cell("came", `${formatCount(series.received)} / ${formatCount(series.expected)}`));
    return row;
  });
}

/**
 * @param {Report} report
 * @param {Series} series
 */
function againstOf({ comparisons, is_interrupted: isInterrupted }, { case: name, contender }) {
  const found = comparisons.find((one) => one.case === name && one.of === contender);
  if (!found) return [];
  const { median, low, high } = found.shift;
  const judgement = judge(found);
  // A run that was stopped judges nothing.
  if (judgement === "alike" && !isInterrupted) return ["not distinguishable"];
  const words = `${median > 0 ? "+" : ""}${figure(median)} [${figure(low)}, ${figure(high)}]`;
  return judgement === "apart" || isInterrupted || doubtOf(comparisons) ? [words] : [words, part("span", "small", TOO_FEW)];
}

/** @param {number} value */
function figure(value) {
  return (Math.abs(value) >= 1000 ? formatCount(value) : formatMs(value)).replace("-", "−");
}

/** @typedef {{ place: (value: number) => number, marks: number[], isLogarithmic: boolean }} Scale `place` is that of a value between both ends, in per cent */

/**
 * @param {number} low the least value; infinite if there is none
 * @param {number} high
 * @returns {Scale}
 */
export function scaleOf(low, high) {
  if (!Number.isFinite(low)) return { place: () => 0, marks: [], isLogarithmic: false };
  if (low > 0 && high / low > LINEAR_RANGE_MAX) {
    return { place: (value) => (100 * Math.log(value / low)) / Math.log(high / low), marks: powersOf(low, high), isLogarithmic: true };
  }
  const range = niceRange(Math.min(0, low), high, null);
  return { place: (value) => (100 * (value - range.low)) / (range.high - range.low), marks: range.ticks, isLogarithmic: false };
}

/**
 * Returns round values between two others: 1, 2 and 5 times each power of ten, or fewer.
 * @param {number} low
 * @param {number} high
 */
function powersOf(low, high) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const powers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const steps = [[1, 2, 5], [1, 3], [1]].map((factors) => powers.flatMap((power) => factors.map((factor) => Number(`${factor}e${power}`))).filter((value) => value >= low && value <= high));
  return steps.find((values) => values.length <= MARKS_MAX) ?? steps.at(-1) ?? [];
}

/**
 * @param {number} place in per cent
 * @param {string} words
 */
function markOf(place, words) {
  const mark = part("span", "", words);
  const shift = place < END_PERCENT ? 0 : place > 100 - END_PERCENT ? 100 : 50;
  Object.assign(mark.style, { left: `${place}%`, transform: `translateX(-${shift}%)` });
  return mark;
}

/**
 * @param {number} low
 * @param {number} middle
 * @param {number} high
 * @param {readonly number[]} marks
 */
function pictureOf(low, middle, high, marks) {
  const range = part("span", "range", "");
  range.setAttribute("aria-hidden", "true");
  const [bar, dot] = [part("i", "", ""), part("b", "", "")];
  Object.assign(bar.style, { left: `${low}%`, width: `${Math.max(0, high - low)}%` });
  dot.style.left = `${middle}%`;
  const lines = marks.map((place) => {
    const line = part("s", "", "");
    line.style.left = `${place}%`;
    return line;
  });
  range.append(...lines, bar, dot);
  return range;
}

/**
 * The other figures of a report, in words.
 * @param {Report} report
 * @param {Estimates} estimates
 */
function bytesOf({ series, quantity }, estimates) {
  const others = series.filter((one) => one.quantity !== quantity);
  return others.flatMap((one) => {
    const estimate = estimates.get(one);
    return estimate ? [`${one.contender}, ${one.case}: ${one.quantity} ${formatCount(estimate.median)} ${one.unit}.`] : [];
  });
}
