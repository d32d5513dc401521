/** Buildings as GeoJSON, and a city of them. Pure. */
import { get } from "./pointers.js";

/**
 * @typedef {number[][][]} Rings
 * @typedef {{ type: "FeatureCollection", features: unknown[] }} Buildings the features are those of a file, and may be no buildings
 */

/**
 * Returns the reason why a value is not a collection of buildings; null if it is one. The service leaves out features that are not
 * buildings.
 * @param {unknown} value
 * @returns {string | null}
 */
export function buildingsFault(value) {
  return get(value, "/type") === "FeatureCollection" && Array.isArray(get(value, "/features")) ? null : "a FeatureCollection of GeoJSON is expected";
}

/**
 * Returns the outlines of buildings, in the coordinates of the area. Leaves out features that are not buildings.
 * @param {{ features: readonly unknown[] }} buildings
 * @returns {number[][][]}
 */
export function outlinesOf({ features }) {
  return features.flatMap((feature) => {
    const [type, coordinates] = [get(feature, "/geometry/type"), get(feature, "/geometry/coordinates")];
    const polygons = type === "Polygon" ? [coordinates] : type === "MultiPolygon" && Array.isArray(coordinates) ? coordinates : [];
    const outlines = polygons.map((rings) => (Array.isArray(rings) ? rings[0] : null));
    return outlines.every(isRing) ? outlines : [];
  });
}

/** @param {unknown} ring @returns {ring is number[][]} */
function isRing(ring) {
  return Array.isArray(ring) && ring.every((position) => Array.isArray(position) && position.length >= 2 && position.slice(0, 2).every(Number.isFinite));
}

/**
 * Returns the buildings that have a corner within an area.
 * @param {Buildings} buildings in its coordinates
 * @param {import("./projection.js").Frame} frame
 * @returns {Buildings}
 */
export function buildingsIn(buildings, frame) {
  const isInside = (/** @type {readonly number[]} */ [east = NaN, north = NaN]) => frame.has(frame.spot(east, north));
  return { ...buildings, features: buildings.features.filter((building) => outlinesOf({ features: [building] }).flat().some(isInside)) };
}

/**
 * Makes a city: blocks of houses along straight streets, a square without houses in its middle, and towers around the square.
 * @param {{ width_m: number, height_m: number }} area
 * @returns {Buildings}
 */
export function city({ width_m: width, height_m: height }) {
  const [block, street] = [70, 22];
  /** @type {Buildings["features"]} */
  const features = [];
  let seed = 7;
  // A small generator of the same numbers each time (Park and Miller).
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (let south = street; south + block < height; south += block + street) {
    for (let west = street; west + block < width; west += block + street) {
      const away = Math.hypot(west + block / 2 - width / 2, south + block / 2 - height / 2);
      const chance = random();
      if (away < 130 || chance < 0.08) continue;
      const levels = away < 320 ? 8 + Math.floor(random() * 9) : 3 + Math.floor(random() * 5);
      const depth = block * (0.7 + 0.3 * random());
      const ring = [[west, south], [west + block, south], [west + block, south + depth], [west, south + depth], [west, south]];
      const rounded = ring.map((place) => place.map((value) => Math.round(value * 10) / 10));
      features.push({ type: "Feature", properties: { height: levels * 3 }, geometry: { type: "Polygon", coordinates: [rounded] } });
    }
  }
  return { type: "FeatureCollection", features };
}
