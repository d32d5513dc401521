/** The bytes of a transport as they come: heads, bodies and messages, unchanged. */

import { muxOf, targetOf } from "./ways.js";

const TEXT_CHARS_MAX = 6000;
const POLL_EVERY_MS = 2000;
const LONG_POLL_SECONDS = 30;
const RETRY_MS = 3000;
/** The characters at the beginning of a page that have its end position, and whether the topic ends there. */
const HEAD_CHARS = 2000;

export class Bytes {
  #element;
  #url;
  #text = "";
  #isAsked = false;
  #isRun;
  /** The place after which the next long poll begins. */
  #after = "latest";
  /** True if the last long poll has reported the end. */
  #isEnded = false;
  /** @type {AbortController | null} */
  #controller = null;

  /**
   * @param {HTMLElement} element
   * @param {string} url of the topic, or of a run
   */
  constructor(element, url) {
    this.#element = element;
    this.#url = url;
    this.#isRun = targetOf(url).startsWith("/runs/");
  }

  /**
   * Shows what comes over this transport, until `stop`.
   * @param {string} way
   */
  show(way) {
    this.stop();
    this.#text = "";
    this.#after = this.#isRun ? "earliest" : "latest";
    this.#controller = new AbortController();
    void this.#read(way, this.#controller.signal);
  }

  stop() {
    this.#controller?.abort();
    this.#controller = null;
  }

  /**
   * @param {string} way
   * @param {AbortSignal} signal
   */
  async #read(way, signal) {
    while (!signal.aborted) {
      try {
        const pause = await this.#readOnce(way, signal);
        // It would come again, from the beginning.
        if (this.#isRun && (way !== "long-poll" || this.#isEnded)) return;
        await sleep(pause, signal);
      } catch {
        if (signal.aborted) return;
        this.#add("\n(the connection failed; trying again)\n");
        await sleep(RETRY_MS, signal);
      }
    }
  }

  /**
   * @param {string} way
   * @param {AbortSignal} signal
   * @returns {Promise<number>} how long to wait before the next time
   */
  async #readOnce(way, signal) {
    const socket = this.#url.replace(/^http/, "ws");
    switch (way) {
      case "poll":
        await this.#request("", "application/json", signal);
        return POLL_EVERY_MS;
      case "long-poll":
        return this.#longPoll(signal);
      case "sse":
        await this.#request("", "text/event-stream", signal);
        return RETRY_MS;
      case "ndjson":
        await this.#request("", "application/x-ndjson", signal);
        return RETRY_MS;
      case "ws":
        await this.#connect(socket, [], null, signal);
        return RETRY_MS;
      case "events":
        await this.#connect(socket, ["anemone.events"], null, signal);
        return RETRY_MS;
      default: {
        await this.#connect(muxOf(this.#url), ["anemone.v1"], `GET 1 ${targetOf(this.#url)}\n`, signal);
        return RETRY_MS;
      }
    }
  }

  /**
   * Asks for the events after the last reply, as the commands on the page do.
   * @param {AbortSignal} signal
   * @returns {Promise<number>}
   */
  async #longPoll(signal) {
    const body = await this.#request(`?after=${this.#after}&wait=${LONG_POLL_SECONDS}`, "application/json", signal);
    const [head = ""] = body.split('"events":[', 1);
    this.#isEnded = head.includes('"end":');
    const next = /"next":"([^"]+)"/.exec(head)?.[1];
    this.#after = next ?? this.#after;
    return next ? 0 : RETRY_MS;
  }

  /**
   * Returns the beginning of the body.
   * @param {string} query
   * @param {string} accept
   * @param {AbortSignal} signal
   */
  async #request(query, accept, signal) {
    const url = new URL(this.#url + query);
    this.#add(`\n> GET ${url.pathname}${url.search}\n> accept: ${accept}\n>\n`);
    const reply = await fetch(url, { headers: { accept }, cache: "no-store", signal });
    const fields = ["content-type", "link", "etag", "cache-control"].filter((name) => reply.headers.has(name));
    this.#add(`< ${reply.status} ${reply.statusText}\n${fields.map((name) => `< ${name}: ${reply.headers.get(name)}\n`).join("")}<\n`);
    const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let body = ""; ; ) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: "" };
      if (done) return body;
      if (body.length < HEAD_CHARS) body += value;
      this.#add(value);
    }
  }

  /**
   * @param {string} url
   * @param {string[]} protocols
   * @param {string | null} first what to send
   * @param {AbortSignal} signal
   * @returns {Promise<void>}
   */
  #connect(url, protocols, first, signal) {
    this.#add(`\n> WebSocket ${url}${protocols.length === 0 ? "" : `, ${protocols}`}\n`);
    const socket = new WebSocket(url, protocols);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => {
        socket.onclose = socket.onmessage = null;
        socket.close();
        reject(signal.reason);
      });
      socket.onopen = () => {
        this.#add("< open\n");
        if (first === null) return;
        socket.send(first);
        this.#add(`> ${first}`);
      };
      socket.onmessage = ({ data }) => this.#add(`${data}\n`);
      socket.onclose = ({ code, reason }) => {
        this.#add(`< closed, ${code} ${reason}\n`);
        resolve();
      };
    });
  }

  /** @param {string} text */
  #add(text) {
    this.#text = (this.#text + text).slice(-TEXT_CHARS_MAX);
    if (this.#isAsked) return;
    this.#isAsked = true;
    requestAnimationFrame(() => {
      this.#isAsked = false;
      const element = this.#element;
      const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
      element.textContent = this.#text.trimStart();
      if (isAtEnd) element.scrollTop = element.scrollHeight;
    });
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 */
function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
  });
}
