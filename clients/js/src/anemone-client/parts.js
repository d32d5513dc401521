/** The parts that a page loads only if it needs them. */
const PARTS = {
  call: () => import("./call.js"),
  http: () => import("./http.js"),
  tabs: () => import("./tabs.js"),
};

/** @type {Map<string, Promise<any>>} */
const loaded = new Map();
/** Most browsers remember a failed load, so each new try has another URL. */
let failures = 0;

/**
 * Loads a part; if that fails, the next call tries again.
 * @template {keyof typeof PARTS} Name
 * @param {Name} name
 * @returns {ReturnType<(typeof PARTS)[Name]>}
 */
export function load(name) {
  const found = loaded.get(name) ?? (failures > 0 ? import(`${new URL(`./${name}.js`, import.meta.url)}?${failures}`) : PARTS[name]());
  if (!loaded.has(name)) {
    loaded.set(name, found);
    found.catch(() => {
      failures += 1;
      loaded.delete(name);
    });
  }
  return /** @type {any} */ (found);
}
