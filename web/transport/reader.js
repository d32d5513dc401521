/** Reads with the client, and counts what it sends and receives. */
import { connect } from "../client.js";
import { browser } from "./environment.js";
import { requestPage, split } from "./page.js";
import { refusalStatus } from "./refusal.js";

/** The pause after a refusal, since asking again sooner cannot help. */
const REFUSED_RETRY_MS = 5000;
const ANSWER_MS_MAX = 10_000;

/** The reason for a retry if the WebSocket does not open although plain HTTP works. */
const BLOCKED =
  "HTTP works but the WebSocket does not open; something on the way may block it, as a proxy that is not told to pass it on";

const encoder = new TextEncoder();

/**
 * @typedef {object} Carrier
 * @property {(network: { fetch: typeof fetch, WebSocket: any }) => typeof fetch} fetch
 * @property {number} [quietMs] how long it may be silent
 */

/**
 * Returns a `Read` over one transport, or over the best of several, or without one over the best of all that works.
 * @param {import("../anemone-client/types.js").TransportName | import("../anemone-client/types.js").TransportName[]} [transport]
 * @param {Carrier} [carrier] what carries the stream in place of HTTP
 * @returns {import("./types.js").Read}
 */
export function reader(transport, carrier) {
  return async (topicUrl, options) => {
    const { signal, environment = browser } = options;
    const { base, path } = split(topicUrl);
    const network = counting(options, environment);
    const client = connect(base, {
      ...network,
      ...(carrier && { fetch: carrier.fetch(network), quietMs: carrier.quietMs }),
      ...(transport && { transports: [transport].flat() }),
      waitSeconds: options.waitSeconds ?? 25,
      pollMs: options.pauseMs ?? 150,
    });
    let { after } = options;
    options.onState({ kind: "connecting" });
    while (!signal.aborted) {
      const { position, refusal } = await readOnce(client.read(path, { after }), topicUrl, options, environment);
      after = position;
      if (signal.aborted || !refusal) break;
      // What is refused may be allowed later, and a topic that is not there may come.
      options.onState({ kind: "waiting", until: environment.now() + REFUSED_RETRY_MS, reason: refusal.message, status: refusalStatus(refusal) });
      await environment.sleep(REFUSED_RETRY_MS, signal);
    }
    client.close();
    return after;
  };
}

/**
 * Reads until the signal aborts, or the topic ends.
 * @param {import("../anemone-client/topic.js").Topic} topic
 * @param {string} topicUrl
 * @param {import("./types.js").ReadOptions} options
 * @param {import("./environment.js").Environment} environment
 * @returns {Promise<{ position: string | undefined, refusal: import("../client.js").AnemoneError | undefined }>}
 */
function readOnce(topic, topicUrl, options, environment) {
  const { signal, onState, onGap, onEvent, onRepeat } = options;
  let repeats = 0;
  let isOpen = false;
  return new Promise((resolve) => {
    const end = () => topic.close();
    signal.addEventListener("abort", end);
    topic.onopen = () => {
      isOpen = true;
      onState({ kind: "connected", since: environment.now() });
    };
    topic.ongap = onGap;
    topic.onmessage = (event) => {
      for (; repeats < topic.repeats; repeats += 1) onRepeat?.();
      onEvent({ position: event.position, time: event.time, data: event.data, received: event.received });
    };
    topic.onerror = async (error) => {
      const { code, message, retryAt } = error;
      if (retryAt === undefined) return; // told at the end
      isOpen = false;
      if (retryAt <= Date.now()) return onState({ kind: "connecting" }); // over another transport, or anew
      const { reason, status } = code === "blocked" ? await explain(topicUrl, signal, environment) : { reason: message, status: refusalStatus(error) };
      if (!isOpen && !signal.aborted) onState({ kind: "waiting", until: retryAt, reason, status });
    };
    topic.onclose = (refusal) => {
      signal.removeEventListener("abort", end);
      resolve({ position: topic.position, refusal });
    };
  });
}

/**
 * Finds out why a WebSocket did not open, which browsers do not report, from the same URL over plain HTTP.
 * @param {string} topicUrl
 * @param {AbortSignal} signal
 * @param {import("./environment.js").Environment} environment
 */
async function explain(topicUrl, signal, environment) {
  try {
    await requestPage(`${topicUrl}?after=latest`, { signal, timeoutMs: ANSWER_MS_MAX, environment });
    return { reason: BLOCKED, status: null };
  } catch (error) {
    const refusal = /** @type {import("../client.js").AnemoneError} */ (error);
    return { reason: refusal.message, status: refusalStatus(refusal) };
  }
}

/**
 * Returns the network, which tells of requests, and of the bytes of bodies and messages as they come: the browser itself tells those of
 * a stream only at its end.
 * @param {import("./types.js").ReadOptions} options
 * @param {import("./environment.js").Environment} environment
 */
function counting({ onRequest, onPayload }, { fetch, WebSocket }) {
  // To count the bytes of text costs as much as to read it.
  if (!onPayload) return { fetch, WebSocket };
  return {
    /** @type {typeof fetch} */
    fetch: async (input, init) => {
      onRequest?.();
      return counted(await fetch(input, init), onPayload);
    },
    WebSocket: class extends WebSocket {
      /**
       * @param {string} url
       * @param {string} protocol
       */
      constructor(url, protocol) {
        onRequest?.();
        super(url, protocol);
        this.addEventListener("message", ({ data }) => onPayload?.(typeof data === "string" ? encoder.encode(data).length : data.byteLength));
      }
    },
  };
}

/**
 * Returns a reply whose body counts its bytes as they are taken.
 * @param {Response} reply
 * @param {(bytes: number) => void} count
 */
function counted(reply, count) {
  const { body } = reply;
  const getReader = body?.getReader.bind(body);
  if (body && getReader) {
    body.getReader = /** @type {any} */ (() => {
      const reader = getReader();
      const read = reader.read.bind(reader);
      reader.read = async () => {
        const part = await read();
        if (part.value) count(part.value.byteLength);
        return part;
      };
      return reader;
    });
  }
  return reply;
}
