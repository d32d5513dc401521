/** The document for the service: its fields, the ranges of its models, and its faults. Pure. */
import { formatCount, formatNumber } from "../words.js";
import { buildingsFault } from "./buildings.js";
import { get } from "./pointers.js";
import { Frame } from "./projection.js";

/**
 * @typedef {"free-space" | "two-ray" | "hata" | "cost231-hata" | "walfisch-ikegami"} Model
 * @typedef {{ name?: string, height_m: number, frequency_mhz: number, power_dbm: number, gain_dbi?: number, lon?: number, lat?: number, x_m?: number,
 *   y_m?: number, antenna?: { type: "omni" | "sector", azimuth_deg?: number, beamwidth_deg?: number, front_to_back_db?: number } }} Transmitter
 * @typedef {{ type: string, depth_m?: number, text?: string, data?: string }} Terrain
 * @typedef {{ building_height_m?: number, street_width_m?: number, building_separation_m?: number, street_angle_deg?: number,
 *   line_of_sight?: string }} Street
 * @typedef {{ area: import("./projection.js").Degrees | import("./projection.js").Metres, step_m: number, model: Model, environment?: string,
 *   transmitters: Transmitter[], receiver?: { height_m?: number, gain_dbi?: number }, terrain?: Terrain, diffraction?: string, street?: Street,
 *   buildings?: import("./buildings.js").Buildings, quantities?: string[], output?: object, ground?: object }} Coverage
 *
 * @typedef {object} Field
 * @property {string} pointer its place in the document
 * @property {string} label
 * @property {string} [unit]
 * @property {"number" | "text" | "choice"} kind
 * @property {readonly (readonly [string, string])[]} [choices] values and their words
 * @property {number} [min]
 * @property {number} [max]
 * @property {number | string} [usual] what counts without a value
 * @property {boolean} [isRequired]
 * @property {readonly [number, number]} [valid] the range for which the model is made
 */

/** @type {readonly (readonly [Model, string])[]} */
export const MODELS = [
  ["free-space", "Free space (ITU-R P.525)"],
  ["two-ray", "Two-ray"],
  ["hata", "Okumura-Hata"],
  ["cost231-hata", "COST 231-Hata"],
  ["walfisch-ikegami", "COST 231-Walfisch-Ikegami"],
];

/** @type {readonly (readonly [string, string])[]} */
const ENVIRONMENTS = [["urban-large", "urban, large city"], ["urban", "urban"], ["suburban", "suburban"], ["open", "rural, open"]];

/** @typedef {{ mhz?: readonly [number, number], base?: readonly [number, number], mobile?: readonly [number, number], km?: readonly [number, number] }} Validity */
/** The ranges for which models are made: docs/PROPAGATION.md. @type {Record<Model, Validity>} */
export const VALIDITY = {
  "free-space": {},
  "two-ray": { mhz: [30, 100_000], km: [0, 30] },
  hata: { mhz: [150, 1500], base: [30, 200], mobile: [1, 10], km: [1, 20] },
  "cost231-hata": { mhz: [1500, 2000], base: [30, 200], mobile: [1, 10], km: [1, 20] },
  "walfisch-ikegami": { mhz: [800, 2000], base: [4, 50], mobile: [1, 3], km: [0.02, 5] },
};

export const QUANTITIES = /** @type {const} */ ([["received_dbm", "Received power", "dBm"], ["loss_db", "Path loss", "dB"], ["field_dbuv_m", "Field strength", "dB(µV/m)"]]);
const TRANSMITTERS_MAX = 16;

/** @param {string} model */
export function environmentsOf(model) {
  if (model === "hata") return ENVIRONMENTS;
  return model === "cost231-hata" || model === "walfisch-ikegami" ? ENVIRONMENTS.slice(0, 3) : [];
}

/**
 * Makes a document fit its model: removes the members of other models, and adds those that the model needs.
 * @param {Coverage} document
 * @returns {Coverage} another one
 */
