/**
 * The strip chart of the wind: speed as a line, and direction as dots, because a line would cross the whole chart each
 * time the wind passes north. Interruptions stay empty.
 */
import { Chart } from "../chart/chart.js";
import { Series } from "../chart/series.js";
import { WIND_SPAN } from "../page/ranges/spans.js";
import { compassPoint } from "../page/wind/compass.js";
import { windOf } from "../page/wind/wind.js";
import { roseOf } from "./rose.js";

/** The shortest interruption that is drawn as one: the slowest instrument sends every second. */
const HOLE_MS = 2500;

/** @typedef {{ speed: Series, direction: Series, units: string }} Past older values */

export class StripChart {
  #chart;
  #now;
  #units = "";
  #speed = new Series();
  #direction = new Series();
  /** Hears that another time is shown. */
  onShown = () => {};

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => number} now the server's clock
   */
  constructor(canvas, now) {
    this.#now = now;
    const name = "Strip chart of wind speed and direction";
    this.#chart = new Chart(canvas, { name, spanMs: WIND_SPAN.spanMs, holeMs: HOLE_MS, holeWords: "nothing measured", now });
    this.#measureIn("m/s");
  }

  /** @param {import("../page/wind/wind.js").Wind} wind */
  add({ t0, speed, direction, units }) {
    if (speed !== null && units !== this.#units) this.#measureIn(units);
    // What could not be measured interrupts the line.
    this.#speed.add(t0, speed ?? NaN);
    this.#direction.add(t0, direction ?? NaN);
    this.#chart.redraw();
  }

  redraw() {
    this.#chart.redraw();
  }

  /** The page has what came while it was open, and its first span of what came before. @param {import("../page/ranges/spans.js").Span} span */
  has({ spanMs }) {
    return spanMs === WIND_SPAN.spanMs;
  }

  /** Begins to collect older values. */
  begin() {
    /** @type {Past} */
    const past = { speed: new Series(), direction: new Series(), units: "" };
    return {
      take: (/** @type {import("../transport/types.js").TopicEvent} */ event) => {
        const wind = windOf(event);
        if (!wind) return;
        const { t0, speed, direction, units } = wind;
        // A series has one unit: the newest.
        if (speed !== null && units !== past.units) Object.assign(past, { speed: new Series(), direction: new Series(), units });
        past.speed.add(t0, speed ?? NaN);
        past.direction.add(t0, direction ?? NaN);
      },
      show: (/** @type {import("../page/ranges/spans.js").Span} */ { spanMs }, /** @type {number} */ apartMs) => {
        if (past.speed.length === 0) return 0;
        const reachMs = this.#now() - past.speed.time(past.speed.first);
        this.#prepend(past, apartMs);
        this.fit(Number.isFinite(spanMs) ? spanMs : Math.max(WIND_SPAN.spanMs, reachMs * 1.02));
        return reachMs;
      },
    };
  }

  /**
   * Puts older values before those that are here.
   * @param {Past} past
   * @param {number} apartMs the time between their parts
   */
  #prepend({ speed, direction, units }, apartMs) {
    const newest = speed.time(speed.end - 1);
    for (let index = this.#speed.indexAfter(newest); index < this.#speed.end && units === this.#units; index += 1) {
      speed.add(this.#speed.time(index), this.#speed.value(index));
      direction.add(this.#direction.time(index), this.#direction.value(index));
    }
    [this.#speed, this.#direction] = [speed, direction];
    this.#chart.holeMs = Math.max(HOLE_MS, apartMs * 1.5);
    this.#measureIn(units || this.#units);
  }

  /** @param {number} spanMs the time in view, up to now */
  fit(spanMs) {
    this.#chart.fit(spanMs);
    this.onShown();
  }

  /** The measurements in view, and the unit of their speed. */
  rose() {
    const { from, to } = this.#chart.times;
    const [speed, direction] = [this.#speed, this.#direction];
    const [begin, end] = [speed.indexAt(from), speed.indexAfter(to)];
    const { low, high } = speed.extent(begin, end);
    return low > high ? null : { rose: roseOf(pairs(speed, direction, begin, end), high), units: this.#units };
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

/**
 * @param {Series} speed
 * @param {Series} direction which has a value at each time that the speed has
 * @param {number} from
 * @param {number} to
 * @returns {Generator<[number, number]>}
 */
function* pairs(speed, direction, from, to) {
  for (let index = from; index < to; index += 1) yield [speed.value(index), direction.value(index)];
}
