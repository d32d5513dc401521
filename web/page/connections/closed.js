/** The table of closed connections: who ended each, and why. */
import { find, setText } from "../element.js";
import { serverNow } from "../server.js";
import { formatCount, formatDuration } from "../words.js";
import { Table } from "./table.js";
import { codeInWords, endedByInWords, lastedInWords, reasonInWords, transportInWords } from "./words.js";

/** The rows that a narrow window shows at first. They are cards, which are high. */
const CARDS_MAX = 10;
const CARDS = matchMedia("(max-width: 61.99rem)");

const table = new Table("#closed", "#ended");
const count = find(document, "#closed-count", HTMLElement);
const more = find(document, "#all-closed", HTMLButtonElement);
/** @typedef {{ closed: readonly import("./words.js").Closed[], count: number }} Told */
/** @type {Told} */
let told = { closed: [], count: 0 };
let isAllShown = false;

/** @param {Told} list as the server tells it */
export function showClosed(list) {
  told = list;
  show();
}

function show() {
  const { closed, count: all } = told;
  const which = all > closed.length ? `; these are the last ${formatCount(closed.length)}` : "";
  setText(count, all === 0 ? "None since the server has started." : `${formatCount(all)} since the server has started${which}. Connections of plain requests and replies that end in order do not count.`);
  // The number of one stays the same while others come.
  const numbered = closed.map((one, place) => ({ one, number: all - place }));
  const shown = CARDS.matches && !isAllShown ? numbered.slice(0, CARDS_MAX) : numbered;
  more.hidden = shown.length === numbered.length;
  setText(more, `Show all ${formatCount(numbered.length)}`);
  table.show(shown, ({ number }) => String(number), ({ element, field }, { one }) => {
    element.dataset.transport = one.transport;
    element.dataset.by = one.by;
    setText(field("when"), `${formatDuration(serverNow() - one.time)} ago`);
    setText(field("client"), one.client ?? "not known");
    setText(field("transport"), transportInWords(one.transport));
    setText(field("path"), one.path ?? "");
    setText(field("by"), endedByInWords(one));
    const reason = reasonInWords(one.reason);
    setText(field("reason"), reason);
    setText(field("code"), reason === one.reason ? codeInWords(one.code) : one.reason);
    setText(field("lasted"), lastedInWords(one));
  });
}

more.addEventListener("click", () => {
  isAllShown = true;
  show();
});
CARDS.addEventListener("change", show);
