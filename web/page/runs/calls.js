/** The command lines that start the same run as the form. Pure. */
import { quoted } from "../commands.js";
import { isJson } from "../sending.js";
import { at } from "../site.js";
import { targetOf } from "./words.js";

/** @typedef {{ path: string, query: string | null, text: string, name: string }} Filled what the form has */

/**
 * Returns the command with `anemone`, which shows the progress.
 * @param {Filled} filled
 */
export function commandFor({ path, query, text, name }) {
  const type = text === "" || isJson(text) ? "" : " --type text";
  const named = name === "" ? "" : ` --name=${quoted(name)}`;
  const run = (/** @type {string} */ input) => `anemone run ${urlOf({ path, query, name: "" })}${input}${type}${named}`;
  // As an argument, it would be a file, standard input or an option.
  if (/^[@-]/.test(text)) return `printf %s ${quoted(text)} | ${run(" -")}`;
  return run(text === "" ? "" : ` ${quoted(text)}`);
}

/**
 * Returns the command with `curl`, which prints the events as they come.
 * @param {Filled} filled
 */
export function curlFor({ path, query, text, name }) {
  const sent = text === "" ? "-X POST" : `--data-raw ${quoted(text)} -H 'Content-Type: ${isJson(text) ? "application/json" : "text/plain"}'`;
  return `curl -gN ${urlOf({ path, query, name })} ${sent}`;
}

/** @param {Omit<Filled, "text">} filled */
function urlOf({ path, query, name }) {
  const target = targetOf({ path, query, name: name || null, type: null, body: null });
  return quoted(at(target.slice(1)));
}
