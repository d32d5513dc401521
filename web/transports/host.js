/** The machine that serves this page: its processor, memory and network, as published on `/topics/host`. */
import { fieldsOf, find, setText } from "../page/element.js";
import { Sparkline } from "../chart/sparkline.js";
import { formatBytes, formatCount, stateInWords } from "../page/words.js";

/**
 * @typedef {object} Host
 * @property {number[]} cores load of each, percent
 * @property {{ total_bytes: number, available_bytes: number }} memory
 * @property {Ways} network all interfaces but loopback
 * @property {Ways} loopback
 *
 * @typedef {{ received: Traffic, sent: Traffic }} Ways
 * @typedef {object} Traffic
 * @property {number} bytes since the machine started
 * @property {number} packets since the machine started
 * @property {number} bytes_per_second
 * @property {number} packets_per_second
 */

/** @type {("received" | "sent")[]} */
const WAYS = ["received", "sent"];

const HISTORY = 240; // a minute at 4 Hz

export class HostPanel {
  #root;
  #field;
  #cores;
  #loadLine;
  #networkLine;
  /** @type {{ bar: HTMLElement, value: HTMLElement }[]} */
  #bars = [];
  /** @type {number[]} */
  #loads = [];
  /** @type {number[]} */
  #rates = [];
  /** @type {import("../transport/types.js").State} */
  state = { kind: "connecting" };

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
    this.#field = fieldsOf(root);
    this.#cores = find(root, "#cores", HTMLElement);
    this.#loadLine = new Sparkline(find(root, "#host-load", HTMLCanvasElement), { paint: "host", capacity: HISTORY });
    this.#networkLine = new Sparkline(find(root, "#host-network", HTMLCanvasElement), {
      paint: "host",
      capacity: HISTORY,
    });
  }

  /** @param {unknown} data */
  show(data) {
    if (!isHost(data)) return;
    this.#showCores(data.cores);
    const { total_bytes, available_bytes } = data.memory;
    const used = total_bytes - available_bytes;
    setText(this.#field("memory"), `${formatBytes(used)} of ${formatBytes(total_bytes)}`);
    this.#field("memory-bar").style.setProperty("--mean", (total_bytes > 0 ? used / total_bytes : 0).toFixed(4));

    let rate = 0;
    for (const way of WAYS) {
      const traffic = sum(data.network[way], data.loopback[way]);
      setText(this.#field(`${way}-rate`), `${formatBytes(traffic.bytes_per_second)}/s`);
      setText(this.#field(`${way}-packets-rate`), `${formatCount(traffic.packets_per_second)}/s`);
      setText(this.#field(`${way}-total`), formatBytes(traffic.bytes));
      setText(this.#field(`${way}-packets-total`), formatCount(traffic.packets));
      rate += traffic.bytes_per_second;
    }
    push(this.#rates, rate);
    const top = Math.max(...this.#rates);
    this.#networkLine.show(this.#rates, top);
    setText(this.#field("network-top"), `last minute, received and sent, up to ${formatBytes(top)}/s`);
  }

  /** @param {number} now */
  showState(now) {
    this.#root.dataset.state = this.state.kind;
    const words =
      this.state.kind === "waiting" && this.state.status === 404
        ? "this server does not publish its own load"
        : stateInWords(this.state, now);
    setText(this.#field("state"), words);
  }

  /** @param {number[]} cores */
  #showCores(cores) {
    if (this.#bars.length !== cores.length) {
      this.#bars = cores.map((_, index) => coreBar(index));
      this.#cores.replaceChildren(...this.#bars.map(({ bar }) => bar));
    }
    cores.forEach((load, index) => {
      const { bar, value } = /** @type {{ bar: HTMLElement, value: HTMLElement }} */ (this.#bars[index]);
      bar.style.setProperty("--mean", Math.min(1, load / 100).toFixed(4));
      setText(value, `${load.toFixed(0)} %`);
    });
    const mean = cores.reduce((sum, load) => sum + load, 0) / Math.max(1, cores.length);
    push(this.#loads, mean);
    this.#loadLine.show(this.#loads, 100);
    setText(this.#field("load"), `${mean.toFixed(0)} %`);
  }
}

/**
 * Adds the loopback traffic, so that a page on the server's own machine shows the cost of its connections.
 * @param {Traffic} network
 * @param {Traffic} loopback
 * @returns {Traffic}
 */
function sum(network, loopback) {
  return {
    bytes: network.bytes + loopback.bytes,
    packets: network.packets + loopback.packets,
    bytes_per_second: network.bytes_per_second + loopback.bytes_per_second,
    packets_per_second: network.packets_per_second + loopback.packets_per_second,
  };
}

/** @param {number} index */
function coreBar(index) {
  const bar = document.createElement("li");
  const name = document.createElement("span");
  const meter = document.createElement("span");
  const value = document.createElement("span");
  name.textContent = `core ${index}`;
  meter.className = "meter";
  meter.setAttribute("aria-hidden", "true");
  value.className = "number";
  bar.append(name, meter, value);
  return { bar, value };
}

/**
 * @param {number[]} values
 * @param {number} value
 */
function push(values, value) {
  values.push(value);
  if (values.length > HISTORY) values.shift();
}

/**
 * @param {unknown} data
 * @returns {data is Host}
 */
function isHost(data) {
  if (typeof data !== "object" || data === null) return false;
  const { cores, ...parts } = /** @type {Record<string, unknown>} */ (data);
  const isObject = (/** @type {unknown} */ part) => typeof part === "object" && part !== null;
  return Array.isArray(cores) && [parts.memory, parts.network, parts.loopback].every(isObject);
}