export function fitted(document) {
  const fit = structuredClone(document);
  const known = environmentsOf(fit.model).map(([name]) => name);
  if (fit.environment !== undefined && !known.includes(fit.environment)) {
    if (known.length === 0) delete fit.environment;
    else fit.environment = "suburban";
  }
  if (fit.model !== "two-ray") delete fit.ground;
  if (!fit.terrain) delete fit.diffraction;
  if (fit.model === "walfisch-ikegami" && !fit.buildings) {
    fit.street = { building_height_m: 15, street_width_m: 20, building_separation_m: 40, ...fit.street };
    if (fit.street.line_of_sight === "buildings") delete fit.street.line_of_sight;
  } else if (fit.model !== "walfisch-ikegami") delete fit.street;
  return fit;
}

/**
 * The fields of a document, in groups.
 * @param {Coverage} document
 * @returns {{ title: string, fields: Field[] }[]}
 */
export function groupsOf(document) {
  const { model } = document;
  const valid = VALIDITY[model] ?? {};
  /** @type {Field[]} */
  const ofModel = [{ pointer: "/model", label: "Model", kind: "choice", choices: MODELS, isRequired: true }];
  const environments = environmentsOf(model);
  if (environments.length > 0) ofModel.push({ pointer: "/environment", label: "Environment", kind: "choice", choices: environments, usual: "urban" });
  if (model === "walfisch-ikegami") ofModel.push(...streetFields(document.buildings !== undefined));
  return [
    { title: "Model", fields: ofModel },
    {
      title: "Receiver",
      fields: [
        { pointer: "/receiver/height_m", label: "Height", unit: "m", kind: "number", min: 0.1, max: 1000, usual: 1.5, valid: valid.mobile },
        { pointer: "/receiver/gain_dbi", label: "Gain", unit: "dBi", kind: "number", min: -50, max: 60, usual: 0 },
      ],
    },
    { title: "Area", fields: areaFields(document) },
  ];
}

/** All fields of a document, those of its transmitters last. @param {Coverage} document */
export function fieldsIn(document) {
  return [...groupsOf(document).flatMap(({ fields }) => fields), ...document.transmitters.flatMap((_, index) => transmitterFields(document, index))];
}

/** @param {boolean} hasBuildings @returns {Field[]} */
function streetFields(hasBuildings) {
  const usual = hasBuildings ? "as built" : undefined;
  /** @type {readonly (readonly [string, string])[]} */
  const sights = [["never", "never"], ["always", "always"]];
  return [
    { pointer: "/street/building_height_m", label: "Roofs", unit: "m", kind: "number", min: 1, max: 500, usual },
    { pointer: "/street/street_width_m", label: "Street width", unit: "m", kind: "number", min: 1, max: 500, usual },
    { pointer: "/street/building_separation_m", label: "Building separation", unit: "m", kind: "number", min: 1, max: 1000, usual },
    { pointer: "/street/street_angle_deg", label: "Street angle", unit: "°", kind: "number", min: 0, max: 90, usual: 90 },
    { pointer: "/street/line_of_sight", label: "Line of sight", kind: "choice", choices: hasBuildings ? [...sights, ["buildings", "by the buildings"]] : sights, usual: hasBuildings ? "buildings" : "never" },
  ];
}

/** @param {Coverage} document @returns {Field[]} */
function areaFields({ area, terrain }) {
  const side = { kind: /** @type {const} */ ("number"), isRequired: true };
  const edge = { unit: "m", min: -30_000_000, max: 30_000_000, ...side };
  const corner = [{ pointer: "/area/x_m", label: "West edge", ...edge }, { pointer: "/area/y_m", label: "South edge", ...edge }];
  /** @type {Field[]} */
  const fields =
    "west" in area
      ? [
          { pointer: "/area/west", label: "West", unit: "°", min: -180, max: 180, ...side },
          { pointer: "/area/east", label: "East", unit: "°", min: -180, max: 180, ...side },
          { pointer: "/area/south", label: "South", unit: "°", min: -85, max: 85, ...side },
          { pointer: "/area/north", label: "North", unit: "°", min: -85, max: 85, ...side },
        ]
      : [
          ...("x_m" in area ? corner : []),
          { pointer: "/area/width_m", label: "Width", unit: "m", min: 1, max: 200_000, ...side },
          { pointer: "/area/height_m", label: "Height", unit: "m", min: 1, max: 200_000, ...side },
        ];
  fields.push({ pointer: "/step_m", label: "Distance of points", unit: "m", min: 0.1, max: 200_000, ...side });
  if (terrain?.type === "valley") fields.push({ pointer: "/terrain/depth_m", label: "Depth of the valley", unit: "m", kind: "number", min: 1, max: 3000, isRequired: true });
  if (terrain) fields.push({ pointer: "/diffraction", label: "Diffraction", kind: "choice", choices: [["deygout", "Deygout"], ["bullington", "Bullington"], ["none", "none"]], usual: "deygout" });
  return fields;
}

