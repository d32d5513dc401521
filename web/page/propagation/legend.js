/** The legend of the maps: the colours of values with their unit, or those of the transmitters. */
import { fitted } from "../../chart/canvas.js";
import { part } from "../element.js";
import { css, serverColour } from "./colours.js";
import { QUANTITIES, nameOf } from "./document.js";
import { drawColours } from "./picture.js";

export class Legend {
  #words;
  #canvas;
  #stage;
  #ask;
  #shown = "";

  /**
   * @param {HTMLElement} words
   * @param {HTMLCanvasElement} canvas
   * @param {import("./pane.js").Stage} stage
   */
  constructor(words, canvas, stage) {
    this.#words = words;
    this.#canvas = canvas;
    this.#stage = stage;
    this.#ask = fitted(canvas, (context, width, height) => drawColours(context, width, height, stage.look.quantity === "loss_db"));
  }

  update() {
    const { look, opacity, document } = this.#stage;
    const names = document.transmitters.map(nameOf);
    const shown = JSON.stringify([look, opacity, look.isServers && names]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    // As strong as on the map.
    this.#canvas.style.opacity = String(opacity);
    this.#canvas.hidden = look.isServers;
    this.#words.classList.toggle("servers", look.isServers);
    if (look.isServers) {
      this.#words.replaceChildren(
        ...names.map((name, index) => {
          const entry = part("span", "server", name);
          entry.style.setProperty("--server", css(serverColour(index)));
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
    this.#ask();
  }
}
