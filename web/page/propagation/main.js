/**
 * The page about propagation: maps of coverage that refine while they are computed, and the settings of the transmitters and models.
 *
 * The document of the service is the state of the page: fields and handles change it, and each change starts a run in place of the one
 * before. The first event of a run has its document, so that everybody with the address of a run sees the same.
 */
import { find, part, setText } from "../element.js";
import { showPlaces } from "../places.js";
import { UNKNOWN_RUN } from "../runs/words.js";
import { failureInWords } from "../server.js";
import { at } from "../site.js";
import { keysIn } from "./address.js";
import { outlinesOf } from "./buildings.js";
import { isOfUnknownRun, placeOf } from "./computation.js";
import { listenToDocument, showDocument } from "./document-box.js";
import { QUANTITIES, addTransmitter, fitted, moveTransmitter, spotOf } from "./document.js";
import { offerDownloads } from "./downloads.js";
import { button, element, input, select } from "./elements.js";
import { Form } from "./form.js";
import { listenToLand, showLand } from "./land.js";
import { Legend } from "./legend.js";
import { MapSettings } from "./map-settings.js";
import { Maps } from "./maps.js";
import { PRESETS, presetOf } from "./presets.js";
import { Frame, View } from "./projection.js";
import { watchReach } from "./reach.js";
import { Reading } from "./reading.js";
import { Starter } from "./starter.js";

