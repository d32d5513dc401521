/**
 * Rounds. In each, every contender of every case is measured once, in a new random order. Pure, except for `measure`.
 *
 * @typedef {object} Cell a contender in a case
 * @property {string} case
 * @property {number | null} x
 * @property {string} contender
 * @property {(signal: AbortSignal) => Promise<Sample>} measure
 *
 * @typedef {{ quantity: string, unit: string, isMoreBetter?: boolean }} Quantity
 * @typedef {object} Sample
 * @property {(Quantity & { value: number })[]} figures
 * @property {number} expected
 * @property {number} received
 * @property {Partial<Record<import("./report.js").FaultKind, number>>} [faults]
 */

/** The number of rounds before those that count. */
export const WARM_UP = 1;

/**
 * Measures all cells. `signal` ends this at once: the current sample is dropped, and the earlier ones stay.
 * @param {readonly Cell[]} cells
 * @param {{ first: Quantity, rounds: number, random: import("../../measure/bootstrap.js").Random, signal: AbortSignal, onStep: () => void, onFailure: () => Promise<void> }} options `onFailure` may abort `signal`
 * @returns {Promise<import("./report.js").Series[]>}
 */
export async function interleaved(cells, { first, rounds, random, signal, onStep, onFailure }) {
  /** @type {Map<Cell, Sample[]>} */
  const samples = new Map(cells.map((cell) => [cell, []]));
  for (let round = 0; round < WARM_UP + rounds && !signal.aborted; round += 1) {
    for (const cell of random.shuffled(cells)) {
      if (signal.aborted) break;
      const sample = await cell.measure(signal).catch((error) => failed(error));
      if (sample.received === 0 && !signal.aborted) await onFailure();
      // One that was cut off by the user is no fault of the server.
      if (round >= WARM_UP && !signal.aborted) samples.get(cell)?.push(sample);
      onStep();
    }
  }
  return [...samples].flatMap(([cell, all]) => seriesOf(cell, all, first));
}

/**
 * Makes a series of each figure; always one of the first, even if it has no value.
 * @param {Pick<Cell, "case" | "x" | "contender">} cell
 * @param {readonly Sample[]} samples
 * @param {Quantity} first
 * @returns {import("./report.js").Series[]}
 */
export function seriesOf({ case: name, x, contender }, samples, first) {
  const quantities = new Map([{ figures: [first] }, ...samples].flatMap(({ figures }) => figures.map((of) => /** @type {const} */ ([of.quantity, of]))));
  /** @type {Partial<Record<import("./report.js").FaultKind, number>>} */
  const faults = {};
  for (const sample of samples) {
    for (const [kind, count] of Object.entries(sample.faults ?? {})) {
      const known = /** @type {import("./report.js").FaultKind} */ (kind);
      faults[known] = (faults[known] ?? 0) + count;
    }
  }
  const sum = (/** @type {"expected" | "received"} */ what) => samples.reduce((all, sample) => all + sample[what], 0);
  return [...quantities.values()].map(({ quantity, unit, isMoreBetter = false }) => ({
    case: name,
    x,
    contender,
    quantity,
    unit,
    is_more_better: isMoreBetter,
    rounds: samples.map(({ figures }) => figures.find((figure) => figure.quantity === quantity)?.value ?? null),
    histogram: null,
    expected: sum("expected"),
    received: sum("received"),
    faults,
    traffic: null,
  }));
}

/**
 * Makes a sample in which everything failed.
 * @param {unknown} error
 * @returns {Sample}
 */
export function failed(error) {
  return { figures: [], expected: 1, received: 0, faults: { [faultOf(error)]: 1 } };
}

/**
 * @param {unknown} error
 * @returns {import("./report.js").FaultKind}
 */
function faultOf(error) {
  if (!(error instanceof Error)) return "wrong";
  if (error.name === "TimeoutError") return "stalled";
  if ("status" in error && Number(error.status) >= 400) return "refused";
  if (error instanceof SyntaxError) return "wrong";
  return error.name === "ClosedError" ? "closed" : "unreachable";
}
