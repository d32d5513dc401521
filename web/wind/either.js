/**
 * WebSocket, or long polling if no WebSocket opens and HTTP works, for example behind a proxy that does not forward
 * handshakes. For a reader that does not care about the transport.
 */
import * as longPoll from "../transport/long-poll.js";
import * as websocket from "../transport/websocket.js";

/** @type {import("../transport/types.js").Read} */
export async function read(topicUrl, options) {
  const { signal, onState } = options;
  const attempt = new AbortController();
  const end = () => attempt.abort();
  signal.addEventListener("abort", end);
  const after = await websocket.read(topicUrl, {
    ...options,
    signal: attempt.signal,
    onState: (state) => (state.kind === "waiting" && state.reason === websocket.BLOCKED ? end() : onState(state)),
  });
  signal.removeEventListener("abort", end);
  return signal.aborted ? after : await longPoll.read(topicUrl, { ...options, after });
}
