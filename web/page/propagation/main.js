/**
 * The page about propagation: maps of coverage that refine while they are computed, and the settings of the transmitters and models.
 *
 * The document of the service is the state of the page: fields and handles change it, and each change starts a run in place of the one
 * before. While a transmitter is dragged, the next run starts once the first tiles of the one before are seen, so that the map follows
 * the hand however slow the machine is.
 */
import { find, part, setText } from "../element.js";
import { showPlaces } from "../places.js";
import { at } from "../site.js";
import { areaOfGrid } from "./area.js";
import { BaseTiles } from "./base-tiles.js";
import { outlinesOf } from "./buildings.js";
import { colourRange } from "./colours.js";
import { readLevels } from "./contours.js";
import { MODELS, QUANTITIES, addTransmitter, environmentsOf, fitted, isCoverage, moveTransmitter, nameOf, spotOf } from "./document.js";
import { offerDownloads } from "./downloads.js";
import { readBuildings, readTerrain } from "./files.js";
import { Form } from "./form.js";
import { Legend } from "./legend.js";
import { recall, remember } from "./memory.js";
import { Pane } from "./pane.js";
import { PRESETS } from "./presets.js";
import { Frame, View, webTiles } from "./projection.js";
import { Reading } from "./reading.js";

const EDIT_MS = 300;
/** The width of the map for which a tile is tried. */
const TRIED_PX = 500;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
/** @param {string} selector */
const input = (selector) => find(document, selector, HTMLInputElement);
/** @param {string} selector */
const select = (selector) => find(document, selector, HTMLSelectElement);
/** @param {string} selector */
const button = (selector) => find(document, selector, HTMLButtonElement);

const tiles = new BaseTiles(redraw, (words, isFault) => {
  setText(element("#tiles-said"), words);
  element("#tiles-said").classList.toggle("failure", isFault);
});

const first = /** @type {(typeof PRESETS)[number]} */ (PRESETS[0]).make();
/** @type {import("./pane.js").Stage} */
const stage = {
  view: new View(),
  frame: new Frame(first.area),
  document: first,
  look: { quantity: "received_dbm", low: -120, high: -20, marks: [], isServers: false },
  levels: [],
  buildings: [],
  opacity: 0.7,
  tileOf: null,
  cursor: null,
  selected: 0,
  seen: redraw,
  point,
  move,
  select: (index) => {
    stage.selected = index;
    redraw();
  },
};

/** The model of the second map. */
const second = { model: /** @type {import("./document.js").Model} */ ("hata"), environment: /** @type {string | undefined} */ ("open") };
let isCompared = false;
/** @type {import("./colours.js").ColourRange | null} */
let range = null;
/** The keys of the runs that the maps show. @type {(string | null)[]} */
const keys = [null, null];
/** When a run was wished for that has not begun. @type {number | null} */
let wished = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let editing;

const panes = ["Map", "Second map"].map((name) => {
  element(".panes").append(find(document, "#pane", HTMLTemplateElement).content.cloneNode(true));
  const figure = /** @type {HTMLElement} */ (element(".panes").lastElementChild);
  return new Pane(figure, name, stage, { started, changed, painted: next, refused });
});
const [left, right] = /** @type {[Pane, Pane]} */ (/** @type {unknown} */ (panes));
right.figure.hidden = true;
const seenPanes = () => (isCompared ? [left, right] : [left]);
const reading = new Reading(element("#reading"), find(document, "#profile", HTMLCanvasElement), stage, seenPanes);
const legend = new Legend(element("#legend"), find(document, "#colours", HTMLCanvasElement), stage);
const form = new Form({ model: element("#model"), transmitters: element("#transmitters"), groups: element("#groups") }, { document: () => stage.document, changed: edited, remove, select: stage.select });

// --- runs ---

/** @returns {import("./computation.js").Bond} */
const bond = () => (input("[name=bond][value=held]").checked ? "held" : "kept");

/** @param {Pane} pane */
function documentOf(pane) {
  const model = pane === left ? {} : second;
  return { ...fitted({ ...stage.document, ...model }), quantities: QUANTITIES.map(([name]) => name) };
}

/**
 * Wishes for a run of the document as it is now.
 * @param {number} [asked] when
 */
function wish(asked = performance.now()) {
  clearTimeout(editing);
  wished = asked;
  next();
}

/** Starts the run that is wished for, unless one has begun that is not seen yet. */
function next() {
  if (wished === null || seenPanes().some((pane) => pane.isStarting)) return;
  const asked = wished;
  wished = null;
  const fault = form.fault();
  if (fault) return tell(fault.fault);
  tell("");
  form.refuse(null);
  for (const pane of seenPanes()) pane.compute(documentOf(pane), bond(), asked);
  showState();
}

