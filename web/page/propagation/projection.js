/** Places on the map: metres from its south-west corner, degrees, pixels of the view, and tiles of the web's maps. Pure. */

/**
 * @typedef {{ west: number, south: number, east: number, north: number }} Degrees
 * @typedef {{ width_m: number, height_m: number, x_m?: number, y_m?: number }} Metres with the south-west corner, in a projection
 * @typedef {{ x: number, y: number }} Spot metres to the east and to the north of the south-west corner
 */

/** The latitude at which a map of the web ends. */
const WEB_LAT_MAX = 85.0511;

/** The coordinates of an area. As in the service, a degree has the same length everywhere: the one in the middle. */
export class Frame {
  /** @param {Degrees | Metres} area as in the request */
  constructor(area) {
    this.isDegrees = "west" in area;
    if ("west" in area) {
      const middle = ((area.south + area.north) / 2) * (Math.PI / 180);
      this.west = area.west;
      this.south = area.south;
      this.lonM = 111_412.84 * Math.cos(middle) - 93.5 * Math.cos(3 * middle) + 0.118 * Math.cos(5 * middle);
      this.latM = 111_132.92 - 559.82 * Math.cos(2 * middle) + 1.175 * Math.cos(4 * middle);
      this.width = (area.east - area.west) * this.lonM;
      this.height = (area.north - area.south) * this.latM;
    } else {
      [this.west, this.south] = [area.x_m ?? 0, area.y_m ?? 0];
      this.lonM = this.latM = 1;
      this.width = area.width_m;
      this.height = area.height_m;
    }
  }

  /**
   * Returns true if a run computes this area.
   * @param {import("./computation.js").Plan["area"]} area
   */
  isOf({ coordinates, x_m: x = 0, y_m: y = 0, west = x, south = y, width_m: width, height_m: height }) {
    const differences = [this.west - west, this.south - south, (this.width - width) / this.width, (this.height - height) / this.height];
    return this.isDegrees === (coordinates !== "local") && differences.every((difference) => Math.abs(difference) < 1e-6);
  }

  /** The names of the coordinates in a request. */
  get names() {
    return this.isDegrees ? /** @type {const} */ (["lon", "lat"]) : /** @type {const} */ (["x_m", "y_m"]);
  }

  /**
   * @param {number} east
   * @param {number} north
   * @returns {Spot}
   */
  spot(east, north) {
    return { x: (east - this.west) * this.lonM, y: (north - this.south) * this.latM };
  }

  /**
   * Returns the coordinates of a spot, rounded to about a decimetre.
   * @param {Spot} spot
   * @returns {[number, number]} to the east and to the north
   */
  coordinates({ x, y }) {
    const digits = this.isDegrees ? 1e6 : 10;
    const round = (/** @type {number} */ value) => Math.round(value * digits) / digits;
    return [round(this.west + x / this.lonM), round(this.south + y / this.latM)];
  }

  /** @param {Spot} spot */
  has({ x, y }) {
    return x >= 0 && y >= 0 && x <= this.width && y <= this.height;
  }

  /**
   * Returns the nearest spot within the area.
   * @param {Spot} spot
   */
  inside({ x, y }) {
    // As far inside as coordinates are rounded.
    const edge = this.isDegrees || [this.west, this.south, this.width, this.height].some((metres) => metres % 1 !== 0) ? 0.1 : 0;
    return { x: clamp(x, edge, this.width - edge), y: clamp(y, edge, this.height - edge) };
  }

  /** @param {Spot} spot */
  inWords(spot) {
    const [east, north] = this.coordinates(spot);
    if (!this.isDegrees) return `${Math.round(east)} m east, ${Math.round(north)} m north`;
    const degrees = (/** @type {number} */ value, /** @type {string} */ plus, /** @type {string} */ minus) => `${Math.abs(value).toFixed(4)}° ${value < 0 ? minus : plus}`;
    return `${degrees(north, "N", "S")}, ${degrees(east, "E", "W")}`;
  }
}

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

/** The part of the area in view. Several maps may share it. */
export class View {
  /** The spot in the middle, and the pixels of a metre; 0 until the view is fitted. */
  x = 0;
  y = 0;
  scale = 0;
  #fitScale = 0;
  /** @type {{ width: number, height: number }} the area */
  #area = { width: 1, height: 1 };
  #size = { width: 1, height: 1 };

