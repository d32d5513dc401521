/** The services of a server, each with a command that calls it, and the runs that work or wait. */
import { command, quoted } from "../page/commands.js";
import { servicesIn } from "../page/described.js";
import { find, setText } from "../page/element.js";
import { at } from "../page/site.js";
import { formatCount } from "../page/words.js";

const LOOK_EVERY_MS = 5000;
const RUNS_MAX = 1000;

export class Services {
  #client;
  #section;
  #template;
  #hasRuns = true;

  /**
   * @param {import("../client.js").Client} client
   * @param {HTMLElement} section
   * @param {HTMLTemplateElement} template of a service
   */
  constructor(client, section, template) {
    this.#client = client;
    this.#section = section;
    this.#template = template;
    setInterval(() => document.visibilityState === "visible" && void this.#lookForRuns(), LOOK_EVERY_MS);
  }

  /**
   * Looks which services the server has. Call this after each new connection, since they may have changed.
   * @param {readonly string[]} others the paths of those that are shown elsewhere
   */
  async look(others) {
    try {
      const { data } = await this.#client.call("GET", "openapi.json");
      this.#show(servicesIn(data).filter(({ path }) => !others.includes(path)));
      this.#hasRuns = true;
      await this.#lookForRuns();
    } catch {
      // The index says whether the server is there.
    }
  }

  /** @param {import("../page/described.js").DescribedService[]} services */
  #show(services) {
    find(this.#section, "ul", HTMLElement).replaceChildren(
      ...services.map(({ path, about, example, methods, startsRuns, isRunService }) => {
        const url = at(path.slice(1));
        const isGet = methods.includes("GET") || methods.length === 0;
        const method = isGet ? "" : example ? ` --json ${quoted(example)}` : ` -X ${methods[0]}`;
        /** @type {HTMLElement} */
        let title = document.createElement("b");
        if (methods.includes("GET")) {
          title = document.createElement("a");
          title.setAttribute("href", url);
        } else if (isRunService) {
          title = document.createElement("a");
          title.setAttribute("href", at(`runs#start=${path}`));
        }
        title.textContent = path;
        const item = command(this.#template, title, `curl ${startsRuns ? "-N " : ""}'${url}'${method}`);
        setText(find(item, ".about", HTMLElement), [methods.join(", "), about].filter(Boolean).join(" · "));
        return item;
      }),
    );
    this.#section.hidden = services.length === 0;
  }

  async #lookForRuns() {
    if (!this.#hasRuns || this.#section.hidden) return;
    try {
      const { data } = await this.#client.call("GET", `runs?limit=${RUNS_MAX}`);
      const count = (/** @type {string} */ wanted) => data.runs.filter((/** @type {{ state: string }} */ { state }) => state === wanted).length;
      this.#showRuns(count("running"), count("queued"));
    } catch (error) {
      // Only clients of the server's machine may see them.
      if (error instanceof Error && "status" in error && Number(error.status) >= 400) this.#hasRuns = false;
      this.#showRuns(0, 0);
    }
  }

  /**
   * @param {number} running
   * @param {number} queued
   */
  #showRuns(running, queued) {
    const count = running || queued;
    const line = find(this.#section, "#runs", HTMLElement);
    line.hidden = count === 0;
    setText(find(line, "a", HTMLElement), count === 1 ? "1 run" : `${formatCount(count)} runs`);
    setText(find(line, "span", HTMLElement), runsInWords(running, queued));
  }
}

/**
 * Returns the words after "1 run" or "2 runs": "is going on.", "are going on, 3 wait.", "waits."
 * @param {number} running
 * @param {number} queued
 */
export function runsInWords(running, queued) {
  const wait = (/** @type {number} */ count) => (count === 1 ? "waits" : "wait");
  if (running === 0) return `${wait(queued)}.`;
  return `${running === 1 ? "is" : "are"} going on${queued > 0 ? `, ${formatCount(queued)} ${wait(queued)}` : ""}.`;
}
