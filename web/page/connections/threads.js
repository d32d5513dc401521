/** The table of the threads: how busy each is, and how many events and bytes it handles in a second. */
import { find, setText } from "../element.js";
import { formatBytes, formatCount } from "../words.js";
import { Table } from "./table.js";
import { busyShare, perSecond } from "./words.js";

/** @typedef {import("./words.js").Thread} Thread */

const table = new Table("#threads", "#thread");
const memory = find(document, "#memory", HTMLElement);

/** The last answer, by thread. @type {Map<number, { time: number, thread: Thread }>} */
const before = new Map();

/** @param {{ time: number, threads: readonly Thread[], held_bytes: number, held_bytes_max: number }} told */
export function showThreads({ time, threads, held_bytes, held_bytes_max }) {
  setText(memory, `${formatBytes(held_bytes)} are held for all clients; the limit is ${formatBytes(held_bytes_max)}.`);
  table.show(threads, ({ thread }) => String(thread), (row, thread) => {
    setText(row.field("thread"), String(thread.thread));
    if (thread.silent) {
      before.delete(thread.thread);
      return setText(row.field("busy"), "does not answer");
    }
    const after = { time, thread };
    fill(row, before.get(thread.thread), after);
    before.set(thread.thread, after);
  });
}

/**
 * @param {import("./table.js").Row} row
 * @param {{ time: number, thread: Thread } | undefined} earlier
 * @param {{ time: number, thread: Thread }} after
 */
function fill({ element, field }, earlier, after) {
  const { thread } = after;
  const bar = find(element, "progress", HTMLProgressElement);
  const busy = busyShare(earlier, after);
  bar.setAttribute("aria-label", `Time that thread ${thread.thread} is busy`);
  bar.value = busy ?? 0;
  setText(field("busy"), busy === null ? "…" : `${Math.round(busy * 100)} %`);
  const http = thread.http_connections === 0 ? "" : ` and ${formatCount(thread.http_connections)} of HTTP`;
  setText(field("connections"), `${formatCount(thread.connections)}${http}`);
  setText(field("waiting"), formatCount(thread.waiting));
  setText(field("events"), rate(perSecond(earlier, after, "events"), formatCount));
  setText(field("received"), rate(perSecond(earlier, after, "received_bytes"), formatBytes));
  setText(field("sent"), rate(perSecond(earlier, after, "sent_bytes"), formatBytes));
}

/**
 * @param {number | null} value
 * @param {(value: number) => string} format
 */
function rate(value, format) {
  return value === null ? "…" : `${format(value)}/s`;
}
