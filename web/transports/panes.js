/**
 * The transports on this page: all that a browser has. Two have the parameters of a published comparison: "WindComm" (Pimentel and
 * Nickerson, 2012) held a long poll for 300 ms and polled 150 ms after each reply.
 *
 * @typedef {"websocket" | "plain-websocket" | "sse" | "ndjson" | "forever-frame" | "long-polling" | "polling"} PaneName
 *
 * @typedef {object} About
 * @property {PaneName} name
 * @property {string} title
 * @property {string} how
 * @property {boolean} [isStream] over HTTP/1.1, it holds a connection for as long as it lasts
 * @property {boolean} [isSocket]
 * @property {string} [onRequest] it begins when somebody asks for it, and why
 */

export const LONG_POLL_SECONDS = 0.3;
export const POLL_PAUSE_MS = 150;

/** @type {readonly About[]} */
export const PANES = [
  { name: "websocket", title: "WebSocket", how: "multiplexed: one connection for many requests; each event as it comes", isSocket: true },
  { name: "plain-websocket", title: "Plain WebSocket", how: "a connection of its own at the topic's URL, with positions", isSocket: true },
  { name: "sse", title: "SSE", how: "server-sent events: one reply without an end, as an EventSource reads it", isStream: true },
  { name: "ndjson", title: "Lines of JSON", how: "one reply without an end, an object in each line", isStream: true },
  {
    name: "forever-frame",
    title: "Forever-frame",
    how: "a hidden frame that never finishes loading; its scripts run where this page draws",
    isStream: true,
    onRequest: "begins by hand: while it lasts, the browser shows this page as loading",
  },
  { name: "long-polling", title: "Long polling", how: "the server holds each request for up to 300 ms" },
  { name: "polling", title: "Polling", how: "asks again 150 ms after each reply" },
];
