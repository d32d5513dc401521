/** The changes of messages. Each names the version that it changes, so that nobody overwrites a version that they have not seen. */
import { AnemoneError } from "../../client.js";
import { patience } from "../sending.js";
import { client } from "../server.js";

/** @typedef {import("./records.js").Message} Message */
/** @typedef {import("./records.js").Version} Version */

/**
 * @param {{ text: string, from: string }} content
 * @param {string} key
 */
export async function create({ text, from }, key) {
  await client.call("POST", "messages", from === "" ? { text } : { text, from }, { key, ...patience() });
}

/**
 * Changes a message if it is still this version.
 * @param {Version} version
 * @param {{ text: string, from: string }} content
 * @returns {Promise<Version>}
 */
export async function change({ record, tag }, { text, from }) {
  const patch = { text, from: from === "" ? null : from };
  return versionOf(await client.call("PATCH", pathOf(record.id), patch, { headers: { "if-match": `"${tag}"` }, ...patience() }));
}

/**
 * Deletes a message if it is still this version.
 * @param {Version} version
 */
export async function remove({ record, tag }) {
  await client.call("DELETE", pathOf(record.id), undefined, { headers: { "if-match": `"${tag}"` }, ...patience() });
}

/**
 * Returns the version that the server has; null if it has none.
 * @param {string} id
 * @returns {Promise<Version | null>}
 */
export async function current(id) {
  try {
    return versionOf(await client.call("GET", pathOf(id), undefined, patience()));
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

/**
 * Returns true if nothing was changed, since the message has another version or is not there.
 * @param {unknown} error
 */
export function isConflict(error) {
  return isAbsent(error) || (error instanceof AnemoneError && error.code === "precondition-failed");
}

/** @param {unknown} error */
export function isAbsent(error) {
  return error instanceof AnemoneError && error.code === "unknown-record";
}

/** @param {string} id */
function pathOf(id) {
  return `messages/${encodeURIComponent(id)}`;
}

/**
 * @param {import("../../anemone-client/types.js").Reply} reply
 * @returns {Version}
 */
function versionOf({ data, fields }) {
  return { record: data, tag: String(fields.etag).replaceAll('"', ""), time: null };
}
