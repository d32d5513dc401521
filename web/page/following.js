/** The state of a reading, as the pages tell it. */
import { now } from "../client.js";

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
