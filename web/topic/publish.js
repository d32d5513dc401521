/** The box to publish an event, if this client may publish. */
import { AnemoneError, connect } from "../client.js";
import { find, setText } from "../page/element.js";
import { isJson, looksLikeJson, newKey, patience, sendOnEnter } from "../page/sending.js";
import { split } from "../transport/page.js";
import { refusalStatus } from "../transport/refusal.js";

/**
 * @param {HTMLElement} section
 * @param {string} url of the topic
 */
export async function offerPublishing(section, url) {
  if (!(await mayPublish(url))) return;
  section.hidden = false;
  const text = find(section, "textarea", HTMLTextAreaElement);
  const said = find(section, "[role=status]", HTMLElement);
  const asText = find(section, "#as-text", HTMLButtonElement);
  let key = newKey();
  // Pressed again after a failure, the same event is published once.
  text.addEventListener("input", () => {
    key = newKey();
    asText.hidden = true;
  });
  const tell = (/** @type {string} */ words, isFault = false) => {
    setText(said, words);
    said.classList.toggle("failure", isFault);
  };
  const publish = async (/** @type {string} */ data) => {
    const { words, isFault, isKnown } = await post(url, data, key);
    tell(words, isFault);
    if (isKnown) key = newKey();
  };
  const check = async () => {
    tell("publishing");
    const data = text.value;
    const fault = await faultOf(data);
    asText.hidden = fault === "" || data === "" || data !== text.value;
    if (fault === "") await publish(data);
    else tell(fault, true);
  };
  find(section, "button", HTMLButtonElement).addEventListener("click", check);
  asText.addEventListener("click", () => {
    asText.hidden = true;
    void publish(text.value);
  });
  sendOnEnter(text, check);
}

/**
 * Returns the reason not to publish a text; empty if there is none.
 * @param {string} text
 */
async function faultOf(text) {
  if (text === "") return "Nothing is written, so nothing was published.";
  if (isJson(text) || !looksLikeJson(text)) return "";
  return `This looks like JSON but is not valid, so it was not published.${await placeOfFault(text)}`;
}

/** @param {string} text that is no JSON */
async function placeOfFault(text) {
  const json = await import("../page/json.js").catch(() => null); // the server may be away
  if (json === null) return "";
  try {
    json.readJson(text);
    return "";
  } catch (error) {
    const { line, column } = json.lineOf(text, error instanceof json.JsonError ? error.at : 0);
    return ` Line ${line}, column ${column}: ${error instanceof Error ? error.message : error}.`;
  }
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
    const { data } = await client.call("POST", path, text, { key, headers, ...patience() });
    return { words: `Published at ${data.position}${isJson(text) ? "" : ", as text"}.`, isFault: false, isKnown: true };
  } catch (error) {
    if (error instanceof AnemoneError && refusalStatus(error) !== null) return { words: error.message, isFault: true, isKnown: true };
    return { words: "The server does not answer. Publish again: if it has the event, it will not be there twice.", isFault: true, isKnown: false };
  } finally {
    client.close();
  }
}
