/** What the server keeps of a topic, in words. Pure. */
import { countOf, formatBytes, formatDuration, storageInWords } from "../page/words.js";

/**
 * @param {import("../page/places.js").ListedTopic} topic
 * @param {number} now the server's time
 */
export function keptInWords({ events, bytes, oldest, keeps, storage }, now) {
  const where = storageInWords(storage);
  const limit = `Its limit: ${keeps}.`;
  if (events === 0 || oldest === null) return `The server keeps no event yet, and will keep them ${where}. ${limit}`;
  return `The server keeps ${countOf(events, "event")} of the last ${formatDuration(Math.max(0, now - oldest))}, ${formatBytes(bytes)} ${where}. ${limit}`;
}
