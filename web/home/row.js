/** One topic on Home: its newest value, how fast it grows, what it keeps, who reads it, and a command to read it. */
import { following, offerCopy } from "../page/commands.js";
import { fieldsOf, find, setText } from "../page/element.js";
import { Rate, rateInWords } from "../page/rates.js";
import { at } from "../page/site.js";
import { formatBytes, formatCount, formatDuration } from "../page/words.js";
import { parsePosition } from "../client.js";

const VALUE_CHARS_MAX = 300;
/** The age up to which an event has just come. */
const FRESH_MS = 1500;

export class Row {
  isSeen = false;
  #name;
  #field;
  #rate = new Rate();
  #next = "";
  #kept = { first: 1, bytes: 0, readers: 0 };
  /** @type {{ time: number, data: unknown } | null} */
  #newest = null;
  #isChanged = false;

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
    find(this.element, "h2", HTMLElement).append(link);
    this.#field = fieldsOf(this.element);
    this.#field("command").textContent = following(link.href);
    offerCopy(find(this.element, "button", HTMLButtonElement), this.#field("command"), name);
  }

  /** @param {import("./index.js").ListedTopic} listed */
  list({ next, first, bytes, readers, time }) {
    this.#kept = { first, bytes, readers };
    if (this.#isNews(next)) this.#next = next;
    if (this.#newest === null && time !== null) this.#newest = { time, data: undefined };
  }

  /** @param {import("./values.js").Newest} newest */
  take({ position, time, data }) {
    if (!this.#isNews(position)) return;
    this.#next = position;
    this.#newest = { time, data };
    this.#isChanged = true;
  }

  /** Shows the newest value, if it is another. */
  showValue() {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    const { data } = this.#newest ?? {};
    const text = typeof data === "string" ? data : (JSON.stringify(data) ?? "–");
    setText(this.#field("newest"), text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text);
  }

  /**
   * Shows what is known about it. To be called once a second, while it is in view.
   * @param {number} serverNow
   * @param {boolean} isReadHere whether this page is one of its readers
   */
  showFacts(serverNow, isReadHere) {
    this.#rate.look(this.#next, serverNow);
    const { first, bytes, readers } = this.#kept;
    const count = (parsePosition(this.#next)?.offset ?? 0) - first + 1;
    const others = Math.max(0, readers - (isReadHere ? 1 : 0));
    setText(this.#field("rate"), rateInWords(this.#rate.perSecond));
    setText(this.#field("age"), this.#newest === null || count <= 0 ? "" : ageInWords(serverNow - this.#newest.time));
    setText(this.#field("kept"), count > 0 ? `${formatCount(count)} kept, ${formatBytes(bytes)}` : "empty");
    setText(this.#field("readers"), others === 0 ? "" : others === 1 ? "1 reader" : `${formatCount(others)} readers`);
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
