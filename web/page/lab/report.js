/**
 * Reports as `anemone lab` writes them, so that `anemone lab report` puts both together. Pure.
 *
 * @typedef {import("../../measure/bootstrap.js").Estimate} Estimate
 * @typedef {"unreachable" | "closed" | "stalled" | "refused" | "wrong" | "not-asked"} FaultKind
 *
 * @typedef {object} Series one figure of one contender in one case, a value for each round
 * @property {string} case
 * @property {number | null} x the place of the case on an axis, if cases are figures
 * @property {string} contender
 * @property {string} quantity
 * @property {string} unit
 * @property {boolean} is_more_better of rates; of times and bytes, less is
 * @property {(number | null)[]} rounds null for a round in which everything failed
 * @property {null} histogram
 * @property {number} expected
 * @property {number} received
 * @property {Partial<Record<FaultKind, number>>} faults
 * @property {null} traffic
 *
 * @typedef {object} Comparison
 * @property {string} case
 * @property {string} of
 * @property {string} to
 * @property {string} unit
 * @property {Estimate} shift
 * @property {Estimate | null} ratio
 * @property {null} welch
 * @property {number} pairs the rounds that have a value of both
 *
 * @typedef {object} Environment
 * @property {string} program
 * @property {number} time
 * @property {number} duration_ms
 * @property {string} processor
 * @property {number} cores
 * @property {string} system
 * @property {string} target
 * @property {{ name: string | null, delay: Span, jitter: Span, rate_bits: null }} link
 * @property {number} rounds
 * @property {number} seed
 * @property {boolean} is_quick
 * @typedef {{ secs: number, nanos: number }} Span
 *
 * @typedef {object} Report
 * @property {number} version
 * @property {string} experiment
 * @property {string} question
 * @property {string} answer
 * @property {string | null} invalid
 * @property {true} [is_interrupted] the user stopped it before all was measured
 * @property {Environment} environment
 * @property {string} quantity
 * @property {Series[]} series
 * @property {Comparison[]} comparisons
 * @property {never[]} published
 * @property {string[]} method
 *
 * @typedef {Map<Series, Estimate | null>} Estimates of each series of a report
 */
import { Random, estimate, isDistinguishable, median, shift } from "../../measure/bootstrap.js";
import { countOf, formatCount, formatMs } from "../words.js";

const VERSION = 1;
/** The least part of the expected items, and of the rounds, with which a figure counts. */
const REACH_MIN = 0.9;
/**
 * The least number of pairs that a verdict needs. With fewer, equal contenders differ in the same direction by chance in more than one of
 * twenty cases.
 */
const PAIRS_MIN = 6;
/** The words for contenders with fewer pairs, if others have enough. */
export const TOO_FEW = "too few rounds to be sure";
const NO_TIME = { secs: 0, nanos: 0 };

/** The link of a report: no emulated one. */
export const THIS_NETWORK = { name: null, delay: NO_TIME, jitter: NO_TIME, rate_bits: null };

/**
 * @param {{ experiment: string, question: string, quantity: string, baseline: string, method: string[], isMoreBetter?: boolean }} about
 * @param {Series[]} series
 * @param {Environment} environment
 * @param {string | null} invalid the reason why nothing may be concluded, if the page knows one
 * @returns {Report}
 */
export function reportOf({ experiment, question, quantity, baseline, method, isMoreBetter = false }, series, environment, invalid) {
  const main = series.filter((one) => one.quantity === quantity);
  const comparisons = main.flatMap((of) => {
    const to = main.find((other) => other.case === of.case && other.contender === baseline);
    const comparison = of.contender === baseline || !to ? null : compare(of, to);
    return comparison ? [comparison] : [];
  });
  const report = { version: VERSION, experiment, question, answer: "", invalid: invalid ?? shortOf(series, quantity), environment, quantity, series, comparisons, published: [], method };
  return { ...report, answer: answerOf(report, isMoreBetter) };
}

/**
 * Makes a report, and the intervals of its figures.
 * @param {Parameters<typeof reportOf>} wish
 */
export function made(...wish) {
  const report = reportOf(...wish);
  return { report, estimates: new Map(report.series.map((series) => [series, estimate(valuesOf(series), new Random(1))])) };
}

/** @param {Series} series */
export function valuesOf({ rounds }) {
  return rounds.filter((value) => value !== null);
}

/**
 * Compares two contenders in the rounds that have a value of both.
 * @param {Series} of
 * @param {Series} to
 * @returns {Comparison | null}
 */
