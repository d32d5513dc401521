/** The range of the chart: the last minutes as they came, or older measurements read back from the server. */
import { Series } from "../chart/series.js";
import { setText, find } from "../page/element.js";
import { formatCount, formatDuration } from "../page/words.js";
import { keptFrom, readBack } from "./history.js";
import { isFilled, SPANS } from "./spans.js";

/** What is kept reaches further back with time. */
const LOOK_MS = 60_000;

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
    const buttons = SPANS.map((span, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = span.title;
      button.hidden = !isFilled(span, 0);
      button.setAttribute("aria-pressed", String(index === 0));
      button.addEventListener("click", () => {
        for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
        void this.#show(span);
      });
      return button;
    });
    find(root, "[role=group]", HTMLElement).append(...buttons);
    void this.#offer(buttons);
    setInterval(() => document.visibilityState !== "hidden" && void this.#offer(buttons), LOOK_MS);
  }

  /**
   * Offers the spans that what is kept fills. The one that is shown stays.
   * @param {HTMLButtonElement[]} buttons
   */
  async #offer(buttons) {
    const from = await keptFrom(this.#topic);
    if (from === null) return;
    for (const [index, button] of buttons.entries()) {
      const span = SPANS[index];
      if (span) button.hidden = !isFilled(span, Date.now() - from) && button.getAttribute("aria-pressed") === "false";
    }
  }

  /** @param {import("./spans.js").Span} span */
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
      this.#chart.prepend({ ...past, apartMs: found.apartMs }, Number.isFinite(spanMs) ? spanMs : Math.max(SPANS[0]?.spanMs ?? 0, keptMs * 1.02));
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
