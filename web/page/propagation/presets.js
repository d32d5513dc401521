/** Places to begin with. Pure. */
import { city } from "./buildings.js";

/** @typedef {import("./document.js").Coverage} Coverage */

/** The same document as examples/propagation/valley.json. A test compares them. @type {Coverage} */
const VALLEY = {
  area: { west: 10.9, south: 46.6, east: 11.1, north: 46.72 },
  step_m: 100,
  model: "free-space",
  terrain: { type: "valley", depth_m: 600 },
  diffraction: "deygout",
  transmitters: [
    { name: "village", lon: 11.02, lat: 46.66, height_m: 30, frequency_mhz: 800, power_dbm: 43, gain_dbi: 11 },
    { name: "pass", lon: 10.94, lat: 46.7, height_m: 20, frequency_mhz: 800, power_dbm: 43, gain_dbi: 15, antenna: { type: "sector", azimuth_deg: 135, beamwidth_deg: 65, front_to_back_db: 25 } },
  ],
};

const CITY_AREA = { width_m: 1600, height_m: 1200 };

/** @returns {Coverage} */
function cityWithBuildings() {
  return {
    area: CITY_AREA,
    step_m: 10,
    model: "walfisch-ikegami",
    environment: "urban-large",
    buildings: city(CITY_AREA),
    transmitters: [
      { name: "square", x_m: 800, y_m: 600, height_m: 35, frequency_mhz: 1800, power_dbm: 40, gain_dbi: 12 },
      { name: "west", x_m: 380, y_m: 330, height_m: 30, frequency_mhz: 1800, power_dbm: 40, gain_dbi: 15, antenna: { type: "sector", azimuth_deg: 270, beamwidth_deg: 90 } },
    ],
  };
}

/** @returns {Coverage} */
function plain() {
  return {
    area: { width_m: 30_000, height_m: 20_000 },
    step_m: 100,
    model: "hata",
    environment: "open",
    transmitters: [{ name: "mast", x_m: 15_000, y_m: 10_000, height_m: 60, frequency_mhz: 900, power_dbm: 43, gain_dbi: 11 }],
  };
}

/** @type {readonly { name: string, words: string, make: () => Coverage }[]} */
export const PRESETS = [
  { name: "valley", words: "A valley, with terrain", make: () => structuredClone(VALLEY) },
  { name: "city", words: "A city, with buildings", make: cityWithBuildings },
  { name: "plain", words: "A plain", make: plain },
];

/** Returns the name of the preset whose place a document has; an empty one if none has it. @param {Coverage} document */
export function presetOf(document) {
  const placeOf = (/** @type {Coverage} */ { area, terrain, buildings }) => JSON.stringify([Object.entries(area).sort(), terrain?.type, buildings?.features.length]);
  const place = placeOf(document);
  return PRESETS.find(({ make }) => placeOf(make()) === place)?.name ?? "";
}
