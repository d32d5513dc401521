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

/**
 * Creates an element with a text.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} kind its class
 * @param {string} text
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function part(name, kind, text) {
  const element = document.createElement(name);
  if (kind !== "") element.className = kind;
  element.textContent = text;
  return element;
}

/**
 * Puts an element after another one, or first. Does not touch an element that is there already, which would lose the focus.
 * @param {Element} list
 * @param {Element} element
 * @param {Element | null} previous
 */
export function putAfter(list, element, previous) {
  const place = previous === null ? list.firstElementChild : previous.nextElementSibling;
  if (place !== element) list.insertBefore(element, place);
}
