/**
 * A report of a run that its user stopped, marked as `anemone lab` marks one: it has figures, and no verdict. Pure.
 *
 * @typedef {import("./report.js").Report & { is_interrupted?: true }} Report
 */
import { median } from "../../measure/bootstrap.js";
import { formatValue, valuesOf } from "./report.js";

/**
 * @param {import("./report.js").Report} report
 * @param {number} whole the rounds in which everything was measured
 * @returns {Report}
 */
export function stopped(report, whole) {
  const { environment, series, quantity, method } = report;
  const figures = series.flatMap((one) => {
    const middle = one.quantity === quantity ? median(valuesOf(one)) : null;
    return middle === null ? [] : [`${one.case}, ${one.contender}: ${formatValue(middle, one.unit)}`];
  });
  const answer = `Stopped after ${whole} of ${environment.rounds} rounds, so there is no verdict. Medians of the ${quantity}: ${figures.join("; ")}.`;
  return { ...report, answer, is_interrupted: true, method: [...method, "It was interrupted: this is what was measured by then."] };
}
