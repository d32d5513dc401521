/** Buildings as GeoJSON, and a city of them. Pure. */
import { get } from "./pointers.js";

/**
 * @typedef {number[][][]} Rings
 * @typedef {{ type: "Feature", properties: Record<string, unknown> | null, geometry: { type: "Polygon", coordinates: Rings } | { type: "MultiPolygon",
 *   coordinates: Rings[] } }} Building
 * @typedef {{ type: "FeatureCollection", features: Building[] }} Buildings
 */

/**
 * Returns why buildings cannot be drawn, with the place; null if they can. The service checks the rest.
 * @param {unknown} value
 * @returns {string | null}
 */
export function buildingsFault(value) {
  const features = get(value, "/features");
  if (get(value, "/type") !== "FeatureCollection" || !Array.isArray(features)) return "a FeatureCollection of GeoJSON is expected";
  for (const [index, feature] of features.entries()) {
    const place = `/features/${index}/geometry`;
    const type = get(feature, "/geometry/type");
    if (type !== "Polygon" && type !== "MultiPolygon") return `at ${place}, a Polygon or a MultiPolygon is expected`;
    const fault = ringsFault(get(feature, "/geometry/coordinates"), type === "Polygon" ? 2 : 3, `${place}/coordinates`);
    if (fault !== null) return fault;
  }
  return null;
}

/**
 * @param {unknown} value
 * @param {number} levels of arrays around each position
 * @param {string} place
 * @returns {string | null}
 */
function ringsFault(value, levels, place) {
  if (!Array.isArray(value)) return `at ${place}, an array is expected`;
  if (levels === 0) return value.length >= 2 && value.every(Number.isFinite) ? null : `at ${place}, a position of two numbers is expected`;
  for (const [index, part] of value.entries()) {
    const fault = ringsFault(part, levels - 1, `${place}/${index}`);
    if (fault !== null) return fault;
  }
  return null;
}

/**
 * Returns the outlines of buildings without a fault, in the coordinates of the area.
 * @param {Buildings} buildings
 * @returns {number[][][]}
 */
export function outlinesOf({ features }) {
  return features.flatMap(({ geometry }) => (geometry.type === "Polygon" ? geometry.coordinates.slice(0, 1) : geometry.coordinates.flatMap((rings) => rings.slice(0, 1))));
}

/**
 * Returns the buildings that have a corner within an area.
 * @param {Buildings} buildings in its coordinates
 * @param {import("./projection.js").Frame} frame
 * @returns {Buildings}
 */
export function buildingsIn(buildings, frame) {
  const isInside = (/** @type {readonly number[]} */ [east = NaN, north = NaN]) => frame.has(frame.spot(east, north));
  return { ...buildings, features: buildings.features.filter((building) => outlinesOf({ ...buildings, features: [building] }).flat().some(isInside)) };
}

/**
 * Makes a city: blocks of houses along straight streets, a square without houses in its middle, and towers around the square.
 * @param {{ width_m: number, height_m: number }} area
 * @returns {Buildings}
 */
export function city({ width_m: width, height_m: height }) {
  const [block, street] = [70, 22];
  /** @type {Building[]} */
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
