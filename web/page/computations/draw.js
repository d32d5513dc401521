/**
 * Draws a list into the pixels of a picture, in several representations. Pure: a picture is an array of colours.
 *
 * A picture is drawn whole each time. This is a walk through an array, and costs less than to find the changes and draw paths over them:
 * 2,000 elements take about a tenth of a millisecond.
 */

/**
 * @typedef {object} Picture
 * @property {Uint32Array} pixels row by row
 * @property {number} width
 * @property {number} height
 * @property {number} ratio the pixels of the screen in one of the style sheet
 *
 * @typedef {object} Inks colours as the pixels have them
 * @property {number} ground
 * @property {number} ink
 * @property {number} pale where elements of the same column differ
 * @property {number} mark what has changed last
 * @property {number} line
 * @property {Uint32Array} hues from the smallest value to the largest one, which is next to it on the circle
 *
 * @typedef {Pick<import("./replay.js").List, "values" | "touched">} Shown
 * @typedef {(picture: Picture, list: Shown, inks: Inks) => void} Drawing
 */

/** @type {Record<string, { name: string, about: string, draw: Drawing }>} */
export const REPRESENTATIONS = {
  bars: { name: "Bars", about: "from left to right by position, as high as the value", draw: bars },
  points: { name: "Points", about: "from left to right by position, as high as the value, in the colour of the value", draw: points },
  circle: { name: "Hue circle", about: "around by position, in the colour of the value", draw: circle },
  scatter: { name: "Scatter", about: "the value to the right, the position downwards; what is where it belongs is on the line", draw: scatter },
};

/** The least width of a column that has a gap to the next one. */
const GAP_PX_MIN = 4;

/**
 * Draws row by row from below. A row is a copy of the row below it, without the columns that have ended. A copy takes a tenth of the time
 * of a decision for each pixel.
 * @type {Drawing}
 */
export function bars({ pixels, width, height }, { values, touched }, { ground, ink, pale, mark }) {
  const count = values.length;
  const row = new Uint32Array(width).fill(ink);
  for (const at of touched) {
    const from = Math.floor((at * width) / count);
    row.fill(mark, from, Math.max(from + 1, Math.floor(((at + 1) * width) / count)));
  }
  const { low, high } = extentsOf(values, width, height);
  /** The columns that end below each row. @type {number[][]} */
  const ends = Array.from({ length: height + 1 }, () => []);
  for (let x = 0; x < width; x += 1) for (const level of [low[x] ?? 0, high[x] ?? 0]) ends[level]?.push(x);
  for (let level = 0; level < height; level += 1) {
    for (const x of ends[level] ?? []) row[x] = level < (high[x] ?? 0) ? pale : ground;
    pixels.set(row, (height - 1 - level) * width);
  }
}

/**
 * Returns the heights of the least and the greatest element of each column; none for a gap.
 * @param {Shown["values"]} values
 * @param {number} width
 * @param {number} height
 */
