/**
 * The last events and notices, newest first: as a list of JSON, or as a table when they are lines of columns. What is kept and what
 * is in the page is bounded, so that a page left open does not grow.
 */
import { timeInWords } from "../../chart/axes.js";
import { find, part } from "../element.js";
import { numberOf } from "./columns.js";
import { inOneLine } from "./words.js";

export const KEPT_MAX = 1000;
/** The characters of kept events: those of a topic may have 64 KiB each. */
const KEPT_CHARS_MAX = 8_000_000;
const ROWS_MAX = 60;
const LINE_CHARS_MAX = 400;
/** Times are shown with milliseconds. */
const PRECISE_SPAN_MS = 1000;

/**
 * @typedef {object} Entry
 * @property {import("../../transport/types.js").TopicEvent | null} event null for a notice
 * @property {string} words of a notice
 * @property {readonly string[] | null} cells of a line that is a row
 * @property {string} text to search, in lower case
 */

export class Log {
  #box;
  #list;
  #table;
  #names;
  /** @type {Entry[]} oldest first */
  #kept = [];
  /** @type {Entry[]} not shown yet */
  #added = [];
  #chars = 0;
  #isSeen = false;
  #wanted = "";
  #isTable = false;
  #keptMax = KEPT_MAX;
  #rowsMax = ROWS_MAX;
  /** @type {WeakMap<Element, Entry>} */
  #shown = new WeakMap();

  /**
   * @param {HTMLElement} section
   * @param {() => readonly string[]} names of the columns
   */
  constructor(section, names) {
    this.#box = find(section, ".scroll", HTMLElement);
    this.#list = find(section, "#list", HTMLElement);
    this.#table = find(section, "#table", HTMLTableElement);
    this.#names = names;
    // It does not bubble.
    this.#list.addEventListener("toggle", (event) => this.#open(event), { capture: true });
    this.#box.addEventListener("keydown", (event) => this.#step(event));
    const follow = (/** @type {IntersectionObserverEntry[]} */ entries) => {
      this.#isSeen = entries.at(-1)?.isIntersecting ?? true;
      this.update();
    };
    // Rows are there before they are scrolled to.
    new IntersectionObserver(follow, { rootMargin: "50%" }).observe(section);
  }

  /**
   * @param {import("../../transport/types.js").TopicEvent} event
   * @param {readonly string[] | null} cells
   */
  add(event, cells) {
    const { data } = event;
    const text = (typeof data === "string" ? data : (JSON.stringify(data) ?? "")).toLowerCase();
    this.#keep({ event, words: "", cells, text });
  }

  /** @param {string} words */
  note(words) {
    this.#keep({ event: null, words, cells: null, text: "" });
  }

