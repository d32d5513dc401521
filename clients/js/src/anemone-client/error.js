/** Every failure. The README lists the codes of the client's own; all others are the problems of docs/PROTOCOL.md. */
export class AnemoneError extends Error {
  name = "AnemoneError";
  /** @type {number | undefined} the time of the next try, ms since the Unix epoch; unset if this is final */
  retryAt;

  /**
   * @param {string} code
   * @param {string} [message]
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

/** @param {string} message */
export function misuse(message) {
  return new AnemoneError("bad-argument", message);
}

/**
 * Returns the options, with the defaults of those that are not given. Throws for an unknown option.
 * @template {object} Options
 * @param {Options} defaults
 * @param {Partial<Options>} [options]
 */
export function fill(defaults, options) {
  for (const name in options) {
    const value = /** @type {any} */ (options[name] ?? defaults[name]);
    if (!(name in defaults) || (typeof defaults[name] === "number" && !(typeof value === "number" && value >= 0))) throw misuse(`${name} is no option, or no number from 0`);
    defaults[name] = value;
  }
  return defaults;
}

/**
 * @param {any} cause
 * @param {import("./link.js").Link} link
 * @returns {AnemoneError}
 */
export function typed(cause, { base }) {
  if (cause instanceof AnemoneError) return cause;
  const why = globalThis.location ? "or does not allow this page" : (cause?.cause?.code ?? cause);
  return new AnemoneError("unreachable", `the server does not answer, ${why}: ${base.origin}`, { cause });
}

/** @param {string} what */
export function foreign(what) {
  return new AnemoneError("protocol", `${what} is not in the protocol of an Anemone server`);
}

/**
 * Makes the error for a refusal: of a problem document (RFC 9457), or of any answer that is not an Anemone server's.
 * @param {number} status
 * @param {string} text
 * @param {unknown} [retryAfter] seconds
 */
export function refusal(status, text, retryAfter) {
  const problem = parse(text);
  const code = /^\/problems\/([\w-]+)$/.exec(words(problem?.type))?.[1];
  const message = words(problem?.detail) || words(problem?.title) || foreign(`the answer ${status}`).message;
  const place = words(problem?.pointer) && ` (at ${problem.pointer})`;
  const retryMs = Number(retryAfter) * 1000 || 0;
  return new AnemoneError(code ?? (status < 500 ? "foreign" : "unavailable"), message + place, { status, problem, retryMs });
}

/** @param {unknown} value of a document, which may be anything */
export const words = (value) => (typeof value === "string" ? value : "");

/**
 * Parses JSON; returns undefined if the text is not JSON.
 * @param {string} text
 */
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {}
}
