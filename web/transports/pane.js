/** The pane of one transport: its last value, latency, traffic and connection state. */
import { fieldsOf, find, setText } from "../page/element.js";
import { RECENT } from "./figures.js";
import { Sparkline } from "../chart/sparkline.js";
import { formatBytes, formatCount, formatMs, stateInWords, waitInWords } from "../page/words.js";
import { compassPoint } from "../page/wind/compass.js";

/** @typedef {import("./figures.js").Snapshot} Snapshot */

export class Pane {
  #root;
  #field;
  #sparkline;
  #isSocket;
  #isBase;
  #how;
  /** @type {import("../transport/types.js").State} */
  state = { kind: "connecting" };

  /**
   * @param {HTMLElement} parent
   * @param {HTMLTemplateElement} template
   * @param {import("./panes.js").About} about
   * @param {() => void} begin
   */
  constructor(parent, template, { name, title, how, isSocket = false, onRequest }, begin) {
    parent.append(template.content.cloneNode(true));
    this.#root = /** @type {HTMLElement} */ (parent.lastElementChild);
    this.#root.id = `pane-${name}`;
    this.#root.dataset.transport = name;
    this.#root.setAttribute("aria-labelledby", `title-${name}`);
    this.#isSocket = isSocket;
    this.#isBase = name === "websocket";
    this.#how = how;
    this.#field = fieldsOf(this.#root);
    this.#field("title").id = `title-${name}`;
    setText(this.#field("title"), title);
    setText(this.#field("requests-label"), this.#isSocket ? "connections tried" : "requests");
    setText(this.#field("bytes-label"), this.#isSocket ? "payload received" : "bodies received");
    const button = find(this.#root, "button", HTMLButtonElement);
    button.hidden = !onRequest;
    if (onRequest) this.state = { kind: "paused", reason: onRequest };
    button.setAttribute("aria-label", `Begin: ${title}`);
    button.addEventListener("click", () => {
      button.remove();
      begin();
    });
    const canvas = find(this.#root, "canvas", HTMLCanvasElement);
    this.#sparkline = new Sparkline(canvas, { paint: name, capacity: RECENT });
  }

  /** @param {import("../page/wind/wind.js").Wind} wind */
  showWind({ direction, speed, units }) {
    if (speed === null) return setText(this.#field("value"), "not measured");
    const from = direction === null ? "calm" : `${compassPoint(direction)} ${direction}°`;
    setText(this.#field("value"), `${from}, ${speed.toFixed(2)} ${units}`);
  }

  /**
   * @param {Snapshot} figures
   * @param {{ scaleMs: number, sparkMs: number, clockBound: number | null, socketMean: number | null }} context
   */
  showFigures(figures, { scaleMs, sparkMs, clockBound, socketMean }) {
    const { messages, latency, bytes, requests } = figures;
    setText(this.#field("messages"), formatCount(messages));
    setText(this.#field("requests"), formatCount(requests));
    setText(this.#field("reconnects"), formatCount(figures.reconnects));
    setText(this.#field("bytes"), bytes === null ? "not reported" : formatBytes(bytes));
    setText(
      this.#field("bytes-each"),
      bytes === null || messages === 0 ? "" : `, ${formatCount(bytes / messages)} B each`,
    );
    setText(this.#field("gaps"), gapsInWords(figures));
    this.#root.classList.toggle("faulty", figures.unannounced + figures.repeats > 0);
    this.#root.classList.toggle("measured", latency !== null);
    this.#sparkline.show(figures.recent, sparkMs);
    if (latency === null) {
      setText(this.#field("latency"), "–");
      setText(this.#field("spread"), clockBound === null ? "measuring the clocks" : "no messages yet");
      setText(this.#field("against"), "");
      this.#setBar(0, 0, 0);
      return;
    }
    const { mean, deviation, min, max, count } = latency;
    setText(this.#field("latency"), `${formatMs(mean)} ms`);
    const clock = clockBound === null ? "" : `clock ±${formatMs(clockBound)} · `;
    setText(
      this.#field("spread"),
      `${clock}s.d. ${formatMs(deviation)} · ${formatMs(min)} to ${formatMs(max)} · n ${formatCount(count)}`,
    );
    const more = socketMean === null ? 0 : mean - socketMean;
    setText(
      this.#field("against"),
      this.#isBase || socketMean === null ? "" : `${more < 0 ? "−" : "+"}${formatMs(Math.abs(more))} ms to WebSocket`,
    );
    this.#setBar(mean / scaleMs, (mean - deviation) / scaleMs, (mean + deviation) / scaleMs);
  }

  /** @param {number} now */
  showState(now) {
    const { state } = this;
    this.#root.dataset.state = state.kind;
    // The state has one line, and its reason the two lines of the description: neither moves what is below.
    const reason = state.kind === "waiting" || state.kind === "paused" ? state.reason : undefined;
    const words = state.kind === "waiting" ? waitInWords(state, now) : reason === undefined ? stateInWords(state, now) : "waits";
    setText(this.#field("state"), words);
    const how = this.#field("how");
    setText(how, reason ?? this.#how);
    if (how.title !== (reason ?? "")) how.title = reason ?? "";
  }

  /**
   * @param {number} mean
   * @param {number} low
   * @param {number} high
   */
  #setBar(mean, low, high) {
    const { style } = this.#field("bar");
    style.setProperty("--mean", fraction(mean));
    style.setProperty("--low", fraction(low));
    style.setProperty("--high", fraction(high));
  }
}

/** @param {number} value */
function fraction(value) {
  return Math.max(0, Math.min(1, value)).toFixed(4);
}

/** @param {Snapshot} figures */
function gapsInWords({ gaps, missed, missedUnknown, caughtUp, unannounced, repeats }) {
  const parts = [];
  if (gaps === 0) parts.push("none");
  else {
    const known = missed > 0 ? `${formatCount(missed)} lost` : "";
    const unknown = missedUnknown ? "an unknown number lost" : "";
    const lost = [known, unknown].filter(Boolean).join(" and ") || "none lost";
    parts.push(`${gaps === 1 ? "1 gap" : `${formatCount(gaps)} gaps`}, ${lost}`);
  }
  if (unannounced > 0) parts.push(`${formatCount(unannounced)} gaps that the server did not announce`);
  if (repeats > 0) parts.push(`${formatCount(repeats)} repeated`);
  if (caughtUp > 0) parts.push(`${formatCount(caughtUp)} caught up`);
  return parts.join(", ");
}