const example = /** @type {(typeof PRESETS)[number]} */ (PRESETS[0]).make();
/** @type {import("./pane.js").Stage} */
const stage = {
  view: new View(),
  frame: new Frame(example.area),
  document: example,
  look: { quantity: "received_dbm", low: -120, high: -20, marks: [], isServers: false },
  contours: { levels: [], fault: null },
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
const maps = new Maps(element(".panes"), stage, { started: (pane, key) => starter.started(pane, key), told, changed, painted: () => starter.next(), refused }, () => use(stage.document, { isSamePlace: true }));
const starter = new Starter(maps, mayStart, bond, showBond);
const reading = new Reading(element("#reading"), find(document, "#profile", HTMLCanvasElement), stage, () => maps.seen);
const legend = new Legend(element("#legend"), find(document, "#colours", HTMLCanvasElement), stage, (count) => maps.first.ground(count));
const form = new Form({ model: element("#model"), transmitters: element("#transmitters"), groups: element("#groups") }, { document: () => stage.document, changed: edited, remove, select: stage.select });
const settings = new MapSettings(stage, redraw);
/** The typed levels of contour lines, for each quantity. @type {Map<string, string>} */
const typedLevels = new Map();

// --- runs ---

/** @returns {import("./computation.js").Bond} */
function bond() {
  return input("[name=bond][value=held]").checked ? "held" : "kept";
}

function mayStart() {
  const fault = form.fault();
  refusals.clear();
  tell(fault?.fault ?? "");
  if (!fault) form.refuse([]);
  return !fault;
}

/** @type {import("./pane.js").Told["told"]} */
function told(pane, document) {
  if (pane === maps.second) {
    maps.useSecond(document);
    maps.showChoices();
  } else show(document);
  begin();
}

function changed() {
  begin();
  maps.recolour();
  legend.update();
  if (stage.cursor) reading.update();
  showState();
  starter.next();
}

/** The parts of a document that have no field of their own. */
const PARTS = /** @type {const} */ ([["/terrain", "The terrain"], ["/buildings", "The buildings"]]);

/**
 * The reason why a map is not computed, and the place in the document.
 * @type {Map<import("./pane.js").Pane, { words: string, pointer: string | null }>}
 */
const refusals = new Map();

/** @type {import("./pane.js").Told["refused"]} */
function refused(pane, why) {
  const pointer = placeOf(why);
  const label = form.labelOf(pointer) ?? PARTS.find(([start]) => pointer?.startsWith(start))?.[1];
  const isUnknown = isOfUnknownRun(why);
  const words = `${label ? `${label}: ` : ""}${isUnknown ? UNKNOWN_RUN : failureInWords(why)}`;
  refusals.set(pane, { words, pointer });
  showRefusals();
  if (isUnknown) {
    starter.keys[pane === maps.first ? 0 : 1] = null;
    showBond();
  }
  begin();
}

/** Shows why the current maps are not computed; once, if the reason is the same for all. Marks the fields. */
function showRefusals() {
  const { seen } = maps;
  const wordsOf = (/** @type {import("./pane.js").Pane} */ pane) => refusals.get(pane)?.words ?? "";
  const [words = "", ...others] = new Set(seen.map(wordsOf));
  tell(others.length === 0 ? words : seen.flatMap((pane) => (refusals.has(pane) ? `${pane.name}: ${wordsOf(pane)}` : [])).join(" "));
  form.refuse([...refusals.values()].map(({ pointer }) => pointer));
}

/** @param {string} words why nothing is computed */
function tell(words) {
  element("#refused").hidden = words === "";
  setText(element("#refused"), words);
}

function showState() {
  const isRunning = maps.seen.some((pane) => pane.isRunning);
  const wasRunning = !button("#cancel").hidden;
  button("#cancel").hidden = !isRunning;
  if (!isRunning && wasRunning && maps.first.grid?.isWhole) setText(element("#announcer"), "The map is computed.");
  const words = maps.warningsInWords();
  const list = element("#warnings");
  if (list.textContent !== words.join("")) list.replaceChildren(...words.map((text) => part("li", "", text)));
}

function showBond() {
  const [key] = starter.keys;
  const place = element("#bond");
  if (bond() === "held") return setText(place, "Held: to leave or reload this page cancels the computation, and no other window sees it.");
  if (key === null) return setText(place, "");
  const link = part("a", "", `run ${key.slice(0, 6)}`);
  link.href = at(`runs/${key}`);
  place.replaceChildren("Kept as ", link, ". Whoever has its address may watch and cancel it.");
}

// --- showing ---

function redraw() {
  maps.redraw();
  legend.update();
}

/** @type {import("./pane.js").Stage["point"]} */
function point(spot, isKey) {
  const { frame } = stage;
  if (spot !== null && !frame.has(spot)) return;
  stage.cursor = spot;
  const words = reading.update();
  if (isKey) setText(element("#announcer"), words);
  redraw();
}

/** @param {import("./document.js").Coverage["area"]} area */
function useArea(area) {
  stage.frame = new Frame(area);
  element(".panes").style.setProperty("--shape", String(stage.frame.width / stage.frame.height));
}

/**
 * Shows a document in place of the one before.
 * @param {import("./document.js").Coverage} document
 * @param {{ isSamePlace?: boolean }} [options]
 */
function show(document, { isSamePlace = false } = {}) {
  stage.document = document;
  useArea(document.area);
  stage.buildings = document.buildings ? outlinesOf(document.buildings) : [];
  if (!isSamePlace) {
    stage.view.scale = 0;
    stage.cursor = null;
    stage.selected = 0;
    setText(element("#files-said"), "");
    maps.forgetColours();
    reading.update();
    settings.useTiles();
  }
  stage.selected = Math.min(stage.selected, document.transmitters.length - 1);
  form.build();
  showParts();
  redraw();
}

/** Shows the parts of the document that are not in the fields. */
function showParts() {
  select("#preset").value = presetOf(stage.document);
  showLand(stage.document);
  showDocument(stage.document);
  maps.showChoices();
}

/** Shows the page. It is hidden until its parts are known, so that nothing moves after that. */
function begin() {
  element("main").classList.remove("filling");
}

// --- hands ---

/**
 * Shows a document, and computes it.
 * @param {import("./document.js").Coverage} document
 * @param {{ isSamePlace?: boolean }} [options]
 */
function use(document, options) {
  placed = null;
  show(document, options);
  starter.wish();
}

/** @type {import("./pane.js").Stage["move"]} */
function move(index, spot, asked) {
  const transmitter = stage.document.transmitters[index];
  if (!transmitter) return;
  moveTransmitter(transmitter, stage.frame, spot);
  placed = null;
  starter.wish(asked);
  form.update();
  redraw();
  if (stage.cursor) reading.update();
}

/**
 * The transmitters before the area was typed. While a number has only its first digits, all transmitters would move into a corner.
 * @type {import("./document.js").Coverage["transmitters"] | null}
 */
let placed = null;

/** @param {string} pointer */
function edited(pointer) {
  if (pointer === "/model") stage.document = fitted(stage.document);
  if (pointer.startsWith("/area")) {
    const { transmitters } = stage.document;
    placed ??= structuredClone(transmitters);
    useArea(stage.document.area);
    stage.cursor = null;
    reading.update();
    // What is no area is for the service to refuse.
    if (stage.frame.width > 0 && stage.frame.height > 0) {
      for (const [index, transmitter] of transmitters.entries()) {
        Object.assign(transmitter, placed[index]);
        const spot = spotOf(transmitter, stage.frame);
        if (Number.isFinite(spot.x + spot.y)) moveTransmitter(transmitter, stage.frame, spot);
      }
      stage.view.scale = 0;
    }
  } else placed = null;
  showParts();
  redraw();
  starter.wishSoon();
}

/** @param {number} index */
function remove(index) {
  stage.document.transmitters.splice(index, 1);
  use(stage.document, { isSamePlace: true });
  button("#add").focus();
}

function add() {
  const index = addTransmitter(stage.document);
  if (index === null) return tell("There may be at most 16 transmitters.");
  stage.selected = index;
  use(stage.document, { isSamePlace: true });
}

/** Shows the quantity that is chosen. */
function showQuantity() {
  const { value } = select("#quantity");
  const isServers = value === "server";
  stage.look = { ...stage.look, quantity: isServers ? "received_dbm" : value, isServers };
  setText(element("#levels-unit"), QUANTITIES.find(([name]) => name === stage.look.quantity)?.[2] ?? "");
  maps.forgetColours();
  maps.recolour();
  legend.update();
  if (stage.cursor) reading.update();
  redraw();
}

/** Shows another quantity, with the levels that were typed for it. */
function changeQuantity() {
  const [levels, before] = [input("#levels"), stage.look.quantity];
  showQuantity();
  if (stage.look.quantity === before) return;
  typedLevels.set(before, levels.value);
  levels.value = typedLevels.get(stage.look.quantity) ?? "";
  levels.dispatchEvent(new Event("input"));
}

function compare() {
  const isCompared = input("#compare").checked;
  maps.compare(isCompared);
  if (isCompared) maps.contrast();
  else {
    starter.keys[1] = null;
    if (refusals.delete(maps.second)) showRefusals();
  }
  showParts();
  redraw();
  if (isCompared) starter.wish();
  else changed();
}

function listen() {
  select("#preset").append(...PRESETS.map(({ name, words }) => new Option(words, name)), Object.assign(new Option("Another place", ""), { disabled: true }));
  select("#preset").addEventListener("change", () => {
    const preset = PRESETS.find(({ name }) => name === select("#preset").value);
    if (preset) use(preset.make());
  });
  select("#quantity").append(...QUANTITIES.map(([name, words, unit]) => new Option(`${words}, ${unit}`, name)), new Option("Best server", "server"));
  select("#quantity").addEventListener("change", changeQuantity);
  input("#compare").addEventListener("change", compare);
  button("#compute").addEventListener("click", () => starter.wish());
  button("#cancel").addEventListener("click", () => {
    starter.cancel();
    button("#compute").focus();
    showState();
  });
  button("#add").addEventListener("click", add);
  for (const radio of document.querySelectorAll("[name=bond]")) {
    radio.addEventListener("change", () => {
      if (bond() === "held") starter.forget();
      showBond();
      starter.wish();
    });
  }
  listenToLand(stage, use, () => use(stage.document, { isSamePlace: true }));
  listenToDocument(showParts, use);
  offerDownloads(element("#downloads"), element("#download-said"), () => ({ document: maps.documentOf(maps.first), quantity: stage.look.quantity, ...stage.contours, marks: stage.look.marks }));
}

// --- beginning ---

/** Watches the runs of the address; returns false if it has none. */
function resume() {
  const keys = keysIn(location.hash);
  if (keys === null) return false;
  const [first, second] = (starter.keys = [...keys]);
  refusals.clear();
  showRefusals();
  input("#compare").checked = second !== null;
  maps.compare(second !== null);
  if (second !== null) maps.second.watch(second);
  maps.first.watch(first);
  showState();
  showBond();
  return true;
}

addEventListener("hashchange", () => void resume());
element("#notice-no-script").remove();
listen();
show(example);
showQuantity();
watchReach(() => Math.max(...maps.seen.map(({ silentMs }) => silentMs)));
if (!resume()) {
  starter.wish();
  begin();
}
void showPlaces(); // the first run does not wait for it
