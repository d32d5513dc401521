/**
 * The ways to read a topic. Each reads from the current position until its signal aborts, passes on what the server says, and fails
 * with an AnemoneError. It returns when the topic has ended. When to try again is for the topic to decide.
 */
import { bytesOf, cutOff, text } from "./body.js";
import { AnemoneError, foreign, parse } from "./error.js";
import { formatPosition } from "./position.js";
import { now, sleep } from "./time.js";

/** No line of the protocol is longer: the result of a run may be as large as the run itself, 16 MiB by default. */
const LINE_MAX = 2 ** 25;

/** @type {Record<import("./types.js").TransportName, import("./types.js").Transport>} */
export const TRANSPORTS = {
  tabs: (reading) => /** @type {import("./tabs.js").Tabs} */ (reading.link.tabs).read(reading),

  mux: async ({ link, target, signal, take }) => {
    const socket = await link.socket(signal);
    await new Promise((resolve, reject) => {
      const cancel = socket.send("GET", `/${target()}`, undefined, (reply) => {
        if (reply instanceof Error) return reject(reply);
        const { status, position, received, payload } = reply;
        if (status === 206) take(event(position, Number(reply.time), text(payload)), received);
        else if (status < 200) take({ position: status === 100 ? position : undefined, ...parse(text(payload)) }, received);
        else resolve(undefined);
      });
      const end = () => {
        cancel();
        // A reader hears something at least every 15 s, so it is the connection that is dead.
        if (signal.reason.code === "silent") socket.close(signal.reason);
        reject(signal.reason);
      };
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    });
  },

  sse: async (reading) => {
    let [id, time, name, data] = ["", "", "", ""];
    for await (const { line, received } of lines(reading, "text/event-stream")) {
      const [, field, value = ""] = /^([^:]*):? ?(.*)/.exec(line) ?? [];
      if (line !== "") {
        if (field === "id") id = value;
        else if (field === "time") time = value;
        else if (field === "event") name = value;
        else if (field === "data") data += value;
        else if (field === "retry") reading.take({ retry: Number(value) }, received);
        else reading.take({}, received); // a heartbeat
        continue;
      }
      if (name) reading.take(parse(data) ?? {}, received);
      else if (data) reading.take(event(id, Number(time), data), received);
      else if (id) reading.take({ position: id }, received);
      [id, time, name, data] = ["", "", "", ""];
    }
  },

  ndjson: async (reading) => {
    for await (const { line, received } of lines(reading, "application/x-ndjson")) {
      const item = parse(line);
      if (typeof item !== "object" || !item) throw foreign("a line that is not a JSON object");
      reading.take(item, received);
    }
  },

  "long-poll": async (reading) => {
    // The first request does not wait, so that a success is known at once.
    let wait = 0;
    while (await page(reading, `wait=${wait}`)) wait = reading.link.waitSeconds;
  },

  poll: async (reading) => {
    while (await page(reading, "")) await sleep(reading.link.pollMs, reading.signal);
  },
};

/**
 * @param {string | undefined} position
 * @param {number} time
 * @param {string} json
 * @returns {import("./types.js").Item}
 */
function event(position, time, json) {
  const data = parse(json);
  return data === undefined ? { position, isBroken: true } : { position, time, data };
}

/**
 * Requests one page; returns false at the end of the topic.
 * @param {import("./types.js").Reading} reading
 * @param {string} more
 */
async function page({ link, target, signal, take }, more) {
  const reply = await link.ask("GET", target(more), { headers: { accept: "application/json" }, signal });
  const body = await bytesOf(reply);
  const received = now();
  /** @type {import("./types.js").Page | undefined} */
  const found = parse(text(body));
  if (typeof found?.next !== "string" || !Array.isArray(found.events)) throw foreign("a reply that is not a page of events");
  const { epoch, next, gap, skipped, end } = found;
  if (gap) take({ gap }, received);
  if (skipped) take({ skipped }, received);
  for (const { offset, time, data } of found.events) take({ position: formatPosition({ epoch, offset }), time, data }, received);
  take({ position: next, end }, received);
  return !signal.aborted && !end;
}

/**
 * @param {import("./types.js").Reading} reading
 * @param {string} accept
 */
async function* lines({ link, target, signal }, accept) {
  const reply = await link.ask("GET", target(), { headers: { accept }, signal });
  const type = reply.headers.get("content-type");
  if (!type) throw cutOff();
  if (!type.startsWith(accept)) throw foreign("a reply that is not a stream");
  const reader = /** @type {ReadableStream<Uint8Array>} */ (reply.body).getReader();
  // In Node 20, an abort just before the end of a reply leaves the reader waiting for ever.
  signal.addEventListener("abort", () => reader.cancel().catch(() => {}));
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new AnemoneError("lost", "the stream has ended");
    const received = now();
    const parts = decoder.decode(value, { stream: true }).split("\n");
    parts[0] = rest + parts[0];
    rest = parts.pop() ?? "";
    if (rest.length > LINE_MAX) throw foreign("a line without an end");
    for (const line of parts) yield { line, received };
  }
}
