/** The form that starts a run, for each run service of the server. */
import { offerCopy } from "../commands.js";
import { servicesIn } from "../described.js";
import { find, part, setText } from "../element.js";
import { isJson, newKey, sendOnEnter } from "../sending.js";
import { client } from "../server.js";
import { begin } from "./begin.js";
import { commandFor, curlFor } from "./calls.js";
import { fieldsFor, queryOf } from "./parameters.js";

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
  #form;
  #codes;
  #parameters;
  #about;
  /** The example that is in the box, unless the user has changed it. */
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
    this.#form = find(section, "form", HTMLFormElement);
    this.#codes = [...section.querySelectorAll("code")];
    this.#parameters = find(section, ".parameters", HTMLElement);
    this.#about = find(section, ".about", HTMLElement);
    section.hidden = false;
    this.#choice.replaceChildren(...services.map(({ path }) => new Option(path)));
    this.#choice.addEventListener("input", () => this.#showService());
    this.#form.addEventListener("input", () => this.#showCommands());
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#start();
    });
    sendOnEnter(this.#text, () => this.#form.requestSubmit());
    for (const code of this.#codes) {
      const button = code.closest(".command")?.querySelector("button");
      if (button) offerCopy(button, code, `the same with ${code.dataset["program"]}`);
    }
    this.#open();
    this.#showService();
  }

  /** Chooses the service that a link to the box names, if it names one. */
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
    this.#parameters.replaceChildren(...fieldsFor(service?.parameters ?? []));
    this.#showCommands();
  }

  #filled() {
    const boxes = this.#parameters.querySelectorAll("input, select");
    const query = queryOf(/** @type {NodeListOf<HTMLInputElement | HTMLSelectElement>} */ (boxes));
    return { path: this.#choice.value, query, text: this.#text.value, name: this.#name.value.trim() };
  }

  #showCommands() {
    this.#key = newKey();
    const filled = this.#filled();
    for (const code of this.#codes) setText(code, code.dataset["program"] === "curl" ? curlFor(filled) : commandFor(filled));
  }

  async #start() {
    this.#said.classList.remove("failure");
    setText(this.#said, "starting");
    const { words, location, isKnown } = await begin(inputOf(this.#filled()), this.#key);
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
 * @param {import("./calls.js").Filled} filled the text is without quotes, unless it is JSON
 * @returns {import("./words.js").Start}
 */
function inputOf({ path, query, text, name }) {
  const type = text === "" ? null : isJson(text) ? "application/json" : "text/plain";
  return { path, query, type, body: text === "" ? null : text, name: name || null };
}

/** @param {string} location */
function linkTo(location) {
  const link = part("a", "", "watch it");
  link.href = location;
  return link;
}
