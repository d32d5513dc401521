/** The lists of a computation, made from its events ("Events" in `docs/COMPUTATIONS.md`). Pure. */

/** The greatest part of a list that is marked, for its newest changes. More marks would show nothing. */
const MARKED_PART_MAX = 0.25;
/** The least number of marks in a short list: those of a swap. */
const MARKED_MAX_LEAST = 2;

/** @typedef {import("./document.js").Action} Action */
/** @typedef {[kind: string, ...at: number[]]} Change a swap of two positions, or positions each with its new value */

/**
 * A list as it is now.
 * @typedef {object} List
 * @property {Uint32Array} values from 1 to their number
 * @property {number} state the number of its state
 * @property {number} comparisons
 * @property {number} writes
 * @property {boolean} isDone
 * @property {number} version grows with each event
 * @property {readonly number[]} touched the positions of the last changes
 */

export class Replay {
  /** The actions, once a plan has come. @type {readonly Action[] | null} */
  plan = null;
  /** The lists of the actions that have begun. @type {Map<number, List>} */
  lists = new Map();
  /** True if events may be missing since the last plan. Events are then ignored until the next plan. */
  #isLost = true;

  /** Forgets everything. */
  clear() {
    this.plan = null;
    this.lists.clear();
    this.#isLost = true;
  }

  /** Call this if events are missing. The lists stay as they are until the next plan. */
  lose() {
    this.#isLost = true;
  }

  /**
   * Takes the data of a partial result.
   * @param {any} data
   */
  take(data) {
    if (Array.isArray(data?.plan)) return this.#begin(data.plan);
    if (this.#isLost || this.plan?.[data?.action] === undefined) return;
    const { action } = data;
    if (Array.isArray(data.list)) this.#replace(action, data.list);
    const list = this.lists.get(action);
    if (!list) return;
    const changed = (data.changes ?? []).flatMap((/** @type {Change} */ change) => apply(list, change));
    list.touched = changed.slice(-Math.max(MARKED_MAX_LEAST, Math.floor(list.values.length * MARKED_PART_MAX)));
    list.version += 1;
    for (const name of /** @type {const} */ (["state", "comparisons", "writes"])) list[name] = data[name] ?? list[name];
    list.isDone = data.done === true;
    if (list.isDone) list.touched = [];
  }

  /** @param {Action[]} plan */
  #begin(plan) {
    // All lists that have begun follow in the same batch. Until each is there, the old one is shown, or the picture would flicker.
    if (JSON.stringify(plan) !== JSON.stringify(this.plan)) this.lists.clear();
    this.plan = plan;
    this.#isLost = false;
  }

  /**
   * @param {number} action
   * @param {number[]} values
   */
  #replace(action, values) {
    const list = this.lists.get(action);
    if (list?.values.length === values.length) list.values.set(values);
    else this.lists.set(action, { values: Uint32Array.from(values), state: 0, comparisons: 0, writes: 0, isDone: false, version: 0, touched: [] });
  }
}

/**
 * Applies a change, and returns the changed positions.
 * @param {List} list
 * @param {Change} change
 */
function apply({ values }, [kind, ...at]) {
  if (kind === "s") {
    const [first = 0, second = 0] = at;
    [values[first], values[second]] = [values[second] ?? 0, values[first] ?? 0];
    return at;
  }
  if (kind !== "w") return [];
  const places = at.filter((_, index) => index % 2 === 0);
  places.forEach((place, index) => (values[place] = Number(at[2 * index + 1])));
  return places;
}
