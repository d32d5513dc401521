/** The URLs of the server. All are relative to the directory of this file, since a proxy may add a prefix to the path. */

export const SITE = new URL("../", import.meta.url);

/**
 * Returns the URL of a path of the server.
 * @param {string} path without a slash in front
 */
export function at(path) {
  return new URL(path, SITE).href;
}

/**
 * Returns the URL of a script in the type that a worker takes. The pages allow no other way to make such a URL from a string, so that data
 * never becomes a script (Trusted Types).
 * @param {URL} url
 */
export function ownScript(url) {
  if (!url.href.startsWith(SITE.href)) throw new TypeError(`${url} is no script of this server`);
  /** @type {{ createScriptURL(url: string): string } | undefined} */
  const policy = Reflect.get(globalThis, "trustedTypes")?.createPolicy("anemone", { createScriptURL: String });
  return policy ? policy.createScriptURL(url.href) : url.href;
}
