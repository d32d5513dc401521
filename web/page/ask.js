/** Asks a question before an action that cannot be undone. */
import { part } from "./element.js";

/**
 * Returns true if the answer is yes. Escape means no, and no has the focus at first.
 * @param {{ title: string, about: string, yes: string, no: string }} words
 * @returns {Promise<boolean>}
 */
export function ask({ title, about, yes, no }) {
  const dialog = document.createElement("dialog");
  const heading = part("h2", "", title);
  const text = part("p", "", about);
  heading.id = "question";
  text.id = "question-about";
  dialog.setAttribute("aria-labelledby", heading.id);
  dialog.setAttribute("aria-describedby", text.id);
  const buttons = part("p", "controls", "");
  const [yesButton, noButton] = [part("button", "danger", yes), part("button", "", no)];
  noButton.autofocus = true;
  buttons.append(yesButton, noButton);
  dialog.append(heading, text, buttons);
  document.body.append(dialog);
  return new Promise((resolve) => {
    yesButton.addEventListener("click", () => dialog.close("yes"));
    noButton.addEventListener("click", () => dialog.close("no"));
    // The browser returns the focus to where it was.
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
  });
}
