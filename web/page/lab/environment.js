/** The known facts about this browser and this network, for a report. */
import { now } from "../../client.js";
import { at } from "../site.js";
import { THIS_NETWORK } from "./report.js";

/**
 * @param {{ begun: number, rounds: number, seed: number, isQuick: boolean }} run
 * @returns {import("./report.js").Environment}
 */
export function environmentOf({ begun, rounds, seed, isQuick }) {
  const time = Math.round(now());
  return {
    program: `the Lab page in ${browserName(navigator.userAgent)}`,
    time,
    duration_ms: Math.round(time - begun),
    processor: "a browser does not tell",
    cores: navigator.hardwareConcurrency,
    system: systemOf(navigator.userAgent),
    target: at(""),
    link: THIS_NETWORK,
    rounds,
    seed,
    is_quick: isQuick,
  };
}

/** Returns the protocol with which the page came, such as h2, if the browser knows it. */
export function protocolOf() {
  const entry = performance.getEntriesByType("navigation")[0];
  return entry instanceof PerformanceNavigationTiming && entry.nextHopProtocol ? entry.nextHopProtocol : "HTTP of a version that the browser does not tell";
}

/** @param {string} agent */
export function browserName(agent) {
  // The more special name comes first: Edge says that it is Chrome, and Chrome that it is Safari.
  const known = /(Firefox|Edg|OPR|SamsungBrowser|Chrome|Version)\/(\d+)/.exec(agent.replace(/Chrome(.*)(Edg|OPR|SamsungBrowser)\//, "$1$2/"));
  if (!known) return "a browser";
  const names = { Edg: "Edge", OPR: "Opera", Version: "Safari" };
  return `${Reflect.get(names, known[1] ?? "") ?? known[1]} ${known[2]}`;
}

/** @param {string} agent */
function systemOf(agent) {
  return /\(([^;)]+)/.exec(agent)?.[1] ?? "unknown";
}
