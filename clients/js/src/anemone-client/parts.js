/** The parts that a page loads only if it needs them. */
const PARTS = {
  call: () => import("./call.js"),
  http: () => import("./http.js"),
  outcome: () => import("./outcome.js"),
  tabs: () => import("./tabs.js"),
};

/** @type {Record<string, Promise<any> | undefined>} */
const loaded = {};
/** The longest time to load a part. A connection that has died silently may take minutes to fail. */
const LOAD_MS_MAX = 10_000;
/** The number of failed loads. Most browsers remember a failed load, so it is part of the next URL. */
let failures = 0;

/**
 * Loads a part; if that fails, the next call tries again.
 * @template {keyof typeof PARTS} Name
 * @param {Name} name
 * @returns {ReturnType<(typeof PARTS)[Name]>}
 */
export function load(name) {
  return /** @type {any} */ (loaded[name] ??= begin(name));
}

/** @param {keyof typeof PARTS} name */
function begin(name) {
  const url = `./${name}.js?${failures}`;
  const late = new Promise((_, reject) => /** @type {any} */ (setTimeout(reject, LOAD_MS_MAX)).unref?.());
  const found = Promise.race([late, failures ? import(url) : PARTS[name]()]);
  found.catch(() => {
    failures += 1;
    loaded[name] = undefined;
  });
  return found;
}
