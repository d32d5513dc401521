/** The button that saves the events of a time as CSV. */
import { timeInWords } from "../chart/axes.js";
import { find, setText } from "../page/element.js";
import { readBetween } from "../page/ranges/history.js";
import { save } from "../page/save.js";
import { countOf } from "../page/words.js";
import { csvOfEvents } from "./file.js";

/** A file is made in memory. */
const EVENTS_MAX = 100_000;

/**
 * @param {HTMLElement} section
 * @param {{ name: string, url: string, times: () => { from: number, to: number } | null }} topic
 *   `times` are those to save; null while there is nothing
 */
export function offerSaving(section, { name, url, times }) {
  const button = find(section, "#csv", HTMLButtonElement);
  const said = find(section, "#saved", HTMLElement);
  button.addEventListener("click", async () => {
    const shown = times();
    if (shown === null) return setText(said, "There is no event yet.");
    button.disabled = true;
    setText(said, "reading…");
    try {
      const { events, hasMore } = await readBetween(url, shown, { countMax: EVENTS_MAX, signal: new AbortController().signal });
      save(csvOfEvents(events), "text/csv", `${name}.csv`);
      const [from, to] = [shown.from, shown.to].map((time) => timeInWords(time, shown.to - shown.from));
      setText(said, `${hasMore ? "the first " : ""}${countOf(events.length, "event")} of ${from} to ${to}`);
    } catch (error) {
      setText(said, error instanceof Error ? error.message : "The server does not answer.");
    }
    button.disabled = false;
  });
}
