/** Calls to services. A call is made again only where that is safe. */
import { concat, decode, encode, JSON_TYPE } from "./body.js";
import { REPLY_MAX, tooLong } from "./bound.js";
import { AnemoneError, fill, foreign, misuse, typed, words } from "./error.js";
import { newKey } from "./key.js";
import { isFinal, Multiplexed } from "./mux.js";
import { ANSWER_MS_MAX, Backoff, sleep } from "./time.js";

const TRIES_MAX = 5;
/** The most tries of a call with a key. They take about a minute. */
const TRIES_WITH_KEY_MAX = 16;
/** The longest time from the first try to the last. The caller may set a shorter one. */
const TRIES_MS_MAX = 60_000;
/** The statuses of temporary refusals. */
const BRIEF = /^(408|42[59]|50[234])$/;
/** The codes of failures before anything is sent. */
const UNSENT = /^(token-failed|bad-argument)$/;
/** The paths of topics and runs: a GET reads their events, and a DELETE ignores keys. */
const OF_LOG = /^(topics|runs)\/|^topics\?.*\btopic=/;
/** The fields that a multiplexed request may have. */
const MUX_FIELDS = /^(accept(-language)?|content-type|idempotency-key|if-(none-)?match|last-event-id|prefer)=/;
/** The most characters or bytes of a body. A server takes far more in a message. */
const MUX_LENGTH_MAX = 2 ** 16;
/** The most characters of a path and its fields. With the rest of the line, they are less than the 4 KiB that a server takes. */
const MUX_HEAD_MAX = 4000;

/**
 * @param {import("./link.js").Link} link
 * @param {string} method
 * @param {string} path
 * @param {import("./body.js").Kept} [body]
 * @param {import("./types.js").CallOptions} [options]
 */
export async function call(link, method, path, body, options = {}) {
  return send(link, requestOf(link, method, path, body, options), options);
}

/**
 * Makes a call, with as many tries as are necessary and safe.
 * @param {import("./link.js").Link} link
 * @param {import("./types.js").Request} request
 * @param {import("./types.js").CallOptions} options
 * @returns {Promise<import("./types.js").Reply>}
 */
async function send(link, request, { signal, isSafe: isKnownSafe, triesMs = TRIES_MS_MAX }) {
  const { method, target, fields, payload } = request;
  const isChange = !/^(GET|HEAD|OPTIONS)$/.test(method);
  const isOfTopic = /^topics\b/.test(target);
  const hasKey = "idempotency-key" in fields || (isOfTopic && method === "POST" && /[?&]key=/.test(target));
  // A call with If-Match that was carried out has changed the tag, so its second try would be refused.
  const isSafe = !("if-match" in fields) && (!isChange || hasKey || isKnownSafe);
  const triesMax = hasKey ? TRIES_WITH_KEY_MAX : TRIES_MAX;
  // A multiplexed request to a topic has no fields, and JSON is what it has without.
  const muxFields = isOfTopic ? /^content-type=application\/json$/ : MUX_FIELDS;
  // Others, and long messages, are for HTTP: a message that is too long would end the connection of all.
  const head = target + Object.entries(isOfTopic ? {} : fields).map(([name, value]) => ` ${name}=${encodeURIComponent(value)}`).join("");
  let isForMux = Object.entries(fields).every((field) => muxFields.test(field.join("="))) && head.length <= MUX_HEAD_MAX && (payload?.length ?? 0) <= MUX_LENGTH_MAX;
  // A refused HEAD has no body, which HTTP can tell from what is no answer; a multiplexed GET of a log would start a reader.
  if (method === "HEAD" || (method === "GET" && OF_LOG.test(target))) isForMux = false;
  const backoff = new Backoff(link.options.random);
  const first = Date.now();
  let mayBeDone = false;
  for (let tries = 1; ; tries += 1) {
    const end = await begin(link, signal);
    const begun = Date.now();
    const via = link.transport;
    const isMux = via === "mux" && isForMux;
    const limit = AbortSignal.timeout(ANSWER_MS_MAX);
    const ends = AbortSignal.any([limit, end.signal]);
    let isSent = false;
    try {
      const caller = isMux ? await link.socket() : await link.load("http");
      ends.throwIfAborted();
      isSent = true;
      if (caller instanceof Multiplexed) return await byMux(caller, request, head, ends);
      return await caller.call(link, request, ends);
    } catch (cause) {
      const error = errorOf(cause, link, signal);
      if (!isSent) link.tried(via, begun, error);
      if (!isSent && isMux && (await link.fall(via, error))) continue;
      // Files and the like are for HTTP alone.
      if (isMux && error.code === "unknown-path") {
        isForMux = false;
        continue;
      }
      const { status } = error; // of a refusal
      mayBeDone ||= isSent && !status && isChange && !UNSENT.test(error.code);
      const isBrief = status ? BRIEF.test(`${status}`) : !/^(protocol|bad-argument)$/.test(error.code);
      const waitMs = Math.max(backoff.next(), error.retryMs); // the server's time may be longer than that of a try
      if (!isBrief || tries >= triesMax || Date.now() + waitMs - first > triesMs || (isSent && !isSafe)) {
        throw mayBeDone && isBrief ? new AnemoneError("uncertain", "no answer in time: it may be done", { cause }) : error;
      }
      await sleep(waitMs, end.signal);
    } finally {
      end.abort();
    }
  }
}

