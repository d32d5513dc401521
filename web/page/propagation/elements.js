/** Finds the elements of the page about propagation. */
import { find } from "../element.js";

/** @param {string} selector */
export const element = (selector) => find(document, selector, HTMLElement);
/** @param {string} selector */
export const input = (selector) => find(document, selector, HTMLInputElement);
/** @param {string} selector */
export const select = (selector) => find(document, selector, HTMLSelectElement);
/** @param {string} selector */
export const button = (selector) => find(document, selector, HTMLButtonElement);
