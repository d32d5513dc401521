/** Waits for a topic `wind`, and shows the parts of the page that need one. */
import { find } from "../page/element.js";
import { hasTopic } from "../page/places.js";
import { browser } from "../transport/environment.js";

const LOOK_EVERY_MS = 5000;

/** Resolves when the server has wind, or at once if it does not list its topics: the readings then report why. */
async function untilWind() {
  const [none, away] = ["#no-wind", "#notice-no-server"].map((selector) => find(document, selector, HTMLElement));
  for (let wasMissing = false; ; wasMissing = true) {
    const found = await hasTopic("wind");
    if (found || (found === null && !wasMissing)) break;
    Object.assign(none ?? {}, { hidden: false });
    Object.assign(away ?? {}, { hidden: found !== null });
    do await browser.sleep(LOOK_EVERY_MS, new AbortController().signal);
    while (document.visibilityState === "hidden");
  }
  for (const notice of [none, away]) Object.assign(notice ?? {}, { hidden: true });
}

/** Waits until there is wind, and then shows what is about it. */
export async function showOnceWindy() {
  await untilWind();
  for (const part of document.querySelectorAll(".of-wind")) part.removeAttribute("hidden");
}
