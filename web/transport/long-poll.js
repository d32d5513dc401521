/** Long polling: sends a request that the server holds until there are events, and the next one at once. */
import { Backoff } from "./backoff.js";
import { browser } from "./environment.js";
import { deliverPage, pageUrl, requestPage, trouble } from "./page.js";
import { Sequence } from "./sequence.js";

/** The time beyond the requested wait after which the connection counts as dead. */
const GRACE_MS = 10_000;

/** @type {import("./types.js").Read} */
export async function read(topicUrl, options) {
  const { signal, waitSeconds = 25, environment = browser } = options;
  const timeoutMs = waitSeconds * 1000 + GRACE_MS;
  const sequence = new Sequence(options.after);
  const backoff = new Backoff(environment.random);
  let connected = false;
  options.onState({ kind: "connecting" });
  while (!signal.aborted) {
    try {
      options.onRequest?.();
      // The first request after a failure does not wait, so that a success is known at once.
      const url = pageUrl(topicUrl, sequence.position, connected ? waitSeconds : 0);
      const { page, received } = await requestPage(url, { signal, timeoutMs, environment });
      if (signal.aborted) break;
      if (!connected) options.onState({ kind: "connected", since: received });
      connected = true;
      backoff.reset();
      deliverPage(page, received, sequence, options);
    } catch (error) {
      if (signal.aborted) break;
      connected = false;
      const { reason, status, waitMs } = trouble(error, backoff);
      options.onState({ kind: "waiting", until: environment.now() + waitMs, reason, status });
      await environment.sleep(waitMs, signal);
      if (!signal.aborted) options.onState({ kind: "connecting" });
    }
  }
  return sequence.position;
}
