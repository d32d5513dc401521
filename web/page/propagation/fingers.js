/** Shows how fingers move a map, if one finger has scrolled the page instead. */
import { part } from "../element.js";

/** @param {HTMLElement} map with its canvas, over which one finger up or down scrolls the page */
export function tellFingers(map) {
  const hint = part("p", "fingers", "Two fingers move the map.");
  // To eyes alone: who listens to the page moves the map with the keys.
  hint.setAttribute("aria-hidden", "true");
  map.append(hint);
  map.addEventListener("pointercancel", ({ target, pointerType }) => {
    if (pointerType === "touch" && target instanceof HTMLCanvasElement) hint.classList.add("told");
  });
  hint.addEventListener("animationend", () => hint.classList.remove("told"));
}
