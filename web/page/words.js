/** Formats amounts, times and states. Pure. */

/**
 * Formats a whole number: "1,234". Each page would wait for the first format of Intl, which takes many milliseconds.
 * @param {number} value
 */
export function formatCount(value) {
  return grouped(value.toFixed(0));
}

/**
 * Puts commas between the thousands of a whole number.
 * @param {string} digits
 */
export function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * Formats a number with at most so many decimals: "1,234.5". Without Intl, as {@link formatCount}.
 * @param {number} value
 * @param {number} decimals
 */
export function formatNumber(value, decimals) {
  const [whole = "", part] = String(Number(value.toFixed(decimals))).split(".");
  return grouped(whole) + (part === undefined ? "" : `.${part}`);
}

/**
 * Parses a number as {@link formatNumber} writes it, "1,234.5", or with a decimal comma, "1,5". Returns NaN for any other text.
 * @param {string} text
 * @param {boolean} [isOfDegrees] there are no thousands of them, so a comma is always a decimal comma: "52,516"
 */
export function parseNumber(text, isOfDegrees = false) {
  const typed = text.trim().replace("−", "-");
  if (typed === "") return NaN;
  const hasThousands = !isOfDegrees && /^-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(typed);
  return Number(hasThousands ? typed.replaceAll(",", "") : typed.replace(",", "."));
}

/**
 * Formats with decimal prefixes and three significant figures: "12.4 kB".
 * @param {number} bytes
 */
export function formatBytes(bytes) {
  let value = bytes;
  let prefix = 0;
  while (value >= 999.5 && prefix < 4) {
    value /= 1000;
    prefix += 1;
  }
  const digits = prefix === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${["B", "kB", "MB", "GB", "TB"][prefix]}`;
}

/**
 * Formats milliseconds with three significant figures: "3.12", "41.3", "151".
 * @param {number} ms
 */
export function formatMs(ms) {
  const size = Math.abs(ms);
  return ms.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/**
 * "1 run", "2 runs"
 * @param {number} count
 * @param {string} noun
 */
export function countOf(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * "8 s", "3 min 12 s", "2 h 5 min"
 * @param {number} ms
 */
export function formatDuration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/**
 * Says where a topic is kept: "on disk".
 * @param {string} storage as the server lists it
 */
export function storageInWords(storage) {
  return storage === "disk" ? "on disk" : "in memory";
}

/**
 * Describes a connection's state.
 * @param {import("../transport/types.js").State} state
 * @param {number} now
 */
export function stateInWords(state, now) {
  switch (state.kind) {
    case "connecting":
      return "connecting";
    case "connected":
      return `connected for ${formatDuration(now - state.since)}`;
    case "waiting":
      return `${waitInWords(state, now)}: ${state.reason}`;
    case "paused":
      return state.reason ?? "paused while this page is hidden";
  }
}

/**
 * When it connects again: "reconnecting in 3 s".
 * @param {{ until: number, status: number | null }} state
 * @param {number} now
 */
export function waitInWords({ until, status }, now) {
  const seconds = Math.ceil((until - now) / 1000);
  return `${status === null ? "reconnecting" : "trying again"} ${seconds > 0 ? `in ${seconds} s` : "now"}`;
}
