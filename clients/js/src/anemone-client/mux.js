/** One WebSocket for many requests: `anemone.v1`. */
import { concat, text } from "./body.js";
import { AnemoneError, foreign, refusal } from "./error.js";
import { now } from "./time.js";

const SUBPROTOCOL = "anemone.v1";
const OPEN_MS_MAX = 3000;

export class Multiplexed {
  isOpen = false;
  isClosed = false;
  /** @type {Map<string, import("./types.js").TakeReply>} */
  #requests = new Map();
  #ids = 0;
  #heard = 0;
  #socket;
  #timer;
  /** @type {(error?: AnemoneError) => void} */
  #settle = () => {};
  /** @type {Promise<AnemoneError | undefined>} without an error when the connection is open */
  opened = new Promise((resolve) => (this.#settle = resolve));

  /**
   * @param {string} url
   * @param {typeof WebSocket} Socket
   */
  constructor(url, Socket) {
    const socket = (this.#socket = new Socket(url, SUBPROTOCOL));
    socket.binaryType = "arraybuffer";
    socket.onerror = () => {}; // onclose follows; the package `ws` throws what nobody listens to
    socket.onopen = () => {
      if (socket.protocol !== SUBPROTOCOL) return this.close(foreign("the WebSocket's subprotocol"));
      clearTimeout(this.#timer);
      this.isOpen = true;
      this.#settle();
    };
    socket.onmessage = ({ data }) => this.#receive(data);
    const end = ({ code = 0, reason = "" }) =>
      this.close(
        this.isOpen
          ? new AnemoneError("lost", `the WebSocket was closed: ${code} ${reason}`)
          : new AnemoneError("blocked", "the WebSocket does not open: something on the way blocks it, or the server is down"),
      );
    socket.onclose = end;
    this.#timer = setTimeout(end, OPEN_MS_MAX, {});
  }

  /**
   * Ends the connection, and with it all requests.
   * @param {AnemoneError} error
   */
  close(error) {
    if (this.isClosed) return;
    clearTimeout(this.#timer);
    this.isOpen = false;
    this.isClosed = true;
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close();
    this.#settle(error);
    for (const take of this.#requests.values()) take(error);
    this.#requests.clear();
  }

  /**
   * Sends a request on the open connection, and returns what cancels it. `take` gets each reply, or an error as the last.
   * @param {string} method
   * @param {string} target and fields
   * @param {string | Uint8Array | undefined} payload
   * @param {import("./types.js").TakeReply} take
   */
  send(method, target, payload, take) {
    const id = (this.#ids++).toString(36);
    const head = `${method} ${id} ${target}`;
    this.#requests.set(id, take);
    this.#socket.send(
      payload === undefined ? head : typeof payload === "string" ? `${head}\n${payload}` : concat([`${head}\n`, payload]),
    );
    return () => {
      if (this.#requests.delete(id)) this.#socket.send(`CANCEL ${id}`);
    };
  }

  /** Finds out whether the other end is still there, and closes a dead connection. */
  probe() {
    if (!this.isOpen) return;
    const since = now();
    this.send("GET", "/clock", undefined, () => {});
    setTimeout(() => {
      if (this.#heard < since) this.close(new AnemoneError("silent", "the connection is dead"));
    }, OPEN_MS_MAX);
  }

  /** @param {string | ArrayBuffer} data */
  #receive(data) {
    const received = (this.#heard = now());
    const message = typeof data === "string" ? data : new Uint8Array(data);
    const found = typeof message === "string" ? message.indexOf("\n") : message.indexOf(10);
    const end = found < 0 ? message.length : found;
    const [status = "", id = "", ...words] = text(message.slice(0, end)).split(" ");
    const reply = { status: Number(status), payload: message.slice(end + 1), received, ...parseWords(words) };
    if (id === "-") return this.close(failure(reply));
    if (!(reply.status >= 100)) return this.close(foreign(`the message ${status.slice(0, 40)}`));
    const take = this.#requests.get(id);
    if (isFinal(reply.status)) this.#requests.delete(id);
    take?.(reply.status >= 400 ? failure(reply) : reply);
  }
}

/** @param {number} status */
export const isFinal = (status) => status >= 200 && status !== 206;

/** @param {string[]} words */
function parseWords(words) {
  /** @type {Record<string, string>} */
  const fields = {};
  const plain = words.filter((word) => {
    const [, name, value = ""] = /^([^=]+)=(.*)/.exec(word) ?? [];
    if (name) fields[name] = decodeURIComponent(value);
    return !name;
  });
  return { position: plain[0], time: plain[1], fields };
}

/** @param {import("./types.js").MuxReply} reply */
function failure({ status, payload, fields }) {
  return refusal(status, text(payload), fields["retry-after"]);
}
