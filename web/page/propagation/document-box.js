/** The document itself, as JSON that may be changed. */
import { find, setText } from "../element.js";
import { fitted, isCoverage } from "./document.js";
import { button, element } from "./elements.js";

/**
 * @param {() => void} opened
 * @param {(document: import("./document.js").Coverage) => void} use
 */
export function listenToDocument(opened, use) {
  element("#document").addEventListener("toggle", opened);
  button("#use").addEventListener("click", () => {
    const said = element("#json-said");
    try {
      const read = JSON.parse(box().value);
      const isFit = isCoverage(read);
      setText(said, isFit ? "" : "The document needs an area, a model and at least one transmitter.");
      if (isFit) use(read);
    } catch (error) {
      setText(said, `This is not JSON: ${error instanceof Error ? error.message : error}.`);
    }
  });
}

/** Shows a document, if anybody sees it and nobody types. @param {import("./document.js").Coverage} shown */
export function showDocument(shown) {
  if (box() !== document.activeElement && element("#document").hasAttribute("open")) box().value = JSON.stringify(fitted(shown), null, 2);
}

const box = () => find(document, "#json", HTMLTextAreaElement);
