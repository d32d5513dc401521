/**
 * Returns the HTTP status of the server's refusal; null if the server has not answered. An answer of something in front of it, as of a
 * proxy that does not reach it, is none.
 * @param {Pick<import("../client.js").AnemoneError, "code" | "status">} error
 */
export function refusalStatus({ code, status }) {
  return code === "unavailable" ? null : (status ?? null);
}
