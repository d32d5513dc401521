/** The URLs of the server. All are relative to this file, since a proxy may add a prefix to the path. */

const SITE = new URL("./", import.meta.url);

/**
 * Returns the URL of a path of the server.
 * @param {string} path without a slash in front
 */
export function at(path) {
  return new URL(path, SITE).href;
}
