/** One topic on Home: its newest value, its curve, its rate, its kept data, its readers, and a command to read it. */
import { offerCopy, reading } from "../page/commands.js";
import { fieldsOf, find, setText } from "../page/element.js";
import { Rate, rateInWords } from "../page/rates.js";
import { at } from "../page/site.js";
import { formatBytes, formatCount, formatDuration } from "../page/words.js";
import { parsePosition } from "../client.js";
import { cut, showStatus } from "../page/status.js";
import { keepsInWords } from "./words.js";

/** An event that is younger counts as new. */
const FRESH_MS = 1500;
/** The most events at the beginning of a curve, and the most bytes of them all. */
const HISTORY_EVENTS = 240;
const HISTORY_BYTES = 64 * 1024;

/** @typedef {{ position: string, time: number, data: unknown }} PastEvent */

export class Row {
  isSeen = false;
  #name;
  #field;
  #status;
  #rate = new Rate();
  #next = "";
  /** The time of the event at `#next`, if it is known. @type {number | null} */
  #nextTime = null;
  #kept = { first: 1, bytes: 0, readers: 0, keeps: "" };
  /** The configured units, for fields whose events have none. @type {Readonly<Record<string, string>>} */
  #units = {};
  /** @type {{ time: number, data: unknown } | null} */
  #newest = null;
  #isChanged = false;
  /** @type {import("./trend.js").Trend | null} null until its history is there */
  #trend = null;
  /** The offset of the last event in the trend. */
  #trendEnd = 0;
  /** @type {import("../chart/sparkline.js").Sparkline | null} */
  #sparkline = null;
  /** The current request for the history; null if there is none. @type {symbol | null} */
  #asked = null;

  /**
   * @param {HTMLTemplateElement} template
   * @param {string} name
   */
  constructor(template, name) {
    this.#name = name;
    const part = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
    this.element = /** @type {HTMLElement} */ (part.firstElementChild);
    this.element.dataset.name = name;
    const link = document.createElement("a");
    link.href = at(`topics/${name}`);
    link.textContent = link.title = name;
    find(this.element, "h3", HTMLElement).append(link);
    this.#status = find(this.element, ".status", HTMLAnchorElement);
    this.#field = fieldsOf(this.element);
    this.#field("command").textContent = reading(link.href);
    offerCopy(find(this.element, "button", HTMLButtonElement), this.#field("command"), name);
  }

  /**
   * @param {import("../page/places.js").ListedTopic} listed
   * @param {boolean} hasStatus whether a source says how it is
   */
  list({ next, first, bytes, readers, time, keeps, storage, units = {} }, hasStatus) {
    if (!hasStatus) this.#status.hidden = true;
    this.#units = units;
    this.#kept = { first, bytes, readers, keeps: keepsInWords({ keeps, storage }) };
    if (this.#isNews(next)) [this.#next, this.#nextTime] = [next, time];
    if (this.#newest === null && time !== null) this.#newest = { time, data: undefined };
  }

  /** @param {import("./values.js").Newest} newest */
  take({ position, time, data }) {
    if (!this.#isNews(position)) return;
    if (parsePosition(position)?.epoch !== parsePosition(this.#next)?.epoch) this.forget();
    [this.#next, this.#nextTime] = [position, time];
    this.#newest = { time, data };
    this.#isChanged = true;
  }

  /**
   * Shows the status of its source.
   * @param {string} name of the topic with that
   * @param {unknown} data of its newest event
   */
  takeStatus(name, data) {
    showStatus(this.#status, name, data);
  }

  /** Shows the newest value; returns false if that has not changed. */
  showValue() {
    if (!this.#isChanged || !this.#newest) return false;
    this.#isChanged = false;
    const { data } = this.#newest;
    this.#extend();
    const text = typeof data === "string" ? data : (JSON.stringify(data) ?? "–");
    setText(this.#field("newest"), cut(text));
    return true;
  }

  /**
   * Shows the facts about the topic. Call this once a second while the row is in view.
   * @param {number} serverNow
   * @param {boolean} isReadHere whether this page is one of its readers
   * @param {string} usual what most topics keep
   */
  showFacts(serverNow, isReadHere, usual) {
    this.#rate.look(this.#next, serverNow, this.#nextTime ?? serverNow);
    const { first, bytes, readers, keeps } = this.#kept;
    const count = (parsePosition(this.#next)?.offset ?? 0) - first + 1;
    const others = Math.max(0, readers - (isReadHere ? 1 : 0));
    setText(this.#field("rate"), rateInWords(this.#rate.perSecond));
    setText(this.#field("age"), this.#newest === null || count <= 0 ? "" : ageInWords(serverNow - this.#newest.time));
    setText(this.#field("kept"), count > 0 ? `${formatCount(count)} kept, ${formatBytes(bytes)}` : "empty");
    setText(this.#field("readers"), others === 0 ? "" : others === 1 ? "1 reader" : `${formatCount(others)} readers`);
    setText(this.#field("keeps"), keeps === "" || keeps === usual ? "" : `keeps ${keeps}`);
  }

  // --- the curve ---

  /**
   * Begins the curve with the events so far, once the newest one has numbers. Only then loads the code that draws it.
   * @param {(count: number, end: number) => Promise<PastEvent[]>} ask for so many events, up to the one with this offset
   */
  async begin(ask) {
    if (this.#trend || this.#asked) return;
    const asked = (this.#asked = Symbol());
    const [{ Trend, hasNumbers }, { Sparkline }] = await Promise.all([import("./trend.js"), import("../chart/sparkline.js")]);
    if (!hasNumbers(this.#newest?.data)) return void (this.#asked = null);
    const { first, bytes } = this.#kept;
    const end = parsePosition(this.#next)?.offset ?? 0;
    const fitting = Math.floor((HISTORY_BYTES * (end - first + 1)) / Math.max(1, bytes));
    const events = await ask(Math.max(1, Math.min(HISTORY_EVENTS, fitting)), end);
    if (this.#asked !== asked) return;
    this.#trend = new Trend();
    for (const { time, data } of events) this.#trend.add(time, data);
    this.#trendEnd = parsePosition(events.at(-1)?.position ?? "")?.offset ?? 0;
    this.#sparkline ??= new Sparkline(find(this.element, "canvas", HTMLCanvasElement), { paint: "bloom" });
    this.#extend();
  }

  /** Forgets the curve, since its topic is no longer read, or has begun anew. */
  forget() {
    this.#trend = this.#asked = null;
  }

  /** Adds the newest event to the curve, and draws it. */
  #extend() {
    const offset = parsePosition(this.#next)?.offset ?? 0;
    if (!this.#trend || !this.#newest) return;
    if (offset > this.#trendEnd) this.#trend.add(this.#newest.time, this.#newest.data);
    this.#trendEnd = Math.max(this.#trendEnd, offset);
    this.#trend.units = this.#units;
    const { curve } = this.#trend;
    if (!curve) return;
    this.#sparkline?.follow(curve.series, curve.from, curve.to);
    setText(this.#field("trend"), curve.caption);
  }

  /** @param {string} position */
  #isNews(position) {
    const [here, there] = [parsePosition(this.#next), parsePosition(position)];
    return !here || !there || here.epoch !== there.epoch || there.offset >= here.offset;
  }

  get name() {
    return this.#name;
  }
}

/** @param {number} ms */
function ageInWords(ms) {
  return ms < FRESH_MS ? "just now" : `${formatDuration(ms)} ago`;
}
