/** The area that a grid of terrain covers, by its header, and a distance of points for it. Pure. */

/** The number of points for which the distance is chosen. The service refuses grids with more cells anyway. */
const POINTS_WISHED = 40_000;

/** The characters in which the header of an ASCII grid, and comments before it, must be. */
export const HEADER_CHARS_MAX = 4000;

/** The greatest latitude of an area, north or south. */
const LATITUDE_MAX = 85;

/** @typedef {{ area: import("./projection.js").Degrees | import("./projection.js").Metres, step_m: number }} Covered */

/**
 * Reads the header of an ASCII grid of Esri; a value that is missing is NaN. Lines of comments are no such lines.
 * @param {string} text
 * @returns {import("./geotiff.js").GridHeader}
 */
export function readGrid(text) {
  /** @type {Record<string, number>} */
  const header = {};
  for (const [, name = "", value = ""] of text.slice(0, HEADER_CHARS_MAX).matchAll(/^\s*([a-z_]+)[ \t]+(-?[\d.,eE+-]+)[ \t]*\r?$/gim)) header[name.toLowerCase()] = Number(value.replace(",", "."));
  const { ncols = NaN, nrows = NaN, cellsize = NaN, dx = cellsize, dy = cellsize, xllcorner, yllcorner, xllcenter, yllcenter } = header;
  // Heights stand in the middle of their cells.
  const west = xllcenter ?? (xllcorner ?? NaN) + dx / 2;
  const south = yllcenter ?? (yllcorner ?? NaN) + dy / 2;
  return { columns: ncols, rows: nrows, west, south, cellWidth: dx, cellHeight: dy, isMetres: null };
}

/**
 * The area of a grid whose cells are known; null if it has none.
 * @param {import("./geotiff.js").GridHeader} header
 * @returns {Covered | null}
 */
export function areaOf(header) {
  const { cellWidth, cellHeight } = header;
  const { west, south, east, north, width, height } = endsOf(header);
  if (!(width > 0 && height > 0) || Number.isNaN(west + south)) return null;
  if (isDegrees(header)) {
    if (south < -LATITUDE_MAX || north > LATITUDE_MAX) return null;
    const degree = 111_320 * Math.cos(((south + north) / 2) * (Math.PI / 180));
    return { area: { west, south, east, north }, step_m: stepFor(width * degree, height * 111_320) };
  }
  // Where the first cell is that of the corner, the map begins in its middle.
  if (Math.abs(west) <= cellWidth && Math.abs(south) <= cellHeight) return { area: { width_m: east, height_m: north }, step_m: stepFor(east, north) };
  return { area: { x_m: west, y_m: south, width_m: width, height_m: height }, step_m: stepFor(width, height) };
}

/**
 * Returns true if a grid in degrees goes beyond 180° of longitude, where a map ends.
 * @param {import("./geotiff.js").GridHeader} header
 */
export function isBeyondMap(header) {
  const { west, east } = endsOf(header);
  return isDegrees(header) && (west < -180 || east > 180);
}

/**
 * Returns true if the coordinates of a grid are degrees. If the grid has no unit, they must be valid degrees, and its cells small or its
 * width that of the Earth.
 * @param {import("./geotiff.js").GridHeader} header
 */
export function isDegrees({ columns, rows, west, south, cellWidth, cellHeight, isMetres }) {
  if (isMetres !== null) return !isMetres;
  const [width, height] = [columns * cellWidth, rows * cellHeight];
  const canBe = west > -360 && west + width < 721 && width < 361 && south > -91 && south + height < 92;
  return canBe && (cellWidth < 1 || width > 359);
}

/** The middles of the outer cells, and their distances. Longitudes may count from 0° to 360°. @param {import("./geotiff.js").GridHeader} header */
function endsOf(header) {
  const { columns, rows, cellWidth, cellHeight } = header;
  const [width, height] = [rounded((columns - 1) * cellWidth), rounded((rows - 1) * cellHeight)];
  const turns = !isDegrees(header) ? 0 : header.west >= 180 ? -360 : header.west + width <= -180 ? 360 : 0;
  const [west, south] = [rounded(header.west + turns), rounded(header.south)];
  return { west, south, width, height, east: rounded(west + width), north: rounded(south + height) };
}

/** Rounds away the noise of a sum of floating-point numbers: what is left is less than a millimetre. @param {number} value */
function rounded(value) {
  return Number(value.toPrecision(12));
}

/**
 * @param {number} width
 * @param {number} height
 */
function stepFor(width, height) {
  return Math.max(1, Math.round(Math.sqrt((width * height) / POINTS_WISHED)));
}
