/** Boxes that scroll. An edge fades if there is more behind it (`.more-left` and the others in `style.css`). */

const EDGES = /** @type {const} */ (["left", "right", "top", "bottom"]);

/**
 * Fades the edges of a box from now on. Returns a function to call when its content was replaced.
 * @param {HTMLElement} box
 */
export function fadeEdges(box) {
  const look = () => showEdges(box);
  box.addEventListener("scroll", look, { passive: true });
  const sizes = new ResizeObserver(look);
  for (const element of [box, ...box.children]) sizes.observe(element);
  return look;
}

/** @param {HTMLElement} box */
function showEdges(box) {
  const { scrollLeft, scrollTop } = box;
  const more = {
    left: scrollLeft,
    right: box.scrollWidth - box.clientWidth - scrollLeft,
    top: scrollTop,
    bottom: box.scrollHeight - box.clientHeight - scrollTop,
  };
  // Zoomed pages have parts of a pixel.
  for (const edge of EDGES) box.classList.toggle(`more-${edge}`, more[edge] > 1);
}
