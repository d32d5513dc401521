/** The outcome of a run: its partial results, its progress and its result. Also cancels a run. */
import { AnemoneError, foreign, words } from "./error.js";
import { Topic } from "./topic.js";

/** @typedef {import("./link.js").Link} Link */
/** @typedef {import("./run.js").Run} Run */

/**
 * Yields all events, until the run is over.
 * @param {Link} link
 * @param {Run} run
 * @param {import("./types.js").ReadOptions} [options]
 */
export async function* events(link, run, options = {}) {
  const topic = new Topic(link, `runs/${encodeURIComponent(await run.key)}`, options);
  yield* topic;
  if (!topic.isEnded) link.check(); // the client was closed before the run was over
}

/**
 * Yields the partial results, until the run is over.
 * @param {Link} link
 * @param {Run} run
 * @param {() => boolean} tells true if progress is told from here
 */
export async function* partials(link, run, tells) {
  for await (const event of events(link, run)) {
    const data = told(event.data);
    if ("partial" in data) yield data.partial;
    else if (tells()) take(link, run, data);
    else outcome(data);
  }
}

/**
 * @param {Link} link
 * @param {Run} run
 */
export async function result(link, run) {
  let last;
  for await (const { data } of events(link, run, { mode: run.onprogress ? undefined : "latest" })) last = take(link, run, told(data)) ?? last;
  // The last event may be no longer retained, but its state is.
  last ??= outcome(await ask(link, run, "GET", "?state"));
  return told(last).result; // what has ended has an outcome
}

/**
 * @param {Link} link
 * @param {Run} run
 */
export async function cancel(link, run) {
  try {
    return await ask(link, run, "DELETE");
  } catch (error) {
    if (/** @type {any} */ (error).code !== "run-ended") throw error;
    return await ask(link, run, "GET", "?state");
  }
}

/**
 * Asks for the state of a run, or cancels it. It may be cancelled twice, so the call is safe without a key, which a page of another origin
 * may not send.
 * @param {Link} link
 * @param {Run} run
 * @param {string} method
 */
async function ask(link, run, method, query = "") {
  const { data } = await link.use("call", "call", method, `runs/${encodeURIComponent(await run.key)}${query}`, undefined, { isSafe: true });
  return told(data);
}

/**
 * Returns an event or a state, if it is one.
 * @param {unknown} data
 * @returns {any}
 */
function told(data) {
  if (typeof data !== "object" || !data) throw foreign("what was said of the run");
  return data;
}

/**
 * Reports the progress, and returns the outcome once there is one.
 * @param {Link} link
 * @param {Run} run
 * @param {any} data
 */
function take(link, run, data) {
  if ("progress" in data) link.tell(/** @type {any} */ ("onprogress"), (run.progress = data), /** @type {any} */ (run));
  return outcome(data);
}

/**
 * @param {any} data an event or a state
 * @returns {{ result: unknown } | undefined}
 */
function outcome({ state, result, problem }) {
  if (state === "cancelled") throw new AnemoneError("run-cancelled", "the run was cancelled");
  if (state === "failed") {
    const code = words(problem?.type).replace("/problems/", "") || "run-failed";
    throw new AnemoneError(code, words(problem?.detail) || "the run has failed", { problem });
  }
  return state === "done" ? { result } : undefined;
}
