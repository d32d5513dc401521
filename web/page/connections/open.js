/** The table of the open connections, with its order and its search. */
import { find, part, setText } from "../element.js";
import { at } from "../site.js";
import { formatBytes, formatCount, formatDuration } from "../words.js";
import { Table } from "./table.js";
import { behind, hasText, idleInWords, isIdle, isOrder, lagInWords, ORDERS, placeInWords, sorted, subjectInWords, summaryInWords, transportInWords, whyInWords, withBehind } from "./words.js";

/** The most rows. More would take a phone too long. */
const SHOWN_MAX = 250;

/** @typedef {import("./words.js").Connection} Connection */

const table = new Table("#connections", "#connection");
const search = find(document, "#find", HTMLInputElement);
const select = find(document, "#sort", HTMLSelectElement);
const summary = find(document, "#summary", HTMLElement);
const more = find(document, "#more", HTMLElement);
const idle = find(document, "#idle", HTMLButtonElement);

/** @type {{ connections: readonly Connection[], open: number, you: string | null, next?: string }} */
let told = { connections: [], open: 0, you: null };
/** @type {import("./words.js").Order} */
let order = "lag";
let isReversed = false;
let isIdleShown = false;

/** @param {typeof told} list as the server tells it */
export function showConnections(list) {
  told = { ...list, connections: withBehind(told.connections, list.connections) };
  show();
}

function show() {
  const { connections, open, you, next } = told;
  const wanted = search.value.trim();
  const found = wanted === "" ? connections : connections.filter((one) => hasText(one, wanted));
  const idles = wanted === "" ? found.filter(isIdle).length : 0;
  // A search finds idle ones, too.
  const listed = idles === 0 || isIdleShown ? found : found.filter((one) => !isIdle(one));
  table.show(sorted(listed, order, isReversed).slice(0, SHOWN_MAX), ({ id }) => id, (row, one) => fill(row, one, you));
  setText(summary, `${summaryInWords(found)}${wanted === "" ? "" : `, of ${formatCount(connections.length)}`}.`);
  // A button that has the focus stays.
  idle.hidden = idles === 0 && idle !== document.activeElement;
  setText(idle, idleInWords(idles));
  more.hidden = next === undefined && listed.length <= SHOWN_MAX;
  const rest = next === undefined ? "" : `The server has about ${formatCount(open)} connections; this page asks for the first ${formatCount(connections.length)}. `;
  setText(more, `${rest}${listed.length > SHOWN_MAX ? `These are the first ${SHOWN_MAX} in this order.` : ""}`);
}

/**
 * @param {import("./table.js").Row} row
 * @param {Connection} one
 * @param {string | null} you
 */
function fill({ element, field }, one, you) {
  const isBehind = behind(one) > 0;
  element.dataset.transport = one.transport;
  element.dataset.behind = String(isBehind);
  setText(field("client"), one.client ?? "not known");
  setText(field("mark"), one.client !== null && one.client === you ? "this page" : "");
  setText(field("transport"), transportInWords(one.transport));
  setText(field("why"), whyInWords(one));
  showSubject(field("path"), one);
  setText(field("position"), placeInWords(one));
  setText(field("lag"), lagInWords(one));
  setText(field("lag-bytes"), isBehind ? formatBytes(one.lag?.bytes ?? 0) : "");
  setText(field("sent"), formatBytes(one.sent_bytes));
  setText(field("received"), `received ${formatBytes(one.received_bytes)}`);
  setText(field("queued"), one.queued_bytes ? formatBytes(one.queued_bytes) : "");
  setText(field("age"), formatDuration(one.age * 1000));
  setText(field("thread"), String(one.thread));
}

/**
 * @param {HTMLElement} place
 * @param {Connection} one
 */
function showSubject(place, one) {
  const words = subjectInWords(one);
  if (place.textContent === words) return;
  const path = one.reads[0]?.path ?? "";
  if (one.readers !== 1 || !path.startsWith("/topics/")) return setText(place, words);
  const link = part("a", "", words);
  link.href = at(path.slice(1));
  place.replaceChildren(link);
}

function showOrder() {
  select.value = order;
  for (const header of document.querySelectorAll("#connections th")) {
    const isOwn = header instanceof HTMLElement && header.dataset.sort === order;
    if (!isOwn) header.removeAttribute("aria-sort");
    else header.setAttribute("aria-sort", ORDERS[order].isFalling === isReversed ? "ascending" : "descending");
  }
  show();
}

for (const [name, { label }] of Object.entries(ORDERS)) select.append(new Option(label, name));
search.addEventListener("input", show);
idle.addEventListener("click", () => {
  isIdleShown = !isIdleShown;
  idle.setAttribute("aria-expanded", String(isIdleShown));
  show();
});
select.addEventListener("change", () => {
  if (isOrder(select.value)) [order, isReversed] = [select.value, false];
  showOrder();
});
for (const header of document.querySelectorAll("#connections th")) {
  header.querySelector("button")?.addEventListener("click", () => {
    const name = header instanceof HTMLElement ? String(header.dataset.sort) : "";
    if (isOrder(name)) [order, isReversed] = [name, name === order && !isReversed];
    showOrder();
  });
}
showOrder();
