/** The places of the server. All are relative to this file: a proxy may serve the page below a path of its own. */

const SITE = new URL("./", import.meta.url);

/**
 * The URL of what the server has at a path.
 * @param {string} path without a slash in front
 */
export function at(path) {
  return new URL(path, SITE).href;
}
