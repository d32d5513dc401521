/** The button that saves the events of a span of time as CSV. */
import { timeInWords } from "../chart/axes.js";
import { find, setText } from "../page/element.js";
import { readBetween } from "../page/ranges/history.js";
import { save } from "../page/save.js";
import { countOf } from "../page/words.js";
import { csvOfEvents } from "./file.js";

/** The most events and bytes of a file, since it is made in memory. */
const EVENTS_MAX = 100_000;
const BYTES_MAX = 64_000_000;

/**
 * @param {HTMLElement} section
 * @param {{ name: string, url: string, times: () => { from: number, to: number } | null }} topic
 *   `times` are those to save; null while there is nothing
 */
export function offerSaving(section, { name, url, times }) {
  const button = find(section, "#csv", HTMLButtonElement);
  const said = find(section, "#saved", HTMLElement);
  const title = String(button.textContent);
  /** @type {AbortController | null} null while nothing is read */
  let reading = null;
  button.addEventListener("click", async () => {
    if (reading !== null) return reading.abort();
    const shown = times();
    if (shown === null) return setText(said, "There is no event yet.");
    const { signal } = (reading = new AbortController());
    setText(button, "Stop");
    setText(said, "reading…");
    try {
      const onProgress = (/** @type {number} */ done) => setText(said, `reading, ${Math.floor(done * 100)} %`);
      const { events, hasMore } = await readBetween(url, shown, { eventsMax: EVENTS_MAX, bytesMax: BYTES_MAX, signal, onProgress });
      save(csvOfEvents(events), "text/csv", `${name}.csv`);
      const [from, to] = [shown.from, shown.to].map((time) => timeInWords(time, shown.to - shown.from));
      setText(said, `${hasMore ? "the first " : ""}${countOf(events.length, "event")} of ${from} to ${to}`);
    } catch (error) {
      setText(said, signal.aborted ? "Stopped; nothing is saved." : error instanceof Error ? error.message : "The server does not answer.");
    }
    reading = null;
    setText(button, title);
  });
}