  /**
   * Shows all of an area.
   * @param {{ width: number, height: number }} area metres
   * @param {{ width: number, height: number }} size pixels
   */
  fit(area, size) {
    this.#area = area;
    this.#size = size;
    this.#fitScale = this.scale = Math.max(1e-6, Math.min((size.width - 16) / area.width, (size.height - 16) / area.height));
    this.x = area.width / 2;
    this.y = area.height / 2;
  }

  /**
   * Takes a new size of the map. A view of the whole area stays one.
   * @param {{ width: number, height: number }} size
   */
  resize(size) {
    if (size.width === this.#size.width && size.height === this.#size.height) return;
    if (this.isWhole) this.fit(this.#area, size);
    this.#size = size;
  }

  get isWhole() {
    return this.scale === this.#fitScale && this.x === this.#area.width / 2 && this.y === this.#area.height / 2;
  }

  /** @param {Spot} spot */
  pixel({ x, y }) {
    return { x: this.#size.width / 2 + (x - this.x) * this.scale, y: this.#size.height / 2 - (y - this.y) * this.scale };
  }

  /**
   * @param {number} x
   * @param {number} y
   * @returns {Spot}
   */
  spot(x, y) {
    return { x: this.x + (x - this.#size.width / 2) / this.scale, y: this.y - (y - this.#size.height / 2) / this.scale };
  }

  /**
   * Moves the map to the left and up.
   * @param {number} px
   * @param {number} py
   */
  pan(px, py) {
    this.#move(this.x + px / this.scale, this.y - py / this.scale);
  }

  /**
   * Shows `factor` times as much around a pixel, by default the one in the middle.
   * @param {number} factor
   * @param {number | null} px
   * @param {number | null} py
   */
  zoom(factor, px, py) {
    const [atX, atY] = [px ?? this.#size.width / 2, py ?? this.#size.height / 2];
    const before = this.spot(atX, atY);
    this.scale = clamp(this.scale / factor, this.#fitScale / 2, this.#fitScale * 400);
    const after = this.spot(atX, atY);
    this.#move(this.x + before.x - after.x, this.y + before.y - after.y);
  }

  /** Moves as little as needed to have a spot in view. @param {Spot} spot */
  reveal(spot) {
    const { x, y } = this.pixel(spot);
    const margin = 24;
    this.pan(x - clamp(x, margin, this.#size.width - margin), y - clamp(y, margin, this.#size.height - margin));
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #move(x, y) {
    this.x = clamp(x, 0, this.#area.width);
    this.y = clamp(y, 0, this.#area.height);
  }
}

/**
 * Returns the tiles of the web's maps (XYZ) that cover a part of an area in degrees; none if there would be too many. Their zoom has pixels
 * of about the size of those of the view.
 * @param {Frame} frame
 * @param {Spot} low its south-western corner
 * @param {Spot} high its north-eastern corner
 * @param {number} scale pixels of a metre
 * @returns {{ z: number, x: number, y: number, low: Spot, high: Spot }[]}
 */
export function webTiles(frame, low, high, scale) {
  const [west, south] = frame.coordinates(low);
  const [east, north] = frame.coordinates(high);
  const z = clamp(Math.round(Math.log2((frame.lonM * 360 * scale) / 256)), 0, 19);
  const count = 2 ** z;
  const column = (/** @type {number} */ lon) => clamp(Math.floor(((lon + 180) / 360) * count), 0, count - 1);
  const row = (/** @type {number} */ lat) => {
    const angle = (clamp(lat, -WEB_LAT_MAX, WEB_LAT_MAX) * Math.PI) / 180;
    return clamp(Math.floor(((1 - Math.asinh(Math.tan(angle)) / Math.PI) / 2) * count), 0, count - 1);
  };
  const latOf = (/** @type {number} */ y) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / count))) * 180) / Math.PI;
  const lonOf = (/** @type {number} */ x) => (x / count) * 360 - 180;
  const [left, right, top, bottom] = [column(west), column(east), row(north), row(south)];
  if ((right - left + 1) * (bottom - top + 1) > 100) return [];
  const tiles = [];
  for (let y = top; y <= bottom; y += 1) {
    for (let x = left; x <= right; x += 1) tiles.push({ z, x, y, low: frame.spot(lonOf(x), latOf(y + 1)), high: frame.spot(lonOf(x + 1), latOf(y)) });
  }
  return tiles;
}

/**
 * The URL of a tile.
 * @param {string} template with `{z}`, `{x}` and `{y}`
 * @param {{ z: number, x: number, y: number }} tile
 */
export function tileUrl(template, { z, x, y }) {
  return template.replace("{z}", String(z)).replace("{x}", String(x)).replace("{y}", String(y));
}
