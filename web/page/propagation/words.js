/** Words of the page about propagation. Pure. */

const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A value with a real minus: "−87.3". @param {number} value */
export function signed(value) {
  return tenth.format(value).replace("-", "−");
}

/** @param {number} seconds */
export function leftInWords(seconds) {
  return seconds < 1 ? "less than 1 s left" : `about ${Math.ceil(seconds)} s left`;
}
