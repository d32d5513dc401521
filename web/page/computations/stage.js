/** The lists of the branches, each on a canvas. A frame draws the lists that have changed and are in view, until its time is up. */
import { colour } from "../../chart/canvas.js";
import { fieldsOf, find, setText } from "../element.js";
import { countOf } from "../words.js";
import { REPRESENTATIONS, huesOf, pixelOfHex } from "./draw.js";
import { drawnInWords, drawnValues } from "./ranks.js";
import { aboutAction, layout, newestOf, stateInWords, stateOf } from "./tree.js";

/** The longest time of the drawing in a frame. The remaining canvases follow in the next frame. */
const FRAME_MS_MAX = 10;
/** The most pixels of all canvases, so that a large screen does not make them slow. */
const PIXELS_MAX = 1_500_000;
const HUES = 512;
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** @typedef {import("./draw.js").Inks} Inks */
/** @typedef {import("./replay.js").Replay} Replay */

/**
 * @typedef {object} Canvas
 * @property {readonly number[]} branch
 * @property {HTMLElement} figure
 * @property {(name: string) => HTMLElement} field
 * @property {HTMLCanvasElement} element
 * @property {CanvasRenderingContext2D} context
 * @property {HTMLSelectElement} choice
 * @property {ImageData | null} image null until its size is known
 * @property {number} ratio
 * @property {string} drawn what it shows
 * @property {boolean} isSeen
 */

