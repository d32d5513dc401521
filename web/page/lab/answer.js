/** A report as a part of the page: question, verdict, and a table with a picture of each figure. */
import { fieldsOf, find, part, setText } from "../element.js";
import { formatCount, formatMs } from "../words.js";
import { TOO_FEW, judge } from "./report.js";

/** A picture of a wider range is logarithmic. */
const LINEAR_RANGE_MAX = 20;

/** @typedef {import("./report.js").Report} Report */
/** @typedef {import("./report.js").Series} Series */
/** @typedef {Map<Series, import("./report.js").Estimate | null>} Estimates of each series of a report */

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
  setText(field("answer"), report.answer);
  field("invalid").hidden = report.invalid === null;
  setText(field("invalid"), report.invalid === null ? "" : `Invalid, so do not rely on this: ${report.invalid}.`);
  const unit = report.series[0]?.unit;
  const labels = { quantity: `${report.quantity}${unit ? `, ${unit}` : ""}`, baseline: `against ${report.comparisons[0]?.to ?? "the others"}` };
  setText(field("quantity"), labels.quantity);
  setText(field("baseline"), labels.baseline);
  find(section, ".wide", HTMLElement).setAttribute("aria-label", `Figures: ${report.question}`);
  field("method").replaceChildren(...[...report.method, ...bytesOf(report, estimates)].map((words) => part("li", "", words)));
  find(section, "tbody", HTMLElement).replaceChildren(...rowsOf(report, estimates, labels));
  return section;
}

/**
 * @param {Report} report
 * @param {Estimates} estimates
 * @param {{ quantity: string, baseline: string }} labels of the columns: on a phone, each cell has its own
 */
function rowsOf(report, estimates, labels) {
  const all = report.series.filter((series) => series.quantity === report.quantity);
  // Those of a case stand together.
  const cases = [...new Set(all.map((series) => series.case))];
  const rows = cases.flatMap((name) => all.filter((series) => series.case === name)).map((series) => ({ series, estimate: estimates.get(series) ?? null }));
  const bounds = rows.flatMap(({ estimate }) => (estimate ? [estimate.low, estimate.high] : []));
  const place = scaleOf(Math.min(...bounds), Math.max(...bounds));
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
    if (estimate) picture.append(pictureOf(place(estimate.low), place(estimate.median), place(estimate.high)));
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
  return judgement === "apart" || isInterrupted ? [words] : [words, part("span", "small", TOO_FEW)];
}

/** @param {number} value */
function figure(value) {
  return (Math.abs(value) >= 1000 ? formatCount(value) : formatMs(value)).replace("-", "−");
}

/**
 * Returns the place of a value between both ends, in per cent.
 * @param {number} low
 * @param {number} high
 * @returns {(value: number) => number}
 */
export function scaleOf(low, high) {
  if (low > 0 && high / low > LINEAR_RANGE_MAX) {
    return (value) => (100 * Math.log(value / low)) / Math.log(high / low);
  }
  const [begin, end] = [Math.min(0, low), high > low || high > 0 ? high : low + 1];
  return (value) => (100 * (value - begin)) / (end - begin || 1);
}

/**
 * @param {number} low
 * @param {number} middle
 * @param {number} high
 */
function pictureOf(low, middle, high) {
  const range = part("span", "range", "");
  range.setAttribute("aria-hidden", "true");
  const [bar, dot] = [part("i", "", ""), part("b", "", "")];
  Object.assign(bar.style, { left: `${low}%`, width: `${Math.max(0, high - low)}%` });
  dot.style.left = `${middle}%`;
  range.append(bar, dot);
  return range;
}

/**
 * The figures beside the one of the report, in words.
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
