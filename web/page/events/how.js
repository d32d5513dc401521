/** The ways to read a topic or a run: a transport to choose, lines to copy, and the bytes beside them. */
import { command } from "../commands.js";
import { find, setText } from "../element.js";
import { Bytes } from "./bytes.js";
import { waysTo } from "./ways.js";

/**
 * @param {HTMLElement} section
 * @param {HTMLTemplateElement} template of a command
 * @param {string} url of the topic or the run
 */
export function showWays(section, template, url) {
  const ways = waysTo(url);
  const choice = find(section, "select", HTMLSelectElement);
  choice.append(...ways.map(({ id, title }) => new Option(title, id)));
  choice.value = "sse";
  const lines = find(section, "ul", HTMLElement);
  const bytes = new Bytes(find(section, "#bytes", HTMLElement), url);
  let isSeen = false;

  const show = () => {
    const way = ways.find(({ id }) => id === choice.value);
    if (!way) return;
    setText(find(section, "#about-way", HTMLElement), way.about);
    lines.replaceChildren(...way.lines.map(({ title, code }) => command(template, title, code)));
    followBytes();
  };
  // Bytes that nobody sees take none of the few connections that a browser has.
  const followBytes = () => (isSeen && document.visibilityState === "visible" ? bytes.show(choice.value) : bytes.stop());

  choice.addEventListener("change", show);
  document.addEventListener("visibilitychange", followBytes);
  new IntersectionObserver((entries) => {
    const entry = entries.at(-1);
    if (entry === undefined || entry.isIntersecting === isSeen) return;
    isSeen = entry.isIntersecting;
    followBytes();
  }).observe(find(section, "#bytes", HTMLElement));
  show();
}
