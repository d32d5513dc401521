/**
 * The page about computations: a document, the tree of its actions, and the lists of a run as they are sorted.
 *
 * The address has the key of a run that is kept (`#run=KEY`): each window with this address shows the same run, also after it is loaded
 * again. Events change the lists at once. The canvases follow in the next frame, and the words a little later.
 */
import { offerCopy } from "../commands.js";
import { fieldsOf, find, setText } from "../element.js";
import { showReached } from "../following.js";
import { showPlaces } from "../places.js";
import { cancel } from "../runs/cancel.js";
import { commandFor } from "../runs/calls.js";
import { isOver, nameOf, percent, progressInWords, reasonOf, timesInWords } from "../runs/words.js";
import { newKey, patience, sendOnEnter } from "../sending.js";
import { client, failureInWords, isGone, learnClock, sentence, serverNow } from "../server.js";
import { keepShowing } from "../showing.js";
import { at } from "../site.js";
import { countOf } from "../words.js";
import { AnemoneError } from "../../client.js";
import { ask } from "../ask.js";
import { documentOf } from "./document.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { showOthers } from "./others.js";
import { TreePicture } from "./picture.js";
import { Replay } from "./replay.js";
import { Stage } from "./stage.js";
import { sizeInWords, stepsInWords } from "./tree.js";
import { Watching } from "./watching.js";

const TIMES_EVERY_MS = 250;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
/** @param {string} selector */
const button = (selector) => find(document, selector, HTMLButtonElement);
/** @param {string} selector */
const select = (selector) => find(document, selector, HTMLSelectElement);
const field = fieldsOf(document.body);
const bar = find(document, "#now progress", HTMLProgressElement);

const replay = new Replay();
const editor = new Editor(element("#document"));
const picture = new TreePicture(element(".tree"));
const stage = new Stage(element("#stage"), replay);
/** @type {Watching | null} */
let watching = null;
/** True if the document was changed after the run was started. */
let isEdited = true;
let isChanged = true;
let key = newKey();
let announced = "";

// --- what is shown ---

function showPicture() {
  const isOfRun = replay.plan !== null && !(isEdited && watching?.isOver !== false);
  const actions = isOfRun ? replay.plan : editor.actions;
  picture.show(actions, isOfRun ? replay.lists : new Map(), isOfRun ? (watching?.isOver ?? true) : null);
  // It is not known yet what there is to see, and how much room it takes.
  element("#picture").classList.toggle("unknown", actions === null && editor.text === "");
  setText(element("#picture-title"), isOfRun ? "The tree of this run" : "What the document does");
  setText(element("#size"), actions ? `${sizeInWords(actions)}.` : "The document does not fit, so there is no tree.");
}

function showLists() {
  stage.show(watching?.isOver ?? true, editor.actions);
}

function showRun() {
  const run = watching?.isMissing ? null : (watching?.run ?? null);
  element("#now").hidden = watching?.isMissing ?? false;
  button("#cancel").hidden = run === null || isOver(run);
  setText(button("#begin"), run && !isOver(run) ? "Start another" : "Start");
  setText(field("state"), connectionInWords());
  document.body.dataset.state = watching?.isMissing ? "paused" : watching?.isOver ? "connected" : (watching?.state.kind ?? "paused");
  document.title = `${run?.state === "running" && run.progress !== null ? `${percent(run.progress)} ` : ""}Computations · Anemone`;
  setText(element("#run-title"), run === null ? "Run" : run.key === "" ? "Run of this page" : `Run ${nameOf(run)}`);
  setText(field("kept"), run ? keptInWords(run) : (watching?.said ?? "Press Start: each list is drawn here while it is sorted."));
  element("#as-run").hidden = !run?.key;
  if (run?.key) find(document, "#as-run", HTMLAnchorElement).href = at(`runs/${run.key}`);
  if (run) showState(run);
  else setText(field("run-state"), watching === null ? "not started" : "starting");
}

function connectionInWords() {
  const reached = showReached(watching === null || watching.isOver ? { kind: "paused" } : watching.state);
  if (watching === null) return "no run yet";
  if (watching.isMissing) return "not here";
  return watching.isOver ? "all of the run is here" : reached;
}

/** @param {import("../runs/words.js").RunState} run */
function showState(run) {
  element("#run").dataset.run = run.state;
  setText(field("run-state"), run.state);
  setText(field("times"), timesInWords(run, serverNow()));
  setText(field("progress"), progressInWords(run, serverNow() - (watching?.toldAt ?? 0)));
  setText(field("text"), run.problem ? sentence(reasonOf(run.problem)) : (run.text ?? ""));
  bar.value = run.progress ?? 0;
  const lists = [...replay.lists.values()];
  const sum = (/** @type {"comparisons" | "writes" | "state"} */ name) => lists.reduce((all, list) => all + list[name], 0);
  setText(field("steps"), `${stepsInWords({ comparisons: sum("comparisons"), writes: sum("writes") })}, ${countOf(sum("state"), "change")}`);
  const words = isOver(run) ? `The run is ${run.state}.` : "";
  if (words !== announced) setText(element("#announcer"), words);
  if (words !== announced && words !== "") void showOthers(find(document, "#others", HTMLDetailsElement), run.key);
  announced = words;
}

