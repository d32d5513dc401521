/**
 * One connection for all tabs of a browser. The client with the lock leads: it reads for all others, which ask it over a
 * `BroadcastChannel`. To the others, the leader is a transport. When it has gone, they continue from their positions with the next leader,
 * or by themselves.
 */
import { AnemoneError } from "./error.js";
import { newKey } from "./key.js";
import { parsePosition } from "./position.js";
import { now } from "./time.js";
import { Topic } from "./topic.js";

/** The silence after which a tab counts as gone. The timers of a hidden tab may run only once a minute. */
const GONE_MS = 180_000;
const PING_MS = 1000;
/** The most pings without an answer from the tab that leads. After them, it counts as frozen. */
const PINGS_MAX = 3;
/** The most items that are sent before the other tab has reported that it took them. It may be frozen, too. */
const SENT_MAX = 1000;

/**
 * Reads through the tab that leads.
 * @param {import("./types.js").Reading} reading
 */
export async function read({ link, path, options, signal, take, wait }) {
  const id = `${link.base} ${newKey()}`;
  const channel = new BroadcastChannel(id);
  let pings = 0;
  let taken = 0;
  const ping = () => channel.postMessage({ taken });
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  link.share?.postMessage({ id, path, options: options() });
  try {
    await new Promise((_, reject) => {
      // To ask it once more would take as long again.
      const leave = (/** @type {AnemoneError} */ error) => link.fall("tabs", error).then(() => reject(error));
      timer = setInterval(() => {
        if (pings++ === PINGS_MAX) leave(new AnemoneError("silent", "the tab that reads for this one does not answer"));
        ping();
      }, PING_MS);
      channel.onmessage = ({ data: { item, error, retryAt } }) => {
        pings = 0;
        if (item?.time !== undefined && ++taken % (SENT_MAX / 4) === 0) ping(); // timers may sleep
        const told = error && Object.assign(new AnemoneError("", error.message), error);
        if (item) take(item, now());
        else if (retryAt) wait(told);
        else if (told) reject(told);
        else reject(new AnemoneError("lost", "the tab that has read for this one is gone"));
      };
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  } finally {
    clearInterval(timer);
    channel.postMessage({ isOver: true });
    channel.close();
  }
}

/**
 * Reads for another tab, until that tab ends it or is silent for too long.
 * @param {import("./link.js").Link} link
 * @param {{ id: string, path: string, options: import("./types.js").ReadOptions }} request
 */
export function serve(link, { id, path, options }) {
  const channel = new BroadcastChannel(id);
  const topic = new Topic(link, path, { ...options, isForOthers: true });
  let sent = 0;
  let taken = 0;
  /** @type {string | undefined} the position of the last event that was sent */
  let place;
  let say = (/** @type {import("./types.js").Item} */ item) => channel.postMessage({ item });
  const sayPlace = () => {
    const position = place ?? topic.position;
    say(parsePosition(position) ? { position } : {});
  };
  const fail = (/** @type {AnemoneError} */ error) => channel.postMessage({ retryAt: error.retryAt, error: { ...error, message: error.message } });
  const end = () => topic.close();
  let timer = setTimeout(end, GONE_MS);
  /** @type {number | undefined} while this one waits for the server, the time of the next try */
  let retryAt;
  topic.onopen = () => {
    retryAt = 0;
    queueMicrotask(sayPlace); // the beginning is known right after the opening
  };
  topic.onerror = (error) => {
    retryAt = error.retryAt;
    if (retryAt) fail(error);
  };
  // After the first event, a gap waits for the event that follows it, since others may be waiting before.
  topic.ongap = (gap) => place ?? say({ gap });
  /** @type {import("./types.js").Callbacks["onmessage"]} */
  const pass = ({ position, time, data, skipped, gaps = [] }) => {
    for (const gap of gaps) place && say({ gap });
    if (skipped) say({ skipped });
    say({ position: (place = position), time, data });
    if (++sent - taken >= SENT_MAX) topic.onmessage = undefined; // the topic stops reading once too much waits in it
  };
  topic.onmessage = pass;
  topic.onclose = (error) => {
    clearTimeout(timer);
    if (error) fail(error);
    else if (topic.isEnded) say({ end: { reason: "ended" } });
    else channel.postMessage({}); // gone
    channel.close();
    say = () => {};
  };
  channel.onmessage = ({ data }) => {
    if (data.isOver) return end();
    ({ taken } = data);
    if (!(sent - taken >= SENT_MAX)) topic.onmessage = pass; // other versions do not count
    clearTimeout(timer);
    timer = setTimeout(end, GONE_MS);
    if (retryAt) channel.postMessage({ retryAt }); // still here
    else sayPlace();
  };
}
