/** The list of topics on a server without wind, each with a link and a command. */
import { at } from "../site.js";
import { browser } from "../transport/environment.js";
import { command, following } from "./commands.js";
import { find, setText } from "./element.js";

const LOOK_EVERY_MS = 5000;
const ANSWER_MS_MAX = 10_000;

/**
 * Shows and updates the list while the server has no topic `wind`. Resolves when there is one, or at once if the server
 * does not list its topics: the readings then report why.
 * @param {HTMLElement} section
 * @param {HTMLTemplateElement} template of a command
 */
export async function untilWind(section, template) {
  const lost = find(document, "#notice-no-server", HTMLElement);
  let shown = "";
  for (;;) {
    const found = await look();
    if (found?.hasWind || (!found && !shown)) break;
    lost.hidden = found !== null;
    if (found && shown !== JSON.stringify(found)) {
      shown = JSON.stringify(found);
      show(section, template, found);
    }
    do await browser.sleep(LOOK_EVERY_MS, new AbortController().signal);
    while (document.visibilityState === "hidden");
  }
  lost.hidden = true;
  section.hidden = true;
}

/**
 * @typedef {{ names: string[], more: boolean, hasWind: boolean }} Found
 * @returns {Promise<Found | null>} null when the server does not say
 */
async function look() {
  try {
    const reply = await ask("topics");
    if (!reply.ok) return null;
    /** @type {{ topics: { name: string }[], next?: string }} */
    const { topics, next } = await reply.json();
    const names = topics.map(({ name }) => name);
    const more = next !== undefined;
    return { names, more, hasWind: names.includes("wind") || (more && (await ask("topics/wind", "HEAD")).ok) };
  } catch {
    return null;
  }
}

/**
 * @param {string} path
 * @param {string} [method]
 */
function ask(path, method) {
  return browser.fetch(at(path), { method, cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS_MAX) });
}

/**
 * @param {HTMLElement} section
 * @param {HTMLTemplateElement} template
 * @param {Found} found
 */
function show(section, template, { names, more }) {
  const items = names.map((name) => {
    const link = document.createElement("a");
    link.href = at(`topics/${name}`);
    link.textContent = name;
    return command(template, link, following(link.href));
  });
  find(section, "ul", HTMLElement).replaceChildren(...items);
  const count = names.length === 0 ? "It has no topic yet." : more ? `The first ${names.length} of them by name:` : "";
  setText(find(section, "[data-field=count]", HTMLElement), count);
  section.hidden = false;
}
