/** The box that writes a message. */
import { find, setText } from "../element.js";
import { newKey, sendOnEnter } from "../sending.js";
import { failureInWords, isGone } from "../server.js";
import { create } from "./calls.js";

/** @param {HTMLElement} section */
export function offerWriting(section) {
  const text = find(section, "textarea", HTMLTextAreaElement);
  const from = find(section, "input", HTMLInputElement);
  const said = find(section, "[role=status]", HTMLElement);
  let key = newKey();
  // Sent again after no answer, the same message is there once.
  for (const box of [text, from]) box.addEventListener("input", () => (key = newKey()));
  const send = async () => {
    said.classList.remove("failure");
    setText(said, "sending");
    try {
      await create({ text: text.value, from: from.value }, key);
      setText(said, "Sent.");
      text.value = "";
      text.focus();
      key = newKey();
    } catch (error) {
      const again = isGone(error) ? " What you wrote is still here. Send it again: if the server has it, it will not be there twice." : "";
      setText(said, failureInWords(error) + again);
      said.classList.add("failure");
    }
  };
  find(section, "button", HTMLButtonElement).addEventListener("click", () => void send());
  for (const box of [text, from]) sendOnEnter(box, send);
}
