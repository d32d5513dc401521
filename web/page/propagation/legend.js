/**
 * The legend of the maps: the colours of values with their unit, or those of the transmitters. The colours are drawn over the ground in
 * view, which is light at the top and dark at the bottom, as on the map.
 */
import { fitted } from "../../chart/canvas.js";
import { part } from "../element.js";
import { over, serverColour } from "./colours.js";
import { QUANTITIES, nameOf } from "./document.js";
import { drawColours } from "./picture.js";

/** The number of colours of the ground in the legend. */
const GROUNDS = 16;
/** The shortest time between two looks at the ground. The map changes with each tile and each move of the pointer. */
const GROUND_EVERY_MS = 250;

export class Legend {
  #words;
  #canvas;
  #stage;
  #ground;
  #ask;
  #wanted = "";
  #shown = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #later;

  /**
   * @param {HTMLElement} words
   * @param {HTMLCanvasElement} canvas
   * @param {import("./pane.js").Stage} stage
   * @param {(count: number) => import("./colours.js").Rgb[]} ground the colours below the values, from light to dark
   */
  constructor(words, canvas, stage, ground) {
    this.#words = words;
    this.#canvas = canvas;
    this.#stage = stage;
    this.#ground = ground;
    this.#ask = fitted(canvas, (context, width, height) => drawColours(context, width, height, stage.look.quantity === "loss_db", ground(GROUNDS), stage.opacity));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.update());
  }

  /** Shows a new choice at once, and a new ground a little later. */
  update() {
    const { look, opacity, document } = this.#stage;
    const wanted = JSON.stringify([look, opacity, document.transmitters.map(nameOf)]);
    if (wanted !== this.#wanted) {
      this.#wanted = wanted;
      return this.#show();
    }
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#show();
    }, GROUND_EVERY_MS);
  }

  #show() {
    const { look, opacity, document } = this.#stage;
    if (!look.isServers) this.#ask();
    const servers = look.isServers ? document.transmitters.map((transmitter, index) => ({ name: nameOf(transmitter, index), colour: this.#serverColours(index) })) : [];
    const shown = JSON.stringify([look, opacity, servers]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#canvas.hidden = look.isServers;
    this.#words.classList.toggle("servers", look.isServers);
    if (look.isServers) {
      this.#words.replaceChildren(
        ...servers.map(({ name, colour }) => {
          const entry = part("span", "server", name);
          entry.style.setProperty("--server", colour);
          return entry;
        }),
      );
      return;
    }
    const [, label = "", unit = ""] = QUANTITIES.find(([name]) => name === look.quantity) ?? [];
    const words = look.marks.map((mark, index) => `${index === 0 ? "≤ " : index === look.marks.length - 1 ? "≥ " : ""}${String(Math.round(mark)).replace("-", "−")}`);
    const row = part("span", "marks", "");
    row.append(...words.map((text) => part("span", "", text)));
    this.#words.replaceChildren(row, part("span", "", `${label} in ${unit}`));
  }

  /** @param {number} index of a transmitter */
  #serverColours(index) {
    const { opacity } = this.#stage;
    return `linear-gradient(${this.#ground(GROUNDS).map((ground) => over(serverColour(index), ground, opacity))})`;
  }
}