/** @param {import("../runs/words.js").RunState} run */
function keptInWords(run) {
  const said = watching?.said ?? "";
  if (said !== "") return said;
  if (watching?.isHeld) return isOver(run) ? "It was held to the connection of this page: when the page is left, nothing of it remains." : "It is held to the connection of this page: it ends when the page is left or loaded again, and nothing of it remains.";
  return isOver(run) ? "It is kept for a while: whoever has the address of this page sees the same." : "It is kept: it goes on when this page is left. Whoever has the address of this page sees the same, and may cancel it.";
}

/** The drawing, in parts. Each has a frame of its own. */
const PARTS = [showRun, showLists, showPicture];

/** Returns true if something has come since the last time. */
function takeNews() {
  const isNews = isChanged;
  isChanged = false;
  return isNews;
}

function onNews() {
  isChanged = true;
  stage.ask();
  // A run of another window shows its document.
  if (editor.text === "" && (replay.plan || watching?.isMissing)) editor.text = replay.plan ? documentOf(replay.plan) : String(EXAMPLES[0]?.text);
}

// --- starting ---

/** The path and the parameters of a start. */
function target() {
  const parameters = new URLSearchParams();
  for (const name of ["states", "pace"]) if (select(`#${name}`).value !== "") parameters.set(name, select(`#${name}`).value);
  return `computations?${parameters}`.replaceAll("%3A", ":");
}

function isHeld() {
  return find(document, 'input[value="held"]', HTMLInputElement).checked;
}

async function start() {
  const said = element("#said");
  said.classList.remove("failure");
  setText(said, "starting");
  try {
    const next = new Watching(replay, onNews);
    if (isHeld()) {
      const begin = await next.hold(`${target()}&attach`, editor.text);
      watching?.leave();
      watching = next;
      begin();
      history.replaceState(null, "", location.pathname + location.search);
    } else {
      const headers = { "content-type": "application/json" };
      const started = await client.run(target(), editor.text, { key, headers, ...patience() }).key;
      watching?.leave();
      watching = next;
      history.replaceState(null, "", `#run=${started}`);
      void next.follow(started);
    }
    key = newKey();
    isEdited = false;
    setText(said, "");
    remember();
    void others();
  } catch (error) {
    refused(error);
  }
  onNews();
}

/** @param {unknown} error */
function refused(error) {
  const said = element("#said");
  const problem = error instanceof AnemoneError ? error.problem : undefined;
  const isOfDocument = problem?.pointer !== undefined || (error instanceof AnemoneError && error.code === "bad-body");
  if (isOfDocument) editor.refuse(problem.detail, problem.pointer ?? null);
  // Pressed again after no answer, the same run is started once.
  if (!isGone(error)) key = newKey();
  const again = isGone(error) ? " Start again: if the run has begun, there will not be two." : "";
  setText(said, isOfDocument ? "The server refuses the document; its reason is above." : failureInWords(error) + again);
  if (!isOfDocument) said.scrollIntoView({ block: "nearest" });
  said.classList.add("failure");
}

/** Shows the run that the address names. */
function open() {
  const [, named] = /^#run=([\w-]+)$/.exec(location.hash) ?? [];
  if (named === undefined || named === watching?.run?.key) return;
  watching?.leave();
  watching = new Watching(replay, onNews);
  isEdited = false;
  void watching.follow(named).then(others);
}

async function others() {
  await showOthers(find(document, "#others", HTMLDetailsElement), watching?.run?.key ?? "");
}

// --- what a window remembers ---

/** Keeps the document with this window, so that it is there when the page is loaded again. */
function remember() {
  history.replaceState({ text: editor.text, pace: select("#pace").value, states: select("#states").value }, "");
}

function recall() {
  const { text, pace, states } = history.state ?? {};
  if (typeof text !== "string") return false;
  editor.text = text;
  select("#pace").value = pace;
  select("#states").value = states;
  return true;
}

// --- hands ---

function onInput() {
  key = newKey();
  isEdited = isChanged = true;
  setText(element("#said"), "");
  setText(find(document, ".document .command code", HTMLElement), commandFor({ path: `/${target()}`, query: null, text: editor.text, name: "" }));
}

editor.onchange = onInput;
editor.onexample = (/** @type {{ pace: number }} */ { pace }) => (select("#pace").value = String(pace));
for (const name of ["#pace", "#states"]) select(name).addEventListener("change", onInput);
button("#begin").addEventListener("click", () => void start());
sendOnEnter(element("#text"), start);
offerCopy(find(document, ".command button", HTMLButtonElement), find(document, ".document .command code", HTMLElement), "the same from a terminal");

button("#cancel").addEventListener("click", async () => {
  if (!watching?.run) return;
  if (watching.isHeld) {
    const words = { title: "Cancel this run?", about: "It is held to the connection of this page, which ends.", yes: "Cancel the run", no: "Let it go on" };
    if (await ask(words)) watching.leave();
    return;
  }
  setText(element("#said"), (await cancel(watching.run)) ?? "");
});

addEventListener("hashchange", open);
addEventListener("pagehide", () => {
  remember();
  if (watching?.isHeld) watching.leave();
});

// --- beginning ---

element("#notice-no-script").remove();
void showPlaces();
void keepShowing(PARTS, takeNews);
setInterval(showRun, TIMES_EVERY_MS);
void learnClock().catch(() => {}); // times are then by this clock
const hasRun = /^#run=/.test(location.hash);
if (recall()) isEdited = !hasRun;
else if (!hasRun) editor.text = EXAMPLES[0]?.text ?? "";
open();
setText(find(document, ".document .command code", HTMLElement), commandFor({ path: `/${target()}`, query: null, text: editor.text, name: "" }));
void others();
