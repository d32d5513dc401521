/**
 * Starts runs. A wish for a run waits until the first tiles of the run before are seen, and the newest wish counts: so the map follows
 * the hand while a transmitter is dragged, however slow the machine is.
 */
import { hashOf } from "./address.js";

const EDIT_MS = 300;
/** A browser takes some milliseconds to lead its address to a run, and to draw that it does: the first tiles go first. */
const LEAD_MS = 100;

export class Starter {
  /** The key of the run of each map, while the address leads to it. @type {[string | null, string | null]} */
  keys = [null, null];
  #maps;
  #mayStart;
  #bond;
  #led;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #leading;
  /** When a run was wished for that has not begun. @type {number | null} */
  #wished = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #editing;

  /**
   * @param {import("./maps.js").Maps} maps
   * @param {() => boolean} mayStart false if there is a fault in the fields, which it shows
   * @param {() => import("./computation.js").Bond} bond
   * @param {() => void} led the address leads to the runs that have these keys
   */
  constructor(maps, mayStart, bond, led) {
    this.#maps = maps;
    this.#mayStart = mayStart;
    this.#bond = bond;
    this.#led = led;
  }

  /**
   * Wishes for a run of the document as it is now.
   * @param {number} [asked] when
   */
  wish(asked = performance.now()) {
    clearTimeout(this.#editing);
    this.#wished = asked;
    this.next();
  }

  /** Wishes for one when nothing has been typed for a moment. */
  wishSoon() {
    clearTimeout(this.#editing);
    this.#editing = setTimeout(() => this.wish(), EDIT_MS);
  }

  /** Wishes for none, and cancels those that there are. */
  cancel() {
    clearTimeout(this.#editing);
    this.#wished = null;
    this.#maps.cancel();
  }

  /** Starts the run that is wished for, unless one has begun that is not seen yet. */
  next() {
    const { seen } = this.#maps;
    if (this.#wished === null || seen.some((pane) => pane.isStarting)) return;
    const asked = this.#wished;
    this.#wished = null;
    if (!this.#mayStart()) return;
    for (const pane of seen) pane.compute(this.#maps.documentOf(pane), this.#bond(), asked);
  }

  /**
   * Has the address lead to the run of a map.
   * @param {import("./pane.js").Pane} pane
   * @param {string} key
   */
  started(pane, key) {
    this.keys[pane === this.#maps.first ? 0 : 1] = key;
    this.#leading ??= setTimeout(() => this.#lead(), LEAD_MS);
  }

  #lead() {
    this.#leading = undefined;
    const [first, second] = this.keys;
    if (first === null) return;
    const hash = hashOf([first, this.#maps.isCompared ? second : null]);
    if (location.hash !== hash) history.replaceState(null, "", hash);
    this.#led();
  }

  /** Has the address lead to no run. */
  forget() {
    this.keys = [null, null];
    history.replaceState(null, "", location.pathname + location.search);
  }
}
