/** The topics of the server, live. Reads the list of them first, and then the index, which tells of each new and each deleted topic. */

const RETRY_MS = 2000;
const PAGE_TOPICS = 1000;
/** The most names that are read. The rest is left out. */
export const NAMES_MAX = 20_000;

/**
 * @typedef {import("../page/places.js").ListedTopic} ListedTopic
 *
 * @typedef {object} Changes
 * @property {(topics: ListedTopic[]) => void} onList all topics, in order
 * @property {(name: string) => void} onCreated
 * @property {(name: string) => void} onDeleted
 * @property {(isThere: boolean, transport: string) => void} onServer
 */

/**
 * Follows the topics of a server, for as long as the page is open.
 * @param {import("../client.js").Client} client
 * @param {Changes} changes
 */
export async function followTopics(client, changes) {
  for (;;) {
    try {
      const { topics, position } = await listAll(client);
      changes.onServer(true, client.diagnosis.transport);
      changes.onList(topics);
      await followIndex(client, position, changes);
    } catch {
      changes.onServer(false, client.diagnosis.transport);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/**
 * @param {import("../client.js").Client} client
 * @returns {Promise<{ topics: ListedTopic[], position: string }>} the position in the index as of which the list is complete
 */
async function listAll(client) {
  /** @type {ListedTopic[]} */
  const topics = [];
  let position = "";
  let after = "";
  do {
    const { data } = await client.call("GET", `topics?limit=${PAGE_TOPICS}${after && `&after=${after}`}`);
    position ||= data.position;
    topics.push(...data.topics);
    after = data.next ?? "";
  } while (after !== "" && topics.length < NAMES_MAX);
  return { topics, position };
}

/**
 * Follows the index. Returns when the list has to be read again: after a gap, or when the index has ended.
 * @param {import("../client.js").Client} client
 * @param {string} after
 * @param {Changes} changes
 * @returns {Promise<void>}
 */
function followIndex(client, after, { onCreated, onDeleted, onServer }) {
  return new Promise((resolve) => {
    const index = client.topic("$topics", { after });
    index.onopen = ({ transport }) => onServer(true, transport);
    index.onmessage = ({ data }) => {
      if (typeof data?.created === "string") onCreated(data.created);
      if (typeof data?.deleted === "string") onDeleted(data.deleted);
    };
    index.onerror = ({ retryAt, code }) => {
      // A transport that does not work here says nothing about the server.
      if (retryAt !== undefined && code !== "blocked") onServer(false, client.diagnosis.transport);
    };
    index.ongap = () => index.close();
    index.onclose = () => resolve();
  });
}
