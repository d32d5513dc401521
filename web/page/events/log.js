/**
 * The last events and notices, newest first: as a list of JSON, or as a table when they are lines of columns. The number of kept events and
 * of rows is limited, so that a page that stays open does not grow.
 */
import { timeInWords } from "../../chart/axes.js";
import { find, part } from "../element.js";
import { numberOf } from "./columns.js";
import { inOneLine } from "./words.js";

export const KEPT_MAX = 1000;
/** The most characters of the kept events. An event of a topic may have 64 KiB. */
const KEPT_CHARS_MAX = 8_000_000;
/** The factor by which both limits may be exceeded for a moment. To forget each event alone is slow in a long log. */
const SURPLUS = 1.05;
export const ROWS_MAX = 60;
const LINE_CHARS_MAX = 400;
/** The most rows that move at once. */
const MOVED_MAX = 4;
/** The rows that are rewritten in the first frame: those that are seen without scrolling. */
const REWRITTEN_MAX = 20;
/** The span for the format of times, so short that they have milliseconds. */
const PRECISE_SPAN_MS = 1000;

/**
 * @typedef {object} Entry
 * @property {import("../../transport/types.js").TopicEvent | null} event null for a notice
 * @property {string} words of a notice
 * @property {readonly string[] | null} cells of a line that is a row
 * @property {string} text to search, in lower case
 */

export class Log {
  #section;
  #box;
  #nothing = part("p", "small", "None of the events here has this in it.");
  #list;
  #table;
  #names;
  /** @type {Entry[]} oldest first */
  #kept = [];
  /** The entries that fit the filter. Without a filter, this is the same array. */
  #fitting = this.#kept;
  /** @type {Entry[]} not shown yet */
  #added = [];
  #chars = 0;
  #isSeen = false;
  /** True if the log has to be scrolled to the oldest event once it is seen. */
  #isAtOldest = false;
  #wanted = "";
  #isTable = false;
  /** The columns to which the table is scrolled. @type {readonly string[]} */
  #revealed = [];
  /** Writes the rows that wait for another frame. */
  #rewriteRest = () => {};
  #keptMax = KEPT_MAX;
  #charsMax;
  #hasForgotten = false;
  /** The names in the head of the table. */
  #head = "";
  #rowsMax = ROWS_MAX;
  /** The number of newer entries that fit the filter and are left out while the list shows earlier ones. */
  #later = 0;
  /** @type {WeakMap<Element, Entry>} */
  #shown = new WeakMap();

