/** The table of what was closed: who ended it, and why. */
import { find, setText } from "../element.js";
import { serverNow } from "../server.js";
import { formatCount, formatDuration } from "../words.js";
import { Table } from "./table.js";
import { codeInWords, lastedInWords, transportInWords } from "./words.js";

const table = new Table("#closed", "#ended");
const count = find(document, "#closed-count", HTMLElement);

/** @param {{ closed: readonly import("./words.js").Closed[], count: number }} told */
export function showClosed({ closed, count: all }) {
  const which = all > closed.length ? `; these are the last ${formatCount(closed.length)}` : "";
  setText(count, all === 0 ? "None since the server has started." : `${formatCount(all)} since the server has started${which}. Connections of plain requests and replies that end in order do not count.`);
  // The number of one stays the same while others come.
  const numbered = closed.map((one, place) => ({ one, number: all - place }));
  table.show(numbered, ({ number }) => String(number), ({ element, field }, { one }) => {
    element.dataset.transport = one.transport;
    element.dataset.by = one.by;
    setText(field("when"), `${formatDuration(serverNow() - one.time)} ago`);
    setText(field("client"), one.client ?? "not known");
    setText(field("transport"), transportInWords(one.transport));
    setText(field("path"), one.path ?? "");
    setText(field("by"), one.by);
    setText(field("reason"), one.reason);
    setText(field("code"), codeInWords(one.code));
    setText(field("lasted"), lastedInWords(one));
  });
}
