/** The area that a grid of terrain covers, by its header, and a distance of points for it. Pure. */

/** Grids with more cells are refused by the service anyway. */
const POINTS_WISHED = 40_000;

/** @typedef {{ area: import("./projection.js").Degrees | import("./projection.js").Metres, step_m: number }} Covered */

/**
 * Reads the header of an ASCII grid of Esri; null if a value is missing.
 * @param {string} text
 */
export function areaOfGrid(text) {
  /** @type {Record<string, number>} */
  const header = {};
  for (const [, name = "", value] of text.slice(0, 1000).matchAll(/^\s*([a-z]+)[ \t]+(-?[\d.eE+-]+)[ \t]*$/gim)) header[name.toLowerCase()] = Number(value);
  const { ncols = NaN, nrows = NaN, cellsize = NaN, xllcorner, yllcorner, xllcenter, yllcenter } = header;
  // Heights stand in the middle of their cells.
  const west = xllcenter ?? (xllcorner ?? NaN) + cellsize / 2;
  const south = yllcenter ?? (yllcorner ?? NaN) + cellsize / 2;
  return areaOf({ columns: ncols, rows: nrows, west, south, cellWidth: cellsize, cellHeight: cellsize, isMetres: null });
}

/**
 * The area of a grid whose cells are known; null if it has none.
 * @param {import("./geotiff.js").GridHeader} header
 * @returns {Covered | null}
 */
export function areaOf({ columns, rows, west: exactWest, south: exactSouth, cellWidth, cellHeight, isMetres }) {
  const [west, south] = [rounded(exactWest), rounded(exactSouth)];
  const [width, height] = [rounded((columns - 1) * cellWidth), rounded((rows - 1) * cellHeight)];
  if (!(width > 0 && height > 0) || Number.isNaN(west + south)) return null;
  const [east, north] = [rounded(west + width), rounded(south + height)];
  if (isMetres !== true && cellWidth < 1 && west >= -180 && east <= 180 && south >= -85 && north <= 85) {
    const degree = 111_320 * Math.cos(((south + north) / 2) * (Math.PI / 180));
    return { area: { west, south, east, north }, step_m: stepFor(width * degree, height * 111_320) };
  }
  if (isMetres === false) return null;
  // Where the first cell is that of the corner, the map begins in its middle.
  if (Math.abs(west) <= cellWidth && Math.abs(south) <= cellHeight) return { area: { width_m: east, height_m: north }, step_m: stepFor(east, north) };
  return { area: { x_m: west, y_m: south, width_m: width, height_m: height }, step_m: stepFor(width, height) };
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
