/** Command lines that get the same data in a terminal, with this server's address, ready to copy. */
import { find } from "./element.js";

/**
 * @param {string} topic its URL, for instance `http://localhost:8080/topics/wind`
 * @returns {{ title: string, command: string }[]}
 */
function commandsFor(topic) {
  return [
    { title: "Poll: the newest event, and the position to continue from", command: `curl '${topic}'` },
    { title: "Long poll: wait up to 30 s for the next one", command: `curl '${topic}?after=latest&wait=30'` },
    { title: "Server-sent events", command: events(topic) },
    { title: "WebSocket", command: `websocat '${topic.replace(/^http/, "ws")}'` },
    { title: "WebSocket, in this browser's console", command: `new WebSocket("${new URL(topic).pathname}").onmessage = (m) => console.log(m.data)` },
  ];
}

/** @param {string} url */
function events(url) {
  return `curl -N '${url}' -H 'Accept: text/event-stream'`;
}

/**
 * Returns a command that prints the newest event of a topic in one readable line.
 * @param {string} url of the topic
 */
export function reading(url) {
  return /^[\w.:/-]+$/.test(url) ? `curl ${url}` : `curl -g '${url}'`;
}

/**
 * @param {HTMLElement} list
 * @param {HTMLTemplateElement} template
 * @param {string} topic
 */
export function showCommands(list, template, topic) {
  list.append(...commandsFor(topic).map(({ title, command: line }) => command(template, title, line)));
}

/**
 * Makes an element with a command, its title, and a button that copies it.
 * @param {HTMLTemplateElement} template
 * @param {string | HTMLElement} title
 * @param {string} line
 */
export function command(template, title, line) {
  const item = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
  find(item, "h3", HTMLElement).append(title);
  const code = find(item, "code", HTMLElement);
  code.textContent = line;
  offerCopy(find(item, "button", HTMLButtonElement), code, typeof title === "string" ? title : String(title.textContent));
  return item;
}

/**
 * Lets a button copy a command.
 * @param {HTMLButtonElement} button
 * @param {Element} code
 * @param {string} title
 */
export function offerCopy(button, code, title) {
  button.setAttribute("aria-label", `Copy: ${title}`);
  button.addEventListener("click", async () => {
    button.textContent = (await copy(code)) ? "Copied" : "Selected";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

/**
 * Copies the text. Only a page over TLS or from this machine may do so; in any other page, this selects the text.
 * @param {Element} code
 */
async function copy(code) {
  try {
    await navigator.clipboard.writeText(code.textContent ?? "");
    return true;
  } catch {
    getSelection()?.selectAllChildren(code);
    return false;
  }
}

/** @param {string} text as a word of a shell */
export function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
