/** The lists of a computation, as its events tell them ("Events" in `docs/COMPUTATIONS.md`). Pure. */

/** @typedef {import("./document.js").Action} Action */

/**
 * A list as it is now.
 * @typedef {object} List
 * @property {Uint32Array} values from 1 to their number
 * @property {number} state the number of its state
 * @property {number} comparisons
 * @property {number} writes
 * @property {boolean} isDone
 * @property {number} version grows with each event
 * @property {readonly number[]} touched the positions of the last change
 */

export class Replay {
  /** The actions, once a plan has come. @type {readonly Action[] | null} */
  plan = null;
  /** The lists of the actions that have begun. @type {Map<number, List>} */
  lists = new Map();
  /** True if events may be missing since the last plan: all but the next plan is ignored. */
  #isLost = true;

  /** Forgets everything. */
  clear() {
    this.plan = null;
    this.lists.clear();
    this.#isLost = true;
  }

  /** Events are missing: only the next plan says what the lists are. What is there stays until then. */
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
    for (const change of data.changes ?? []) apply(list, change);
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
 * @param {List} list
 * @param {[kind: string, ...at: number[]]} change
 */
function apply(list, change) {
  const { values } = list;
  const [kind, first = 0, second = 0] = change;
  if (kind === "s") {
    [values[first], values[second]] = [values[second] ?? 0, values[first] ?? 0];
    list.touched = [first, second];
  } else if (kind === "w") {
    for (let index = 1; index < change.length; index += 2) values[Number(change[index])] = Number(change[index + 1]);
    list.touched = change.length === 3 ? [first] : [];
  }
}
