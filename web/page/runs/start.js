/** The box that starts a run, for each run service of the server. */
import { offerCopy, quoted } from "../commands.js";
import { servicesIn } from "../described.js";
import { find, part, setText } from "../element.js";
import { isJson, newKey, sendOnEnter } from "../sending.js";
import { client, failureInWords, isUnreached } from "../server.js";
import { at } from "../site.js";

/** @typedef {import("../described.js").DescribedService} DescribedService */

/**
 * Shows the box if the server has run services; returns their paths.
 * @param {HTMLElement} section
 * @param {() => void} onStarted
 */
export async function offerStarts(section, onStarted) {
  const described = await runServices();
  const services = described.map(({ path }) => path);
  if (services.length === 0) return services;
  section.hidden = false;
  const choice = find(section, "select", HTMLSelectElement);
  choice.replaceChildren(...services.map((path) => new Option(path)));
  const text = find(section, "textarea", HTMLTextAreaElement);
  const said = find(section, "[role=status]", HTMLElement);
  const code = find(section, "code", HTMLElement);
  const about = find(section, ".about", HTMLElement);
  const showCommand = () => setText(code, commandFor(choice.value, text.value));
  let example = "";
  const showService = () => {
    const service = described.find(({ path }) => path === choice.value);
    setText(about, service?.about ?? "");
    // What somebody has written stays.
    const isUntouched = text.value === example;
    example = service?.example ?? "";
    if (isUntouched) text.value = example;
    showCommand();
  };
  let key = newKey();
  const start = async () => {
    said.classList.remove("failure");
    setText(said, "starting");
    const { words, location, isKnown } = await post(choice.value, text.value, key);
    said.replaceChildren(words);
    said.classList.toggle("failure", location === null);
    if (location !== null) said.append(linkTo(location));
    // Pressed again after no answer, the same run is started once.
    if (isKnown) key = newKey();
    if (location !== null) onStarted();
  };
  for (const [input, show] of /** @type {const} */ ([[choice, showService], [text, showCommand]])) {
    input.addEventListener("input", () => {
      key = newKey();
      show();
    });
  }
  find(section, "#begin", HTMLButtonElement).addEventListener("click", () => void start());
  sendOnEnter(text, start);
  offerCopy(find(section, ".command button", HTMLButtonElement), code, "the same from a terminal");
  // A link to the box may name the service.
  const asked = `/${location.hash.slice("#start=/".length)}`;
  if (location.hash.startsWith("#start=/") && services.includes(asked)) {
    choice.value = asked;
    text.focus();
  }
  showService();
  return services;
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
    const { fields } = await client.call("POST", path, body, { key, headers: { ...headers, prefer: "respond-async" } });
    const location = new URL(String(fields.location), at(path.slice(1))).href;
    return { words: "Started. Location: ", location, isKnown: true };
  } catch (error) {
    const words = isUnreached(error) ? `${failureInWords(error)} Start again: if the run has begun, there will not be two.` : failureInWords(error);
    return { words, location: null, isKnown: !isUnreached(error) };
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
  const input = text === "" ? "" : ` ${quoted(text)}`;
  const type = text === "" || isJson(text) ? "" : " --type text";
  return `anemone run '${at(path.slice(1))}'${input}${type}`;
}