  /**
   * Keeps, and shows, more than the log of a topic that goes on for ever.
   * @param {number} keptMax
   * @param {number} rowsMax
   */
  hold(keptMax, rowsMax) {
    if (this.#keptMax === keptMax && this.#rowsMax === rowsMax) return;
    this.#keptMax = keptMax;
    this.#rowsMax = rowsMax;
    this.#showAll();
  }

  /** The entries that can be shown at once, without a filter. */
  get shown() {
    return Math.min(this.#kept.length, this.#rowsMax);
  }

  clear() {
    this.#kept = [];
    this.#chars = 0;
    this.#showAll();
  }

  /** @param {string} wanted what an event must contain to be shown */
  filter(wanted) {
    this.#wanted = wanted.trim().toLowerCase();
    this.#showAll();
  }

  /** @param {boolean} isTable */
  showAsTable(isTable) {
    if (this.#isTable === isTable) return;
    this.#isTable = isTable;
    this.#showAll();
  }

  /** Shows what was added, if the log is in view. The rows at the end become the new ones: nothing is made anew in a busy topic. */
  update() {
    if (!this.#isSeen) return;
    const added = this.#added.filter((entry) => this.#isWanted(entry)).slice(-this.#rowsMax);
    this.#added = [];
    if (added.length === 0) return;
    const parent = this.#parent();
    const spare = [...parent.children].slice(Math.max(0, this.#rowsMax - added.length));
    // If the focus is on a row that leaves, it goes to the list.
    if (spare.some((row) => row.contains(document.activeElement))) this.#box.focus({ preventScroll: true });
    parent.prepend(...added.reverse().map((entry) => this.#rowOf(entry, spare.pop())));
    for (const row of spare) row.remove();
    parent.parentElement?.classList.toggle("full", parent.children.length >= this.#rowsMax);
  }

  /** @param {Entry} entry */
  #keep(entry) {
    this.#kept.push(entry);
    this.#chars += entry.text.length;
    while (this.#kept.length > this.#keptMax || this.#chars > KEPT_CHARS_MAX) this.#chars -= this.#kept.shift()?.text.length ?? 0;
    this.#added.push(entry);
    if (this.#added.length > 2 * this.#rowsMax) this.#added = this.#added.filter((each) => this.#isWanted(each)).slice(-this.#rowsMax);
  }

  /** @param {Entry} entry */
  #isWanted({ event, text }) {
    return event === null || text.includes(this.#wanted);
  }

  #parent() {
    return this.#isTable ? find(this.#table, "tbody", HTMLElement) : this.#list;
  }

  #showAll() {
    this.#list.replaceChildren();
    find(this.#table, "tbody", HTMLElement).replaceChildren();
    this.#list.hidden = this.#isTable;
    this.#table.hidden = !this.#isTable;
    if (this.#isTable) this.#showHead();
    this.#added = [...this.#kept];
    this.update();
  }

  #showHead() {
    const heads = ["time", ...this.#names()].map((name) => {
      const head = document.createElement("th");
      head.scope = "col";
      head.textContent = name;
      return head;
    });
    find(this.#table, "thead tr", HTMLElement).replaceChildren(...heads);
  }

  /**
   * @param {Entry} entry
   * @param {Element} [spare] a row that is no longer needed
   */
  #rowOf(entry, spare) {
    if (this.#isTable) {
      spare?.remove();
      return tableRow(entry, this.#names().length + 1);
    }
    const row = listItem(entry, spare);
    this.#shown.set(row, entry);
    return row;
  }

  /** The list is one stop of the Tab key: from the box, the arrow keys go to its rows, and from one to the next. @param {KeyboardEvent} event */
  #step(event) {
    const rows = [...this.#list.querySelectorAll("summary")];
    const here = rows.findIndex((row) => row === document.activeElement);
    const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: rows.length - 1 }[event.key];
    const there = next === -1 ? this.#box : rows[next ?? NaN];
    if (!there || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    there.focus();
  }

  /** Most events are never opened. @param {Event} event */
  #open({ target }) {
    const details = target instanceof HTMLDetailsElement ? target : null;
    const event = details?.parentElement && this.#shown.get(details.parentElement)?.event;
    if (!details?.open || !event || details.children.length > 1) return;
    details.append(part("p", "small", `position ${event.position}`), part("pre", "", pretty(event.data)));
  }
}

/**
 * @param {Entry} entry
 * @param {number} width of the table
 */
function tableRow({ event, words, cells }, width) {
  const row = document.createElement("tr");
  if (event !== null) row.append(cell("th", timeInWords(event.time, PRECISE_SPAN_MS)));
  if (event !== null && cells !== null && cells.length === width - 1) {
    row.append(...cells.map((text) => cell("td", text, numberOf(text) === null ? "text" : "")));
    return row;
  }
  const whole = cell("td", event === null ? words : inOneLine(event.data, LINE_CHARS_MAX), event === null ? "notice-line" : "text");
  whole.colSpan = event === null ? width : width - 1;
  row.append(whole);
  return row;
}

/**
 * @param {"td" | "th"} name
 * @param {string} text
 * @param {string} [kind]
 */
function cell(name, text, kind = "") {
  const element = document.createElement(name);
  if (name === "th") element.scope = "row";
  element.textContent = text;
  element.className = kind;
  return element;
}

/**
 * @param {Entry} entry
 * @param {Element} [spare]
 */
function listItem({ event, words }, spare) {
  if (event === null) {
    spare?.remove();
    const notice = document.createElement("li");
    notice.className = "notice-line";
    notice.textContent = words;
    return notice;
  }
  const texts = [
    timeInWords(event.time, PRECISE_SPAN_MS),
    `#${event.position.slice(event.position.lastIndexOf("-") + 1)}`,
    inOneLine(event.data, LINE_CHARS_MAX),
  ];
  const parts = spare?.querySelector("details:not([open]):has(> :only-child) > summary")?.children;
  if (spare && parts?.length === texts.length) {
    texts.forEach((text, index) => parts[index]?.firstChild && (parts[index].firstChild.nodeValue = text));
    return spare;
  }
  spare?.remove();
  const item = document.createElement("li");
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.tabIndex = -1;
  summary.append(...["when", "offset", ""].map((kind, index) => part(kind ? "span" : "code", kind, texts[index] || " ")));
  details.append(summary);
  item.append(details);
  return item;
}

/** @param {unknown} data */
export function pretty(data) {
  return typeof data === "string" ? data : (JSON.stringify(data, null, 2) ?? "");
}