export function compare(of, to) {
  const pairs = of.rounds.flatMap((value, round) => {
    const other = to.rounds[round] ?? null;
    return value === null || other === null ? [] : [[value, other]];
  });
  const [ofs, tos] = [0, 1].map((side) => pairs.map((pair) => Number(pair[side])));
  const random = new Random(1);
  const found = shift(ofs ?? [], tos ?? [], random);
  if (!found) return null;
  const ratios = pairs.map(([one, other]) => Number(one) / Number(other));
  const ratio = ratios.every(Number.isFinite) ? estimate(ratios, random) : null;
  return { case: of.case, of: of.contender, to: to.contender, unit: of.unit, shift: found, ratio, welch: null, pairs: pairs.length };
}

/**
 * Judges a comparison, for both the sentence and the rows of a report.
 * @param {Comparison | null} comparison
 * @returns {"apart" | "alike" | "too few"}
 */
export function judge(comparison) {
  if (comparison === null || comparison.pairs < PAIRS_MIN) return "too few";
  return isDistinguishable(comparison.shift) ? "apart" : "alike";
}

/**
 * Returns a sentence that no difference is sure, if all comparisons have too few rounds. It is not part of the answer: the page adds it
 * when it shows a report, like `anemone lab report`.
 * @param {(Pick<Comparison, "pairs"> & Partial<Pick<Comparison, "unit" | "shift">>)[]} comparisons
 */
export function doubtOf(comparisons) {
  // The bytes of a protocol are the same in each round, so that one is enough.
  const isFixed = (/** @type {Partial<Comparison>} */ { unit, shift }) => unit === "B" && shift?.low !== undefined && shift.low === shift.high;
  const pairs = Math.max(...comparisons.filter((one) => !isFixed(one)).map((one) => one.pairs));
  return pairs > 0 && pairs < PAIRS_MIN ? `With ${countOf(pairs, "round")}, no difference is sure: measure at least ${PAIRS_MIN}.` : "";
}

/**
 * Returns the reason why no verdict is possible, if there is one.
 * @param {Series[]} series
 * @param {string} quantity the figure that it is about
 */
function shortOf(series, quantity) {
  for (const one of series) {
    const [values, rounds] = [valuesOf(one).length, one.rounds.length];
    const about = `${one.contender} in case ${one.case}`;
    if (one.received < REACH_MIN * one.expected) return `${about}: ${one.received} of ${one.expected} came`;
    if (values === 0 || (one.quantity === quantity && values < REACH_MIN * rounds)) return `${about}: ${values} of ${rounds} rounds gave a figure`;
  }
  return null;
}

/**
 * Returns the verdict: for each case the best contender, those that cannot be told from it, and those with too few rounds.
 * @param {Report} report
 * @param {boolean} isMoreBetter
 */
export function answerOf({ series, quantity, comparisons }, isMoreBetter) {
  const main = series.filter((one) => one.quantity === quantity);
  const cases = [...new Set(main.map((one) => one.case))];
  const sentences = cases.flatMap((name) => {
    const words = verdictOf(main.filter((one) => one.case === name), isMoreBetter, doubtOf(comparisons) ? "" : ` (${TOO_FEW})`);
    return words ? [`${name}: ${words}`] : [];
  });
  return sentences.length > 0 ? `${sentences.join("; ")}.` : "Nothing was measured.";
}

/**
 * @param {Series[]} contenders of one case
 * @param {boolean} isMoreBetter
 * @param {string} doubt stands after those with too few rounds
 */
function verdictOf(contenders, isMoreBetter, doubt) {
  const sign = isMoreBetter ? -1 : 1;
  const middle = (/** @type {Series} */ one) => median(valuesOf(one)) ?? NaN;
  const order = contenders.filter((one) => valuesOf(one).length > 0).sort((a, b) => sign * (middle(a) - middle(b)));
  const [best, ...others] = order;
  if (!best) return null;
  const figure = `${formatValue(middle(best), best.unit)} over ${best.contender}`;
  if (others.length === 0) return figure;
  const compared = others.map((other) => ({ other, comparison: compare(other, best) }));
  const judged = (/** @type {ReturnType<typeof judge>} */ judgement) => compared.filter(({ comparison }) => judge(comparison) === judgement);
  const alike = judged("alike").map(({ other }) => other.contender);
  const apart = judged("apart").map(({ other, comparison }) => `${other.contender} ${formatValue(Math.abs(comparison?.shift.median ?? 0), other.unit)} ${isMoreBetter ? "fewer" : "more"}`);
  const few = judged("too few").map(({ other }) => `${other.contender} ${formatValue(middle(other), other.unit)}`);
  const parts = [
    figure,
    ...(alike.length > 0 ? [`${alike.join(", ")} not distinguishable`] : []),
    ...apart,
    ...(few.length > 0 ? [few.join(", ") + doubt] : []),
  ];
  return parts.join(", ");
}

/**
 * @param {number} value
 * @param {string} unit
 */
export function formatValue(value, unit) {
  return `${unit === "ms" && value < 1000 ? formatMs(value) : formatCount(value)} ${unit}`.trim();
}
