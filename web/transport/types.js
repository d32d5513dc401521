/**
 * What the pages read with. Types only.
 *
 * A `Read` reads a topic from a position until its signal aborts, and returns the position that it reached, so that
 * reading can continue from there later, over the same transport or another.
 *
 * @typedef {Omit<import("../anemone-client/types.js").TopicEvent, "topic">} TopicEvent
 * @typedef {import("../anemone-client/types.js").Gap} Gap
 *
 * @typedef {{ kind: "connecting" }
 *   | { kind: "connected", since: number }
 *   | { kind: "waiting", until: number, reason: string, status: number | null }
 *   | { kind: "paused", reason?: string }} State `status` is that of the server's refusal, null when it did not answer
 *
 * @typedef {object} ReadOptions
 * @property {string} [after] position to read on from; without it, where the server begins
 * @property {AbortSignal} signal ends the reading
 * @property {(event: TopicEvent) => void} onEvent
 * @property {(gap: Gap) => void} onGap
 * @property {(state: State) => void} onState
 * @property {() => void} [onRepeat] an event came twice and was dropped
 * @property {(bytes: number) => void} [onPayload] bytes of a body or a message have come
 * @property {() => void} [onRequest] a request is about to leave
 * @property {number} [waitSeconds] long polling: how long the server may hold a request
 * @property {number} [pauseMs] polling: how long to wait after each reply
 * @property {import("./environment.js").Environment} [environment]
 *
 * @typedef {(topicUrl: string, options: ReadOptions) => Promise<string | undefined>} Read
 */
export {};
