/** Words of the page about propagation. Pure. */
import { grouped } from "../words.js";

/** A value with a real minus: "−1,087.3". @param {number} value */
export function signed(value) {
  const [whole = "", tenth] = value.toFixed(1).split(".");
  return `${grouped(whole)}.${tenth}`.replace("-", "−");
}

/** @param {number} seconds */
export function leftInWords(seconds) {
  return seconds < 1 ? "less than 1 s left" : `about ${Math.ceil(seconds)} s left`;
}
