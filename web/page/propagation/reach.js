/** The notice that the server cannot be reached, while a run waits for it. */
import { element } from "./elements.js";
import { isThere } from "../server.js";

const LOOK_EVERY_MS = 1000;
/** The silence after which a run may have lost its server. A run that waits for other runs is silent, too. */
const SILENT_MS = 2000;
/** The longest wait for an answer. A far server may take a while. */
const ANSWER_MS_MAX = 10_000;

/**
 * Asks the server for a sign of life while a run says nothing, and shows the notice until one comes.
 * @param {() => number} silentMs how long the maps have waited for news; 0 if nothing runs
 */
export function watchReach(silentMs) {
  const notice = element("#notice-no-server");
  const isSilent = () => silentMs() >= SILENT_MS;
  const look = async () => {
    // What the run says while the server is asked is a sign of life, too.
    notice.hidden = !isSilent() || (await isThere(AbortSignal.timeout(ANSWER_MS_MAX))) || !isSilent();
    setTimeout(look, LOOK_EVERY_MS);
  };
  void look();
}
