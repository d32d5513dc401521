/** Polling: requests the new events, and again after a fixed time from the reply. */
import { Backoff } from "./backoff.js";
import { browser } from "./environment.js";
import { deliverPage, pageUrl, requestPage, trouble } from "./page.js";
import { Sequence } from "./sequence.js";

const ANSWER_MS_MAX = 10_000;

/** @type {import("./types.js").Read} */
export async function read(topicUrl, options) {
  const { signal, pauseMs = 150, environment = browser } = options;
  const sequence = new Sequence(options.after);
  const backoff = new Backoff(environment.random);
  let connected = false;
  options.onState({ kind: "connecting" });
  while (!signal.aborted) {
    try {
      options.onRequest?.();
      const url = pageUrl(topicUrl, sequence.position);
      const { page, received } = await requestPage(url, { signal, timeoutMs: ANSWER_MS_MAX, environment });
      if (signal.aborted) break;
      if (!connected) options.onState({ kind: "connected", since: received });
      connected = true;
      backoff.reset();
      deliverPage(page, received, sequence, options);
      await environment.sleep(pauseMs, signal);
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
