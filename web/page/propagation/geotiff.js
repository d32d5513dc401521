/** The header of a GeoTIFF file (OGC 19-008r4): the number and the place of its cells. The service reads the heights. Pure. */

const TAGS = /** @type {const} */ ({ 256: "columns", 257: "rows", 33550: "scale", 33922: "tie", 34735: "keys" });
const TYPES = /** @type {const} */ ({ 3: [2, "getUint16"], 4: [4, "getUint32"], 12: [8, "getFloat64"] });
const ENTRIES_MAX = 200;
const VALUES_MAX = 400;
const MODEL_TYPE = 1024;
const RASTER_TYPE = 1025;
const USER_DEFINED = 32767;
const PROJECTED = 1;
const GEOGRAPHIC = 2;
/** The keys that imply the type of the model: keys of projections, of systems of degrees, and of the units of lengths and angles. */
const IMPLIED = /** @type {const} */ ([[3072, PROJECTED], [3073, PROJECTED], [3074, PROJECTED], [3075, PROJECTED], [2048, GEOGRAPHIC], [3076, PROJECTED], [2054, GEOGRAPHIC]]);
const POINTS = 2;

/** @typedef {{ columns: number, rows: number, west: number, south: number, cellWidth: number, cellHeight: number, isMetres: boolean | null }} GridHeader west and south are of middles of cells */

/**
 * Returns true if bytes begin as a TIFF file does.
 * @param {Uint8Array} bytes
 */
export function isTiff(bytes) {
  return ["73,73,42,0", "77,77,0,42"].includes(bytes.slice(0, 4).join());
}

/**
 * Returns the size and the place of a grid; null if the file does not have them in a known form.
 * @param {Uint8Array} bytes
 * @returns {GridHeader | null}
 */
export function readGeoTiff(bytes) {
  try {
    const { columns: [columns = 0] = [], rows: [rows = 0] = [], scale = [], tie = [], keys = [] } = directoryOf(bytes);
    const [cellWidth = NaN, cellHeight = NaN] = scale;
    const [column = NaN, row = NaN, , east = NaN, north = NaN] = tie;
    const keyOf = (/** @type {number} */ wanted) => {
      for (let at = 4; at < keys.length; at += 4) if (keys[at] === wanted) return keys[at + 1] === 0 ? keys[at + 3] : USER_DEFINED;
      return undefined;
    };
    // As the service, which has the same order: the type of the model, or what other keys imply.
    const implied = () => IMPLIED.find(([key]) => keyOf(key) !== undefined)?.[1];
    // A tie point is the corner of a cell, or its middle.
    const half = keyOf(RASTER_TYPE) === POINTS ? 0 : 0.5;
    const [west, south] = [east + (half - column) * cellWidth, north - (rows - 1 + half - row) * cellHeight];
    const said = keyOf(MODEL_TYPE);
    const type = said === undefined || said === USER_DEFINED ? implied() : said;
    return Number.isFinite(west + south) && cellWidth > 0 && cellHeight > 0 ? { columns, rows, west, south, cellWidth, cellHeight, isMetres: type === undefined ? null : type === PROJECTED } : null;
  } catch (error) {
    if (error instanceof RangeError) return null; // it ends too early
    throw error;
  }
}

/**
 * Returns the values of the known tags in the first directory.
 * @param {Uint8Array} bytes
 */
function directoryOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isLittle = bytes[0] === 73;
  const begin = view.getUint32(4, isLittle);
  /** @type {{ [name in "columns" | "rows" | "scale" | "tie" | "keys"]?: number[] }} */
  const found = {};
  for (let index = 0; index < Math.min(ENTRIES_MAX, view.getUint16(begin, isLittle)); index += 1) {
    const entry = begin + 2 + 12 * index;
    const name = Reflect.get(TAGS, view.getUint16(entry, isLittle));
    const type = Reflect.get(TYPES, view.getUint16(entry + 2, isLittle));
    if (!name || !type) continue;
    const [size, read] = /** @type {[number, "getUint16" | "getUint32" | "getFloat64"]} */ (type);
    const count = Math.min(VALUES_MAX, view.getUint32(entry + 4, isLittle));
    const at = count * size <= 4 ? entry + 8 : view.getUint32(entry + 8, isLittle);
    found[/** @type {keyof typeof found} */ (name)] = Array.from({ length: count }, (_, nth) => view[read](at + nth * size, isLittle));
  }
  return found;
}
