/** What node.js and chromium.js share: the messages, and how tests/interop/run writes a case. */

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {string} path
 * @property {"none" | "message" | "context"} compression
 * @property {["text" | "binary", number][]} messages Kind and bytes.
 * @property {boolean} fragmented
 * @property {string | null} command Sent after the messages.
 * @property {string | null} bad Done after the command.
 * @property {number} [pid] The server's process.
 * @property {{ by: "client" | "server", code: number | null, reason?: string }} close
 * @property {{ code: number, reason: string }} [verdict] What the server is to say of it.
 */

/**
 * Goes into a page as well, and so needs nothing from around it.
 * @param {"text" | "binary"} kind
 * @param {number} size
 */
export function payload(kind, size) {
  if (kind === "text") {
    return new TextEncoder().encode("aß€🌊".repeat(Math.floor(size / 10)) + "x".repeat(size % 10));
  }
  const noise = new Uint8Array(65521);
  let x = 1;
  for (let at = 0; at < noise.length; at += 1) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    noise[at] = x >>> 24;
  }
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += noise.length) bytes.set(noise.subarray(0, size - at), at);
  return bytes;
}
