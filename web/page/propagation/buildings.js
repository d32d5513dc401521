/** Buildings as GeoJSON, and a city of them. Pure. */

/**
 * @typedef {number[][][]} Rings
 * @typedef {{ type: "Feature", properties: Record<string, unknown> | null, geometry: { type: "Polygon", coordinates: Rings } | { type: "MultiPolygon",
 *   coordinates: Rings[] } }} Building
 * @typedef {{ type: "FeatureCollection", features: Building[] }} Buildings
 */

/**
 * Returns the outlines of buildings, in the coordinates of the area; what cannot be drawn is left out.
 * @param {Buildings} buildings
 * @returns {number[][][]}
 */
export function outlinesOf({ features }) {
  return features.flatMap(({ geometry }) => {
    if (geometry?.type === "Polygon") return geometry.coordinates.slice(0, 1);
    return geometry?.type === "MultiPolygon" ? geometry.coordinates.flatMap((rings) => rings.slice(0, 1)) : [];
  });
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
