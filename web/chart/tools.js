/** The buttons of a chart, for those who have neither a wheel nor the keys in mind. */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{ zoom: (factor: number) => void, reset: () => void }} actions
 */
export function addTools(canvas, { zoom, reset }) {
  const tools = document.createElement("div");
  tools.className = "chart-tools";
  const live = button("Live", "Back to the newest values", reset);
  live.hidden = true;
  const out = button("−", "Show more time", () => zoom(2));
  const closer = button("+", "Show less time", () => zoom(0.5));
  tools.append(live, out, closer);
  canvas.after(tools);
  return {
    /** @param {{ isFirst: boolean }} view */
    show: ({ isFirst }) => {
      // A button that vanishes takes the focus with it.
      if (isFirst && document.activeElement === live) canvas.focus();
      live.hidden = isFirst;
    },
    /** Nothing new comes any more. */
    settle: () => {
      live.textContent = "All";
      live.title = "Back to all of it";
    },
  };
}

/**
 * @param {string} text
 * @param {string} title
 * @param {() => void} act
 */
function button(text, title, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.title = title;
  if (text.length === 1) element.setAttribute("aria-label", title);
  element.addEventListener("click", act);
  return element;
}
