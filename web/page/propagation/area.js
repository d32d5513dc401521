/** The area that a grid of terrain covers, by its header, and a distance of points for it. Pure. */

/** Grids with more cells are refused by the service anyway. */
const POINTS_WISHED = 40_000;

/** Terrain in degrees has smaller cells than this one of 11 km; what has larger ones, and no unit, is in metres. */
const CELL_DEGREES_MAX = 0.1;

/** @typedef {{ area: import("./projection.js").Degrees | import("./projection.js").Metres, step_m: number }} Covered */

/**
 * Reads the header of an ASCII grid of Esri; a value that is missing is NaN.
 * @param {string} text
 * @returns {import("./geotiff.js").GridHeader}
 */
export function readGrid(text) {
  /** @type {Record<string, number>} */
  const header = {};
  for (const [, name = "", value] of text.slice(0, 1000).matchAll(/^\s*([a-z]+)[ \t]+(-?[\d.eE+-]+)[ \t]*$/gim)) header[name.toLowerCase()] = Number(value);
  const { ncols = NaN, nrows = NaN, cellsize = NaN, xllcorner, yllcorner, xllcenter, yllcenter } = header;
  // Heights stand in the middle of their cells.
  const west = xllcenter ?? (xllcorner ?? NaN) + cellsize / 2;
  const south = yllcenter ?? (yllcorner ?? NaN) + cellsize / 2;
  return { columns: ncols, rows: nrows, west, south, cellWidth: cellsize, cellHeight: cellsize, isMetres: null };
}

/**
 * The area of a grid whose cells are known; null if it has none.
 * @param {import("./geotiff.js").GridHeader} header
 * @returns {Covered | null}
 */
export function areaOf(header) {
  const { cellWidth, cellHeight, isMetres } = header;
  const { west, south, east, north, width, height } = endsOf(header);
  if (!(width > 0 && height > 0) || Number.isNaN(west + south)) return null;
  if (isMetres !== true && cellWidth < 1 && west >= -180 && east <= 180 && south >= -85 && north <= 85) {
    const degree = 111_320 * Math.cos(((south + north) / 2) * (Math.PI / 180));
    return { area: { west, south, east, north }, step_m: stepFor(width * degree, height * 111_320) };
  }
  if (isMetres === false) return null;
  // Where the first cell is that of the corner, the map begins in its middle.
  if (Math.abs(west) <= cellWidth && Math.abs(south) <= cellHeight) return { area: { width_m: east, height_m: north }, step_m: stepFor(east, north) };
  return { area: { x_m: west, y_m: south, width_m: width, height_m: height }, step_m: stepFor(width, height) };
}

/**
 * Returns true if a grid in degrees goes beyond 180° of longitude, where a map ends. One that does not say its unit is in degrees if its cells
 * are so small, and it is no map of its own, which begins at 0.
 * @param {import("./geotiff.js").GridHeader} header
 */
export function isBeyondMap(header) {
  const { west, south, east, north } = endsOf(header);
  if (header.isMetres !== null) return !header.isMetres && (west < -180 || east > 180);
  if (!(header.cellWidth < CELL_DEGREES_MAX && south >= -85 && north <= 85)) return false;
  return west > header.cellWidth ? west < 180 && east > 180 : west < -180 && east > -180;
}

/** The middles of the outer cells, and their distances. @param {import("./geotiff.js").GridHeader} header */
function endsOf({ columns, rows, west: exactWest, south: exactSouth, cellWidth, cellHeight }) {
  const [west, south] = [rounded(exactWest), rounded(exactSouth)];
  const [width, height] = [rounded((columns - 1) * cellWidth), rounded((rows - 1) * cellHeight)];
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
