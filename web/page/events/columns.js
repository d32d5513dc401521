/**
 * Lines of text that are rows of a table, as many programs print them. Pure.
 *
 * The names of the columns come from a line without numbers that has as many cells as the rows.
 */

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?%?$/i;
/** The number of successive rows of the same width that make a table. */
const ALIKE_MIN = 3;
const COLUMNS_MAX = 64;

/**
 * Returns the cells of a line, which is split at tabs, semicolons or commas if it has some, otherwise at white space.
 * @param {string} line
 */
export function cellsOf(line) {
  const separator = ["\t", ";", ","].find((each) => line.includes(each));
  const cells = separator === undefined ? line.trim().split(/\s+/) : line.split(separator).map((cell) => cell.trim());
  return cells.length === 1 && cells[0] === "" ? [] : cells;
}

/** @param {string} cell */
export function numberOf(cell) {
  const number = NUMBER.test(cell) ? Number.parseFloat(cell) : NaN;
  return Number.isFinite(number) ? number : null;
}

export class Columns {
  #width = 0;
  #alike = 0;
  /** @type {string[]} the last line that may be a head */
  #head = [];
  #renamed;

  /**
   * @param {(names: [string, string][]) => void} renamed rows came before their first head: each name so far, and the one that it has now
   * @param {readonly string[]} head a line that was the head of such rows
   */
  constructor(renamed = () => {}, head = []) {
    this.#renamed = renamed;
    this.#head = [...head];
  }

  /** The last line that may be a head; empty without one. @returns {readonly string[]} */
  get head() {
    return this.#head;
  }

  /** True if the last lines were rows of a table. */
  get isTable() {
    return this.#alike >= ALIKE_MIN;
  }

  clear() {
    this.#width = this.#alike = 0;
    this.#head = [];
  }

  /** @returns {string[]} the names of the columns */
  get names() {
    return this.#head.length === this.#width ? this.#head : Array.from({ length: this.#width }, (_, index) => `column ${index + 1}`);
  }

  /**
   * @param {string} line
   * @returns {string[] | null} the cells of a row; null if the line is none
   */
  row(line) {
    const cells = cellsOf(line);
    if (cells.length < 2 || cells.length > COLUMNS_MAX) return null;
    if (cells.every((cell) => numberOf(cell) === null)) {
      if (new Set(cells).size === cells.length) this.#name(cells);
      return null;
    }
    this.#alike = cells.length === this.#width ? this.#alike + 1 : 1;
    this.#width = cells.length;
    return cells;
  }

  /** @param {string[]} head */
  #name(head) {
    const { names } = this;
    const isFirst = this.#head.length !== this.#width && head.length === this.#width;
    this.#head = head;
    if (isFirst) this.#renamed(names.map((name, index) => [name, String(head[index])]));
  }

  /**
   * Returns the numbers of a row with the names of their columns.
   * @param {readonly string[]} cells
   * @returns {[string, number | null][]}
   */
  numbers(cells) {
    const names = this.names;
    return cells.flatMap((cell, index) => {
      const number = numberOf(cell);
      return number === null ? [] : [/** @type {[string, number]} */ ([String(names[index]), number])];
    });
  }
}