  /**
   * @param {HTMLElement} section
   * @param {() => readonly string[]} names of the columns
   * @param {number} [charsMax] of the kept events
   */
  constructor(section, names, charsMax = KEPT_CHARS_MAX) {
    this.#charsMax = charsMax;
    this.#section = section;
    this.#box = find(section, ".scroll", HTMLElement);
    this.#list = find(section, "#list", HTMLElement);
    this.#table = find(section, "#table", HTMLTableElement);
    this.#names = names;
    this.#nothing.hidden = true;
    this.#nothing.role = "status";
    this.#box.before(this.#nothing);
    // It does not bubble.
    this.#list.addEventListener("toggle", (event) => this.#open(event), { capture: true });
    this.#box.addEventListener("keydown", (event) => this.#step(event));
    const follow = (/** @type {IntersectionObserverEntry[]} */ entries) => this.#see(entries.at(-1)?.isIntersecting ?? true);
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
   * Sets the most entries that are kept and that are shown. If more are shown now, the rows in the list stay.
   * @param {number} keptMax
   * @param {number} rowsMax
   */
  hold(keptMax, rowsMax) {
    if (this.#keptMax === keptMax && this.#rowsMax === rowsMax) return;
    this.update();
    const isLonger = this.#isSeen && rowsMax >= this.#rowsMax;
    this.#keptMax = keptMax;
    this.#rowsMax = rowsMax;
    if (!isLonger) return this.#showAll();
    const [parent, { from, to }] = [this.#parent(), this.#range];
    parent.append(...this.#fitting.slice(from, Math.max(from, to - parent.children.length)).reverse().map((entry) => this.#rowOf(entry)));
    this.#fit();
  }

  /** Checks at once whether the log is in view. A page calls this when it is shown, since the observer would report it a frame later. */
  look() {
    const { top, bottom } = this.#section.getBoundingClientRect();
    this.#see(top < innerHeight && bottom > 0);
  }

  /** @param {boolean} isSeen */
  #see(isSeen) {
    if (this.#isSeen === isSeen) return;
    this.#isSeen = isSeen;
    this.update();
    this.finish();
    if (this.#isAtOldest && isSeen) this.showOldest();
  }

  /** Scrolls to the oldest event, as soon as the log is seen. */
  showOldest() {
    this.#isAtOldest = !this.#isSeen;
    this.#box.scrollTop = this.#box.scrollHeight;
  }

  /** The positions of the first and the last event in the list, and the number of all that fit the filter. */
  get listed() {
    const { from, to } = this.#range;
    const events = this.#fitting.slice(from, to).flatMap(({ event }) => event ?? []);
    const fitting = this.#fitting.filter(({ event }) => event !== null).length;
    return { count: events.length, first: events.at(0)?.position, last: events.at(-1)?.position, fitting, isFiltered: this.#wanted !== "" };
  }

  /** The position of the first event that is kept; undefined if none was forgotten. */
  get keptFrom() {
    return this.#hasForgotten ? this.#kept.find(({ event }) => event !== null)?.event?.position : undefined;
  }

  /** The time of the first event that is kept; null without one. */
  get oldestTime() {
    return this.#kept.find(({ event }) => event !== null)?.event?.time ?? null;
  }

  clear() {
    this.#kept = [];
    this.#fitting = this.#wanted === "" ? this.#kept : [];
    this.#chars = this.#later = 0;
    this.#hasForgotten = false;
    this.#isAtOldest = false;
    this.#showAll();
  }

  /** @param {string} wanted what an event must contain to be shown */
  filter(wanted) {
    this.#wanted = wanted.trim().toLowerCase();
    this.#fitting = this.#wanted === "" ? this.#kept : this.#kept.filter((entry) => this.#isWanted(entry));
    this.#later = 0;
    this.#showAll();
  }

  /** The numbers of entries that fit the filter and are before or after those in the list. */
  get beyond() {
    const { from, to } = this.#range;
    return { earlier: from, later: this.#fitting.length - to };
  }

  /** The range of the listed entries among those that fit the filter. */
  get #range() {
    const to = Math.max(0, this.#fitting.length - this.#later);
    return { from: Math.max(0, to - this.#rowsMax), to };
  }

  /** Lists the entries before or after those in the list, or the newest ones. @param {"earlier" | "later" | "newest"} which */
  turn(which) {
    const { later } = this.beyond;
    this.#later = { earlier: later + this.#rowsMax, later: Math.max(0, later - this.#rowsMax), newest: 0 }[which];
    this.#showAll();
    this.#box.scrollTop = 0;
  }

  /** @param {boolean} isTable */
  showAsTable(isTable) {
    if (this.#isTable === isTable) return;
    this.#isTable = isTable;
    this.#showAll();
  }

  /** Scrolls the table to the first of these columns as soon as it is seen, unless the user has scrolled it. @param {readonly string[]} names */
  reveal(names) {
    this.#revealed = names;
  }

  /**
   * Shows the added entries if the log is in view. In a busy topic, no row is made anew: the last rows move to the top, or all rows stay
   * and get new words. Those out of view wait for `finish`.
   */
  update() {
    if (!this.#isSeen) return;
    this.finish();
    const added = this.#added.filter((entry) => this.#isWanted(entry)).slice(-this.#rowsMax);
    this.#added = [];
    if (added.length === 0) return;
    const parent = this.#parent();
    if (this.#isTable) this.#showHead();
    if (added.length > MOVED_MAX && !this.#isTable && this.#rewrite(added)) return;
    const spare = [...parent.children].slice(Math.max(0, this.#rowsMax - added.length));
    // If the focus is on a row that leaves, it goes to the list.
    if (spare.some((row) => row.contains(document.activeElement))) this.#box.focus({ preventScroll: true });
    parent.prepend(...added.reverse().map((entry) => this.#rowOf(entry, spare.pop())));
    for (const row of spare) row.remove();
    this.#fit();
    if (this.#isTable) this.#reveal();
  }

  /** Writes the rows that `update` has left for another frame. */
  finish() {
    this.#rewriteRest();
    this.#rewriteRest = () => {};
  }

  /**
   * Writes new words into the rows of a full list. Returns false if a row is not like the others, or if the user reads: a row has the focus
   * or a selection, or the list was scrolled. A row that moves costs twice as much as one that stays, since the browser styles it anew.
   * @param {readonly Entry[]} added
   */
  #rewrite(added) {
    const rows = [...this.#list.children];
    if (rows.length < this.#rowsMax || this.#box.scrollTop > 0 || this.#list.contains(document.activeElement) || getSelection()?.containsNode(this.#list, true)) return false;
    const entries = [...[...added].reverse(), ...rows.map((row) => this.#shown.get(row))].slice(0, rows.length);
    if (!entries.every((entry) => entry?.event) || !rows.every((row) => textsOf(row))) return false;
    const rewrite = (/** @type {number} */ from, /** @type {number} */ to) =>
      rows.slice(from, to).forEach((row, index) => {
        const [entry, texts] = [entries[from + index], textsOf(row)];
        if (!entry?.event || !texts) return;
        write(texts, textOf(entry.event));
        this.#shown.set(row, entry);
      });
    rewrite(0, REWRITTEN_MAX);
    this.#rewriteRest = () => rewrite(REWRITTEN_MAX, rows.length);
    return true;
  }

  #reveal() {
    const [time, ...heads] = /** @type {NodeListOf<HTMLElement>} */ (this.#table.querySelectorAll("thead th"));
    const head = heads.find(({ textContent }) => this.#revealed.includes(textContent ?? ""));
    const { scrollLeft, clientWidth } = this.#box;
    if (!time || !head || clientWidth === 0) return;
    this.#revealed = [];
    if (scrollLeft === 0 && head.offsetLeft + head.offsetWidth > clientWidth) this.#box.scrollLeft = head.offsetLeft - time.offsetWidth;
  }

  /** @param {Entry} entry */
  #keep(entry) {
    this.#kept.push(entry);
    this.#chars += entry.text.length;
    if (this.#fitting !== this.#kept && this.#isWanted(entry)) this.#fitting.push(entry);
    const isLater = this.#later > 0;
    if (isLater && this.#isWanted(entry)) this.#later += 1;
    if (this.#kept.length > this.#keptMax * SURPLUS || this.#chars > this.#charsMax * SURPLUS) this.#forget();
    if (isLater) return;
    this.#added.push(entry);
    if (this.#added.length > 2 * this.#rowsMax) this.#added = this.#added.filter((each) => this.#isWanted(each)).slice(-this.#rowsMax);
  }

  /** Forgets the oldest entries that are too many. */
  #forget() {
    let count = 0;
    for (const { text } of this.#kept) {
      if (this.#kept.length - count <= this.#keptMax && this.#chars <= this.#charsMax) break;
      this.#chars -= text.length;
      count += 1;
    }
    const gone = this.#kept.splice(0, count);
    if (this.#fitting !== this.#kept) this.#fitting.splice(0, gone.filter((entry) => this.#isWanted(entry)).length);
    this.#hasForgotten = true;
    const laterMax = Math.max(0, this.#fitting.length - this.#rowsMax);
    if (this.#later <= laterMax) return;
    this.#later = laterMax;
    this.#showAll();
  }

  /** @param {Entry} entry */
  #isWanted({ event, text }) {
    return event === null || text.includes(this.#wanted);
  }

  #parent() {
    return this.#isTable ? find(this.#table, "tbody", HTMLElement) : this.#list;
  }

  #showAll() {
    if (this.#parent().contains(document.activeElement)) this.#box.focus({ preventScroll: true });
    this.#list.replaceChildren();
    find(this.#table, "tbody", HTMLElement).replaceChildren();
    this.#list.hidden = this.#isTable;
    this.#table.hidden = !this.#isTable;
    if (this.#isTable) this.#showHead();
    const { from, to } = this.#range;
    this.#added = this.#fitting.slice(from, to);
    this.update();
    this.#fit();
  }

  /** Makes the box as high as its content. If no entry fits the filter, shows a sentence about that. */
  #fit() {
    const rows = this.#parent().children.length;
    this.#box.classList.toggle("full", rows >= this.#rowsMax);
    this.#nothing.hidden = this.#wanted === "" || rows > 0;
  }

  #showHead() {
    const names = ["time", ...this.#names()];
    if (names.join("\n") === this.#head) return;
    this.#head = names.join("\n");
    const heads = names.map((name) => {
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

  /**
   * Moves with the arrow keys, from the box to its rows and from row to row. The list is a single stop of the Tab key.
   * @param {KeyboardEvent} event
   */
  #step(event) {
    const rows = [...this.#list.querySelectorAll("summary")];
    const here = rows.findIndex((row) => row === document.activeElement);
    const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: rows.length - 1 }[event.key];
    const there = next === -1 ? this.#box : rows[next ?? NaN];
    if (!there || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    there.focus();
  }

  /** Makes the content of an event when it is opened, since most events never are. @param {Event} event */
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
  const texts = textOf(event);
  const parts = spare && textsOf(spare);
  if (parts) {
    write(parts, texts);
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

/** @param {import("../../transport/types.js").TopicEvent} event */
function textOf({ time, position, data }) {
  return [timeInWords(time, PRECISE_SPAN_MS), `#${position.slice(position.lastIndexOf("-") + 1)}`, inOneLine(data, LINE_CHARS_MAX)];
}

/**
 * Returns the text nodes in the row of an event that was never opened; null for any other row.
 * @param {Element} row
 */
function textsOf(row) {
  const details = row.firstElementChild;
  if (!(details instanceof HTMLDetailsElement) || details.open || details.children.length > 1) return null;
  return [...(details.firstElementChild?.children ?? [])].map(({ firstChild }) => firstChild);
}

/**
 * @param {readonly (Node | null)[]} places
 * @param {readonly string[]} texts
 */
function write(places, texts) {
  places.forEach((place, index) => place && (place.nodeValue = texts[index] || " "));
}

/** @param {unknown} data */
export function pretty(data) {
  return typeof data === "string" ? data : (JSON.stringify(data, null, 2) ?? "");
}
