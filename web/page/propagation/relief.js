/** Terrain: its heights, and its shading by a light from the north-west. Pure. */
import { clamp } from "./projection.js";
import { numbersOf } from "./tiles.js";

/** The light comes from the north-west, halfway up. */
const LIGHT = { x: -0.5, y: 0.5, z: Math.SQRT1_2 };

export class Relief {
  /**
   * @param {{ columns: number, rows: number, heights_m: string }} terrain as the run tells it
   * @param {{ columns: number, rows: number, step_m: number }} area
   */
  constructor({ columns, rows, heights_m: heights }, area) {
    this.columns = columns;
    this.rows = rows;
    this.heights = numbersOf(heights);
    if (this.heights.length !== columns * rows) throw new RangeError("the terrain has not as many heights as it says");
    /** The metres between two heights. */
    this.stepX = ((area.columns - 1) * area.step_m) / Math.max(1, columns - 1) || 1;
    this.stepY = ((area.rows - 1) * area.step_m) / Math.max(1, rows - 1) || 1;
  }

  /**
   * Returns the height at a spot, interpolated between the four around it.
   * @param {import("./projection.js").Spot} spot
   */
  heightAt({ x, y }) {
    const column = clamp(x / this.stepX, 0, this.columns - 1);
    const row = clamp(this.rows - 1 - y / this.stepY, 0, this.rows - 1);
    const [left, top] = [Math.min(Math.floor(column), Math.max(0, this.columns - 2)), Math.min(Math.floor(row), Math.max(0, this.rows - 2))];
    const [east, south] = [column - left, row - top];
    const upper = this.#height(left, top) * (1 - east) + this.#height(left + 1, top) * east;
    const lower = this.#height(left, top + 1) * (1 - east) + this.#height(left + 1, top + 1) * east;
    return upper * (1 - south) + lower * south;
  }

  /**
   * @param {number} column
   * @param {number} row
   */
  #height(column, row) {
    return this.heights[clamp(row, 0, this.rows - 1) * this.columns + clamp(column, 0, this.columns - 1)] ?? 0;
  }

  /** Returns the brightness of each height, 0 to 255; even ground has 180. The slopes of a flat map are exaggerated, so that they are seen. */
  shade() {
    const { columns, rows, heights } = this;
    const shade = new Uint8ClampedArray(columns * rows);
    let [low, high] = [Infinity, -Infinity];
    for (const height of heights) {
      if (height < low) low = height;
      if (height > high) high = height;
    }
    const exaggerated = clamp((Math.min(this.stepX * columns, this.stepY * rows) * 0.15) / Math.max(1, high - low), 1, 20);
    const [perEast, perNorth] = [exaggerated / (2 * this.stepX), exaggerated / (2 * this.stepY)];
    const at = (/** @type {number} */ index) => heights[index] ?? 0;
    // The first map waits for this: a plain loop is fast also before it is compiled.
    for (let row = 0, index = 0; row < rows; row += 1) {
      const [up, down] = [row > 0 ? columns : 0, row < rows - 1 ? columns : 0];
      for (let column = 0; column < columns; column += 1, index += 1) {
        const east = (at(column < columns - 1 ? index + 1 : index) - at(column > 0 ? index - 1 : index)) * perEast;
        const north = (at(index - up) - at(index + down)) * perNorth;
        const light = (-east * LIGHT.x - north * LIGHT.y + LIGHT.z) / Math.sqrt(east * east + north * north + 1);
        shade[index] = Math.max(0, light) * 255;
      }
    }
    return shade;
  }
}
