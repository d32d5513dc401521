/** The tree of actions as a picture, with the kind, the state and the progress of each action. */
import { fieldsOf, find, setText } from "../element.js";
import { fadeEdges } from "../edges.js";
import { countOf } from "../words.js";
import { aboutAction, doneInWords, doneOf, layout, stateInWords, stateOf, widthsWithin } from "./tree.js";

/** Sizes in rem. In a narrow box, the words about an action may take two lines. */
const WIDE = { down: 8.6, height: 7.9 };
const NARROW = { right: 1.4, down: 7.4, height: 6.8 };
/** The rows that the box shows without scrolling, by the `max-height` of `.tree`. */
const ROWS_SEEN = 4;
const NARROW_SCREEN = matchMedia("(max-width: 43.99rem)");
const SVG = "http://www.w3.org/2000/svg";

/** @typedef {import("./document.js").Action} Action */
/** @typedef {import("./tree.js").Place} Place */

export class TreePicture {
  #parent;
  #list;
  /** @type {readonly Action[] | null} */
  #actions = null;
  #drawn = "";
  #fade;
  /** The width of the parent for which the picture was drawn, in pixels. */
  #room = 0;
  /** @type {{ item: HTMLElement, field: (name: string) => HTMLElement, bar: HTMLProgressElement }[]} */
  #items = [];

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.#parent = parent;
    this.#list = find(parent, "ol", HTMLElement);
    NARROW_SCREEN.addEventListener("change", () => this.#place());
    new ResizeObserver(() => this.#parent.clientWidth !== this.#room && this.#place()).observe(parent);
    this.#fade = fadeEdges(parent);
  }

  /**
   * @param {readonly Action[] | null} actions
   * @param {ReadonlyMap<number, import("./replay.js").List>} lists
   * @param {boolean | null} isOver null for a document that is not started
   */
  show(actions, lists, isOver) {
    if (actions !== this.#actions) this.#replan(actions);
    for (const [index, { item, field, bar }] of this.#items.entries()) {
      const action = /** @type {Action} */ (actions?.[index]);
      const list = lists.get(index);
      const state = stateOf(list, isOver ?? false);
      const done = doneInWords(action, list);
      item.dataset.run = isOver === null ? "" : state;
      const isSort = list && action.do === "sort";
      setText(field("comparisons"), isSort ? countOf(list.comparisons, "comparison") : "");
      setText(field("writes"), isSort ? countOf(list.writes, "write") : "");
      setText(field("state"), isOver === null ? "" : state === "running" && done !== "" ? done : stateInWords(state));
      bar.hidden = isOver === null;
      const value = doneOf(action, list);
      if (bar.value !== value) bar.value = value;
    }
  }

  /** @param {readonly Action[] | null} actions */
  #replan(actions) {
    this.#actions = actions;
    const drawn = JSON.stringify(actions);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    this.#items = (actions ?? []).map((action) => {
      const content = /** @type {DocumentFragment} */ (find(document, "#action", HTMLTemplateElement).content.cloneNode(true));
      const item = find(content, "li", HTMLElement);
      const [field, bar] = [fieldsOf(item), find(item, "progress", HTMLProgressElement)];
      setText(field("name"), action.id);
      setText(field("about"), aboutAction(action));
      item.title = action.work ? `${action.id}: ${action.work.exact ? "takes" : "is estimated to take"} ${action.work.total} ${action.work.unit}: ${action.work.rule}` : action.id;
      bar.setAttribute("aria-label", `Progress of ${action.id}`);
      return { item, field, bar };
    });
    this.#place();
  }

  #place() {
    const { places, branches, depth } = layout(this.#actions ?? []);
    const isNarrow = NARROW_SCREEN.matches;
    const { height: boxHeight } = isNarrow ? NARROW : WIDE;
    this.#room = this.#parent.clientWidth;
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    const box = widthsWithin(depth, this.#room / rem);
    const at = (/** @type {Place} */ place) => {
      if (isNarrow) return { x: place.depth * NARROW.right, y: place.line * NARROW.down };
      // Each branch ends in a row of its own. In the middle of more rows than are seen at once, the first action would be out of view.
      return { x: place.depth * box.right, y: (branches.length > ROWS_SEEN ? place.branch : place.row) * WIDE.down };
    };
    let [width, height] = [0, 0];
    for (const [index, place] of places.entries()) {
      const item = this.#items[index]?.item;
      const { x, y } = at(place);
      [width, height] = [Math.max(width, x + box.width), Math.max(height, y + boxHeight)];
      if (item) Object.assign(item.style, { left: `${x}rem`, top: `${y}rem`, height: `${boxHeight}rem`, width: isNarrow ? `calc(100% - ${x}rem - 1px)` : `${box.width}rem` });
    }
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-hidden", "true");
    Object.assign(svg.style, { width: `${width}rem`, height: `${height}rem` });
    for (const [index, { after }] of (this.#actions ?? []).entries()) {
      const [from, to] = [places[after ?? -1], places[index]];
      if (!from || !to) continue;
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", isNarrow ? elbow(at(from), at(to), boxHeight) : curve(at(from), at(to), { width: box.width, height: boxHeight }));
      svg.append(path);
    }
    Object.assign(this.#list.style, { height: `${height}rem`, minWidth: isNarrow ? "" : `${width}rem` });
    // In the order of a reader: children follow their parent.
    const inOrder = [...this.#items].map(({ item }, index) => ({ item, line: places[index]?.line ?? 0 })).sort((a, b) => a.line - b.line);
    this.#list.replaceChildren(...inOrder.map(({ item }) => item));
    this.#parent.replaceChildren(svg, this.#list);
    this.#fade();
  }
}

/** @typedef {{ x: number, y: number }} Point */

/**
 * @param {Point} from the corner of the parent
 * @param {Point} to
 * @param {{ width: number, height: number }} box
 */
function curve(from, to, { width, height }) {
  const [x1, y1, x2, y2] = [from.x + width, from.y + height / 2, to.x, to.y + height / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

/**
 * @param {Point} from
 * @param {Point} to
 * @param {number} height of a box
 */
function elbow(from, to, height) {
  return `M${from.x + 0.6} ${from.y + height}V${to.y + height / 2}H${to.x}`;
}
