/** One WebSocket for many requests: `anemone.v1`. */
import { text } from "./body.js";
import { AnemoneError, foreign, parse, refusal } from "./error.js";
import { now, OPEN_MS_MAX } from "./time.js";

const SUBPROTOCOL = "anemone.v1";

export class Multiplexed {
  isOpen = false;
  isClosed = false;
  /** @type {Map<string, import("./types.js").TakeReply>} */
  #requests = new Map();
  #ids = 0;
  #heard = 0;
  #socket;
  #timer;
  /** @type {(error: AnemoneError) => void} */
  #reject = () => {};

  /**
   * @param {string} url
   * @param {typeof WebSocket} Socket
   */
  constructor(url, Socket) {
    const socket = (this.#socket = new Socket(url, SUBPROTOCOL));
    socket.binaryType = "arraybuffer";
    socket.onerror = () => {}; // onclose follows; the package `ws` throws what nobody listens to
    /** @type {Promise<this>} */
    this.opened = new Promise((resolve, reject) => {
      this.#reject = reject;
      socket.onopen = () => {
        if (socket.protocol !== SUBPROTOCOL) return this.close(foreign("the subprotocol"));
        clearTimeout(this.#timer);
        this.isOpen = true;
        resolve(this);
      };
    });
    this.opened.catch(() => {});
    socket.onmessage = ({ data }) => this.#receive(data);
    const end = ({ code = 0, reason = "" }) =>
      this.close(
        this.isOpen
          ? new AnemoneError("lost", `the WebSocket is closed: ${code} ${reason}`)
          : new AnemoneError("blocked", "the WebSocket is not open"),
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
    this.#socket.close();
    this.#reject(error);
    for (const take of this.#requests.values()) take(error);
    this.#requests.clear();
  }

  /**
   * Sends a request on the open connection. Returns a function that cancels it, which returns true if the request was not over. `take` gets each reply, or an error as the last.
   * @param {string} method
   * @param {string} target and fields
   * @param {import("./types.js").TakeReply} take
   * @param {(head: string) => string | Uint8Array} [message] adds the payload
   */
  send(method, target, take, message = (head) => head) {
    const id = `${this.#ids++}`;
    this.#requests.set(id, take);
    this.#socket.send(message(`${method} ${id} /${target}`));
    return () => this.#requests.delete(id) && (this.#socket.send(`CANCEL ${id}`), true);
  }

  /** @type {import("./types.js").Transport} */
  read({ path, options, signal, take }) {
    return new Promise((resolve, reject) => {
      const cancel = this.send("GET", `${path}?${new URLSearchParams(options())}`, (reply) => {
        if (reply instanceof Error) return reject(reply);
        const { status, words, received, payload } = reply;
        const [position, time] = words;
        const value = parse(text(payload));
        if (isFinal(status)) resolve();
        else take(status === 206 ? { position, time: Number(time), data: value } : { position: status === 100 ? position : undefined, ...value }, received);
      });
      signal.addEventListener("abort", () => {
        cancel();
        // A reader hears something at least every 15 s, so it is the connection that is dead.
        if (signal.reason.code === "silent") this.close(signal.reason);
      });
    });
  }

  /** Sends a request to check the connection, and closes it if it is dead. */
  probe() {
    if (!this.isOpen) return;
    const since = now();
    this.send("GET", "clock", () => {});
    setTimeout(() => {
      if (this.#heard < since) this.close(new AnemoneError("silent", "the WebSocket is silent"));
    }, OPEN_MS_MAX);
  }

  /** @param {string | ArrayBuffer} data */
  #receive(data) {
    const received = (this.#heard = now());
    const message = typeof data === "string" ? data : new Uint8Array(data);
    const [head = ""] = text(message).split("\n", 1);
    const [status = "", id = "", ...words] = head.split(" ");
    // The head is ASCII: it has as many bytes as characters.
    const reply = { status: Number(status), words, payload: message.slice(head.length + 1), received };
    if (id === "-") return this.close(failure(reply));
    if (!(reply.status >= 100)) return this.close(foreign("a message"));
    const take = this.#requests.get(id);
    if (isFinal(reply.status)) this.#requests.delete(id);
    take?.(reply.status >= 400 ? failure(reply) : reply);
  }
}

/** @param {number} status */
export const isFinal = (status) => status >= 200 && status !== 206;

/** @param {import("./types.js").MuxReply} reply */
function failure({ status, words, payload }) {
  return refusal(status, text(payload), /retry-after=(\d+)/.exec(words.join())?.[1]);
}
