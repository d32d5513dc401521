/**
 * Starts runs. A request for a run waits until the first tiles of the run before are drawn, and only the newest request counts. So the map
 * follows a transmitter that is dragged, even on a slow machine.
 */
import { hashOf } from "./address.js";

const EDIT_MS = 300;
/** The delay of a change of the address. A browser takes some milliseconds for it, and the first tiles come first. */
const LEAD_MS = 100;

export class Starter {
  /** The key of the run of each map, if the address has it. @type {[string | null, string | null]} */
  keys = [null, null];
  #maps;
  #mayStart;
  #bond;
  #led;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #leading;
  /** The time of a request for a run that has not begun; null without one. @type {number | null} */
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
   * Requests a run of the current document.
   * @param {number} [asked] when
   */
  wish(asked = performance.now()) {
    clearTimeout(this.#editing);
    this.#wished = asked;
    this.next();
  }

  /** Requests a run when nothing has been typed for a moment. */
  wishSoon() {
    clearTimeout(this.#editing);
    this.#editing = setTimeout(() => this.wish(), EDIT_MS);
  }

  /** Withdraws a request, and cancels the current runs. */
  cancel() {
    clearTimeout(this.#editing);
    this.#wished = null;
    this.#maps.cancel();
  }

  /** Starts the requested run, unless a run has begun whose first tiles are not drawn yet. */
  next() {
    const { seen } = this.#maps;
    if (this.#wished === null || seen.some((pane) => pane.isStarting)) return;
    const asked = this.#wished;
    this.#wished = null;
    if (!this.#mayStart()) return;
    for (const pane of seen) pane.compute(this.#maps.documentOf(pane), this.#bond(), asked);
  }

  /**
   * Puts the run of a map into the address.
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

  /** Removes the runs from the address. */
  forget() {
    this.keys = [null, null];
    history.replaceState(null, "", location.pathname + location.search);
  }
}
