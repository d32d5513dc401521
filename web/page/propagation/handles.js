/** The transmitters on a map: buttons that the mouse, fingers and arrow keys move. */
import { part, setText } from "../element.js";
import { css, serverColour } from "./colours.js";
import { nameOf, spotOf } from "./document.js";

/** @type {Record<string, readonly [number, number] | undefined>} */
export const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const KEY_STEP_PX = 6;
const KEY_STEP_FAR_PX = 40;

export class Handles {
  #box;
  #stage;
  #map;
  /** @type {HTMLButtonElement[]} */
  #buttons = [];

  /**
   * @param {HTMLElement} box
   * @param {import("./pane.js").Stage} stage
   * @param {string} map its name
   */
  constructor(box, stage, map) {
    this.#box = box;
    this.#stage = stage;
    this.#map = map;
  }

  /** The spot of a transmitter; null if there is none. @param {number} index */
  spotOf(index) {
    const { document, frame } = this.#stage;
    const transmitter = document.transmitters[index];
    return transmitter ? spotOf(transmitter, frame) : null;
  }

  /**
   * Puts the buttons where the transmitters are.
   * @param {number} width of the map
   * @param {number} height
   */
  place(width, height) {
    const { document, frame, view, selected } = this.#stage;
    while (this.#buttons.length > document.transmitters.length) this.#buttons.pop()?.remove();
    document.transmitters.forEach((transmitter, index) => {
      const button = this.#buttons[index] ?? this.#add(index);
      const spot = spotOf(transmitter, frame);
      const { x, y } = view.pixel(spot);
      button.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
      // For print, where the map is smaller.
      button.style.setProperty("--left", `${((x / width) * 100).toFixed(3)}%`);
      button.style.setProperty("--top", `${((y / height) * 100).toFixed(3)}%`);
      button.classList.toggle("selected", index === selected && document.transmitters.length > 1);
      const name = nameOf(transmitter, index);
      setText(button, name);
      button.setAttribute("aria-label", `Transmitter ${name} in ${this.#map}: ${frame.inWords(spot)}. Arrow keys move it.`);
    });
  }

  /** @param {number} index */
  #add(index) {
    const stage = this.#stage;
    const button = part("button", "handle", "");
    button.type = "button";
    button.style.setProperty("--server", css(serverColour(index)));
    this.#box.append(button);
    this.#buttons.push(button);
    /** The place of the pointer within the handle, while the handle is dragged. @type {{ x: number, y: number } | null} */
    let grip = null;
    const spotAt = (/** @type {PointerEvent} */ event) => {
      const box = this.#box.getBoundingClientRect();
      return stage.view.spot(event.clientX - box.left - (grip?.x ?? 0), event.clientY - box.top - (grip?.y ?? 0));
    };
    button.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const box = this.#box.getBoundingClientRect();
      const at = stage.view.pixel(this.spotOf(index) ?? { x: 0, y: 0 });
      grip = { x: event.clientX - box.left - at.x, y: event.clientY - box.top - at.y };
      button.setPointerCapture(event.pointerId);
      stage.select(index);
    });
    button.addEventListener("pointermove", (event) => grip && stage.move(index, spotAt(event), event.timeStamp));
    for (const type of ["pointerup", "pointercancel"]) button.addEventListener(type, () => (grip = null));
    button.addEventListener("focus", () => stage.select(index));
    button.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      const spot = this.spotOf(index);
      if (!arrow || !spot) return;
      event.preventDefault();
      const by = (event.shiftKey ? KEY_STEP_FAR_PX : KEY_STEP_PX) / stage.view.scale;
      stage.move(index, { x: spot.x + arrow[0] * by, y: spot.y - arrow[1] * by }, event.timeStamp);
    });
    return button;
  }
}
