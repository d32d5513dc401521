/** The box that starts a run, for each run service of the server. */
import { offerCopy, quoted } from "../commands.js";
import { servicesIn } from "../described.js";
import { find, part, setText } from "../element.js";
import { isJson, newKey, sendOnEnter } from "../sending.js";
import { client } from "../server.js";
import { at } from "../site.js";
import { begin } from "./begin.js";

/** @typedef {import("../described.js").DescribedService} DescribedService */

/**
 * Shows the box if the server has run services; returns their paths.
 * @param {HTMLElement} section
 * @param {() => void} onStarted
 */
export async function offerStarts(section, onStarted) {
  const services = await runServices();
  if (services.length > 0) new Start(section, services, onStarted);
  return services.map(({ path }) => path);
}

class Start {
  #services;
  #onStarted;
  #choice;
  #text;
  #name;
  #said;
  #code;
  #about;
  /** The example that is in the box, unless somebody has written there. */
  #example = "";
  #key = newKey();

  /**
   * @param {HTMLElement} section
   * @param {DescribedService[]} services
   * @param {() => void} onStarted
   */
  constructor(section, services, onStarted) {
    this.#services = services;
    this.#onStarted = onStarted;
    this.#choice = find(section, "select", HTMLSelectElement);
    this.#text = find(section, "textarea", HTMLTextAreaElement);
    this.#name = find(section, "#name", HTMLInputElement);
    this.#said = find(section, "[role=status]", HTMLElement);
    this.#code = find(section, "code", HTMLElement);
    this.#about = find(section, ".about", HTMLElement);
    section.hidden = false;
    this.#choice.replaceChildren(...services.map(({ path }) => new Option(path)));
    this.#choice.addEventListener("input", () => this.#showService());
    for (const box of [this.#text, this.#name]) box.addEventListener("input", () => this.#showCommand());
    find(section, "#begin", HTMLButtonElement).addEventListener("click", () => void this.#start());
    for (const box of [this.#text, this.#name]) sendOnEnter(box, () => this.#start());
    offerCopy(find(section, ".command button", HTMLButtonElement), this.#code, "the same from a terminal");
    this.#open();
    this.#showService();
  }

  /** A link to the box may name the service. */
  #open() {
    const [, asked = ""] = /^#start=(\/.*)/.exec(location.hash) ?? [];
    if (!this.#services.some(({ path }) => path === asked)) return;
    this.#choice.value = asked;
    this.#text.focus();
  }

  #showService() {
    const service = this.#services.find(({ path }) => path === this.#choice.value);
    setText(this.#about, service?.about ?? "");
    // What somebody has written stays.
    const isUntouched = this.#text.value === this.#example;
    this.#example = service?.example ?? "";
    if (isUntouched) this.#text.value = this.#example;
    this.#showCommand();
  }

  #showCommand() {
    this.#key = newKey();
    setText(this.#code, commandFor(this.#choice.value, this.#text.value, this.#name.value.trim()));
  }

  async #start() {
    this.#said.classList.remove("failure");
    setText(this.#said, "starting");
    const { words, location, isKnown } = await begin(inputOf(this.#choice.value, this.#text.value, this.#name.value.trim()), this.#key);
    this.#said.replaceChildren(words);
    this.#said.classList.toggle("failure", location === null);
    if (location !== null) this.#said.append(linkTo(location));
    // Pressed again after no answer, the same run is started once.
    if (isKnown) this.#key = newKey();
    if (location !== null) this.#onStarted();
  }
}

/** @returns {Promise<DescribedService[]>} those at which runs start */
async function runServices() {
  const { data } = await client.call("GET", "openapi.json");
  return servicesIn(data).filter(({ isRunService }) => isRunService);
}

/**
 * @param {string} path
 * @param {string} text without quotes it is a text, unless it is JSON
 * @param {string} name
 * @returns {import("./words.js").Start}
 */
function inputOf(path, text, name) {
  const type = text === "" ? null : isJson(text) ? "application/json" : "text/plain";
  return { path, query: null, type, body: text === "" ? null : text, name: name || null };
}

/** @param {string} location */
function linkTo(location) {
  const link = part("a", "", "watch it");
  link.href = location;
  return link;
}

/**
 * The command that starts the same run from a terminal.
 * @param {string} path
 * @param {string} text
 * @param {string} [name]
 */
export function commandFor(path, text, name = "") {
  const type = text === "" || isJson(text) ? "" : " --type text";
  const named = name === "" ? "" : ` --name=${quoted(name)}`;
  const run = (/** @type {string} */ input) => `anemone run '${at(path.slice(1))}'${input}${type}${named}`;
  // As an argument, it would be a file, standard input or an option.
  if (/^[@-]/.test(text)) return `printf %s ${quoted(text)} | ${run(" -")}`;
  return run(text === "" ? "" : ` ${quoted(text)}`);
}
