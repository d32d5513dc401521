/** Waits for a topic `wind`, and shows the parts of the page that need one. */
import { find } from "../element.js";
import { hasTopic } from "../places.js";
import { browser } from "../../transport/environment.js";

const LOOK_EVERY_MS = 5000;

/**
 * Resolves when the server has wind, or at once if it does not list its topics. The readings then report the reason.
 * @param {() => void} onMissing
 */
async function untilWind(onMissing) {
  const none = find(document, "#no-wind", HTMLElement);
  const away = find(document, "#notice-no-server", HTMLElement);
  for (let wasMissing = false; ; wasMissing = true) {
    const found = await hasTopic("wind");
    if (found || (found === null && !wasMissing)) break;
    if (!wasMissing) onMissing();
    none.hidden = false;
    away.hidden = found !== null;
    do await browser.sleep(LOOK_EVERY_MS, new AbortController().signal);
    while (document.visibilityState === "hidden");
  }
  none.hidden = away.hidden = true;
}

/**
 * Waits until there is wind, and then shows the parts that need it.
 * @param {() => void} [onMissing] hears that there is none yet
 */
export async function showOnceWindy(onMissing = () => {}) {
  await untilWind(onMissing);
  for (const part of document.querySelectorAll(".of-wind")) part.removeAttribute("hidden");
}
