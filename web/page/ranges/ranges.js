/** The range of a chart: buttons for the last minutes, hours and days. They read back the events that the page does not have. */
import { find, setText } from "../element.js";
import { listedTopic } from "../places.js";
import { formatCount, formatDuration } from "../words.js";
import { readBack } from "./history.js";
import { offered, placeOf } from "./spans.js";

/** The time between two looks at the kept events, which cover a longer time as the topic grows. */
const LOOK_MS = 60_000;

/** @typedef {import("./spans.js").Span} Span */

/**
 * The chart that has this range.
 * @typedef {object} Shown
 * @property {(span: Span) => boolean} has whether all values of this time are here
 * @property {(spanMs: number) => void} fit shows this much time, up to now
 * @property {() => Past} begin begins to collect older values
 *
 * @typedef {object} Past
 * @property {(event: import("../../transport/types.js").TopicEvent) => void} take
 * @property {(span: Span, apartMs: number) => number} show shows what was taken before what is here, and returns how far back that reaches, ms; 0 without a value
 */

export class Ranges {
  #root;
  #name;
  #topic;
  #spans;
  #shown;
  /** @type {HTMLButtonElement[]} */
  #buttons;
  #reading = new AbortController();
  /** The mean size of the topic's events. */
  #bytesEach = 0;
  #now;
  /** Gets the entry of the topic in the server's list. @type {(topic: import("../places.js").ListedTopic) => void} */
  #onListed;

  /**
   * @param {HTMLElement} root
   * @param {{ name: string, topic: string, spans: readonly Span[], shown: Shown, now: () => number, onListed?: (topic: import("../places.js").ListedTopic) => void }} options
   *   `topic` is its URL, and `now` the server's clock
   */
  constructor(root, { name, topic, spans, shown, now, onListed = () => {} }) {
    this.#root = root;
    this.#name = name;
    this.#topic = topic;
    this.#spans = spans;
    this.#shown = shown;
    this.#now = now;
    this.#onListed = onListed;
    this.#buttons = spans.map((span) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = span.title;
      button.addEventListener("click", () => void this.show(span));
      return button;
    });
    find(root, "[role=group]", HTMLElement).append(...this.#buttons);
    this.mark(null);
    this.#offer(0);
    setInterval(() => document.visibilityState !== "hidden" && void this.look(), LOOK_MS);
  }

  /** Asks how far back the kept events reach, and offers the spans that they fill. The current span stays. */
  async look() {
    const listed = await listedTopic(this.#name);
    if (listed === null) return;
    this.#bytesEach = listed.bytes / Math.max(1, listed.events);
    this.#onListed(listed);
    if (listed.oldest !== null) this.#offer(this.#now() - listed.oldest);
  }

  /** @param {number} keptMs */
  #offer(keptMs) {
    const titles = offered(this.#spans, keptMs).map(({ title }) => title);
    for (const button of this.#buttons) button.hidden = !titles.includes(button.textContent ?? "") && button.getAttribute("aria-pressed") === "false";
  }

  /**
   * Marks the span that is shown.
   * @param {Span | null} span
   */
  mark(span) {
    this.#reading.abort();
    this.#say("");
    for (const button of this.#buttons) {
      const isShown = button.textContent === span?.title;
      button.setAttribute("aria-pressed", String(isShown));
      if (isShown) button.hidden = false;
    }
  }

  /**
   * Shows this much time, and reads back the missing events.
   * @param {Span} span
   */
  async show(span) {
    this.mark(span);
    if (this.#shown.has(span)) return this.#shown.fit(span.spanMs);
    const { signal } = (this.#reading = new AbortController());
    this.#say("reading…");
    try {
      const past = this.#shown.begin();
      const onProgress = (/** @type {import("./history.js").Progress} */ { done }) => this.#say(`reading, ${Math.floor(done * 100)} %`);
      const found = await readBack(this.#topic, placeOf(span), { signal, bytesEach: this.#bytesEach, onEvent: past.take, onProgress });
      if (signal.aborted) return;
      const reachMs = found ? past.show(span, found.apartMs) : 0;
      if (!found || reachMs === 0) return this.#say("the server keeps nothing of this time");
      const part = found.apartMs > 0 ? `; ${formatCount(found.read)} are shown, evenly spaced` : "";
      this.#say(`${reachMs < span.spanMs * 0.95 ? `the server keeps ${formatDuration(reachMs)}, ` : ""}${formatCount(found.all)} events${part}`);
    } catch {
      if (!signal.aborted) this.#say("the server does not answer; try again");
    }
  }

  /** @param {string} words */
  #say(words) {
    setText(find(this.#root, "[role=status]", HTMLElement), words);
  }
}
