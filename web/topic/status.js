/** The status of the source that a topic comes from, if the server has one for it. */
import { listedTopic } from "../page/places.js";
import { at } from "../page/site.js";
import { showStatus } from "../page/status.js";
import { follow } from "./source.js";

/**
 * Shows the status, and goes on with it while the page is seen.
 * @param {HTMLAnchorElement} link with the fields state and detail
 * @param {string} topic
 */
export async function offerStatus(link, topic) {
  const name = `${topic}.status`;
  // The name alone says nothing: whoever may publish may take it.
  if ((await listedTopic(name))?.status_of !== topic) return;
  const reading = follow(at(`topics/${name}`), {
    after: "-1",
    onEvent: ({ data }) => showStatus(link, name, data),
    onGap: () => {},
    onState: (state) => {
      // After a restart without this source, nobody says any more how it is.
      if (state.kind === "waiting" && state.status === 404) link.hidden = true;
    },
  });
  const followVisibility = () => (document.visibilityState === "hidden" ? reading.pause() : reading.resume());
  document.addEventListener("visibilitychange", followVisibility);
  followVisibility();
}