export class Stage {
  #section;
  #replay;
  /** @type {Canvas[]} */
  #canvases = [];
  /** The tree that the canvases are for. @type {readonly import("./document.js").Action[] | null} */
  #plan = null;
  /** @type {Inks | null} */
  #inks = null;
  #all;
  #next = 0;
  #isAsked = false;
  #isPaused = false;
  #sizes = new ResizeObserver((entries) => this.#resized(entries.map(({ target }) => target)));
  #views = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const canvas = this.#canvases.find(({ element }) => element === target);
      if (canvas) canvas.isSeen = isIntersecting;
    }
    this.ask();
  });

  /**
   * @param {HTMLElement} section
   * @param {Replay} replay
   */
  constructor(section, replay) {
    this.#section = section;
    this.#replay = replay;
    this.#all = find(section, "#all-as", HTMLSelectElement);
    this.#all.append(...choices());
    this.#all.addEventListener("change", () => {
      for (const { choice } of this.#canvases) choice.value = this.#all.value;
      this.ask();
    });
    const pause = find(section, "#pause", HTMLButtonElement);
    pause.addEventListener("click", () => {
      this.#isPaused = !this.#isPaused;
      pause.setAttribute("aria-pressed", String(this.#isPaused));
      this.ask();
    });
    DARK.addEventListener("change", () => {
      this.#inks = null;
      for (const canvas of this.#canvases) this.#clear(canvas);
      this.ask();
    });
  }

  /** Draws what has changed, in the next frame. */
  ask() {
    if (this.#isAsked) return;
    this.#isAsked = true;
    requestAnimationFrame(() => {
      this.#isAsked = false;
      this.#draw();
    });
  }

  #draw() {
    const begun = performance.now();
    const inks = (this.#inks ??= inksOf());
    for (let turn = 0; turn < this.#canvases.length; turn += 1) {
      const canvas = this.#canvases[this.#next % this.#canvases.length];
      if (canvas && this.#paint(canvas, inks) && performance.now() - begun > FRAME_MS_MAX) {
        this.#next += 1;
        return this.ask();
      }
      this.#next += 1;
    }
  }

  /**
   * Returns true if there was something to draw.
   * @param {Canvas} canvas
   * @param {Inks} inks
   */
  #paint(canvas, inks) {
    const { image, choice, branch, context, ratio } = canvas;
    const at = newestOf(branch, this.#replay.lists);
    const list = at === undefined ? undefined : this.#replay.lists.get(at);
    const shown = `${at} ${list?.version} ${choice.value}`;
    // What was there is of another run.
    if (image && !list && canvas.drawn !== "") this.#clear(canvas);
    // Paused, only what is asked for by hand is drawn: another representation or size of what is there.
    if (!image || !list || !canvas.isSeen || canvas.drawn === shown) return false;
    if (this.#isPaused && canvas.drawn.endsWith(` ${choice.value}`)) return false;
    canvas.drawn = shown;
    const { width, height, data } = image;
    const pixels = new Uint32Array(data.buffer);
    const drawn = { values: drawnValues(list.values, this.#replay.plan?.[at ?? 0]), touched: list.touched };
    REPRESENTATIONS[choice.value]?.draw({ pixels, width, height, ratio }, drawn, inks);
    context.putImageData(image, 0, 0);
    return true;
  }

  /** @param {Canvas} canvas */
  #clear(canvas) {
    const { element, context } = canvas;
    context.fillStyle = colour("paper");
    context.fillRect(0, 0, element.width, element.height);
    canvas.drawn = "";
  }

  /** @param {Element[]} elements */
  #resized(elements) {
    const most = Math.sqrt(PIXELS_MAX / Math.max(1, this.#canvases.reduce((sum, { element }) => sum + element.clientWidth * element.clientHeight, 0)));
    const ratio = Math.min(globalThis.devicePixelRatio || 1, Math.max(1, most));
    for (const canvas of this.#canvases) {
      const { element, context } = canvas;
      if (!elements.includes(element)) continue;
      const [width, height] = [Math.round(element.clientWidth * ratio), Math.round(element.clientHeight * ratio)];
      if (width === 0 || height === 0 || (canvas.image && element.width === width && element.height === height)) continue;
      [element.width, element.height] = [width, height];
      canvas.image = context.createImageData(width, height);
      canvas.ratio = ratio;
      this.#clear(canvas);
    }
    // In the frame of the new size, or the canvas would be black for one.
    this.#draw();
  }

  /**
   * Shows the words about the lists, and a canvas for each branch.
   * @param {boolean} isOver
   * @param {readonly import("./document.js").Action[] | null} next those of a run that has not told its own: they keep the room. Without them, the last ones do.
   */
  show(isOver, next) {
    const { plan: own, lists } = this.#replay;
    const plan = own ?? next ?? this.#plan;
    if (plan !== this.#plan) this.#replan(plan);
    this.#section.hidden = !plan;
    for (const { branch, figure, field, element } of this.#canvases) {
      const at = newestOf(branch, lists) ?? branch[0] ?? 0;
      const [action, list] = [plan?.[at], lists.get(at)];
      const state = stateOf(list, isOver && own !== null);
      figure.dataset.run = state;
      const isSort = list !== undefined && action?.do === "sort";
      setText(field("name"), action?.id ?? "");
      setText(field("about"), action ? [aboutAction(action), drawnInWords(action)].filter(Boolean).join("; ") : "");
      setText(field("state"), stateInWords(state));
      setText(field("comparisons"), isSort ? countOf(list.comparisons, "comparison") : "");
      setText(field("writes"), isSort ? countOf(list.writes, "write") : "");
      const label = `The list of ${action?.id}: ${action?.size} elements, ${stateInWords(state)}`;
      if (element.ariaLabel !== label) element.ariaLabel = label;
    }
  }

  /** @param {Replay["plan"]} plan */
  #replan(plan) {
    const branches = (/** @type {Replay["plan"]} */ of) => JSON.stringify(of && layout(of).branches);
    const before = branches(this.#plan);
    this.#plan = plan;
    if (before === branches(plan)) return;
    this.#sizes.disconnect();
    this.#views.disconnect();
    this.#canvases = plan ? layout(plan).branches.map((branch) => this.#canvas(branch)) : [];
    find(this.#section, ".lists", HTMLElement).replaceChildren(...this.#canvases.map(({ figure }) => figure));
    for (const { element } of this.#canvases) {
      this.#sizes.observe(element);
      this.#views.observe(element);
    }
  }

  /**
   * @param {readonly number[]} branch
   * @returns {Canvas}
   */
  #canvas(branch) {
    const content = /** @type {DocumentFragment} */ (find(document, "#list", HTMLTemplateElement).content.cloneNode(true));
    const figure = find(content, "figure", HTMLElement);
    const element = find(figure, "canvas", HTMLCanvasElement);
    const choice = find(figure, "select", HTMLSelectElement);
    choice.append(...choices());
    choice.value = this.#all.value;
    choice.setAttribute("aria-label", "This list as");
    choice.addEventListener("change", () => this.ask());
    // Nothing shines through: the browser need not blend it with what is below.
    const context = /** @type {CanvasRenderingContext2D} */ (element.getContext("2d", { alpha: false }));
    return { branch, figure, field: fieldsOf(figure), element, context, choice, image: null, ratio: 1, drawn: "", isSeen: true };
  }
}

function choices() {
  return Object.entries(REPRESENTATIONS).map(([value, { name, about }]) => {
    const option = new Option(name, value);
    option.title = about;
    return option;
  });
}

/** @returns {Inks} */
function inksOf() {
  const ink = (/** @type {string} */ name) => pixelOfHex(colour(name));
  return { ground: ink("paper"), ink: ink("sse"), pale: ink("faint"), mark: ink("bloom"), line: ink("faint"), hues: huesOf(HUES, DARK.matches ? 0.76 : 0.66) };
}
