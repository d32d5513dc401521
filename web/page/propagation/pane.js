/** One map with its computation: the values as they come, the progress, and the transmitters, which the user may move. */
import { fitted } from "../../chart/canvas.js";
import { listenToHands } from "../../chart/gestures.js";
import { fieldsOf, find, part, setText } from "../element.js";
import { formatCount, formatMs } from "../words.js";
import { Computation } from "./computation.js";
import { contour } from "./contours.js";
import { QUANTITIES, isCoverage } from "./document.js";
import { drawMap } from "./draw.js";
import { groundColours } from "./ground.js";
import { ARROWS, Handles } from "./handles.js";
import { Picture, shaded } from "./picture.js";
import { Relief } from "./relief.js";
import { Grid } from "./tiles.js";
import { leftInWords, signed } from "./words.js";

const CONTOURS_EVERY_MS = 300;
const KEY_PAN_PX = 80;
const KEY_ZOOM = 1.5;

/**
 * The state that all maps of the page share.
 * @typedef {object} Stage
 * @property {import("./projection.js").View} view
 * @property {import("./projection.js").Frame} frame
 * @property {import("./document.js").Coverage} document
 * @property {import("./picture.js").Look} look
 * @property {ReturnType<typeof import("./contours.js").readLevels>} contours the levels that are typed
 * @property {readonly number[][][]} buildings
 * @property {number} opacity
 * @property {((tile: { z: number, x: number, y: number }) => CanvasImageSource | null) | null} tileOf
 * @property {import("./projection.js").Spot | null} cursor
 * @property {number} selected the transmitter at which paths begin, where none is known to be the best
 * @property {() => void} seen the view has changed
 * @property {(spot: import("./projection.js").Spot | null, isKey: boolean) => void} point
 * @property {(index: number, spot: import("./projection.js").Spot, at: number) => void} move
 * @property {(index: number) => void} select
 *
 * @typedef {object} Told
 * @property {(pane: Pane, key: string) => void} started
 * @property {(pane: Pane, document: import("./document.js").Coverage) => void} told a run that was started before has this document
 * @property {(pane: Pane) => void} changed its values, or how far it is
 * @property {(pane: Pane) => void} painted the first tiles of a run can be seen
 * @property {(pane: Pane, why: Error) => void} refused
 */

/** @typedef {{ plan: import("./computation.js").Plan, grid: Grid, relief: Relief | null, shade: HTMLCanvasElement | null }} NextMap */

export class Pane {
  /** @type {Grid | null} */
  grid = null;
  /** @type {import("./computation.js").Plan | null} of the grid */
  plan = null;
  /** @type {import("./computation.js").Warning[]} */
  warnings = [];
  /** @type {Relief | null} */
  relief = null;
  /** The time from the request to the first drawing of tiles, ms. @type {number | null} */
  firstMs = null;
  #stage;
  #told;
  #computation;
  #canvas;
  #field;
  #bar;
  #handles;
  #ask;
  /** @type {Picture | null} */
  #picture = null;
  /** @type {HTMLCanvasElement | null} */
  #shade = null;
  /** The input from which the terrain was made, as a text. */
  #land = "";
  /** The map of a run that has no tile yet. Until it has one, the map before stays. @type {NextMap | null} */
  #next = null;
  /** The time at which the run was requested, and that at which its first tiles came. */
  #asked = 0;
  #begun = 0;
  #isFirstToSee = false;
  /** True for a run that was started before, so that its document is not known. */
  #isWatched = false;
  #state = "";
  #progress = 0;
  /** @type {number | null} */
  #left = null;
  #tookMs = 0;
  /** The time of the last news of the run. */
  #heard = 0;
  /** @type {{ level: number, lines: Float32Array }[]} */
  #contours = [];
  #contoursFor = "";
  #contoursAt = -Infinity;

