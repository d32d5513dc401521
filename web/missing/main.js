/** The page about a topic that does not exist: fills in its name, and becomes the page about the topic once it is there. */
import { connect } from "../client.js";
import { find, setText } from "../page/element.js";
import { hasTopic, showPlaces } from "../page/places.js";
import { SITE, at } from "../page/site.js";

const name = decodeURIComponent(location.pathname.slice(location.pathname.lastIndexOf("/") + 1));

const said = document.createElement("span");
said.dataset.name = "";
find(document, "#what", HTMLElement).replaceChildren("topic ", said);
for (const place of document.querySelectorAll("[data-name]")) place.textContent = name;
for (const place of document.querySelectorAll("[data-url]")) place.textContent = at(`topics/${name}`);
document.title = `No topic ${name} · Anemone`;

const index = connect(SITE).topic("$topics");
index.onmessage = (/** @type {{ data: any }} */ { data }) => {
  if (data?.created === name) location.reload();
};
index.onopen = async () => {
  setText(find(document, "#watching", HTMLElement), "This page shows the topic as soon as it is there.");
  // It may have come between the reply and this.
  if (await hasTopic(name)) location.reload();
};
void showPlaces();
