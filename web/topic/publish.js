/** The box to publish an event, where this client may. */
import { find, setText } from "../page/element.js";
import { problemInWords } from "../transport/page.js";

const ANSWER_MS_MAX = 35_000;

/**
 * @param {HTMLElement} section
 * @param {string} url of the topic
 */
export async function offerPublishing(section, url) {
  if (!(await mayPublish(url))) return;
  section.hidden = false;
  const text = find(section, "textarea", HTMLTextAreaElement);
  const said = find(section, "[role=status]", HTMLElement);
  let key = newKey();
  // Pressed again after a failure, the same event is published once.
  text.addEventListener("input", () => (key = newKey()));
  const publish = async () => {
    setText(said, "publishing");
    const { words, isDone } = await post(url, text.value, key);
    setText(said, words);
    if (isDone) key = newKey();
  };
  find(section, "button", HTMLButtonElement).addEventListener("click", publish);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void publish();
  });
}

/** @param {string} url */
async function mayPublish(url) {
  try {
    const reply = await fetch(url, { method: "HEAD", headers: { accept: "text/html" }, cache: "no-store" });
    return /\bPOST\b/.test(reply.headers.get("allow") ?? "");
  } catch {
    return false;
  }
}

/**
 * @param {string} url
 * @param {string} text
 * @param {string} key
 */
async function post(url, text, key) {
  try {
    const reply = await fetch(url, {
      method: "POST",
      // Without quotes it is a text, unless it is JSON.
      headers: { "content-type": isJson(text) ? "application/json" : "text/plain", "idempotency-key": key },
      body: text,
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    const answer = await reply.text();
    if (!reply.ok) return { words: problemInWords(answer) ?? `The server answered ${reply.status}.`, isDone: reply.status < 500 };
    return { words: `Published at ${JSON.parse(answer).position}${isJson(text) ? "" : ", as text"}.`, isDone: true };
  } catch {
    return { words: "The server did not answer. Publish again: if it has the event, it will not be there twice.", isDone: false };
  }
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
