/**
 * Types only; nothing loads this file.
 *
 * @typedef {"tabs" | "mux" | "sse" | "ndjson" | "long-poll" | "poll"} TransportName
 *
 * @typedef {object} Options
 * @property {TransportName[]} [transports] the transports to try, the best first; default `tabs`, `mux`, `sse`, `long-poll`, `poll`
 * @property {string | (() => string | Promise<string>)} [token] sent as `Authorization: Bearer`; a function is asked again
 *   after a 401. A WebSocket cannot send it, so `mux` is no longer among the default transports
 * @property {number} [waitSeconds] the wait of a long poll, 25 by default
 * @property {number} [pollMs] the pause between two polls, 1000 by default
 * @property {number} [quietMs] the silence after which a connection counts as dead, 20 s by default; the server says something every 15 s
 * @property {number} [betterMs] the pause before a better transport is tried again, 30 s by default; up to 8 times as long if none works
 * @property {typeof globalThis.fetch} [fetch] replaces the global one
 * @property {any} [WebSocket] replaces the global one, which Node 20 does not have: pass that of the package `ws`
 * @property {() => number} [random] replaces Math.random in the delays
 *
 * @typedef {Required<Pick<Options, "waitSeconds" | "pollMs" | "quietMs" | "betterMs" | "fetch" | "random">> & Options} AllOptions
 *
 * @typedef {object} ReadOptions
 * @property {string} [after] a position, `-N`, `earliest` or `latest`
 * @property {string} [since] a time or an age, such as `10m`
 * @property {"all" | "latest"} [mode] `latest` skips to the newest event if the reader is behind
 * @property {boolean} [isForOthers] set by the client itself
 *
 * @typedef {object} TopicEvent
 * @property {import("./topic.js").Topic} topic
 * @property {string} position the event's own position, `EPOCH-OFFSET`
 * @property {number} time when the server appended it, its clock, ms since the Unix epoch
 * @property {any} data what was published
 * @property {number} received when it was here, this clock, before parsing
 * @property {Gap[]} [gaps] the gaps since the previous event
 * @property {number} [skipped] the number of events that were skipped before this one, with the mode `latest`
 *
 * @typedef {object} Gap
 * @property {string} reason `retention`, `damaged` or `epoch` as told by the server; `unannounced` if the client found it;
 *   `unreadable` for an event that is not JSON
 * @property {string} after the position that reading had got to
 * @property {number | null} missed the number of missing events; null if nobody can know it
 * @property {string} resume the position after which reading continues
 *
 * @typedef {{ transport: string, topic: import("./topic.js").Topic, at: number }} Opened
 * @typedef {{ transport: string, at: number, ms: number, code?: string, message?: string }} Try without a code if it worked
 * @typedef {{ position: string, first: string, count: number }} Published
 * @typedef {{ progress: number, text?: string, left?: number }} Progress
 *
 * @typedef {object} CallOptions
 * @property {string | boolean} [key] makes a retry safe; `true` means a random one
 * @property {HeadersInit} [headers] as `fetch` takes them
 * @property {AbortSignal} [signal]
 * @property {boolean} [isSafe] set by the client itself
 * @property {number} [triesMs] no try begins later than this after the first: 60,000 by default
 *
 * @typedef {{ status: number, data: any, fields: Record<string, string> }} Reply
 *
 * @typedef {object} ErrorDetails
 * @property {number} [status]
 * @property {any} [problem]
 * @property {number} [retryMs]
 * @property {unknown} [cause]
 *
 * @typedef {object} Callbacks
 * @property {(opened: Opened) => void} [onopen]
 * @property {(event: TopicEvent) => void} [onmessage]
 * @property {(error: import("./error.js").AnemoneError) => void} [onerror]
 * @property {(error: import("./error.js").AnemoneError | undefined) => void} [onclose]
 * @property {(gap: Gap) => void} [ongap]
 * @typedef {keyof Callbacks} CallbackName
 *
 * The rest is between the files of the client.
 *
 * @typedef {{ reason: string, gap?: Gap, problem?: any }} End
 * @typedef {object} Item what a server says on a stream
 * @property {string} [position]
 * @property {number} [time] of an event
 * @property {unknown} [data] undefined in an event whose data is not JSON
 * @property {string} [topic] the name, on a stream of several
 * @property {Gap} [gap]
 * @property {number} [skipped]
 * @property {End} [end]
 * @property {number} [retry]
 *
 * @typedef {object} Page
 * @property {string} epoch
 * @property {string} next
 * @property {{ offset: number, time: number, data: unknown }[]} events
 * @property {Gap} [gap]
 * @property {number} [skipped]
 * @property {End} [end]
 *
 * @typedef {{ next: string, events: Item[], notices?: Item[] }} PageOfMany
 *
 * @typedef {object} Reading
 * @property {import("./link.js").Link} link
 * @property {string} path
 * @property {() => Place} options of a reading that continues after the current position
 * @property {() => number} losses the connections in a row that broke without news
 * @property {AbortSignal} signal
 * @property {(item: Item, received: number) => void} take
 * @property {(error?: import("./error.js").AnemoneError) => void} wait says that who reads for this one waits, and why if that is news
 *
 * @typedef {{ after?: string, since?: string, mode?: string }} Place
 * @typedef {(reading: Reading) => Promise<void>} Transport
 *
 * @typedef {object} StreamRequest
 * @property {import("./link.js").Link} link
 * @property {(more: object) => string} target path and query that continue after the current positions
 * @property {() => number} losses
 * @property {boolean} [isOfMany] true for several topics
 * @property {AbortSignal} signal
 * @property {(item: Item, received: number) => void} take
 *
 * @typedef {{ method: string, target: string, fields: Record<string, string>, payload?: string | Uint8Array }} Request the target is a path and a query, below the server's address
 *
 * @typedef {object} MuxReply
 * @property {number} status
 * @property {string | Uint8Array} payload
 * @property {number} received
 * @property {string[]} words those after the id: a position and a time, and fields
 *
 * @typedef {(reply: MuxReply | import("./error.js").AnemoneError) => void} TakeReply
 */
export {};
