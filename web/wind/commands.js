/** The same data from a terminal: command lines with this server's address, ready to copy. */

/**
 * @param {string} topic its URL, for instance `http://localhost:8080/topics/wind`
 * @returns {{ title: string, command: string }[]}
 */
export function commandsFor(topic) {
  return [
    { title: "Poll: the newest event, and where to go on", command: `curl '${topic}'` },
    { title: "Long poll: wait up to 30 s for the next one", command: `curl '${topic}?after=latest&wait=30'` },
    { title: "Server-sent events", command: `curl -N -H 'Accept: text/event-stream' '${topic}'` },
    { title: "WebSocket", command: `websocat '${topic.replace(/^http/, "ws")}'` },
    { title: "WebSocket, in this browser's console", command: `new WebSocket("${new URL(topic).pathname}").onmessage = (m) => console.log(m.data)` },
  ];
}

/**
 * @param {HTMLElement} list
 * @param {HTMLTemplateElement} template
 * @param {string} topic
 */
export function showCommands(list, template, topic) {
  for (const { title, command } of commandsFor(topic)) {
    const item = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
    const [label, code, button] = ["h3", "code", "button"].map((selector) => item.querySelector(selector));
    if (!label || !code || !button) continue;
    label.textContent = title;
    code.textContent = command;
    button.setAttribute("aria-label", `Copy: ${title}`);
    button.addEventListener("click", async () => {
      button.textContent = (await copy(code)) ? "Copied" : "Selected";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    list.append(item);
  }
}

/**
 * A page that did not come over TLS or from this machine may not write to the clipboard: then select.
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
