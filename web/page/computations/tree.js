/** The tree of actions as a picture: the place of each action, the branches, and words. Pure. */
import { countOf, formatCount } from "../words.js";

/** @typedef {import("./document.js").Action} Action */
/** @typedef {import("./replay.js").List} List */

/**
 * The place of an action, in steps.
 * @typedef {object} Place
 * @property {number} depth the actions before it
 * @property {number} row that of a leaf, or between those of its first and its last child
 * @property {number} line its number in a list in which children follow their parent
 * @property {number} branch actions one after the other are a branch: the first child goes on with that of its parent
 */

/**
 * @param {readonly Action[]} actions that have no cycle
 * @returns {{ places: Place[], branches: number[][], depth: number }} the actions of each branch, and the most actions one after the other
 */
export function layout(actions) {
  /** @type {Place[]} */
  const places = [];
  /** @type {number[][]} */
  const branches = [];
  let lines = 0;
  let leaves = 0;
  let deepest = 0;
  /** @type {Map<number | undefined, number[]>} */
  const children = new Map();
  for (const [index, { after }] of actions.entries()) children.set(after, [...(children.get(after) ?? []), index]);

  /**
   * @param {number} index
   * @param {number} depth
   * @param {number} branch
   * @returns {Place}
   */
  const put = (index, depth, branch) => {
    const place = { depth, row: 0, line: lines++, branch };
    deepest = Math.max(deepest, depth + 1);
    (branches[branch] ??= []).push(index);
    const below = (children.get(index) ?? []).map((child, nth) => put(child, depth + 1, nth === 0 ? branch : branches.length));
    const [first, last] = [below[0], below.at(-1)];
    place.row = first && last ? (first.row + last.row) / 2 : leaves++;
    places[index] = place;
    return place;
  };
  for (const root of children.get(undefined) ?? []) put(root, 0, branches.length);
  return { places, branches, depth: deepest };
}

/** The width of an action's box and the gap to the next box, and the least of both, in rem. */
const BOX = { width: 12.5, gap: 1.8, widthLeast: 8.5, gapLeast: 1 };

/**
 * Returns the width of a box, and the distance of two boxes' left edges, in rem. The boxes of all depths fit beside each other, unless they
 * would be too narrow to read.
 * @param {number} depth the most actions one after the other
 * @param {number} room
 */
export function widthsWithin(depth, room) {
  const gap = depth * BOX.width + (depth - 1) * BOX.gap <= room ? BOX.gap : BOX.gapLeast;
  const width = Math.max(BOX.widthLeast, Math.min(BOX.width, (room - (depth - 1) * gap) / Math.max(1, depth)));
  return { width, right: width + gap };
}

/**
 * Returns the action of a branch whose list is shown: the last one that has begun.
 * @param {readonly number[]} branch
 * @param {ReadonlyMap<number, List>} lists
 */
export function newestOf(branch, lists) {
  return [...branch].reverse().find((index) => lists.has(index));
}

/** @typedef {"queued" | "running" | "done" | "cancelled"} NodeState */

const STATES = { queued: "waiting", running: "running", done: "done", cancelled: "stopped" };

/** @param {NodeState} state */
export function stateInWords(state) {
  return STATES[state];
}

/**
 * Returns the state of an action.
 * @param {List | undefined} list
 * @param {boolean} isOver true if the run has ended
 * @returns {NodeState}
 */
export function stateOf(list, isOver) {
  if (list?.isDone) return "done";
  if (isOver) return "cancelled";
  return list ? "running" : "queued";
}

/** @param {Action} action */
export function aboutAction({ do: what, size, algorithm, criterion, distribution }) {
  if (what === "list") return `${countOf(size, "element")}, ${String(distribution).replace("-", " ")}`;
  return `${algorithm} sort, ${String(criterion).replaceAll("-", " ")}`;
}

/**
 * Returns the part of an action that is done, 0 to 1.
 * @param {Action} action
 * @param {List | undefined} list
 */
export function doneOf({ work }, list) {
  if (!list || list.isDone) return list ? 1 : 0;
  return work ? Math.min(1, list[work.unit] / Math.max(1, work.total)) : 0;
}

/**
 * "42 %", or "about 42 %" of an estimate.
 * @param {Action} action
 * @param {List | undefined} list
 */
export function doneInWords(action, list) {
  if (!list || list.isDone || !action.work) return "";
  return `${action.work.exact ? "" : "about "}${Math.floor(100 * Math.min(0.99, doneOf(action, list)))} %`;
}

/** @param {Pick<List, "comparisons" | "writes">} list */
export function stepsInWords({ comparisons, writes }) {
  return `${countOf(comparisons, "comparison")}, ${countOf(writes, "write")}`;
}

/**
 * "7 actions in 3 branches, 3 one after the other, 1,400 elements"
 * @param {readonly Action[]} actions
 */
export function sizeInWords(actions) {
  const { branches, depth } = layout(actions);
  const elements = actions.reduce((sum, { size }) => sum + size, 0);
  const ways = `${formatCount(branches.length)} ${branches.length === 1 ? "branch" : "branches"}`;
  return `${countOf(actions.length, "action")} in ${ways}, at most ${formatCount(depth)} one after the other, ${countOf(elements, "element")} in all`;
}
