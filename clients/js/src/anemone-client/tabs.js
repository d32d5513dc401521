/**
 * One connection for all tabs of a browser. The client with the lock leads: it reads for all others, which ask it
 * over a `BroadcastChannel`. To them it is a transport like the others: when it goes, they continue from their
 * positions with the next leader, or by themselves.
 */
import { AnemoneError } from "./error.js";
import { newKey } from "./link.js";
import { parsePosition } from "./position.js";
import { now } from "./time.js";
import { Topic } from "./topic.js";

/** A hidden tab's timers may run only once a minute. */
const GONE_MS = 180_000;
/** The tab that leads answers each ping before the next, or it may stand still. */
const PING_MS = 5000;

/**
 * Reads over the tab that leads.
 * @param {import("./types.js").Reading} reading
 */
export async function read({ link, path, options, signal, take, wait }) {
  const id = `${link.base} ${newKey()}`;
  const channel = new BroadcastChannel(id);
  let isAnswered = true;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let pings;
  link.share?.postMessage({ id, path, options: options() });
  try {
    await new Promise((_, reject) => {
      pings = setInterval(() => {
        if (!isAnswered) reject(new AnemoneError("silent", "the tab that reads for this one does not answer"));
        isAnswered = false;
        channel.postMessage({});
      }, PING_MS);
      channel.onmessage = ({ data: { item, error, retryAt } }) => {
        isAnswered = true;
        const told = error && Object.assign(new AnemoneError(error.code, error.message, error), { retryAt });
        if (item) take(item, now());
        else if (retryAt) wait(told);
        else if (told) reject(told);
        else reject(new AnemoneError("lost", "the tab that has read for this one is gone"));
      };
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  } finally {
    clearInterval(pings);
    channel.postMessage({ isOver: true });
    channel.close();
  }
}

/**
 * Reads for another tab, until that says that it is over, or is silent for too long.
 * @param {import("./link.js").Link} link
 * @param {{ id: string, path: string, options: import("./types.js").ReadOptions }} request
 */
export function serve(link, { id, path, options }) {
  const channel = new BroadcastChannel(id);
  const topic = new Topic(link, path, { ...options, isForOthers: true });
  let say = (/** @type {import("./types.js").Item} */ item) => channel.postMessage({ item });
  const sayPosition = () => say(parsePosition(topic.position ?? "") ? { position: topic.position } : {});
  const fail = (/** @type {AnemoneError} */ error) => channel.postMessage({ retryAt: error.retryAt, error: { ...error, message: error.message } });
  const end = () => topic.close();
  let timer = setTimeout(end, GONE_MS);
  /** @type {number | undefined} while this one waits for the server, the time of the next try */
  let retryAt;
  topic.onopen = () => {
    retryAt = 0;
    queueMicrotask(sayPosition); // the beginning is known right after the opening
  };
  topic.onerror = (error) => {
    retryAt = error.retryAt;
    if (retryAt) fail(error);
  };
  topic.ongap = (gap) => say({ gap });
  topic.onmessage = ({ position, time, data, skipped }) => {
    if (skipped) say({ skipped });
    say({ position, time, data });
  };
  topic.onclose = (error) => {
    clearTimeout(timer);
    if (error) fail(error);
    else if (topic.isEnded) say({ end: { reason: "ended" } });
    else channel.postMessage({}); // gone
    channel.close();
    say = () => {};
  };
  channel.onmessage = ({ data: { isOver } }) => {
    if (isOver) return end();
    clearTimeout(timer);
    timer = setTimeout(end, GONE_MS);
    if (retryAt) channel.postMessage({ retryAt }); // still here
    else sayPosition();
  };
}
