/** The box with the document: examples, a check of each change, and the place of the first fault. */
import { find, setText } from "../element.js";
import { check } from "./document.js";
import { EXAMPLES } from "./examples.js";
import { JsonError, lineOf, placeOf, readJson } from "../json.js";
import { sizeInWords } from "./tree.js";

/** @typedef {import("./document.js").Action} Action */
/** @typedef {import("../json.js").Span} Span */

export class Editor {
  /** The actions of the document, if it fits. @type {readonly Action[] | null} */
  actions = null;
  onchange = () => {};
  /** @type {(example: { pace: number }) => void} */
  onexample = () => {};
  #box;
  #choice;
  #said;
  #button;
  /** @type {Span | null} the place that the button shows */
  #span = null;

  /** @param {HTMLElement} section */
  constructor(section) {
    this.#box = find(section, "#text", HTMLTextAreaElement);
    this.#choice = find(section, "#example", HTMLSelectElement);
    this.#said = find(section, "#checked span", HTMLElement);
    this.#button = find(section, "#checked button", HTMLButtonElement);
    this.#choice.append(...EXAMPLES.map(({ name }, index) => new Option(name, String(index))), new Option("Your own", "own"));
    this.#choice.addEventListener("change", () => {
      const example = EXAMPLES[Number(this.#choice.value)];
      if (!example) return this.#box.focus();
      this.text = example.text;
      this.onexample(example);
      this.onchange();
    });
    this.#box.addEventListener("input", () => {
      this.#look();
      this.onchange();
    });
    this.#button.addEventListener("click", () => this.#select());
  }

  get text() {
    return this.#box.value;
  }

  set text(text) {
    this.#box.value = text;
    this.#look();
  }

  /**
   * Shows the reason why the server refused the document, and selects the place.
   * @param {string} detail
   * @param {string | null} pointer
   */
  refuse(detail, pointer) {
    this.#tell(detail, pointer, this.#spanOf(detail, pointer));
    this.#select();
  }

  /**
   * @param {string} detail
   * @param {string | null} pointer
   * @returns {Span | null}
   */
  #spanOf(detail, pointer) {
    try {
      if (pointer !== null) return placeOf(readJson(this.text).places, pointer);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
    }
    const [, line, column] = /line (\d+) column (\d+)/.exec(detail) ?? [];
    if (line === undefined) return null;
    const from = this.text.split("\n").slice(0, Number(line) - 1).reduce((sum, { length }) => sum + length + 1, 0) + Math.max(0, Number(column) - 1);
    return [from, from + 1];
  }

  #look() {
    const { actions, misfit } = check(this.text);
    this.actions = actions;
    const example = EXAMPLES.findIndex(({ text }) => text === this.text);
    this.#choice.value = example < 0 ? "own" : String(example);
    if (misfit) return this.#tell(misfit.detail, misfit.pointer, misfit.span);
    this.#tell("", null, null);
    setText(this.#said, `${sizeInWords(actions)}.`);
  }

  /**
   * @param {string} detail
   * @param {string | null} pointer
   * @param {Span | null} span
   */
  #tell(detail, pointer, span) {
    this.#span = span;
    const isBad = detail !== "";
    const { line, column } = lineOf(this.text, span?.[0] ?? 0);
    const place = [...(span ? [`line ${line}, column ${column}`] : []), ...(pointer ? [pointer] : [])].join(", ");
    setText(this.#said, isBad ? `${place}${place === "" ? "" : ": "}${detail}` : "");
    this.#said.classList.toggle("failure", isBad);
    this.#box.setAttribute("aria-invalid", String(isBad));
    this.#button.hidden = !span;
  }

  #select() {
    const span = this.#span;
    if (!span) return;
    this.#box.focus();
    this.#box.setSelectionRange(...span);
    // The browser shows where the selection is only while somebody writes.
    const before = this.#rows(this.text.slice(0, span[0]));
    this.#box.scrollTop = ((before - 3) / this.#rows(this.text)) * this.#box.scrollHeight;
  }

  /** Returns about the rows that a text takes. A long line takes several. @param {string} text */
  #rows(text) {
    const context = document.createElement("canvas").getContext("2d");
    if (context) context.font = getComputedStyle(this.#box).font;
    const columns = Math.max(1, Math.floor(this.#box.clientWidth / (context?.measureText("m").width || 8)));
    return text.split("\n").reduce((sum, { length }) => sum + Math.max(1, Math.ceil(length / columns)), 0);
  }
}
