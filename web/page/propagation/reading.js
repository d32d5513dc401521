/** The reading at a point of the maps: its value on each, and the path to it. */
import { fitted } from "../../chart/canvas.js";
import { setText } from "../element.js";
import { formatCount } from "../words.js";
import { nameOf, spotOf } from "./document.js";
import { drawProfile } from "./profile-chart.js";
import { formatDistance, profile, profileInWords } from "./profile.js";

export class Reading {
  #words;
  #canvas;
  #stage;
  #panes;
  #first;
  #ask;
  /** @type {import("./profile.js").Profile | null} */
  #profile = null;

  /**
   * @param {HTMLElement} words
   * @param {HTMLCanvasElement} canvas
   * @param {import("./pane.js").Stage} stage
   * @param {() => readonly import("./pane.js").Pane[]} panes those that are seen
   */
  constructor(words, canvas, stage, panes) {
    this.#words = words;
    this.#canvas = canvas;
    this.#stage = stage;
    this.#panes = panes;
    this.#first = [...words.childNodes];
    this.#ask = fitted(canvas, (context, width, height) => this.#profile && drawProfile(context, width, height, this.#profile));
  }

  /** Reads anew, and returns the words. */
  update() {
    const { cursor, document, frame, selected } = this.#stage;
    this.#canvas.hidden = cursor === null;
    if (cursor === null) {
      if (this.#words.firstChild !== this.#first[0]) this.#words.replaceChildren(...this.#first);
      return "";
    }
    const panes = this.#panes();
    const index = panes.map((pane) => pane.read(cursor)).find((read) => read)?.server ?? selected;
    const transmitter = document.transmitters[index];
    const relief = panes.find((pane) => pane.relief)?.relief;
    const values = panes.map((pane) => `${panes.length > 1 ? `${pane.name}: ` : ""}${pane.valueInWords(cursor)}`);
    const ground = relief ? `, ground ${formatCount(relief.heightAt(cursor))} m above the sea` : "";
    if (!transmitter) return "";
    const from = spotOf(transmitter, frame);
    this.#profile = profile(
      { spot: from, height: transmitter.height_m },
      { spot: cursor, height: document.receiver?.height_m ?? 1.5 },
      transmitter.frequency_mhz,
      (spot) => relief?.heightAt(spot) ?? 0,
    );
    const path = `${formatDistance(this.#profile.length)} from ${nameOf(transmitter, index)}: ${profileInWords(this.#profile)}`;
    const words = `${values.join(" · ")} at ${frame.inWords(cursor)}${ground}. ${path}.`;
    setText(this.#words, words);
    this.#canvas.setAttribute("aria-label", `Profile of the path: ${path}`);
    this.#ask();
    return words;
  }
}
