/**
 * Describes the sensor. Pure: from the status topic's last event, and the connection to that topic, it makes a phrase,
 * a sentence, and the mood of the page.
 *
 * @typedef {{ state: string, detail: string, since: number }} SensorStatus
 * @typedef {object} Verdict
 * @property {string} phrase "sensor live" or another state, "no sensor", or about the server
 * @property {string} detail
 * @property {number | null} since server's clock, ms
 * @property {"good" | "doubtful" | "bad"} mood
 * @property {"no server" | "refused" | null} notice what to explain at length
 */
import { statusInWords } from "../page/status.js";

/** The states in which no wind comes. */
const BAD = ["lost", "ended"];

/** Statuses that refuse the client, not the request. */
const REFUSALS = [401, 403, 421];

/**
 * @param {any} data of an event of the status topic
 * @returns {SensorStatus | null}
 */
export function sensorStatusOf(data) {
  const status = statusInWords(data);
  return status && { ...status, since: typeof data.since === "number" ? data.since : NaN };
}

/**
 * @param {SensorStatus | null} status the last one received
 * @param {import("../transport/types.js").State} connection of the status topic
 * @param {boolean} [isFaulty] whether the instrument reports a fault of its own
 * @returns {Verdict}
 */
export function judge(status, connection, isFaulty = false) {
  if (connection.kind === "waiting" && connection.status === 404) {
    return { phrase: "no sensor", detail: connection.reason, since: null, mood: "doubtful", notice: null };
  }
  if (connection.kind === "waiting" && REFUSALS.includes(connection.status ?? 0)) {
    return { phrase: "refused", detail: connection.reason, since: null, mood: "bad", notice: "refused" };
  }
  if (connection.kind === "waiting") {
    return { phrase: "server not reached", detail: connection.reason, since: null, mood: "bad", notice: "no server" };
  }
  if (connection.kind === "paused") {
    return { phrase: "paused", detail: "this page is hidden", since: null, mood: "doubtful", notice: null };
  }
  if (status === null) {
    return { phrase: "connecting", detail: "", since: null, mood: "doubtful", notice: null };
  }
  const isGood = status.state === "live" && !isFaulty;
  const mood = isGood ? "good" : BAD.includes(status.state) ? "bad" : "doubtful";
  const since = Number.isNaN(status.since) ? null : status.since;
  return { phrase: `sensor ${status.state}`, detail: status.detail, since, mood, notice: null };
}
