/** The area below a line of a chart. */

/**
 * Fills the area below the highest point of each pixel.
 * @param {CanvasRenderingContext2D} context
 * @param {readonly number[]} points
 * @param {(time: number) => number} x
 * @param {(value: number) => number} y
 * @param {number} bottom
 */
export function fillBelow(context, points, x, y, bottom) {
  context.beginPath();
  context.moveTo(x(Number(points[0])), bottom);
  let column = x(Number(points[0]));
  let last = column;
  let top = bottom;
  for (let at = 0; at < points.length; at += 2) {
    const [across, up] = [x(Number(points[at])), y(Number(points[at + 1]))];
    if (across - column >= 1) {
      context.lineTo(column, top);
      column = across;
      top = bottom;
    }
    last = across;
    top = Math.min(top, up);
  }
  context.lineTo(column, top);
  context.lineTo(last, top);
  context.lineTo(last, bottom);
  context.closePath();
  context.globalAlpha = 0.11;
  context.fill();
  context.globalAlpha = 1;
}
