/** Cancels a run, if the user confirms it. */
import { AnemoneError } from "../../client.js";
import { ask } from "../ask.js";
import { patience } from "../sending.js";
import { client, failureInWords } from "../server.js";
import { nameOf } from "./words.js";

/**
 * Returns the outcome in a sentence; null if the user does not confirm.
 * @param {import("./words.js").RunState} run
 * @returns {Promise<string | null>}
 */
export async function cancel(run) {
  const about = `${nameOf(run)}. Its work stops for everybody who watches it, and cannot be taken up again.`;
  if (!(await ask({ title: "Cancel this run?", about, yes: "Cancel the run", no: "Let it go on" }))) return null;
  try {
    // Only a call with a key is made again after it was cut.
    await client.call("DELETE", `runs/${run.key}`, undefined, { key: true, ...patience() });
  } catch (error) {
    if (!(await isCancelled(run, error))) return failureInWords(error);
  }
  return `${nameOf(run)} is cancelled.`;
}

/**
 * Returns true if the run has ended because it was cancelled, by an earlier try or by somebody else.
 * @param {import("./words.js").RunState} run
 * @param {unknown} error
 */
async function isCancelled(run, error) {
  if (!(error instanceof AnemoneError) || error.code !== "run-ended") return false;
  const state = await client.call("GET", `runs/${run.key}?state`, undefined, patience()).catch(() => null);
  return /** @type {{ state?: unknown } | undefined} */ (state?.data)?.state === "cancelled";
}
