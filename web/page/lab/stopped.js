/** A report of a run that its user stopped, marked as `anemone lab` marks one: it has figures, and no verdict. Pure. */
import { median } from "../../measure/bootstrap.js";
import { formatValue, valuesOf } from "./report.js";

/**
 * @param {import("./report.js").Report} report
 * @param {number} whole the rounds in which everything was measured
 * @returns {import("./report.js").Report}
 */
export function stopped(report, whole) {
  const { environment, series, quantity, method } = report;
  const main = series.filter((one) => one.quantity === quantity);
  const cases = [...new Set(main.map((one) => one.case))].flatMap((name) => {
    const figures = main.flatMap((one) => {
      const middle = one.case === name ? median(valuesOf(one)) : null;
      return middle === null ? [] : [`${one.contender} ${formatValue(middle, one.unit)}`];
    });
    return figures.length === 0 ? [] : [`${name}: ${figures.join(", ")}`];
  });
  const answer = `Stopped after ${whole} of ${environment.rounds} rounds, so there is no verdict. Medians of the ${quantity}: ${cases.join("; ")}.`;
  return { ...report, answer, is_interrupted: true, method: [...method, "It was interrupted: this is what was measured by then."] };
}
