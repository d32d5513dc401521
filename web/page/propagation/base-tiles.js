/** Images of a map's tiles, which are loaded when they are in view. A failure is reported once in words. */
import { tileUrl } from "./projection.js";

const IMAGES_MAX = 400;

export class BaseTiles {
  #template = "";
  /** @type {Map<string, HTMLImageElement>} by URL; the oldest first */
  #images = new Map();
  #loaded;
  #told;
  #failed = 0;
  #shown = 0;

  /**
   * @param {() => void} loaded
   * @param {(words: string, isFault: boolean) => void} told
   */
  constructor(loaded, told) {
    this.#loaded = loaded;
    this.#told = told;
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
      if (effectiveDirective === "img-src" && this.#template !== "") this.#refuse(blockedURI);
    });
  }

  /** @param {string} template @param {boolean} isDegrees */
  use(template, isDegrees) {
    this.#template = "";
    this.#images.clear();
    this.#failed = this.#shown = 0;
    if (template === "") return this.#told("", false);
    if (!["{z}", "{x}", "{y}"].every((part) => template.includes(part))) return this.#told("The address of tiles has {z}, {x} and {y}.", true);
    if (!isDegrees) return this.#told("This area has coordinates of its own, in metres: tiles are drawn below areas in degrees.", true);
    this.#template = template;
    this.#told("loading", false);
  }

  get isUsed() {
    return this.#template !== "";
  }

  /**
   * The image of a tile; null until it is loaded.
   * @param {{ z: number, x: number, y: number }} tile
   */
  get(tile) {
    const url = tileUrl(this.#template, tile);
    let image = this.#images.get(url);
    if (!image) {
      // Of this origin, as the policy of the page has it: the colours of the ground are read back, which an image of another one forbids.
      image = new Image();
      const template = this.#template;
      image.addEventListener("load", () => {
        if (template !== this.#template) return;
        this.#shown += 1;
        if (this.#failed === 0) this.#told("", false);
        this.#loaded();
      });
      image.addEventListener("error", () => template === this.#template && this.#fail(url));
      image.src = url;
      this.#images.set(url, image);
      const [oldest] = this.#images.keys();
      if (this.#images.size > IMAGES_MAX && oldest !== undefined) this.#images.delete(oldest);
    }
    return image.complete && image.naturalWidth > 0 ? image : null;
  }

  /** @param {string} url */
  #fail(url) {
    this.#failed += 1;
    if (this.#template !== "" && this.#failed === 1) this.#told(`A tile does not come, for instance ${url}.`, true);
  }

  /** @param {string} blocked */
  #refuse(blocked) {
    this.#template = "";
    const origin = URL.canParse(blocked) ? new URL(blocked).origin : blocked;
    this.#told(`Images of ${origin} are refused: the pages of this server load nothing from elsewhere. Serve the tiles from this server: anemone serve --static /tiles=DIRECTORY.`, true);
    this.#loaded();
  }
}
