/** Rows of a table that are made from a template. A row stays the same element when its content changes. */
import { fieldsOf, find, putAfter } from "../element.js";

/**
 * @typedef {{ element: HTMLTableRowElement, field: (name: string) => HTMLElement }} Row
 */

/** A table whose rows have keys. */
export class Table {
  #body;
  #template;
  /** @type {Map<string, Row>} */
  #rows = new Map();

  /**
   * @param {string} section the selector of its section
   * @param {string} template that of the template of a row
   */
  constructor(section, template) {
    this.#body = find(document, `${section} tbody`, HTMLTableSectionElement);
    this.#template = find(document, template, HTMLTemplateElement);
  }

  /**
   * Shows a row for each of these, in their order, and removes all others.
   * @template T
   * @param {readonly T[]} all
   * @param {(one: T) => string} keyOf
   * @param {(row: Row, one: T) => void} fill
   */
  show(all, keyOf, fill) {
    const keys = new Set(all.map(keyOf));
    for (const [key, { element }] of this.#rows) {
      if (keys.has(key)) continue;
      element.remove();
      this.#rows.delete(key);
    }
    /** @type {Element | null} */
    let previous = null;
    for (const one of all) {
      const row = this.#rows.get(keyOf(one)) ?? this.#add(keyOf(one));
      putAfter(this.#body, row.element, previous);
      previous = row.element;
      fill(row, one);
    }
  }

  /**
   * @param {string} key
   * @returns {Row}
   */
  #add(key) {
    this.#body.append(this.#template.content.cloneNode(true));
    const element = /** @type {HTMLTableRowElement} */ (this.#body.lastElementChild);
    const row = { element, field: fieldsOf(element) };
    this.#rows.set(key, row);
    return row;
  }
}
