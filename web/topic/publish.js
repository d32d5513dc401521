/** The box to publish an event, where this client may. */
import { AnemoneError, connect } from "../client.js";
import { find, setText } from "../page/element.js";
import { isJson, newKey, sendOnEnter } from "../page/sending.js";
import { split } from "../transport/page.js";

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
  sendOnEnter(text, publish);
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
  const { base, path } = split(url);
  // Without quotes it is a text, unless it is JSON.
  const headers = { "content-type": isJson(text) ? "application/json" : "text/plain" };
  const client = connect(base, { transports: ["poll"] });
  try {
    const { data } = await client.call("POST", path, text, { key, headers, signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    return { words: `Published at ${data.position}${isJson(text) ? "" : ", as text"}.`, isDone: true };
  } catch (error) {
    if (error instanceof AnemoneError && error.status !== undefined) return { words: error.message, isDone: error.status < 500 };
    return { words: "The server did not answer. Publish again: if it has the event, it will not be there twice.", isDone: false };
  } finally {
    client.close();
  }
}
