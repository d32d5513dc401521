/**
 * The last events and notices, newest first: as a list of JSON, or as a table when they are lines of columns. What is kept and what
 * is in the page is bounded, so that a page left open does not grow.
 */
import { timeInWords } from "../chart/axes.js";
import { find } from "../page/element.js";
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
 * @property {import("../transport/types.js").TopicEvent | null} event null for a notice
 * @property {string} words of a notice
 * @property {readonly string[] | null} cells of a line that is a row
 * @property {string} text to search, in lower case
 */

export class Log {
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

  /**
   * @param {HTMLElement} section
   * @param {() => readonly string[]} names of the columns
   */
  constructor(section, names) {
    this.#list = find(section, "#list", HTMLElement);
    this.#table = find(section, "#table", HTMLTableElement);
    this.#names = names;
    new IntersectionObserver(([entry]) => {
      this.#isSeen = entry?.isIntersecting ?? true;
      this.update();
    }).observe(section);
  }

  /**
   * @param {import("../transport/types.js").TopicEvent} event
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

  /** Shows what was added, if the log is in view. */
  update() {
    if (!this.#isSeen) return;
    const added = this.#added.filter((entry) => this.#isWanted(entry)).slice(-ROWS_MAX);
    this.#added = [];
    if (added.length === 0) return;
    const parent = this.#parent();
    parent.prepend(...added.reverse().map((entry) => this.#rowOf(entry)));
    while (parent.children.length > ROWS_MAX) parent.lastElementChild?.remove();
  }

  /** @param {Entry} entry */
  #keep(entry) {
    this.#kept.push(entry);
    this.#chars += entry.text.length;
    while (this.#kept.length > KEPT_MAX || this.#chars > KEPT_CHARS_MAX) this.#chars -= this.#kept.shift()?.text.length ?? 0;
    this.#added.push(entry);
    if (this.#added.length > 2 * ROWS_MAX) this.#added = this.#added.filter((each) => this.#isWanted(each)).slice(-ROWS_MAX);
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

  /** @param {Entry} entry */
  #rowOf(entry) {
    return this.#isTable ? tableRow(entry, this.#names().length + 1) : listItem(entry);
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

/** @param {Entry} entry */
function listItem({ event, words }) {
  const item = document.createElement("li");
  if (event === null) {
    item.className = "notice-line";
    item.textContent = words;
    return item;
  }
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.append(
    part("span", "when", timeInWords(event.time, PRECISE_SPAN_MS)),
    part("span", "offset", `#${event.position.slice(event.position.lastIndexOf("-") + 1)}`),
    part("code", "", inOneLine(event.data, LINE_CHARS_MAX)),
  );
  details.append(summary);
  // Most are never opened.
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(part("p", "small", `position ${event.position}`), part("pre", "", pretty(event.data)));
  });
  item.append(details);
  return item;
}

/**
 * @param {string} name
 * @param {string} kind
 * @param {string} text
 */
function part(name, kind, text) {
  const element = document.createElement(name);
  element.className = kind;
  element.textContent = text;
  return element;
}

/** @param {unknown} data */
export function pretty(data) {
  return typeof data === "string" ? data : (JSON.stringify(data, null, 2) ?? "");
}
