/** The parts of a box whose text is sent to the server. */

/** A key under which the same thing may be sent again, and is carried out once. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {string} text */
export function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Calls `send` on Ctrl+Enter, or Command+Enter.
 * @param {HTMLElement} box
 * @param {() => unknown} send
 */
export function sendOnEnter(box, send) {
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send();
  });
}