/**
 * Returns the error of a call, which is another one if its signal or the client has ended it.
 * @param {any} cause
 * @param {import("./link.js").Link} link
 * @param {AbortSignal | undefined} signal
 */
function errorOf(cause, link, signal) {
  signal?.throwIfAborted();
  link.check();
  return cause?.name === "TimeoutError" ? new AnemoneError("timeout", "no answer in time") : typed(cause, link);
}

/**
 * Waits until the client may call. Makes a controller that aborts when the client is closed, or with the caller's signal. Abort it at the
 * end of the call: otherwise, both remember the call forever.
 * @param {import("./link.js").Link} link
 * @param {AbortSignal | undefined} signal
 */
async function begin(link, signal) {
  await link.ready;
  link.check();
  signal?.throwIfAborted();
  const end = new AbortController();
  // No listener of the client's own signal: Node warns of more than ten.
  const call = { close: () => end.abort() };
  link.others.add(call);
  end.signal.addEventListener("abort", () => link.others.delete(call));
  signal?.addEventListener("abort", () => end.abort(signal.reason), { signal: end.signal });
  return end;
}

/**
 * Makes a call once, and returns the items of its reply as they come.
 * @param {import("./link.js").Link} link
 * @param {string} method
 * @param {string} path
 * @param {import("./body.js").Kept} body
 * @param {import("./types.js").CallOptions} [options]
 */
export async function* items(link, method, path, body, options = {}) {
  const request = requestOf(link, method, path, body, options);
  const { signal } = options;
  const end = await begin(link, signal);
  try {
    yield* (await link.load("http")).items(link, request, end.signal);
  } catch (cause) {
    throw errorOf(cause, link, signal);
  } finally {
    end.abort();
  }
}

/**
 * Makes a request. Throws if no transport could send it.
 * @param {import("./link.js").Link} link
 * @param {string} method
 * @param {string} path
 * @param {import("./body.js").Kept} body
 * @param {import("./types.js").CallOptions} options
 * @returns {import("./types.js").Request}
 */