/**
 * @param {Pane} pane
 * @param {string} key
 */
function started(pane, key) {
  keys[panes.indexOf(pane)] = key;
  const [own, other] = keys;
  if (own === null || own === undefined) return;
  const hash = `#run=${own}${isCompared && other ? `&with=${other}` : ""}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
  remember(own, { document: stage.document, second: isCompared ? second : null });
  showBond();
element("main").classList.remove("filling");
}

function changed() {
  const found = seenPanes().flatMap((pane) => pane.range() ?? []);
  if (found.length > 0) {
    const before = range;
    range = colourRange(Math.min(...found), Math.max(...found), range);
    if (range !== before) {
      stage.look = { ...stage.look, ...range };
      redraw();
    }
  }
  legend.update();
  if (stage.cursor) reading.update();
  showState();
  next();
}

/**
 * @param {Pane} _
 * @param {string} detail
 * @param {string | null} pointer
 */
function refused(_, detail, pointer) {
  const label = form.refuse(pointer);
  tell(pointer === null ? detail : `${label === null ? "" : `${label}, at `}${pointer}: ${detail}`);
}

/** @param {string} words why nothing is computed */
function tell(words) {
  element("#refused").hidden = words === "";
  setText(element("#refused"), words);
}

function showState() {
  const isRunning = seenPanes().some((pane) => pane.isRunning);
  const was = button("#cancel").hidden;
  button("#cancel").hidden = !isRunning;
  if (!isRunning && !was && left.grid?.isWhole) setText(element("#announcer"), "The map is computed.");
  const warnings = seenPanes().flatMap((pane) => pane.warnings.map((warning) => ({ pane, warning })));
  const words = warnings.map(({ pane, warning: { transmitter, detail } }) => {
    const of = transmitter === null ? "" : `${nameOf(stage.document.transmitters[transmitter] ?? { name: String(transmitter) }, transmitter)}: `;
    return `${isCompared ? `${pane.name}: ` : ""}${of}${detail}.`;
  });
  const list = element("#warnings");
  if (list.textContent !== words.join("")) list.replaceChildren(...words.map((text) => part("li", "", text)));
}

function showBond() {
  const [key] = keys;
  const place = element("#bond");
  if (bond() === "held") return setText(place, "Held: to leave or reload this page cancels the computation, and no other window sees it.");
  if (key === null || key === undefined) return setText(place, "");
  const link = part("a", "", `run ${key.slice(0, 6)}`);
  link.href = at(`runs/${key}`);
  place.replaceChildren("Kept as ", link, ". Whoever has its address may watch and cancel it.");
}

// --- showing ---

function redraw() {
  for (const pane of panes) if (!pane.figure.hidden) pane.redraw();
}

/**
 * @param {import("./projection.js").Spot | null} spot
 * @param {boolean} isKey
 */
function point(spot, isKey) {
  const { frame } = stage;
  const isInside = spot !== null && spot.x >= 0 && spot.y >= 0 && spot.x <= frame.width && spot.y <= frame.height;
  stage.cursor = isInside ? spot : null;
  const words = reading.update();
  if (isKey) setText(element("#announcer"), words);
  redraw();
}

/** Shows another document. */
function show() {
  stage.frame = new Frame(stage.document.area);
  stage.buildings = stage.document.buildings ? outlinesOf(stage.document.buildings) : [];
  stage.selected = Math.min(stage.selected, stage.document.transmitters.length - 1);
  form.build();
  showParts();
  redraw();
}

/** Shows what is not in the fields. */
function showParts() {
  const { document } = stage;
  const { terrain, buildings } = document;
  const land = terrain === undefined ? "No terrain: a plain" : terrain.type === "valley" ? "Terrain: a valley that the service makes" : "Terrain from a file";
  setText(element("#ground"), `${land}. ${buildings ? `${buildings.features.length} buildings` : "No buildings"}.`);
  button("#no-terrain").hidden = !terrain;
  button("#no-buildings").hidden = !buildings;
  const json = find(window.document, "#json", HTMLTextAreaElement);
  if (json !== window.document.activeElement && element("#document").hasAttribute("open")) json.value = JSON.stringify(fitted(document), null, 2);
  for (const pane of panes) showChoices(pane);
}

/** The model of a map, chosen above it. @param {Pane} pane */
function showChoices(pane) {
  const of = pane === left ? stage.document : second;
  const place = find(pane.figure, ".choices", HTMLElement);
  place.hidden = !isCompared;
  const known = environmentsOf(of.model);
  const choose = (/** @type {string} */ label, /** @type {readonly (readonly [string, string])[]} */ options, /** @type {string} */ value, /** @type {(value: string) => void} */ take) => {
    const choice = part("select", "", "");
    choice.setAttribute("aria-label", `${label} of the ${pane === left ? "first" : "second"} map`);
    choice.append(...options.map(([name, words]) => new Option(words, name)));
    choice.value = value;
    choice.addEventListener("change", () => {
      take(choice.value);
      const at = [...place.children].indexOf(choice);
      show();
      /** @type {HTMLElement | undefined} */ (place.children[at])?.focus();
      wish();
    });
    return choice;
  };
  const choices = [choose("Model", MODELS, of.model, (value) => (of.model = /** @type {import("./document.js").Model} */ (value)))];
  if (known.length > 0) choices.push(choose("Environment", known, known.some(([name]) => name === of.environment) ? String(of.environment) : "urban", (value) => (of.environment = value)));
  place.replaceChildren(...choices);
}

// --- hands ---

/**
 * @param {number} index
 * @param {import("./projection.js").Spot} spot
 * @param {number} asked
 */
function move(index, spot, asked) {
  const transmitter = stage.document.transmitters[index];
  if (!transmitter) return;
  moveTransmitter(transmitter, stage.frame, spot);
  form.update();
  redraw();
  if (stage.cursor) reading.update();
  wish(asked);
}

/** @param {string} pointer */
function edited(pointer) {
  if (pointer === "/model") stage.document = fitted(stage.document);
  if (pointer.startsWith("/area")) {
    stage.frame = new Frame(stage.document.area);
    if (!(stage.frame.width > 0 && stage.frame.height > 0)) return;
    for (const transmitter of stage.document.transmitters) moveTransmitter(transmitter, stage.frame, spotOf(transmitter, stage.frame));
    stage.view.scale = 0;
  }
  showParts();
  redraw();
  clearTimeout(editing);
  editing = setTimeout(wish, EDIT_MS);
}

/** @param {number} index */
function remove(index) {
  stage.document.transmitters.splice(index, 1);
  show();
  button("#add").focus();
  wish();
}

/** @param {import("./document.js").Coverage} document */
function use(document) {
  stage.document = document;
  stage.view.scale = 0;
  stage.cursor = null;
  stage.selected = 0;
  range = null;
  reading.update();
  show();
  useTiles();
}

/** Draws the tiles that are wished for below the values. */
function useTiles() {
  const { frame } = stage;
  tiles.use(input("#tiles").value.trim(), frame.isDegrees);
  stage.tileOf = tiles.isUsed ? (tile) => tiles.get(tile) : null;
  if (!tiles.isUsed) return;
  // A map out of view is not drawn, so one tile is asked for here: what is said of the tiles stands beside their address.
  const [tile] = webTiles(frame, { x: 0, y: 0 }, { x: frame.width, y: frame.height }, TRIED_PX / frame.width);
  if (tile) tiles.get(tile);
}

function listen() {
  select("#preset").append(...PRESETS.map(({ name, words }) => new Option(words, name)));
  select("#preset").addEventListener("change", ({ target }) => {
    const preset = PRESETS.find(({ name }) => target instanceof HTMLSelectElement && name === target.value);
    if (!preset) return;
    use(preset.make());
    wish();
  });
  select("#quantity").append(...QUANTITIES.map(([name, words, unit]) => new Option(`${words}, ${unit}`, name)), new Option("Best server", "server"));
  select("#quantity").addEventListener("change", showQuantity);
  input("#compare").addEventListener("change", compare);
  button("#compute").addEventListener("click", () => wish());
  button("#cancel").addEventListener("click", () => {
    wished = null;
    for (const pane of panes) pane.cancel();
    button("#compute").focus();
    showState();
  });
  button("#add").addEventListener("click", () => {
    const index = addTransmitter(stage.document);
    if (index === null) return tell("There may be at most 16 transmitters.");
    stage.selected = index;
    show();
    wish();
  });
  for (const radio of document.querySelectorAll("[name=bond]")) {
    radio.addEventListener("change", () => {
      if (bond() === "held") forget();
      showBond();
element("main").classList.remove("filling");
      wish();
    });
  }
  listenToMap();
  listenToFiles();
  listenToDocument();
  offerDownloads(element("#downloads"), element("#download-said"), () => ({ document: documentOf(left), quantity: stage.look.quantity, levels: stage.levels }));
}

/** The address of the page leads to no run any more. */
function forget() {
  keys.fill(null);
  history.replaceState(null, "", location.pathname + location.search);
}

function showQuantity() {
  const { value } = select("#quantity");
  const isServers = value === "server";
  range = null;
  stage.look = { ...stage.look, quantity: isServers ? "received_dbm" : value, isServers };
  setText(element("#levels-unit"), QUANTITIES.find(([name]) => name === stage.look.quantity)?.[2] ?? "");
  changed();
  redraw();
}

function compare() {
  isCompared = input("#compare").checked;
  right.figure.hidden = !isCompared;
  left.name = isCompared ? "First map" : "Map";
  element(".panes").classList.toggle("compared", isCompared);
  if (isCompared) {
    // The same transmitters in a town and in the country.
    if (stage.document.model === "hata" && stage.document.environment === "open") second.environment = "urban";
    stage.view.scale = 0;
    showParts();
    wish();
  } else {
    right.cancel();
    keys[1] = null;
    stage.view.scale = 0;
    showParts();
    redraw();
    changed();
  }
}

function listenToMap() {
  input("#levels").addEventListener("input", () => {
    const { levels, fault } = readLevels(input("#levels").value);
    setText(element("#levels-fault"), fault ?? "");
    input("#levels").setAttribute("aria-invalid", String(fault !== null));
    stage.levels = levels;
    redraw();
  });
  input("#opacity").addEventListener("input", () => {
    stage.opacity = Number(input("#opacity").value);
    redraw();
  });
  input("#tiles").addEventListener("change", () => {
    useTiles();
    redraw();
  });
}

function listenToFiles() {
  const said = element("#files-said");
  const tellFile = (/** @type {string} */ words, isFault = false) => {
    setText(said, words);
    said.classList.toggle("failure", isFault);
  };
  input("#terrain-file").addEventListener("change", async () => {
    const file = input("#terrain-file").files?.[0];
    if (!file) return;
    const read = await readTerrain(file);
    input("#terrain-file").value = "";
    if ("fault" in read) return tellFile(read.fault, true);
    const covered = areaOfGrid(read.terrain.text ?? "");
    const document = { ...stage.document, terrain: read.terrain, ...covered };
    if (covered) moveInside(document);
    delete document.buildings;
    use(document);
    tellFile(`${file.name} is the terrain${covered ? ", and the map is its area" : ". The area of the map is as before, and must be within it"}.`);
    wish();
  });
  input("#buildings-file").addEventListener("change", async () => {
    const file = input("#buildings-file").files?.[0];
    if (!file) return;
    const read = await readBuildings(file);
    input("#buildings-file").value = "";
    if ("fault" in read) return tellFile(read.fault, true);
    stage.document.buildings = read.buildings;
    show();
    tellFile(`${file.name}: ${read.buildings.features.length} buildings. They count for the model COST 231-Walfisch-Ikegami.`);
    wish();
  });
  for (const [id, name] of /** @type {const} */ ([["#no-terrain", "terrain"], ["#no-buildings", "buildings"]])) {
    button(id).addEventListener("click", () => {
      delete stage.document[name];
      stage.document = fitted(stage.document);
      show();
      wish();
    });
  }
}

/** Puts the transmitters into a new area, spread as in the old one. @param {import("./document.js").Coverage} document */
function moveInside(document) {
  const [before, after] = [stage.frame, new Frame(document.area)];
  document.transmitters = document.transmitters.map((transmitter) => {
    const { x, y } = spotOf(transmitter, before);
    const { lon: _lon, lat: _lat, x_m: _x, y_m: _y, ...others } = transmitter;
    /** @type {import("./document.js").Transmitter} */
    const moved = others;
    moveTransmitter(moved, after, { x: (x / before.width) * after.width, y: (y / before.height) * after.height });
    return moved;
  });
}

function listenToDocument() {
  const json = find(document, "#json", HTMLTextAreaElement);
  element("#document").addEventListener("toggle", showParts);
  button("#use").addEventListener("click", () => {
    const said = element("#json-said");
    try {
      const read = JSON.parse(json.value);
      if (!isCoverage(read)) return setText(said, "The document needs an area, a model and at least one transmitter.");
      setText(said, "");
      use(read);
      wish();
    } catch (error) {
      setText(said, `This is not JSON: ${error instanceof Error ? error.message : error}.`);
    }
  });
}

// --- beginning ---

/** Goes on with the run of the address; returns false if it has none. */
function resume() {
  const names = new URLSearchParams(location.hash.slice(1));
  const [own, other] = [names.get("run"), names.get("with")];
  if (own === null || !/^[0-9a-f]{32}$/.test(own)) return false;
  const known = /** @type {any} */ (recall(own));
  if (!isCoverage(known?.document)) return false;
  if (known.second && other !== null) {
    Object.assign(second, known.second);
    isCompared = input("#compare").checked = true;
    right.figure.hidden = false;
    element(".panes").classList.add("compared");
    left.name = "First map";
    right.watch(other);
  }
  use(known.document);
  left.watch(own);
  showState();
  return true;
}

element("#notice-no-script").remove();
void showPlaces();
listen();
showQuantity();
if (!resume()) {
  use(first);
  wish();
}
showBond();
element("main").classList.remove("filling");
