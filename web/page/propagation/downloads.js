/** Results as files. The service computes the coverage again, and writes the file. */
import { setText } from "../element.js";
import { save } from "../save.js";
import { client, failureInWords } from "../server.js";
import { formatBytes } from "../words.js";
import { PATH } from "./computation.js";
import { QUANTITIES } from "./document.js";
import { bytesOf } from "./tiles.js";
import { signed } from "./words.js";

/**
 * @typedef {object} Wanted
 * @property {import("./document.js").Coverage} document
 * @property {string} quantity
 * @property {readonly number[]} levels of the contour lines; without any, the marks of the legend
 * @property {string | null} fault of the levels, in a sentence
 * @property {readonly number[]} marks
 */

const TYPES = { geojson: "application/geo+json", csv: "text/csv", png: "image/png" };

/**
 * @param {HTMLElement} buttons
 * @param {HTMLElement} said
 * @param {() => Wanted} wanted
 */
export function offerDownloads(buttons, said, wanted) {
  for (const button of buttons.querySelectorAll("button")) {
    button.addEventListener("click", async () => {
      const format = /** @type {keyof typeof TYPES} */ (button.value);
      const asked = wanted();
      const fault = format === "geojson" ? asked.fault : null;
      said.classList.toggle("failure", fault !== null);
      setText(said, fault === null ? "computes" : `Not saved. Contour lines: ${fault}`);
      if (fault !== null) return;
      try {
        setText(said, await download(format, asked, (part) => setText(said, `computes, ${Math.floor(part * 100)} %`)));
      } catch (error) {
        said.classList.add("failure");
        setText(said, failureInWords(error));
      }
    });
  }
}

/**
 * @param {keyof typeof TYPES} format
 * @param {Wanted} wanted
 * @param {(part: number) => void} tell
 */
async function download(format, { document, quantity, levels, marks }, tell) {
  // All points are too many for GeoJSON, so it has contour lines: those that were asked for, or the marks of the legend.
  const output = { formats: [format], quantity, ...(format === "geojson" && { levels: levels.length > 0 ? levels : marks }) };
  const run = client.run(PATH, { ...document, output });
  run.onprogress = ({ progress }) => tell(progress);
  const result = /** @type {{ outputs?: Record<string, unknown> }} */ (await run.result);
  const found = result.outputs?.[format];
  if (found === null || found === undefined) return "The contour lines are too many for a file: choose fewer levels, or points that are further apart.";
  if (format === "geojson" && isEmpty(found)) return "Nothing is saved: no point of the map has one of these levels.";
  const data = format === "png" ? bytesOf(String(found)) : typeof found === "string" ? found : JSON.stringify(found);
  const name = `coverage.${format}`;
  save(data, TYPES[format], name);
  return `${name}, ${formatBytes(data.length)}, is saved${format === "png" ? `: ${lightInWords(result, quantity)}` : ""}.`;
}

/** Returns true if no level has a contour line. @param {any} collection */
function isEmpty({ features }) {
  return features.every((/** @type {any} */ { geometry }) => geometry.coordinates.length === 0);
}

/**
 * Returns the values of the lightest and the darkest colour of an image. Light is a strong signal, so it is a small loss.
 * @param {object} result
 * @param {string} quantity
 */
function lightInWords(result, quantity) {
  const { min, max } = Reflect.get(result, quantity) ?? {};
  const [dark, light] = quantity === "loss_db" ? [max, min] : [min, max];
  const unit = QUANTITIES.find(([name]) => name === quantity)?.[2];
  return `light is ${signed(Number(light))} ${unit}, dark is ${signed(Number(dark))} ${unit}`;
}
