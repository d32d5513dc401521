/** Cancels a run, once it is sure that this is meant. */
import { ask } from "../ask.js";
import { client, failureInWords } from "../server.js";
import { nameOf, progressInWords } from "./words.js";

/**
 * Returns what happened, in words; null if the run goes on as it is.
 * @param {import("./words.js").RunState} run
 * @returns {Promise<string | null>}
 */
export async function cancel(run) {
  const progress = progressInWords(run);
  const about = `${nameOf(run)}${progress === "" ? "" : `: ${progress}`}. Its work stops for everybody who watches it, and cannot be taken up again.`;
  if (!(await ask({ title: "Cancel this run?", about, yes: "Cancel the run", no: "Let it go on" }))) return null;
  try {
    await client.call("DELETE", `runs/${run.key}`);
    return `${nameOf(run)} is cancelled.`;
  } catch (error) {
    return failureInWords(error);
  }
}
