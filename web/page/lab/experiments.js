/** The experiments of the page: each measures, and makes a report. */
import { now } from "../../client.js";
import { Random } from "../../measure/bootstrap.js";
import { narrowed, probeBlock } from "../../measure/clock.js";
import { browser } from "../../transport/environment.js";
import { at } from "../site.js";
import { formatMs } from "../words.js";
import { tooSoon } from "./bias.js";
import { RATE, TIME, callCells, callWays, sequentialCells } from "./calls.js";
import { Disturbance } from "./disturbance.js";
import { ROUND_TRIP, echoCells } from "./echoes.js";
import { environmentOf, protocolOf } from "./environment.js";
import { LATENCY, latencies, leastOf, seriesOfRounds } from "./latency.js";
import { WARM_UP, interleaved } from "./rounds.js";
import { stopped } from "./stopped.js";

/** @typedef {"calls" | "sequential" | "echo" | "wind"} Name */
/** @typedef {{ rounds: number, atOnce: number, ms: number, longest: number, bias: import("./bias.js").Bias, maker: import("./making.js").Maker, signal: AbortSignal, onStep: (steps: number, of: number) => void, onFailure: () => Promise<void> }} Settings */
/** @typedef {{ series: import("./report.js").Series[], method?: string[], left?: string, invalid?: string | null }} Found `left` says what was left out */

const QUICK_ROUNDS_MAX = 4;
/** The longest wait for the server's clock. Latencies are measured without it, too. */
const CLOCK_MS_MAX = 30_000;

/**
 * @typedef {object} Experiment
 * @property {string} question
 * @property {number} rows
 * @property {import("./rounds.js").Quantity} quantity
 * @property {string[]} method
 * @property {boolean} [hasLongTasks] a part of what is measured, such as the look at 10 MB, is a long task itself
 * @property {(settings: Settings, random: Random, step: (of: number) => () => void) => Promise<Found>} measure
 */

/** @type {Record<Name, Experiment>} */
const EXPERIMENTS = {
  calls: {
    question: "How long does a call take, alone and among others?",
    rows: 4,
    quantity: TIME,
    method: [
      "Each call gets the server's time, over a connection that is kept. The time of one call is the median of five.",
      "The bytes of a reply are those of Resource Timing, with 300 that browsers assume for its header; of a WebSocket, a browser tells none.",
    ],
    measure: async ({ rounds, atOnce, signal, onFailure }, random, step) => {
      const ways = callWays();
      const cells = callCells(ways, atOnce);
      const series = await interleaved(cells, { first: TIME, rounds, random, signal, onStep: step(cells.length * (rounds + WARM_UP)), onFailure });
      ways.forEach(({ client }) => client.close());
      return { series };
    },
  },
  sequential: {
    question: "How many calls fit into a second, one after the other?",
    rows: 2,
    quantity: RATE,
    method: ["The next call begins when the last one is answered."],
    measure: async ({ rounds, ms, signal, onFailure }, random, step) => {
      const ways = callWays();
      const cells = sequentialCells(ways, ms);
      const series = await interleaved(cells, { first: RATE, rounds, random, signal, onStep: step(cells.length * (rounds + WARM_UP)), onFailure });
      ways.forEach(({ client }) => client.close());
      return { series, method: [`For ${ms / 1000} s in each round.`] };
    },
  },
  echo: {
    question: "How long do bytes take there and back?",
    rows: 8,
    quantity: ROUND_TRIP,
    hasLongTasks: true,
    method: ["Each echo is compared with what was sent. Over HTTP, the bytes are the body of a POST; over WebSocket, one message."],
    measure: async ({ rounds, longest, signal, onFailure }, random, step) => {
      const { cells, left, close } = await echoCells(longest, random, signal);
      const series = await interleaved(cells, { first: ROUND_TRIP, rounds, random, signal, onStep: step(cells.length * (rounds + WARM_UP)), onFailure });
      close();
      const words = `Not measured: ${left.join("; ")}.`;
      return left.length === 0 ? { series } : { series, method: [words], left: words };
    },
  },
  wind: {
    question: "Which transport brings four events a second soonest?",
    rows: 5,
    quantity: LATENCY,
    method: [
      "All transports read the topic wind at the same time, and begin in random order; the events of a round that all of them have are compared, so that clocks cancel in every difference. Latency is from the moment at which the server had read the sensor, until the bytes are in the page.",
      "A poll waits 150 ms after each answer, as in the publication that this repeats (Pimentel and Nickerson, 2012).",
    ],
    measure: async ({ rounds, bias, signal, onFailure }, random, step) => {
      const clock = await probeBlock(at("clock"), { environment: browser, signal: AbortSignal.any([signal, AbortSignal.timeout(CLOCK_MS_MAX)]) });
      const all = await latencies({ rounds, random, signal, onStep: step(rounds + WARM_UP), onFailure });
      const leastMs = leastOf(all);
      const known = clock && narrowed(clock, leastMs);
      // Without the server's clock, the soonest event counts as one that took no time.
      const series = seriesOfRounds(all, known?.offset ?? clock?.offset ?? (Number.isFinite(leastMs) ? -leastMs : 0));
      const unknown = "The server's clock is not known, so only differences of latencies mean something: the soonest event counts as one that took no time.";
      const words = clock ? `The server's clock is known to ±${formatMs((known ?? clock).bound)} ms, which is the doubt of each latency, but not of their differences.` : unknown;
      return { series, method: [words], invalid: clock && !known ? earlyWords(-leastMs - clock.offset, clock.bound) : tooSoon(series, bias.roundTripMs) };
    },
  },
};

