/** Canvases that are sharp on any screen, follow their box, and take their colours from the style sheet. */

/** The functions that draw each, at once and in the next frame. A canvas that has left the page is forgotten. @type {WeakMap<Element, { paint: () => void, ask: () => void }>} */
const drawn = new WeakMap();
/** @type {Map<string, string>} */
const colours = new Map();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => recolour("ask"));
// Paper is light, whatever the screen is, and there is no frame before the page is printed.
for (const type of ["beforeprint", "afterprint"]) {
  addEventListener(type, () => {
    document.documentElement.classList.toggle("printed", type === "beforeprint");
    recolour("paint");
  });
}

/** @param {"paint" | "ask"} how */
function recolour(how) {
  colours.clear();
  for (const canvas of document.querySelectorAll("canvas")) drawn.get(canvas)?.[how]();
}

/**
 * Calls `draw` with a context scaled to CSS pixels: when the canvas comes into view, and while it is there when its box changes and on
 * request.
 * @param {HTMLCanvasElement} canvas
 * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} draw
 * @returns {() => void} asks for a redraw in the next frame
 */
export function fitted(canvas, draw) {
  const context = canvas.getContext("2d");
  if (!context) return () => {};
  let asked = false;
  let isSeen = false;
  let isStale = false;
  /** As the last layout has it: to ask for it in each frame would lay out the page once more for each canvas. */
  let { clientWidth: width, clientHeight: height } = canvas;
  const paint = () => {
    const ratio = globalThis.devicePixelRatio || 1;
    if (width === 0 || height === 0) return;
    const [pixelsWide, pixelsHigh] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== pixelsWide || canvas.height !== pixelsHigh) {
      canvas.width = pixelsWide;
      canvas.height = pixelsHigh;
    }
    context.setTransform(pixelsWide / width, 0, 0, pixelsHigh / height, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, width, height);
  };
  const paintIfSeen = () => {
    asked = false;
    isStale = !isSeen;
    if (isSeen) paint();
  };
  const ask = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(paintIfSeen);
  };
  new ResizeObserver((entries) => {
    const box = entries.at(-1)?.contentRect;
    if (box) [width, height] = [Math.round(box.width), Math.round(box.height)];
    ask();
  }).observe(canvas);
  // What nobody sees is drawn once it is seen. Of several entries, the last is how it is now.
  new IntersectionObserver((entries) => {
    isSeen = entries.at(-1)?.isIntersecting ?? true;
    if (isSeen && isStale) ask();
  }).observe(canvas);
  drawn.set(canvas, { paint, ask });
  ask();
  return ask;
}

/**
 * Returns a colour of the style sheet, for example `colour("ink")`.
 * @param {string} name
 */
export function colour(name) {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, value);
  }
  return value;
}

/**
 * @param {number} px
 * @param {string} [weight]
 */
export function font(px, weight = "400") {
  return `${weight} ${px}px ${colour("font")}`;
}

export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
