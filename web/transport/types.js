/**
 * The interface of every transport. Types only.
 *
 * Each transport file has one export, `read`, of type `Read`. It reads a topic from a position until
 * its signal aborts, reconnects by itself, and returns the position that it reached, so that reading can continue from
 * there later, over the same transport or another.
 *
 * @typedef {object} TopicEvent
 * @property {string} position the event's own position, `EPOCH-OFFSET`
 * @property {number} time when the server appended it, its clock, ms since the Unix epoch
 * @property {unknown} data what was published
 * @property {number} received t4: when the message or the whole reply was here, this clock, before parsing
 *
 * @typedef {object} Gap
 * @property {string} reason `retention`, `damaged` or `epoch` as told by the server; `unannounced` when found here
 * @property {string} after the position that reading had got to
 * @property {number | null} missed how many events are missing, null when nobody can know
 * @property {string} resume the position that reading goes on from
 *
 * @typedef {{ kind: "connecting" }
 *   | { kind: "connected", since: number }
 *   | { kind: "waiting", until: number, reason: string, status: number | null }
 *   | { kind: "paused" }} State `status` is the HTTP status of a refusal, null when there was no answer
 *
 * @typedef {object} ReadOptions
 * @property {string} [after] position to read on from; without it, where the server begins
 * @property {AbortSignal} signal ends the reading
 * @property {(event: TopicEvent) => void} onEvent
 * @property {(gap: Gap) => void} onGap
 * @property {(state: State) => void} onState
 * @property {() => void} [onRepeat] an event came twice and was dropped
 * @property {(bytes: number) => void} [onPayload] payload bytes of a WebSocket message
 * @property {() => void} [onRequest] a request is about to leave
 * @property {number} [waitSeconds] long polling: how long the server may hold a request
 * @property {number} [pauseMs] polling: how long to wait after each reply
 * @property {number} [quietMs] WebSocket: silence after which the connection is opened anew
 * @property {import("./environment.js").Environment} [environment]
 *
 * @typedef {(topicUrl: string, options: ReadOptions) => Promise<string | undefined>} Read
 */
export {};
