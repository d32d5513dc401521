/** Has reports made beside the page. */
import { ownScript } from "../site.js";

const SCRIPT = ownScript(new URL("./worker.js", import.meta.url));

/**
 * @param {import("./worker.js").Wish} wish
 * @returns {Promise<import("./worker.js").Made>}
 */
export async function made(...wish) {
  const worker = new Worker(SCRIPT, { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }) => resolve(data));
      worker.addEventListener("error", () => reject(new Error("the script that makes reports did not load: reload the page")));
      worker.postMessage(wish);
    });
  } finally {
    worker.terminate();
  }
}