/**
 * The fields of a transmitter.
 * @param {Coverage} document
 * @param {number} index
 * @returns {Field[]}
 */
export function transmitterFields({ area, model, transmitters }, index) {
  const at = `/transmitters/${index}`;
  const valid = VALIDITY[model] ?? {};
  const frame = new Frame(area);
  const [low, high] = [frame.coordinates({ x: 0, y: 0 }), frame.coordinates({ x: frame.width, y: frame.height })];
  const unit = frame.isDegrees ? "°" : "m";
  const [east, north] = frame.names;
  /** @type {Field[]} */
  const fields = [
    { pointer: `${at}/name`, label: "Name", kind: "text", usual: String(index) },
    { pointer: `${at}/frequency_mhz`, label: "Frequency", unit: "MHz", kind: "number", min: 1, max: 300_000, isRequired: true, valid: valid.mhz },
    { pointer: `${at}/height_m`, label: "Height", unit: "m", kind: "number", min: 0.1, max: 5000, isRequired: true, valid: valid.base },
    { pointer: `${at}/power_dbm`, label: "Power", unit: "dBm", kind: "number", min: -100, max: 100, isRequired: true },
    { pointer: `${at}/gain_dbi`, label: "Gain", unit: "dBi", kind: "number", min: -50, max: 60, usual: 0 },
    { pointer: `${at}/${east}`, label: frame.isDegrees ? "Longitude" : "East", unit, kind: "number", min: low[0], max: high[0], isRequired: true },
    { pointer: `${at}/${north}`, label: frame.isDegrees ? "Latitude" : "North", unit, kind: "number", min: low[1], max: high[1], isRequired: true },
    { pointer: `${at}/antenna/type`, label: "Antenna", kind: "choice", choices: [["omni", "omnidirectional"], ["sector", "sector"]], usual: "omni" },
  ];
  if (transmitters[index]?.antenna?.type !== "sector") return fields;
  return [
    ...fields,
    { pointer: `${at}/antenna/azimuth_deg`, label: "Azimuth", unit: "°", kind: "number", min: 0, max: 360, isRequired: true },
    { pointer: `${at}/antenna/beamwidth_deg`, label: "Beamwidth", unit: "°", kind: "number", min: 1, max: 360, usual: 65 },
    { pointer: `${at}/antenna/front_to_back_db`, label: "Front to back", unit: "dB", kind: "number", min: 0, max: 60, usual: 25 },
  ];
}

/**
 * Returns the reason why a field's value is refused; null if it is not.
 * @param {Field} field
 * @param {unknown} value
 */
export function faultOf({ kind, min = -Infinity, max = Infinity, unit = "", isRequired, label }, value) {
  if (value === undefined) return isRequired ? `${label}: a value is missing.` : null;
  if (kind !== "number") return null;
  if (typeof value === "number" && value >= min && value <= max) return null;
  return `${label}: allowed are ${rangeInWords([min, max], unit)}.`;
}

/**
 * @param {readonly [number, number]} range
 * @param {string} unit
 */
export function rangeInWords([min, max], unit) {
  return `${formatNumber(min, 6)} to ${formatNumber(max, 6)}${unit === "°" ? "°" : unit === "" ? "" : ` ${unit}`}`;
}

/**
 * Returns true if the value lies outside the range for which the model is made.
 * @param {Field} field
 * @param {unknown} value
 */
export function isOutside({ valid, usual }, value) {
  const number = Number(value ?? usual);
  return valid !== undefined && !(number >= valid[0] && number <= valid[1]);
}

/**
 * Adds a transmitter like the last one, beside it, and returns its index; null if there are too many.
 * @param {Coverage} document
 */