function requestOf({ base }, method, path, body, options) {
  const { headers, key } = fill(/** @type {any} */ ({ key: null, headers: {}, signal: null, triesMs: 0, isSafe: false }), options);
  try {
    const all = new Headers(headers);
    // What is undefined, or null, has become that word.
    for (const [name, value] of all) if (/^(undefined|null)$/.test(value)) throw misuse(`there is no value for ${name}`);
    const payload = encode(body, all);
    // As a URL writes it, over each transport. It has no fragment, and drops dots at the end: it would be that of something else.
    const { href } = new URL(path.replace(/^\//, "").replaceAll("#", "%23"), base);
    const target = href.slice(base.href.length);
    const isOurs = href.startsWith(base.href) && new URL(target, base).href === href;
    if (!isOurs || /^[^?]*[/\\](\.|%2e){1,2}(\?|$)/i.test(path)) throw misuse(`${path} is not a path of the server`);
    method = method.toUpperCase();
    // Without one, a second try would find nothing, or undo a later change.
    const isKeyed = key ?? (/^(PUT|DELETE)$/.test(method) && !OF_LOG.test(target));
    if (isKeyed) all.set("idempotency-key", isKeyed === true ? newKey() : isKeyed);
    new Request(base.origin, { method, headers: all, body: payload && "" });
    return { method, target, fields: Object.fromEntries(all), payload };
  } catch (cause) {
    throw misuse(/** @type {Error} */ (cause).message);
  }
}

/**
 * @param {import("./mux.js").Multiplexed} socket
 * @param {import("./types.js").Request} request
 * @param {string} target with its fields
 * @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").Reply>}
 */
function byMux(socket, { method, payload }, target, signal) {
  return new Promise((resolve, reject) => {
    /** @type {(string | Uint8Array)[]} */
    const parts = [];
    /** @type {Record<string, string>} */
    const found = {};
    let isStream = false;
    let length = 0;
    const stop = () => {
      if (cancel()) socket.probe();
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true }); // or Node 20 keeps it, and the signal
    /** @type {import("./types.js").TakeReply} */
    const take = (reply) => {
      if (reply instanceof Error) return reject(reply);
      if (reply.payload.length) parts.push(reply.payload);
      if ((length += reply.payload.length) > REPLY_MAX) return cancel(), reject(tooLong());
      try {
        for (const word of reply.words) {
          const [, name, value = ""] = /^([^=]+)=(.*)/.exec(word) ?? [];
          if (name) found[name] = decodeURIComponent(value);
        }
        if (!isFinal(reply.status)) return void (isStream ||= !found["content-type"]);
        const type = found["content-type"] ?? JSON_TYPE;
        const data = isStream ? parts.map((part) => decode([part], JSON_TYPE)) : decode(parts, type);
        resolve({ status: reply.status, data, fields: found });
      } catch {
        reject(foreign("the reply"));
      }
    };
    const cancel = socket.send(method, target, take, (head) => {
      if (payload === undefined) return head;
      return typeof payload === "string" ? `${head}\n${payload}` : concat([`${head}\n`, payload]);
    });
  });
}

/**
 * Publishes an event, once, with as many tries as necessary within a minute or so.
 * @param {import("./link.js").Link} link
 * @param {string} name
 * @param {import("./body.js").Kept} data
 * @param {import("./types.js").CallOptions} [options]
 */
export async function publish(link, name, data, { key, ...options } = {}) {
  const path = `topics/${encodeURIComponent(name)}?key=${encodeURIComponent(!key || key === true ? newKey() : key)}`;
  const { data: found } = await call(link, "POST", path, data, options);
  // A page that asks for a login answers 200, too.
  if (!words(found?.position)) throw foreign("the reply");
  return found;
}

/**
 * Starts a run, and returns its key.
 * @param {import("./link.js").Link} link
 * @param {string} path
 * @param {import("./body.js").Kept} body
 * @param {import("./types.js").CallOptions} [options]
 */
export async function start(link, path, body, options = {}) {
  const request = requestOf(link, "POST", path, body, { ...options, key: options.key ?? true });
  request.fields.prefer = "respond-async";
  const { status, data } = await send(link, request, options);
  const found = words(data?.key);
  if (status !== 202 || !found) throw foreign("the reply");
  return found;
}
