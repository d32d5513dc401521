/**
 * The values of a coverage, put together from the tiles of a run. Pure.
 *
 * Tiles come from coarse to fine. Each point fills the square around it, except where a finer point has filled it. So the map is complete
 * from the first tile on.
 */

/** The value of a point that is missing. */
export const NONE = -32_768;
/** The level of squares whose points are missing. */
const NO_LEVEL = 255;
/** The least value of a histogram. It has a bin for each whole number of decibels that hundredths in 16 bits can have. */
const LOWEST_DB = -328;
const BINS = 656;

/**
 * @typedef {{ columns: number, rows: number }} Size
 * @typedef {{ level: number, stride: number, column: number, row: number, columns: number, rows: number }} Tile
 * @typedef {{ left: number, top: number, right: number, bottom: number }} Rectangle right and bottom are outside
 */

/** @param {string} base64 */
export function bytesOf(base64) {
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/**
 * Reads signed numbers of 16 bits, the low byte first, as machines have them.
 * @param {string} base64
 */
export function numbersOf(base64) {
  const bytes = bytesOf(base64);
  return new Int16Array(bytes.buffer, 0, bytes.length >> 1);
}

/**
 * Calls `take` with each point of a tile, in the order of its values.
 * @param {Tile} tile
 * @param {(column: number, row: number, index: number) => void} take
 */
export function eachPoint({ level, stride, column, row, columns, rows }, take) {
  let index = 0;
  for (let y = row; y < row + rows; y += stride) {
    // Earlier levels have every second point of every second row.
    const isNew = level === 0 || y % (2 * stride) !== 0;
    const step = isNew ? stride : 2 * stride;
    for (let x = isNew ? column : column + stride; x < column + columns; x += step) take(x, y, index++);
  }
}

export class Grid {
  /** The number of points that have come. */
  points = 0;
  /** The index of the best transmitter, for each point; null with one transmitter. @type {Uint8Array | null} */
  servers;
  /** The values of each quantity in hundredths. @type {Map<string, Int16Array>} */
  #values;
  /** @type {Map<string, Uint32Array>} */
  #histograms;
  /** For each square, the stride of the point that fills it, as a power of two. */
  #strides;

  /**
   * @param {Size} size
   * @param {readonly string[]} quantities
   * @param {boolean} hasServers
   */
  constructor({ columns, rows }, quantities, hasServers) {
    this.columns = columns;
    this.rows = rows;
    const all = columns * rows;
    this.#values = new Map(quantities.map((name) => [name, new Int16Array(all).fill(NONE)]));
    this.#histograms = new Map(quantities.map((name) => [name, new Uint32Array(BINS)]));
    this.#strides = new Uint8Array(all).fill(NO_LEVEL);
    this.servers = hasServers ? new Uint8Array(all) : null;
  }

  get isWhole() {
    return this.points === this.columns * this.rows;
  }

  /**
   * Adds a tile, and returns what has changed; null if it does not fit.
   * @param {{ tile: Tile, server?: string } & Record<string, unknown>} event
   * @returns {Rectangle | null}
   */
  add(event) {
    const { tile } = event;
    const isPower = tile.stride > 0 && Number.isInteger(Math.log2(tile.stride));
    const isInside = tile.column >= 0 && tile.row >= 0 && tile.column + tile.columns <= this.columns && tile.row + tile.rows <= this.rows;
    if (!isPower || !isInside) return null;
    const parts = [...this.#values.keys()].map((name) => numbersOf(String(event[name] ?? "")));
    const servers = this.servers && bytesOf(String(event.server ?? ""));
    let count = 0;
    eachPoint(tile, () => (count += 1));
    if ([...parts, ...(servers ? [servers] : [])].some(({ length }) => length !== count)) return null;
    const targets = [...this.#values.values()];
    const bins = [...this.#histograms.values()];
    eachPoint(tile, (column, row, index) => {
      parts.forEach((values, part) => {
        const bin = Math.max(0, Math.min(BINS - 1, Math.floor((values[index] ?? 0) / 100) - LOWEST_DB));
        const histogram = /** @type {Uint32Array} */ (bins[part]);
        histogram[bin] = (histogram[bin] ?? 0) + 1;
      });
      this.#fill(column, row, tile.stride, (at) => {
        parts.forEach((values, part) => (/** @type {Int16Array} */ (targets[part])[at] = values[index] ?? NONE));
        if (this.servers && servers) this.servers[at] = servers[index] ?? 0;
      });
    });
    this.points += count;
    const half = tile.stride >> 1;
    const last = (/** @type {number} */ end, /** @type {number} */ all) => Math.min(all, end + tile.stride);
    return {
      left: Math.max(0, tile.column - half),
      top: Math.max(0, tile.row - half),
      right: last(tile.column + tile.columns, this.columns),
      bottom: last(tile.row + tile.rows, this.rows),
    };
  }

  /**
   * Fills the square around a point. That of the last point of a row or column reaches to the edge.
   * @param {number} column
   * @param {number} row
   * @param {number} stride
   * @param {(at: number) => void} put
   */
  #fill(column, row, stride, put) {
    const half = stride >> 1;
    const level = Math.log2(stride);
    const right = column + stride >= this.columns ? this.columns : column + Math.max(1, half);
    const bottom = row + stride >= this.rows ? this.rows : row + Math.max(1, half);
    for (let y = Math.max(0, row - half); y < bottom; y += 1) {
      for (let x = Math.max(0, column - half), at = y * this.columns + x; x < right; x += 1, at += 1) {
        // Of two levels that are computed at the same time, the finer one may come first.
        if ((this.#strides[at] ?? 0) < level) continue;
        this.#strides[at] = level;
        put(at);
      }
    }
  }

  /** The stride at which all points have come. */
  get stride() {
    let stride = 1;
    while (Math.ceil(this.columns / stride) * Math.ceil(this.rows / stride) > Math.max(1, this.points)) stride *= 2;
    return stride;
  }

  /**
   * The values of a quantity in hundredths, row by row from the north-west.
   * @param {string} quantity
   */
  values(quantity) {
    return this.#values.get(quantity);
  }

  /**
   * Returns the value at a point, or that of the coarser point that fills its square; null if there is none.
   * @param {string} quantity
   * @param {number} column
   * @param {number} row
   */
  at(quantity, column, row) {
    if (column < 0 || row < 0 || column >= this.columns || row >= this.rows) return null;
    const value = this.#values.get(quantity)?.[row * this.columns + column] ?? NONE;
    return value === NONE ? null : value / 100;
  }

  /**
   * The index of the transmitter that is received best at a point.
   * @param {number} column
   * @param {number} row
   */
  serverAt(column, row) {
    return this.servers?.[row * this.columns + column] ?? 0;
  }

  /**
   * Returns the quantiles of all points for these parts, to a decibel.
   * @param {string} quantity
   * @param {readonly number[]} parts
   */
  quantiles(quantity, parts) {
    const histogram = this.#histograms.get(quantity);
    if (!histogram || this.points === 0) return null;
    return parts.map((part) => {
      let below = 0;
      for (let bin = 0; bin < BINS; bin += 1) {
        below += histogram[bin] ?? 0;
        if (below > part * (this.points - 1)) return bin + LOWEST_DB + (part > 0.5 ? 1 : 0);
      }
      return BINS + LOWEST_DB;
    });
  }
}