export function addTransmitter(document) {
  const { transmitters, area } = document;
  const last = transmitters.at(-1);
  if (!last || transmitters.length >= TRANSMITTERS_MAX) return null;
  const frame = new Frame(area);
  const next = structuredClone(last);
  // The places of a small grid, in turn.
  const count = transmitters.length;
  const spot = { x: frame.width * (0.2 + 0.3 * (count % 3)), y: frame.height * (0.25 + 0.25 * (Math.floor(count / 3) % 3)) };
  next.name = `new ${count + 1}`;
  moveTransmitter(next, frame, spot);
  return transmitters.push(next) - 1;
}

/**
 * @param {Transmitter} transmitter
 * @param {Frame} frame
 * @param {import("./projection.js").Spot} spot
 */
export function moveTransmitter(transmitter, frame, spot) {
  const [east, north] = frame.names;
  [transmitter[east], transmitter[north]] = frame.coordinates(frame.inside(spot));
}

/**
 * @param {Transmitter} transmitter
 * @param {Frame} frame
 */
export function spotOf(transmitter, frame) {
  const [east, north] = frame.names;
  return frame.spot(Number(transmitter[east]), Number(transmitter[north]));
}

/**
 * Moves the transmitters that are outside the area into it, spread as in the area before, and returns their names.
 * @param {Coverage} document
 * @param {Frame} before
 */
export function moveInside(document, before) {
  const after = new Frame(document.area);
  // What has no place in the area before, since a field is empty, gets the middle.
  const spread = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ to) => (Number.isFinite(at / from) ? (at / from) * to : to / 2);
  /** @type {string[]} */
  const names = [];
  document.transmitters = document.transmitters.map((transmitter, index) => {
    if (after.has(spotOf(transmitter, after))) return transmitter;
    names.push(nameOf(transmitter, index));
    const { x, y } = spotOf(transmitter, before);
    const { lon: _lon, lat: _lat, x_m: _x, y_m: _y, ...others } = transmitter;
    /** @type {Transmitter} */
    const moved = others;
    moveTransmitter(moved, after, { x: spread(x, before.width, after.width), y: spread(y, before.height, after.height) });
    return moved;
  });
  return names;
}

/**
 * The transmitter in the words of a label.
 * @param {Pick<Transmitter, "name">} transmitter
 * @param {number} index
 */
export function nameOf({ name }, index) {
  return name === undefined || name === "" ? String(index) : name;
}

/**
 * Returns the reason why this page cannot show a value as a document, in a sentence; null if it can. The service checks the rest.
 * @param {unknown} value
 * @returns {string | null}
 */
export function coverageFault(value) {
  const { area, transmitters, model, terrain, buildings } = /** @type {Record<string, unknown>} */ (value ?? {});
  const sides = get(area, "/west") === undefined ? ["width_m", "height_m"] : ["west", "south", "east", "north"];
  const hasArea = sides.every((name) => Number.isFinite(get(area, `/${name}`)));
  const hasTransmitters = Array.isArray(transmitters) && transmitters.length > 0 && transmitters.every(isObject);
  if (!hasArea || !hasTransmitters || !MODELS.some(([name]) => name === model)) return "The document needs an area, a model and at least one transmitter.";
  if (transmitters.length > TRANSMITTERS_MAX) return `At /transmitters: at most ${TRANSMITTERS_MAX} are allowed, and there are ${formatCount(transmitters.length)}.`;
  if (terrain !== undefined && !isObject(terrain)) return "At /terrain: an object is expected.";
  const unfit = buildings === undefined ? null : buildingsFault(buildings);
  if (unfit !== null) return `The buildings cannot be used: ${unfit}.`;
  const document = /** @type {Coverage} */ (value);
  const wrong = fieldsIn(document).find(({ pointer }) => isObject(get(value, pointer)));
  return wrong ? `At ${wrong.pointer}: ${wrong.kind === "number" ? "a number" : "text"} is expected.` : null;
}

/** @param {unknown} value */
function isObject(value) {
  return typeof value === "object" && value !== null;
}

/**
 * @param {unknown} value
 * @returns {value is Coverage}
 */
export function isCoverage(value) {
  return coverageFault(value) === null;
}
