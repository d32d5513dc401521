/** The state of a reading, as the pages tell it. */
import { now } from "../client.js";
import { find } from "./element.js";
import { stateInWords, waitInWords } from "./words.js";

/**
 * Tells the state of a reading each time that it changes.
 * @param {import("../anemone-client/topic.js").Topic} topic
 * @param {(state: import("../transport/types.js").State) => void} onState
 */
export function tellState(topic, onState) {
  topic.onopen = () => onState({ kind: "connected", since: now() });
  topic.onerror = ({ retryAt, message, status = null }) => {
    // Without another try it is the end, which `onclose` tells.
    if (retryAt !== undefined) onState({ kind: "waiting", until: retryAt, reason: message, status });
  };
}

/**
 * Shows the notice that the server cannot be reached, while that is so; returns the state in words, which say no more than the notice.
 * @param {import("../transport/types.js").State} state
 */
export function showReached(state) {
  const isGone = state.kind === "waiting" && state.status === null;
  find(document, "#notice-no-server", HTMLElement).hidden = !isGone;
  return isGone ? waitInWords(state, now()) : stateInWords(state, now());
}
