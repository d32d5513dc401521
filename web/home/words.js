/** The facts about topics on Home, in plain words. Pure. */
import { storageInWords } from "../page/words.js";

/** @typedef {{ keeps?: string | null, storage?: string }} Kept */

/**
 * Says what a topic keeps, and where: "7 d, at most 64 MiB, in memory". "" if the server does not say.
 * @param {Kept} kept
 */
export function keepsInWords({ keeps, storage }) {
  if (!keeps) return "";
  return storage === undefined ? keeps : `${keeps}, ${storageInWords(storage)}`;
}

/**
 * Returns the most frequent retention of these topics.
 * @param {readonly Kept[]} topics
 * @returns {Kept}
 */
export function mostKept(topics) {
  /** @type {Map<string, { kept: Kept, count: number }>} */
  const found = new Map();
  for (const kept of topics) {
    const words = keepsInWords(kept);
    if (words === "") continue;
    const entry = found.get(words) ?? { kept, count: 0 };
    entry.count += 1;
    found.set(words, entry);
  }
  return [...found.values()].reduce((most, entry) => (entry.count > most.count ? entry : most), { kept: {}, count: 0 }).kept;
}

/**
 * Returns a sentence about the retention of the topics, and whether events survive a restart.
 * @param {Kept} kept
 * @param {boolean} isOfAll
 */
export function retentionInWords(kept, isOfAll) {
  if (!kept.keeps) return "";
  const words = `${isOfAll ? "Each" : "Unless it says otherwise, each"} keeps ${keepsInWords(kept)}`;
  if (kept.storage === undefined) return `${words}.`;
  return `${words}: events are ${kept.storage === "disk" ? "still there after a restart." : "gone when the server stops; --data DIR keeps them on disk."}`;
}