  /**
   * @param {HTMLElement} figure
   * @param {string} name
   * @param {Stage} stage
   * @param {Told} told
   */
  constructor(figure, name, stage, told) {
    this.figure = figure;
    this.name = name;
    this.#stage = stage;
    this.#told = told;
    this.#canvas = find(figure, "canvas", HTMLCanvasElement);
    this.#canvas.setAttribute("aria-label", name);
    this.#field = fieldsOf(figure);
    this.#bar = find(figure, "progress", HTMLProgressElement);
    this.#bar.setAttribute("aria-label", `Progress of ${name}`);
    this.#handles = new Handles(find(figure, ".handles", HTMLElement), stage, name);
    this.#computation = new Computation({
      started: (key) => told.started(this, key),
      waits: (place) => {
        this.#say(place ? `waits for ${formatCount(place)} ${place === 1 ? "run" : "runs"}` : "starts next");
        this.#told.changed(this);
      },
      planned: (plan, document) => this.#plan(plan, document),
      refined: (event) => this.#refine(event),
      progressed: ({ progress, left }) => {
        [this.#progress, this.#left] = [progress, left ?? null];
        this.#show();
      },
      done: (result) => this.#end("done", result.warnings),
      ended: (why) => this.#fail(why),
    });
    this.#ask = fitted(this.#canvas, (context, width, height) => this.#draw(context, width, height));
    this.#listen();
  }

  /**
   * Computes a document in place of the current one.
   * @param {import("./document.js").Coverage} document
   * @param {import("./computation.js").Bond} bond
   * @param {number} asked when it was wished for, by the clock of the page
   */
  compute(document, bond, asked) {
    this.#begin(asked);
    this.#computation.begin(document, bond);
  }

  /** Shows a run that was started before. @param {string} key */
  watch(key) {
    this.#begin(performance.now());
    this.#isWatched = true;
    this.#computation.watch(key);
  }

  cancel() {
    this.#computation.cancel();
  }

  leave() {
    this.#computation.leave();
  }

  get isRunning() {
    return this.#computation.isRunning;
  }

  /** True from the request for a run until its first tiles are drawn. */
  get isStarting() {
    return this.isRunning && (this.#begun === 0 || this.#isFirstToSee);
  }

  /** The time since the last news of the run, ms; 0 without a run. */
  get silentMs() {
    return this.isRunning ? performance.now() - this.#heard : 0;
  }

  /** Draws anew in the next frame. */
  redraw() {
    this.#ask();
  }

  /**
   * Returns the value at a spot, and its transmitter; null without a value.
   * @param {import("./projection.js").Spot} spot
   */
  read(spot) {
    const area = this.#area;
    if (!this.grid || !area) return null;
    const { step_m: step, rows } = area;
    const [column, row] = [Math.round(spot.x / step), rows - 1 - Math.round(spot.y / step)];
    const value = this.grid.at(this.#stage.look.quantity, column, row);
    return value === null ? null : { value, server: this.grid.serverAt(column, row) };
  }

  /** @param {import("./projection.js").Spot} spot */
  valueInWords(spot) {
    const read = this.read(spot);
    const unit = QUANTITIES.find(([name]) => name === this.#stage.look.quantity)?.[2];
    return read ? `${signed(read.value)} ${unit}` : "no value yet";
  }

  /** @param {number} asked */
  #begin(asked) {
    this.#asked = asked;
    this.#begun = this.#progress = 0;
    this.#left = this.#next = null;
    this.#isFirstToSee = this.#isWatched = false;
    this.#say("starts");
  }

  /**
   * @param {import("./computation.js").Plan} plan
   * @param {unknown} document
   */
  #plan(plan, document) {
    if (this.#isWatched && isCoverage(document)) this.#told.told(this, document);
    // While the server computes the first tile.
    this.#next = { plan, grid: new Grid(plan.area, plan.quantities, plan.transmitters.length > 1), ...this.#raise(plan) };
    this.warnings = plan.warnings;
    this.#say("computes");
  }

  /** @param {import("./computation.js").TileEvent} event */
  #refine(event) {
    if (this.#next) {
      ({ plan: this.plan, grid: this.grid, relief: this.relief, shade: this.#shade } = this.#next);
      this.#next = null;
      this.#land = landOf(this.plan);
      this.#picture = new Picture(this.grid);
      this.#begun = performance.now();
      this.#isFirstToSee = true;
    }
    const changed = this.grid?.add(event);
    if (changed) this.#picture?.add(changed);
    this.#told.changed(this);
    this.#show();
    this.#ask();
  }

  /** Makes the terrain, unless the current map has the same one, as while a transmitter moves. @param {import("./computation.js").Plan} plan */
  #raise(plan) {
    if (landOf(plan) === this.#land) return { relief: this.relief, shade: this.#shade };
    const relief = plan.terrain && new Relief(plan.terrain, plan.area);
    return { relief, shade: relief && shaded(relief) };
  }

  /**
   * @param {string} state
   * @param {import("./computation.js").Warning[]} warnings
   */
  #end(state, warnings) {
    this.warnings = warnings;
    this.#tookMs = performance.now() - this.#begun;
    [this.#progress, this.#left] = [1, null];
    this.#contoursFor = "";
    this.#say(state);
    this.#told.changed(this);
    this.#ask();
  }

  /** @param {"cancelled" | Error} why */
  #fail(why) {
    this.#tookMs = performance.now() - this.#begun;
    this.#say(why === "cancelled" ? "cancelled" : "not computed");
    this.#told.changed(this);
    if (why !== "cancelled") this.#told.refused(this, why);
  }

  /** @param {string} state */
  #say(state) {
    this.#state = state;
    this.#show();
  }

  /** Shows the last news of the run. */
  #show() {
    this.#heard = performance.now();
    this.figure.dataset.computation = this.#state.replaceAll(" ", "-");
    this.#bar.value = this.#progress;
    setText(this.#field("state"), this.#state);
    setText(this.#field("summary"), this.#summary());
  }

  /** Returns the number of points, the time that is left, and the speed, in words. */
  #summary() {
    const { grid } = this;
    if (!grid || this.#begun === 0) return "";
    const took = this.isRunning ? performance.now() - this.#begun : this.#tookMs;
    const words = [`${formatCount(grid.points)} of ${formatCount(grid.columns * grid.rows)} points`];
    if (this.isRunning && this.#left !== null) words.push(leftInWords(this.#left));
    if (took > 0 && grid.points > 1000) words.push(`${formatCount(Number(((grid.points / took) * 1000).toPrecision(3)))} points/s`);
    if (!this.isRunning) words.push(`${formatMs(this.#tookMs + this.#begun - this.#asked)} ms in all`);
    if (this.firstMs !== null && !this.#isFirstToSee) words.push(`first seen after ${formatMs(this.firstMs)} ms`);
    return words.join(" · ");
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const { view, frame, look, cursor, buildings, opacity, tileOf } = this.#stage;
    if (view.scale === 0) view.fit(frame, { width, height });
    view.resize({ width, height });
    this.#picture?.update(look);
    this.#trace();
    const from = cursor && this.#handles.spotOf(this.read(cursor)?.server ?? this.#stage.selected);
    drawMap(context, width, height, { view, frame, area: this.#area, values: this.#picture?.canvas ?? null, relief: this.#shade, opacity, contours: this.#contours, buildings, tileOf, cursor, value: cursor && this.valueInWords(cursor), from });
    this.#handles.place(width, height);
    if (!this.#isFirstToSee) return;
    this.#isFirstToSee = false;
    this.firstMs = performance.now() - this.#asked;
    this.#show();
    this.#told.painted(this);
  }

  /** The grid of the values; null while the page shows another place, for which no value has come. */
  get #area() {
    const { plan } = this;
    return plan && this.#stage.frame.isOf(plan.area) ? plan.area : null;
  }

  /** The colours of the map below its values, from light to dark. @param {number} count */
  ground(count) {
    const { view, frame, tileOf } = this.#stage;
    const { clientWidth, clientHeight } = this.#canvas;
    return groundColours(count, clientWidth, clientHeight, { view, frame, tileOf, area: this.#area, relief: this.#shade });
  }

  /** Computes the contours anew, not too often while values come. */
  #trace() {
    const { contours: { levels }, look } = this.#stage;
    const { grid } = this;
    const values = grid?.values(look.quantity);
    const wanted = `${levels.join()} ${look.quantity} ${grid?.points}`;
    if (!grid || !values || wanted === this.#contoursFor) return;
    const now = performance.now();
    if (levels.length > 0 && this.isRunning && now - this.#contoursAt < CONTOURS_EVERY_MS) return;
    [this.#contoursFor, this.#contoursAt] = [wanted, now];
    this.#contours = levels.map((level) => ({ level, lines: contour(values, grid.columns, level, grid.stride) }));
  }

  #listen() {
    const { view, seen, point } = this.#stage;
    const canvas = this.#canvas;
    listenToHands(canvas, {
      zoom: (factor, x, y) => {
        view.zoom(factor, x, y);
        seen();
      },
      pan: (px, down) => {
        view.pan(px, down);
        seen();
      },
      // What is read stays when the pointer leaves, or when the page moves under it.
      point: (x, y) => x !== null && y !== null && point(view.spot(x, y), false),
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (!this.#press(event.key, event.shiftKey)) return;
      event.preventDefault();
    });
    const tools = part("div", "chart-tools", "");
    for (const [sign, title, factor] of /** @type {const} */ ([["−", "Zoom out", 2], ["+", "Zoom in", 0.5], ["All", "Show all of the map", 0]])) {
      const button = part("button", "", sign);
      button.type = "button";
      button.title = title;
      button.setAttribute("aria-label", title);
      button.addEventListener("click", () => this.#zoom(factor));
      tools.append(button);
    }
    canvas.after(tools);
  }

  /** @param {number} factor 0 for all of the map */
  #zoom(factor) {
    const { view, frame, seen } = this.#stage;
    if (factor > 0) view.zoom(factor, null, null);
    else view.fit(frame, { width: this.#canvas.clientWidth, height: this.#canvas.clientHeight });
    seen();
  }

  /**
   * @param {string} key
   * @param {boolean} isShift
   */
  #press(key, isShift) {
    const { view, frame, seen, point } = this.#stage;
    const arrow = ARROWS[key];
    if (arrow && isShift) {
      view.pan(arrow[0] * KEY_PAN_PX, arrow[1] * KEY_PAN_PX);
      seen();
    } else if (arrow) {
      const step = this.plan?.area.step_m ?? frame.width / 100;
      const from = this.#stage.cursor ?? { x: view.x, y: view.y };
      const by = Math.max(step, 8 / view.scale);
      const spot = { x: Math.max(0, Math.min(frame.width, from.x + arrow[0] * by)), y: Math.max(0, Math.min(frame.height, from.y - arrow[1] * by)) };
      view.reveal(spot);
      point(spot, true);
    } else if (key === "+" || key === "=") this.#zoom(1 / KEY_ZOOM);
    else if (key === "-") this.#zoom(KEY_ZOOM);
    else if (key === "0") this.#zoom(0);
    else if (key === "Escape") point(null, true);
    else return false;
    return true;
  }

  /** Returns the lowest and the highest value that are drawn, without the few that are far from all others. */
  range() {
    return this.grid?.quantiles(this.#stage.look.quantity, [0.01, 0.99]) ?? null;
  }
}

/** Returns a text that is the same for the same terrain. @param {import("./computation.js").Plan} plan */
function landOf({ terrain, area }) {
  return terrain ? [terrain.heights_m, area.columns, area.rows, area.step_m].join() : "";
}
