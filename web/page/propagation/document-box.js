/** The document itself, as JSON that may be changed. */
import { find, setText } from "../element.js";
import { withoutMark } from "../mark.js";
import { coverageFault, fitted } from "./document.js";
import { button, element } from "./elements.js";

/**
 * @param {() => void} opened
 * @param {(document: import("./document.js").Coverage) => void} use
 */
export function listenToDocument(opened, use) {
  element("#document").addEventListener("toggle", opened);
  button("#use").addEventListener("click", () => {
    const said = element("#json-said");
    let read;
    try {
      read = JSON.parse(withoutMark(box().value));
    } catch (error) {
      return setText(said, `This is not JSON: ${error instanceof Error ? error.message : error}.`);
    }
    const fault = coverageFault(read);
    setText(said, fault ?? "");
    if (fault === null) use(read);
  });
}

/** Shows a document, if the box is open and the user does not type in it. @param {import("./document.js").Coverage} shown */
export function showDocument(shown) {
  if (box() !== document.activeElement && element("#document").hasAttribute("open")) box().value = JSON.stringify(fitted(shown), null, 2);
}

const box = () => find(document, "#json", HTMLTextAreaElement);