/**
 * @param {number} earlyMs
 * @param {number} bound
 */
function earlyWords(earlyMs, bound) {
  return `an event arrived ${formatMs(earlyMs)} ms before it was sent, and the server's clock is known to ±${formatMs(bound)} ms: a clock was set meanwhile, or something delays requests and no events`;
}

/** Returns the question of an experiment, and about how many rows its table has. @param {Name} name */
export function expected(name) {
  const { question, rows } = EXPERIMENTS[name];
  return { question, rows };
}

/**
 * Measures, and returns the report; null if it was stopped before the first figure.
 * @param {Name} name
 * @param {Settings} settings
 * @returns {Promise<ReturnType<typeof import("./report.js").made> | null>}
 */
export async function run(name, settings) {
  const { question, quantity, method, hasLongTasks = false, measure } = EXPERIMENTS[name];
  const [begun, seed] = [now(), Math.floor(Math.random() * 2 ** 32)];
  let steps = 0;
  const step = (/** @type {number} */ of) => () => settings.onStep((steps += 1), of);
  const disturbance = new Disturbance();
  const found = await measure(settings, new Random(seed), step).finally(() => disturbance.end());
  // Series that a stopped run had not come to are no fault of its report.
  const series = found.series.filter(({ rounds }) => rounds.length > 0);
  if (series.length === 0) return null;
  const whole = Math.min(...found.series.map((series) => series.rounds.length));
  const isStopped = whole < settings.rounds;
  const environment = environmentOf({ begun, rounds: settings.rounds, seed, isQuick: settings.rounds <= QUICK_ROUNDS_MAX });
  const rounds = isStopped ? `${whole} of ${settings.rounds}, since it was interrupted` : whole;
  const words = [
    `Rounds: ${rounds}, after one that is dropped; in each, every transport once, in random order. Intervals are of 95 %, by bootstrap over the rounds. The page came over ${protocolOf()}.`,
    ...method,
    ...(found.method ?? []),
  ];
  const about = { experiment: name, question, quantity: quantity.quantity, baseline: "WebSocket", method: words, isMoreBetter: quantity.isMoreBetter ?? false };
  const { report, estimates } = await settings.maker.make(about, series, environment, disturbance.reason(hasLongTasks) ?? settings.bias.words ?? found.invalid ?? null);
  const told = isStopped ? stopped(report, whole) : report;
  return { report: found.left ? { ...told, answer: `${told.answer} ${found.left}` } : told, estimates };
}
