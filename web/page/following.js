/** The state of a reading, as the pages show it. */
import { now } from "../client.js";
import { refusalStatus } from "../transport/refusal.js";
import { find } from "./element.js";
import { stateInWords, waitInWords } from "./words.js";

/**
 * Reports the state of a reading each time that it changes.
 * @param {import("../anemone-client/topic.js").Topic} topic
 * @param {(state: import("../transport/types.js").State) => void} onState
 */
export function tellState(topic, onState) {
  topic.onopen = () => onState({ kind: "connected", since: now() });
  topic.onerror = (error) => {
    // Without another try it is the end, which `onclose` tells.
    if (error.retryAt !== undefined) onState(waitingOf(error, error.retryAt));
  };
}

/**
 * Returns the state after an error.
 * @param {import("../client.js").AnemoneError} error
 * @param {number} until the time of the next try, ms since the Unix epoch
 * @returns {import("../transport/types.js").State}
 */
export function waitingOf(error, until) {
  return { kind: "waiting", until, reason: error.message, status: refusalStatus(error) };
}

/**
 * Shows or hides the notice that the server cannot be reached. While the page connects again, the notice stays. Returns the state in words
 * that do not repeat the notice.
 * @param {import("../transport/types.js").State} state
 */
export function showReached(state) {
  const isGone = state.kind === "waiting" && state.status === null;
  if (state.kind !== "connecting") find(document, "#notice-no-server", HTMLElement).hidden = !isGone;
  return isGone ? waitInWords(state, now()) : stateInWords(state, now());
}
