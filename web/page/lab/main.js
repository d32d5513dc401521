/** The Lab page: measures the transports in this browser, on this network, and says which serves best. */
import { find, part, setText } from "../element.js";
import { hasTopic, showPlaces } from "../places.js";
import { save } from "../save.js";
import { client, failureInWords, isThere } from "../server.js";
import { formatCount, formatDuration } from "../words.js";
import { now } from "../../client.js";
import { adviceOf } from "./advice.js";
import { answerElement } from "./answer.js";
import { biasOf } from "./bias.js";
import { echoedBytes } from "./echoes.js";
import { expected, run } from "./experiments.js";
import { offerDoctor } from "./findings.js";
import { Maker } from "./making.js";
import { listPublished, publish } from "./published.js";
import { WARM_UP } from "./rounds.js";

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
const begin = find(document, "#begin", HTMLButtonElement);
const stop = find(document, "#stop", HTMLButtonElement);
const progress = find(document, "#progress", HTMLProgressElement);
const template = find(document, "#answer", HTMLTemplateElement);
const said = element("#said");
const kept = element("#kept");
const ANSWER_MS_MAX = 10_000;
/** The reason for the end of a measurement. */
const GONE = "the server does not answer";
const maker = new Maker();

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
  showAdvice("");
  setText(kept, "");
  setText(said, "Loading what makes the reports");
  await maker.load(ending.signal);
  setText(said, "Comparing calls over both ways");
  const bias = await biasOf(ending.signal);
  for (const [index, name] of names.entries()) {
    await endIfGone();
    if (ending.signal.aborted) break;
    const begun = now();
    const onStep = (/** @type {number} */ steps, /** @type {number} */ of) => {
      progress.value = (index + steps / of) / names.length;
      const left = ((now() - begun) / steps) * (of - steps);
      const which = index + 1 < names.length ? " for this one" : "";
      setText(said, `${index + 1} of ${names.length}: ${name}, ${formatDuration(left + 999)} left${which}`);
    };
    const settings = { rounds: chosen("#rounds"), atOnce: chosen("#at-once"), ms: chosen("#time"), longest: chosen("#longest"), bias, maker, signal: ending.signal, onStep, onFailure: endIfGone };
    setText(said, `${index + 1} of ${names.length}: ${name}`);
    const place = /** @type {HTMLElement} */ (places[index]);
    setText(find(place, ".verdict", HTMLElement), "It is measured now.");
    try {
      const made = await run(name, settings);
      if (made) show(made, place);
    } catch (error) {
      if (!ending.signal.aborted) showFailure(name, error, place);
    }
  }
  maker.end();
  for (const place of document.querySelectorAll("#answers .expected")) place.remove();
  showAdvice(adviceOf(reports));
  setText(said, ending.signal.aborted ? endInWords() : "Done.");
  progress.value = ending.signal.aborted ? 0 : 1;
  const hadFocus = document.activeElement === stop;
  [begin.hidden, stop.hidden] = [false, true];
  if (hadFocus) begin.focus();
}

/** @param {string} words */
function showAdvice(words) {
  const advice = element("#advice");
  advice.hidden = words === "";
  setText(advice, words);
}

/** Shows how much a measurement will send and receive, before it begins. */
function showSum() {
  const names = wanted();
  const rounds = chosen("#rounds") + WARM_UP;
  const megabytes = Math.ceil(echoedBytes(rounds, chosen("#longest")) / 1e6);
  const echoes = names.includes("echo") ? [`${formatCount(megabytes)} MB of echoes, there and back`] : [];
  const calls = names.includes("sequential") ? [`as many calls as fit into ${formatDuration(2 * rounds * chosen("#time"))}`] : [];
  const parts = [...echoes, ...calls];
  if (names.includes("wind") || names.includes("calls")) parts.push(`less than 1 MB${parts.length > 0 ? " for the rest" : ""}`);
  setText(element("#sum"), parts.length === 0 ? "" : `This sends and receives ${parts.join(", ")}.`);
}

/** Ends the measurement if nothing answers, or something else than the server. It would take long and measure nothing. */
async function endIfGone() {
  if (!(await isThere(AbortSignal.any([ending.signal, AbortSignal.timeout(ANSWER_MS_MAX)])))) ending.abort(GONE);
}

function endInWords() {
  const isGone = ending.signal.reason === GONE;
  if (reports.length > 0) return `${isGone ? "The server does not answer" : "Stopped"}: what was measured by then is below.`;
  return isGone ? "The server does not answer." : "Stopped before anything was measured.";
}

/**
 * Makes the place of an answer, so high that little below it moves when the answer comes.
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
 * @param {ReturnType<typeof import("./report.js").made>} made
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

/** Offers the experiments that this server allows. */
async function offer() {
  const box = (/** @type {string} */ name) => find(document, `#experiments [value=${name}]`, HTMLInputElement);
  const tell = (/** @type {string} */ name, /** @type {boolean} */ isOffered, /** @type {string} */ words) => {
    box(name).disabled = !isOffered;
    setText(element(`[data-field=${name}]`), isOffered ? "" : words);
  };
  const described = await client.call("GET", "openapi.json", undefined, { signal: AbortSignal.timeout(ANSWER_MS_MAX) }).catch(() => null);
  tell("echo", described?.data?.paths?.["/echo"] !== undefined, "this server has no /echo: anemone serve --echo");
  tell("wind", (await hasTopic("wind")) === true, "this server has no topic wind: anemone serve --demo");
  showSum();
}

begin.addEventListener("click", () => void measure());
element("#settings").addEventListener("change", showSum);
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
  } catch (error) {
    kept.classList.add("failure");
    return setText(kept, failureInWords(error));
  }
  await listPublished(element("#others")).catch(() => {}); // they are published, seen or not
});

offerDoctor(element("#doctor"));
void showPlaces();
void listPublished(element("#others")).catch(() => {}); // what is measured now needs none of them
await offer();
find(document, "#notice-no-script", HTMLElement).remove();
