/** All kept events of a run, for a file. */
import { client } from "../server.js";

/**
 * Reads the kept events of a run, up to now.
 * @param {string} path
 * @returns {Promise<import("./download.js").Kept>}
 */
export async function keptOf(path) {
  /** @type {import("./download.js").RunEvent[]} */
  const events = [];
  let epoch = "";
  /** @type {number | undefined} */
  let missed;
  for (let after = "earliest"; ; ) {
    const { data: page } = await client.call("GET", `${path}?after=${after}`);
    epoch = page.epoch;
    missed ??= page.first - 1;
    for (const event of page.events) events.push(event);
    if (page.end || page.events.length === 0) return { epoch, missed, events };
    after = page.next;
  }
}
