/** Makes reports in a thread of its own. Sends a message once it is loaded, since nothing is measured before. */
import { made } from "./report.js";

addEventListener("message", (/** @type {MessageEvent<Parameters<typeof made>>} */ { data }) => postMessage(made(...data)));
postMessage("loaded");
