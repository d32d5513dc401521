/** The link with which others open this server, and its QR code; without a link, the way to get one. */
import { offerCopy } from "../page/commands.js";
import { find, part, setText } from "../page/element.js";
import { SITE, at } from "../page/site.js";

const ANSWER_MS_MAX = 10_000;

/** @typedef {{ urls: string[], demo: boolean }} Facts what the server says about itself to this client: the links that have a code */

/** @returns {Promise<Facts>} */
export async function askFacts() {
  try {
    const query = isOfThisMachine(SITE) ? "" : `?url=${encodeURIComponent(SITE.href)}`;
    const reply = await fetch(at(`home/server.json${query}`), { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    if (reply.ok) return await reply.json();
  } catch {
    // The page says elsewhere that the server is away.
  }
  return { urls: [], demo: false };
}

/**
 * @param {HTMLElement} section
 * @param {Facts} facts
 */
export function showShare(section, { urls }) {
  const { links, address } = shared(urls, SITE);
  section.hidden = false;
  find(section, "ul", HTMLElement).replaceChildren(...links.map(itemOf));
  const who = find(section, "#who", HTMLElement);
  if (address === null) setText(who, "Everybody who reaches this address may read.");
  else who.replaceChildren("So far, only this machine can open this page. Start the server with ", part("code", "", `--listen ${address}`), ", and everybody who reaches that port may read.");
  const [first] = urls;
  const image = find(section, "img", HTMLImageElement);
  image.hidden = first === undefined;
  if (first === undefined) return;
  image.alt = `QR code of ${first}`;
  image.src = at(`home/code.svg?url=${encodeURIComponent(first)}`);
}

/** @param {string} url */
function itemOf(url) {
  const item = part("li", "command", "");
  const link = part("a", "", url.replace(/\/$/, ""));
  link.href = url;
  const button = part("button", "", "Copy");
  button.type = "button";
  offerCopy(button, link, url);
  item.append(link, button);
  return item;
}

/**
 * Returns the links for others; if there are none, the address on which the server has to listen. A page that was opened at an address of
 * the network has that one as its link.
 * @param {readonly string[]} urls by which others open the server, as far as this client may know them
 * @param {Pick<URL, "href" | "hostname" | "port" | "protocol">} here
 * @returns {{ links: string[], address: string | null }}
 */
export function shared(urls, here) {
  if (urls.length > 0) return { links: [...urls], address: null };
  if (!isOfThisMachine(here)) return { links: [here.href], address: null };
  return { links: [], address: `0.0.0.0:${here.port || (here.protocol === "https:" ? "443" : "80")}` };
}

/** @param {Pick<URL, "hostname">} url */
function isOfThisMachine({ hostname }) {
  return /^(localhost|.*\.localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}
