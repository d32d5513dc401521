/** Finds elements that the page always has. */

/**
 * @template {Element} T
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => T} type
 * @returns {T}
 */
export function find(root, selector, type) {
  const element = root.querySelector(selector);
  if (element instanceof type) return element;
  throw new Error(`the page has no ${selector}`);
}

/**
 * Sets text only when it changes, to avoid needless layout, lost selections and repeated announcements.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {Element} root
 * @returns {(field: string) => HTMLElement} the element with that `data-field`
 */
export function fieldsOf(root) {
  /** @type {Map<string, HTMLElement>} */
  const known = new Map();
  return (field) => {
    const element = known.get(field) ?? find(root, `[data-field="${field}"]`, HTMLElement);
    known.set(field, element);
    return element;
  };
}
