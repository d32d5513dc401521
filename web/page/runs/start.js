/** The box that starts a run, for each run service of the server. */
import { offerCopy, quoted } from "../commands.js";
import { servicesIn } from "../described.js";
import { find, part, setText } from "../element.js";
import { isJson, newKey, patience, sendOnEnter } from "../sending.js";
import { client, failureInWords, isGone } from "../server.js";
import { at } from "../site.js";

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
    this.#said = find(section, "[role=status]", HTMLElement);
    this.#code = find(section, "code", HTMLElement);
    this.#about = find(section, ".about", HTMLElement);
    section.hidden = false;
    this.#choice.replaceChildren(...services.map(({ path }) => new Option(path)));
    this.#choice.addEventListener("input", () => this.#showService());
    this.#text.addEventListener("input", () => this.#showCommand());
    find(section, "#begin", HTMLButtonElement).addEventListener("click", () => void this.#start());
    sendOnEnter(this.#text, () => this.#start());
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
    setText(this.#code, commandFor(this.#choice.value, this.#text.value));
  }

  async #start() {
    this.#said.classList.remove("failure");
    setText(this.#said, "starting");
    const { words, location, isKnown } = await post(this.#choice.value, this.#text.value, this.#key);
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
 * @param {string} text
 * @param {string} key
 */
async function post(path, text, key) {
  // Without quotes it is a text, unless it is JSON.
  const type = isJson(text) ? "application/json" : "text/plain";
  const input = text === "" ? [] : [text, { "content-type": type }];
  try {
    const [body, headers] = /** @type {[string?, Record<string, string>?]} */ (input);
    const { fields } = await client.call("POST", path, body, { key, headers: { ...headers, prefer: "respond-async" }, ...patience() });
    const location = new URL(String(fields.location), at(path.slice(1))).href;
    return { words: "Started. Location: ", location, isKnown: true };
  } catch (error) {
    const words = isGone(error) ? `${failureInWords(error)} Start again: if the run has begun, there will not be two.` : failureInWords(error);
    return { words, location: null, isKnown: !isGone(error) };
  }
}

/** @param {string} location */
function linkTo(location) {
  const link = part("a", "", new URL(location).pathname);
  link.href = location;
  return link;
}

/**
 * The command that starts the same run from a terminal.
 * @param {string} path
 * @param {string} text
 */
export function commandFor(path, text) {
  const type = text === "" || isJson(text) ? "" : " --type text";
  const run = (/** @type {string} */ input) => `anemone run '${at(path.slice(1))}'${input}${type}`;
  // As an argument, it would be a file, standard input or an option.
  if (/^[@-]/.test(text)) return `printf %s ${quoted(text)} | ${run(" -")}`;
  return run(text === "" ? "" : ` ${quoted(text)}`);
}
