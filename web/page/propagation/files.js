/** Files of terrain and buildings. Their size is checked before they are read, and their type before they are sent. */
import { formatBytes } from "../words.js";
import { HEADER_CHARS_MAX, areaOf, isBeyondMap, isDegrees, readGrid } from "./area.js";
import { buildingsFault } from "./buildings.js";
import { isTiff, readGeoTiff } from "./geotiff.js";

/** The most bytes of a file. A request may have 1 MiB in all. */
export const FILE_BYTES_MAX = 1_000_000;
/** The most bytes of a TIFF file. Three bytes are four letters of Base64. */
export const TIFF_BYTES_MAX = FILE_BYTES_MAX * 0.75;

/**
 * @param {Blob & { name: string }} file
 * @returns {Promise<{ terrain: import("./document.js").Terrain, covered: import("./area.js").Covered | null, assumed: string } | { fault: string }>} assumed is the unit that
 *   the file does not say, in a sentence
 */
export async function readTerrain(file) {
  const isImage = isTiff(new Uint8Array(await file.slice(0, 4).arrayBuffer()));
  const fault = sizeFault(file, isImage ? TIFF_BYTES_MAX : FILE_BYTES_MAX);
  if (fault) return { fault };
  if (isImage) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    return placed(file, { type: "geotiff", data: base64Of(bytes) }, readGeoTiff(bytes));
  }
  const text = await file.text();
  if (!beginsGrid(text)) return { fault: `${file.name} is neither a GeoTIFF file nor an ASCII grid of Esri, which begins with “ncols”.` };
  return placed(file, { type: "esri-ascii", text }, readGrid(text));
}

/** Returns true if a text begins an ASCII grid, apart from lines of comments. @param {string} text */
function beginsGrid(text) {
  const lines = text.slice(0, HEADER_CHARS_MAX).split(/[\r\n]+/);
  const first = lines.find((line) => line.trim() !== "" && !/^\s*(#|;|!|\/\/)/.test(line));
  return /^\s*(ncols|nrows)(\s|$)/i.test(first ?? "");
}

/**
 * @param {{ name: string }} file
 * @param {import("./document.js").Terrain} terrain
 * @param {import("./geotiff.js").GridHeader | null} header
 */
function placed({ name }, terrain, header) {
  if (header && isBeyondMap(header)) return { fault: `${name} goes beyond 180° of longitude, where a map ends. Cut it there: one map has longitudes from -180° to 180°.` };
  const assumed = header?.isMetres === null ? `The file does not say its unit: it counts as ${isDegrees(header) ? "degrees" : "metres"}.` : "";
  return { terrain, covered: header && areaOf(header), assumed };
}

/** @param {Uint8Array} bytes */
function base64Of(bytes) {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
}

/**
 * @param {Blob & { name: string }} file
 * @returns {Promise<{ buildings: import("./buildings.js").Buildings } | { fault: string }>}
 */
export async function readBuildings(file) {
  const fault = sizeFault(file, FILE_BYTES_MAX);
  if (fault) return { fault };
  try {
    const buildings = JSON.parse(await file.text());
    const unfit = buildingsFault(buildings);
    return unfit === null ? { buildings } : { fault: `${file.name} cannot be used: ${unfit}.` };
  } catch (error) {
    return { fault: `${file.name} is not JSON: ${error instanceof Error ? error.message : error}.` };
  }
}

/**
 * @param {Blob & { name: string }} file
 * @param {number} most
 */
function sizeFault({ name, size }, most) {
  if (size === 0) return `${name} is empty.`;
  return size > most ? `${name} has ${formatBytes(size)}, and at most ${formatBytes(most)} can be sent.` : null;
}
