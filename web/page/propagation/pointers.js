/** Reads and changes values by their JSON Pointers (RFC 6901). Pure. */

/**
 * Returns the value at a pointer; undefined if there is none.
 * @param {unknown} document
 * @param {string} pointer
 * @returns {unknown}
 */
export function get(document, pointer) {
  let value = document;
  for (const key of keysOf(pointer)) value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return value;
}

/**
 * Puts a value at a pointer; undefined removes the value. Makes missing objects on the way.
 * @param {object} document
 * @param {string} pointer
 * @param {unknown} value
 */
export function set(document, pointer, value) {
  const keys = keysOf(pointer);
  const last = keys.pop();
  if (last === undefined) return;
  let place = document;
  for (const key of keys) {
    let next = Reflect.get(place, key);
    if (typeof next !== "object" || next === null) Reflect.set(place, key, (next = {}));
    place = next;
  }
  if (value === undefined) Reflect.deleteProperty(place, last);
  else Reflect.set(place, last, value);
}

/** @param {string} pointer */
function keysOf(pointer) {
  return pointer.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}
