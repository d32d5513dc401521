/** Every failure. The README lists the codes of the client's own; all others are the problems of docs/PROTOCOL.md. */
export class AnemoneError extends Error {
  name = "AnemoneError";
  /** @type {number | undefined} the time of the next try, ms since the Unix epoch; unset if this is final */
  retryAt;

  /**
   * @param {string} code
   * @param {string} message
   * @param {import("./types.js").ErrorDetails} [details]
   */
  constructor(code, message, { status, problem, retryMs = 0, cause } = {}) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.problem = problem;
    this.retryMs = retryMs;
  }
}

/**
 * @param {unknown} error
 * @returns {AnemoneError}
 */
export function typed(error) {
  if (error instanceof AnemoneError) return error;
  return new AnemoneError("unreachable", "the server does not answer, or does not allow this page to ask it", { cause: error });
}

/** @param {string} what */
export function foreign(what) {
  return new AnemoneError("protocol", `${what} is not in the protocol of an Anemone server`);
}

/**
 * Describes a refusal: a problem document (RFC 9457), or what something else than an Anemone server has answered.
 * @param {number} status
 * @param {string} text
 * @param {string | null} [retryAfter]
 */
export function refusal(status, text, retryAfter) {
  const problem = parse(text);
  const code = /^\/problems\/([\w-]+)$/.exec(problem?.type)?.[1];
  const message = problem?.detail ?? problem?.title ?? `the answer is ${status}, and not from an Anemone server`;
  // Seconds or a date (RFC 9110 section 10.2.3), and no longer than a timer may be.
  const retryMs = Math.min(2e9, Number(retryAfter) * 1000 || Date.parse(/** @type {any} */ (retryAfter)) - Date.now() || 0);
  return new AnemoneError(code ?? (status < 500 ? "foreign" : "unavailable"), message, { status, problem, retryMs });
}

/**
 * Parses JSON; returns undefined if it is none.
 * @param {string} text
 */
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {}
}
