/** What is read at a point of the maps: its value on each, and the path to it. */
import { fitted } from "../../chart/canvas.js";
import { setText } from "../element.js";
import { QUANTITIES, nameOf, spotOf } from "./document.js";
import { drawProfile } from "./profile-chart.js";
import { formatDistance, profile, profileInWords } from "./profile.js";
import { signed } from "./words.js";

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
    const found = panes.map((pane) => ({ pane, read: pane.read(cursor) }));
    const index = found.find(({ read }) => read)?.read?.server ?? selected;
    const transmitter = document.transmitters[index];
    const relief = panes.find((pane) => pane.relief)?.relief;
    const values = found.map(({ pane, read }) => `${panes.length > 1 ? `${pane.name}: ` : ""}${read ? `${signed(read.value)} ${this.#unit()}` : "no value yet"}`);
    const ground = relief ? `, ground ${Math.round(relief.heightAt(cursor)).toLocaleString("en")} m above the sea` : "";
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

  #unit() {
    return QUANTITIES.find(([name]) => name === this.#stage.look.quantity)?.[2] ?? "";
  }
}
