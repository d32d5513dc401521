/**
 * The strip chart of the wind: speed as a line, and direction as dots, because a line would cross the whole chart each
 * time the wind passes north. Interruptions stay empty.
 */
import { Chart } from "../chart/chart.js";
import { Series } from "../chart/series.js";
import { compassPoint } from "./words.js";

const SPAN_MS = 120_000;
/** The shortest interruption that is drawn as one: the slowest instrument sends every second. */
const HOLE_MS = 2500;

export class StripChart {
  #chart;
  #units = "";
  #speed = new Series();
  #direction = new Series();

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => number} now the server's clock
   */
  constructor(canvas, now) {
    const name = "Strip chart of wind speed and direction";
    this.#chart = new Chart(canvas, { name, spanMs: SPAN_MS, holeMs: HOLE_MS, holeWords: "nothing measured", now });
    this.#measureIn("m/s");
  }

  /** @param {import("./wind.js").Wind} wind */
  add({ t0, speed, direction, units }) {
    if (units !== this.#units) this.#measureIn(units);
    this.#speed.add(t0, speed);
    this.#direction.add(t0, direction ?? NaN);
    this.#chart.redraw();
  }

  redraw() {
    this.#chart.redraw();
  }

  /** @returns {{ mean: number, gust: number, units: string, count: number, from: number, to: number } | null} of what is in view */
  summary() {
    const speed = this.#chart.summary(this.#speed);
    return speed && { mean: speed.mean, gust: speed.high, count: speed.count, units: this.#units, ...this.#chart.times };
  }

  /** @param {string} units */
  #measureIn(units) {
    this.#units = units;
    this.#chart.show([
      {
        caption: `speed, ${units}`,
        lines: [{ name: "speed", series: this.#speed, colour: "bloom", kind: "area", words: (speed) => `${speed.toFixed(2)} ${units}` }],
        share: 0.58,
        scale: "from zero",
      },
      {
        caption: "direction, where the wind comes from",
        lines: [{ name: "from", series: this.#direction, colour: "bloom", kind: "dots", words: (degrees) => `${compassPoint(degrees)} ${degrees}°` }],
        share: 0.42,
        scale: { low: 0, high: 360, ticks: [0, 90, 180, 270, 360] },
        label: (degrees) => "NESWN".charAt(degrees / 90),
      },
    ]);
  }
}
