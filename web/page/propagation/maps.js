/** The maps of the page: one, or two side by side. Each has a model of its own. They share the rest of the document, and their colours. */
import { find, part } from "../element.js";
import { colourRange } from "./colours.js";
import { MODELS, QUANTITIES, environmentsOf, fitted, nameOf } from "./document.js";
import { tellFingers } from "./fingers.js";
import { Pane } from "./pane.js";

/** @typedef {Pick<import("./document.js").Coverage, "model" | "environment">} OfMap what a map has for itself */

export class Maps {
  isCompared = false;
  #box;
  #stage;
  #chosen;
  #left;
  #right;
  /** The model of the second map. @type {OfMap} */
  #second = { model: "hata", environment: "open" };
  /** @type {import("./colours.js").ColourRange | null} */
  #range = null;

  /**
   * @param {HTMLElement} box
   * @param {import("./pane.js").Stage} stage
   * @param {import("./pane.js").Told} told
   * @param {() => void} chosen another model of a map is chosen above it
   */
  constructor(box, stage, told, chosen) {
    this.#box = box;
    this.#stage = stage;
    this.#chosen = chosen;
    this.#left = this.#add("Map", told);
    this.#right = this.#add("Second map", told);
    this.#right.figure.hidden = true;
  }

  /**
   * @param {string} name
   * @param {import("./pane.js").Told} told
   */
  #add(name, told) {
    this.#box.append(find(document, "#pane", HTMLTemplateElement).content.cloneNode(true));
    const figure = /** @type {HTMLElement} */ (this.#box.lastElementChild);
    tellFingers(find(figure, ".map", HTMLElement));
    return new Pane(figure, name, this.#stage, told);
  }

  /** The maps that are shown. */
  get seen() {
    return this.isCompared ? [this.#left, this.#right] : [this.#left];
  }

  get first() {
    return this.#left;
  }

  get second() {
    return this.#right;
  }

  redraw() {
    for (const pane of this.seen) pane.redraw();
  }

  cancel() {
    for (const pane of [this.#left, this.#right]) pane.cancel();
  }

  /** The document that the service gets for a map. @param {Pane} pane */
  documentOf(pane) {
    const ofMap = pane === this.#left ? {} : this.#second;
    return { ...fitted({ ...this.#stage.document, ...ofMap }), quantities: QUANTITIES.map(([name]) => name) };
  }

  /** Takes the model of the second map from the document of its run. @param {OfMap} document */
  useSecond({ model, environment }) {
    this.#second = { model, environment };
  }

  /** Shows two maps, or one. @param {boolean} isCompared */
  compare(isCompared) {
    this.isCompared = isCompared;
    this.#right.figure.hidden = !isCompared;
    this.#left.name = isCompared ? "First map" : "Map";
    this.#box.classList.toggle("compared", isCompared);
    this.#stage.view.scale = 0;
    if (!isCompared) this.#right.leave();
  }

  /** If the first map has the model of Hata in the open country, chooses the town for the second one, so that they differ. */
  contrast() {
    const { model, environment } = this.#stage.document;
    if (model === "hata" && environment === "open") this.#second.environment = "urban";
  }

  /** Shows the model of each map above it, if there are two. */
  showChoices() {
    for (const [pane, of, which] of /** @type {const} */ ([[this.#left, this.#stage.document, "first"], [this.#right, this.#second, "second"]])) {
      const place = find(pane.figure, ".choices", HTMLElement);
      place.hidden = !this.isCompared;
      const environments = environmentsOf(of.model);
      const environment = environments.some(([name]) => name === of.environment) ? String(of.environment) : "urban";
      const model = this.#choice(place, `Model of the ${which} map`, MODELS, of.model, (value) => (of.model = /** @type {import("./document.js").Model} */ (value)));
      const choices = environments.length > 0 ? [this.#choice(place, `Environment of the ${which} map`, environments, environment, (value) => (of.environment = value))] : [];
      place.replaceChildren(model, ...choices);
    }
  }

  /**
   * @param {HTMLElement} place
   * @param {string} label
   * @param {readonly (readonly [string, string])[]} options
   * @param {string} value
   * @param {(value: string) => void} take
   */
  #choice(place, label, options, value, take) {
    const choice = part("select", "", "");
    choice.setAttribute("aria-label", label);
    choice.append(...options.map(([name, words]) => new Option(words, name)));
    choice.value = value;
    choice.addEventListener("change", () => {
      take(choice.value);
      const at = [...place.children].indexOf(choice);
      this.#chosen();
      /** @type {HTMLElement | undefined} */ (place.children[at])?.focus();
    });
    return choice;
  }

  /** Forgets the range of the colours, so that the next values set it anew. */
  forgetColours() {
    this.#range = null;
  }

  /** Chooses colours that fit the values of all maps. */
  recolour() {
    const found = this.seen.flatMap((pane) => pane.range() ?? []);
    const range = found.length > 0 ? colourRange(Math.min(...found), Math.max(...found), this.#range) : this.#range;
    if (range === null || range === this.#range) return;
    this.#range = range;
    this.#stage.look = { ...this.#stage.look, ...range };
    this.redraw();
  }

  /** Returns the warnings of the service, in words. */
  warningsInWords() {
    const { transmitters } = this.#stage.document;
    return this.seen.flatMap((pane) =>
      pane.warnings.map(({ transmitter, detail }) => {
        const of = transmitter === null ? "" : `${nameOf(transmitters[transmitter] ?? { name: String(transmitter) }, transmitter)}: `;
        return `${this.isCompared ? `${pane.name}: ` : ""}${of}${detail}.`;
      }),
    );
  }
}
