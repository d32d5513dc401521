/** The fields of the document, built from its description. Each has its unit, its allowed range and the range of the model. */
import { part, setText } from "../element.js";
import { parseNumber } from "../words.js";
import { css, serverColour } from "./colours.js";
import { MODELS, faultOf, fieldsIn, groupsOf, isOutside, nameOf, rangeInWords, transmitterFields } from "./document.js";
import { get, set } from "./pointers.js";

/**
 * @typedef {object} Hands
 * @property {() => import("./document.js").Coverage} document
 * @property {(pointer: string) => void} changed
 * @property {(index: number) => void} remove
 * @property {(index: number) => void} select
 */

/** The choices that change which fields there are. */
const SHAPING = /^\/(model|transmitters\/\d+\/antenna\/type)$/;

export class Form {
  #model;
  #transmitters;
  #groups;
  #hands;
  /** @type {Map<string, { input: HTMLInputElement | HTMLSelectElement, hint: HTMLElement, field: import("./document.js").Field }>} by pointer */
  #rows = new Map();
  /** The fields that the service has refused, by pointer. @type {ReadonlySet<string | null>} */
  #refused = new Set();

  /**
   * @param {{ model: HTMLElement, transmitters: HTMLElement, groups: HTMLElement }} places
   * @param {Hands} hands
   */
  constructor({ model, transmitters, groups }, hands) {
    this.#model = model;
    this.#transmitters = transmitters;
    this.#groups = groups;
    this.#hands = hands;
  }

  /** Builds all fields anew. The field with the focus keeps it. */
  build() {
    const document = this.#hands.document();
    const focused = [...this.#rows].find(([, { input }]) => input === input.ownerDocument.activeElement)?.[0];
    this.#rows.clear();
    const isOne = document.transmitters.length === 1;
    this.#transmitters.replaceChildren(
      ...document.transmitters.map((transmitter, index) => {
        const name = nameOf(transmitter, index);
        const group = this.#group(`Transmitter ${name}`, transmitterFields(document, index));
        group.dataset.transmitter = String(index);
        group.style.setProperty("--server", css(serverColour(index)));
        group.addEventListener("focusin", () => this.#hands.select(index));
        if (isOne) return group;
        const remove = part("button", "", "Remove");
        remove.type = "button";
        remove.setAttribute("aria-label", `Remove transmitter ${name}`);
        remove.addEventListener("click", () => this.#hands.remove(index));
        group.append(remove);
        return group;
      }),
    );
    const [model, ...others] = groupsOf(document).map(({ title, fields }) => this.#group(title, fields));
    this.#model.replaceChildren(...(model ? [model] : []));
    this.#groups.replaceChildren(...others);
    this.update();
    if (focused !== undefined) this.#rows.get(focused)?.input.focus();
  }

  /** Shows the values of the document, and their faults. */
  update() {
    const document = this.#hands.document();
    for (const field of fieldsIn(document)) {
      const row = this.#rows.get(field.pointer);
      // The places of transmitters have the range of the area, while it is one.
      if (row && Number(field.min) < Number(field.max)) row.field = field;
    }
    for (const [pointer, { input, hint, field }] of this.#rows) {
      const value = get(document, pointer);
      // A number that is being typed stays as it is.
      if (input !== input.ownerDocument.activeElement || input instanceof HTMLSelectElement) input.value = String(value ?? (input instanceof HTMLSelectElement ? field.usual : undefined) ?? "");
      const fault = faultOf(field, value) ?? (this.#refused.has(pointer) ? "Refused, see above." : null);
      const doubt = fault === null && field.kind === "number" && isOutside(field, value) && field.valid ? `The model is made for ${rangeInWords(field.valid, field.unit ?? "")}.` : null;
      input.setAttribute("aria-invalid", String(fault !== null));
      hint.className = `small hint${fault ? " failure" : doubt ? " doubt" : ""}`;
      setText(hint, fault ?? doubt ?? usualHint(field, document.model));
    }
  }

  /** Returns the first fault of the values; null if there is none. */
  fault() {
    const document = this.#hands.document();
    for (const [pointer, { field }] of this.#rows) {
      const fault = faultOf(field, get(document, pointer));
      if (fault !== null) return { pointer, fault };
    }
    return null;
  }

  /** Marks these fields alone as refused. @param {readonly (string | null)[]} pointers */
  refuse(pointers) {
    this.#refused = new Set(pointers);
    this.update();
  }

  /** Returns the label of a field; undefined if there is no such field. @param {string | null} pointer */
  labelOf(pointer) {
    return this.#rows.get(pointer ?? "")?.field.label;
  }

  /**
   * @param {string} title
   * @param {readonly import("./document.js").Field[]} fields
   */
  #group(title, fields) {
    const group = part("fieldset", "", "");
    const rows = part("div", "fields", "");
    rows.append(...fields.map((field) => this.#row(field)));
    group.append(part("legend", "", title), rows);
    return group;
  }

  /** @param {import("./document.js").Field} field */
  #row(field) {
    const { pointer, label, unit, kind, choices = [] } = field;
    const row = part("p", kind === "choice" || kind === "text" ? "field wide" : "field", "");
    const input = kind === "choice" ? part("select", "", "") : part("input", "", "");
    const id = `field${pointer.replaceAll("/", "-")}`;
    input.id = id;
    if (input instanceof HTMLSelectElement) input.append(...choices.map(([value, words]) => new Option(words, value)));
    else if (kind === "number") Object.assign(input, { type: "text", inputMode: "decimal", autocomplete: "off", placeholder: String(field.usual ?? "") });
    else Object.assign(input, { type: "text", maxLength: 100, autocomplete: "off", placeholder: String(field.usual ?? "") });
    const name = part("label", "", label);
    name.htmlFor = id;
    const hint = part("span", "small hint", "");
    hint.id = `${id}-hint`;
    input.setAttribute("aria-describedby", hint.id);
    input.addEventListener("input", () => this.#take(field, input.value));
    row.append(name, input, ...(unit ? [part("span", "small unit", unit)] : []), hint);
    this.#rows.set(pointer, { input, hint, field });
    return row;
  }

  /**
   * @param {import("./document.js").Field} field
   * @param {string} text
   */
  #take(field, text) {
    const { pointer, kind } = field;
    const typed = text.trim();
    const number = parseNumber(typed, field.unit === "°");
    // What is no number stays as it is, and is refused.
    const value = typed === "" ? undefined : kind === "number" && !Number.isNaN(number) ? number : typed;
    set(this.#hands.document(), pointer, value);
    this.#refused = new Set();
    this.#hands.changed(pointer);
    if (SHAPING.test(pointer)) this.build();
    else this.update();
  }
}

/**
 * Returns the hint beside a field without a fault.
 * @param {import("./document.js").Field} field
 * @param {string} model
 */
function usualHint({ kind, valid, min, max, unit = "" }, model) {
  if (kind !== "number") return "";
  const name = MODELS.find(([value]) => value === model)?.[1].replace(/ \(.*/, "");
  if (valid) return `${name}: ${rangeInWords(valid, unit)}`;
  return min === undefined || max === undefined ? "" : rangeInWords([min, max], unit);
}
