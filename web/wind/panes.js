/**
 * The three transports on this page, with the parameters of a published comparison:
 * "WindComm" (Pimentel and Nickerson, 2012) held a long poll for 300 ms and polled 150 ms after each reply.
 *
 * @typedef {"websocket" | "long-polling" | "polling"} PaneName
 */

export const LONG_POLL_SECONDS = 0.3;
export const POLL_PAUSE_MS = 150;

/** @type {readonly { name: PaneName, title: string, how: string }[]} */
export const PANES = [
  { name: "websocket", title: "WebSocket", how: "one connection; the server sends each event as it comes" },
  { name: "long-polling", title: "Long polling", how: "the server holds each request for up to 300 ms" },
  { name: "polling", title: "Polling", how: "asks again 150 ms after each reply" },
];
