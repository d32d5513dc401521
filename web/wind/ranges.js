/** The range of the chart: the last minutes as they came, or older measurements read back from the server. */
import { Series } from "../chart/series.js";
import { setText, find } from "../page/element.js";
import { formatCount, formatDuration } from "../page/words.js";
import { readBack } from "./history.js";

const MINUTE_MS = 60_000;
/** @type {readonly { title: string, spanMs: number, place: string | null }[]} */
const RANGES = [
  { title: "2 min", spanMs: 2 * MINUTE_MS, place: null },
  { title: "1 hour", spanMs: 60 * MINUTE_MS, place: "since=1h" },
  { title: "1 day", spanMs: 1440 * MINUTE_MS, place: "since=1d" },
  { title: "All", spanMs: Infinity, place: "after=earliest" },
];

export class Ranges {
  #root;
  #chart;
  #topic;
  #onShown;
  #reading = new AbortController();

  /**
   * @param {HTMLElement} root
   * @param {import("./strip-chart.js").StripChart} chart
   * @param {string} topic its URL
   * @param {() => void} onShown
   */
  constructor(root, chart, topic, onShown) {
    this.#root = root;
    this.#chart = chart;
    this.#topic = topic;
    this.#onShown = onShown;
    const buttons = RANGES.map((range, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = range.title;
      button.setAttribute("aria-pressed", String(index === 0));
      button.addEventListener("click", () => {
        for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
        void this.#show(range);
      });
      return button;
    });
    find(root, "[role=group]", HTMLElement).append(...buttons);
  }

  /** @param {typeof RANGES[number]} range */
  async #show({ title, spanMs, place }) {
    this.#reading.abort();
    const { signal } = (this.#reading = new AbortController());
    this.#say("");
    if (place === null) {
      this.#chart.fit(spanMs);
      this.#onShown();
      return;
    }
    const past = { speed: new Series(), direction: new Series(), units: "", apartMs: 0 };
    this.#say("reading…");
    try {
      const found = await readBack(this.#topic, place, {
        signal,
        onWind: ({ t0, speed, direction, units }) => {
          // A series has one unit: the newest.
          if (speed !== null && units !== past.units) Object.assign(past, { speed: new Series(), direction: new Series(), units });
          past.speed.add(t0, speed ?? NaN);
          past.direction.add(t0, direction ?? NaN);
        },
        onProgress: ({ done }) => this.#say(`reading, ${Math.floor(done * 100)} %`),
      });
      if (signal.aborted) return;
      if (!found || past.speed.length === 0) return this.#say("the server keeps nothing of this time");
      const keptMs = past.speed.time(past.speed.end - 1) - past.speed.time(past.speed.first);
      this.#chart.prepend({ ...past, apartMs: found.apartMs }, Number.isFinite(spanMs) ? spanMs : Math.max(2 * MINUTE_MS, keptMs * 1.02));
      const part = found.apartMs > 0 ? `; ${formatCount(found.read)} are shown, evenly spaced` : "";
      this.#say(`${title === "All" || keptMs < spanMs * 0.95 ? `the server keeps ${formatDuration(keptMs)}, ` : ""}${formatCount(found.all)} measurements${part}`);
      this.#onShown();
    } catch {
      if (!signal.aborted) this.#say("the server does not answer; try again");
    }
  }

  /** @param {string} words */
  #say(words) {
    setText(find(this.#root, "[role=status]", HTMLElement), words);
  }
}
