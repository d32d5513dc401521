/** The ground and the buildings of the document: the current ones, and the user's own files. */
import { setText } from "../element.js";
import { formatCount } from "../words.js";
import { buildingsIn } from "./buildings.js";
import { fitted, moveInside } from "./document.js";
import { button, element, input } from "./elements.js";
import { readBuildings, readTerrain } from "./files.js";
import { Frame } from "./projection.js";

/** @typedef {import("./document.js").Coverage} Coverage */

/**
 * @param {import("./pane.js").Stage} stage
 * @param {(document: Coverage) => void} use a document that is another place
 * @param {() => void} changed the document is the same place
 */
export function listenToLand(stage, use, changed) {
  offer("#terrain-file", async (file) => {
    const read = await readTerrain(file);
    if ("fault" in read) return tell(read.fault, true);
    const { terrain, covered, assumed } = read;
    const document = { ...stage.document, terrain, ...covered };
    const said = covered ? [`${file.name} is the terrain, and the map is its area.`, ...settle(document, stage.frame)] : [`${file.name} is the terrain. The area of the map is as before, and must be within it.`];
    use(fitted(document));
    tell([...said, ...(assumed ? [assumed] : [])].join(" "));
  });
  offer("#buildings-file", async (file) => {
    const read = await readBuildings(file);
    if ("fault" in read) return tell(read.fault, true);
    stage.document.buildings = read.buildings;
    changed();
    tell(`${file.name}: ${inWords(read.buildings, stage.frame)} They count for the model COST 231-Walfisch-Ikegami.`);
  });
  for (const [id, name] of /** @type {const} */ ([["#no-terrain", "terrain"], ["#no-buildings", "buildings"]])) {
    button(id).addEventListener("click", () => {
      delete stage.document[name];
      stage.document = fitted(stage.document);
      tell("");
      changed();
    });
  }
}

/**
 * @param {string} selector
 * @param {(file: File) => Promise<void>} take
 */
function offer(selector, take) {
  input(selector).addEventListener("change", async () => {
    const file = input(selector).files?.[0];
    if (!file) return;
    await take(file);
    input(selector).value = "";
  });
}

function tell(/** @type {string} */ words, isFault = false) {
  const said = element("#files-said");
  setText(said, words);
  said.classList.toggle("failure", isFault);
}

/**
 * The number of features, and of those that are no buildings in the area, in a sentence.
 * @param {import("./buildings.js").Buildings} buildings
 * @param {Frame} frame
 */
function inWords(buildings, frame) {
  const [all, inside] = [buildings, buildingsIn(buildings, frame)].map(({ features }) => features.length);
  return inside === all ? `${formatCount(Number(all))} buildings.` : `${formatCount(Number(inside))} of ${formatCount(Number(all))} features are buildings in the area.`;
}

/** Shows the kind of the ground, and the number of buildings. @param {Coverage} document */
export function showLand({ terrain, buildings }) {
  const land = terrain === undefined ? "No terrain: a plain" : terrain.type === "valley" ? "Terrain: a valley that the service makes" : "Terrain from a file";
  setText(element("#ground"), `${land}. ${buildings ? `${buildings.features.length} buildings` : "No buildings"}.`);
  button("#no-terrain").hidden = !terrain;
  button("#no-buildings").hidden = !buildings;
}

/**
 * Makes transmitters and buildings fit a new area. Returns the changes, in sentences.
 * @param {Coverage} document
 * @param {Frame} before
 */
function settle(document, before) {
  const names = moveInside(document, before);
  const words = names.length > 0 ? [`Transmitters that were outside it, and are moved into it: ${names.join(", ")}.`] : [];
  const { buildings } = document;
  if (!buildings) return words;
  const frame = new Frame(document.area);
  const kept = frame.isDegrees === before.isDegrees ? buildingsIn(buildings, frame) : { ...buildings, features: [] };
  if (kept.features.length > 0) document.buildings = kept;
  else delete document.buildings;
  const [count, all] = [buildings.features.length - kept.features.length, buildings.features.length];
  if (count > 0) words.push(`${formatCount(count)} of ${formatCount(all)} buildings are outside it, and are left out.`);
  return words;
}
