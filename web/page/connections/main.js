/**
 * The page about connections: the clients of this server, the work of its threads, and the ends of the last connections.
 *
 * There are no events of this, so the page asks every second while it is visible, and less often if the answer takes long.
 */
import { find, setText } from "../element.js";
import { showPlaces } from "../places.js";
import { client, failureInWords, isGone, learnClock } from "../server.js";
import { AnemoneError, now, sleep } from "../../client.js";
import { showClosed } from "./closed.js";
import { showConnections } from "./open.js";
import { showThreads } from "./threads.js";

const LOOK_MS = 1000;
const LOOK_UNREACHED_MS = 3000;
const LOOK_REFUSED_MS = 60_000;
/** The page waits for this multiple of the time that the server took for its answer. */
const REST_FACTOR = 10;
const ANSWER_MS_MAX = 10_000;
const LISTED_MAX = 1000;
const CLOSED_MAX = 50;

/** @param {string} selector */
const element = (selector) => find(document, selector, HTMLElement);
let wake = new AbortController();

/** @param {string} path */
async function ask(path) {
  const { data } = await client.call("GET", path, undefined, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  return data;
}

/** Asks for everything; returns the time until the next look. */
async function look() {
  const asked = now();
  try {
    const [connections, threads, closed] = await Promise.all([
      ask(`connections?limit=${LISTED_MAX}`),
      ask("connections/threads"),
      ask(`connections/closed?limit=${CLOSED_MAX}`),
    ]);
    showNotice(null);
    showConnections(connections);
    showThreads(threads);
    showClosed(closed);
    for (const section of ["#connections", "#threads", "#closed"]) element(section).hidden = false;
    return Math.max(LOOK_MS, (now() - asked) * REST_FACTOR);
  } catch (error) {
    showNotice(error);
    return isGone(error) ? LOOK_UNREACHED_MS : LOOK_REFUSED_MS;
  }
}

/** @param {unknown} error null if all is well */
function showNotice(error) {
  const isAway = error !== null && isGone(error);
  element("#notice-no-server").hidden = !isAway;
  element("#notice-refused").hidden = error === null || isAway;
  if (error instanceof AnemoneError) setText(element("#refused"), failureInWords(error));
}

document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && wake.abort());
element("#notice-no-script").remove();
void showPlaces();
void learnClock().catch(() => {}); // ages are then by this clock
for (;;) {
  wake = new AbortController();
  const pause = document.visibilityState === "visible" ? await look() : Infinity;
  if (pause === Infinity) await new Promise((resolve) => wake.signal.addEventListener("abort", resolve));
  else await sleep(pause, wake.signal);
}
