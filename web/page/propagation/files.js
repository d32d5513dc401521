/** Files of terrain and buildings: their size is checked before they are read, and what they are before they are sent. */
import { formatBytes } from "../words.js";
import { get } from "./document.js";

/** A request may have 1 MiB, with all else that it has. */
export const FILE_BYTES_MAX = 1_000_000;

/**
 * @param {Blob & { name: string }} file
 * @returns {Promise<{ terrain: import("./document.js").Terrain } | { fault: string }>}
 */
export async function readTerrain(file) {
  const fault = sizeFault(file);
  if (fault) return { fault };
  const text = await file.text();
  if (!/^\s*ncols\s+\d+/i.test(text)) return { fault: `${file.name} is not an ASCII grid of Esri: it does not begin with “ncols”.` };
  return { terrain: { type: "esri-ascii", text } };
}

/**
 * @param {Blob & { name: string }} file
 * @returns {Promise<{ buildings: import("./buildings.js").Buildings } | { fault: string }>}
 */
export async function readBuildings(file) {
  const fault = sizeFault(file);
  if (fault) return { fault };
  try {
    const buildings = JSON.parse(await file.text());
    if (get(buildings, "/type") === "FeatureCollection" && Array.isArray(get(buildings, "/features"))) return { buildings };
    return { fault: `${file.name} is not a FeatureCollection of GeoJSON.` };
  } catch (error) {
    return { fault: `${file.name} is not JSON: ${error instanceof Error ? error.message : error}.` };
  }
}

/** @param {Blob & { name: string }} file */
function sizeFault({ name, size }) {
  if (size === 0) return `${name} is empty.`;
  return size > FILE_BYTES_MAX ? `${name} has ${formatBytes(size)}, and at most ${formatBytes(FILE_BYTES_MAX)} can be sent.` : null;
}

/**
 * Offers data as a file.
 * @param {BlobPart} data
 * @param {string} type
 * @param {string} name
 */
export function save(data, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data], { type }));
  link.download = name;
  link.click();
  // The browser has begun to save it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
