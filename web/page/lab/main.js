/** The Lab page: measures the transports in this browser, on this network, and says which serves best. */
import { find, part, setText } from "../element.js";
import { hasTopic, showPlaces } from "../places.js";
import { save } from "../save.js";
import { client, failureInWords } from "../server.js";
import { formatDuration } from "../words.js";
import { now } from "../../client.js";
import { answerElement } from "./answer.js";
import { expected, run } from "./experiments.js";
import { offerDoctor } from "./findings.js";
import { listPublished, publish } from "./published.js";

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
const begin = find(document, "#begin", HTMLButtonElement);
const stop = find(document, "#stop", HTMLButtonElement);
const progress = find(document, "#progress", HTMLProgressElement);
const template = find(document, "#answer", HTMLTemplateElement);
const said = element("#said");
const kept = element("#kept");

/** @type {import("./report.js").Report[]} */
let reports = [];
let ending = new AbortController();

/** @param {string} id */
const chosen = (id) => Number(find(document, id, HTMLSelectElement).value);

/** @returns {import("./experiments.js").Name[]} */
function wanted() {
  const boxes = [...document.querySelectorAll("#experiments input:checked:enabled")];
  return boxes.map((box) => /** @type {any} */ (box).value);
}

async function measure() {
  const names = wanted();
  if (names.length === 0) return setText(said, "Choose at least one measurement.");
  ending = new AbortController();
  [begin.hidden, stop.hidden] = [true, false];
  stop.focus();
  reports = [];
  const places = names.map(placeOf);
  element("#answers").replaceChildren(...places);
  element("#keep").hidden = true;
  setText(kept, "");
  for (const [at, name] of names.entries()) {
    const begun = now();
    const onStep = (/** @type {number} */ steps, /** @type {number} */ of) => {
      progress.value = (at + steps / of) / names.length;
      const left = ((now() - begun) / steps) * (of - steps);
      setText(said, `${at + 1} of ${names.length}: ${name}, ${formatDuration(left + 999)} left`);
    };
    const settings = { rounds: chosen("#rounds"), atOnce: chosen("#at-once"), ms: chosen("#time"), signal: ending.signal, onStep };
    setText(said, `${at + 1} of ${names.length}: ${name}`);
    const place = /** @type {HTMLElement} */ (places[at]);
    setText(find(place, ".verdict", HTMLElement), "It is measured now.");
    try {
      const made = await run(name, settings);
      if (made) show(made, place);
    } catch (error) {
      if (!ending.signal.aborted) showFailure(name, error, place);
    }
    if (ending.signal.aborted) break;
  }
  for (const place of document.querySelectorAll("#answers .expected")) place.remove();
  setText(said, ending.signal.aborted ? "Stopped: what was measured by then is below." : "Done.");
  progress.value = ending.signal.aborted ? 0 : 1;
  const hadFocus = document.activeElement === stop;
  [begin.hidden, stop.hidden] = [false, true];
  if (hadFocus) begin.focus();
}

/**
 * The place of an answer, so high that little below it moves when the answer comes.
 * @param {import("./experiments.js").Name} name
 */
function placeOf(name) {
  const { question, rows } = expected(name);
  const place = part("section", "expected", "");
  place.style.setProperty("--rows", String(rows));
  place.append(part("h2", "", question), part("p", "verdict", "It is not measured yet."));
  return place;
}

/**
 * @param {import("./worker.js").Made} made
 * @param {HTMLElement} place
 */
function show({ report, estimates }, place) {
  reports.push(report);
  place.replaceWith(answerElement(template, report, estimates));
  element("#keep").hidden = false;
}

/**
 * @param {string} name
 * @param {unknown} error
 * @param {HTMLElement} place
 */
function showFailure(name, error, place) {
  const section = document.createElement("section");
  section.append(part("p", "invalid", `${name}: ${failureInWords(error)}`));
  place.replaceWith(section);
}

/** Offers what this server has. */
async function offer() {
  const box = (/** @type {string} */ name) => find(document, `#experiments [value=${name}]`, HTMLInputElement);
  const tell = (/** @type {string} */ name, /** @type {boolean} */ isThere, /** @type {string} */ words) => {
    box(name).disabled = !isThere;
    setText(element(`[data-field=${name}]`), isThere ? "" : words);
  };
  const described = await client.call("GET", "openapi.json").catch(() => null);
  tell("echo", described?.data?.paths?.["/echo"] !== undefined, "this server has no /echo: anemone serve --echo");
  tell("wind", (await hasTopic("wind")) === true, "this server has no topic wind: anemone serve --demo");
}

begin.addEventListener("click", () => void measure());
stop.addEventListener("click", () => ending.abort());
element("#save").addEventListener("click", () => {
  save(JSON.stringify(reports), "application/json", "anemone-lab.json");
  setText(kept, "anemone-lab.json is saved.");
});
element("#upload").addEventListener("click", async () => {
  kept.classList.remove("failure");
  try {
    await publish(reports);
    setText(kept, "Published.");
    await listPublished(element("#others"));
  } catch (error) {
    kept.classList.add("failure");
    setText(kept, failureInWords(error));
  }
});

offerDoctor(element("#doctor"));
void showPlaces();
void listPublished(element("#others"));
await offer();
find(document, "#notice-no-script", HTMLElement).remove();
