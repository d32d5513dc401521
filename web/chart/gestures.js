/**
 * Tells what hands do to a chart or a map: wheel, drag, pinch and keys, in the words of the view.
 *
 * The wheel scrolls the page as everywhere, unless the chart has the focus or Ctrl is held, which is also how browsers
 * report a pinch on a touchpad. One finger up or down scrolls it too: the style lets the browser do that (touch-action: pan-y).
 *
 * @typedef {object} Actions
 * @property {(factor: number, x: number | null, y: number | null) => void} zoom around a place, or where the reading is
 * @property {(px: number, down: number) => void} pan
 * @property {(x: number | null, y: number | null) => void} point what is read is at this place, or nothing
 * @property {(steps: number) => void} step to a later or earlier value
 * @property {(end: "first" | "last") => void} jump
 * @property {() => void} reset
 */

const DRAG_PX_MIN = 4;
/** Fingers that are closer count as this far apart, or a small move would zoom far. */
const PINCH_PX_MIN = 20;
const WHEEL_LINE_PX = 16;
const KEY_ZOOM = 1.5;
const PAN_KEY_PX = 120;

/** @typedef {Pick<Actions, "zoom" | "pan" | "point">} HandActions those without keys */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Actions} actions
 */
export function listen(canvas, actions) {
  listenToHands(canvas, actions);
  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const act = keyOf(event, actions);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/**
 * Listens to the wheel, the mouse and fingers, and leaves the keys to others.
 * @param {HTMLCanvasElement} canvas
 * @param {HandActions} actions
 */
export function listenToHands(canvas, actions) {
  listenToPointers(canvas, actions);
  canvas.addEventListener("wheel", (event) => turnWheel(event, canvas, actions), { passive: false });
}

/**
 * @param {KeyboardEvent} event
 * @param {Actions} actions
 * @returns {(() => void) | null}
 */
function keyOf({ key, shiftKey }, actions) {
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return () => (shiftKey ? actions.pan(-PAN_KEY_PX, 0) : actions.step(-1));
    case "ArrowRight":
    case "ArrowUp":
      return () => (shiftKey ? actions.pan(PAN_KEY_PX, 0) : actions.step(1));
    case "PageUp":
      return () => actions.step(-10);
    case "PageDown":
      return () => actions.step(10);
    case "Home":
      return () => actions.jump("first");
    case "End":
      return () => actions.jump("last");
    case "+":
    case "=":
      return () => actions.zoom(1 / KEY_ZOOM, null, null);
    case "-":
      return () => actions.zoom(KEY_ZOOM, null, null);
    case "Escape":
    case "0":
      return () => actions.reset();
    default:
      return null;
  }
}

/**
 * @param {WheelEvent} event
 * @param {HTMLCanvasElement} canvas
 * @param {HandActions} actions
 */
function turnWheel(event, canvas, actions) {
  const unit = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : WHEEL_LINE_PX;
  const [across, down] = [event.deltaX * unit, event.deltaY * unit];
  if (Math.abs(across) > Math.abs(down)) {
    event.preventDefault();
    actions.pan(across, 0);
  } else if (event.ctrlKey || event.metaKey || document.activeElement === canvas) {
    event.preventDefault();
    // A touchpad's pinch comes as a wheel with Ctrl in small steps, that of a mouse in large ones.
    const speed = event.ctrlKey && Math.abs(down) < 40 ? 0.01 : 0.002;
    actions.zoom(Math.exp(down * speed), event.offsetX, event.offsetY);
  }
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {HandActions} actions
 */
function listenToPointers(canvas, actions) {
  /** @type {Map<number, { x: number, y: number }>} where each pointer that is down is */
  const down = new Map();
  let startedAt = { x: 0, y: 0 };
  let isDragging = false;

  /** The middle of the first two pointers, and how far they are apart, in whatever direction they are pinched. */
  const spread = () => {
    const [first = { x: 0, y: 0 }, second = first] = [...down.values()];
    const middle = { x: (first.x + second.x) / 2, y: (first.y + second.y) / 2 };
    return { middle, distance: Math.max(PINCH_PX_MIN, Math.hypot(first.x - second.x, first.y - second.y)) };
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    startedAt = { x: event.offsetX, y: event.offsetY };
    isDragging = down.size > 1;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) {
      if (event.pointerType === "mouse") actions.point(event.offsetX, event.offsetY);
      return;
    }
    const [right, below] = [event.offsetX - startedAt.x, event.offsetY - startedAt.y];
    const isScroll = event.pointerType === "touch" && down.size === 1 && Math.abs(below) > Math.abs(right);
    isDragging ||= !isScroll && Math.hypot(right, below) >= DRAG_PX_MIN;
    if (!isDragging) return;
    const before = spread();
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const after = spread();
    canvas.classList.add("dragged");
    actions.point(null, null);
    actions.pan(before.middle.x - after.middle.x, before.middle.y - after.middle.y);
    if (down.size > 1) actions.zoom(before.distance / after.distance, after.middle.x, after.middle.y);
  });
  const end = (/** @type {PointerEvent} */ event) => {
    const wasDown = down.delete(event.pointerId);
    canvas.classList.remove("dragged");
    if (wasDown && event.type === "pointerup" && !isDragging) actions.point(event.offsetX, event.offsetY);
    if (down.size === 0) isDragging = false;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && down.size === 0) actions.point(null, null);
  });
}