function extentsOf(values, width, height) {
  const count = values.length;
  const [low, high] = [new Int32Array(width), new Int32Array(width)];
  const hasGaps = width / count >= GAP_PX_MIN;
  for (let x = 0; x < width; x += 1) {
    const first = Math.floor((x * count) / width);
    const next = Math.max(first + 1, Math.floor(((x + 1) * count) / width));
    if (hasGaps && first !== Math.floor(((x + 1) * count) / width)) continue;
    let [least, most] = [Infinity, 0];
    for (let at = first; at < next; at += 1) {
      const value = values[at] ?? 0;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    const lowest = Math.max(1, Math.round((least * height) / count));
    low[x] = lowest;
    high[x] = Math.max(lowest, Math.round((most * height) / count));
  }
  return { low, high };
}

/** @type {Drawing} */
export function points(picture, { values, touched }, inks) {
  picture.pixels.fill(inks.ground);
  const { length } = values;
  const side = sideOf(picture, length);
  const dot = (/** @type {number} */ at, /** @type {number} */ colour, /** @type {number} */ px) => {
    square(picture, (at + 0.5) / length, 1 - ((values[at] ?? 0) - 0.5) / length, px, colour);
  };
  for (let at = 0; at < length; at += 1) dot(at, hueOf(inks, values[at] ?? 0, length), side);
  for (const at of touched) dot(at, inks.mark, 2 * side);
}

/** @type {Drawing} */
export function scatter(picture, { values, touched }, inks) {
  const { pixels, width, height } = picture;
  pixels.fill(inks.ground);
  for (let x = 0; x < width; x += 1) pixels[Math.min(height - 1, Math.floor((x * height) / width)) * width + x] = inks.line;
  const { length } = values;
  const side = sideOf(picture, length);
  const dot = (/** @type {number} */ at, /** @type {number} */ colour, /** @type {number} */ px) => {
    square(picture, ((values[at] ?? 0) - 0.5) / length, (at + 0.5) / length, px, colour);
  };
  for (let at = 0; at < length; at += 1) dot(at, inks.ink, side);
  for (const at of touched) dot(at, inks.mark, 2 * side);
}

/** @type {Drawing} */
export function circle(picture, { values, touched }, inks) {
  const { pixels } = picture;
  const { length } = values;
  const colours = Uint32Array.from(values, (value) => hueOf(inks, value, length));
  for (const at of touched) colours[at] = inks.mark;
  const { disc, elements, edge, covers } = discOf(picture, length);
  pixels.fill(inks.ground);
  for (let at = 0; at < disc.length; at += 1) pixels[disc[at] ?? 0] = colours[elements[at] ?? 0] ?? 0;
  for (let at = 0; at < edge.length; at += 1) {
    const pixel = edge[at] ?? 0;
    pixels[pixel] = mix(inks.ground, pixels[pixel] ?? 0, (covers[at] ?? 0) / 255);
  }
}

/**
 * @param {Inks} inks
 * @param {number} value 1 to `count`
 * @param {number} count
 */
function hueOf({ hues }, value, count) {
  return hues[Math.floor(((value - 1) * hues.length) / count)] ?? 0;
}

/**
 * Returns the side of a dot.
 * @param {Picture} picture
 * @param {number} count
 */
function sideOf({ width, ratio }, count) {
  return Math.round(Math.min(7 * ratio, Math.max(2 * ratio, (0.7 * width) / count)));
}

/**
 * Draws a square that is inside of the picture.
 * @param {Picture} picture
 * @param {number} right 0 to 1
 * @param {number} down 0 to 1
 * @param {number} side
 * @param {number} colour
 */
function square({ pixels, width, height }, right, down, side, colour) {
  const left = Math.round(right * (width - side));
  const top = Math.round(down * (height - side));
  for (let y = Math.max(0, top); y < Math.min(height, top + side); y += 1) {
    const row = y * width;
    for (let x = Math.max(0, left); x < Math.min(width, left + side); x += 1) pixels[row + x] = colour;
  }
}

// --- the circle ---

/** The pixels of the disc, and the element of each pixel; for those at the edge, the part of the pixel that is inside. */
/** @typedef {{ key: string, disc: Uint32Array, elements: Uint32Array, edge: Uint32Array, covers: Uint8Array }} Disc */

const HOLE = 0.35;
/** The most discs that are kept. There is one for each size of a canvas. */
const DISCS_MAX = 16;
/** @type {Disc[]} */
const discs = [];

/**
 * @param {Picture} picture
 * @param {number} count
 */
function discOf({ width, height }, count) {
  const key = `${width} ${height} ${count}`;
  const known = discs.find((disc) => disc.key === key);
  if (known) return known;
  const disc = makeDisc(key, width, height, count);
  if (discs.push(disc) > DISCS_MAX) discs.shift();
  return disc;
}

/**
 * @param {string} key
 * @param {number} width
 * @param {number} height
 * @param {number} count
 * @returns {Disc}
 */
function makeDisc(key, width, height, count) {
  const outer = Math.min(width, height) / 2;
  const inner = outer * HOLE;
  /** @type {number[]} */ const disc = [];
  /** @type {number[]} */ const elements = [];
  /** @type {number[]} */ const edge = [];
  /** @type {number[]} */ const covers = [];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const [right, down] = [x + 0.5 - width / 2, y + 0.5 - height / 2];
      const radius = Math.hypot(right, down);
      const cover = Math.min(1, outer - radius + 0.5, radius - inner + 0.5);
      if (cover <= 0) continue;
      const turn = (Math.atan2(right, -down) / (2 * Math.PI) + 1) % 1; // clockwise from the top
      disc.push(y * width + x);
      elements.push(Math.min(count - 1, Math.floor(turn * count)));
      if (cover >= 1) continue;
      edge.push(y * width + x);
      covers.push(Math.round(cover * 255));
    }
  }
  return { key, disc: Uint32Array.from(disc), elements: Uint32Array.from(elements), edge: Uint32Array.from(edge), covers: Uint8Array.from(covers) };
}

// --- colours ---

/** Canvases store red first, as machines with the low byte first read it from the right. */
const OPAQUE = 0xff000000;

/** @param {number[]} rgb 0 to 255 */
export function pixelOf([red = 0, green = 0, blue = 0]) {
  return (OPAQUE | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
}

/** @param {string} hex a colour of the style sheet, `#rrggbb` */
export function pixelOfHex(hex) {
  return pixelOf([1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)));
}

/**
 * @param {number} from
 * @param {number} to
 * @param {number} share of `to`
 */
export function mix(from, to, share) {
  const part = (/** @type {number} */ shift) => {
    const [a, b] = [(from >>> shift) & 255, (to >>> shift) & 255];
    return a + (b - a) * share;
  };
  return pixelOf([part(0), part(8), part(16)]);
}

/**
 * Returns the colours around the circle, all of about the same lightness (OKLCH).
 * @param {number} count
 * @param {number} lightness 0 to 1
 */
export function huesOf(count, lightness) {
  return Uint32Array.from({ length: count }, (_, at) => pixelOf(fromOklch(lightness, 0.14, (at / count) * 2 * Math.PI + 0.4)));
}

/**
 * @param {number} lightness
 * @param {number} chroma
 * @param {number} hue
 */
function fromOklch(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((part) => {
    const inside = Math.min(1, Math.max(0, part));
    return 255 * (inside <= 0.0031308 ? 12.92 * inside : 1.055 * inside ** (1 / 2.4) - 0.055);
  });
}
